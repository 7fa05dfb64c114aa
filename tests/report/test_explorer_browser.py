"""The lens explorer in a browser: its numbers are the command line's, and it can be used."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from influx_wrap.annotate.clip import annotate_clip
from influx_wrap.cli import lut as lut_command
from influx_wrap.cli.main import main
from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import read_metadata, write_lens_metadata
from influx_wrap.formats.lut import read_table, write_table
from influx_wrap.lut import lens_table
from influx_wrap.lut.judge import favoured, judge_all
from influx_wrap.lut.lens_model import LensModel, make_lens_model, smooth_lens
from influx_wrap.lut.lookup import Status
from influx_wrap.lut.schemes import REGION_SCHEMES, SCHEMES, SMOOTH
from influx_wrap.lut.smooth.left_out import expected
from influx_wrap.model.intrinsics import NAMES, Intrinsics, unproject
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.table import Table
from influx_wrap.report.explorer import write_explorer
from tests.formats.camera_files import BLACKMAGIC, VENICE
from tests.lut.lenses import breathing_table
from tests.report.browser import (
    SCHEMES_AND_WIDTHS,
    check_accessible,
    check_lines_are_seen,
    open_page,
    settled,
)
from tests.report.lenses import ODD, holed, measured

pytestmark = pytest.mark.system

READ = """async () => {
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const number = (element) => element.dataset.value === undefined ? null
    : Number(element.dataset.value);
  const schemes = {};
  for (const cell of document.querySelectorAll("#answers td[data-scheme]")) {
    const one = schemes[cell.dataset.scheme] ??= { intrinsics: {}, sigma: {} };
    one.intrinsics[cell.dataset.name] = number(cell.querySelector(".value"));
    one.sigma[cell.dataset.name] = number(cell.querySelector(".sigma"));
  }
  for (const cell of document.querySelectorAll("#answers td[data-status-of]")) {
    schemes[cell.dataset.statusOf].status = cell.dataset.status;
  }
  const weights = [...document.querySelectorAll("#weights [data-vertex]")]
    .map((one) => ({ name: one.dataset.vertex, weight: number(one) }));
  return { schemes, weights, words: document.getElementById("words").textContent };
}"""


@dataclass(frozen=True)
class Lens:
    table: Table
    lut: Path
    page: Path


def made(folder: Path, table: Table) -> Lens:
    if len(table.names) >= 4:
        table = replace(table, smooth=smooth_lens(table).fit)
    lens = Lens(table, folder / "lut.json", folder / "lut.html")
    write_table(lens.lut, table)
    write_explorer(lens.page, table, judge_all(table))
    return lens


@pytest.fixture(scope="module")
def canon17(tmp_path_factory: pytest.TempPathFactory) -> Lens:
    return made(tmp_path_factory.mktemp("canon17"), measured())


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory) -> Lens:
    return made(tmp_path_factory.mktemp("holes"), holed())


@contextmanager
def explorer(page: Path, **options: Any) -> Iterator[Any]:
    with open_page(page, **options) as tab:
        tab.wait_for_function("() => plane.chart !== undefined")
        yield tab


def settle(tab: Any) -> None:
    """Wait until what was asked for is drawn."""
    tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def set_cursor(tab: Any, lfl_mm: float, fd_m: float) -> None:
    tab.fill("#lfl", repr(lfl_mm))
    tab.fill("#fd", "inf" if math.isinf(fd_m) else repr(fd_m))
    tab.press("#fd", "Enter")


def settings(table: Table, n: int) -> list[tuple[float, float]]:
    """Random ones inside, beyond and outside the table, infinity and its own among them."""
    rng = np.random.default_rng(7)
    lfl = np.exp(rng.uniform(*np.log([0.97 * table.lfl_mm.min(), 1.03 * table.lfl_mm.max()]), n))
    fd = 1 / rng.uniform(1e-3, 1.6 / table.fd_m.min(), n)
    fd[::9] = np.inf
    own = rng.choice(len(table.names), n // 10, replace=False)
    lfl[1::10], fd[1::10] = table.lfl_mm[own], table.fd_m[own]
    lfl[2], fd[2] = table.lfl_mm.max(), 0.2
    return list(zip(lfl.tolist(), fd.tolist(), strict=True))


def asked(lut: Path, lfl_mm: float, fd_m: float, scheme: str) -> dict[str, Any] | str:
    """What the command line answers, or its mistake."""
    words = ["lut", "query", str(lut), "--lfl-mm", repr(lfl_mm), "--fd-m", repr(fd_m)]
    result = CliRunner().invoke(main, [*words, "--scheme", scheme, "--json"])
    if result.exit_code == 0:
        return json.loads(result.output)
    assert result.exit_code == 2, result.output
    return result.output


def check_numbers(scheme: str, shown: dict[str, Any], answer: dict[str, Any]) -> None:
    """The smooth lens is interpolated in the page; the command solves its equations."""
    if scheme != SMOOTH:
        assert shown["intrinsics"] == pytest.approx(answer["intrinsics"], rel=1e-12)
        assert shown["sigma"] == pytest.approx(answer["sigma"], rel=1e-9, abs=1e-13)
        return
    assert shown["sigma"] == pytest.approx(answer["sigma"], rel=0.01)
    for name, value in answer["intrinsics"].items():
        # Coefficients may be zero: there, a thousandth of sigma is nothing.
        assert shown["intrinsics"][name] == pytest.approx(
            value, rel=1e-6, abs=1e-3 * answer["sigma"][name]
        )


@pytest.mark.parametrize(("which", "n"), [("canon17", 100), ("holes", 20)])
def test_values_are_those_of_the_command_line(
    which: str, n: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lens: Lens = request.getfixturevalue(which)
    # The command makes the same of the same file for every setting: once is enough here.
    table = read_table(lens.lut)
    monkeypatch.setattr(lut_command, "read_table", lambda _: table)
    model = cache(lambda scheme: make_lens_model(table, scheme))
    monkeypatch.setattr(lens_table, "make_lens_model", lambda _, scheme, **_options: model(scheme))
    met = set()
    with explorer(lens.page) as tab:
        tab.select_option("#show", "none")
        for k, (lfl_mm, fd_m) in enumerate(settings(lens.table, n)):
            chosen = SCHEMES[4 * k // n]
            if k == 0 or chosen != SCHEMES[4 * (k - 1) // n]:
                tab.select_option("#scheme", chosen)
            set_cursor(tab, lfl_mm, fd_m)
            seen = tab.evaluate(READ)
            for scheme in SCHEMES:
                answer, shown = asked(lens.lut, lfl_mm, fd_m, scheme), seen["schemes"][scheme]
                met.add(shown["status"])
                if isinstance(answer, str):
                    expected = "lfl_outside" if "outside the table" in answer else "unusable"
                    assert shown["status"] == expected
                    assert set(shown["intrinsics"].values()) == {None}
                    continue
                assert shown["status"] == answer["status"]
                check_numbers(scheme, shown, answer)
                if scheme == chosen:
                    names = [vertex["name"] for vertex in answer["vertices"]]
                    assert [vertex["name"] for vertex in seen["weights"]] == names
                    assert [vertex["weight"] for vertex in seen["weights"]] == pytest.approx(
                        [vertex["weight"] for vertex in answer["vertices"]], abs=1e-12
                    )
    assert met == {"interpolated", "extrapolated", "lfl_outside", "unusable"}


def test_what_the_camera_sees(canon17: Lens) -> None:
    table = canon17.table
    with explorer(canon17.page) as tab:
        for lfl_mm, fd_m in ((17.0, 0.9), (50.0, math.inf), (120.0, 3.0)):
            set_cursor(tab, lfl_mm, fd_m)
            settle(tab)
            values = smooth_lens(table).query([lfl_mm], [fd_m]).intrinsics[0]
            camera, (width, height) = Intrinsics.from_array(values), table.image_size
            left, right, top, bottom = -0.5, width - 0.5, -0.5, height - 0.5
            x, y = (width - 1) / 2, (height - 1) / 2
            pairs = {
                "horizontal": ((left, y), (right, y)),
                "vertical": ((x, top), (x, bottom)),
            }
            for name, pair in pairs.items():
                rays, valid = unproject(camera, pair)
                assert valid.all()
                rays = np.column_stack([rays, np.ones(2)])
                rays /= np.linalg.norm(rays, axis=1)[:, None]
                expected = np.degrees(np.arccos(rays[0] @ rays[1]))
                assert float(tab.get_attribute(f"#fov-{name}", "data-value")) == pytest.approx(
                    expected, rel=1e-8
                )
            cfl_mm = 1e-3 * table.pixel_um[0] * (values[0] + values[1]) / 2
            assert float(tab.get_attribute("#cfl", "data-value")) == pytest.approx(cfl_mm)
            pixels = np.stack(
                np.meshgrid(np.linspace(left, right, 25), np.linspace(top, bottom, 25)), -1
            )
            rays, valid = unproject(camera, pixels)
            assert valid.all()
            moved = np.linalg.norm(rays * values[:2] + values[2:4] - pixels, axis=-1).max()
            assert float(tab.get_attribute("#displacement", "data-value")) == pytest.approx(moved)
            assert tab.locator("#fold").is_hidden()


def test_a_table_of_little_use(tmp_path: Path) -> None:
    """Its polynomial folds, and only in 1 / FD do four of its experiments enclose the fifth."""
    table = breathing_table("canon17").rows(np.arange(5))
    lfl_mm = np.array([20.0, 20.0, 40.0, 40.0, 30.0])
    fd_m = np.array([1.0, 100.0, 10.0, 100.0, 3.0])
    table = replace(table, lfl_mm=lfl_mm, fd_m=fd_m)
    table.values[:, 4] = -1.6 * (table.lfl_mm / 17) ** 2
    table.values[:, 5] = 0
    with explorer(made(tmp_path, table).page) as tab:
        assert "folds inside the picture" in tab.inner_text("#fold")
        assert tab.inner_text("#fov-diagonal") == "no ray reaches the rim"
        assert "Others enclose 1 of 5 experiments" in tab.inner_text("#left-out-words")
        for scheme, n in zip(SCHEMES, (32, 0, 24, 24), strict=True):
            cells = tab.locator(f"#left-out-table td[data-scheme='{scheme}']")
            assert cells.count() == (32 if scheme == SMOOTH else 24)
            known = tab.locator(f"#left-out-table td[data-scheme='{scheme}'][data-value]")
            assert known.count() == n


def test_pointer_keys_and_address(canon17: Lens) -> None:
    with explorer(canon17.page) as tab:
        state = "() => [state.lfl, state.fd, state.pinned]"
        box = tab.locator("#plane").bounding_box()
        assert box is not None
        at = [box["x"] + 0.4 * box["width"], box["y"] + 0.4 * box["height"]]

        # The cursor follows the pointer until a click pins it
        before = tab.evaluate(state)
        tab.mouse.move(*at)
        tab.mouse.move(at[0] + 2, at[1])
        settle(tab)
        lfl, fd, pinned = tab.evaluate(state)
        assert [lfl, fd] != before[:2]
        assert not pinned
        assert tab.input_value("#lfl") == str(lfl)
        tab.mouse.click(*at)
        tab.wait_for_function("() => state.pinned")
        at_pin = tab.evaluate(state)
        tab.mouse.move(at[0] + 90, at[1])
        settle(tab)
        assert tab.evaluate(state) == at_pin
        assert tab.get_attribute("#pin", "aria-pressed") == "true"
        tab.wait_for_function("() => location.hash.includes('lfl=')")

        # Keys: small steps, large steps, experiments, scheme, axis, free again
        tab.locator("#plane-keys").focus()
        tab.keyboard.press("ArrowRight")
        nearer, far = at_pin[1], tab.evaluate("() => state.fd")
        assert far > nearer
        tab.keyboard.press("Shift+ArrowRight")
        assert 1 / far - 1 / tab.evaluate("() => state.fd") > 5 * (1 / nearer - 1 / far)
        tab.keyboard.press("ArrowUp")
        assert tab.evaluate("() => state.lfl") > at_pin[0]
        for _ in range(30):
            tab.keyboard.press("Shift+ArrowRight")
        settle(tab)
        assert tab.evaluate("() => state.fd") == math.inf
        assert tab.input_value("#fd") == "inf"
        assert "Extrapolated" in tab.inner_text("#words")
        tab.keyboard.press("n")
        settle(tab)
        assert tab.input_value("#experiment") == canon17.table.names[0]
        assert f"At experiment {canon17.table.names[0]} (board)" in tab.inner_text("#words")
        tab.keyboard.press("p")
        settle(tab)
        assert tab.input_value("#experiment") == canon17.table.names[-1]
        for scheme in ("paper", "disparity"):
            tab.keyboard.press("s")
            assert tab.input_value("#scheme") == scheme
        tab.keyboard.press("a")
        assert tab.input_value("#axis") == "log"
        tab.keyboard.press("Escape")
        settle(tab)
        assert tab.get_attribute("#pin", "aria-pressed") == "false"
        tab.wait_for_function("() => !location.hash.includes('lfl=')")

        # A vertex is a place to go to
        set_cursor(tab, 40.0, 2.0)
        settle(tab)
        tab.locator("#weights button").nth(1).focus()
        for _ in range(2):
            tab.keyboard.press("a")
            settle(tab)
            assert tab.evaluate("() => document.activeElement.matches('li:nth-child(2) > button')")
        name = tab.get_attribute("#weights [data-vertex]", "data-vertex")
        tab.locator("#weights button").first.click()
        settle(tab)
        assert tab.input_value("#experiment") == name

        # What is typed and is no number
        tab.fill("#fd", "far")
        tab.press("#fd", "Enter")
        assert tab.get_attribute("#fd", "aria-invalid") == "true"
        assert "number of metres or inf" in tab.inner_text("#words")
        tab.locator("#plane-keys").focus()
        assert tab.input_value("#fd") == "far"
        set_cursor(tab, 12.0, 2.0)
        settle(tab)
        assert "runs from 17 to 120 mm" in tab.inner_text("#words")
        assert tab.get_attribute("#fd", "aria-invalid") is None
        assert tab.evaluate("() => explorer.answer(12, 2).intrinsics") is None

        # The address holds it all, and the way back
        set_cursor(tab, 35.0, 2.4)
        tab.select_option("#show", label="sigma of k1")
        tab.wait_for_function("() => location.hash.includes('lfl=35&fd=2.4')")
        wanted = "lfl=35&fd=2.4&scheme=disparity&show=sigma-k1&axis=log"
        tab.wait_for_function(f"() => location.hash === '#{wanted}'")
        set_cursor(tab, 60.0, math.inf)
        tab.wait_for_function("() => location.hash.includes('lfl=60&fd=inf')")
        tab.go_back()
        tab.wait_for_function("() => state.lfl === 35 && state.fd === 2.4")
        settle(tab)
        assert "35 mm, 2.4 m" in tab.inner_text("#words")
        tab.click("#pin")
        tab.wait_for_function("() => location.hash.startsWith('#scheme=disparity')")
        tab.go_back()
        tab.wait_for_function("() => state.pinned")
        tab.go_forward()
        tab.wait_for_function("() => !state.pinned && state.lfl !== 35")
        assert tab.input_value("#scheme") == "disparity"
        tab.click("#pin")
        tab.wait_for_function("() => location.hash.includes('lfl=')")
    with explorer(canon17.page, fragment=wanted) as tab:
        assert tab.evaluate(state) == [35, 2.4, True]
        assert tab.input_value("#show") == "sigma-4"
        assert tab.input_value("#axis") == "log"
    with explorer(canon17.page, fragment="lfl=nonsense&scheme=none&show=&axis=constructor") as tab:
        assert tab.input_value("#scheme") == "smooth"
        assert tab.input_value("#show") == "corner-0"


def test_everything_can_be_shown(holes: Lens) -> None:
    with explorer(holes.page) as tab:
        for axis in ("inverse", "log"):
            tab.select_option("#axis", axis)
            for value in tab.eval_on_selector_all("#show option", "all => all.map((o) => o.value)"):
                tab.select_option("#show", value)
                has_bar = tab.locator("#bar .colours").count() == 1
                assert has_bar == (value != "none")
        tab.select_option("#show", "left-0")
        tab.select_option("#scheme", "paper")
        judgement = judge_all(holes.table)[0]
        row = int(np.flatnonzero(judgement.left_out.judged)[0])
        sizes = tab.evaluate("() => plane.experiments.data.marker")
        assert sizes.count("x") == len(holes.table.names) - judgement.judged
        assert sizes[row] != "x"


def test_leaving_one_out(holes: Lens) -> None:
    with explorer(holes.page) as tab:
        judgements = judge_all(holes.table)
        for judgement in judgements:
            for kind, values in (
                ("median", judgement.median),
                ("largest", judgement.largest),
                ("in 1 sigma", judgement.within),
            ):
                cells = f"td[data-scheme='{judgement.scheme}'][data-kind='{kind}']"
                found = tab.eval_on_selector_all(cells, "all => all.map((c) => +c.dataset.value)")
                np.testing.assert_allclose(found, values, rtol=1e-12)
        best = favoured(judgements)
        assert best is not None
        assert f"{best.judged} of 40 experiments" in tab.inner_text("#left-out-words")
        tab.locator("#left-out-maps").scroll_into_view_if_needed()
        tab.wait_for_function("() => leftOutSources.length === 4")
        tab.select_option("#left-out-of", "4")
        tab.locator("#left-out-list summary").click()
        rows = tab.locator("#left-out-list tbody tr")
        rows.first.wait_for()
        assert rows.count() == 40


def test_sigma_at_the_corner(canon17: Lens) -> None:
    """That of the radius at which the corner's direction is seen, by numeric derivatives."""
    lens = smooth_lens(canon17.table)
    width, height = canon17.table.image_size
    corner = math.hypot(width, height) / 2
    with explorer(canon17.page) as tab:
        for lfl_mm, fd_m in ((20.0, 1.0), (50.0, math.inf), (100.0, 2.5)):
            answers = lens.query([lfl_mm], [fd_m])
            covariance = lens.covariance(answers, np.array([lfl_mm]), np.array([fd_m]))[0]
            theta = answers.intrinsics[0]
            away = corner / math.sqrt(theta[0] * theta[1])

            def seen(theta: Any, away: float = away) -> float:
                focal, r2 = math.sqrt(theta[0] * theta[1]), away**2
                return focal * away * (1 + theta[4] * r2 + theta[5] * r2**2)

            half = 1e-6 * np.maximum(np.abs(theta), 1e-3)
            slope = [(seen(theta + d) - seen(theta - d)) / (2 * d.sum()) for d in np.diag(half)]
            set_cursor(tab, lfl_mm, fd_m)
            settle(tab)
            found = float(tab.get_attribute("#corner-words", "data-value"))
            assert found == pytest.approx(math.sqrt(slope @ covariance @ slope), rel=0.01)
            percent = float(tab.get_attribute("#paper-words", "data-value"))
            table = make_lens_model(canon17.table, "paper").query([lfl_mm], [fd_m])
            ratio = table.intrinsics[0, 0] / theta[0]
            assert percent == pytest.approx(100 * (ratio - 1), abs=1e-6)


