"""The smooth lens as a whole, against simulated zooms whose every setting is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lut import read_table, write_table
from influx_wrap.lut.lens_model import make_lens_model, smooth_lens
from influx_wrap.lut.lens_table import LensTable
from influx_wrap.lut.lookup import Status
from influx_wrap.lut.smooth.hidden import far_out
from influx_wrap.lut.smooth.left_out import expected, fit_smooth, rough_between
from influx_wrap.lut.smooth.lens import SmoothLens
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table
from influx_wrap.run.table import lens_notes
from tests.lut.smooth.measured import SIGMA, settings, table_at, true_values


def _asked() -> tuple[FloatArray, FloatArray]:
    """Settings between experiments, beyond to infinity, and nearer."""
    lfl, fd = np.meshgrid(np.geomspace(81, 248, 9), [1.85, 2.1, 2.9, 4.7, 9.0, 40.0, np.inf])
    return lfl.ravel(), fd.ravel()


@pytest.fixture(scope="module")
def table() -> Table:
    return table_at(*settings())


@pytest.fixture(scope="module")
def lens(table: Table) -> SmoothLens:
    return smooth_lens(table)


def test_twenty_experiments_are_enough(lens: SmoothLens) -> None:
    lfl, fd = _asked()
    answers = lens.query(lfl, fd)
    true = true_values(lfl, fd)
    z = (answers.intrinsics - true) / lens.sigma(answers, lfl, fd)
    assert np.abs(answers.intrinsics[:, 0] / true[:, 0] - 1).max() < 2e-3
    assert np.abs(z).max() < 5
    assert (np.abs(z) < 2).mean() > 0.85


def test_sigma_is_true_over_several_tables() -> None:
    """Five tables with noise of their own."""
    lfl, fd = _asked()
    true = true_values(lfl, fd)
    zs = []
    for seed in range(5):
        lens = smooth_lens(table_at(*settings(), seed=seed + 10))
        answers = lens.query(lfl, fd)
        zs.append((answers.intrinsics - true) / lens.sigma(answers, lfl, fd))
    within = (np.abs(np.array(zs)) < 1).mean(axis=(0, 1))
    assert (within > 0.45).all()
    assert (np.abs(np.array(zs)) < 2).mean() > 0.9


def test_status(lens: SmoothLens) -> None:
    lfl = np.array([100.0, 100, 100, 79.5, 60, 100, 100, np.nan])
    fd = np.array([3.0, np.inf, 1.8, 3.0, 3.0, 1.5, -1.0, 3.0])
    wanted = [
        Status.INTERPOLATED, Status.EXTRAPOLATED, Status.EXTRAPOLATED, Status.EXTRAPOLATED,
        Status.LFL_OUTSIDE, Status.UNUSABLE, Status.UNUSABLE, Status.UNUSABLE,
    ]  # fmt: skip
    answers = lens.query(lfl, fd)
    assert answers.status.tolist() == wanted
    assert np.isfinite(answers.intrinsics).all(axis=1).tolist() == [True] * 4 + [False] * 4


def test_the_grid_says_the_same(lens: SmoothLens) -> None:
    rng = np.random.default_rng(0)
    lfl, fd = rng.uniform(80, 250, 300), 1 / rng.uniform(0, 1 / 1.7, 300)
    exact, spread = lens.outputs(lens.places.both(lfl, fd))
    mean, covariance = lens.grid.at(lfl, fd)
    intrinsics = lens.measured.outputs.intrinsics
    np.testing.assert_allclose(
        intrinsics(mean, lfl)[:, :4], intrinsics(exact, lfl)[:, :4], rtol=1e-6
    )
    sigma, wanted = (np.sqrt(np.einsum("qii->qi", c)) for c in (covariance, spread))
    np.testing.assert_allclose(sigma, wanted, rtol=0.01)


def test_many_frames_are_answered_from_the_grid(lens: SmoothLens) -> None:
    lfl, fd = np.full(3000, 120.0), np.geomspace(2, 1e4, 3000)
    many = lens.query(lfl, fd)
    few = lens.query(lfl[:5], fd[:5])
    np.testing.assert_allclose(many.intrinsics[:5], few.intrinsics, rtol=1e-5)


def test_full_covariance(table: Table) -> None:
    answer = LensTable.of(table).query(100, [2.5, np.inf])
    assert answer.covariance is not None
    np.testing.assert_allclose(
        np.sqrt(np.einsum("qii->qi", answer.covariance)), answer.sigma, rtol=1e-12
    )
    assert (
        np.linalg.eigvalsh(answer.covariance / np.einsum("qi,qj->qij", answer.sigma, answer.sigma))
        > -1e-9
    ).all()


@pytest.mark.parametrize("kind", ["fx", "fd", "lfl"])
def test_a_wrong_experiment_is_named_and_harms_nobody(table: Table, kind: str) -> None:
    values, lfl_mm, fd_m = table.values.copy(), table.lfl_mm.copy(), table.fd_m.copy()
    row = 9
    if kind == "fx":
        values[row, :2] *= 1.005
    elif kind == "fd":
        fd_m[row] *= 1.3
    else:
        lfl_mm[row] = 250.1
    spoiled = replace(table, values=values, lfl_mm=lfl_mm, fd_m=fd_m)
    lens = smooth_lens(spoiled)
    assert lens.fit.set_aside == (table.names[row],)
    said = expected(lens)
    assert int(np.argmax(said.worst)) == row
    lfl, fd = _asked()
    found = lens.query(lfl, fd).intrinsics[:, 0]
    assert np.abs(found / true_values(lfl, fd)[:, 0] - 1).max() < 4e-3
    if kind == "fx":
        assert said.values[row, 0] == pytest.approx(table.values[row, 0], rel=1e-3)


def test_none_is_named_of_a_clean_table(lens: SmoothLens) -> None:
    assert lens.fit.set_aside == ()
    assert (expected(lens).worst < 4).all()


@pytest.mark.parametrize(
    ("lfl", "fd"),
    [
        ([80.0, 250, 80, 250], [2.0, 2.0, 15, 15]),
        ([100.0] * 6, [2.0, 2.5, 3.5, 5, 9, 15]),
        ([80.0, 110, 150, 200, 250], [4.0] * 5),
        (
            [80.0, 150, 250, 80, 150, 250, 80, 150, 250],
            [2.0, 2, 2, 5, 5, 5, np.inf, np.inf, np.inf],
        ),
    ],
    ids=["four", "one LFL", "one FD", "at infinity"],
)
def test_few_experiments_have_an_honest_sigma(lfl: list[float], fd: list[float]) -> None:
    table = table_at(np.array(lfl), np.array(fd))
    lens = smooth_lens(table)
    least, most = table.lfl_mm.min(), table.lfl_mm.max()
    asked = np.repeat(np.linspace(least, most, 4), 4), np.tile([2.2, 4.0, 10.0, np.inf], 4)
    if least == most:
        asked = asked[0][:4], asked[1][:4]
    if len(set(fd)) == 1:
        asked = asked[0], np.where(asked[1] < 3.5, 3.5, asked[1])
    answers = lens.query(*asked)
    z = np.abs(answers.intrinsics - true_values(*asked)) / lens.sigma(answers, *asked)
    assert answers.answered.all()
    assert z.max() < 5
    assert (z < 2).mean() > 0.8


def test_without_covariances_the_scatter_tells() -> None:
    table = table_at(*settings(6, 5))
    table = replace(table, covariance=np.full_like(table.covariance, np.nan))
    lens = smooth_lens(table)
    lfl, fd = _asked()
    answers = lens.query(lfl, fd)
    sigma = lens.sigma(answers, lfl, fd)
    z = np.abs(answers.intrinsics - true_values(lfl, fd)) / sigma
    assert (sigma > 0).all()
    assert (z[:, 0] < 3).mean() > 0.9
    assert np.median(z[:, 2]) < 2


def test_without_covariances_drones_count_as_drones() -> None:
    """They are off by much more than boards, which nothing in the table says but their kind."""
    lfl, fd = settings(6, 5)
    boards, drones = table_at(lfl, fd), table_at(lfl, fd, 1, sigma=15 * SIGMA)
    is_drone = fd > 10
    table = replace(
        boards,
        values=np.where(is_drone[:, None], drones.values, boards.values),
        covariance=np.full_like(boards.covariance, np.nan),
        is_drone=is_drone,
    )
    lens = smooth_lens(table)
    assert lens.fit.set_aside == ()
    lfl, fd = _asked()
    answers = lens.query(lfl, fd)
    z = np.abs(answers.intrinsics - true_values(lfl, fd)) / lens.sigma(answers, lfl, fd)
    assert (z < 2).mean() > 0.85
    assert z.max() < 6


def test_a_singular_covariance_is_not_believed(table: Table) -> None:
    """That of five repetitions says that three combinations of intrinsics are known exactly."""
    rng = np.random.default_rng(4)
    few = np.array(
        [np.cov(rng.multivariate_normal(np.zeros(8), one, 5).T) for one in table.covariance]
    )
    singular = replace(table, covariance=few, smooth=None)
    lens = smooth_lens(singular)
    assert lens.measured.is_singular.all()
    assert len(lens_notes(singular)) == 1
    assert "20 experiments (e0, e1, e2, e3, e4, ...) are singular" in lens_notes(singular)[0]
    lfl, fd = _asked()
    answers = lens.query(lfl, fd)
    z = np.abs(answers.intrinsics - true_values(lfl, fd)) / lens.sigma(answers, lfl, fd)
    assert z.max() < 6
    assert (z < 2).mean() > 0.85


def test_a_variance_of_zero_is_taken_as_usual(table: Table) -> None:
    covariance = table.covariance.copy()
    covariance[3] = 0
    lens = smooth_lens(replace(table, covariance=covariance))
    assert np.flatnonzero(lens.measured.is_singular).tolist() == [3]
    assert (np.einsum("ii->i", lens.measured.noise[3]) > 0).all()
    assert lens_notes(table) == []


def test_square_pixels_are_no_singular_covariance(table: Table) -> None:
    covariance, values = table.covariance.copy(), table.values.copy()
    covariance[:, 1], values[:, 1] = covariance[:, 0], values[:, 0]
    covariance[:, :, 1] = covariance[:, :, 0]
    lens = smooth_lens(replace(table, covariance=covariance, values=values))
    assert not lens.measured.is_singular.any()


def test_only_corners_are_beyond_what_others_can_contradict() -> None:
    table = table_at(*settings())
    corners = {"e0", "e3", "e16", "e19"}
    assert {table.names[row] for row in np.flatnonzero(far_out(table))} == corners


def test_five_experiments_do_not_know_how_distortion_bends_between_them() -> None:
    table = table_at(np.array([80.0, 80, 141, 250, 250]), np.array([1.5, 22.5, 2.2, 1.5, 22.5]))
    lens = smooth_lens(table)
    lfl, fd = np.array([100.0, 160, 200, 100, 160]), np.array([3, 3, 3, np.inf, np.inf])
    answers = lens.query(lfl, fd)
    z = np.abs(answers.intrinsics - true_values(lfl, fd)) / lens.sigma(answers, lfl, fd)
    assert z.max() < 3.5


def test_a_jump_between_two_experiments_is_named() -> None:
    """The zoom's cam has a step of 0.4 % at 140 mm: the lens is said to be rough there."""
    lfl, fd = settings(8, 5)
    table = table_at(lfl, fd)
    values = table.values.copy()
    values[lfl > 140, :2] *= 1.004
    lens = smooth_lens(replace(table, values=values))
    asked = np.repeat(np.linspace(130, 150, 9), 3), np.tile([2.5, 5.0, 12.0], 9)
    true = true_values(*asked)
    true[asked[0] > 140, :2] *= 1.004
    answers = lens.query(*asked)
    z = np.abs(answers.intrinsics - true)[:, 0] / lens.sigma(answers, *asked)[:, 0]
    assert z.max() < 6
    low, high = rough_between(lens) or (0.0, 0.0)
    assert low < 140 < high


