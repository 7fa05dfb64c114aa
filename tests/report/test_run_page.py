"""The report of a run: its numbers against OpenCV, scipy and hand, and what a browser shows."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import binned_statistic_2d

from influx_wrap import __version__
from influx_wrap.calibrate.uncertainty import projection_uncertainty, uncertainty_map
from influx_wrap.compute.processes import WorkerDied
from influx_wrap.errors import InputError
from influx_wrap.evaluate.cells import CellResult
from influx_wrap.formats.files import read_json
from influx_wrap.formats.poses import read_poses
from influx_wrap.formats.results import read_result, write_result
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics, field_of_view_deg, unproject
from influx_wrap.model.record import CellRecord, CellSetting
from influx_wrap.model.result import CalibrationResult, Failure, ResidualStatistics, RolloutReport
from influx_wrap.report.binned import arrows, coverage, distortion, residual_figures
from influx_wrap.report.run_page import cell_data, rollouts
from influx_wrap.run import page as run_report
from influx_wrap.run.page import used_residuals, write_report
from influx_wrap.run.workspace import Workspace
from tests.calibrate.scenes import CAMERA, IMAGE_SIZE, opencv_project
from tests.report.browser import (
    SCHEMES_AND_WIDTHS,
    check_accessible,
    check_lines_are_seen,
    open_page,
)
from tests.report.calibrated import EXPERIMENTS, NASTY, TYPED, write_run

CELLS = tuple(EXPERIMENTS)
FAILED = ("z2f0", "no such cell")
STILL = np.concatenate([np.eye(3).ravel(), np.zeros(3)])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = write_run(tmp_path_factory.mktemp("run") / "run", CELLS, failed=FAILED)
    write_report(workspace, None)
    return workspace


@pytest.fixture
def copy(run: Workspace, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(run.root, tmp_path / "copy")))


def content(page: Path) -> dict[str, Any]:
    match = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def cells(workspace: Workspace) -> dict[str, Any]:
    return {cell["name"]: cell for cell in content(workspace.report)["cells"]}


def record_of(workspace: Workspace, cell: str) -> dict[str, Any]:
    return dict(read_result(workspace.result(cell)))


def residuals_of(workspace: Workspace, cell: str) -> tuple[FloatArray, FloatArray]:
    observations = EXPERIMENTS[cell][0]
    result = CalibrationResult.from_dict(record_of(workspace, cell))
    poses = read_poses(workspace.poses(cell), observations.view_ids.tolist())
    return used_residuals(observations, result, poses)


@pytest.mark.parametrize("cell", CELLS)
def test_residuals_are_those_of_the_record(run: Workspace, cell: str) -> None:
    record = record_of(run, cell)
    _, residuals = residuals_of(run, cell)
    found, stated = ResidualStatistics.of(residuals), record["residuals"]
    assert found.corners == stated["corners"]
    tolerance = 1e-9
    for name in ("rms_px", "median_px", "max_px", "mean_px", "std_px"):
        np.testing.assert_allclose(
            getattr(found, name), stated[name], rtol=tolerance, atol=tolerance * stated["rms_px"]
        )


def test_kinds(run: Workspace) -> None:
    """The experiments of these tests are what they are meant to be."""
    assert isinstance(record_of(run, "z0f0")["selected"], int)
    assert record_of(run, "z1f0")["selected"] == "initialization"
    assert record_of(run, NASTY)["selected"] == "all-views"
    assert abs(record_of(run, NASTY)["bow_m"][0]) > 1e-3
    assert abs(record_of(run, "z0f1")["bow_m"][0]) > 1e-3
    assert record_of(run, "z0f0")["views"]["corners_removed"] > 0


@pytest.mark.parametrize("cell", ["z0f0", "z1f1"])
def test_residuals_against_opencv(run: Workspace, cell: str) -> None:
    """Poses and projections of every view used, by OpenCV."""
    observations, record = EXPERIMENTS[cell][0], record_of(run, cell)
    theta = np.array([record["intrinsics"][name] for name in NAMES])
    matrix = np.array([[theta[0], 0, theta[2]], [0, theta[1], theta[3]], [0, 0, 1.0]])
    pixels, expected = [], []
    for view, seen, uv in zip(
        record["views"]["list"], observations.valid, observations.uv, strict=True
    ):
        if not view["used"]:
            continue
        kept = [k for k in np.flatnonzero(seen) if k not in view["corners_removed"]]
        points = observations.target.points[kept]
        _, turn, shift = cv2.solvePnP(points, uv[kept], matrix, theta[4:])
        turn, shift = cv2.solvePnPRefineLM(points, uv[kept], matrix, theta[4:], turn, shift)
        pose = np.concatenate([cv2.Rodrigues(turn)[0].ravel(), shift[:, 0]])
        off = uv[kept] - opencv_project(theta, pose, points)
        assert np.sqrt((off**2).mean()) == pytest.approx(view["rms_px"], rel=1e-4)
        pixels.append(uv[kept])
        expected.append(off)
    uv, residuals = residuals_of(run, cell)
    np.testing.assert_array_equal(uv, np.concatenate(pixels))
    np.testing.assert_allclose(residuals, np.concatenate(expected), atol=2e-4)


def test_poses_of_other_views(run: Workspace) -> None:
    with pytest.raises(InputError, match="does not hold the poses of the 3 views"):
        read_poses(run.poses("z0f0"), [0, 1, 2])


def scattered(n: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(1)
    uv = rng.uniform([0, 200], [1279, 959], (n, 2))
    return uv, 0.1 * rng.standard_normal((n, 2))


def test_coverage_counts() -> None:
    uv, _ = scattered(5000)
    data = coverage(uv, IMAGE_SIZE)
    assert (data["columns"], data["rows"]) == (32, 24)
    edges = np.linspace(-0.5, 959.5, 25), np.linspace(-0.5, 1279.5, 33)
    counts = np.histogram2d(uv[:, 1], uv[:, 0], edges)[0]
    np.testing.assert_array_equal(np.reshape(data["counts"], (24, 32)), counts)
    assert data["empty"] == ["whole top edge"]
    assert "points" not in data
    assert coverage(uv[:3], IMAGE_SIZE)["points"] == np.round(uv[:3], 1).ravel().tolist()


def test_arrows_are_means() -> None:
    uv, residuals = scattered(6000)
    drawn = arrows(uv, residuals, IMAGE_SIZE)
    edges = [np.linspace(-0.5, 959.5, 13), np.linspace(-0.5, 1279.5, 17)]
    values = [uv[:, 0], uv[:, 1], residuals[:, 0], residuals[:, 1]]
    means, counts = (
        binned_statistic_2d(uv[:, 1], uv[:, 0], values, kind, edges).statistic
        for kind in ("mean", "count")
    )
    kept = counts[0] >= 4
    np.testing.assert_allclose(drawn[:, :4], means[:, kept].T, atol=1e-9)
    np.testing.assert_array_equal(drawn[:, 4], counts[0][kept])
    single = arrows(uv[:30], residuals[:30], IMAGE_SIZE)
    np.testing.assert_array_equal(single[:, :4], np.hstack([uv[:30], residuals[:30]]))


def test_noise_alone_makes_few_long_arrows_and_a_lens_that_is_another_makes_many() -> None:
    uv, residuals = scattered(40_000)
    data = residual_figures(uv, residuals, IMAGE_SIZE, 0.1)
    n = len(data["arrows"]) / 5
    assert 0.01 < data["unlikely"] / n < 0.1
    assert data["beyond"] == pytest.approx(0.0027, abs=0.0006)
    assert data["beyond"] == (np.abs(residuals) > 0.3).mean()
    assert [sum(counts) for counts in data["histogram"]] == [40_000, 40_000]
    inner = np.histogram(residuals[:, 0], np.linspace(-0.45, 0.45, 46))[0]
    np.testing.assert_array_equal(data["histogram"][0][1:-1], inner[1:-1])
    swirl = 0.05 * np.stack([np.sin(uv[:, 1] / 200), np.cos(uv[:, 0] / 200)], axis=1)
    data = residual_figures(uv, residuals + swirl, IMAGE_SIZE, 0.1)
    assert data["unlikely"] / n > 0.5


def test_exact_corners_have_no_sigma() -> None:
    uv, residuals = scattered(500)
    data = residual_figures(uv, 0 * residuals, IMAGE_SIZE, 0.0)
    assert (data["unlikely"], data["beyond"], data["longest"]) == (None, None, 0.0)
    assert sum(data["histogram"][0]) == 500


def test_distortion_against_opencv() -> None:
    data = distortion(CAMERA, IMAGE_SIZE)
    shape = data["rows"], data["columns"]
    u, v = np.meshgrid(np.linspace(0, 1279, shape[1]), np.linspace(0, 959, shape[0]))
    x, y = (u - CAMERA.cx) / CAMERA.fx, (v - CAMERA.cy) / CAMERA.fy
    rays = np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3)
    shift = opencv_project(CAMERA.array, STILL, rays) - np.stack([u, v], axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(np.reshape(data["shift"], (-1, 2)), shift, rtol=1e-4, atol=1e-6)
    lengths = np.linalg.norm(shift, axis=1)
    assert data["largest"] == pytest.approx(lengths.max())
    assert data["at"] == [u.ravel()[lengths.argmax()], v.ravel()[lengths.argmax()]]


def test_distortion_beyond_the_fold_is_left_out() -> None:
    data = distortion(Intrinsics(500, 500, 640, 480, k1=-0.5), IMAGE_SIZE)
    assert None in data["shift"]
    assert data["largest"] > 0
    json.dumps(data, allow_nan=False)


def test_fences_and_rollouts(run: Workspace) -> None:
    record = record_of(run, "z0f0")
    result = CalibrationResult.from_dict(record)
    data = rollouts(result.rollouts, result.intrinsics)
    assert data is not None
    values = np.array([[one["intrinsics"][name] for name in NAMES] for one in record["rollouts"]])
    answer = np.array([record["intrinsics"][name] for name in NAMES])
    for k, (low, high) in enumerate(data["fences"]):
        q1, q3 = np.quantile(values[:, k], [0.25, 0.75])
        assert answer[k] + low == pytest.approx(q1 - 1.5 * (q3 - q1), rel=1e-12)
        assert answer[k] + high == pytest.approx(q3 + 1.5 * (q3 - q1), rel=1e-12)
    apart = np.frombuffer(base64.b64decode(data["apart"]), "<f4").reshape(-1, 8)
    np.testing.assert_allclose(apart, values - answer, rtol=1e-6, atol=1e-12)
    assert (apart[record["selected"]] == 0).all()
    assert data["total"] == len(data["numbers"]) == 8


def test_rollouts_that_did_not_converge() -> None:
    good = RolloutReport(CAMERA, 1, 0, 0, True, 1.0)
    bad = RolloutReport(None, 1, 0, 0, False, None)
    data = rollouts([bad, good, bad], CAMERA)
    assert data is not None
    assert (data["total"], data["numbers"], data["inside"]) == (3, [1], [1])
    assert rollouts([bad], CAMERA)["numbers"] == []  # type: ignore[index]
    assert rollouts([], CAMERA) is None


def test_uncertainty_map_by_finite_differences() -> None:
    """With OpenCV's projection, and turns that are taken out numerically."""
    rng = np.random.default_rng(0)
    root = np.diag([0.5, 0.4, 0.3, 0.2, 1e-3, 2e-3, 1e-4, 1e-4]) @ rng.standard_normal((8, 8))
    covariance = root @ root.T
    values = uncertainty_map(CAMERA, covariance, IMAGE_SIZE, 9)
    stated = projection_uncertainty(CAMERA, covariance, IMAGE_SIZE, 9)
    assert (values.max(), np.median(values)) == (stated.worst_px, stated.median_px)

    u, v = np.meshgrid(np.linspace(0, 1279, 9), np.linspace(0, 959, 9))
    rays, _ = unproject(CAMERA, np.stack([u, v], axis=-1).reshape(-1, 2))
    points = np.concatenate([rays, np.ones((81, 1))], axis=1)

    def pixels(theta: FloatArray, turn: FloatArray) -> FloatArray:
        turned = points @ Rotation.from_rotvec(turn).as_matrix().T
        return opencv_project(theta, STILL, turned).ravel()

    theta, still = CAMERA.array, np.zeros(3)
    steps = np.diag([1e-2] * 4 + [1e-5] * 4)
    by_theta = np.stack(
        [(pixels(theta + s, still) - pixels(theta - s, still)) / (2 * s.sum()) for s in steps], 1
    )
    turns = 1e-5 * np.eye(3)
    by_turn = np.stack([(pixels(theta, w) - pixels(theta, -w)) / 2e-5 for w in turns], 1)
    left = by_theta - by_turn @ np.linalg.lstsq(by_turn, by_theta, rcond=None)[0]
    left = left.reshape(81, 2, 8)
    blocks = left @ covariance @ np.swapaxes(left, 1, 2)
    expected = np.sqrt(np.linalg.eigvalsh(blocks)[:, 1]).reshape(9, 9)
    np.testing.assert_allclose(values, expected, rtol=1e-4)