def test_focus_breathing(canon17: Lens) -> None:
    lens = smooth_lens(canon17.table)
    pitch_mm = 1e-3 * np.array(canon17.table.pixel_um)
    with explorer(canon17.page) as tab:
        set_cursor(tab, 50.0, 2.0)
        settle(tab)
        far = lens.query([50.0], [math.inf]).intrinsics[0]
        cfl_mm = math.sqrt(np.prod(far[:2] * pitch_mm))
        found = float(tab.get_attribute("#breathing-words", "data-value"))
        assert found == pytest.approx(cfl_mm, rel=1e-6)
        assert "longer at" in tab.inner_text("#breathing-words")
        tab.locator("#breathing-own").scroll_into_view_if_needed()
        tab.wait_for_function("() => breathing.own !== undefined")
        line = tab.evaluate("() => breathing.line.data")
        fd = [math.inf if u == 0 else -1 / u for u in line["x"]]
        values = lens.query(np.full(len(fd), 50.0), fd).intrinsics[:, :2]
        wanted = np.sqrt(np.prod(values * pitch_mm, axis=1))
        np.testing.assert_allclose(line["y"], wanted, rtol=1e-6)
        assert len(tab.evaluate("() => breathing.paper.data.x")) > 50
        assert tab.evaluate("() => breathing.lines.data.xs.length") == 5
        set_cursor(tab, 300.0, 2.0)
        settle(tab)
        assert tab.inner_text("#breathing-words") == ""


