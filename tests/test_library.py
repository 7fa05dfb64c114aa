"""The library's face: the script of the README as it stands, and each name by itself."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import influx_wrap as iw
from influx_wrap.formats.kalibr import write_target
from influx_wrap.formats.lut import write_table
from influx_wrap.model.truth import Noise
from influx_wrap.run.plan import plan_by_name
from influx_wrap.synth.film.board import BoardFootage, plan_film
from influx_wrap.synth.film.cells import shoot_films
from influx_wrap.synth.film.simulation import simulations
from influx_wrap.synth.render import RenderOptions
from tests.clips import CAMERA, GRID, SIZE, picture, write_clip
from tests.lut.lenses import fitted_table

SCRIPT = """\
import influx_wrap as iw

seen = iw.detect("clip.mov", iw.read_target("target.yaml"))
fit = iw.calibrate(seen.keyframes(), focal_px=4300)
table = iw.read_table("lut.json")
answer = table.query(lfl_mm=35, fd_m=2.4)
iw.annotate("metadata.csv", table).write("gt.json")
run = iw.run_lens("canon17", data="recordings", out="runs/canon17")
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the script names, of one lens setting near 35 mm."""
    folder = tmp_path_factory.mktemp("workplace")
    plan = plan_by_name("canon17")
    cell = min(
        plan.cells, key=lambda c: abs(c.lfl_mm - 35) + abs(c.fd_m - 2) + 99 * (c.board is None)
    )
    [simulation] = simulations(plan, [cell], Noise(), seed=0)
    film_board = plan_film(simulation, BoardFootage(RenderOptions(blur_px=0.7, noise=2), views=8))
    shoot_films([film_board], folder / "recordings", processes=1)
    stills = sorted((folder / "recordings" / cell.name / "frames").iterdir())
    pictures = [cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in stills]
    empty = np.full_like(pictures[0], 120)
    held = [frame for one in pictures for frame in (one, one, one, one, empty, empty)]
    write_clip(folder / "clip.mov", held)
    write_target(folder / "target.yaml", cell.board.grid)
    write_table(folder / "lut.json", fitted_table("canon17"))
    rows = [f"{k},{35 + 0.1 * k},2.4" for k in range(5)]
    (folder / "metadata.csv").write_text("\n".join(["frame,lfl_mm,fd_m", *rows]) + "\n")
    return folder


def test_the_script_runs_as_written(workplace: Path) -> None:
    """Without any guard against being run again by the processes that it starts."""
    print_it = "import json; print(json.dumps([fit.intrinsics.fx, fit.sigma[0], len(fit.views), "
    print_it += "answer.intrinsics[0], run.totals['ok'], run.totals['failed']]))"
    (workplace / "script.py").write_text(f"{SCRIPT}{print_it}\n")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=workplace, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    fx, sigma, n_views, by_table, ok, failed = json.loads(done.stdout.splitlines()[-1])
    recorded = json.loads(next((workplace / "recordings").glob("*/truth.json")).read_text())
    assert abs(fx - recorded["intrinsics"]["fx"]) < 4 * sigma
    assert n_views == 8
    # The clip is of another lens setting, so only nearly.
    assert by_table == pytest.approx(fx, rel=0.2)
    assert (ok, failed) == (1, 0)
    truth = json.loads((workplace / "gt.json").read_text())
    assert len(truth) == 5
    assert (workplace / "runs" / "canon17" / "report.html").exists()


def test_page_and_docstring_show_it() -> None:
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    steps = SCRIPT.partition("\n\n")[2]
    assert steps in page
    for line in steps.splitlines():
        assert line in (iw.__doc__ or ""), line


def test_arrays_are_pictures() -> None:
    pictures = [picture(seed) for seed in range(3)]
    colour = [cv2.cvtColor(one, cv2.COLOR_GRAY2BGR) for one in pictures]
    heard: list[tuple[int, int | None]] = []
    seen = iw.detect(pictures, GRID, jobs=1, progress=lambda *now: heard.append(now))
    again = iw.detect(colour, GRID)
    assert heard == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_array_equal(seen.observations.uv, again.observations.uv)
    assert seen.counts.min() >= 44
    assert seen.keyframes().n_views == 3
    blank = np.full((SIZE[1], SIZE[0]), 90, np.uint8)
    assert iw.detect([blank, pictures[0]], GRID).observations.view_ids.tolist() == [1]


def test_a_truncated_clip_is_read_up_to_the_damage(tmp_path: Path) -> None:
    whole = write_clip(tmp_path / "whole.mkv", [picture(seed) for seed in range(30)])
    data = whole.read_bytes()
    (tmp_path / "cut.mkv").write_bytes(data[: len(data) // 2])
    complete, cut = (iw.detect(tmp_path / name, GRID) for name in ("whole.mkv", "cut.mkv"))
    assert complete.truncated is None
    assert cut.truncated
    n = len(cut.counts)
    assert 5 < n < 30
    np.testing.assert_array_equal(cut.counts, complete.counts[:n])


@pytest.mark.parametrize(
    ("pictures", "message"),
    [
        ([], "there is no picture"),
        ([np.zeros((4, 4))], "picture 0 has shape .4, 4. of float64"),
        ([np.zeros((9, 9), np.uint8)] * 2, "in none of the 2 frames"),
        ([np.zeros((9, 9), np.uint8), np.zeros((8, 9), np.uint8)], "a recording needs one size"),
        ("no/such.mov", "does not exist"),
    ],
)
def test_pictures_that_will_not_do(pictures: Any, message: str) -> None:
    with pytest.raises(iw.InputError, match=message):
        iw.detect(pictures, GRID)


def test_a_calibration_projects_and_undistorts() -> None:
    seen = iw.detect([picture(seed) for seed in range(8)], GRID)
    fit = iw.calibrate(seen.keyframes(), "batch", focal_px=300)
    assert abs(fit.intrinsics.fx - CAMERA.fx) < 5 * fit.sigma[0]
    # The poses are those of the corners it was made from, by OpenCV's projection.
    fx, fy, cx, cy, *distortion = fit.intrinsics.array
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    for view, pose in enumerate(fit.poses):
        turn, shift = cv2.Rodrigues(pose[:9].reshape(3, 3))[0], pose[9:]
        uv, _ = cv2.projectPoints(GRID.points, turn, shift, matrix, np.array(distortion))
        off = (uv[:, 0] - seen.observations.uv[view])[seen.observations.valid[view]]
        assert np.sqrt((off**2).mean()) < 0.2
    points = np.array([[0.1, 0.05, 1.0], [0.0, 0.0, -1.0]])
    still = np.zeros(3)
    expected, _ = cv2.projectPoints(points[:1], still, still, matrix, np.array(distortion))
    np.testing.assert_allclose(fit.project(points)[0], expected[0, 0], atol=1e-9)
    assert np.isnan(fit.project(points)[1]).all()
    assert fit.undistort(picture(0)).shape == (SIZE[1], SIZE[0])


def test_a_table_answers_arrays(tmp_path: Path) -> None:
    write_table(tmp_path / "lut.json", fitted_table("canon17"))
    table = iw.read_table(str(tmp_path / "lut.json"))
    one = table.query(lfl_mm=35, fd_m=2.4)
    assert one.intrinsics.shape == one.sigma.shape == (8,)
    assert str(one.status) == "interpolated"
    assert one.camera.fx == one.intrinsics[0]
    many = table.query(lfl_mm=[[35.0], [50.0]], fd_m=[2.4, np.inf, np.nan])
    assert many.intrinsics.shape == (2, 3, 8)
    np.testing.assert_allclose(many.intrinsics[0, 0], one.intrinsics, rtol=1e-7)
    np.testing.assert_allclose(many.sigma[0, 0], one.sigma, rtol=1e-4)
    assert many.status[:, 1].tolist() == ["extrapolated", "extrapolated"]
    assert np.isnan(many.intrinsics[:, 2]).all()
    with pytest.raises(iw.InputError, match="outside the table"):
        table.query(lfl_mm=5, fd_m=2.4)


def test_names_are_loaded_when_used() -> None:
    heavy = "{'numpy', 'cv2', 'numba', 'scipy'}"
    code = f"import sys, influx_wrap; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(iw.__all__) <= set(dir(iw))
    for name in iw.__all__:
        assert inspect.getdoc(getattr(iw, name)), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        iw.nonsense  # noqa: B018
    code = "import influx_wrap.calibrate.recipe, influx_wrap.annotate.gaps, influx_wrap as iw; "
    code += "print(callable(iw.calibrate), callable(iw.annotate))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"
