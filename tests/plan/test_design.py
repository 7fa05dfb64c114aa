"""Designs, against brute force and against the smooth lens that the same experiments make."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.lut.smooth.left_out import fit_smooth
from influx_wrap.lut.smooth.lens import SmoothLens
from influx_wrap.model.hardware import Lens
from influx_wrap.model.table import Table
from influx_wrap.plan.candidates import Reach, candidates
from influx_wrap.plan.choose import choose_accurate_plan, choose_plan
from influx_wrap.plan.design import POWER, DesignProblem, Process, add, exchange
from influx_wrap.plan.grid import needs_drone
from influx_wrap.plan.measuring import expected_covariance
from influx_wrap.plan.next_experiments import known_now, next_experiments

KNOWN = load_catalogue()
CAMERA, BOARDS = KNOWN.camera("arri-alexa-mini"), tuple(KNOWN.boards.values())
TELE = Lens("tele", 80, 250, 1.5, 2.5)


def some_problem(n: int = 7, places: int = 5, seed: int = 0) -> tuple[DesignProblem, np.ndarray]:
    """Random, with the joint covariance of candidates' outputs and places' displacements."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(2 * n + places, 2 * n + places + 3))
    joint = half @ half.T
    noise = np.array([np.diag(rng.uniform(0.1, 0.5, 2)) for _ in range(n)])
    process = Process(
        1.0,
        joint[: 2 * n, : 2 * n],
        joint[2 * n :, : 2 * n],
        np.diag(joint)[2 * n :].copy(),
        noise,
    )
    nobody = np.zeros(n, dtype=bool)
    problem = DesignProblem(
        (process,), np.zeros(places), np.ones(places), nobody, np.zeros(n, dtype=np.int64)
    )
    return problem, joint


