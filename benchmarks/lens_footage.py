"""A lens from footage: four cells of canon17 as videos, from the files to the table.

``run --data`` is timed as a whole, once more without its results, and once more with all of them,
which tells the share of each stage; decoding alone is timed on the same files. From that follows
what a lens of 80 cells takes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.footage import SECONDS, decoder, time_decoding
from benchmarks.report import verdict
from influx_wrap.synth.motion import FPS

CELLS = "z1f2", "z2f3", "z3f2", "z4f4"
LENS_CELLS = 80
VIEWS_PER_S = 100 / 65
PAPER_MINUTES, KALIBR_S = (20, 60), 249
"""What the paper says that a clip takes, and a real Kalibr 100 pictures."""

MOST_RATIO = 2.0
"""The whole run, to decoding."""


def run(console: Console, seconds: float = SECONDS) -> bool:
    """Print the report of clips that are about ``seconds`` long; returns whether all cells have
    intrinsics, and the run takes little more than decoding."""
    views = max(8, round(VIEWS_PER_S * seconds))
    with tempfile.TemporaryDirectory(prefix="influx-lens-") as name:
        data, out = Path(name) / "film", Path(name) / "run"
        simulated_s = _timed(
            "simulate", "canon17", "--cells", ",".join(CELLS), "--video", "--views", str(views),
            "--out", str(data),
        )  # fmt: skip
        clips = sorted(data.glob("*/clip.*"))
        decoding = sum(map(time_decoding, clips))
        command = "run", "canon17", "--data", str(data), "--out", str(out)
        whole_s = _timed(*command)
        summary = json.loads((out / "summary.json").read_text())
        n_frames = sum(
            json.loads((out / "data" / cell / "keyframes.json").read_text())["n_frames"]
            for cell in CELLS
        )
        shutil.rmtree(out / "cells")
        from_corners_s = _timed(*command)
        again_s = _timed(*command)
    footage_s, calibrating_s = whole_s - from_corners_s, max(from_corners_s - again_s, 0.0)
    table = Table("stage", "seconds", "share", title=f"{len(CELLS)} cells, {n_frames} frames")
    for stage, stage_s in (
        ("from files to views", footage_s), ("calibrating", calibrating_s),
        ("start, table, pages", again_s), ("all", whole_s),
    ):  # fmt: skip
        table.add_row(stage, f"{stage_s:.1f}", f"{stage_s / whole_s:.0%}")
    table.add_row(f"for comparison: {decoder()}", f"{decoding:.1f}", f"{decoding / whole_s:.0%}")
    console.print(table)
    lens_s = LENS_CELLS / len(CELLS) * (footage_s + calibrating_s) + again_s
    clip_s = n_frames / FPS / len(CELLS)
    console.print(
        f"a lens of {LENS_CELLS} cells, {clip_s:.0f} s of footage each: {lens_s / 60:.0f} minutes, "
        f"{lens_s / LENS_CELLS:.0f} s a cell; the paper's pipeline takes {PAPER_MINUTES[0]} to "
        f"{PAPER_MINUTES[1]} minutes a clip, a real Kalibr {KALIBR_S} s for 100 pictures"
    )
    console.print(f"simulating the footage: {simulated_s:.0f} s, {n_frames / simulated_s:.1f} fps")
    passed = summary["totals"]["ok"] == len(CELLS) and whole_s <= MOST_RATIO * decoding
    console.print(
        f"{summary['totals']['ok']} of {len(CELLS)} cells have intrinsics; the run takes "
        f"{whole_s / decoding:.2f} times decoding (<= {MOST_RATIO:g}) {verdict(passed)}"
    )
    return passed


def _timed(*arguments: str) -> float:
    """Seconds of a command, the start of the program included."""
    program = str(Path(sys.executable).with_name("influx-calib"))
    began = time.perf_counter()
    subprocess.run([program, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began
