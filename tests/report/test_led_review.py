"""The review page: everything in one file, and what a person does on it comes back."""

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.pairs import Action, ReviewRow, read_review
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.observe.sources import open_frames
from influx_wrap.report.led_review import CROP_PX, Card, write_review_page
from tests.report.browser import SCHEMES_AND_WIDTHS, check_accessible, open_page

SIZE = (400, 300)
N_FRAMES = 12
LED = (310, 120)
NASTY = 'r"2, </script><b>'
CARDS = (
    Card(ReviewRow("3", "r1", 3, (310.0, 120.0), Action.USE), "", (2, 3, 4), False, None),
    Card(ReviewRow(None, NASTY, 6, None, Action.UNDECIDED), "No.", (5, 6, 7), True, (20.0, 290.0)),
    Card(ReviewRow("9", None, 9, (50.25, 60.5), Action.UNDECIDED), "Lone.", (9, 10), False, None),
    Card(ReviewRow(None, "r4", None, None, Action.UNDECIDED), "Gone.", (), True, (30.0, 40.0)),
)
READINGS = Readings(np.arange(4.0), np.zeros((4, 3)), None, ("r1", NASTY, "r3", "r4"))
FLASHES = Flashes(
    frames=np.array([3, 9]),
    last_frames=np.array([4, 10]),
    uv=np.array([[310.0, 120.0], [50.25, 60.5]]),
    radii_px=np.full((2, 2), 12.0),
    rule=np.array([1, 1]),
    fps=24.0,
    n_frames=N_FRAMES,
    image_size=SIZE,
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    (folder / "frames").mkdir()
    for frame in range(N_FRAMES):
        picture = np.full((SIZE[1], SIZE[0], 3), (30, 10, 5), np.uint8)
        if frame in (3, 4):
            cv2.circle(picture, LED, 8, (255, 255, 255), cv2.FILLED)
        cv2.imwrite(str(folder / "frames" / f"{frame:03d}.png"), picture)
    source = open_frames(folder / "frames", colour=True)
    heard: list[tuple[int, int]] = []
    write_review_page(
        folder / "review.html",
        CARDS,
        READINGS.ids,
        source,
        title="a flight",
        progress=lambda done, total: heard.append((done, total)),
    )
    assert heard == [(done, 8) for done in range(9)]
    return folder / "review.html"


def content(page: Path) -> dict[str, Any]:
    match = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def decoded(picture: dict[str, Any]) -> np.ndarray:
    kind, _, data = picture["src"].partition(",")
    assert kind == "data:image/jpeg;base64"
    return cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)


def test_one_file_with_all_in_it(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!data:)", text)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "<b>" not in text, "a name is never markup"


def test_pictures_are_around_the_centre(page: Path) -> None:
    cards = content(page)["cards"]
    assert [[p["frame"] for p in card["pictures"]] for card in cards] == [
        [2, 3, 4], [5, 6, 7], [9, 10], []
    ]  # fmt: skip
    crop = cards[0]["pictures"][1]["crop"]
    image = decoded(crop)
    assert image.shape[:2] == (crop["height"], crop["width"]) == (CROP_PX, CROP_PX)
    v, u = (float(x.mean()) for x in np.nonzero(image[..., 0] > 200))
    assert (crop["left"] + u, crop["top"] + v) == pytest.approx(LED, abs=0.2)
    assert crop["left"] + crop["width"] <= SIZE[0]
    assert cards[0]["pictures"][1]["whole"] is None
    wide = cards[1]["pictures"][0]
    assert decoded(wide["whole"]).shape == (SIZE[1], SIZE[0], 3)
    assert wide["crop"]["left"] == 0
    assert cards[1]["uv"] is None, "where it is expected is no centre"


