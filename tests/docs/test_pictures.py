"""Pictures of README and docs: there, made by the command, and quick to load."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import pytest

from docs.pictures import MAKERS, MOST_BYTES, MOST_WIDTH_PX, PICTURES, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_is_made_by_the_command(page: Path) -> None:
    for said, name in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text()):
        path = (page.parent / name).resolve()
        assert path.parent == PICTURES
        assert path.name in MAKERS
        assert path.exists(), f"make pictures PICTURES={path.name}"
        assert said, f"{name} says nothing to who cannot see it"


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*")), ids=lambda path: path.name)
def test_small_enough(path: Path) -> None:
    assert path.name in MAKERS, "nothing makes it any more"
    assert path.stat().st_size <= MOST_BYTES
    picture = cv2.imread(str(path))
    assert picture is not None
    assert picture.shape[1] <= MOST_WIDTH_PX
