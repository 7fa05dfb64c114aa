"""A pin that writes down what it does, for gpiozero's mock of a Raspberry Pi.

Like a real one it keeps its level when its process is killed, and one process may hold it at a
time. The record is the pin's own: nothing of the server has a part in it.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from gpiozero.pins.mock import MockPin

RECORD = "PIN_RECORD"
ROOT = Path(__file__).parents[2]


class RecordedPin(MockPin):
    """Writes ``clock level`` lines into the file that the environment names."""

    def __init__(self, factory: Any, info: Any) -> None:
        path = os.environ[RECORD]
        self._holder = os.open(f"{path}.held", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._holder)
            raise RuntimeError("GPIO busy") from None
        self._record = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        super().__init__(factory, info)

    def _set_state(self, value: Any) -> None:
        super()._set_state(value)
        os.write(self._record, b"%f %d\n" % (time.monotonic(), bool(value)))

    def close(self) -> None:
        super().close()
        self.factory.pins.pop(self.info, None)
        for descriptor in (self._record, self._holder):
            os.close(descriptor)


def environment(folder: Path) -> dict[str, str]:
    """What a process needs to use this pin; its record is ``folder/pin``."""
    told = folder / "recorded_pin-1.dist-info"
    told.mkdir(parents=True, exist_ok=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: recorded_pin\nVersion: 1\n")
    entry = "[gpiozero_mock_pin_classes]\nrecordedpin = tests.drone.pin:RecordedPin\n"
    (told / "entry_points.txt").write_text(entry)
    paths = [str(folder), str(ROOT), str(ROOT / "drone"), os.environ.get("PYTHONPATH", "")]
    return {
        "GPIOZERO_MOCK_PIN_CLASS": "recordedpin",
        RECORD: str(folder / "pin"),
        "PYTHONPATH": ":".join(filter(None, paths)),
    }


def times_on(folder: Path, *, active_high: bool = False) -> list[tuple[float, float]]:
    """When the LED went on, and for how long; infinity if it still is."""
    found: list[tuple[float, float]] = []
    on_s = None
    for line in (folder / "pin").read_text().splitlines():
        clock_s, level = line.split()
        if (level == "1") == active_high:
            on_s = float(clock_s) if on_s is None else on_s
        elif on_s is not None:
            found.append((on_s, float(clock_s) - on_s))
            on_s = None
    return found if on_s is None else [*found, (on_s, float("inf"))]