def test_the_page_has_the_numbers_of_the_records(run: Workspace) -> None:
    data = content(run.report)
    assert (data["lens"], data["camera"]) == ("canon17", "arri-alexa-mini")
    assert [cell["name"] for cell in data["cells"]] == sorted(
        [*CELLS, *FAILED], key=run_report.by_number
    )
    answer = data["answer"]
    assert answer["facts"][0] == "9 experiments: 7 ok, 2 failed."
    assert answer["usability"] == (
        "Not everywhere: do not use it at 4 of 9 settings, with care at 2 others, not judged at 1."
    )
    assert answer["verdicts"] == [
        ["good", 2], ["usable with care", 2], ["do not use", 1], ["suspect", 1], ["failed", 2],
        ["not judged", 1],
    ]  # fmt: skip
    assert answer["filmNext"] == [["the board upper left", ["z0f1", "z0f9", "z1f1"]]]
    for name in CELLS:
        shown, record = cells(run)[name], record_of(run, name)
        result = CellResult.of(CellRecord.from_dict(record))
        assert shown["intrinsics"] == [record["intrinsics"][key] for key in NAMES]
        assert shown["sigma"] == [record["sigma"][key] for key in NAMES]
        assert shown["values"]["sigma"] == result.sigma_percent("fx")
        camera = CalibrationResult.from_dict(record)
        assert shown["fieldOfView"] == list(field_of_view_deg(camera.intrinsics, camera.image_size))
        assert (shown["verdict"], shown["because"]) == (
            result.verdict,
            [] if result.assessment is None else list(result.assessment.reasons),
        )
        error = result.error_percent("fx")
        assert shown["values"]["error"] == (None if name == NASTY else abs(error or 0))
        assert (shown["truth"] is None) == (name == NASTY)
        used = [view["view"] for view in record["views"]["list"] if view["used"]]
        assert [view[0] for view in shown["views"] if view[1] < 0] == used
        assert sum(n for _, n in shown["reasons"]) == record["views"]["total"] - len(used)
        assert shown["coverage"]["corners"] == record["residuals"]["corners"]
        assert len(json.dumps(shown, separators=(",", ":"))) < 30_000
        recipe = data["made"][shown["made"]]["recipe"]
        assert recipe == record["provenance"]["recipe"]
    assert len(data["made"]) == 5, "each recipe once"
    failed = cells(run)["z2f0"]
    assert failed["reason"] == "no pose fits view 7 of z2f0"
    assert failed["advice"] == "Leave the view out."


