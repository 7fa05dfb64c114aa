"""``influx-calib run``: all cells of a lens."""

from __future__ import annotations

from pathlib import Path

import click

from influx_wrap.calibrate.recipe import override, recipe_named
from influx_wrap.cli.engine import chosen_engine, engine_options
from influx_wrap.cli.listener import ConsoleListener
from influx_wrap.cli.lut import print_judgements
from influx_wrap.cli.options import (
    PATH,
    as_settings,
    catalogue_option,
    cells_option,
    decoder_option,
    every_frame_option,
    jobs_option,
    keep_suspects_option,
    lens_argument,
    plan_option,
    recipe_options,
    scheduler_option,
    seed_option,
)
from influx_wrap.cli.tables import (
    answers,
    error_table,
    print_written,
    run_reasons,
    run_table,
    run_totals,
)
from influx_wrap.errors import InputError
from influx_wrap.run.pipeline import run_lens
from influx_wrap.run.plan import plan_by_name


@click.command("run")
@lens_argument
@click.option(
    "--data",
    type=PATH,
    help="Folder with a sub-folder for each experiment (a setting that was filmed).",
)
@click.option("--out", type=PATH, show_default="runs/LENS", help="Folder of the run.")
@plan_option
@cells_option
@recipe_options
@engine_options
@every_frame_option
@decoder_option
@seed_option
@jobs_option
@scheduler_option
@keep_suspects_option
@click.option("--figures", is_flag=True, help="Draw the figures of the pages as PNG files as well.")
@catalogue_option
def command(
    catalogue: Path | None,
    lens: str,
    camera: str,
    data: Path | None,
    out: Path | None,
    plan_file: Path | None,
    cells: str,
    recipe: str,
    settings: tuple[tuple[str, str], ...],
    rollouts: int | None,
    engine: str,
    image: str | None,
    timeout_s: float | None,
    every_frame: bool,
    decoder: str,
    seed: int,
    jobs: int,
    scheduler: str | None,
    keep_suspects: bool,
    figures: bool,
) -> None:
    """Calibrate all cells of LENS, and say how good each is.

    Without --data the experiments are simulated. Sub-folders of --data with a
    recording.yaml (footage of a board, or of the drone's flight) are turned into experiments
    first. A flight whose flashes and readings do not match fails until it is reviewed. A run
    that was stopped goes on where it stopped when the same command is given again. The exit
    code is 1 if a cell failed.

    With --engine kalibr a real Kalibr calibrates, and recipe influx becomes paper.

    An answer that contradicts what was typed (another focal length than lfl_mm, the board in
    another distance than fd_m, ...) is marked and printed, and is not in the lens's table
    unless you insist: with --keep-suspects for all, or "trust: true" in the recording.yaml
    of one.

    \b
    Example:
      influx-calib run canon17
      influx-calib run canon17 --data sim --out runs/sim --recipe batch
      influx-calib run canon17 --scheduler tcp://10.0.0.1:8786
      influx-calib run canon17 --engine kalibr --image influx-kalibr
    """
    # A lens that is not known is the first thing to hear.
    plan_by_name(lens, camera, catalogue, plan_file)
    chosen = override(recipe_named(recipe), as_settings(settings, rollouts))
    folder = Path("runs") / lens if out is None else out
    if engine != "native" and scheduler is not None:
        raise InputError(f"--engine {engine} works on this machine: leave --scheduler out.")
    # Cells are what is done at once with our own engine, Kalibr's runs with Kalibr.
    calibrator = chosen_engine(
        engine, image, timeout_s,
        folder=folder / "kalibr", jobs=1 if engine == "native" else jobs, recordings=data,
    )  # fmt: skip
    with ConsoleListener() as listener:
        run = run_lens(
            lens,
            camera=camera,
            data=data,
            out=folder,
            plan_file=plan_file,
            cells=cells,
            recipe=chosen,
            engine=calibrator,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            catalogue=catalogue,
            keep_suspects=keep_suspects,
            every_frame=every_frame,
            decoder=decoder,
            figures=figures,
            listener=listener,
        )
    answer = answers()
    answer.print(run_table(run.results, run.title))
    if any(result.error("fx") is not None for result in run.results):
        answer.print(error_table(run.results))
    for line in (*run_reasons(run.results), run_totals(run.results, run.totals, run.seconds)):
        answer.print(line, soft_wrap=not answer.is_terminal)
    if run.table is not None and run.judgements:
        print_judgements(run.table, run.judgements)
    print_written(*run.written)
    if run.totals["failed"]:
        raise click.exceptions.Exit(1)
