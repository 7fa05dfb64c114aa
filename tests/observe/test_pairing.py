"""Flashes and readings by their times: the right match, or one that says it is not sure."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from influx_wrap.observe.pairing import (
    JITTER_S,
    TOLERANCE_S,
    Match,
    MatchVerdict,
    Misfit,
    MisfitFunction,
    _heaviest_chain,
    fit_clock,
    match_times,
)

N = 24


def lone_flashes(match: Match) -> list[int]:
    return np.setdiff1d(np.arange(match.pairing.n_flashes), match.pairing.flashes).tolist()


def lone_readings(match: Match) -> list[int]:
    return np.setdiff1d(np.arange(match.pairing.n_readings), match.pairing.readings).tolist()


def times(
    rng: np.random.Generator,
    *,
    regular: bool,
    missed: list[int],
    lost: list[int],
    lights_s: list[float] | None = None,
    every_s: float = 10.0,
) -> tuple[np.ndarray, np.ndarray, set[tuple[int, int]]]:
    """Video times, reading times and the true pairs of N triggers."""
    steps = np.full(N, every_s) if regular else every_s * rng.uniform(0.4, 1.6, N)
    true_s = 15 + np.cumsum(steps)
    seen = [(float(true_s[i]), i) for i in range(N) if i not in missed]
    seen = sorted(seen + [(at, -1) for at in lights_s or []])
    flash_s = np.rint(24 * np.array([at for at, _ in seen])) / 24
    kept = [i for i in range(N) if i not in lost]
    clock = true_s[kept] * (1 + rng.uniform(-50e-6, 50e-6)) + rng.uniform(-86400, 86400)
    reading_s = clock + 0.02 * rng.standard_normal(len(kept))
    place = {i: j for j, i in enumerate(kept)}
    return flash_s, reading_s, {(k, place[i]) for k, (_, i) in enumerate(seen) if i in place}


def pairs(match: Match) -> set[tuple[int, int]]:
    found = match.pairing
    return set(zip(found.flashes.tolist(), found.readings.tolist(), strict=True))


def knowing(truth: set[tuple[int, int]]) -> MisfitFunction:
    """A camera that sees true pairs within a pixel; wrong ones are far off, and if they are
    most of them it can be fitted to none."""

    def misfit(flashes: np.ndarray, readings: np.ndarray) -> Misfit | None:
        chosen = zip(flashes.tolist(), readings.tolist(), strict=True)
        wrong = np.array([pair not in truth for pair in chosen])
        if wrong.mean() > 0.4:
            return None
        residual = np.where(wrong, 80.0, 0.8)
        return Misfit(residual, residual)

    return misfit


def random_faults(rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Up to three triggers without a flash, and up to three without a reading."""
    missed, lost = (rng.choice(N, rng.integers(0, 4), replace=False).tolist() for _ in range(2))
    return missed, lost


@pytest.mark.parametrize(("every_s", "n_flights"), [(10.0, 2000), (2.0, 400)])
def test_irregular_triggers_are_matched_by_their_times_alone(
    every_s: float, n_flights: int
) -> None:
    rng = np.random.default_rng(1)
    verdicts: Counter[MatchVerdict] = Counter()
    for _ in range(n_flights):
        missed, lost = random_faults(rng)
        flash_s, reading_s, truth = times(
            rng, regular=False, missed=missed, lost=lost, every_s=every_s
        )
        match = match_times(flash_s, reading_s)
        assert match is not None
        verdicts[match.verdict] += 1
        if match.verdict is MatchVerdict.AMBIGUOUS:
            continue
        assert pairs(match) == truth
        nothing_missing = not missed and not lost
        assert (match.verdict is MatchVerdict.CERTAIN) == (
            nothing_missing or set(missed) == set(lost)
        )
        assert np.abs(match.pairing.time_error_s).max() < TOLERANCE_S
    assert verdicts[MatchVerdict.AMBIGUOUS] <= 10, verdicts


