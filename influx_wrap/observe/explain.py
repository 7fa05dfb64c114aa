"""Why a board was not found: what the pictures show in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from influx_wrap.model.arrays import Picture
from influx_wrap.model.target import AprilGrid, BoardTarget, Charuco, Checkerboard, CircleGrid
from influx_wrap.observe.recognise import Recognised, recognise, stray_markers

SAMPLES = 8
"""How many pictures of a recording are looked at."""
MAX_GAP_ERROR = 0.02
MIN_SHARE = 0.25
"""A recording whose best frame has a smaller share of the board's corners may show another."""
NO_BOARD = (
    "but no board that is known here. Boards of tags are AprilGrids (tag36h11, with a dark square "
    "at each corner of a tag) and ChArUco boards: show all of one, in focus."
)
"""What is said of ``stray_markers``."""


def what_is_there(pictures: Sequence[Picture], target: BoardTarget) -> str:
    """What grey pictures show in the place of ``target``, in a sentence or two, and what to do."""
    seen = recognise(pictures)
    markers = stray_markers(pictures) if seen is None else None
    return f"They show {markers}, {NO_BOARD}" if markers else _sentences(seen, target)


def other_board(
    pictures: Sequence[Picture], target: BoardTarget, *, is_seen_whole: bool = False
) -> str | None:
    """The same, but None if they show nothing that is clearly another board.

    Where all of ``target`` was found in some pictures, only a larger board speaks against it.
    """
    seen = recognise(pictures)
    if seen is None or _difference(seen, target) is None:
        return None
    if is_seen_whole and len(seen.target.points) <= len(target.points):
        return None
    return _sentences(seen, target)


def _sentences(seen: Recognised | None, target: BoardTarget) -> str:
    if seen is None:
        return (
            "No tags, markers, lattice of corners or circle grid can be made out in them: is the "
            "board in focus, well lit and large enough in the picture?"
        )
    difference = _difference(seen, target)
    if difference is None:
        return (
            f"They show {seen.sentence}, as the target says, but not whole or not sharp enough: "
            "show all of it, in focus, well lit and larger in the picture."
        )
    ids = f" (ids {seen.ids[0]} to {seen.ids[-1]} were read)" if seen.ids else ""
    return f"They show {seen.sentence}{ids}; {difference}"


def _difference(seen: Recognised, target: BoardTarget) -> str | None:
    """What the target says instead, and what to change; None if they are the same board."""
    there = seen.target
    match there, target:
        case AprilGrid(), AprilGrid():
            return _grid_difference(there, target)
        case Checkerboard(), Checkerboard():
            told, found = (target.cols, target.rows), (there.cols, there.rows)
            if sorted(told) == sorted(found):
                return None
            says = f"the target says {told[0]} x {told[1]}."
            if sorted(told) == sorted(n + 1 for n in found):
                return f"{says} Count the corners between the squares, not the squares."
            return f"{says} Correct its rows and columns."
        case Charuco(), Charuco():
            return _charuco_difference(there, target)
        case CircleGrid(), CircleGrid():
            return _circles_difference(there, target)
    return f"the target is {name_board(target)}. Give the one that was filmed."


def _grid_difference(there: AprilGrid, target: AprilGrid) -> str | None:
    told = f"the target says {target.tag_rows} rows and {target.tag_cols} columns."
    shape, exchanged = (there.tag_rows, there.tag_cols), (target.tag_cols, target.tag_rows)
    if shape == exchanged and target.tag_rows != target.tag_cols:
        return f"{told} Rows and columns are exchanged: swap tagRows and tagCols."
    if there.tag_cols != target.tag_cols or there.tag_rows > target.tag_rows:
        return f"{told} Correct tagRows and tagCols."
    if there.border_cells != target.border_cells:
        return (
            f"the target says a border of {target.border_cells}. Write tagBorder: "
            f"{there.border_cells} into it."
        )
    if abs(there.tag_spacing - target.tag_spacing) > MAX_GAP_ERROR:
        return (
            f"the target says gaps of {target.tag_spacing:g}. Correct tagSpacing: it is the gap "
            "divided by the tag's width."
        )
    return None


def _charuco_difference(there: Charuco, target: Charuco) -> str | None:
    told = f"the target says {target.cols} x {target.rows} squares with {target.dictionary}."
    exchanged = (there.cols, there.rows) == (target.rows, target.cols) != (target.cols, target.rows)
    if exchanged:
        return f"{told} Columns and rows are exchanged: swap squareCols and squareRows."
    if there.cols != target.cols or there.rows > target.rows:
        return f"{told} Correct squareCols and squareRows."
    if there.codes[:1] != target.codes[:1]:
        return f"{told} Correct the dictionary."
    if there.legacy != target.legacy and target.rows % 2 == 0:
        return f"{told} Correct legacyPattern."
    return None


def _circles_difference(there: CircleGrid, target: CircleGrid) -> str | None:
    same = replace(there, spacing_m=target.spacing_m)
    turned = replace(same, cols=there.rows, rows=there.cols)
    if same == target or (turned == target and not target.asymmetric):
        return None
    kind = "an asymmetric" if target.asymmetric else "a symmetric"
    told = f"the target is {kind} one of {target.cols} columns and {target.rows} rows."
    if turned == target:
        return f"{told} Columns and rows are exchanged: swap targetCols and targetRows."
    return f"{told} Correct its rows, columns or asymmetricGrid."


def meant_board(
    board: str, target: BoardTarget, pictures: Sequence[Picture]
) -> tuple[str, str] | None:
    """The description ``board`` of ``target``, and the same with the columns and rows that
    pictures show; None if they show a board of another kind, or these."""
    found = recognise(pictures)
    if found is None or type(found.target) is not type(target):
        return None
    seen = found.target
    cols, rows = (
        (seen.tag_cols, seen.tag_rows) if isinstance(seen, AprilGrid) else (seen.cols, seen.rows)
    )
    meant = re.sub(r"\d+x\d+", f"{cols}x{rows}", board, count=1, flags=re.IGNORECASE)
    return None if meant == board else (board, meant)


def name_board(target: BoardTarget) -> str:
    """What a board is, such as "a checkerboard of 9 x 6 inner corners"."""
    match target:
        case AprilGrid():
            return f"an AprilGrid of {target.tag_rows} rows and {target.tag_cols} columns of tags"
        case Checkerboard():
            return f"a checkerboard of {target.cols} x {target.rows} inner corners"
        case Charuco():
            return f"a ChArUco board of {target.cols} x {target.rows} squares"
        case CircleGrid():
            return f"a circle grid of {target.cols} columns and {target.rows} rows"
