"""Views: what a folder says of them, and what is missing in a line.

Choosing and drawing are tested with the commands (``keyframes``, ``run``).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.observe.coverage import CELL_COLS, CELL_ROWS, MIN_VIEWS, ORIENTATIONS, Coverage
from influx_wrap.run.views import FIGURES, KEYFRAMES, missing_in_short, shown_views


def coverage(uncovered: tuple[slice | int, slice | int] | None, *few: int) -> Coverage:
    """All there but the cells ``uncovered`` and the orientations ``few``."""
    cells = np.full((CELL_ROWS, CELL_COLS), MIN_VIEWS)
    if uncovered is not None:
        cells[uncovered] = MIN_VIEWS - 1
    per_orientation = np.full(len(ORIENTATIONS), MIN_VIEWS)
    per_orientation[list(few)] = MIN_VIEWS - 1
    return Coverage(cells, per_orientation, ())


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (coverage(None), None),
        (coverage((0, 0)), "not covered: top-left corner"),
        (coverage(None, 1, 4), "too few views: tilted down, tilted right"),
        (
            coverage((slice(None), -1), 0),
            "not covered: whole right edge; too few views: parallel to the sensor",
        ),
    ],
)
def test_what_is_missing_in_a_line(shown: Coverage, words: str | None) -> None:
    assert missing_in_short(shown) == words


def test_only_what_is_finished_counts(tmp_path: Path) -> None:
    cells = np.arange(CELL_ROWS * CELL_COLS).reshape(CELL_ROWS, CELL_COLS)
    values: dict[str, object] = {
        "views_per_cell": cells.tolist(),
        "views_per_orientation": {name: i for i, name in enumerate(ORIENTATIONS)},
        "warnings": ["no view shows the board."],
        "mode": "held",
        "why": "poses were held",
    }
    for name in FIGURES:
        (tmp_path / name).touch()
    assert shown_views(tmp_path) is None
    (tmp_path / KEYFRAMES).write_text(json.dumps(values))
    found = shown_views(tmp_path)
    assert found is not None
    np.testing.assert_array_equal(found.coverage.views_per_cell, cells)
    assert found.coverage.views_per_orientation.tolist() == [0, 1, 2, 3, 4]
    assert found.coverage.warnings == ("no view shows the board.",)
    assert (found.mode, found.why) == ("held", "poses were held")
    for key in values:
        broken = {name: value for name, value in values.items() if name != key}
        (tmp_path / KEYFRAMES).write_text(json.dumps(broken))
        assert shown_views(tmp_path) is None
    (tmp_path / KEYFRAMES).write_text(json.dumps(values))
    (tmp_path / FIGURES[-1]).unlink()
    assert shown_views(tmp_path) is None