@dataclass(frozen=True)
class Proposal:
    lfl_mm: float
    fd_m: float
    target: str
    gain_px: float


def test_odd_experiments_and_those_to_add(tmp_path: Path) -> None:
    table = ODD["a contradiction"]()
    proposals = [Proposal(30.0, 2.0, "a0", 1.5), Proposal(60.0, math.inf, "drone", 0.3)]
    write_explorer(tmp_path / "lut.html", table, judge_all(table), proposals)
    said, name = expected(smooth_lens(table)), table.names[11]
    k = int(np.abs(said.z[11]).argmax())
    with explorer(tmp_path / "lut.html") as tab:
        item = tab.locator("#odd-list li")
        assert item.count() == 1
        assert float(item.get_attribute("data-z")) == pytest.approx(said.z[11, k])
        text = item.inner_text()
        assert text.startswith(f"{name}: {NAMES[k]} is {table.values[11, k]:.2f} px, the others")
        assert f"{said.values[11, k]:.2f}" in text
        assert "set aside" in text
        item.locator("button").click()
        settle(tab)
        assert tab.input_value("#experiment") == name
        assert "the others say" in tab.inner_text("#words")
        assert "39 of 40" in tab.inner_text("#weights")
        tab.select_option("#show", label="largest z-score")
        marks = "() => [plane.odd.data.text, plane.experiments.data.marker[11]]"
        assert tab.evaluate(marks) == [[name], "x"]
        assert tab.evaluate("() => plane.proposals.data.text") == ["+1", "+2"]
        assert "1.5 px smaller" in tab.inner_text("#proposals")
        tab.locator("#proposals button").nth(1).click()
        settle(tab)
        assert tab.input_value("#fd") == "inf"
        tab.select_option("#scheme", "paper")
        assert tab.evaluate(marks)[0] == []
        assert tab.locator("#bar .colours").count() == 0
        check_accessible(tab)


