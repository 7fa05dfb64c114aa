"""``influx-calib lut``: a lens's table, built, asked, judged and drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Printed

from influx_wrap.cli.options import (
    PATH,
    catalogue_option,
    keep_suspects_option,
    number_option,
    weighing_option,
)
from influx_wrap.cli.progress import spinner
from influx_wrap.cli.tables import answers as answer_console
from influx_wrap.cli.tables import print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA, load_catalogue
from influx_wrap.formats.files import check_writable, make_folder
from influx_wrap.formats.lut import read_table, write_table
from influx_wrap.lut.judge import Judged, Judgement, favoured, judge_all, judge_smooth
from influx_wrap.lut.lens_model import is_fitted, smooth_lens
from influx_wrap.lut.lens_table import LensTable
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.lut.schemes import DEFAULT, PAPER, REGION_SCHEMES, SCHEMES, SMOOTH
from influx_wrap.lut.smooth.fit import FEWEST
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table
from influx_wrap.report.explorer import write_explorer
from influx_wrap.run.plan import proposed
from influx_wrap.run.table import contradictions, lens_notes, table_from

SCHEME = click.Choice(SCHEMES)


@click.group("lut")
def command() -> None:
    """The lookup table of a lens: build it, ask it, see how good it is.

    \b
    Example:
      influx-calib lut build runs/canon17 --out canon17.json
      influx-calib lut query canon17.json --lfl-mm 35 --fd-m 2.4
    """


@command.command("build")
@click.argument("source", metavar="RUN_DIR|SELECTED.json", type=PATH)
@click.option("--out", type=PATH, required=True, help="The table.")
@click.option("--lens", help="Of a selected-results file; a run knows its own.")
@click.option(
    "--camera", show_default=f"the run's, or {CAMERA}", help="Camera, by its name in the catalogue."
)
@keep_suspects_option
@catalogue_option
def build(
    catalogue: Path | None,
    source: Path,
    out: Path,
    lens: str | None,
    camera: str | None,
    keep_suspects: bool,
) -> None:
    """Build a table from a run or from a selected-results file.

    Experiments of a run that contradict what was typed, or whose verdict is "do not use", are
    left out and named.

    \b
    Example:
      influx-calib lut build runs/canon17 --out canon17.json
      influx-calib lut build runs/canon17 --out all.json --keep-suspects
    """
    known = load_catalogue(catalogue)
    built = table_from(source, known, lens=lens, camera=camera, keep_suspects=keep_suspects)
    write_table(out, built.table)
    console = answer_console()
    n = len(built.table.names)
    console.print(escape(f"{n} experiments of {built.table.lens} in {out}"), soft_wrap=True)
    for note in built.notes:
        console.print(escape(f"  {note}"), soft_wrap=True)
    for name, reason in built.left_out.items():
        console.print(escape(f"  left out: {name}, {reason}"), soft_wrap=True)
    for name, remark in built.remarks.items():
        console.print(escape(f"  in it all the same: {name}, {remark}"), soft_wrap=True)


@command.command("fit")
@click.argument("table_file", metavar="LUT", type=PATH)
def fit(table_file: Path) -> None:
    """Fit the smooth lens anew, and keep it in the table's file.

    "lut build" and "run" do this by themselves. Experiments that contradict the others are named.

    \b
    Example:
      influx-calib lut fit canon17.json
    """
    table = read_table(table_file)
    with spinner("fitting the smooth lens"):
        table = replace(table, smooth=smooth_lens(table).fit)
        write_table(table_file, table)
        odd = contradictions(table)
    for note in lens_notes(table):
        answer_console().print(escape(f"  {note}"), soft_wrap=True)
    for name, doubt in odd.items():
        answer_console().print(escape(f"  odd: {name}, {doubt.sentence}"), soft_wrap=True)
    print_written(table_file)


@command.command("query")
@click.argument("table_file", metavar="LUT", type=PATH)
@number_option("--lfl-mm", None, "Lens focal length.", above=0, required=True)
@number_option(
    "--fd-m", None, "Focus distance in metres, or inf.", above=0, infinite=True, required=True
)
@click.option("--scheme", type=SCHEME, default=DEFAULT, show_default=True, help="Interpolation.")
@weighing_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def query(
    table_file: Path,
    lfl_mm: float,
    fd_m: float,
    scheme: str,
    by_covariance: bool | None,
    as_json: bool,
) -> None:
    """Intrinsics at one setting of the lens, with their sigma.

    The answer names the experiments that it comes from.

    \b
    Example:
      influx-calib lut query canon17.json --lfl-mm 35 --fd-m inf --json
    """
    table = LensTable.of(read_table(table_file))
    answer = table.query(lfl_mm, fd_m, scheme=scheme, by_covariance=by_covariance)
    intrinsics = dict(zip(NAMES, answer.intrinsics.tolist(), strict=True))
    # Not known where an experiment that takes part has no covariance.
    sigma = {
        name: None if math.isnan(value) else value
        for name, value in zip(NAMES, answer.sigma.tolist(), strict=True)
    }
    rows = zip(answer.vertices.tolist(), answer.weights.tolist(), strict=True)
    vertices = [(table.names[row], weight) for row, weight in rows if row >= 0]
    if scheme == SMOOTH and not is_fitted(table):
        state = "is not in the file yet" if table.smooth is None else "in the file is not of it"
        note = f"the table's fit {state}; influx-calib lut fit {table_file} puts it there"
        Console(stderr=True, soft_wrap=True).print(f"note: {escape(note)}")
    if as_json:
        click.echo(
            json.dumps(
                {
                    "lfl_mm": lfl_mm,
                    "fd_m": "inf" if math.isinf(fd_m) else fd_m,
                    "scheme": scheme,
                    "status": str(answer.status),
                    "intrinsics": intrinsics,
                    "sigma": sigma,
                    "vertices": [{"name": n, "weight": weight} for n, weight in vertices],
                },
                indent=2,
                allow_nan=False,
            )
        )
        return
    printed = Printed(
        "", "value", "± sigma", title=f"{table.lens}, {lfl_mm:g} mm, {fd_m:g} m", box=None
    )
    for name in NAMES:
        digits = 3 if name in ("fx", "fy", "cx", "cy") else 6
        deviation = sigma[name]
        text = "?" if deviation is None else f"{deviation:.{digits}f}"
        printed.add_row(name, f"{intrinsics[name]:.{digits}f}", text)
    console = answer_console()
    console.print(printed)
    parts = ", ".join(f"{name} {weight:.3f}" for name, weight in vertices)
    parts = parts or f"all {len(table.names)} experiments"
    console.print(f"{answer.status} by scheme {scheme} from {parts}", soft_wrap=True)
    if None in sigma.values():
        console.print("Sigma is not known: experiments of the table have no covariance.")


@command.command("crossval")
@click.argument("table_file", metavar="LUT", type=PATH)
@click.option("--figure", type=PATH, metavar="DIR", help="Draw the paper's maps of the errors.")
def crossval(table_file: Path, figure: Path | None) -> None:
    """Predict each experiment from the others, by every scheme.

    An experiment is predicted if others enclose its setting.

    \b
    Example:
      influx-calib lut crossval canon17.json --figure figures
    """
    table = read_table(table_file)
    with spinner("leaving experiments out"):
        judgements = judge_all(table)
    print_judgements(table, judgements)
    if figure is not None:
        from influx_wrap.report.table_figure import draw_all_left_out  # matplotlib is slow to load

        with spinner("drawing"):
            draw_all_left_out(table, judgements, figure)
        answer_console().print(f"drawn: {escape(str(figure))}", soft_wrap=True)


def print_judgements(table: Table, of_regions: Sequence[Judgement]) -> None:
    """Errors of every scheme, and which is best for this lens."""
    console = answer_console()
    judgements: list[Judged] = list(of_regions)
    judged = of_regions[0].left_out.judged
    if judged.any() and len(table.names) >= FEWEST:
        judgements.insert(0, judge_smooth(smooth_lens(table), judged))
    best = favoured(judgements)
    if best is None:
        console.print("No experiment of this table is enclosed by others: nothing to judge.")
        return
    title = f"{table.lens}: {best.judged} of {len(table.names)} experiments predicted from others"
    printed = Printed(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    printed.add_column("scheme", no_wrap=True)
    printed.add_column("error", no_wrap=True)
    for name in NAMES:
        printed.add_column(name + (" %" if name in NAMES[:4] else ""), justify="right")
    for judgement in judgements:
        if not judgement.judged:
            printed.add_row(judgement.scheme, "none judged")
            continue
        rows = (("median", judgement.median), ("largest", judgement.largest))
        for label, values in rows:
            numbers = [f"{v:.3f}" if k < 4 else f"{v:.2g}" for k, v in enumerate(values)]
            printed.add_row(judgement.scheme if label == "median" else "", label, *numbers)
        printed.add_row("", "in 1 sigma", *map(_share, judgement.within.tolist()))
    console.print(printed)
    console.print(
        f"This lens's own data favour {best.scheme}"
        + ("." if best.scheme == DEFAULT else f"; the default is {DEFAULT}."),
        soft_wrap=True,
    )


def _share(share: float) -> str:
    return "?" if math.isnan(share) else f"{100 * share:.0f} %"


@command.command("plot")
@click.argument("table_file", metavar="LUT", type=PATH)
@click.option("--figure", type=PATH, metavar="DIR", required=True, help="Where the figures go.")
@click.option("--scheme", type=click.Choice(REGION_SCHEMES), default=PAPER,
              show_default=True, help="Interpolation.")  # fmt: skip
def plot(table_file: Path, figure: Path, scheme: str) -> None:
    """Draw the table's regions and its intrinsics.

    \b
    Example:
      influx-calib lut plot canon17.json --figure figures
    """
    # matplotlib is slow to load
    from influx_wrap.report.table_figure import draw_intrinsics, draw_regions

    table = read_table(table_file)
    lookup = make_lookup(table, scheme)
    if len(table.columns) < 2:
        raise InputError(f"{table_file} has one focal length only: there is no plane to draw.")
    make_folder(figure)
    with spinner("drawing"):
        draw_regions(lookup, figure / "regions.png")
        draw_intrinsics(lookup, figure / "intrinsics.png")
    answer_console().print(f"drawn: {escape(str(figure))}", soft_wrap=True)


@command.command("explore")
@click.argument("table_file", metavar="LUT", type=PATH)
@click.option("--out", type=PATH, show_default="beside LUT, as .html", help="The page.")
@click.option("--open", "is_opened", is_flag=True, help="Show it in the browser.")
@catalogue_option
def explore(catalogue: Path | None, table_file: Path, out: Path | None, is_opened: bool) -> None:
    """Write the lens explorer: one page that answers at any setting.

    It opens from a disk, without a network. Its numbers are those of "lut query"; a clip's lens
    metadata, dropped on it, become intrinsics over time.

    \b
    Example:
      influx-calib lut explore canon17.json --open
    """
    table = read_table(table_file)
    out = table_file.with_suffix(".html") if out is None else out
    if out.resolve() == table_file.resolve():
        raise InputError(f"{out} is the table itself: choose another file with --out.")
    check_writable(out)
    with spinner("leaving experiments out"):
        proposals = proposed(table, load_catalogue(catalogue))
        write_explorer(out, table, judge_all(table), proposals)
    print_written(out)
    if is_opened and click.launch(str(out)) != 0:
        raise InputError(f"there is no browser to open {out} with: open it by hand.")
