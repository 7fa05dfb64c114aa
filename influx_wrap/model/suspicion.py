"""What a person typed and the pictures contradict: the number given beside the number seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from influx_wrap.model.result import Json


@dataclass(frozen=True)
class Suspicion:
    """One thing that was probably typed wrong.

    what      the key in question: "lfl_mm", "fd_m", "board", "tagSpacing", "sensor_height_mm", ...
    seen      what the pictures say, in ``unit``
    given     what was typed, in ``unit``; "" is the unit of a plain number
    sentence  both numbers in words, and what it may be
    harmful   whether the experiment's own answer is filed wrongly by it; if not, it is only named
    """

    what: str
    seen: float
    given: float
    unit: str
    sentence: str
    harmful: bool = True

    def as_dict(self) -> Json:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Suspicion:
        """From plain data."""
        return cls(
            what=str(data["what"]),
            seen=float(data["seen"]),
            given=float(data["given"]),
            unit=str(data["unit"]),
            sentence=str(data["sentence"]),
            harmful=bool(data["harmful"]),
        )
