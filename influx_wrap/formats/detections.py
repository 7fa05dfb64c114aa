"""The folder of a recording's detections: the corners of a target in all of its frames.

``target.yaml``, ``coords_2d.csv`` and ``successes.csv`` are Kalibr's, with a block of rows
for every frame, and ``detections_per_frame.json`` is the InFlux build's:
``{"<frame>": {"num_detections": n, "detections_frac": share of the target}}``.
Three files are ours. ``confidence.csv`` has the rows ``frame,confidence`` in the order of
the other two. ``view_names.json`` has the file names of photographs. ``detection.json`` says
which footage this is, relative to the folder, what the detections were made from, and what was
wrong with the footage; it is written last, so where it is, everything is.

Of a video that was looked at twice ``first_look.npz`` says where the board is in every frame,
``homography`` (F, 3, 3) from its plane to pixels, ``step_px`` (F,) from the frame before and
``is_candidate`` (F,), and has a small picture, a JPEG, of each candidate: ``thumbnails``, one after
the other, which end at ``thumbnail_ends``.

Frames are written one block after the other: a long recording does not fit into memory.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.arrays import read_arrays
from influx_wrap.formats.files import (
    Record,
    make_folder,
    read_json,
    write_bytes,
    write_json,
    writing,
)
from influx_wrap.formats.kalibr import (
    COORDS,
    SUCCESSES,
    TARGET,
    coords_rows,
    successes_rows,
    write_target,
)
from influx_wrap.formats.view_names import read_view_names, write_view_names
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.looks import Looks
from influx_wrap.model.target import Target

CONFIDENCE, PER_FRAME, SUMMARY = "confidence.csv", "detections_per_frame.json", "detection.json"
FIRST_LOOK = "first_look.npz"
FORMAT = "influx_wrap detections 1"


@dataclass(frozen=True, eq=False)
class DetectionSummary:
    """What is known of a recording's n frames once the target was looked for in them.

    footage     video, or folder of pictures
    image_size  (width, height) in pixels
    stills      separate photographs, not the frames of a video
    n_points    number of points of the target
    counts      (n,) number of corners found in each frame
    ambiguous   frames that showed the target more than once, and so have no corners
    truncated   why the footage could not be read beyond frame n - 1; None if it was whole
    made_from   versions, and hashes of footage, target and detector
    unread      photographs that were not used by name, and why
    names       the photographs' file names, n of them; empty for a video
    """

    footage: Path
    image_size: tuple[int, int]
    stills: bool
    n_points: int
    counts: IntArray
    ambiguous: tuple[int, ...]
    truncated: str | None
    made_from: Mapping[str, str]
    unread: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @property
    def n_frames(self) -> int:
        """Number of frames read."""
        return len(self.counts)


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What a first look at a video says, and by frame a small picture, a JPEG, of candidates."""

    looks: Looks
    thumbnails: Mapping[int, bytes]


def write_detections(
    folder: Path,
    target: Target,
    summary: DetectionSummary,
    blocks: Iterable[tuple[FloatArray, FloatArray]],
    first_look: FirstLook | None = None,
) -> None:
    """Write the folder.

    ``blocks`` are the frames in order, any number at a time: pixels (f, T, 2) and
    confidences (f, T), 0 where a point was not found or not looked for.
    """
    make_folder(folder)
    try:
        for name in (SUMMARY, FIRST_LOOK):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.") from None
    write_target(folder / TARGET, target)
    with (
        writing(folder / COORDS) as coords,
        writing(folder / SUCCESSES) as successes,
        writing(folder / CONFIDENCE) as confidences,
    ):
        first = 0
        for uv, confidence in blocks:
            frames = np.arange(first, first + len(uv))
            coords.write(coords_rows(frames, uv, confidence > 0).encode())
            successes.write(successes_rows(frames, confidence > 0).encode())
            confidences.write(_confidence_rows(frames, confidence).encode())
            first += len(uv)
    write_view_names(folder, dict(enumerate(summary.names)))
    if first_look is not None:
        _write_first_look(folder / FIRST_LOOK, first_look)
    per_frame = {
        str(frame): {"num_detections": n, "detections_frac": n / summary.n_points}
        for frame, n in enumerate(summary.counts.tolist())
    }
    write_json(folder / PER_FRAME, per_frame)
    write_json(folder / SUMMARY, _as_json(folder, summary))


