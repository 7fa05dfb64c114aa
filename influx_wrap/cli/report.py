"""``influx-calib report``: the page of a run, for a person to look at."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from influx_wrap.cli.options import PATH, jobs_option
from influx_wrap.cli.progress import watch
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.run.page import Written, write_report
from influx_wrap.run.workspace import Workspace


@click.command("report")
@click.argument("run_dir", metavar="RUN_DIR", type=PATH)
@click.option("--data", type=PATH, help="Folder with the experiments, if they were recorded.")
@jobs_option
def command(run_dir: Path, data: Path | None, jobs: int) -> None:
    """Write report.html of the run in RUN_DIR anew, from all results in it.

    A run writes it by itself; this is for a folder of an older version, or one whose run has
    not ended. Experiments that are not in RUN_DIR were given to the run with --data: without
    it here, their coverage and residuals are not shown.

    \b
    Example:
      influx-calib report runs/canon17
      influx-calib report runs/sim --data sim
    """
    if data is not None and not data.is_dir():
        raise InputError(f"{data} is not a folder; --data is a folder with one folder per cell.")
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    written = report_with_progress(Workspace(run_dir), data, jobs, console)
    if written.unseen:
        n = len(written.unseen)
        console.print(
            f"[yellow]note:[/] {n} of {written.n_cells} experiments are shown without coverage and "
            f"residuals ({escape(', '.join(written.unseen[:5]))}{', ...' if n > 5 else ''}): "
            "their files "
            "are not here or have changed; --data names their folder."
        )
    answers().print(
        f"{written.n_cells - written.n_failed} ok, {written.n_failed} failed; "
        f"written: {escape(str(written.path))}",
        soft_wrap=True,
    )


def report_with_progress(
    workspace: Workspace, data: Path | None, jobs: int, console: Console
) -> Written:
    """``write_report`` with a bar."""
    with watch("report", console) as progress:
        return write_report(workspace, data, processes=jobs, progress=progress)
