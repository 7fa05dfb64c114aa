"""The LED's flashes in a night's video: when each begins, and where.

Other things shine too, and none of them may be taken for the LED or keep it from being
seen. Three differences tell them apart.

- What stays is no flash. Places that are bright in a quarter or more of the frames sampled
  over the video (street lamps, windows, the red light on a mast) are made black before a
  picture is searched.
- What lasts is no flash. A light is followed from frame to frame; one that is on for much
  longer or shorter than the LED is another light: a car, a mast's slow blinking. So that
  it hides nothing meanwhile, a picture is searched again without the lights found in it,
  and the LED is the best of those that last as long as it should.
- What comes back is no flash. Lights of the right length that come five times or more at
  one and the same place, while others come elsewhere, blink on the ground.

Another light is reported, never dropped in silence.

Frames are spread over processes and kept in a journal as those of boards are
(``footage``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

import cv2
import numpy as np

from influx_wrap.compute.processes import parallel
from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import make_folder
from influx_wrap.formats.flight import (
    FLASHES,
    OTHER_LIGHTS,
    OtherLight,
    StoredFlashes,
    read_flashes,
    read_other_lights,
    write_flashes,
    write_other_lights,
)
from influx_wrap.model.arrays import BoolArray, FloatArray, Picture
from influx_wrap.model.flashes import Flashes
from influx_wrap.observe.frames import FrameSource, GreyInput
from influx_wrap.observe.journal import (
    CHUNK,
    Found,
    Frames,
    Journal,
    detector_versions,
    footage_hash,
    use_one_thread,
)
from influx_wrap.observe.led import ColourPicture, bright_pixels, find_leds

FLASH_S = 0.25
"""How long the drone's LED is on."""

JOURNAL = ".detecting_flashes"
MOST_LIGHTS = 3
"""How many lights of a picture are looked at: the LED may be behind two others."""

SAMPLED = 48
STEADY_SHARE, LEAST_STEADY = 0.25, 4
"""In how many of the sampled frames a steady light is bright: a share, and a number."""

STEADY_FLASHES = 3
"""In a short clip a single flash is a good share of it: a steady light lasts longer."""

STEADY_MARGIN_PX = 8
"""Noise and flicker move the rim of a steady light."""

LEAST_COLOUR = 3
"""Red, green and blue of a grey picture may differ by rounding, but not by as much as this."""

MOST_GAP = 1
"""For how many frames in a row a flash may be missed."""

LEAST_REACH_PX = 10.0
"""How far a light may move from frame to frame; a light that is larger, by its size."""

LENGTHS = (0.7, 1.5)
"""The shortest and longest flash, as a share of what is expected."""

BLINKS, BLINK_REACH_PX = 5, 3.0

Patch: TypeAlias = tuple[int, int, BoolArray]
"""First row, first column and shape (h, w) of a steady light."""

COLUMNS = ("u", "v", "major", "minor", "rule")


def detect_flashes(
    source: FrameSource,
    folder: Path,
    *,
    jobs: int,
    progress: Progress,
    flash_s: float = FLASH_S,
    fps: float | None = None,
) -> StoredFlashes:
    """Find the flashes in ``source``, opened in colour, and write ``flashes.json``.

    What is in ``folder`` already and made from the same is kept. Damaged footage is read up
    to the damage, and the result says so. Other lights are in ``other_lights.json`` beside
    it. For the main thread only.

    flash_s  how long the LED is on
    fps      frames per second, in place of what the recording says

    Raises ``InputError`` if there is no flash.
    """
    fps = fps or source.fps
    if fps is None:
        raise InputError(f"{source.path} does not say how many frames a second it has: give --fps.")
    if not source.colour:
        raise InputError(f"{source.path} was opened without colour, which an LED is found by.")
    made_from = {
        **detector_versions(),
        "footage": footage_hash(source.path),
        "flash_s": f"{flash_s:g}",
        "fps": f"{fps:.9g}",
    }
    finished = _finished(source, folder, made_from)
    if finished is not None:
        progress(finished.flashes.n_frames, finished.flashes.n_frames)
        return finished
    make_folder(folder)
    with Journal(folder / JOURNAL, made_from, ("lights",)).opened() as journal:
        steady = find_steady_lights(source, flash_s * fps)
        frames = Frames(source, CHUNK * journal.n_chunks)
        with closing(parallel(partial(_look, steady.patches), frames, jobs)) as results:
            truncated = journal.collect(frames, results, progress)
        chunks = [chunk["lights"] for chunk in journal.chunks()]
        lights = np.concatenate(chunks) if chunks else np.empty((0, MOST_LIGHTS, len(COLUMNS)))
        sequence = join_flashes(lights, flash_s * fps)
        others = sorted([*steady.lights(len(lights)), *sequence.others], key=_by_time)
        if not sequence.flashes:
            journal.remove()
            raise truncated or _nothing_found(source, len(lights), flash_s, steady, others)
        stored = StoredFlashes(
            flashes=_as_flashes(sequence.flashes, fps, len(lights), source.image_size),
            footage=source.path.resolve(),
            truncated=None if truncated is None else truncated.problem,
            made_from=made_from,
        )
        write_other_lights(folder / OTHER_LIGHTS, others)
        write_flashes(folder / FLASHES, stored)
        journal.remove()
    return stored