def walk_of(n: int, *, listed: slice = slice(None)) -> LensMetadata:
    """A clip that zooms and focuses through the table, beyond it, to infinity and outside."""
    frame = np.arange(n)
    lfl = 17 * (122 / 17) ** (0.5 - 0.5 * np.cos(0.05 * frame))
    nearness = 0.62 + 0.64 * np.sin(0.031 * frame)
    with np.errstate(divide="ignore"):
        fd = np.where(nearness > 0.01, 1 / np.maximum(nearness, 0), np.inf)
    lfl[7], fd[9], lfl[11], fd[11] = np.nan, np.nan, np.nan, np.nan
    return LensMetadata(frame[listed], lfl[listed], fd[listed])


def as_influx(path: Path, metadata: LensMetadata) -> None:
    frames: dict[str, object] = {
        str(frame): {"focal_length_mm": lfl, "focus_distance_m": fd}
        for frame, lfl, fd in zip(
            metadata.frame.tolist(), metadata.lfl_mm.tolist(), metadata.fd_m.tolist(), strict=True
        )
    }
    frames["9"] = {"focal_length_mm": 30.0, "focus_distance_m": None}
    frames["10"] = {"focal_length_mm": 30.0, "focus_distance_m": -0.001}
    frames["12"] = {"focal_length_mm": 30.0, "focus_distance_m": "inf"}
    path.write_text(json.dumps({"frames": frames, "title": 'of "NaN" and Infinity'}))


