"""From the lens metadata of a clip to the intrinsics of its frames.

Every frame is looked up in the lens's table. Frames beyond the table in FD are extrapolated;
those with an LFL outside the table, or without metadata, have no answer. Filling of gaps, if
asked for, changes what is looked up, but not the metadata that are handed on: these stay the
lens's own, so that filled frames can be told from measured ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.annotate.gaps import Faults, FrameRange, fill_gaps, find_faults, frame_ranges
from influx_wrap.errors import InputError
from influx_wrap.formats.groundtruth import write_ground_truth, write_ground_truth_csv
from influx_wrap.lut.lens_model import LensModel
from influx_wrap.lut.lookup import Answers, Status
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.rig import FilmedWith
from influx_wrap.model.table import Table

_AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class AnnotatedClip:
    """Ground truth of a clip, and what its reader must know.

    notes          what of lens and camera could not be compared, a sentence each
    faults         of the metadata as the lens told them
    filled         frames that were interpolated from their neighbours
    lfl_outside    frames without an answer, their LFL not in the table
    unusable       frames without an answer, focused nearer than a lens of their LFL can
    """

    truth: GroundTruth
    faults: Faults
    filled: tuple[FrameRange, ...]
    lfl_outside: tuple[FrameRange, ...]
    unusable: tuple[FrameRange, ...]
    notes: tuple[str, ...] = ()

    def write(self, path: str | Path, *, as_csv: bool | None = None) -> None:
        """Write the intrinsics of every frame: InFlux's JSON, or CSV with sigmas, which is
        what a name that ends in ``.csv`` asks for unless told."""
        out = Path(path)
        if as_csv is None:
            as_csv = out.suffix.lower() == ".csv"
        (write_ground_truth_csv if as_csv else write_ground_truth)(out, self.truth)


def annotate_clip(
    metadata: LensMetadata,
    lens: LensModel,
    *,
    fill: int = 0,
    with_sigma: bool = True,
    doubts: tuple[str, ...] = (),
) -> AnnotatedClip:
    """Look up every frame, after filling runs of at most ``fill`` missing ones.

    ``doubts`` are handed on: why this may be the table of another lens or camera.
    """
    used = fill_gaps(metadata, fill) if fill else metadata
    raw = _spread(metadata, used.frame)
    answers = lens.query(used.lfl_mm, used.fd_m)
    if not answers.answered.any():
        raise InputError(_no_answer(used, lens.table))
    deviations = _sigma(lens, answers, used) if with_sigma else None
    table = lens.table
    truth = GroundTruth(
        raw,
        answers.intrinsics,
        answers.status == Status.INTERPOLATED,
        deviations,
        FilmedWith(table.lens or None, table.camera, table.image_size, table.pixel_um, doubts),
    )
    told = used.told
    return AnnotatedClip(
        truth,
        find_faults(metadata),
        frame_ranges(used.frame[told & ~raw.told]),
        frame_ranges(used.frame[told & (answers.status == Status.LFL_OUTSIDE)]),
        frame_ranges(used.frame[told & (answers.status == Status.UNUSABLE)]),
    )


def _spread(metadata: LensMetadata, frame: IntArray) -> LensMetadata:
    """The metadata over more frames (n,), NaN where they say nothing."""
    place = np.searchsorted(frame, metadata.frame)
    columns = []
    for values in (metadata.lfl_mm, metadata.fd_m):
        column = np.full(len(frame), np.nan)
        column[place] = values
        columns.append(column)
    return LensMetadata(frame, columns[0], columns[1], metadata.rig)


def _sigma(lens: LensModel, answers: Answers, used: LensMetadata) -> FloatArray:
    """(n, 8) standard deviations, a part of the clip at a time to spare memory."""
    parts = []
    for start in range(0, len(used.frame), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        some = Answers(
            answers.intrinsics[part],
            answers.status[part],
            answers.vertices[part],
            answers.weights[part],
        )
        parts.append(lens.sigma(some, used.lfl_mm[part], used.fd_m[part]))
    return np.concatenate(parts)


def _no_answer(used: LensMetadata, table: Table) -> str:
    told = used.some(used.told)
    if len(told.frame) == 0:
        return "no frame of the clip can be annotated: none has both LFL and FD."
    return (
        f"no frame of the clip can be annotated: its LFL is from {told.lfl_mm.min():g} to "
        f"{told.lfl_mm.max():g} mm and its FD from {told.fd_m.min():g} m on, while the table of "
        f"{table.lens} runs from {table.lfl_mm.min():g} to {table.lfl_mm.max():g} mm. Is it the "
        "table of this lens?"
    )
