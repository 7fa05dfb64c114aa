"""``python -m benchmarks``: run everything, print one report."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from rich.console import Console

from benchmarks import (
    accuracy,
    annotate,
    arithmetic,
    checkerboards,
    detection,
    evaluation,
    first_answer,
    footage,
    kalibr_reference,
    keyframes,
    led,
    lens_footage,
    lenses,
    mrcal_peer,
    nights,
    pages,
    render,
    scale,
    speed,
)
from benchmarks.report import verdict


def main() -> int:
    """Returns 0 if every limit is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = (
        "speed", "arithmetic", "render", "detection", "checkerboards", "keyframes", "footage",
        "lens-footage", "led", "nights", "annotate", "lenses", "evaluation", "kalibr", "mrcal",
        "pages", "first-answer", "scale", "accuracy",
    )  # fmt: skip
    parser.add_argument("--only", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--seeds", type=int, default=1, metavar="N",
                        help="how often the Monte-Carlo goes over the cells (1)")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=footage.SECONDS, metavar="S",
                        help=f"length of the clips of footage ({footage.SECONDS:g})")  # fmt: skip
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    if os.getloadavg()[0] > 0.5:
        console.print(
            f"[yellow]The machine is busy (load {os.getloadavg()[0]:.1f}): times are too long, "
            "those with two workers most of all.[/]"
        )
    parts: dict[str, Callable[[], bool]] = {
        "speed": lambda: speed.run(console),
        "arithmetic": lambda: arithmetic.run(console),
        "render": lambda: render.run(console),
        "detection": lambda: detection.run(console),
        "checkerboards": lambda: checkerboards.run(console),
        "keyframes": lambda: keyframes.run(console),
        "footage": lambda: footage.run(console, arguments.seconds),
        "lens-footage": lambda: lens_footage.run(console, arguments.seconds),
        "led": lambda: led.run(console),
        "nights": lambda: nights.run(console),
        "annotate": lambda: annotate.run(console),
        "lenses": lambda: lenses.run(console),
        "evaluation": lambda: evaluation.run(console),
        "kalibr": lambda: kalibr_reference.run(console),
        "mrcal": lambda: mrcal_peer.run(console),
        "pages": lambda: pages.run(console),
        "first-answer": lambda: first_answer.run(console),
        "scale": lambda: scale.run(console),
        "accuracy": lambda: accuracy.run(console, arguments.seeds),
    }
    if arguments.only is None and not mrcal_peer.is_installed():
        console.print(f"not run, as there is no {mrcal_peer.COMMAND}: mrcal")
        del parts["mrcal"]
    outcome = {}
    for name, part in parts.items():
        if arguments.only in (None, name):
            console.rule(name)
            start = time.perf_counter()
            outcome[name] = part()
            console.print(f"{name}: {time.perf_counter() - start:.0f} s\n")
    console.rule()
    for name, passed in outcome.items():
        console.print(f"{name}: {verdict(passed)}")
    return 0 if all(outcome.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