def test_a_smooth_lens_is_not_called_rough(lens: SmoothLens) -> None:
    assert rough_between(lens) is None


def test_too_few_and_infinity_alone() -> None:
    three = table_at(np.array([80.0, 100, 120]), np.array([2.0, 3, 4]))
    with pytest.raises(InputError, match=r"at least 4 experiments.*has 3"):
        make_lens_model(three)
    far = table_at(np.array([80.0, 100, 120, 130]), np.full(4, np.inf))
    with pytest.raises(InputError, match="focused at infinity"):
        make_lens_model(far)
    with pytest.raises(InputError, match="focused at infinity"):
        make_lens_model(far, "paper")


def test_the_fit_is_kept_in_the_file(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = replace(table, smooth=fit_smooth(table))
    write_table(tmp_path / "lut.json", kept)
    again = read_table(tmp_path / "lut.json")
    monkeypatch.setattr(
        "influx_wrap.lut.lens_model.fit_smooth", lambda _: pytest.fail("fitted again")
    )
    wanted = LensTable.of(kept).query(120, [3.0, np.inf])
    found = LensTable.of(again).query(120, [3.0, np.inf])
    np.testing.assert_array_equal(found.intrinsics, wanted.intrinsics)
    np.testing.assert_array_equal(found.sigma, wanted.sigma)


def test_a_table_that_was_edited_is_fitted_again(table: Table) -> None:
    fit = fit_smooth(table)
    values = table.values.copy()
    values[:, 0] *= 1.01
    values[:, 1] *= 1.01
    edited = replace(table, values=values, smooth=fit)
    assert smooth_lens(edited).fit is not fit
    assert smooth_lens(replace(table, smooth=fit)).fit is fit
    spoiled = replace(fit, members=(replace(fit.members[0], kernel="cubic"), *fit.members[1:]))
    assert smooth_lens(replace(table, smooth=spoiled)).fit is not spoiled


def test_experiments_at_infinity_are_in_the_file(tmp_path: Path) -> None:
    lfl, fd = np.array([80.0, 150, 250, 80, 150]), np.array([2.0, 2, 2, np.inf, np.inf])
    table = table_at(lfl, fd)
    write_table(tmp_path / "lut.json", table)
    again = read_table(tmp_path / "lut.json")
    np.testing.assert_array_equal(again.fd_m, fd)
    answer = LensTable.of(again).query(100, 2.0, scheme="paper")
    assert answer.status == "interpolated"
