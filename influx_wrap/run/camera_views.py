"""The views of one camera, out of photographs and videos in which a board may be: which board it
is, where its corners are, which frames to calibrate with, and what was not used, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Progress, Watch
from influx_wrap.errors import InputError
from influx_wrap.formats.board_text import parse_board
from influx_wrap.model.arrays import Picture
from influx_wrap.model.observations import Observations
from influx_wrap.model.result import Json
from influx_wrap.model.target import BoardTarget, PointCloud, Target
from influx_wrap.model.words import by_reason, counted, size_text
from influx_wrap.observe.explain import NO_BOARD, meant_board, name_board, other_board
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.pictures import detect_frames
from influx_wrap.observe.recognise import recognise, stray_markers, with_all_rows
from influx_wrap.observe.sources import open_several
from influx_wrap.observe.stills import Stills
from influx_wrap.run.camera_footage import CameraFootage, listed

LOOKED_AT = (12, 36)
"""How many pictures are looked at to recognise a board; the second only if the first show none."""
MIN_VIEWS = 3
RARELY = 0.5
"""Share of the frames in which the right board would be found."""
FILM = (
    "Film the board in 15 to 20 clearly different poses: everywhere in the picture, its corners "
    "above all, and tilted by 30 to 45 degrees up, down, left and right."
)


@dataclass(frozen=True)
class BoardOfCamera:
    """The board that a camera was shown.

    sentence       what it is
    is_recognised  whether the pictures say so, and nobody else
    has_size       whether its size is known; else squares, tags or distances are 1 m
    """

    target: BoardTarget
    sentence: str
    is_recognised: bool
    has_size: bool

    def as_dict(self) -> Json:
        """Plain data."""
        return {
            "description": self.sentence,
            "recognised": self.is_recognised,
            "size_known": self.has_size,
        }


@dataclass(frozen=True, eq=False)
class CameraViews:
    """All views of a camera.

    observations  of the views to calibrate with, of all footage
    unread        files that were given and are not read, and why
    doubt         what the pictures seem to show in place of the board that was named; None if
                  it is that board
    """

    board: BoardOfCamera
    footage: tuple[CameraFootage, ...]
    observations: Observations
    unread: Mapping[str, str]
    doubt: str | None

    @property
    def notes(self) -> list[str]:
        """What was not used, a sentence each."""
        return [*(note for one in self.footage for note in one.notes), *by_reason(self.unread)]

    def pictures(self) -> Iterator[tuple[int, Picture]]:
        """(view id, grey picture) of all views, read again."""
        for one in self.footage:
            wanted = (one.views.view_ids - one.first).tolist()
            for frame, picture in one.source.at(wanted):
                yield one.first + frame, picture


def find_views(
    paths: Sequence[Path],
    board: str | Target | None,
    *,
    jobs: int | None,
    watch: Watch,
    every_frame: bool,
) -> CameraViews:
    """The views in photographs, folders of them and videos at ``paths``, of one camera.

    ``board`` is a description, a target, or None: what the pictures show. Raises ``InputError``
    if there is no board, if it is another, or if too few views show it.
    """
    sources, unread = open_several(paths)
    _check_sizes(sources)
    chosen = given_board(board) if board is not None else _recognised(sources, watch)
    footage: list[CameraFootage] = []
    first = 0
    try:
        for source, prefix in zip(sources, _prefixes(sources), strict=True):
            with watch(f"finding corners in {source.path.name}") as progress:
                found = _footage(source, first, prefix, chosen.target, jobs, progress, every_frame)
            footage.append(found)
            first += found.n_frames
        doubt = None if chosen.is_recognised else _doubt(footage, chosen.target)
        views = CameraViews(chosen, tuple(footage), _joined(footage), unread, doubt)
        _check_enough(views)
    except InputError as error:
        if not isinstance(board, str):
            raise
        shown = next(_some_pictures(sources), [])
        raise InputError(str(error), instead=meant_board(board, chosen.target, shown)) from None
    return views


def given_board(board: str | Target) -> BoardOfCamera:
    """The board that somebody names, such as ``9x6@25mm``."""
    if isinstance(board, PointCloud):
        raise InputError("a point cloud cannot be seen in pictures: a board's target is needed.")
    if isinstance(board, str):
        parsed = parse_board(board)
        return BoardOfCamera(parsed.target, name_board(parsed.target), False, parsed.has_size)
    return BoardOfCamera(board, name_board(board), is_recognised=False, has_size=True)


def _check_sizes(sources: Sequence[FrameSource]) -> None:
    sizes = Counter(source.image_size for source in sources)
    usual = sizes.most_common(1)[0][0]
    for source in sources:
        if source.image_size != usual:
            raise InputError(
                f"{source.path} has {size_text(source.image_size)} pixels, other footage "
                f"{size_text(usual)}: calibrate cameras, and sizes of picture, one by one."
            )


def _recognised(sources: Sequence[FrameSource], watch: Watch) -> BoardOfCamera:
    n_pictures = 0
    with watch("looking for a board") as progress:
        for pictures in _some_pictures(sources):
            n_pictures += len(pictures)
            progress(n_pictures, None)
            found = recognise(pictures)
            if found is not None:
                stills = [source for source in sources if isinstance(source, Stills)]
                more = (source.samples(LOOKED_AT[1]) for source in stills)
                found = with_all_rows(found, chain.from_iterable(more))
                return BoardOfCamera(found.target, found.sentence, True, has_size=False)
    where = ", ".join(str(source.path) for source in sources)
    if n_pictures == 0:
        faults = [
            text
            for source in sources
            for text in by_reason(source.all_unread(range(source.n_frames or 0)))
        ]
        raise InputError(f"{where}: no picture can be read; {'; '.join(faults)}.")
    markers = stray_markers(next(_some_pictures(sources), []))
    if markers is not None:
        raise InputError(
            f"{where}: the pictures show {markers}, {NO_BOARD} If yours is another, print one.",
            command="influx-calib board --paper A4 --out board.pdf",
        )
    raise InputError(
        f"{where}: no board is recognised in {counted(n_pictures, 'picture')}: no tags, no "
        "markers, no lattice of corners and no grid of circles. Is it in focus, well lit, flat and "
        "large enough in the picture? If it is, say which board it is, such as --board 9x6@25mm. "
        "If there is none, print one and film it.",
        command="influx-calib board --paper A4 --out board.pdf",
    )


def _some_pictures(sources: Sequence[FrameSource]) -> Iterator[list[Picture]]:
    """A few pictures of all sources, and then, for who goes on, more of them."""
    for n in LOOKED_AT:
        each = -(-n // len(sources))
        more = chain.from_iterable(source.samples(each) for source in sources)
        while some := list(islice(more, LOOKED_AT[0])):
            yield some


def _footage(
    source: FrameSource,
    first: int,
    prefix: str,
    target: BoardTarget,
    jobs: int | None,
    progress: Progress,
    every_frame: bool,
) -> CameraFootage:
    is_stills = isinstance(source, Stills)
    seen = detect_frames(
        source, target,
        is_stills=is_stills, jobs=jobs, progress=progress, every_frame=every_frame,
    )  # fmt: skip
    try:
        keyframes, views = seen.choose()
    except InputError as error:
        raise InputError(f"{source.path}: {error}") from None
    names = tuple(prefix + name for name in views.view_names)
    views = replace(views, view_ids=first + views.view_ids, view_names=names)
    return CameraFootage(source, first, prefix, seen, keyframes, views)


def _prefixes(sources: Sequence[FrameSource]) -> list[str]:
    """What the names of the sources' frames begin with, so that no two are alike."""
    if len(sources) == 1:
        return [""]
    names = [source.path.name for source in sources]
    labels = names if len(set(names)) == len(names) else [str(one.path) for one in sources]
    return [
        f"{label}/" if isinstance(source, Stills) else f"{label}, "
        for label, source in zip(labels, sources, strict=True)
    ]