def test_places(run: Workspace) -> None:
    data = content(run.report)
    places = {name: cell["place"] for name, cell in cells(run).items()}
    assert data["lfl"] == [[17.0, "z0"], [18.0, "z1"], [20.0, "z2"], [33.3, ""]]
    assert [name for _, name in data["fd"]] == ["f0", "f1", "", "f9"], "4.4 m is no 4.5 m"
    assert places["z1f9"] == [1, 3]
    assert places["z2f0"] == [2, 0], "its setting is not known, its name is"
    assert places[NASTY] == [3, 2], "by its setting, as its name says nothing"
    assert places["no such cell"] is None


def test_one_file_with_all_in_it(run: Workspace) -> None:
    text = run.report.read_text()
    assert "<script>alert" not in text, "a name is never markup"
    assert str(run.root) not in text
    assert len(text) < 5_000_000


def test_same_bytes_whatever_the_number_of_processes(
    run: Workspace, copy: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_report, "FEW", 0)
    done: list[tuple[int, int]] = []
    write_report(copy, None, processes=2, progress=lambda *n: done.append(n))
    assert copy.report.read_bytes() == run.report.read_bytes()
    assert done == [(n, 9) for n in range(1, 10)]


def test_without_the_experiments(copy: Workspace, tmp_path: Path) -> None:
    """The rest is shown; with the folder in which they are, everything."""
    before = content(copy.report)
    (copy.root / "data").rename(tmp_path / "moved")
    written = write_report(copy, None)
    assert set(written.unseen) == set(CELLS)
    shown = cells(copy)["z0f0"]
    assert "not here" in shown["unseen"]
    assert "residuals" not in shown
    assert shown["uncertainty"]["values"]
    assert write_report(copy, tmp_path / "moved").unseen == ()
    now = content(copy.report)
    assert now["cells"] == before["cells"]
    assert (before["source"], now["source"]) == ("recorded", "recorded in the folder moved")