def as_reference_tool(path: Path, metadata: LensMetadata) -> None:
    def told(value: float, factor: float) -> float | None:
        return None if math.isnan(value) else -1 if math.isinf(value) else factor * value

    frames = []
    for k, (lfl, fd) in enumerate(
        zip(metadata.lfl_mm.tolist(), metadata.fd_m.tolist(), strict=True)
    ):
        unit = ("lensFocusDistanceMetric", 1e3) if k % 5 else ("lensFocusDistanceImperial", 4e4)
        state = {"lensFocalLength": told(lfl, 1e3), unit[0]: told(fd, unit[1])}
        payload = None if k == 20 else state
        sets = [None, {"metadataSetName": "Lens State", "metadataSetPayload": payload}]
        frames.append({"frameId": str(100 + k), "frameBasedMetadataSets": sets})
    path.write_text(json.dumps({"frameBasedMetadata": {"frames": frames}}))


def as_meta_extract(path: Path, metadata: LensMetadata) -> None:
    lines = ["Index\tLens Focal Length\tLens Distance Unit\tLens Focus Distance\tLens Model"]
    for k, (lfl, fd) in enumerate(
        zip(metadata.lfl_mm.tolist(), metadata.fd_m.tolist(), strict=True)
    ):
        unit = ("Meter", "feet", "INCH", "mm")[k % 4]
        far = (
            "--"
            if math.isnan(fd)
            else ("-1", "Infinite")[k % 2]
            if math.isinf(fd)
            else repr(fd * (1000 if unit == "mm" else 1))
        )
        # Two frames are left out.
        index = k if k < 60 else k + 2
        lines.append(f"{index}\t{'--' if math.isnan(lfl) else repr(lfl)}\t{unit}\t{far}\t--")
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig")


FILES: dict[str, Callable[[Path, LensMetadata], None]] = {
    "own.csv": write_lens_metadata,
    "per_frame_metadata.json": as_influx,
    "clip.json": as_reference_tool,
    "extracted.csv": as_meta_extract,
}

CLIP = """(scheme) => {
  const clip = explorer.clip();
  if (clip === null) return null;
  const numbers = Object.fromEntries(["frame", "lfl", "fd"].map((k) => [k, [...clip[k]]]));
  const { values, sigmas, status } = answersOf(scheme);
  return { ...numbers, values: [...values], sigmas: [...sigmas], status: [...status] };
}"""

DROP = """([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true,
      cancelable: true }));
    if (kind === "dragenter") window.wasShown = !document.getElementById("drop").hidden;
  }
}"""


