"""The page of scores: nothing lost on the way into it, and a browser shows what is in it."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.evaluate.epe_counts import BINS_PER_PX, EpeHistogram
from influx_wrap.evaluate.score import Evaluation, Strip
from influx_wrap.model.arrays import FloatArray
from influx_wrap.report.score_page import SHARE_UNITS, write_score_page
from influx_wrap.report.score_table import in_order, numbers, shown
from tests.report.browser import (
    NO_STOP_IN_A_FIGURE,
    SCHEMES_AND_WIDTHS,
    check_accessible,
    check_lines_are_seen,
    open_page,
)
from tests.report.scored import NASTY, NO_FRAMES, made_up

GOOD = made_up("good", 0.05)
BAD = made_up(NASTY, 0.3, missing=slice(20, 45), seed=1)
SILENT = made_up("silent", None)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scores") / "report.html"
    write_score_page(path, [BAD, SILENT, GOOD])
    return path


def content(page: Path) -> dict[str, Any]:
    match = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def written(tmp_path: Path, *evaluations: Evaluation) -> dict[str, Any]:
    write_score_page(tmp_path / "page.html", evaluations)
    return content(tmp_path / "page.html")


def decoded(ends: list[str]) -> FloatArray:
    return np.array([np.frombuffer(base64.b64decode(end), "<f4") for end in ends], dtype=float)


def with_strip(frames: list[int], true: FloatArray, predicted: FloatArray) -> Evaluation:
    strip = Strip(np.array(frames), true, predicted)
    return replace(GOOD, videos={"v": GOOD.videos["clip-000"]}, strips={"v": strip})


def test_one_file_with_all_in_it(page: Path) -> None:
    text = page.read_text()
    assert "default-src 'none'" in text, "it is not allowed to load anything"
    assert "<script>alert" not in text, "a name is never markup"


def test_numbers_are_those_of_the_evaluations(page: Path) -> None:
    data = content(page)
    assert data["methods"] == ["good", NASTY, "silent"]
    for row, evaluation in zip(data["table"]["rows"], (GOOD, BAD, SILENT), strict=True):
        *errors, below = (shown(value) for value in numbers(evaluation.overall))
        assert [row[1]["text"], *(cell["text"] for cell in row[3:])] == [below, *errors]
    assert data["table"]["rows"][1][2]["text"] == "390 of 540"
    (group,) = data["groups"]
    assert [row[0]["text"] for row in group["rows"]] == [
        name for name in ("canon17", "premista80", NASTY) for _ in range(3)
    ]
    assert group["rows"][4][4]["key"] == BAD.groups["lens"]["premista80"].percent_error[0]
    assert group["rows"][-1][3]["key"] is None


def test_a_curve_keeps_its_shape_and_its_threshold(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    errors = rng.lognormal(4, 1.5, 200_000)
    counts = np.bincount(np.floor(errors[errors < 6000] * BINS_PER_PX).astype(int))
    counts[1234] += 50_000
    histogram = EpeHistogram(counts.astype(np.int64), int((errors >= 6000).sum()), 30_000)
    score = replace(GOOD.overall, histogram=histogram)
    (curve,) = written(tmp_path, replace(GOOD, overall=score))["curves"]
    px, share = histogram.curve()
    bins, shares = np.cumsum(curve["bins"]), np.cumsum(curve["shares"])
    kept = np.interp(px, bins / BINS_PER_PX, shares) / SHARE_UNITS
    assert np.abs(kept - share).max() < 5.1e-4
    assert len(bins) < 10_000
    at = bins.tolist().index(3000)
    assert shares[at] == round(SHARE_UNITS * histogram.share_below(300))
    median = np.sort(np.concatenate([errors, np.full(50_000, 123.4), np.full(30_000, np.inf)]))
    said = re.search(r"median (\S+) px", curve["words"])
    assert said is not None
    assert float(said[1]) == pytest.approx(median[len(median) // 2], abs=0.11)


def test_a_column_hides_neither_outliers_nor_gaps(tmp_path: Path) -> None:
    n = 10_000
    true = np.full(n, 3000.0)
    predicted = np.full(n, 3100.0)
    true[5001], predicted[777], predicted[778], predicted[4000] = 2900.0, 9000.0, 5.0, np.nan
    predicted[6000:7000] = np.nan
    (video,) = written(tmp_path, with_strip(list(range(100, n + 100)), true, predicted))["videos"]
    step, (method,) = video["step"], video["methods"]
    assert (video["first"], video["last"]) == (100, n + 99)
    (true_low, true_high), (low, high) = decoded(video["true"]), decoded(method["predicted"])
    assert len(low) == len(true_low) == -(-n // step) <= 480
    assert true_low[5001 // step] == 2900.0
    assert true_high.min() == true_low[0] == 3000.0
    assert high[777 // step] == 9000.0
    assert low[778 // step] == 5.0
    missing = np.array(method["missing"])
    assert np.abs(missing).sum() == 1001
    assert missing[4000 // step] == 1, "some of a column's frames"
    inside = slice(-(-6000 // step), 7000 // step)
    assert (missing[inside] == -step).all(), "all of them"
    assert np.isnan(low[inside]).all()
    assert np.isfinite(low[: 6000 // step]).all()


def test_frames_that_do_not_count_leave_a_gap(tmp_path: Path) -> None:
    frames = [3, 4, 5, 9]
    true, predicted = np.full(4, 3000.0), np.array([1e300, -1e300, 5.0, 6.0])
    (video,) = written(tmp_path, with_strip(frames, true, predicted))["videos"]
    assert (video["first"], video["step"], video["last"]) == (3, 1, 9)
    np.testing.assert_array_equal(
        np.isnan(decoded(video["true"])[0]), [False] * 3 + [True] * 3 + [False]
    )
    low = decoded(video["methods"][0]["predicted"])[0]
    assert np.isfinite(low[:3]).all(), "what is no focal length is still a number"
    assert low[6] == 6.0
    assert "missing" not in video["methods"][0]


def test_methods_with_other_videos(tmp_path: Path) -> None:
    """Each is shown with what it has."""
    one = with_strip([0, 1], np.full(2, 3000.0), np.full(2, 3000.0))
    data = written(tmp_path, one, SILENT)
    assert [video["name"] for video in data["videos"]] == ["v", *SILENT.videos]
    assert data["videos"][0]["methods"][1] == {}
    assert data["videos"][1]["methods"][0] == {}
    assert "true" not in data["videos"][-1], NO_FRAMES
    assert written(tmp_path)["methods"] == []


def test_the_whole_benchmark_is_below_5_mb(tmp_path: Path) -> None:
    """386 videos with 143 000 frames, of up to 15 methods, with gaps in most columns."""
    size = {"n_videos": 386, "n_frames": 371, "points": 30}
    one = made_up("method", 0.01, missing=slice(0, None, 3), **size)  # type: ignore[arg-type]
    path = tmp_path / "page.html"
    for n in (1, 7, 15):
        write_score_page(path, [replace(one, method=f"method {k}") for k in range(n)])
        assert path.stat().st_size < 5_000_000


def test_nowhere_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_score_page(tmp_path / "nowhere" / "page.html", [GOOD])


def texts(tab: Any, table: str, column: int) -> list[str]:
    return tab.locator(f"{table} tbody tr > :nth-child({column}) > .value").all_inner_texts()


CURVE = "(log) => { const { px, percent } = curves.figures.get(log).lines[0].data_source.data; \
return [Array.from(px), Array.from(percent)]; }"


@pytest.mark.system
def test_in_a_browser(page: Path) -> None:
    """Read, sort, switch the axis, read off, hide, filter, by pointer and by keys."""
    with open_page(page) as tab:
        # The table, and what was used
        ordered = in_order([GOOD, BAD, SILENT])
        assert texts(tab, "#table", 1) == ["good", NASTY, "silent"]
        for k, column in enumerate((4, 5, 6, 7, 2)):
            expected = [shown(numbers(one.overall)[k]) for one in ordered]
            assert texts(tab, "#table", column) == expected
        assert texts(tab, "#table", 3) == ["540 of 540", "390 of 540", "0 of 540"]
        assert "[41.2, 63.5]" in tab.inner_text("#table")
        assert "20 points (builtin)" in tab.inner_text("#used")
        assert len(texts(tab, "#groups", 1)) == 9

        # Sorting: missing numbers are last both ways
        fx = tab.locator("#table th").nth(3)
        fx.locator("button").click()
        assert fx.get_attribute("aria-sort") == "ascending"
        assert texts(tab, "#table", 1) == ["good", NASTY, "silent"]
        fx.locator("button").focus()
        tab.keyboard.press("Enter")
        assert fx.get_attribute("aria-sort") == "descending"
        assert texts(tab, "#table", 1) == [NASTY, "good", "silent"]
        tab.locator("#table th button").nth(1).click()
        assert texts(tab, "#table", 1) == ["good", NASTY, "silent"], "more is better here"

        # Curves: drawn as they were counted, on both axes
        tab.locator("#plot canvas").first.wait_for()
        tab.keyboard.press("l")
        assert tab.get_attribute("#axis", "aria-pressed") == "false"
        histogram = GOOD.overall.histogram
        for log, first in ((True, 0.1), (False, 0)):
            px, percent = (np.array(values) for values in tab.evaluate(CURVE, log))
            assert px[0] == first
            exact = np.interp(px, *histogram.curve())
            np.testing.assert_allclose(percent, 100 * exact, atol=1e-3)
        assert f"{shown(numbers(GOOD.overall)[-1])} % below 300 px" in tab.inner_text(
            ".legend >> nth=0"
        )

        # Read off
        box = tab.locator("#plot > :not([hidden])").bounding_box()
        assert box is not None
        tab.wait_for_function(NO_STOP_IN_A_FIGURE)
        tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert tab.evaluate("() => document.activeElement.id") == "chart", "which hears the keys"
        px, percent = below(tab)
        assert percent == pytest.approx(100 * histogram.share_below(px), abs=0.5)
        tab.click("#axis")
        tab.locator("#chart").focus()
        tab.keyboard.press("ArrowLeft")
        fewer, _ = below(tab)
        assert 0.93 * px < fewer < px, "the cursor stays where it is when the axis changes"
        tab.keyboard.press("Shift+ArrowRight")
        more, percent = below(tab)
        assert more > px
        assert percent == pytest.approx(100 * histogram.share_below(more), abs=0.5)

        # Videos: worst first, that without frames last
        def listed() -> list[str]:
            return tab.locator(".strip:not([hidden]) h3").all_text_contents()

        shares = {name: numbers(score)[-1] for name, score in GOOD.videos.items()}
        del shares[NO_FRAMES]
        assert listed() == [*sorted(shares, key=lambda name: shares[name]), NO_FRAMES]
        assert "No frame has" in tab.locator(".strip").last.text_content()
        tab.select_option("#by", "name")
        assert listed() == [*sorted(shares), NO_FRAMES]
        tab.keyboard.press("Tab")
        tab.locator("#axis").focus()
        tab.keyboard.press("/")
        tab.keyboard.type("CLIP-00")
        assert tab.inner_text("#count") == "6 of 7 videos"
        tab.keyboard.type("2")
        assert listed() == ["clip-002"]
        strip = tab.locator(".strip:not([hidden])")
        strip.locator("path[data-method='0']").wait_for(state="attached")
        assert strip.locator("path[data-method='1']").get_attribute("d").count("M") == 2, "a gap"
        assert strip.locator("path[data-method='2']").get_attribute("d") == "", "no prediction"
        assert strip.locator("path.none").count() == 2
        score = BAD.videos["clip-002"]
        words = f"fx error {shown(numbers(score)[0])} %, EPE < 300 px {shown(numbers(score)[-1])} %"
        assert f"{words}, 65 of 90 frames predicted" in strip.inner_text()
        tab.locator("#axis").focus()
        tab.keyboard.press("n")
        for _ in range(21):
            tab.keyboard.press("ArrowRight")
        of_good, of_bad = GOOD.strips["clip-002"], BAD.strips["clip-002"]
        assert np.isnan(of_bad.predicted_fx[20])
        assert strip.locator(".readout").inner_text() == (
            f"frame 40: true {of_good.true_fx[20]:.0f}; good {of_good.predicted_fx[20]:.0f}; "
            f"{NASTY} 1 without; silent 1 without"
        )

        assert tab.evaluate("() => location.hash") == "#clip-002"

        # Hidden methods leave both drawings, and what is read off
        tab.locator("#chart .legend input").nth(1).uncheck()
        drawn = "() => curves.figures.get(true).lines.map((line) => line.visible)"
        assert tab.evaluate(drawn) == [True, False, True]
        assert NASTY not in tab.inner_text("#chart .readout")
        assert strip.locator("path[data-method='1']").count() == 0


def below(tab: Any) -> tuple[int, float]:
    """What is read off the curves: a number of pixels, and the share of the first method."""
    said = re.match(r"below (\d+) px: good ([\d.]+) %", tab.inner_text("#chart .readout"))
    assert said is not None
    return int(said[1]), float(said[2])


@pytest.mark.system
def test_a_link_to_a_video(page: Path) -> None:
    with open_page(page, fragment="clip-003") as tab:
        assert tab.evaluate("() => document.activeElement.getAttribute('aria-label')") == "clip-003"
        tab.fill("#filter", "clip-004")
        tab.evaluate("() => { location.hash = 'clip-001'; }")
        tab.locator("[aria-label='clip-001']:focus").wait_for()


@pytest.mark.system
@pytest.mark.parametrize(("dark", "width"), SCHEMES_AND_WIDTHS)
def test_accessible(page: Path, dark: bool, width: int) -> None:
    with open_page(page, dark=dark, width=width) as tab:
        tab.locator("#plot canvas").first.wait_for()
        check_accessible(tab)
        check_lines_are_seen(tab)


@pytest.mark.system
def test_the_column_that_counts_is_seen_on_a_phone(page: Path) -> None:
    """Without scrolling sideways: methods, what they are ranked by, and of how many frames."""
    with open_page(page, width=390) as tab:
        heads = tab.locator("#table th[scope=col]")
        assert "EPE < 300 px" in heads.nth(1).inner_text()
        assert "frames predicted" in heads.nth(2).inner_text()
        for k in range(3):
            box = heads.nth(k).bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390


@pytest.mark.system
def test_no_scores_at_all(tmp_path: Path) -> None:
    write_score_page(tmp_path / "none.html", [])
    with open_page(tmp_path / "none.html", fragment="50%") as tab:
        assert tab.inner_text("#count") == "0 of 0 videos"
        check_accessible(tab)