def test_changed_and_broken_experiments(copy: Workspace) -> None:
    coords = copy.data("z0f0") / "coords_2d.csv"
    coords.write_text(coords.read_text().replace("1", "2", 1))
    (copy.data("z0f1") / "target.yaml").unlink()
    write_report(copy, None)
    assert "coords_2d.csv has changed" in cells(copy)["z0f0"]["unseen"]
    assert "target.yaml does not exist" in cells(copy)["z0f1"]["unseen"]
    assert str(copy.root) not in copy.report.read_text()


@pytest.mark.parametrize("text", ['{"status": "ok"', "{}", '{"status": "ok", "cell": {}}', "[]"])
def test_a_record_that_cannot_be_read(copy: Workspace, text: str) -> None:
    copy.result("z0f0").write_text(text)
    written = write_report(copy, None)
    assert (written.n_cells, written.n_failed) == (9, 3)
    shown = cells(copy)["z0f0"]
    assert shown["stage"] == "report"
    assert "result.json" in shown["reason"]
    assert shown["place"] == [0, 0]
    assert str(copy.root) not in copy.report.read_text()


@pytest.mark.parametrize(
    "change",
    [{"truth": ...}, {"cell": {"fd_m": "far"}}, {"cell": {"lfl_mm": float("nan")}},
     {"provenance": {"seed": float("inf")}}],
)  # fmt: skip
def test_a_failure_that_somebody_has_edited(copy: Workspace, change: dict[str, Any]) -> None:
    record = dict(read_json(copy.failure("z2f0")).values)
    del record["checksum"]
    for key, value in change.items():
        if value is ...:
            del record[key]
        else:
            record[key] = record[key] | value
    copy.failure("z2f0").write_text(json.dumps(record))
    written = write_report(copy, None)
    assert (written.n_cells, written.n_failed) == (9, 2)
    assert re.search(r"failure\.json(, line \d+: NaN| is no result)", cells(copy)["z2f0"]["reason"])


