"""``other_lights.json``: what lit up in a night's video and is not a flash of the LED.

A person who misses a flash finds it here with the reason why it was not taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.formats.files import PIXEL_ORIGIN, Record, read_json, write_json

OTHER_LIGHTS = "other_lights.json"


@dataclass(frozen=True)
class OtherLight:
    """A light seen from ``frame`` to ``last_frame``, first at ``uv`` in pixels, and what it is."""

    frame: int
    last_frame: int
    uv: tuple[float, float]
    reason: str


def write_other_lights(path: Path, lights: Sequence[OtherLight]) -> None:
    """Write lights in the order of time."""
    rows = [
        {"frame": one.frame, "last_frame": one.last_frame, "uv": list(one.uv), "reason": one.reason}
        for one in lights
    ]
    write_json(path, {"pixel_origin": PIXEL_ORIGIN, "lights": rows})


def read_other_lights(path: Path) -> list[OtherLight]:
    """Read what ``write_other_lights`` wrote."""
    lights = []
    for index, row in enumerate(read_json(path).items("lights")):
        record = Record(f"{path}, light {index}", row if isinstance(row, dict) else {})
        uv = record.numbers("uv")
        if len(uv) != 2:
            raise record.fault("uv", f"must have 2 numbers, got {len(uv)}.")
        frame = record.integer("frame", at_least=0)
        last_frame = record.integer("last_frame", at_least=frame)
        lights.append(OtherLight(frame, last_frame, (uv[0], uv[1]), record.text("reason")))
    return lights
