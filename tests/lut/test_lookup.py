"""Lookups: exact where they must be, continuous everywhere, and the paper's formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay

from influx_wrap.errors import InputError
from influx_wrap.lut.kernels import in_quad, in_triangle
from influx_wrap.lut.lookup import Lookup, Status, make_lookup, one
from influx_wrap.lut.schemes import REGION_SCHEMES
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.table import Table, grid_of
from tests.lut.lenses import PIXEL_UM, breathing_table, true_values

LENSES = ("canon17", "premista80")


@pytest.fixture(scope="module", params=[(s, lens) for s in REGION_SCHEMES for lens in LENSES])
def lookup(request: pytest.FixtureRequest) -> Lookup:
    scheme, lens = request.param
    return make_lookup(breathing_table(lens), scheme)


def settings(lookup: Lookup, n: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Random focal lengths and focus distances (n,) over the table's bounds."""
    places = lookup.regions.places
    x, y = np.random.default_rng(seed).uniform(places.min(axis=0), places.max(axis=0), (n, 2)).T
    return x, lookup.scheme.fd(y)


def small(values: FloatArray, lfl_mm: FloatArray, fd_m: FloatArray) -> Table:
    n = len(values)
    return Table(
        "lens",
        "camera",
        (3424, 2202),
        (PIXEL_UM, PIXEL_UM),
        tuple(f"e{k}" for k in range(n)),
        lfl_mm,
        fd_m,
        values,
        np.full((n, 8, 8), np.nan),
        np.zeros(n, dtype=bool),
        grid_of(lfl_mm, fd_m),
    )


def test_an_experiment_is_returned_as_it_was(lookup: Lookup) -> None:
    table = lookup.table
    answers = lookup.query(table.lfl_mm, table.fd_m)
    assert (answers.status == Status.INTERPOLATED).all()
    np.testing.assert_allclose(answers.intrinsics, table.values, rtol=1e-12, atol=1e-12)


def outline_area(sides: tuple[FloatArray, FloatArray]) -> float:
    low, high = (np.trapezoid(side[:, 1], side[:, 0]) for side in sides)
    return float(high - low)