def test_regular_triggers_need_more_than_times() -> None:
    """Every 10.0 s: shifted by one, the times agree as well."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        missed, lost = random_faults(rng)
        flash_s, reading_s, truth = times(rng, regular=True, missed=missed, lost=lost)
        match = match_times(flash_s, reading_s)
        assert match is not None
        assert match.verdict is MatchVerdict.AMBIGUOUS
        judged = match_times(flash_s, reading_s, misfit=knowing(truth))
        assert judged is not None
        assert judged.verdict is not MatchVerdict.AMBIGUOUS
        assert pairs(judged) == truth


@pytest.mark.parametrize("n", [1, 2, 3])
def test_both_ends_cut_look_complete(n: int) -> None:
    """The camera ran late and the link was lost early: equal counts, equal times, all wrong."""
    rng = np.random.default_rng(n)
    missed, lost = list(range(n)), list(range(N - n, N))
    flash_s, reading_s, truth = times(rng, regular=True, missed=missed, lost=lost)
    assert len(flash_s) == len(reading_s)
    blind = match_times(flash_s, reading_s)
    assert blind is not None
    assert pairs(blind) != truth
    assert blind.verdict is MatchVerdict.AMBIGUOUS
    match = match_times(flash_s, reading_s, misfit=knowing(truth))
    assert match is not None
    assert pairs(match) == truth
    assert match.verdict is MatchVerdict.PROPOSED
    assert lone_readings(match) == list(range(n))
    assert lone_flashes(match) == list(range(len(flash_s) - n, len(flash_s)))


def test_another_light_is_left_out() -> None:
    rng = np.random.default_rng(3)
    for regular in (False, True):
        for _ in range(150):
            missed, lost = random_faults(rng)
            light_s = float(rng.uniform(30, 200))
            flash_s, reading_s, truth = times(
                rng, regular=regular, missed=missed, lost=lost, lights_s=[light_s]
            )
            match = match_times(flash_s, reading_s, misfit=knowing(truth))
            assert match is not None
            fine = {
                pair
                for pair, out in zip(
                    sorted(pairs(match)), match.pairing.outlying.tolist(), strict=True
                )
                if not out
            }
            assert fine == truth or match.verdict is MatchVerdict.AMBIGUOUS
            assert match.verdict is not MatchVerdict.CERTAIN


def test_equal_counts_one_missed_and_one_too_many() -> None:
    rng = np.random.default_rng(4)
    flash_s, reading_s, truth = times(rng, regular=False, missed=[7], lost=[], lights_s=[100.123])
    assert len(flash_s) == len(reading_s) == N
    match = match_times(flash_s, reading_s)
    assert match is not None
    assert match.verdict is MatchVerdict.PROPOSED
    assert pairs(match) == truth
    assert lone_readings(match) == [7]
    assert len(lone_flashes(match)) == 1


def test_a_wrong_light_at_the_right_time_is_outlying() -> None:
    """Only the camera can tell."""
    rng = np.random.default_rng(5)
    flash_s, reading_s, truth = times(rng, regular=False, missed=[], lost=[])
    wrong = (11, 11)
    match = match_times(flash_s, reading_s, misfit=knowing(truth - {wrong}))
    assert match is not None
    assert match.verdict is MatchVerdict.PROPOSED
    assert np.flatnonzero(match.pairing.outlying).tolist() == [11]
    assert match.pairing.n_left_out == 2


def test_two_lights_at_one_time() -> None:
    """The LED's flash is the one that the camera confirms, not the one closer in time."""
    rng = np.random.default_rng(5)
    flash_s, reading_s, truth = times(rng, regular=False, missed=[], lost=[])
    early_s = flash_s[10] - 2 / 24
    both_s = np.insert(flash_s, 10, early_s)
    reading_s[10] -= 2 / 24
    truth = {(i if i < 10 else i + 1, j) for i, j in truth}
    blind = match_times(both_s, reading_s)
    assert blind is not None
    assert (10, 10) in pairs(blind)
    match = match_times(both_s, reading_s, misfit=knowing(truth))
    assert match is not None
    assert pairs(match) == truth
    assert lone_flashes(match) == [10]
    assert match.verdict is MatchVerdict.PROPOSED