TWO_FILES = """async (text) => {
  const [slow, quick] = ["slow.csv", "quick.csv"].map((name) => new File([text], name));
  slow.arrayBuffer = async () => {
    await new Promise((done) => setTimeout(done, 60));
    return new Blob([text]).arrayBuffer();
  };
  await Promise.all([takeFiles([slow]), takeFiles([quick])]);
}"""


@cache
def model_of(table: Table, scheme: str) -> LensModel:
    return make_lens_model(table, scheme)


def test_metadata_of_all_kinds(holes: Lens, tmp_path: Path) -> None:
    with explorer(holes.page) as tab:
        for k, (name, write) in enumerate(FILES.items()):
            write(tmp_path / name, walk_of(150, listed=slice(k % 2 * 3, None)))
            if k % 2:
                tab.evaluate(DROP, [name, (tmp_path / name).read_text(encoding="utf-8-sig")])
                assert tab.evaluate("() => wasShown")
                assert tab.locator("#drop").is_hidden()
            else:
                tab.set_input_files("#file", tmp_path / name)
            tab.wait_for_function(f"() => explorer.clip()?.name === '{name}'")
            read = read_metadata(tmp_path / name)
            for scheme in SCHEMES:
                found = tab.evaluate(CLIP, scheme)
                truth = annotate_clip(read, model_of(holes.table, scheme)).truth
                assert found["frame"] == read.frame.tolist()
                np.testing.assert_array_equal(np.array(found["lfl"], float), read.lfl_mm)
                np.testing.assert_array_equal(np.array(found["fd"], float), read.fd_m)
                values = np.array(found["values"], float).reshape(-1, 8)
                close = 1e-6 if scheme == SMOOTH else 1e-12
                np.testing.assert_allclose(values, truth.intrinsics, rtol=close, atol=close)
                sigmas = np.array(found["sigmas"], float).reshape(-1, 8)
                assert truth.sigma is not None
                close = 0.01 if scheme == SMOOTH else 1e-9
                np.testing.assert_allclose(sigmas, truth.sigma, rtol=close, atol=1e-13)
                status = np.array(found["status"])
                np.testing.assert_array_equal(status == 0, truth.is_interpolated)
                np.testing.assert_array_equal(status == 4, ~read.told)
                assert {0, 1, 4} <= set(found["status"])


def test_walking_through_a_clip(canon17: Lens, tmp_path: Path) -> None:
    metadata = walk_of(200)
    metadata = metadata.some(np.isin(metadata.frame, [60, 61, 62], invert=True))
    write_lens_metadata(tmp_path / "clip.csv", metadata)
    with explorer(canon17.page) as tab:
        tab.set_input_files("#file", tmp_path / "clip.csv")
        tab.wait_for_function("() => timeline.chart !== undefined")
        answers = smooth_lens(canon17.table).query(metadata.lfl_mm, metadata.fd_m)
        told = metadata.told
        counts = {
            "0": (told & (answers.status == 0)).sum(),
            "1": (told & (answers.status == 1)).sum(),
            "2": (told & (answers.status == 2)).sum(),
            "4": (~told).sum(),
            "unlisted": 3,
        }
        for status, count in counts.items():
            item = tab.locator(f"#counts [data-status='{status}']")
            assert int(item.get_attribute("data-value")) == count
        assert "goes nowhere" in tab.inner_text("#clip")

        # The cursor follows the frames, by slider and by keys
        tab.locator("#frame").focus()
        for _ in range(3):
            tab.keyboard.press("ArrowRight")
        settle(tab)
        assert tab.evaluate("() => state.lfl") == metadata.lfl_mm[3]
        assert "3, interpolated" in tab.inner_text("#frame-words")
        for _ in range(4):
            tab.keyboard.press(".")
        settle(tab)
        assert "the lens did not tell its focal length" in tab.inner_text("#words")
        tab.keyboard.press(",")
        tab.keyboard.press(">")
        settle(tab)
        assert tab.evaluate("() => [place, state.fd]") == [31, metadata.fd_m[31]]
        tab.keyboard.press("Shift+Period")
        assert tab.evaluate("() => place") == 56
        german = {"key": ";", "code": "Comma", "shiftKey": True, "bubbles": True}
        tab.dispatch_event("#frame", "keydown", german)
        assert tab.evaluate("() => place") == 31
        tab.keyboard.press("Escape")
        assert not tab.evaluate("() => state.pinned")
        box = tab.locator("#time").bounding_box()
        assert box is not None
        tab.locator("#time").scroll_into_view_if_needed()
        tab.locator("#time").click(position={"x": box["width"] - 20, "y": box["height"] / 2})
        tab.wait_for_function("() => place > 180")
        for k in range(8):
            tab.select_option("#over-time", str(k))
        tab.select_option("#scheme", "thin-lens")
        tab.evaluate("() => goTo(7)")
        tab.click("#forget")
        assert tab.locator("#clip-shown").is_hidden()
        settle(tab)
        assert "Interpolated at" in tab.inner_text("#words")
        assert tab.evaluate("() => document.activeElement.id") == "file"

        # A hundred thousand frames, and one
        rng = np.random.default_rng(2)
        n = 100_000
        long = LensMetadata(
            np.arange(n), 17 + 100 * rng.uniform(size=n), np.exp(rng.uniform(0, 3, n))
        )
        write_lens_metadata(tmp_path / "long.csv", long)
        tab.set_input_files("#file", tmp_path / "long.csv")
        tab.wait_for_function("() => explorer.clip()?.name === 'long.csv'")
        assert "100000 frames" in tab.inner_text("#clip-words")
        assert tab.evaluate("() => timeline.lines[0].data.x.length") < 5_000
        assert tab.evaluate("() => plane.path[0].data.x.length") < 6_000
        tab.evaluate(DROP, ["one.csv", "frame,lfl_mm,fd_m\n5,20,inf\n"])
        tab.wait_for_function("() => explorer.clip()?.name === 'one.csv'")
        tab.keyboard.press(".")
        settle(tab)
        assert "5, extrapolated" in tab.inner_text("#frame-words")
        stays = "() => plane.stays.map(({ data }) => data.x.length)"
        assert tab.evaluate(stays) == [0, 1], "a point, not a line that nobody sees"
        tab.evaluate(DROP, ["other.csv", "frame,lfl_mm,fd_m\n0,300,2\n"])
        tab.wait_for_function("() => explorer.clip()?.name === 'other.csv'")
        assert "Is this the table of its lens?" in tab.inner_text("#clip-words")

        # Whichever is read first, the file that was given last is shown
        tab.evaluate(TWO_FILES, "frame,lfl_mm,fd_m\n0,20,2\n1,20,2\n")
        assert tab.evaluate("() => explorer.clip().name") == "quick.csv"
        assert tab.evaluate(stays) == [1, 0]


