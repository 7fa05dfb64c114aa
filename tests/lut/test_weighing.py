"""Badly measured experiments learn from the others; well measured ones stay as they are."""

from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.lut.crossval import leave_one_out
from influx_wrap.lut.judge import judge_all
from influx_wrap.lut.lens_model import make_lens_model
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.lut.weighing import weighed
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table
from tests.lut.lenses import breathing_table, true_values

CX, P2 = 2, 7


def drone_table(seed: int = 0) -> Table:
    """A lens whose drone experiments hardly know cx, which p2 makes up for."""
    table = breathing_table("canon17", seed)
    rng = np.random.default_rng(seed + 100)
    values, covariance = table.values.copy(), table.covariance.copy()
    for row in np.flatnonzero(table.is_drone):
        # Along cx and p2 together the measurement is free.
        direction = np.zeros(8)
        direction[CX], direction[P2] = 60.0, 2e-3
        covariance[row] += np.outer(direction, direction)
        values[row] += direction * rng.standard_normal()
    return replace(table, values=values, covariance=covariance)


def truth(table: Table) -> FloatArray:
    return true_values(table.lfl_mm, table.fd_m, 0.03)


@pytest.mark.parametrize("seed", range(3))
def test_drones_learn_and_boards_stay(seed: int) -> None:
    table = drone_table(seed)
    experiments, drone = weighed(table), table.is_drone
    np.testing.assert_array_equal(experiments.values[~drone], table.values[~drone])
    np.testing.assert_array_equal(experiments.covariance[~drone], table.covariance[~drone])
    before, after = (np.abs(v - truth(table))[drone] for v in (table.values, experiments.values))
    assert np.median(before[:, CX]) > 15
    assert np.quantile(after[:, CX], 0.95) < 6
    # What is correlated with cx is corrected with it.
    assert np.median(after[:, P2]) < 0.1 * np.median(before[:, P2])
    # And their sigma is true: of 15 drones and more, hardly any is off by three.
    sigma = np.sqrt(np.diagonal(experiments.covariance, axis1=1, axis2=2))[drone]
    z = after / sigma
    assert (z[:, [CX, P2]] < 1).mean() > 0.4
    assert z[:, [CX, P2]].max() < 4


def test_alike_measured_experiments_stay() -> None:
    table = breathing_table("premista80")
    np.testing.assert_array_equal(weighed(table).values, table.values)


def test_the_paper_s_scheme_counts_all_alike() -> None:
    table = drone_table()
    for scheme, by_covariance, is_changed in (
        ("paper", None, False),
        ("paper", True, True),
        ("thin-lens", None, True),
        ("thin-lens", False, False),
    ):
        lookup = make_lookup(table, scheme, by_covariance=by_covariance)
        assert (lookup.experiments.values != table.values).any() == is_changed


def test_an_experiment_left_out_has_told_nobody() -> None:
    """Against the table without it, made anew."""
    table = drone_table()
    experiments, drone = weighed(table), int(np.flatnonzero(table.is_drone)[3])
    column = [row for row in range(len(table.names)) if table.grid[row, 0] == table.grid[drone, 0]]
    left = next(row for row in column if not table.is_drone[row])
    others = np.delete(np.arange(len(table.names)), left)
    anew = weighed(table.rows(others)).values[others.tolist().index(drone)]
    sigma = np.sqrt(np.diagonal(experiments.covariance[drone]))
    # Rates of change are those of all experiments, which one hardly moves.
    assert (np.abs(experiments.without(left, [drone])[0] - anew) < 0.5 * sigma).all()
    assert leave_one_out(make_lookup(table, "disparity")).judged.sum() > 60


def test_experiments_without_a_covariance_stay() -> None:
    table = drone_table()
    row = int(np.flatnonzero(table.is_drone)[0])
    covariance = table.covariance.copy()
    covariance[row] = np.nan
    experiments = weighed(replace(table, covariance=covariance))
    np.testing.assert_array_equal(experiments.values[row], table.values[row])
    assert np.isnan(experiments.covariance[row]).all()
    nothing = replace(table, covariance=np.full_like(covariance, np.nan))
    np.testing.assert_array_equal(weighed(nothing).values, table.values)
    exact = replace(table, covariance=np.zeros_like(covariance))
    np.testing.assert_array_equal(weighed(exact).values, table.values)


def test_experiments_at_almost_the_same_place_are_two() -> None:
    """Their distance is zero to rounding, or nearly so."""
    table = drone_table()
    twice = np.append(np.arange(len(table.names)), 4)
    lfl_mm, grid = table.lfl_mm[twice], table.grid[twice]
    lfl_mm[-1] *= 1.00001
    grid[-1] = grid.max() + 1
    both = replace(
        table,
        names=(*table.names, "again"),
        lfl_mm=lfl_mm,
        fd_m=table.fd_m[twice],
        values=table.values[twice],
        covariance=table.covariance[twice],
        is_drone=table.is_drone[twice],
        grid=grid,
    )
    judged = judge_all(both)
    assert all(np.isfinite(one.within).all() for one in judged)
    answers = make_lens_model(both, "disparity").query(both.lfl_mm, both.fd_m)
    np.testing.assert_allclose(answers.intrinsics[4, :2], both.values[4, :2], rtol=1e-3)