def test_a_known_offset_decides() -> None:
    rng = np.random.default_rng(6)
    flash_s, reading_s, truth = times(rng, regular=True, missed=[], lost=[])
    offset_s = fit_clock(flash_s, reading_s).offset_s
    match = match_times(flash_s, reading_s, clock_offset_s=offset_s + 0.3)
    assert match is not None
    assert match.verdict is MatchVerdict.CERTAIN
    assert pairs(match) == truth
    shifted = match_times(flash_s, reading_s, clock_offset_s=offset_s + 10)
    assert shifted is not None
    assert len(shifted.pairing.flashes) == N - 1
    assert match_times(flash_s, reading_s, clock_offset_s=offset_s + 5) is None


def test_nothing_to_match() -> None:
    assert match_times(np.empty(0), np.array([1.0, 2.0])) is None
    assert match_times(np.array([1.0]), np.empty(0)) is None


def test_no_camera_fits() -> None:
    rng = np.random.default_rng(7)
    for regular, verdict in ((False, MatchVerdict.PROPOSED), (True, MatchVerdict.AMBIGUOUS)):
        flash_s, reading_s, _ = times(rng, regular=regular, missed=[], lost=[])
        match = match_times(flash_s, reading_s, misfit=lambda *_: None)
        assert match is not None
        assert match.verdict is verdict
        bad = match_times(
            flash_s,
            reading_s,
            misfit=lambda f, r: Misfit(np.full(len(f), 99.0), np.full(len(f), 99.0)),
        )
        assert bad is not None
        assert bad.verdict is verdict
        assert bad.pairing.misfit is None


def test_clock_is_the_least_squares_line() -> None:
    """The prior on the drift is weak against a long flight."""
    rng = np.random.default_rng(8)
    video_s = np.sort(rng.uniform(0, 20000, 200))
    reading_s = 1.7e9 + video_s * (1 + 30e-6) + 0.02 * rng.standard_normal(200)
    clock = fit_clock(video_s, reading_s)
    slope, intercept = np.polyfit(video_s, reading_s - video_s - 1.7e9, 1)
    assert clock.drift == pytest.approx(slope, rel=1e-2)
    assert clock.offset_s - 1.7e9 == pytest.approx(intercept, abs=1e-3)
    assert np.allclose(clock.video_s(clock.reading_s(video_s)), video_s, rtol=0, atol=1e-5)
    short = fit_clock(np.array([0.0, 1.0]), np.array([5.0, 6.0 + JITTER_S]))
    assert abs(short.drift) < 1e-6, "two pairs say nothing about a drift"


def test_chain_is_the_best_of_all() -> None:
    """Against all subsets that keep the order of both."""
    rng = np.random.default_rng(9)
    for _ in range(200):
        n = int(rng.integers(1, 9))
        cells = rng.choice(25, n, replace=False)
        flash, reading = np.sort(cells) // 5, np.sort(cells) % 5
        gain = rng.uniform(0.1, 1, n)
        best = max(
            float(gain[list(chosen)].sum())
            for size in range(1, n + 1)
            for chosen in combinations(range(n), size)
            if (np.diff(flash[list(chosen)]) > 0).all()
            and (np.diff(reading[list(chosen)]) > 0).all()
        )
        chain = _heaviest_chain(flash, reading, gain)
        assert (np.diff(flash[chain]) > 0).all()
        assert (np.diff(reading[chain]) > 0).all()
        assert float(gain[chain].sum()) == pytest.approx(best)