def reference_tool(*frames: object) -> str:
    return json.dumps({"frameBasedMetadata": {"frames": frames}})


def influx(frames: object) -> str:
    return json.dumps({"frames": frames})


def extracted(unit: str, fd: str, lfl: str) -> str:
    columns = ("Lens Distance Unit", "Lens Focus Distance", "Lens Focal Length")
    return "\t".join(columns) + f"\n{unit}\t{fd}\t{lfl}\n"


NO_METADATA = [
    "frame,lfl_mm,fd_m\n",
    "frame,lfl_mm,fd_m\n0,20,3\n1,20\n",
    "frame,lfl_mm,fd_m\n0,20,3\n\n0,20,3\n",
    "frame,lfl_mm,fd_m\n0.5,20,3\n",
    "frame,lfl_mm,fd_m\n0,nan,3\n",
    "frame,lfl_mm,fd_m\n0,inf,3\n",
    "frame,lfl_mm,fd_m\n0,20,-3\n",
    "frame,lfl_mm,fd_m\n0,20mm,3\n",
    influx({}),
    influx({"a": {}}),
    influx({"0": 3}),
    influx({"1": {}, "01": {}}),
    influx({"0": {"focal_length_mm": "wide"}}),
    influx({"0": {"focal_length_mm": -1}}),
    influx({"0": {"focus_distance_m": -3}}),
    influx({"0": {"focal_length_mm": math.inf}}),
    reference_tool({"frameId": 3, "frameBasedMetadataSets": []}),
    reference_tool(3),
    extracted("Parsec", "4", "40"),
    extracted("Meter", "4m", "40"),
    extracted("Meter", "4", "-40"),
    extracted("Meter", "nan", "40"),
    extracted("mm", "0.5", "40"),
    "Lens Focal Length\tLens Focus Distance\n1\t2\n",
    "Lens Focal Length\tLens Focus Distance\tLens Distance Unit\n1\t2\n",
    "Lens Focal Length\tLens Focus Distance\tLens Distance Unit\n",
    "Lens Focal Length\tLens Distance Unit\tLens Focus Distance\tNote\n1\tMeter\t2\n",
]
OF_OTHERS = ["", "lfl,fd\n1,2\n", '{"clips": []}', VENICE, BLACKMAGIC, "[]"]
"""What the page refuses and tells where to go with, whether it is metadata or not."""


def test_files_that_are_no_metadata(holes: Lens, tmp_path: Path) -> None:
    """The page says what the command line says."""
    with explorer(holes.page) as tab:
        for text in NO_METADATA:
            path = tmp_path / "clip"
            path.write_text(text)
            with pytest.raises(InputError) as error:
                read_metadata(path)
            said = str(error.value).replace(str(path), "clip").replace("frames: frames", "frames")
            tab.evaluate("() => { document.getElementById('clip-words').textContent = ''; }")
            tab.set_input_files("#file", path)
            tab.wait_for_function(
                "() => !['', 'Reading clip \u2026']"
                ".includes(document.getElementById('clip-words').textContent)"
            )
            assert tab.inner_text("#clip-words") == said
        for text in OF_OTHERS:
            path.write_text(text)
            tab.evaluate("() => { document.getElementById('clip-words').textContent = ''; }")
            tab.set_input_files("#file", path)
            tab.wait_for_function(
                "() => document.getElementById('clip-words').textContent.includes("
                "'influx-calib annotate reads')"
            )
        for text, words in (
            (b'{"frames": {', "this is not JSON"),
            (b"\xff\xfe\x00", "not a text file in UTF-8"),
        ):
            path.write_bytes(text)
            tab.set_input_files("#file", path)
            tab.wait_for_function(
                f"() => document.getElementById('clip-words').textContent.includes('{words}')"
            )
        assert tab.evaluate("() => explorer.clip()") is None