def _finished(
    source: FrameSource, folder: Path, made_from: Mapping[str, str]
) -> StoredFlashes | None:
    """The flashes in ``folder`` if they are of exactly this work, else None."""
    try:
        stored = read_flashes(folder / FLASHES)
        read_other_lights(folder / OTHER_LIGHTS)
    except InputError:
        return None
    same = stored.footage == source.path.resolve() and stored.made_from == made_from
    return stored if same and stored.truncated is None else None


@dataclass(frozen=True, eq=False)
class SteadyLights:
    """Places that are bright most of the time, and whether anything sampled had a colour."""

    patches: tuple[Patch, ...]
    has_colour: bool

    def lights(self, n_frames: int) -> list[OtherLight]:
        """What is to be reported of them."""
        return [
            OtherLight(
                0,
                max(n_frames - 1, 0),
                (left + (shape.shape[1] - 1) / 2, top + (shape.shape[0] - 1) / 2),
                "is on most of the time, left out",
            )
            for top, left, shape in self.patches
        ]


def find_steady_lights(source: FrameSource, flash_frames: float) -> SteadyLights:
    """Look at frames spread over a recording; a flash lasts about ``flash_frames``."""
    width, height = source.image_size
    counts, n, has_colour = np.zeros((height, width), np.uint16), 0, False
    for picture in source.samples(SAMPLED):
        counts += bright_pixels(cast(ColourPicture, picture)) > 0
        n += 1
        blue, green, red = cv2.split(picture)
        spread = max(cv2.absdiff(red, green).max(), cv2.absdiff(red, blue).max())
        has_colour |= bool(spread >= LEAST_COLOUR)
    share = STEADY_SHARE
    if source.n_frames:
        share = max(share, STEADY_FLASHES * flash_frames / source.n_frames)
    often = (counts >= max(LEAST_STEADY, math.ceil(share * n))).astype(np.uint8)
    size = 2 * STEADY_MARGIN_PX + 1
    is_steady = cv2.dilate(often, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))
    _, areas, statistics, _ = cv2.connectedComponentsWithStats(is_steady, connectivity=8)
    patches = []
    for area, (left, top, w, h, _) in enumerate(statistics[1:].tolist(), start=1):
        patches.append((top, left, areas[top : top + h, left : left + w] == area))
    return SteadyLights(tuple(patches), has_colour)


def _look(steady: tuple[Patch, ...], task: tuple[int, Picture]) -> Found | Exception:
    """What a worker does with a frame: up to ``MOST_LIGHTS`` lights, the likeliest first."""
    use_one_thread()
    try:
        return {"lights": look_at_frame(cast(ColourPicture, task[1]), steady)}
    except Exception as error:
        return error


def look_at_frame(picture: ColourPicture, steady: tuple[Patch, ...]) -> FloatArray:
    """(MOST_LIGHTS, 5) lights of a picture, the likeliest LED first, then NaN: ``COLUMNS``.

    The picture is made black where the steady lights are.
    """
    for top, left, shape in steady:
        height, width = shape.shape
        picture[top : top + height, left : left + width][shape] = 0
    rows = np.full((MOST_LIGHTS, len(COLUMNS)), np.nan)
    for row, led in zip(rows, find_leds(picture, MOST_LIGHTS), strict=False):
        row[:] = (*led.uv, *led.axes_px, led.rule)
    return rows


@dataclass(eq=False)
class _Track:
    """A light followed over frames: in which, its rows of ``COLUMNS``, its ranks in them."""

    frames: list[int] = field(default_factory=list)
    rows: list[FloatArray] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)

    def add(self, frame: int, row: FloatArray, rank: int) -> None:
        self.frames.append(frame)
        self.rows.append(row)
        self.ranks.append(rank)

    def reaches(self, frame: int, row: FloatArray) -> bool:
        """Whether a light in ``frame`` may be this one."""
        if frame - self.frames[-1] > MOST_GAP + 1 or self.frames[-1] == frame:
            return False
        return self.distance(row) <= max(LEAST_REACH_PX, row[2], self.rows[-1][2])

    def distance(self, row: FloatArray) -> float:
        return float(np.hypot(*(row[:2] - self.rows[-1][:2])))

    @property
    def length(self) -> int:
        return self.frames[-1] - self.frames[0] + 1

    @property
    def uv(self) -> tuple[float, float]:
        u, v = self.rows[0][:2].tolist()
        return u, v

    def as_other(self, reason: str) -> OtherLight:
        return OtherLight(self.frames[0], self.frames[-1], self.uv, reason)