def by_inverse(problem: DesignProblem, joint: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Sigma by the textbook's formula."""
    noise, n = problem.processes[0].noise, len(problem.is_drone)
    rows = [2 * k + i for k in chosen for i in range(2)]
    total = joint[np.ix_(rows, rows)].copy()
    for k, row in enumerate(chosen):
        total[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] += noise[row]
    across = joint[2 * n :][:, rows]
    return np.sqrt(np.diag(joint[2 * n :, 2 * n :] - across @ np.linalg.inv(total) @ across.T))


def test_sigma_is_the_textbook_s() -> None:
    problem, joint = some_problem()
    for chosen in ([], [3], [0, 5, 2]):
        expected = by_inverse(problem, joint, chosen) if chosen else None
        if expected is not None:
            np.testing.assert_allclose(problem.sigma(chosen), expected, rtol=1e-9)
        each = problem.sigma_with_each(chosen)
        for k in set(range(7)) - set(chosen):
            np.testing.assert_allclose(each[k], by_inverse(problem, joint, [*chosen, k]), rtol=1e-9)


def test_exchange_comes_near_the_best_of_all_designs() -> None:
    for seed in range(5):
        problem, _ = some_problem(seed=seed)

        def measure(design: tuple[int, ...], problem: DesignProblem = problem) -> float:
            return float(np.mean(problem.sigma(design) ** POWER) ** (1 / POWER))

        best = min(map(measure, itertools.combinations(range(7), 3)))
        greedy = add(problem, [], 3)
        found = exchange(problem, greedy)
        assert len(set(found)) == 3
        assert measure(tuple(found)) <= measure(tuple(greedy)) + 1e-12
        assert measure(tuple(found)) <= 1.05 * best


def test_a_drone_must_be_worth_its_flight() -> None:
    problem, _ = some_problem()
    best = problem.best([])
    flown = replace(problem, is_drone=np.arange(7) == best)
    costs = np.mean(problem.sigma_with_each([]) ** POWER, axis=1) ** (1 / POWER)
    second = np.partition(costs, 1)[1]
    assert (flown.best([]) == best) == (1.05 * costs[best] < second)


def test_what_a_board_tells() -> None:
    near = expected_covariance(BOARDS[-1], 80.0, 4.0, CAMERA)
    far = expected_covariance(BOARDS[-1], 80.0, 8.0, CAMERA)
    # Half as large in the picture, half as deep: the focal length is four times as uncertain.
    assert math.sqrt(far[0, 0] / near[0, 0]) == pytest.approx(4, rel=0.15)
    drone = expected_covariance(None, 80.0, 20.0, CAMERA)
    assert drone[0, 0] > far[0, 0]
    assert np.linalg.eigvalsh(drone).min() > 0


def test_candidates_are_where_boards_can_be_filmed() -> None:
    lens = KNOWN.lens("canon17")
    asked = candidates(Reach.of(lens), CAMERA, BOARDS)
    for one in asked:
        cfl_mm = one.lfl_mm  # About; the thin lens's differs by less than boards do.
        if one.board is not None:
            assert not needs_drone(1.3 * cfl_mm, one.fd_m, CAMERA) or one.fd_m < 2
        assert lens.lfl_min_mm <= one.lfl_mm <= lens.lfl_max_mm
        assert one.fd_m >= lens.fd_min_m
    only = candidates(Reach.of(lens), CAMERA, BOARDS, boards_only=True)
    assert all(one.board for one in only)
    assert len(only) < len(asked)


def test_chosen_plan() -> None:
    few, more = (choose_plan(TELE, CAMERA, BOARDS, n) for n in (8, 14))
    assert len(few.plan.cells) == 8
    assert more.expected.largest_px < few.expected.largest_px
    assert more.expected.mean_px < few.expected.mean_px
    for chosen in (few, more):
        assert (chosen.plan.lfl_mm[0], chosen.plan.lfl_mm[-1]) == (80, 250)
        assert all(cell.board is not None for cell in chosen.plan.cells)
        assert len({cell.name for cell in chosen.plan.cells}) == len(chosen.plan.cells)
        for cell in chosen.plan.cells:
            assert chosen.plan.lfl_mm[cell.zoom_index] == cell.lfl_mm
            assert chosen.plan.fd_m[cell.focus_index] == cell.fd_m


def test_accuracy() -> None:
    chosen = choose_accurate_plan(TELE, CAMERA, BOARDS, 8.0)
    assert chosen.expected.largest_px <= 8.0
    fewer = choose_plan(TELE, CAMERA, BOARDS, len(chosen.plan.cells) - 1)
    assert fewer.expected.largest_px > 8.0
    with pytest.raises(
        InputError, match=r"no plan of 40 experiments makes tele known to 0\.001 px"
    ):
        choose_accurate_plan(TELE, CAMERA, BOARDS, 0.001)
    for n in (3, 41):
        with pytest.raises(InputError, match="a plan is chosen of 4 to 40 experiments"):
            choose_plan(TELE, CAMERA, BOARDS, n)


def thin_table(settings: np.ndarray) -> Table:
    """A thin lens, measured as exactly as boards are expected to."""
    lfl_mm, fd_m = settings.T
    cfl_mm = 2 * lfl_mm / (1 + np.sqrt(1 - 4 * lfl_mm / (1e3 * fd_m)))
    focal = 1e3 * cfl_mm / CAMERA.pixel_um
    n = len(settings)
    zeros = np.zeros(n)
    values = np.column_stack(
        [focal, focal, zeros + 1711.5, zeros + 1100.5, zeros - 0.2, zeros, zeros, zeros]
    )
    sigma = np.column_stack(
        [1e-4 * focal, 1e-4 * focal, zeros + 2, zeros + 2, zeros + 1e-3, zeros + 1e-2]
        + [zeros + 1e-5] * 2
    )
    covariance = np.array([np.diag(row**2) for row in sigma])
    return Table(
        "tele", CAMERA.name, CAMERA.image_size, CAMERA.pitch_um,
        tuple(f"e{k}" for k in range(n)), lfl_mm, fd_m, values, covariance,
        np.zeros(n, dtype=bool), np.zeros((n, 2), dtype=np.int64),
    )  # fmt: skip


@pytest.fixture(scope="module")
def lens() -> SmoothLens:
    lfl_mm, fd_m = np.meshgrid([80.0, 140.0, 250.0], [1.5, 3.0, 12.0])
    table = thin_table(np.column_stack([lfl_mm.ravel(), fd_m.ravel()]))
    return SmoothLens(table, fit_smooth(table))


def test_proposals_gain_what_the_lens_with_them_knows(lens: SmoothLens) -> None:
    proposals = next_experiments(lens, BOARDS, camera=CAMERA, count=3, boards_only=True)
    now = known_now(lens)
    assert proposals[0].before.largest_px == pytest.approx(now.largest_px, rel=1e-6)
    assert proposals[0].before.mean_px == pytest.approx(now.mean_px, rel=1e-6)
    assert all(one.after.mean_px < one.before.mean_px for one in proposals)
    assert proposals[1].before == proposals[0].after
    assert all(one.target != "drone" for one in proposals)
    # The same lens with these experiments, its hyper-parameters kept. That experiment's
    # exactness differs from the expected by less than twice.
    more = np.array([(one.lfl_mm, one.fd_m) for one in proposals])
    old = np.column_stack([lens.table.lfl_mm, lens.table.fd_m])
    table = thin_table(np.vstack([old, more]))
    then = known_now(SmoothLens(table, replace(lens.fit, fitted_to=table.fingerprint)))
    assert then.mean_px == pytest.approx(proposals[-1].after.mean_px, rel=0.35)
    assert then.mean_px < now.mean_px


def test_a_table_without_near_experiments_cannot_tell(lens: SmoothLens) -> None:
    far = lens.table.rows(np.flatnonzero(lens.table.fd_m > 2))
    some = SmoothLens(far, fit_smooth(far))
    reach = Reach((80.0, 250.0), 1.5)
    for ask in (
        lambda: known_now(some, reach),
        lambda: next_experiments(some, BOARDS, reach=reach),
    ):
        with pytest.raises(InputError, match=r"nearest experiment of tele is at 3 m.*Film some"):
            ask()
    assert known_now(some).largest_px < 500


def test_no_proposal_is_there_already(lens: SmoothLens) -> None:
    for one in next_experiments(lens, BOARDS, camera=CAMERA, count=6):
        same = np.abs(np.log(lens.table.lfl_mm / one.lfl_mm)) < 1e-3
        assert not (same & (np.abs(np.log(lens.table.fd_m / one.fd_m)) < 0.01)).any()