@pytest.mark.parametrize("name", ODD)
def test_odd_tables(tmp_path: Path, name: str) -> None:
    table = ODD[name]()
    # As measured focal lengths are: no round numbers.
    table = replace(table, lfl_mm=1.00156789 * table.lfl_mm)
    lens = made(tmp_path, table)
    with explorer(lens.page) as tab:
        schemes = SCHEMES if len(table.names) >= 4 else REGION_SCHEMES
        assert tab.input_value("#scheme") == schemes[0]
        for scheme in schemes:
            tab.select_option("#scheme", scheme)
            model = make_lens_model(lens.table, scheme)
            close = 1e-6 if scheme == SMOOTH else 1e-12
            for lfl_mm, fd_m in (
                (float(table.lfl_mm[0]), float(table.fd_m[0])),
                (float(table.lfl_mm.mean()), float(table.fd_m.mean())),
                (float(table.lfl_mm.mean()), math.inf),
            ):
                set_cursor(tab, lfl_mm, fd_m)
                found = tab.evaluate(READ)["schemes"][scheme]
                answers = model.query([lfl_mm], [fd_m])
                wanted = answers.intrinsics[0].tolist()
                shown = [found["intrinsics"][n] for n in NAMES]
                assert shown == pytest.approx(wanted, rel=close, abs=close)
                assert found["status"] == Status(int(answers.status[0])).name.lower()
        for show in ("sigma-0", "left-0", "none"):
            tab.select_option("#show", show)
        tab.locator("#plane-keys").focus()
        tab.keyboard.press("n")
        tab.keyboard.press("ArrowLeft")
        settle(tab)
        middle = "fromPlane(-0.4 / nearest, (vRange[0] + vRange[1]) / 2)"
        pointed = tab.evaluate(f"() => explorer.answer(...{middle}).status")
        assert pointed in ("interpolated", "extrapolated")
        nothing = "nothing to judge" in tab.inner_text("#left-out-words")
        assert tab.locator("#left-out").is_hidden() == (len(table.names) < 4)
        assert nothing == (favoured(judge_all(table)) is None)
        said = tab.inner_text("#measured")
        assert said.startswith("No experiment has a covariance") == (name == "no covariances")
        between = "#answers td:not([data-scheme=smooth]) .sigma"
        told = [text.strip() for text in tab.locator(between).all_inner_texts()]
        assert (set(told) == {"± ?"}) == (name == "no covariances")
        assert "± NaN" not in told
        check_accessible(tab)


@pytest.mark.parametrize(("dark", "width"), SCHEMES_AND_WIDTHS)
def test_accessible(holes: Lens, tmp_path: Path, dark: bool, width: int) -> None:
    write_lens_metadata(tmp_path / "clip.csv", walk_of(100))
    with explorer(holes.page, dark=dark, width=width) as tab:
        tab.set_input_files("#file", tmp_path / "clip.csv")
        tab.wait_for_function("() => timeline.chart !== undefined")
        tab.locator("#left-out-maps").scroll_into_view_if_needed()
        tab.wait_for_function("() => leftOutSources.length === 4")
        tab.locator("#left-out-list summary").click()
        check_accessible(tab)
        check_lines_are_seen(tab)


CROSS = """() => {
  const { x_scale, y_scale } = plane.chart.view.frame, { range } = axis();
  const canvas = plane.chart.view.canvas_view.el.getBoundingClientRect();
  const [u, v] = toPlane(state.lfl, state.fd);
  const [x, y] = [canvas.x + x_scale.compute(u), canvas.y + y_scale.compute(v)];
  const along = (low, high, k) => low + (high - low) * k / 21;
  const shares = Array.from({ length: 20 }, (_, k) => k + 1);
  return [...shares.map((k) => [x, canvas.y + y_scale.compute(along(...vRange, k))]),
    ...shares.map((k) => [canvas.x + x_scale.compute(along(...range, k)), y])];
}"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("scheme", ["smooth", "paper"])
def test_the_cursor_is_seen_on_every_colour(canon17: Lens, dark: bool, scheme: str) -> None:
    """In the picture of the plane: across the cursor's lines is a contrast of 3, wherever."""
    address = f"lfl=45&fd=3.3&scheme={scheme}&show=fx&axis=inverse"
    with explorer(canon17.page, dark=dark, fragment=address) as tab:
        settle(tab)
        tab.wait_for_timeout(500)
        places = tab.evaluate(CROSS)
        with Image.open(io.BytesIO(tab.screenshot())) as picture:
            pixels = np.asarray(picture.convert("RGB")) / 255
    linear = np.where(pixels <= 0.04045, pixels / 12.92, ((pixels + 0.055) / 1.055) ** 2.4)
    light = linear @ [0.2126, 0.7152, 0.0722] + 0.05
    for x, y in places:
        near = light[round(y) - 3 : round(y) + 4, round(x) - 3 : round(x) + 4]
        assert near.max() / near.min() >= 3, (x, y)


def test_on_paper(holes: Lens, tmp_path: Path) -> None:
    """All figures with their scales, and the table that is folded away on a screen."""
    pdfium = pytest.importorskip("pypdfium2")
    with explorer(holes.page, dark=True) as tab:
        settled(tab)
        tab.pdf(path=tmp_path / "lens.pdf", format="Letter")
    pages = pdfium.PdfDocument(tmp_path / "lens.pdf")
    text = " ".join(page.get_textpage().get_text_range() for page in pages)
    assert all(name in text for name in holes.table.names)
    assert "lens explorer. Written" in " ".join(text.split())
    for page in pages:
        words = page.get_textpage()
        boxes = np.array([words.get_charbox(k) for k in range(words.count_chars())])
        assert boxes[:, 2].max() < page.get_width() - 20