def test_too_damaged_to_show(tmp_path: Path, page: Path) -> None:
    """Frames that cannot be read are missing from the page, not the page."""
    shutil.copytree(page.parent / "frames", tmp_path / "frames")
    (tmp_path / "frames" / "003.png").write_bytes(b"no picture")
    source = open_frames(tmp_path / "frames", colour=True)
    out = tmp_path / "review.html"
    write_review_page(out, CARDS, READINGS.ids, source, title="", progress=lambda *_: None)
    frames = [picture["frame"] for picture in content(out)["cards"][0]["pictures"]]
    assert frames == [2, 4]
    nowhere = tmp_path / "nowhere" / "review.html"
    with pytest.raises(InputError, match="cannot be written"):
        write_review_page(nowhere, CARDS, READINGS.ids, source, title="", progress=lambda *_: None)


@pytest.mark.system
def test_in_a_browser(page: Path, tmp_path: Path) -> None:
    """Set, move, remove, reassign, choose a frame, save; and read the file back."""
    with open_page(page) as tab:
        cards = tab.locator(".card")
        assert cards.count() == 4
        assert tab.inner_text("#state") == "1 in use, 3 undecided"

        # Readings that are passed on the way to the right one
        reading = cards.nth(2).locator("select")
        for name, left in ((NASTY, 1), ("r4", 3)):
            reading.select_option(name)
            assert tab.inner_text("#state") == "2 in use, 1 undecided, not saved"
            assert cards.nth(left).get_attribute("class") == "card leave"
        reading.select_option("")
        assert tab.inner_text("#state") == "1 in use, 3 undecided, not saved"

        tab.keyboard.press("n")
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("Shift+ArrowUp")
        tab.keyboard.press("]")
        assert cards.nth(0).locator("[data-field=centre]").inner_text() == "310.25, 115.00"
        assert cards.nth(0).locator("[data-field=frame]").inner_text() == "4"

        tab.keyboard.press("u")
        tab.keyboard.press("Enter")
        assert "undecided" in (cards.nth(1).get_attribute("class") or ""), "no centre yet"
        tab.keyboard.press("ArrowRight")
        centre = cards.nth(1).locator("[data-field=centre]")
        assert centre.inner_text() == "20.00, 290.00", "where it is expected"
        crop = cards.nth(1).locator("[data-kind=crop]")
        box = crop.bounding_box()
        assert box is not None
        tab.mouse.move(box["x"] + 10, box["y"] + 10)
        tab.mouse.down()
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
        tab.mouse.up()
        cards.nth(1).locator("[title='later frame']").click()

        reading.select_option("r4")
        cards.nth(3).focus()
        tab.keyboard.press("ArrowRight")
        assert "not set" in cards.nth(3).inner_text(), "there is no frame to set it in"
        tab.keyboard.press("Delete")
        reading.select_option("r3")
        assert "use" in (cards.nth(2).get_attribute("class") or "")
        assert cards.nth(3).get_attribute("class") == "card leave", "as the person said"
        with tab.expect_download() as download:
            tab.keyboard.press("s")
        download.value.save_as(tmp_path / "review.csv")
        assert download.value.suggested_filename == "review.csv"
        assert tab.inner_text("#state") == "3 in use"
        reading.select_option("r1")
        assert "3 in conflict" in tab.inner_text("#state"), "one reading twice, and out of order"
    rows = read_review(tmp_path / "review.csv", FLASHES, READINGS)
    assert [(row.flash, row.reading, row.frame, row.action) for row in rows] == [
        ("3", "r1", 4, Action.USE),
        (None, NASTY, 7, Action.USE),
        ("9", "r3", 9, Action.USE),
        (None, "r4", None, Action.LEAVE),
    ]
    assert rows[0].uv == (310.25, 115.0)
    assert rows[1].uv == pytest.approx((199.5, 149.5), abs=1.0), "all of the picture is its crop"


@pytest.mark.system
@pytest.mark.parametrize(("dark", "width"), SCHEMES_AND_WIDTHS)
def test_accessible(page: Path, dark: bool, width: int) -> None:
    with open_page(page, dark=dark, width=width, fragment="card-3") as tab:
        focused = "() => document.activeElement.querySelector('h2').textContent"
        assert tab.evaluate(focused) == "Flash detected in frame 9"
        check_accessible(tab)
