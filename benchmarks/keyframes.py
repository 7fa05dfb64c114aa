"""Frames chosen by two looks, next to those of a full search, on clips of eleven kinds.

The full search measures the corners of every frame and chooses from these alone (the paper's
procedure, or slow frames that differ). Two looks measure them in some frames. No pose may be lost
by that: whatever the full search has chosen, something chosen shows the board there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.clips import Clip, Scene, kinds
from benchmarks.report import verdict
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.looks import Looks
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.coverage import assess_coverage
from influx_wrap.observe.detectors import detect_usable
from influx_wrap.observe.keyframes import choose_keyframes
from influx_wrap.observe.luma import luma_of
from influx_wrap.observe.moving_board import displacement_px
from influx_wrap.observe.two_looks import SHORT_STRETCH_FRAMES, frames_in_group, look_at_all

SIZE = (960, 640)
SCENE = Scene(
    AprilGrid(tag_cols=8, tag_rows=6, tag_size_m=0.05, tag_spacing=0.3),
    Intrinsics(1000.0, 1000.0, 483.0, 317.0, k1=-0.06),
    SIZE,
)
SEEDS = 2

SAME, ALIKE, MOST = 1 / 150, 0.0175, 99
"""How far from a chosen frame the board may be in one of the full search, in parts of the
picture's diagonal: of held poses as far as is the same pose, of others as far as is alike, or as
so many per cent of the clip's frames are from the choice of the full search."""
LEAST_COVERAGE = 0.95


@dataclass(frozen=True)
class Comparison:
    """What two looks have chosen of a clip, next to a full search.

    modes     of the full search and of two looks: "held" or "moved"
    n_views   how many frames each has chosen
    worst     how far the board of the full search is from the nearest chosen one, at most
    limit     how far it may be
    lost      how many frames of the full search have nothing near
    forgotten held poses, by number, of which the full search has a frame and two looks have none
    coverage  the share of the picture that is covered
    seconds   how long each took
    """

    modes: tuple[str, str]
    n_views: tuple[int, int]
    worst: float
    limit: float
    lost: int
    forgotten: tuple[int, ...]
    coverage: tuple[float, float]
    seconds: tuple[float, float]

    @property
    def is_kept(self) -> bool:
        """Whether no pose is lost."""
        full, ours = self.coverage
        same_mode = self.modes[0] == self.modes[1]
        return same_mode and not self.lost and not self.forgotten and ours >= LEAST_COVERAGE * full


def run(console: Console) -> bool:
    """Print the report; returns whether no pose is lost."""
    table = Table(
        "clip", "frames chosen", "furthest", "lost", "coverage", "time of a full search",
        title=f"{SIZE[0]} x {SIZE[1]} pixels: full search, and two looks",
    )  # fmt: skip
    outcome = []
    clips = [(name, make, seed) for name, make in kinds(SCENE).items() for seed in range(SEEDS)]
    for name, make, seed in track(clips, "clips", console=console, transient=True):
        rng = np.random.default_rng([20, seed])
        one = compare(make(rng), rng)
        outcome.append(one.is_kept)
        table.add_row(
            f"{name} {seed}", f"{one.n_views[0]}, {one.n_views[1]} ({one.modes[1]})",
            f"{one.worst:.4f} (<= {one.limit:.4f})", f"{one.lost + len(one.forgotten)}",
            f"{one.coverage[0]:.2f}, {one.coverage[1]:.2f}",
            f"{one.seconds[1] / one.seconds[0]:.2f}",
        )  # fmt: skip
    console.print(table)
    passed = all(outcome)
    console.print(
        f"no pose is lost in {sum(outcome)} of {len(outcome)} clips (all); distances are parts of "
        f"the diagonal {verdict(passed)}"
    )
    return passed


def compare(clip: Clip, rng: np.random.Generator) -> Comparison:
    """Film a clip, and choose its frames both ways."""
    pictures = list(clip.pictures(rng))
    n = len(pictures)
    began = time.perf_counter()
    found = [detect_usable(clip.grid, picture) for picture in pictures]
    searched = time.perf_counter()
    lumas = ((number, luma_of(picture)) for number, picture in enumerate(pictures))
    in_group = frames_in_group(n)
    starts = range(0, n, SHORT_STRETCH_FRAMES)
    divided = list(zip(starts, [*starts[1:], None], strict=True))
    looked = list(look_at_all(lumas, divided, clip.grid, clip.size, in_group, every_frame=False))
    ended = time.perf_counter()
    nothing = np.zeros(len(clip.grid.points))
    nowhere = np.zeros((len(nothing), 2))
    every = _observations(
        clip,
        np.array([nothing if one is None else one.confidence for one in found]),
        np.array([nowhere if one is None else one.uv for one in found]),
    )
    full = choose_keyframes(every, n, is_stills=False)
    names = "homography", "step_px", "is_candidate"
    looks = Looks(*(np.array([one[name] for one in looked]) for name in names))
    some = _observations(
        clip,
        np.array([one["confidence"] for one in looked]),
        np.array([one["uv"] for one in looked]),
    )
    ours = choose_keyframes(some, n, is_stills=False, looks=looks)
    distance, limit = _to_nearest(full[1], ours[1]), SAME
    if full[0].mode != "held":
        limit = max(ALIKE, float(np.percentile(_to_nearest(every, full[1]), MOST)))
    held = [set(clip.path.pose[keyframes.frames].tolist()) - {-1} for keyframes, _ in (full, ours)]
    return Comparison(
        (full[0].mode, ours[0].mode),
        (full[1].n_views, ours[1].n_views),
        float(distance.max()),
        limit,
        int((distance > limit).sum()),
        tuple(sorted(held[0] - held[1])) if full[0].mode == "held" else (),
        (_coverage(full[1]), _coverage(ours[1])),
        (searched - began, ended - searched),
    )


def _observations(clip: Clip, confidence: FloatArray, uv: FloatArray) -> Observations:
    """Of corners (F, T) that are at pixels (F, T, 2)."""
    valid = confidence > 0
    seen = np.flatnonzero(valid.any(axis=1))
    uv = np.where(valid[..., None], uv, 0.0)
    return Observations(clip.grid, uv[seen], valid[seen], clip.size, seen)


def _to_nearest(some: Observations, others: Observations) -> FloatArray:
    """(V,) how far the board of each view is from that of the nearest of others."""
    a, b = np.meshgrid(np.arange(some.n_views), np.arange(others.n_views), indexing="ij")
    uv, valid = np.concatenate([some.uv, others.uv]), np.concatenate([some.valid, others.valid])
    apart = displacement_px(uv, valid, a.ravel(), some.n_views + b.ravel()).reshape(a.shape)
    apart = np.where(np.isnan(apart), np.inf, apart)
    return np.asarray(apart.min(axis=1) / np.hypot(*some.image_size))


def _coverage(views: Observations) -> float:
    return assess_coverage(views.uv, views.valid, views.target, views.image_size).share
