"""``influx-calib submission``: predictions as the benchmark takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from influx_wrap.cli.options import PATH, Command, choice_option
from influx_wrap.cli.progress import spinner, watch
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import check_writable
from influx_wrap.formats.json_stream import MIB
from influx_wrap.formats.manifest import TEST, VALIDATION
from influx_wrap.formats.submission import (
    SubmissionCheck,
    SubmissionSummary,
    check_submission,
    check_upload_names,
    summarise,
    write_submission,
)
from influx_wrap.formats.submission_scan import MANIFESTS, VERSIONS, manifests_problem
from influx_wrap.model.predictions import PARAMETERS
from influx_wrap.model.words import counted
from influx_wrap.predict.submission import (
    ALL,
    fill_from_files,
    make_template,
    videos_of_split,
)

MOST_FAULTS = 50
MOST_LISTED = 10
"""Videos that are listed before the rest is only counted."""

split_option = click.option(
    "--split",
    type=click.Choice((VALIDATION, TEST, ALL)),
    show_default=f"{TEST}, which is what the benchmark takes",
    help="The manifest's videos that count.",
)


def manifest_option(text: str, *, required: bool = False) -> Callable[[Command], Command]:
    """--manifest, which may be repeated."""
    return click.option(
        "--manifest", "manifests", type=PATH, multiple=True, required=required,
        help=f"{text}; given twice for version {VERSIONS[2]}.",
    )  # fmt: skip


@click.group("submission")
def command() -> None:
    """A submission to the benchmark: begin it, fill it, check it.

    \b
    Example:
      influx-calib submission template --manifest split.json --out blank.json \\
        --method mine --type rad-tan
      influx-calib submission fill blank.json predictions.json --out sub.json
      influx-calib submission validate sub.json --manifest split.json
    """


@command.command("template")
@manifest_option("The videos and their frames", required=True)
@click.option("--out", type=PATH, required=True, help="File for the template.")
@click.option("--method", required=True, metavar="NAME", help="What the method is called.")
@click.option("--type", "kind", type=click.Choice(tuple(PARAMETERS)), required=True,
              help="The camera it predicts.")  # fmt: skip
@choice_option("--version", VERSIONS, VERSIONS[0], "The benchmark's.")
@split_option
def template(
    manifests: tuple[Path, ...], out: Path, method: str, kind: str, version: str, split: str | None
) -> None:
    """All frames of a manifest's videos, still without predictions.

    Version influx has the videos of one manifest, influx_pp_real those of the other, and all those
    of both. Those of the test split are what the benchmark takes; to score predictions at home,
    choose --split val.

    \b
    Example:
      influx-calib submission template --manifest split.json --split val \\
        --method mine --type rad-tan --out blank.json
      influx-calib submission template --manifest split_v1.json --manifest split_v2.json \\
        --version all --method mine --type rad-tan --out blank.json
    """
    check_upload_names(out, method)
    if len(manifests) != MANIFESTS[version]:
        raise InputError(manifests_problem(version, len(manifests)))
    _check_out(out, manifests)
    videos = videos_of_split(manifests, split or TEST)
    try:
        blank = make_template(videos, method, kind, version)
    except InputError as error:
        raise InputError(f"{' and '.join(map(str, manifests))}: {error}") from None
    with spinner("writing"):
        write_submission(out, blank)
    _print(summarise(blank))
    print_written(out)


@command.command("validate")
@click.argument("file", type=PATH)
@manifest_option("Videos and frames that must be there, and no other")
@split_option
@click.option("--all", "list_all", is_flag=True,
              help=f"List up to {MOST_FAULTS} faults, not only the first.")  # fmt: skip
def validate(file: Path, manifests: tuple[Path, ...], split: str | None, list_all: bool) -> None:
    """Check a submission by the benchmark's rules.

    FILE is also what "predict" writes. Without a manifest any videos and any of their frames
    will do. A frame with a null counts as one without a prediction. A file with a fault gives
    exit code 2 and the fault's place, and says how many of the manifest's frames are missing.

    \b
    Example:
      influx-calib submission validate sub.json --manifest split.json
      influx-calib submission validate sub.json --manifest split_v1.json --manifest split_v2.json
    """
    if not manifests and split is not None:
        raise InputError(f"--split {split} needs a --manifest, which says what is in it.")
    videos = videos_of_split(manifests, split or TEST) if manifests else None
    with _reading(file) as progress:
        check = check_submission(
            file,
            videos,
            n_manifests=len(manifests) or None,
            most=MOST_FAULTS if list_all else 1,
            progress=progress,
        )
    if check.summary is None:
        _print_faults(check, list_all)
        raise click.exceptions.Exit(2)
    _print(check.summary)
    names = " and ".join(escape(str(path)) for path in manifests)
    against = f" and complete by {names}" if manifests else ""
    answers().print(f"valid{against}: {escape(str(file))}", soft_wrap=True)


@command.command("fill")
@click.argument("template_file", metavar="TEMPLATE", type=PATH)
@click.argument("prediction_files", metavar="PREDICTIONS...", type=PATH, nargs=-1, required=True)
@click.option("--out", type=PATH, required=True, help="File for the submission.")
def fill_command(template_file: Path, prediction_files: tuple[Path, ...], out: Path) -> None:
    """Put predictions into a template or into a submission.

    PREDICTIONS are files that "predict" has written, or other submissions: of some videos or
    all, of some frames or all, but of none that the template does not have. Method and version
    stay the template's. Where two files have an answer for a frame, the later one counts.

    \b
    Example:
      influx-calib submission fill blank.json colmap/*.json --out sub.json
    """
    _check_out(out, prediction_files)
    predictions, taken = fill_from_files(template_file, prediction_files, _reading)
    check_upload_names(out, predictions.method)
    with spinner("writing"):
        write_submission(out, predictions)
    for one in taken:
        replaced = f", {one.replaced} of them in place of others" if one.replaced else ""
        line = f"{escape(str(one.path))}: {one.count} predictions{replaced}"
        answers().print(line, soft_wrap=True)
    _print(summarise(predictions))
    print_written(out)


def _reading(path: Path) -> AbstractContextManager[Progress]:
    """A bar that moves as a file is read, in MiB."""
    return watch(f"reading {path.name}, MiB", unit=MIB)


def _check_out(out: Path, read: Sequence[Path]) -> None:
    """Refuse a path that cannot be written, or whose file is read and would be lost."""
    if out.resolve() in [path.resolve() for path in read]:
        raise InputError(f"--out {out} would replace what is read. Choose another name.")
    check_writable(out)


def _print_faults(check: SubmissionCheck, all_of_them: bool) -> None:
    """Each in a line; how many frames are missing, in one more or behind the only fault."""
    faults, missing = list(check.faults), ""
    if check.missing is not None and check.missing[0]:
        some, wanted = check.missing
        missing = f"In all, {some} of {counted(wanted, 'frame')} that must be there are missing."
    if not all_of_them:
        click.echo(" ".join(filter(None, (f"Error: {faults[0]}", missing))), err=True)
        return
    for fault in faults:
        click.echo(f"Error: {fault}", err=True)
    if len(faults) == MOST_FAULTS:
        click.echo("There may be more.", err=True)
    if missing:
        click.echo(missing, err=True)


def _print(summary: SubmissionSummary) -> None:
    table = Table(box=None, show_header=False)
    without = summary.frames - summary.predicted
    for label, value in (
        ("method", summary.method),
        ("type", summary.kind),
        ("version", summary.version),
        ("videos", len(summary.videos)),
        ("frames", summary.frames),
        ("with a prediction", f"{summary.predicted} {_percent(summary.predicted, summary.frames)}"),
        ("without", f"{without} {_percent(without, summary.frames)}"),
    ):
        table.add_row(label, escape(str(value)))
    console = answers()
    console.print(table)
    gaps = [(name, v) for name, v in summary.videos.items() if v.predicted < v.frames]
    for name, video in gaps[:MOST_LISTED]:
        empty = "all" if not video.predicted else str(video.frames - video.predicted)
        console.print(f"  {escape(name)}: {empty} of {video.frames} frames without", soft_wrap=True)
    if len(gaps) > MOST_LISTED:
        console.print(f"  and {len(gaps) - MOST_LISTED} more videos with such frames")


def _percent(part: int, total: int) -> str:
    return f"({100 * part / total:.1f} %)"
