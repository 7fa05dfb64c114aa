"""What a method has answered for a video, message by message, made into one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.runner_answer import camera_of
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.predictions import PARAMETERS
from influx_wrap.predict.predictor import MethodError


class VideoAnswers:
    """What a method has said about a video so far."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._n_parameters = len(PARAMETERS[kind])
        self._rows: dict[int, FloatArray] = {}
        self._for_all: FloatArray | None = None
        self._errors: dict[int, str] = {}
        self._impossible: list[str] = []

    def __len__(self) -> int:
        """How many frames were answered, one by one."""
        return len(self._rows)

    def take(self, message: Mapping[str, Any], asked: Mapping[int, Path]) -> int:
        """Note the answer for a frame, in whatever order they come; returns the frame."""
        frame = message.get("frame")
        if type(frame) is not int or frame not in asked or frame in self._rows:
            raise MethodError(f"answered for frame {frame!r}, which nobody had asked about")
        if "error" in message:
            self._errors[frame] = str(message["error"])
        self._rows[frame] = self._row(f"frame {frame}", message)
        return frame

    def take_for_all(self, message: Mapping[str, Any]) -> None:
        """Note the one answer that holds for every frame, looked at or not."""
        self._for_all = self._row("all frames", message)

    def _row(self, where: str, message: Mapping[str, Any]) -> FloatArray:
        """(P,) NaN where the method does not know, or names a camera that cannot be."""
        nothing = np.full(self._n_parameters, np.nan)
        try:
            row = camera_of(message, self._kind)
        except InputError as error:
            raise MethodError(f"answered {error} for {where}") from None
        if row is None:
            return nothing
        if not np.isfinite(row).all() or (row[:2] <= 0).any():
            self._impossible.append(where)
            return nothing
        return row

    def warnings(self) -> Iterator[str]:
        """What the user should know. A method that failed on every frame has failed."""
        if self._errors and len(self._errors) == len(self._rows):
            raise MethodError(f"failed on every frame ({next(iter(self._errors.values()))[:200]})")
        if self._errors:
            frame, text = next(iter(self._errors.items()))
            yield f"it failed on {len(self._errors)} frames, first on frame {frame} ({text[:200]})."
        if self._impossible:
            yield (
                f"{len(self._impossible)} answers are no camera and are left out, first that for "
                f"{self._impossible[0]}: all numbers must be finite, and focal lengths positive."
            )

    def values(self, n_frames: int) -> FloatArray:
        """(n_frames, P)."""
        values = np.full((n_frames, self._n_parameters), np.nan)
        if self._for_all is not None:
            values[:] = self._for_all
        for frame, row in self._rows.items():
            values[frame] = row
        return values
