"""``influx-calib plan``: the grid of experiments of a lens."""

from __future__ import annotations

from pathlib import Path

import click

from influx_wrap.cli.options import PATH, catalogue_option, lens_argument
from influx_wrap.cli.tables import answers, plan_table, plan_totals, print_written
from influx_wrap.formats.influx import write_lens_settings
from influx_wrap.run.plan import plan_by_name


@click.command("plan")
@lens_argument
@click.option("--out", type=PATH, help="Write the lens settings as JSON.")
@click.option("--figure", type=PATH, help="Draw the grid; png, pdf, svg, ...")
@catalogue_option
def command(
    catalogue: Path | None, lens: str, camera: str, out: Path | None, figure: Path | None
) -> None:
    """Which experiments to shoot for LENS, each with which target.

    \b
    Example:
      influx-calib plan canon17 --out plan.json --figure plan.png
    """
    plan = plan_by_name(lens, camera, catalogue)
    console = answers()
    console.print(plan_table(plan))
    console.print(plan_totals(plan))
    if out is not None:
        write_lens_settings(out, plan)
    if figure is not None:
        from influx_wrap.report.plan_figure import draw_plan  # matplotlib is slow to load

        draw_plan(plan, figure)
    for path in filter(None, (out, figure)):
        print_written(path)
