"""``influx-calib plan``: the experiments of a lens; ``plan next``: those to add to its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from influx_wrap.cli.options import (
    PATH,
    catalogue_option,
    count_option,
    lens_argument,
    number_option,
)
from influx_wrap.cli.progress import SHOWN_AFTER_S, watch
from influx_wrap.cli.tables import (
    answers,
    chosen_table,
    next_table,
    plan_table,
    plan_totals,
    print_written,
)
from influx_wrap.errors import InputError
from influx_wrap.formats.influx import write_lens_settings
from influx_wrap.model.experiment import Plan
from influx_wrap.run.plan import chosen_by_name, next_of_table, plan_by_name

NEXT = "next"

boards_only_option = click.option("--boards-only", is_flag=True, help="Never with the drone.")


class _PlanCommand(click.Command):
    """``plan LENS``, beside which ``plan next`` is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        """Of the command that is asked for."""
        if args[:1] == [NEXT]:
            return next_command.make_context(f"{info_name} {NEXT}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("plan", cls=_PlanCommand)
@lens_argument
@count_option("--experiments", None, "Choose so many, which tell most about the lens.", at_least=1)
@number_option(
    "--accuracy-px",
    None,
    "Choose as few as make the picture's corner known to so many pixels, one sigma.",
    above=0,
)
@boards_only_option
@click.option("--out", type=PATH, help="Write the lens settings as JSON.")
@click.option("--figure", type=PATH, help="Draw the grid; png, pdf, svg, ...")
@catalogue_option
def command(
    catalogue: Path | None,
    lens: str,
    camera: str,
    experiments: int | None,
    accuracy_px: float | None,
    boards_only: bool,
    out: Path | None,
    figure: Path | None,
) -> None:
    """Which experiments to shoot for LENS, each with which target.

    That is the paper's grid, of 80 or 90; or with --experiments or --accuracy-px those after
    which the lens is known best from its nearest focus to infinity, by the scheme smooth. A
    chosen plan is carried out like the paper's: simulate and run take it with --plan.

    "plan next LUT.json" says which experiments to add to a table; see "plan next --help".

    \b
    Example:
      influx-calib plan canon17 --out plan.json --figure plan.png
      influx-calib plan canon17 --experiments 20 --out plan.json
      influx-calib plan canon17 --accuracy-px 2 --boards-only
      influx-calib plan next runs/canon17/lut.json
    """
    if experiments is not None and accuracy_px is not None:
        raise InputError("--experiments and --accuracy-px exclude each other; give one of them.")
    if experiments is None and accuracy_px is None:
        if boards_only:
            raise InputError("--boards-only needs --experiments or --accuracy-px.")
        plan = plan_by_name(lens, camera, catalogue)
        answers().print(plan_table(plan))
        answers().print(plan_totals(plan))
    else:
        with watch("choosing experiments", after_s=SHOWN_AFTER_S) as progress:
            chosen = chosen_by_name(
                lens, camera, catalogue, experiments=experiments, accuracy_px=accuracy_px,
                boards_only=boards_only, progress=progress,
            )  # fmt: skip
        plan = chosen.plan
        console = answers()
        console.print(chosen_table(plan))
        console.print(plan_totals(plan))
        console.print(
            "Expected sigma of the picture's corner, by focal length and radial distortion, from "
            f"the nearest focus to infinity: largest {chosen.expected.largest_px:.2f} px, mean "
            f"{chosen.expected.mean_px:.2f} px."
        )
    _write(plan, out, figure)


def _write(plan: Plan, out: Path | None, figure: Path | None) -> None:
    if out is not None:
        write_lens_settings(out, plan)
    if figure is not None:
        from influx_wrap.report.plan_figure import draw_plan  # matplotlib is slow to load

        draw_plan(plan, figure)
    for path in filter(None, (out, figure)):
        print_written(path)


@click.command(NEXT)
@click.argument("table", metavar="LUT.json", type=PATH)
@count_option("--count", 3, "How many to propose.", at_least=1)
@number_option(
    "--accuracy-px",
    1.0,
    "Sigma of the picture's corner that is enough, at the worst setting.",
    above=0,
)
@boards_only_option
@catalogue_option
def next_command(
    catalogue: Path | None, table: Path, count: int, accuracy_px: float, boards_only: bool
) -> None:
    """Which experiments to add to a lens's table, the best first, and what each will gain.

    That is sigma of the picture's corner, as far as focal length and radial distortion displace
    it, over all settings from the nearest focus to infinity: largest and mean, before and after.

    \b
    Example:
      influx-calib plan next runs/canon17/lut.json
      influx-calib plan next runs/canon17/lut.json --count 5 --boards-only --accuracy-px 2
    """
    now, proposals = next_of_table(table, catalogue, count=count, boards_only=boards_only)
    console = answers()
    console.print(
        f"Sigma of the picture's corner now: largest {now.largest_px:.2f} px, mean "
        f"{now.mean_px:.2f} px."
    )
    if now.largest_px <= accuracy_px:
        console.print(f"That is enough: below {accuracy_px:g} px everywhere.")
        return
    enough = [k for k, one in enumerate(proposals, 1) if one.after.largest_px <= accuracy_px]
    console.print(next_table(proposals[: enough[0]] if enough else proposals, "to film next"))
    if enough:
        console.print(f"Then it is enough: below {accuracy_px:g} px everywhere.")
    else:
        after = proposals[-1].after.largest_px
        console.print(f"Then {after:.2f} px is more than {accuracy_px:g} px still.")