def read_summary(folder: Path) -> DetectionSummary:
    """What a folder of detections says about its recording."""
    if not (folder / SUMMARY).exists():
        raise InputError(
            f"{folder} has no {SUMMARY}: it does not hold the finished detections of a recording. "
            "Make them with influx-calib detect."
        )
    record = read_json(folder / SUMMARY)
    if record.value("format") != FORMAT:
        raise record.fault("format", f"must be {FORMAT!r}, got {record.value('format')!r}.")
    sides = record.items("image_size")
    if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
        raise record.fault("image_size", f"must be [width, height], got {sides!r}.")
    stills, truncated = record.value("stills"), record.value("truncated")
    if not isinstance(stills, bool):
        raise record.fault("stills", f"must be true or false, got {stills!r}.")
    width, height = (int(str(side)) for side in sides)
    n_points = record.integer("n_points", at_least=1)
    n_frames = record.integer("n_frames", at_least=0)
    # Earlier versions did not say.
    unread = record.record("unread").values if "unread" in record.values else {}
    return DetectionSummary(
        footage=Path(os.path.normpath(folder.resolve() / record.text("footage"))),
        image_size=(width, height),
        stills=stills,
        n_points=n_points,
        counts=_read_counts(read_json(folder / PER_FRAME), n_frames, n_points),
        ambiguous=tuple(record.integers("ambiguous").tolist()),
        truncated=None if truncated is None else record.text("truncated"),
        made_from={key: str(value) for key, value in record.record("made_from").values.items()},
        unread={name: str(why) for name, why in unread.items()},
        names=read_view_names(folder, np.arange(n_frames)),
    )


def _write_first_look(path: Path, first_look: FirstLook) -> None:
    looks, thumbnails = first_look.looks, first_look.thumbnails
    jpegs = [thumbnails[frame] for frame in looks.candidates]
    file = io.BytesIO()
    np.savez(
        file,
        homography=looks.homography,
        step_px=looks.step_px,
        is_candidate=looks.is_candidate,
        thumbnails=np.frombuffer(b"".join(jpegs), np.uint8),
        thumbnail_ends=np.cumsum([len(jpeg) for jpeg in jpegs], dtype=np.int64),
    )
    write_bytes(path, file.getvalue())


def read_first_look(folder: Path, n_frames: int) -> FirstLook | None:
    """What ``first_look.npz`` says of a video of so many frames; None if every frame was searched,
    or an earlier version did it."""
    path = folder / FIRST_LOOK
    if not path.exists():
        return None
    shapes = {"homography": (n_frames, 3, 3), "step_px": (n_frames,), "is_candidate": (n_frames,)}
    found = read_arrays(path, (*shapes, "thumbnails", "thumbnail_ends"))
    if found is None or any(found[name].shape != shape for name, shape in shapes.items()):
        raise InputError(
            f"{path} is damaged, or of another recording than the files beside it. Remove {folder} "
            "and detect the corners again."
        )
    looks = Looks(
        found["homography"].astype(float),
        found["step_px"].astype(float),
        found["is_candidate"].astype(bool),
    )
    ends, data = found["thumbnail_ends"].tolist(), found["thumbnails"].tobytes()
    jpegs = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return FirstLook(looks, dict(zip(looks.candidates, jpegs, strict=False)))


def _as_json(folder: Path, summary: DetectionSummary) -> dict[str, object]:
    return {
        "format": FORMAT,
        "footage": os.path.relpath(summary.footage.resolve(), folder.resolve()),
        "image_size": list(summary.image_size),
        "n_frames": summary.n_frames,
        "n_points": summary.n_points,
        "stills": summary.stills,
        "ambiguous": list(summary.ambiguous),
        "truncated": summary.truncated,
        "unread": dict(summary.unread),
        "made_from": dict(summary.made_from),
    }


def _confidence_rows(frames: IntArray, confidence: FloatArray) -> str:
    ids = np.repeat(frames, confidence.shape[1]).tolist()
    values = confidence.ravel().tolist()
    return "".join([f"{i},{value:.4f}\n" for i, value in zip(ids, values, strict=True)])


def _read_counts(record: Record, n_frames: int, n_points: int) -> IntArray:
    """(n,) the number of corners of every frame."""
    counts = [
        record.record(str(frame)).integer("num_detections", at_least=0) for frame in range(n_frames)
    ]
    for frame, count in enumerate(counts):
        if count > n_points:
            raise record.fault(str(frame), f"has {count} corners of a target of {n_points}.")
    if len(record.values) > n_frames:
        raise InputError(f"{record.where} has more frames than the {n_frames} of {SUMMARY}.")
    return np.array(counts, dtype=np.int64)