def test_a_result_that_somebody_has_edited(copy: Workspace) -> None:
    """With its checksum left as it was: the page does not show the numbers."""
    record = dict(read_json(copy.result("z0f0")).values)
    record["image_size"] = [1, 1]
    copy.result("z0f0").write_text(json.dumps(record))
    write_report(copy, None)
    assert "result.json was changed after it was written" in cells(copy)["z0f0"]["reason"]


def test_a_worker_that_dies_costs_the_corners_of_its_experiment(
    copy: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parallel(_: object, tasks: Any, __: int) -> Any:
        yield from ((task, WorkerDied(-9)) for task in tasks)

    monkeypatch.setattr(run_report, "parallel", parallel)
    written = write_report(copy, None, processes=2)
    assert (written.n_failed, set(written.unseen)) == (2, set(CELLS))
    shown = cells(copy)["z0f0"]
    assert shown["ok"]
    assert "exit code -9" in shown["unseen"]
    assert shown["intrinsics"][0] == record_of(copy, "z0f0")["intrinsics"]["fx"]


def test_without_a_plan(copy: Workspace) -> None:
    """By their own settings; those of failed ones are not known."""
    copy.plan.unlink()
    write_report(copy, None)
    data = content(copy.report)
    assert data["lfl"] == [[17.0, ""], [18.0, ""], [33.3, ""]]
    without = [cell["name"] for cell in data["cells"] if cell["place"] is None]
    assert sorted(without) == sorted(FAILED)


def test_the_explorer_is_linked_if_it_is_there(copy: Workspace) -> None:
    assert content(copy.report)["explorer"] is None
    copy.explorer.write_text("")
    write_report(copy, None)
    assert content(copy.report)["explorer"] == "explorer.html"


def test_no_run(tmp_path: Path, copy: Workspace) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match="no folder of a run"):
            write_report(Workspace(folder), None)
    shutil.rmtree(copy.root / "cells")
    with pytest.raises(InputError, match="no folder of a run"):
        write_report(copy, None)


def test_kalibr_does_not_tell_everything(copy: Workspace) -> None:
    record = record_of(copy, "z0f0")
    for one in record["rollouts"]:
        one |= dict.fromkeys(("views_used", "corners_removed", "restarts"))
    record["engine"] = {"name": "kalibr", "runs": []}
    record["provenance"]["engine"] = {"name": "kalibr", "command": "kalibr_calibrate_cameras"}
    write_result(copy.result("z0f0"), record)
    write_report(copy, None)
    data = content(copy.report)
    assert data["made"][cells(copy)["z0f0"]["made"]]["engine"]["name"] == "kalibr"
    assert cells(copy)["z0f0"]["rollouts"]["total"] == 8