@dataclass(frozen=True, eq=False)
class FlashSequence:
    """Tracks that are flashes, and the lights that are not, both in the order of time."""

    flashes: list[_Track]
    others: list[OtherLight]


def join_flashes(lights: FloatArray, flash_frames: float) -> FlashSequence:
    """Make flashes of what was seen in each frame.

    lights        (F, MOST_LIGHTS, 5) of all frames, as ``look_at_frame`` returns them
    flash_frames  how many frames a flash lasts, about
    """
    shortest = max(math.floor(LENGTHS[0] * flash_frames), 1)
    longest = math.ceil(LENGTHS[1] * flash_frames) + 1
    others, fitting = [], []
    for track in _follow(lights):
        if track.length > longest:
            others.append(track.as_other("is on for longer than a flash"))
        elif track.length < shortest:
            others.append(track.as_other("is on for less than a flash"))
        else:
            fitting.append(track)
    flashes = []
    best = _best_in_frames(fitting)
    for track in fitting:
        n_best = sum(best[frame] is track for frame in track.frames)
        if 2 * n_best >= len(track.frames):
            flashes.append(track)
        else:
            others.append(track.as_other("is beside a likelier flash"))
    blinking = _blinking(flashes)
    others += [track.as_other("blinks at one place") for track in blinking]
    flashes = [track for track in flashes if track not in blinking]
    return FlashSequence(flashes, sorted(others, key=_by_time))


def _follow(lights: FloatArray) -> list[_Track]:
    """Lights at about the same place in frames in a row, in the order of their beginning."""
    tracks: list[_Track] = []
    recent: list[_Track] = []
    for frame in np.flatnonzero(np.isfinite(lights[:, 0, 0])).tolist():
        recent = [track for track in recent if frame - track.frames[-1] <= MOST_GAP + 1]
        for rank, row in enumerate(lights[frame][np.isfinite(lights[frame, :, 0])]):
            within = [track for track in recent if track.reaches(frame, row)]
            if within:
                nearest = min(within, key=lambda track: track.distance(row))
            else:
                nearest = _Track()
                tracks.append(nearest)
                recent.append(nearest)
            nearest.add(frame, row, rank)
    return tracks


def _best_in_frames(tracks: list[_Track]) -> dict[int, _Track]:
    """The likeliest of the tracks in each frame."""
    best: dict[int, tuple[int, _Track]] = {}
    for track in tracks:
        for frame, rank in zip(track.frames, track.ranks, strict=True):
            if frame not in best or rank < best[frame][0]:
                best[frame] = (rank, track)
    return {frame: track for frame, (_, track) in best.items()}


def _blinking(flashes: list[_Track]) -> list[_Track]:
    """Flashes that keep coming at one place, if there are some elsewhere."""
    uv = np.array([track.uv for track in flashes]).reshape(-1, 2)
    apart = np.hypot(*np.moveaxis(uv[:, None] - uv, -1, 0))
    is_blinking = (apart <= BLINK_REACH_PX).sum(axis=1) >= BLINKS
    if is_blinking.all():
        return []
    return [track for track, blinks in zip(flashes, is_blinking, strict=True) if blinks]


def _by_time(light: OtherLight) -> tuple[int, tuple[float, float]]:
    return light.frame, light.uv


def _as_flashes(
    tracks: list[_Track], fps: float, n_frames: int, image_size: tuple[int, int]
) -> Flashes:
    first = np.stack([track.rows[0] for track in tracks])
    return Flashes(
        frames=np.array([track.frames[0] for track in tracks], dtype=np.int64),
        last_frames=np.array([track.frames[-1] for track in tracks], dtype=np.int64),
        uv=first[:, :2],
        radii_px=first[:, 2:4],
        rule=first[:, 4].astype(np.int64),
        fps=fps,
        n_frames=n_frames,
        image_size=image_size,
    )


def _nothing_found(
    source: FrameSource,
    n_frames: int,
    flash_s: float,
    steady: SteadyLights,
    others: list[OtherLight],
) -> InputError:
    if not steady.has_colour:
        return GreyInput(source.path)
    seen = f"{len(others)} other lights were seen" if others else "no other light was seen"
    return InputError(
        f"{source.path}: no flash of {flash_s:g} s in {n_frames} frames ({seen}). Is the LED in "
        "the picture, white or red and more than 8 pixels across, in a colour video that is "
        "not in a log encoding, and is --flash-s right?"
    )
