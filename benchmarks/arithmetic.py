"""What the arithmetic of one fixed processor costs, next to that of the processor at hand.

Two processes take turns: one as every user's, and one that loads numba before influx_wrap, so
that all libraries use whatever they find.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.report import verdict
from benchmarks.scene import scene_a
from benchmarks.speed import our_adjustment, rollouts
from benchmarks.timing import shortest
from influx_wrap.compute import arithmetic

TURNS = 3
ROLLOUTS = 20
MOST_SLOWER = 1.15
WORKS = ("poses and tight adjustment", f"influx, {ROLLOUTS} rollouts")


def report_times() -> None:
    """In one of the processes."""
    observations = scene_a()
    with threadpool_limits(limits=1):
        seconds = [
            shortest(lambda: our_adjustment(observations)),
            shortest(lambda: rollouts(observations, ROLLOUTS, jobs=1)),
        ]
    print(json.dumps([arithmetic.name(), *seconds]))


def _times(first: str) -> tuple[str, list[float]]:
    code = f"{first}; from benchmarks.arithmetic import report_times; report_times()"
    untold = {key: text for key, text in os.environ.items() if key not in arithmetic.ENVIRONMENT}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent.parent, env=untold,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    name, *seconds = json.loads(done.stdout.splitlines()[-1])
    return name, seconds


def run(console: Console) -> bool:
    """Print the report; returns whether the limit is kept."""
    turns = [(_times("import influx_wrap"), _times("import numba")) for _ in range(TURNS)]
    (fixed, _), (found, _) = turns[0]
    table = Table("scene A, one thread", fixed, found, "ratio", "limit", "", title="Arithmetic")
    checks = []
    for k, work in enumerate(WORKS):
        ours = statistics.median(one[1][k] for one, _ in turns)
        theirs = statistics.median(other[1][k] for _, other in turns)
        checks.append(ours / theirs <= MOST_SLOWER)
        table.add_row(
            work, f"{ours:.3f} s", f"{theirs:.3f} s", f"{ours / theirs:.2f}",
            f"<= {MOST_SLOWER:g}", verdict(checks[-1]),
        )  # fmt: skip
    console.print(table)
    return all(checks)