def test_pictures_of_footage(copy: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for name in ("z0f0", "z0f1"):
        image = rng.integers(0, 255, (600, 1200, 3), dtype=np.uint8)
        cv2.imwrite(str(copy.data(name) / "contact.png"), image)
    (copy.data("z0f0") / "review.html").write_text("")
    (copy.data("z0f9") / "contact.png").write_bytes(b"no picture")
    size = write_report(copy, None).path.stat().st_size
    (sheet, jpeg), (page,) = cells(copy)["z0f0"]["pictures"]
    assert (sheet, page) == ("data/z0f0/contact.png", "data/z0f0/review.html")
    small = cv2.imdecode(np.frombuffer(base64.b64decode(jpeg.split(",")[1]), np.uint8), 1)
    assert small.shape == (280, 560, 3)
    assert cells(copy)["z0f9"]["pictures"] == [["data/z0f9/contact.png"]]
    monkeypatch.setattr(run_report, "PICTURES_BYTES", 1.5 * len(jpeg))
    assert write_report(copy, None).path.stat().st_size < size
    assert len(cells(copy)["z0f0"]["pictures"][0]) == 2
    assert cells(copy)["z0f1"]["pictures"] == [["data/z0f1/contact.png"]], "the budget is spent"


def test_fails_without_a_word_too_much() -> None:
    cell = CellSetting("n", None, fd_m=math.inf)
    record = CellRecord(cell, None, Failure("s", "r", "a"), {})
    assert cell_data(record, "unseen", ())["fd_m"] == "inf"


def arrives(tab: Any, cell: str) -> None:
    """The page shows an experiment, now or soon: its address changes first."""
    shown = "name => document.getElementById('name').innerText === name"
    tab.wait_for_function(shown, arg=cell)


def scrolled(tab: Any) -> None:
    """Every figure has been seen, and is drawn."""
    for section in tab.locator("#experiment .drawn:visible").all():
        section.scroll_into_view_if_needed()
    tab.wait_for_function(
        "() => [...document.querySelectorAll('#experiment .drawn')]"
        ".every((e) => !e.checkVisibility() || e.children.length > 0)"
    )


def off_paper(run: Workspace) -> list[str]:
    """Experiments in whose results the paper's pick differs."""
    picks = {name: record_of(run, name).get("paper_pick") for name in CELLS}
    return [name for name, pick in picks.items() if pick and pick["difference"]]


@pytest.mark.system
def test_in_a_browser(run: Workspace) -> None:
    """The list, the grid, an experiment; pointer, keys, address and back."""
    with open_page(run.report) as tab:
        assert tab.inner_text("h1") == "canon17 on arri-alexa-mini"
        assert "9 experiments: 7 ok, 2 failed." in tab.inner_text("#facts")

        # The answer first, and why it is not simply yes
        assert tab.inner_text("#usability").startswith("Not everywhere: do not use it at 4 of 9")
        assert "1 suspect" in tab.inner_text("#counts")
        order = tab.eval_on_selector_all("#overview > section", "(all) => all.map((s) => s.id)")
        assert order == ["", "/next", "/grid", "/not-good", "/film-next", "/intrinsics", "/made"]
        bad = tab.locator("#bad li")
        assert bad.count() == 4
        assert TYPED.sentence in bad.nth(0).inner_text()
        assert "Because residuals follow the radius." in bad.nth(1).inner_text()
        assert "no pose fits view 7 of z2f0." in bad.nth(3).inner_text()
        assert "Try: Leave the view out." in bad.nth(3).inner_text()
        assert tab.locator("#care li").count() == 2
        assert "The paper's rule would have chosen" in tab.inner_text("#off-paper")
        assert tab.locator("#off-paper a").all_inner_texts() == off_paper(run)
        assert "no corner lies <i>upper left</i>." in tab.inner_text("#care")
        steps = tab.locator("#next-steps li")
        assert TYPED.sentence in steps.filter(has_text="Check what was typed for z1f0").inner_text()
        assert "residuals follow" in steps.filter(has_text="Film again z1f1").inner_text()
        assert "Leave the view out." in steps.filter(has_text="Mend z2f0").inner_text()
        film = steps.filter(has_text="Film: the board upper left")
        assert film.locator("a").all_inner_texts() == ["z0f1", "z0f9", "z1f1"]
        assert tab.locator("#explorer").count() == 0

        # The grid and its quantities
        assert tab.locator("#plane .cell").count() == 8
        assert tab.locator("#plane .cell.is-failed").count() == 1
        assert "do not use" in tab.inner_text("[data-cell='z1f1']")
        good = record_of(run, "z0f0")
        camera = CalibrationResult.from_dict(good)
        across = field_of_view_deg(camera.intrinsics, camera.image_size)[0]
        shown = re.sub(r"\s+", " ", tab.inner_text("[data-cell='z0f0']"))
        expected = rf"{camera.intrinsics.fx:.1f} px ±([0-9.]+) px {across:.1f}°$"
        said = re.search(expected, shown)
        assert said is not None
        assert float(said[1]) == pytest.approx(good["sigma"]["fx"], rel=0.05)
        tab.select_option("#quantity", "error")
        error = cells(run)["z0f0"]["values"]["error"]
        value = tab.locator("[data-cell='z0f0'] .number")
        assert float(value.get_attribute("data-value")) == error
        tab.select_option("#quantity", "views")
        assert tab.locator("[data-cell='z0f9'] .number").get_attribute("data-value") == "1"
        assert "no such cell" in tab.inner_text("#list")
        rows = tab.locator("#list tbody tr")
        assert rows.count() == 9
        fx = rows.filter(has_text="z0f0").locator("td").nth(2).get_attribute("data-value")
        assert float(fx) == record_of(run, "z0f0")["intrinsics"]["fx"]
        assert "\u00b0\u00a0\u00d7 " in rows.filter(has_text="z0f0").inner_text()
        tab.select_option("#quantity", "verdict")
        tab.locator("#plane .cell").first.focus()
        assert tab.evaluate("() => document.activeElement.dataset.cell") == "z0f0"
        for key, reached in (
            ("ArrowRight", "z1f0"), ("ArrowRight", "z2f0"), ("ArrowRight", "z2f0"),
            ("ArrowLeft", "z1f0"), ("ArrowDown", "z1f1"), ("ArrowDown", "z1f9"),
            ("ArrowLeft", "z0f9"), ("ArrowUp", "z0f1"), ("ArrowUp", "z0f0"),
        ):  # fmt: skip
            tab.keyboard.press(key)
            assert tab.evaluate("() => document.activeElement.dataset.cell") == reached
        tab.keyboard.press("Enter")

        # An experiment
        tab.wait_for_selector("#experiment:not([hidden])")
        arrives(tab, "z0f0")
        assert tab.url.endswith("#z0f0")
        assert not tab.is_visible("#overview")
        record = record_of(run, "z0f0")
        rows = tab.locator("#intrinsics tbody tr")
        for k, name in enumerate(NAMES):
            numbers = rows.nth(k).locator("td").all()
            shown = [float(cell.get_attribute("data-value")) for cell in numbers]
            value, true = record["intrinsics"][name], record["truth"]["intrinsics"][name]
            bound = record["truth"]["bound"][name]
            expected = [value, record["sigma"][name], true, value - true, bound]
            np.testing.assert_allclose(shown, [*expected, (value - true) / bound], rtol=1e-12)
        scrolled(tab)
        assert tab.locator("#experiment canvas").count() >= 8
        inside = sum(one["inside_fences"] for one in record["rollouts"])
        assert f"{inside} of 8 inside the fences" in tab.inner_text("#rollouts1")
        tab.select_option("#rollouts1-x", "k1")
        words = tab.get_attribute("#rollouts1 .drawn", "aria-label")
        assert words.startswith("8 rollouts by k1 and fy")
        views = record["views"]
        assert f"{views['used']} of {views['total']} used" in tab.inner_text("#views")
        tab.locator("#views summary").click()
        assert tab.locator("#views tbody tr").count() == views["total"]
        assert tab.locator("#stages tbody tr").count() == 4
        assert record["provenance"]["inputs"]["target.yaml"] in tab.inner_text("#provenance")

        # From one to the next, and back
        tab.evaluate("() => { window.made = drawings.map(({ chart }) => chart); }")
        kept = "() => [Bokeh.documents.length, [...Bokeh.index].length]"
        before = tab.evaluate(kept)
        tab.locator("body").press("n")
        arrives(tab, "z0f1")
        assert "bent by" in tab.inner_text("#said")
        assert "over the diagonal" in tab.inner_text("#said")
        assert "usable with care" in tab.inner_text("#judged")
        assert not tab.is_visible("#rollouts1"), "a batch has none"
        tab.click("#next")
        arrives(tab, "z0f9")
        assert "every corner" in tab.inner_text("#vectors")
        remade = "() => drawings.filter(({ chart }, k) => chart !== made[k])"
        assert tab.evaluate(f"{remade}.map(({{ section }}) => section.id)") == ["coverage"]
        tab.locator("body").press("p")
        tab.locator("body").press("p")
        arrives(tab, "z0f0")
        tab.wait_for_function(f"([n, m]) => `${{({kept})()}}` === `${{n}},${{m}}`", arg=before)
        tab.go_back()
        arrives(tab, "z0f1")
        tab.keyboard.press("Escape")
        tab.wait_for_selector("#overview", state="visible")
        assert tab.evaluate("() => document.activeElement.dataset.cell") == "z0f1"
        tab.locator("#bad a", has_text="no such cell").click()
        arrives(tab, "no such cell")
        assert not tab.is_visible("#answer")
        assert "Leave the view out" in tab.inner_text("#notices")
        tab.goto(f"{run.report.as_uri()}#/made")
        tab.wait_for_selector("#overview", state="visible")
        tab.locator("#list a", has_text="alert").click()
        arrives(tab, NASTY)
        assert tab.locator("#intrinsics thead th").count() == 3, "no truth, no errors"
        assert "all views that the rollouts trust" in tab.inner_text("#said")
        assert "all views that they trust" in tab.inner_text("#rollouts1")


@pytest.mark.system
@pytest.mark.parametrize(("dark", "width"), SCHEMES_AND_WIDTHS)
def test_accessible(run: Workspace, dark: bool, width: int) -> None:
    with open_page(run.report, width=width, dark=dark) as tab:
        check_accessible(tab)
        for cell in ("z0f0", "z2f0"):
            tab.evaluate("(name) => { location.hash = name; }", cell)
            arrives(tab, cell)
            scrolled(tab)
            check_accessible(tab)
            check_lines_are_seen(tab)


CUT = """() => [...document.querySelectorAll("main *")].filter((e) => e.checkVisibility()
  && !e.closest(".said, .figure, select") && getComputedStyle(e).overflowX !== "visible")
  .map((e) => e.outerHTML.slice(0, 80))"""


@pytest.mark.system
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_printed_page_has_everything(run: Workspace, tmp_path: Path, paper: str) -> None:
    """The text of the PDF that a browser prints, all of it on the paper, and what it is of."""
    pdfium = pytest.importorskip("pypdfium2")
    with open_page(run.report, dark=True) as tab:
        tab.pdf(path=tmp_path / "report.pdf", format=paper)
    pages = pdfium.PdfDocument(tmp_path / "report.pdf")
    text = "".join("".join(page.get_textpage().get_text_range() for page in pages).split())
    made = f"Written2023-11-1422:13UTCbyinflux_wrap{__version__}"
    assert text.count(f"canon17onarri-alexa-mini:calibrationreport.{made}") == len(pages)
    for page in pages:
        words = page.get_textpage()
        boxes = np.array([words.get_charbox(k) for k in range(words.count_chars())])
        assert boxes[:, 0].min() > 20
        assert boxes[:, 2].max() < page.get_width() - 20
    for words in ("9 experiments: 7 ok", "no corner lies <i>upper left</i>.", "max_restarts"):
        assert words.replace(" ", "") in text, words
    for name in cells(run):
        assert text.count(name.replace(" ", "")) >= 1, name
    for record in (record_of(run, name) for name in CELLS):
        for name in NAMES:
            decimals = max(1 - math.floor(math.log10(record["sigma"][name])), 0)
            shown = min(decimals, 2 if name in ("fx", "fy", "cx", "cy") else 9)
            assert f"{abs(record['intrinsics'][name]):.{shown}f}" in text, name


@pytest.mark.system
def test_on_paper(run: Workspace) -> None:
    """From a dark screen: everything light, unfolded and uncut, and all figures drawn."""
    with open_page(run.report, dark=True) as tab:
        folded = tab.locator("details:not([open])").count()
        assert folded > 0
        tab.evaluate("() => dispatchEvent(new Event('beforeprint'))")
        tab.emulate_media(media="print", color_scheme="dark")
        assert tab.locator("details:not([open])").count() == 0
        assert tab.evaluate(CUT) == []
        colours = "() => ['body', '.cell'].map((s) => getComputedStyle(document.querySelector(s))"
        assert tab.evaluate(f"{colours}.backgroundColor)")[0] == "rgb(255, 255, 255)"
        assert tab.evaluate(f"{colours}.printColorAdjust)")[1] == "exact"
        tab.set_viewport_size({"width": 700, "height": 990})
        wide = "() => [document.documentElement.scrollWidth, innerWidth]"
        wanted, room = tab.evaluate(wide)
        assert wanted <= room
        tab.emulate_media(media="screen", color_scheme="dark")
        tab.evaluate("() => dispatchEvent(new Event('afterprint'))")
        assert tab.locator("details:not([open])").count() == folded
        tab.set_viewport_size({"width": 1200, "height": 900})
        tab.evaluate("() => { location.hash = 'z0f0'; }")
        arrives(tab, "z0f0")
        tab.wait_for_function(
            "() => drawings.every(({ section, chart }) => section.hidden || chart?.view)"
        )
        widths = tab.evaluate("() => [...charts].map(({ element }) => element.clientWidth)")
        tab.evaluate("() => dispatchEvent(new Event('beforeprint'))")
        zooms = tab.evaluate("() => [...charts].map(({ element }) => Number(element.style.zoom))")
        printed = [width * zoom for width, zoom in zip(widths, zooms, strict=True)]
        assert max(printed) <= 330, "two beside each other on A4"
        labels = "() => [...charts].map(({ figure }) => figure.xaxes[0].major_label_text_color)"
        assert set(tab.evaluate(labels)) == {"#66707a"}, "as on a light screen"


@pytest.mark.system
def test_other_runs_in_a_browser(tmp_path: Path) -> None:
    """Nothing but failures, one experiment, and one whose files are gone."""
    broken = write_run(tmp_path / "broken", (), failed=("z0f0", "z3f2", "made"))
    write_report(broken, None)
    with open_page(broken.report) as tab:
        assert "3 experiments: 0 ok, 3 failed." in tab.inner_text("#facts")
        tab.click("text=How it was made >> nth=0")
        tab.wait_for_function("() => location.hash === '#/made'")
        assert tab.is_visible("#overview"), "an experiment of this name has another address"
        assert not tab.is_visible("#quantity")
        assert tab.locator("#plane .cell.is-failed").count() == 2
        assert tab.inner_text("#usability") == "No: there is no setting with intrinsics to use."
        tab.locator("#plane .cell").first.click()
        arrives(tab, "z0f0")
        assert "no pose fits" in tab.inner_text("#notices")
        check_accessible(tab)
    one = write_run(tmp_path / "one", (NASTY,))
    shutil.rmtree(one.root / "data")
    write_report(one, None)
    with open_page(one.report) as tab:
        assert "1 experiment: 1 ok, 0 failed." in tab.inner_text("#facts")
        assert "error" not in tab.inner_text("#quantity")
        assert tab.inner_text("#usability") == "Yes."
        assert tab.locator("#bad li").count() == 0
        assert tab.locator("#plane .cell").count() == 1, "by its setting"
        tab.locator("#list a").click()
        arrives(tab, NASTY)
        assert "not here" in tab.inner_text("#notices")
        assert not tab.is_visible("#coverage")
        assert tab.is_visible("#uncertainty")
        assert tab.is_disabled("#next")
        scrolled(tab)
        check_accessible(tab)
