"""Ten small nights: from a rendered video of a flight to intrinsics.

They are filmed with few pixels and unlike each other in lens and light, one with a flash that
the video does not show, one with a flash that has no reading. Each is searched as ``drone
detect`` does, paired as ``drone match`` does, and calibrated. What is found is compared with where
the LED was, what is paired with what was flashed, and fx with the truth: in bounds, the
standard deviations of the best unbiased estimate.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.report import verdict
from influx_wrap.calibrate.bound import cramer_rao
from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import recipe_named
from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.flight.files import write_flight_experiment
from influx_wrap.flight.match import MatchedFlight, match_flight
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.flight import FLASH_RTK, read_flash_rtk
from influx_wrap.formats.flight_recording import read_flight_recording
from influx_wrap.formats.recording_truth import FlightTruth, read_flight_truth
from influx_wrap.formats.recording_yaml import DRONE
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.experiment import Setting
from influx_wrap.model.flashes import Flashes
from influx_wrap.model.hardware import Camera
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.model.truth import Noise
from influx_wrap.observe.flashes import detect_flashes
from influx_wrap.observe.sources import open_frames
from influx_wrap.plan import make_plan, select_cells
from influx_wrap.synth.film.cells import shoot_films
from influx_wrap.synth.film.night import NightFilm, NightFootage, plan_night
from influx_wrap.synth.film.simulation import simulations
from influx_wrap.synth.flight import FlightOptions
from influx_wrap.synth.night import NightOptions

MOST_RMS_PX, MOST_BOUNDS = 0.3, 3.0
RECIPES = ("batch", "influx")

SMALL = Camera("small", 28.25, 18.17, 1280, 824)
BRISK = FlightOptions(hover_s=0.5, transit_s=0.25)


@dataclass(frozen=True)
class Night:
    """One of the ten: a cell of a lens, and what is special about it."""

    lens: str
    cell: str
    night: NightOptions
    flight: FlightOptions = BRISK
    codec: str = "h264"


WHITE = NightOptions(core_px=18, halo_px=60, scatter=0.2)
TEN: Mapping[str, Night] = {
    "plain": Night("canon17", "z0f9", replace(WHITE, scatter=0, lights=False)),
    "lights": Night("canon17", "z2f8", WHITE),
    "large": Night("canon17", "z3f9", NightOptions(core_px=40, halo_px=90, scatter=0.4)),
    "small": Night("canon17", "z1f7", NightOptions(core_px=6, halo_px=36, scatter=0.2)),
    "red": Night("canon17", "z4f9", NightOptions(0, 30, scatter=0.3, scatter_far=0.55)),
    "scattered": Night(
        "canon17", "z0f7", replace(WHITE, scatter=0.9, scatter_deg=200, scatter_far=0.5)
    ),
    "missed": Night("canon17", "z2f9", WHITE, replace(BRISK, missed=1)),
    "extra": Night("canon17", "z4f8", WHITE, replace(BRISK, extra=1)),
    "windy": Night("premista80", "z0f9", WHITE, replace(BRISK, drift_m=0.02)),
    "grainy": Night(
        "canon17", "z6f9", replace(WHITE, noise=5, vignetting=0.4, sky_top=15, sky_bottom=35)
    ),
}


def plan(night: Night, camera: Camera = SMALL, seed: int = 0) -> NightFilm:
    """The film of a night, not yet made."""
    catalogue = load_catalogue()
    cells = make_plan(catalogue.lens(night.lens), camera, catalogue.boards.values())
    (simulation,) = simulations(cells, select_cells(cells, night.cell), Noise(), seed=seed)
    return plan_night(simulation, NightFootage(night.codec, night.night, night.flight))


def make(name: str, folder: Path, *, processes: int = 1, progress: Progress = no_progress) -> Path:
    """Film one of ``TEN`` in a folder of its name; returns the recording's folder."""
    one = plan(TEN[name])
    shoot_films([one], folder / name, processes=processes, progress=progress)
    return folder / name / one.simulation.cell.name


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    table = Table(
        "night", "cell", "flashes", "found", "wrong", "late", "RMS px", "worst px", "pairs",
        "named", *(f"fx {name}" for name in RECIPES), "", title="fx: error in bounds",
    )  # fmt: skip
    passed = []
    with tempfile.TemporaryDirectory(prefix="influx-nights-") as folder:
        for name in track(TEN, "nights", console=console, transient=True):
            recording = make(name, Path(folder), processes=os.cpu_count() or 1)
            passed.append(_judge(name, recording, table))
    console.print(table)
    return all(passed)


