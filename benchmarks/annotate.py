"""How fast frames are annotated: queries of a table, and a data set of InFlux's size.

The table is a simulated canon17 of all planned cells; the clip zooms and pulls focus through
all of it, to infinity and back, in 143 000 frames. Times are the processor's on one core, and
the shortest of several.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.report import verdict
from benchmarks.timing import shortest
from influx_wrap.annotate.clip import annotate_clip
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.groundtruth import write_ground_truth, write_ground_truth_csv
from influx_wrap.formats.lens_metadata import read_metadata, write_lens_metadata
from influx_wrap.lut.lens_model import make_lens_model, smooth_lens
from influx_wrap.lut.schemes import SCHEMES
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.table import Table as LensTable
from influx_wrap.plan import make_plan
from influx_wrap.synth.lens import simulated_lens

LENS, CAMERA = "canon17", "arri-alexa-mini"
FRAMES, QUERIES = 143_000, 1_000_000
MOST_SECONDS_CLIP, MOST_SECONDS_QUERIES = 5.0, 1.0


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    table = lens_table()
    table = replace(table, smooth=smooth_lens(table).fit)
    report = Table("work", "seconds", "limit", "", title=f"{LENS}, one core")
    passed = []

    def add(name: str, seconds: float, limit: float) -> None:
        passed.append(seconds <= limit)
        report.add_row(name, f"{seconds:.2f}", f"<= {limit:g}", verdict(passed[-1]))

    rng = np.random.default_rng(0)
    lfl_mm = rng.uniform(table.lfl_mm.min(), table.lfl_mm.max(), QUERIES)
    fd_m = 1 / rng.uniform(0, 1 / table.fd_m.min(), QUERIES)
    with threadpool_limits(limits=1), tempfile.TemporaryDirectory() as folder:
        for scheme in SCHEMES:
            lens = make_lens_model(table, scheme)
            lens.query(lfl_mm, fd_m)
            seconds = shortest(lambda lens=lens: lens.query(lfl_mm, fd_m))  # type: ignore[misc]
            add(f"{QUERIES} queries, {scheme}", seconds, MOST_SECONDS_QUERIES)
        clip = Path(folder) / "clip.csv"
        write_lens_metadata(clip, _metadata())
        for kind in ("JSON", "CSV with sigmas"):
            seconds = shortest(lambda kind=kind: _annotate(clip, table, kind))  # type: ignore[misc]
            add(f"{FRAMES} frames read, annotated, written: {kind}", seconds, MOST_SECONDS_CLIP)
    console.print(report)
    return all(passed)


def _annotate(clip: Path, table: LensTable, kind: str) -> None:
    as_csv = kind != "JSON"
    lens = make_lens_model(table)
    truth = annotate_clip(read_metadata(clip), lens, with_sigma=as_csv).truth
    out = clip.with_name("gt")
    (write_ground_truth_csv if as_csv else write_ground_truth)(out, truth)


def _metadata() -> LensMetadata:
    turn = np.linspace(0, 300 * np.pi, FRAMES)
    lfl_mm = np.exp(np.log(45) + np.log(2.5) * np.sin(turn))
    with np.errstate(divide="ignore"):
        fd_m = 1 / np.abs(1.1 * np.sin(0.37 * turn))
    return LensMetadata(np.arange(FRAMES), lfl_mm, fd_m)


def lens_table() -> LensTable:
    """The lens as planned, with a little jitter of FD and focal lengths good to 0.01 %."""
    catalogue = load_catalogue()
    camera = catalogue.camera(CAMERA)
    plan = make_plan(catalogue.lens(LENS), camera, catalogue.boards.values())
    truth = simulated_lens(plan)
    values = np.array([truth.intrinsics(cell.lfl_mm, cell.fd_m).array for cell in plan.cells])
    sigma = 1e-4 * values[:, :1] * np.array([1, 1, 0.1, 0.1, 0, 0, 0, 0])
    fd_m = np.array([cell.fd_m for cell in plan.cells])
    return LensTable(
        lens=LENS,
        camera=CAMERA,
        image_size=camera.image_size,
        pixel_um=(camera.pixel_um, camera.pixel_um),
        names=tuple(cell.name for cell in plan.cells),
        lfl_mm=np.array([cell.lfl_mm for cell in plan.cells]),
        fd_m=fd_m * np.exp(0.01 * np.random.default_rng(1).standard_normal(len(fd_m))),
        values=values,
        covariance=np.eye(8) * (sigma**2)[:, None, :],
        is_drone=np.array([cell.board is None for cell in plan.cells]),
        grid=np.array([(cell.zoom_index, cell.focus_index) for cell in plan.cells]),
    )
