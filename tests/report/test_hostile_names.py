"""Pages on which methods, videos, groups and readings have names that want to be more than names.

In a browser nothing of them runs, loads or leaves the page, and all of them can be read; a name
that is chosen on the page comes back as it was.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from influx_wrap.evaluate.score import Evaluation
from influx_wrap.formats.pairs import Action, ReviewRow, read_review
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.observe.sources import open_frames
from influx_wrap.report.led_review import Card, write_review_page
from influx_wrap.report.score_page import write_score_page
from tests.report.browser import open_page
from tests.report.scored import made_up

MARK = "window.hacked"
HOSTILE = (
    f"</script><script>{MARK}=1</script>",
    f"<img src=x onerror={MARK}=2>",
    f'"><svg onload="{MARK}=3">',
    f"' onmouseover='{MARK}=4",
    f"javascript:{MARK}=5",
    f"<!--<script>{MARK}=6//",
    f"]]></style><script>{MARK}=7</script>",
    f"${{{MARK}=8}} {{{{{MARK}=8}}}} `{MARK}=8`",
    "</textarea></title><iframe src='https://example.org/'></iframe>",
    "<link rel=stylesheet href=//example.org/x.css><style>*{display:none}</style>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<form action=https://example.org><button autofocus>",
    "\u202egnp.exe\u202c, then \u2066as usual\u2069",
    "__proto__",
    "constructor",
    "toString",
    "a\u2028b\u2029c",
    "&lt;b&gt;&amp;",
    "#'; DROP TABLE x; --",
    "=HYPERLINK(0)",
    "😀" * 50,
    "x" * 2000,
)


def assert_harmless(tab: Any) -> None:
    """Nothing has run, and nothing is there that a page of ours has not."""
    tab.wait_for_timeout(200)
    assert tab.evaluate(f"typeof {MARK}") == "undefined"
    assert tab.locator("iframe, link[rel=stylesheet], meta[http-equiv=refresh], form").count() == 0
    assert tab.evaluate("Object.prototype.hasOwnProperty.call({}, 'x')") is False
    assert tab.evaluate("Object.keys(Object.prototype).length") == 0
    assert tab.evaluate("getComputedStyle(document.body).display") != "none"
    handlers = "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])"
    assert tab.evaluate(f"{handlers}.filter(a => a.name.startsWith('on')).length") == 0


def renamed(evaluation: Evaluation, method: str) -> Evaluation:
    """Its videos and groups named by ``HOSTILE``, in turn."""
    score = next(iter(evaluation.videos.values()))
    strip = next(iter(evaluation.strips.values()))
    return replace(
        evaluation,
        method=method,
        points_source=HOSTILE[0],
        videos=dict.fromkeys(HOSTILE, score),
        strips=dict.fromkeys(HOSTILE, strip),
        groups={name: dict.fromkeys(HOSTILE[:4], score) for name in HOSTILE[:3]},
    )


@pytest.mark.system
def test_scores(tmp_path: Path) -> None:
    path = tmp_path / "scores.html"
    evaluation = made_up("good", 0.01, n_videos=1, n_frames=30)
    write_score_page(path, [renamed(evaluation, method) for method in HOSTILE])
    with open_page(path) as tab:
        assert_harmless(tab)
        shown = tab.locator("#table tbody tr").all_inner_texts()
        assert len(shown) == len(HOSTILE)
        for name in HOSTILE[:4]:
            assert any(name in text for text in shown), name
        # Every button and link of the page, a few times over.
        for button in tab.locator("button").all()[:40]:
            if button.is_visible() and button.is_enabled():
                button.click()
        assert_harmless(tab)
        assert all(
            address is None or address.startswith(("#", "data:", "blob:"))
            for address in (link.get_attribute("href") for link in tab.locator("a").all())
        )


@pytest.mark.system
def test_review(tmp_path: Path) -> None:
    """The names go to the page, are chosen there, and come back in the file."""
    size, n = (160, 120), len(HOSTILE)
    folder = tmp_path / "frames"
    folder.mkdir()
    for frame in range(n + 1):
        cv2.imwrite(str(folder / f"{frame:03d}.png"), np.full((size[1], size[0], 3), 9, np.uint8))
    cards = [
        Card(ReviewRow(None, name, k, (50.0, 60.0), Action.USE), name, (k,), True, (20.0, 90.0))
        for k, name in enumerate(HOSTILE)
    ]
    path = tmp_path / "review.html"
    source = open_frames(folder, colour=True)
    write_review_page(path, cards, HOSTILE, source, title=HOSTILE[0], progress=lambda *_: None)
    with open_page(path) as tab:
        assert_harmless(tab)
        assert tab.locator(".card").count() == n
        texts = tab.locator(".card").all_inner_texts()
        for k, name in enumerate(HOSTILE[:6]):
            assert name in texts[k]
        # One reading is taken away and given back, by the list of all names.
        choice = tab.locator(".card").nth(0).locator("select")
        choice.select_option(HOSTILE[1])
        choice.select_option(HOSTILE[0])
        tab.locator(".card").nth(1).focus()
        tab.keyboard.press("u")
        assert_harmless(tab)
        with tab.expect_download() as download:
            tab.keyboard.press("s")
        download.value.save_as(tmp_path / "review.csv")
    readings = Readings(np.arange(float(n)), np.zeros((n, 3)), None, HOSTILE)
    nothing = np.zeros((0, 2))
    none = np.zeros(0, dtype=np.int64)
    flashes = Flashes(none, none, nothing, nothing, none, 24.0, n + 1, size)
    rows = read_review(tmp_path / "review.csv", flashes, readings)
    assert [row.reading for row in rows] == [*HOSTILE]