def check_tiling(lookup: Lookup) -> None:
    """Regions turn left, fill the outline and stay between neighbouring columns."""
    regions, area = lookup.regions, 0.0
    column = np.empty(len(regions.places), dtype=int)
    for number, (_, rows) in enumerate(lookup.table.columns):
        column[rows] = number
    for vertices in regions.vertices:
        own = vertices[vertices >= 0]
        assert np.ptp(column[own]) <= 1
        x, y = regions.places[own].T
        one = (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
        assert one > 0 or len(own) < 3
        area += one
    low, high = regions.outline
    assert (np.diff(low[:, 0]) > 0).all()
    assert (np.diff(high[:, 0]) > 0).all()
    np.testing.assert_allclose(area, outline_area((low, high)), rtol=1e-9)


def test_regions_tile_what_lies_between_neighbouring_columns(lookup: Lookup) -> None:
    regions, table = lookup.regions, lookup.table
    check_tiling(lookup)
    assert regions.is_quad.sum() == len(table.cells)
    # The outline is that of the columns' ends.
    ends = [(lfl, regions.places[rows, 1]) for lfl, rows in table.columns]
    np.testing.assert_allclose(regions.outline[0], [(lfl, y.min()) for lfl, y in ends])
    np.testing.assert_allclose(regions.outline[1], [(lfl, y.max()) for lfl, y in ends])

    lfl_mm, fd_m = settings(lookup, 20_000)
    y = lookup.scheme.y(fd_m)
    low, high = (np.interp(lfl_mm, *side.T) for side in regions.outline)
    inside = (y > low + 1e-9) & (y < high - 1e-9)
    answers = lookup.query(lfl_mm, fd_m)
    np.testing.assert_array_equal(answers.status[inside], Status.INTERPOLATED)
    assert (answers.status[(y < low - 1e-9) | (y > high + 1e-9)] != Status.INTERPOLATED).all()

    chosen = np.column_stack([lfl_mm, y])[inside][:2000]
    count = np.zeros(len(chosen), dtype=int)
    for vertices in regions.vertices:
        holds = in_quad if vertices[3] >= 0 else in_triangle
        corners = regions.places[vertices]
        count += [holds(corners, x, y, np.zeros(4)) >= 0 for x, y in chosen]
    assert (count == 1).all()


@pytest.mark.parametrize("lens", LENSES)
def test_answers_come_from_neighbouring_focal_lengths(lens: str) -> None:
    """Inside, beyond and nearer; the ends of the columns jitter."""
    table = breathing_table(lens)
    rng = np.random.default_rng(3)
    lfl_mm = rng.uniform(table.lfl_mm.min(), table.lfl_mm.max(), 3000)
    fd_m = 1 / rng.uniform(0, 1.1 / table.fd_m.min(), 3000)
    columns = np.array([lfl for lfl, _ in table.columns])
    for scheme in REGION_SCHEMES:
        answers = make_lookup(table, scheme).query(lfl_mm, fd_m)
        some = answers.answered
        assert (np.bincount(answers.status)[:2] > 100).all()
        used = table.lfl_mm[answers.vertices[some]]
        right = np.clip(np.searchsorted(columns, lfl_mm[some]), 1, None)
        is_beside = (used == columns[right - 1, None]) | (used == columns[right, None])
        assert (is_beside | (answers.vertices[some] < 0)).all()


@pytest.mark.parametrize("scheme", ["paper", "disparity"])
def test_without_jitter_regions_are_delaunay_s(scheme: str) -> None:
    """The paper's plan: the hull is a rectangle, and no triangle leaves a strip anyway."""
    lookup = make_lookup(breathing_table("canon17", jitter=0.0), scheme)
    places = lookup.regions.places
    area = outline_area(lookup.regions.outline)
    np.testing.assert_allclose(area, ConvexHull(places).volume, rtol=1e-12)
    column = np.searchsorted(np.unique(places[:, 0]), places[:, 0])
    for simplex in Delaunay(places / np.ptp(places, axis=0)).simplices:
        assert np.ptp(column[simplex]) <= 1


@pytest.mark.parametrize("seed", range(12))
def test_columns_of_any_kind(seed: int) -> None:
    """Focal lengths that jitter, holes, columns of one experiment, focus distances all over."""
    rng = np.random.default_rng(seed)
    table = breathing_table(LENSES[seed % 2], seed)
    n = len(table.names)
    table = replace(
        table,
        lfl_mm=table.lfl_mm * np.exp(rng.choice([0.0, 2e-3]) * rng.uniform(-1, 1, n)),
        fd_m=table.fd_m * np.exp(rng.choice([0.0, 0.1]) * rng.standard_normal(n)),
    )
    table = table.rows(np.sort(rng.permutation(n)[: max(2, n // rng.choice([1, 3, 10]))]))
    lookup = make_lookup(table, "disparity")
    check_tiling(lookup)
    there = lookup.query(table.lfl_mm, table.fd_m)
    assert (there.status == Status.INTERPOLATED).all()
    np.testing.assert_allclose(there.intrinsics, lookup.experiments.values, rtol=1e-9, atol=1e-9)
    answers = lookup.query(*settings(lookup, 3000))
    assert (answers.status != Status.LFL_OUTSIDE).all()
    some = answers.answered
    assert some.mean() > 0.8
    np.testing.assert_allclose(answers.weights[some].sum(axis=1), 1, rtol=1e-9)
    assert answers.weights.min() > -1e-5


def test_answers_are_continuous_across_borders(lookup: Lookup) -> None:
    ends_lfl, ends_fd = settings(lookup, 400, seed=5)
    share = np.linspace(0, 1, 2001)[:, None]
    lfl = ends_lfl[:200] * (1 - share) + ends_lfl[200:] * share
    y = lookup.scheme.y(ends_fd)
    fd = lookup.scheme.fd(y[:200] * (1 - share) + y[200:] * share)
    answers = lookup.query(lfl.ravel(), fd.ravel())
    region = np.sort(answers.vertices, axis=1).reshape(2001, 200, 4)
    crossing = (region[1:] != region[:-1]).any(axis=2)
    both_in = (answers.status == Status.INTERPOLATED).reshape(2001, 200)
    crossing &= both_in[1:] & both_in[:-1]
    step, line = np.nonzero(crossing)
    assert len(step) > 500
    # Close in on the border by halving, then compare its two sides.
    low, high = share[step, 0], share[step + 1, 0]
    a, b = (np.column_stack([ends_lfl[line + 200 * k], y[line + 200 * k]]) for k in range(2))

    def at(where: FloatArray) -> tuple[FloatArray, FloatArray]:
        place = a + where[:, None] * (b - a)
        answer = lookup.query(place[:, 0], lookup.scheme.fd(place[:, 1]))
        return np.sort(answer.vertices, axis=1), answer.intrinsics

    first, _ = at(low)
    for _ in range(45):
        middle = (low + high) / 2
        same = (at(middle)[0] == first).all(axis=1)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    difference = np.abs(at(low)[1] - at(high)[1])
    scale = np.abs(lookup.table.values).max(axis=0)
    assert (difference / scale).max() < 1e-9


def test_an_affine_table_is_reproduced() -> None:
    table = breathing_table("canon17")
    slopes = np.random.default_rng(1).standard_normal((2, 8))
    values = 5000 + np.column_stack([table.lfl_mm, table.fd_m]) @ slopes
    affine = Table(**{**vars_of(table), "values": values})
    lookup = make_lookup(affine, "paper")
    lfl_mm, fd_m = settings(lookup, 20_000)
    answers = lookup.query(lfl_mm, fd_m)
    inside = answers.status == Status.INTERPOLATED
    expected = 5000 + np.column_stack([lfl_mm, fd_m]) @ slopes
    np.testing.assert_allclose(answers.intrinsics[inside], expected[inside], rtol=1e-9)


def vars_of(table: Table) -> dict[str, object]:
    from dataclasses import fields

    return {field.name: getattr(table, field.name) for field in fields(table)}


def test_a_thin_lens_is_reproduced_up_to_infinity() -> None:
    table = breathing_table("canon17", breathing=0.0, noise=0.0)
    lookup = make_lookup(table, "thin-lens")
    lfl_mm, fd_m = settings(lookup, 20_000)
    fd_m[:2000] *= 100
    answers = lookup.query(lfl_mm, fd_m)
    expected = true_values(lfl_mm, fd_m, 0.0)[:, :2]
    np.testing.assert_allclose(answers.intrinsics[:, :2], expected, rtol=1e-6)
    for scheme in REGION_SCHEMES:
        at_infinity = make_lookup(table, scheme).query([35.0], [np.inf])
        assert at_infinity.status[0] == Status.EXTRAPOLATED
        np.testing.assert_allclose(at_infinity.intrinsics[0, 0] * PIXEL_UM * 1e-3, 35, rtol=1e-6)


def test_the_paper_s_trapezoid_by_hand() -> None:
    # A (20, 1.0), B (20, 2.0), C (30, 2.2), D (30, 1.2); halfway in LFL the sides are at
    # y1 = 1.1 and y2 = 2.1, so FD 1.35 is a quarter of the way up.
    lfl_mm, fd_m = np.array([20.0, 20, 30, 30]), np.array([1.0, 2.0, 2.2, 1.2])
    values = np.full((4, 8), 100.0) + np.array([[1.0], [2.0], [4.0], [8.0]])
    table = Table(**{**vars_of(small(values, lfl_mm, fd_m)), "grid": np.array(
        [[0, 0], [0, 1], [1, 1], [1, 0]])})  # fmt: skip
    answers = make_lookup(table, "paper").query([25.0], [1.35])
    expected = 100 + 0.5 * 0.75 * 1 + 0.5 * 0.25 * 2 + 0.5 * 0.25 * 4 + 0.5 * 0.75 * 8
    np.testing.assert_allclose(answers.intrinsics[0], expected, rtol=1e-14)
    weights = dict(zip(answers.vertices[0].tolist(), answers.weights[0].tolist(), strict=True))
    assert weights == pytest.approx({0: 0.375, 1: 0.125, 2: 0.125, 3: 0.375})


def test_the_paper_s_extrapolation_by_hand() -> None:
    lfl_mm, fd_m = np.array([20.0, 20, 40, 40]), np.array([1.0, 2.0, 1.0, 2.0])
    cfl_mm = np.array([20.5, 20.3, 41.9, 41.0])
    values = np.tile([1.0, 1.0, 1700.0, 1100.0, -0.1, 0.0, 0.0, 0.0], (4, 1))
    values[:, :2] = (cfl_mm / (1e-3 * PIXEL_UM))[:, None]
    values[:, 2] = [1700, 1710, 1720, 1730]
    answers = make_lookup(small(values, lfl_mm, fd_m)).query([25.0], [5.0])
    assert answers.status[0] == Status.EXTRAPOLATED
    expected = 0.0
    for column, share in ((slice(0, 2), 0.75), (slice(2, 4), 0.25)):
        f, d = cfl_mm[column], 1e3 * fd_m[column]
        effective = 2 / (1 / f + 1 / (d - f)).sum()
        expected += share * (5000 - np.sqrt(5000**2 - 4 * 5000 * effective)) / 2
    np.testing.assert_allclose(answers.intrinsics[0, 0], expected / (1e-3 * PIXEL_UM), rtol=1e-12)
    np.testing.assert_allclose(answers.intrinsics[0, 2], 0.75 * 1710 + 0.25 * 1730, rtol=1e-12)


@pytest.mark.parametrize("scheme", REGION_SCHEMES)
def test_nearer_than_the_table_is_extrapolated(scheme: str) -> None:
    table = breathing_table("canon17", breathing=0.0, noise=0.0)
    lookup = make_lookup(table, scheme)
    answers = lookup.query([24.0, 30.0], [0.6, 0.7])
    assert (answers.status == Status.EXTRAPOLATED).all()
    expected = true_values(np.array([24.0, 30.0]), np.array([0.6, 0.7]), 0.0)[:, 0]
    np.testing.assert_allclose(answers.intrinsics[:, 0], expected, rtol=2e-3)


def test_settings_without_an_answer() -> None:
    table = breathing_table("canon17")
    lookup = make_lookup(table)
    lfl_mm = [16.99, 120.01, np.nan, 35, 35, 35, 120]
    fd_m = [2.0, 2.0, 2.0, np.nan, 0.0, -1.0, 0.4]
    answers = lookup.query(lfl_mm, fd_m)
    expected = [Status.LFL_OUTSIDE] * 2 + [Status.UNUSABLE] * 5
    np.testing.assert_array_equal(answers.status, expected)
    assert np.isnan(answers.intrinsics).all()
    assert (answers.vertices == -1).all()
    with pytest.raises(InputError, match=r"LFL 16.99 mm is outside .* from 17 to 120 mm"):
        one(answers, table, 16.99, 2.0)


def test_a_table_with_holes_answers_everywhere(lookup: Lookup) -> None:
    table = lookup.table
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(table.names))[: len(table.names) * 2 // 3])
    left = table.rows(rows)
    holed = make_lookup(left, lookup.scheme.name)
    lfl_mm, fd_m = settings(holed, 20_000)
    assert holed.query(lfl_mm, fd_m).answered.all()
    np.testing.assert_allclose(
        holed.query(left.lfl_mm, left.fd_m).intrinsics, left.values, rtol=1e-12, atol=1e-12
    )


def test_a_table_of_one_focal_length() -> None:
    table = breathing_table("canon17", breathing=0.0, noise=0.0)
    column = table.rows(np.flatnonzero(table.grid[:, 0] == 2))
    lfl_mm = float(column.lfl_mm[0])
    for scheme in REGION_SCHEMES:
        lookup = make_lookup(column, scheme)
        answers = lookup.query([lfl_mm] * 3 + [lfl_mm + 1], [2.0, 50.0, np.inf, 2.0])
        expected = [Status.INTERPOLATED, Status.EXTRAPOLATED, Status.EXTRAPOLATED, 2]
        np.testing.assert_array_equal(answers.status, expected)
        truth = true_values(np.array([lfl_mm] * 2), np.array([2.0, 50.0]), 0.0)[:, 0]
        np.testing.assert_allclose(answers.intrinsics[:2, 0], truth, rtol=2e-3)


@pytest.mark.parametrize("fd_m", [[10.0, 10.0, 10.0], [5.0, 10.0, 15.0]])
def test_a_table_of_experiments_in_a_row(fd_m: list[float]) -> None:
    """Along the row by shares of the focal length; off it there is an extrapolation."""
    values = true_values(np.array([17.0, 20.0, 25.0]), np.full(3, 10.0), 0.0)
    lookup = make_lookup(small(values, np.array([17.0, 20.0, 25.0]), np.array(fd_m)), "paper")
    on_row = np.interp([17.0, 19.0, 24.0], [17, 20, 25], fd_m)
    answers = lookup.query([17.0, 19.0, 24.0], on_row)
    expected = [values[0], values[0] / 3 + 2 * values[1] / 3, values[1] / 5 + 4 * values[2] / 5]
    if fd_m[0] == fd_m[1]:
        assert (answers.status == Status.INTERPOLATED).all()
        np.testing.assert_allclose(answers.intrinsics, expected, rtol=1e-9, atol=1e-12)
    off = lookup.query([19.0], [30.0])
    assert off.status[0] == Status.EXTRAPOLATED
    assert np.isfinite(off.intrinsics).all()


def test_a_table_of_one_experiment() -> None:
    table = breathing_table("canon17", breathing=0.0, noise=0.0).rows(np.array([5]))
    lookup = make_lookup(table)
    answers = lookup.query([17.0, 17.0], [float(table.fd_m[0]), 8.0])
    np.testing.assert_array_equal(answers.status, [Status.INTERPOLATED, Status.EXTRAPOLATED])
    np.testing.assert_allclose(answers.intrinsics[0], table.values[0], rtol=1e-12)
    truth = true_values(np.array([17.0]), np.array([8.0]), 0.0)[0, 0]
    np.testing.assert_allclose(answers.intrinsics[1, 0], truth, rtol=1e-6)


def test_tables_that_are_none() -> None:
    table = breathing_table("canon17")
    with pytest.raises(InputError, match="at least one experiment"):
        table.rows(np.empty(0, dtype=np.int64))
    with pytest.raises(InputError, match="keep one of them"):
        table.rows(np.array([0, 1, 1]))
    with pytest.raises(InputError, match="no interpolation scheme 'cubic'; known: smooth, paper"):
        make_lookup(table, "cubic")
    values = table.values.copy()
    values[3, 0] = np.nan
    with pytest.raises(InputError, match="experiment z0f3"):
        Table(**{**vars_of(table), "values": values})
