"""Pictures of README and docs: there, made by the command, and quick to load."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import cv2
import pytest

from docs.pictures import DRAWN, MAKERS, MOST_BYTES, MOST_WIDTH_PX, PICTURES, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_is_made_by_the_command(page: Path) -> None:
    for said, name in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text()):
        path = (page.parent / name).resolve()
        assert path.parent == PICTURES
        assert path.name in {*MAKERS, *DRAWN}
        assert path.exists(), f"make pictures PICTURES={path.name}"
        assert said, f"{name} says nothing to who cannot see it"


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.png")), ids=lambda path: path.name)
def test_small_enough(path: Path) -> None:
    assert path.stat().st_size <= MOST_BYTES
    picture = cv2.imread(str(path))
    assert picture is not None
    assert picture.shape[1] <= MOST_WIDTH_PX


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_a_drawn_picture_is_whole_and_has_a_title(name: str) -> None:
    drawing = ElementTree.parse(PICTURES / name).getroot()
    assert drawing.findtext("{http://www.w3.org/2000/svg}title")
    assert int(drawing.attrib["width"]) <= MOST_WIDTH_PX


def test_there_are_no_other_pictures() -> None:
    assert {path.name for path in PICTURES.iterdir()} == {*MAKERS, *DRAWN}