def _joined(footage: Sequence[CameraFootage]) -> Observations:
    views = [one.views for one in footage]
    return replace(
        views[0],
        uv=np.concatenate([one.uv for one in views]),
        valid=np.concatenate([one.valid for one in views]),
        view_ids=np.concatenate([one.view_ids for one in views]),
        view_names=tuple(name for one in views for name in one.view_names),
    )


def _doubt(footage: Sequence[CameraFootage], target: BoardTarget) -> str | None:
    """Of a board that is rarely seen: which one is there instead."""
    counts = np.concatenate([one.seen.counts for one in footage])
    if np.mean(counts > 0) > RARELY:
        return None
    pictures = next(_some_pictures([one.source for one in footage]), [])
    other = other_board(pictures, target, is_seen_whole=counts.max() == len(target.points))
    return None if other is None else f"the pictures {other[5:].rstrip('.')}"


def _check_enough(views: CameraViews) -> None:
    n_views = views.observations.n_views
    if n_views >= MIN_VIEWS:
        return
    where = ", ".join(str(one.source.path) for one in views.footage)
    others = "".join(f" {note[0].upper()}{note[1:]}." for note in views.notes)
    raise InputError(
        f"{where}: only {counted(n_views, 'view')} of the board can be used "
        f"({listed(views.observations.view_names)}), and {MIN_VIEWS} are the least. "
        f"{FILM}{others}"
    )
