"""The folder of an experiment: what is written is read back, faults are named."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.experiment import read_experiment, write_experiment
from influx_wrap.model.experiment import Cell
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import PointCloud
from influx_wrap.model.truth import Noise, Truth

CATALOGUE = load_catalogue()
CAMERA = CATALOGUE.camera("arri-alexa-mini")
CELL = Cell(2, 5, 20.0, 1.9285714285714286, CATALOGUE.board("400x300"))


def observations() -> Observations:
    assert CELL.board is not None
    grid = CELL.board.grid
    rng = np.random.default_rng(0)
    uv = rng.uniform(0, 2000, (3, len(grid.points), 2))
    valid = rng.uniform(size=uv.shape[:2]) < 0.8
    return Observations(grid, uv, valid, CAMERA.image_size, np.array([2, 5, 7]))


def truth() -> Truth:
    rng = np.random.default_rng(1)
    outliers = rng.uniform(size=(3, 352)) < 0.01
    return Truth(
        Intrinsics(2000.1, 2000.2, 1711.3, 1100.4, -0.1, 0.02, 1e-5, -2e-5),
        rng.normal(size=(3, 3, 3)),
        rng.normal(size=(3, 3)),
        rng.normal(size=(352, 3)),
        np.array([1e-3, 2e-3, -1e-3]),
        outliers,
        Noise(outliers=0.01, bow_mm=3.0),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "z2f5"
    write_experiment(path, CELL, CAMERA, "canon17", observations(), truth())
    return path


def test_round_trip(folder: Path) -> None:
    stored = read_experiment(folder)
    assert (stored.lens, stored.camera, stored.cell) == ("canon17", "arri-alexa-mini", "z2f5")
    assert stored.target_name == "400x300"
    assert (stored.lfl_mm, stored.fd_m, stored.pixel_um) == (20, CELL.fd_m, CAMERA.pixel_um)
    expected = observations()
    assert stored.observations.target == expected.target
    assert stored.observations.image_size == (3424, 2202)
    np.testing.assert_array_equal(stored.observations.valid, expected.valid)
    np.testing.assert_array_equal(stored.observations.view_ids, expected.view_ids)


def test_truth_round_trip_is_exact(folder: Path) -> None:
    stored, expected = read_experiment(folder).truth, truth()
    assert stored is not None
    assert stored.intrinsics == expected.intrinsics
    assert stored.noise == expected.noise
    assert stored.corner_sigma_px == 0.1
    for field in ("rotations", "translations", "target_points", "bow_m", "outliers"):
        np.testing.assert_array_equal(getattr(stored, field), getattr(expected, field))


def test_truth_without_outliers(tmp_path: Path) -> None:
    without = Truth(**{**vars(truth()), "outliers": np.zeros((3, 352), dtype=bool)})
    write_experiment(tmp_path, CELL, CAMERA, "canon17", observations(), without)
    stored = read_experiment(tmp_path).truth
    assert stored is not None
    assert not stored.outliers.any()


def test_a_real_experiment_has_no_truth_even_over_a_simulated_one(folder: Path) -> None:
    write_experiment(folder, CELL, CAMERA, "canon17", observations(), None)
    assert read_experiment(folder).truth is None


def test_infinity_and_the_drone(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    cloud = PointCloud(rng.normal(size=(24, 3)), 1e-4, 7.5)
    seen = Observations(
        cloud, rng.uniform(0, 2000, (1, 24, 2)), np.ones((1, 24), bool), CAMERA.image_size
    )
    write_experiment(tmp_path, Cell(0, 9, 17, math.inf, None), CAMERA, "canon17", seen, None)
    stored = read_experiment(tmp_path)
    assert stored.fd_m == math.inf
    assert stored.target_name == "drone"
    assert "fd_m: .inf\n" in (tmp_path / "experiment.yaml").read_text()


def test_the_same_bytes_twice(folder: Path, tmp_path: Path) -> None:
    write_experiment(tmp_path / "again", CELL, CAMERA, "canon17", observations(), truth())
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


@pytest.mark.parametrize(
    "name", ["experiment.yaml", "target.yaml", "coords_2d.csv", "successes.csv"]
)
def test_missing_files(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"{name} does not exist"):
        read_experiment(folder)


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_experiment(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_experiment(tmp_path / "file", CELL, CAMERA, "canon17", observations(), None)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("lens", "17", "lens must be text"),
        ("lfl_mm", ".inf", "lfl_mm must be finite"),
        ("fd_m", ".nan", "fd_m must be finite"),
        ("fd_m", "-1", "fd_m must be above 0"),
        ("pixel_um", "0", "pixel_um must be above 0"),
        ("pixel_origin", "corner", "pixel_origin must be center"),
        ("image_size", "[3424]", r"image_size must be \[width, height\]"),
        ("image_size", "[3424, 0]", r"image_size\[1\] must be at least 1"),
        ("image_size", "[3424, 2202.5]", r"image_size\[1\] must be a whole number"),
        ("image_size", "3424", "image_size must be a list"),
        ("colour", "red", "colour is not known"),
    ],
)
def test_faulty_descriptions(folder: Path, key: str, value: str, problem: str) -> None:
    path = folder / "experiment.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{key}:")]
    path.write_text("\n".join([*lines, f"{key}: {value}"]))
    with pytest.raises(InputError, match=rf"experiment.yaml: {problem}"):
        read_experiment(folder)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("intrinsics", {"fx": 1}, "intrinsics: fy is missing"),
        ("noise", {}, "noise: corner_px is missing"),
        ("bow_m", [0, 0], "bow_m must have 3 numbers"),
        ("rotations", [[0] * 9], "rotations must have 3 rows, got 1"),
        ("translations", [[0, 0]], r"translations\[0\] must be a list of 3 numbers"),
        ("target_points", [], "target_points must have 352 rows, got 0"),
        ("outliers", [[0, 1], [3, 0]], r"outliers\[1\] is no \[view, point\]"),
        ("outliers", [[0, -1]], r"outliers\[0\] is no \[view, point\]"),
        ("outliers", [[1, 352]], r"outliers\[0\] is no \[view, point\]"),
    ],
)
def test_faulty_truths(folder: Path, key: str, value: object, problem: str) -> None:
    path = folder / "truth.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(InputError, match=rf"truth.json: {problem}"):
        read_experiment(folder)


def test_impossible_noise_in_a_truth(folder: Path) -> None:
    path = folder / "truth.json"
    values = json.loads(path.read_text())
    values["noise"]["outliers"] = 2
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"truth.json: noise: .*outliers is a fraction"):
        read_experiment(folder)


def test_a_truth_that_is_not_json(folder: Path) -> None:
    (folder / "truth.json").write_text("{")
    with pytest.raises(InputError, match=r"truth.json, line 1"):
        read_experiment(folder)
