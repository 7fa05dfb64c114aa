"""How fast the LED is looked for.

The time is that of one core per 3424 x 2202 picture: a dark one, which most are, one with the
LED and one with street lamps too, next to plain OpenCV over the whole picture: both colour
spaces, and the contours of one threshold.
"""

from __future__ import annotations

import cv2
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.nights import TEN, plan
from benchmarks.report import verdict
from benchmarks.timing import shortest
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.observe.flashes import look_at_frame

CAMERA = "arri-alexa-mini"
MOST_DARK_MS = 10.0


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    table = Table(
        "picture", "ours, ms", "plain OpenCV, ms", "ratio", "",
        title="milliseconds of one core per 3424 x 2202 picture",
    )  # fmt: skip
    passed = []
    try:
        for name, picture in _pictures().items():
            ours = 1e3 * shortest(lambda p=picture: look_at_frame(p, ()))  # type: ignore[misc]
            plain = 1e3 * shortest(lambda p=picture: _plain(p))  # type: ignore[misc]
            passed.append(ours <= plain and (name != "dark" or ours <= MOST_DARK_MS))
            row = f"{ours:.1f}", f"{plain:.1f}", f"{ours / plain:.2f}", verdict(passed[-1])
            table.add_row(name, *row)
    finally:
        cv2.setNumThreads(threads)
    console.print(table)
    return all(passed)


def _plain(picture: np.ndarray) -> None:
    lightness = cv2.cvtColor(picture, cv2.COLOR_BGR2HLS)[..., 1]
    cv2.cvtColor(picture, cv2.COLOR_BGR2HSV)
    mask = (lightness > 150).astype(np.uint8)
    cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)


def _pictures() -> dict[str, np.ndarray]:
    camera = load_catalogue().camera(CAMERA)
    alone, lit = plan(TEN["plain"], camera), plan(TEN["lights"], camera)
    return {
        "dark": alone.picture(0),
        "LED": alone.picture(int(alone.lit.frame[2])),
        "LED and lamps": lit.picture(int(lit.lit.frame[2])),
    }