def _judge(name: str, folder: Path, table: Table) -> bool:
    """Add a night's row; returns whether it is as it should be."""
    night, truth = TEN[name], read_flight_truth(folder)
    assert truth is not None
    recording = read_flight_recording(folder)
    source = open_frames(recording.footage, colour=True)
    work = folder / "work"
    stored = detect_flashes(source, work, jobs=os.cpu_count() or 1, progress=no_progress)
    late, wrong, errors = _compare(stored.flashes, truth)
    distance = np.hypot(*errors.T)
    rms = float(np.sqrt(np.mean(distance**2)))

    focal_px = thin_lens_focal_px(recording.lfl_mm, recording.fd_m, SMALL.pixel_um)
    matched = match_flight(stored.flashes, read_flash_rtk(folder / FLASH_RTK), focal_px=focal_px)
    is_right, left_over = _pairs_are_right(matched, truth)
    setting = Setting(folder.name, DRONE, recording.lfl_mm, recording.fd_m)
    write_flight_experiment(work, matched, setting, SMALL, night.lens, truth)
    bounds = [_fx_in_bounds(work, recipe, focal_px) for recipe in RECIPES]

    passed = (
        (len(errors), wrong) == (len(truth.flash_point), 0)
        and rms <= MOST_RMS_PX
        and is_right
        and max(map(abs, bounds)) <= MOST_BOUNDS
    )
    table.add_row(
        name, f"{night.lens} {night.cell}", f"{len(truth.flash_point)}", f"{len(errors)}",
        f"{wrong}",
        f"{late}", f"{rms:.3f}", f"{distance.max():.2f}",
        f"{len(matched.usable)} {'right' if is_right else 'WRONG'}", left_over,
        *(f"{bound:+.2f}" for bound in bounds), verdict(passed),
    )  # fmt: skip
    return passed


def lit_rows(truth: FlightTruth) -> dict[int, int]:
    """Row of the truth's lit frames, by frame."""
    return {frame: row for row, frame in enumerate(truth.lit_frame.tolist())}


def first_rows(truth: FlightTruth) -> IntArray:
    """(F,) row of the first frame in which each flash is lit, be it for a part of the exposure."""
    return np.searchsorted(truth.lit_flash, np.arange(len(truth.flash_point)))


def _compare(flashes: Flashes, truth: FlightTruth) -> tuple[int, int, FloatArray]:
    """Flashes found late, and those that are none; errors (n, 2) of the others' centres."""
    late = wrong = 0
    errors, seen = [], set()
    rows, first = lit_rows(truth), truth.lit_frame[first_rows(truth)]
    for frame, uv in zip(flashes.frames.tolist(), flashes.uv, strict=True):
        row = rows.get(frame)
        flash = None if row is None else int(truth.lit_flash[row])
        if row is None or flash in seen:
            wrong += 1
            continue
        seen.add(flash)
        late += int(frame > first[flash])
        errors.append(uv - truth.lit_uv[row])
    return late, wrong, np.array(errors).reshape(-1, 2)


def _pairs_are_right(matched: MatchedFlight, truth: FlightTruth) -> tuple[bool, str]:
    """Whether every pair is one, and all that have no partner are named; and what is named."""
    flashes = dict(zip(truth.lit_frame.tolist(), truth.lit_flash.tolist(), strict=True))
    flash_of_frame = [flashes.get(frame) for frame in matched.pairs.frames.tolist()]
    right = flash_of_frame == truth.reading_flash[matched.pairs.readings].tolist()
    lone_readings = np.flatnonzero(truth.reading_flash < 0).tolist()
    lone_flashes = sorted(
        {flashes.get(int(matched.flashes.frames[i])) for i in matched.lone_flashes}
    )
    unread = sorted(set(range(len(truth.flash_point))) - set(truth.reading_flash.tolist()))
    named = matched.lone_readings == lone_readings and lone_flashes == unread
    words = ["reading"] * len(matched.lone_readings) + ["flash"] * len(matched.lone_flashes)
    return right and named, ", ".join(words) or "-"


def _fx_in_bounds(folder: Path, recipe: str, focal_px: float) -> float:
    experiment = read_experiment(folder)
    assert experiment.truth is not None
    answer = calibrate(experiment.observations, recipe_named(recipe), focal_px=focal_px, seed=0)
    bound = np.sqrt(cramer_rao(experiment.observations, experiment.truth)[0, 0])
    return float((answer.intrinsics.fx - experiment.truth.intrinsics.fx) / bound)
