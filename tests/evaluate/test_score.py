"""Scores: hand-computed cases, and the streaming histogram against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.evaluate.epe import epe_px
from influx_wrap.evaluate.epe_counts import BIN_PX, MOST_PX, EpeHistogram
from influx_wrap.evaluate.score import Evaluation, evaluate, merged
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.predictions import MEI, RAD_TAN, Predictions, VideoPredictions

SIZE = (1000, 800)
CAMERA = Intrinsics(1000.0, 1000.0, 499.5, 399.5)
# Straight ahead, 100, 200 and 300 px to the right, 100 px down; and one outside the picture.
POINTS = np.array(
    [[0, 0, 1], [0.1, 0, 1], [0.4, 0, 2], [0.9, 0, 3], [0, 0.1, 1], [0.6, 0, 1]], dtype=float
)


def truth_of(
    *cameras: Intrinsics | None, interpolated: tuple[int, ...] | None = None
) -> GroundTruth:
    n = len(cameras)
    values = np.array([np.full(8, np.nan) if one is None else one.array for one in cameras])
    known = np.array([one is not None for one in cameras])
    if interpolated is not None:
        known &= np.isin(np.arange(n), interpolated)
    metadata = LensMetadata(np.arange(n), np.full(n, 17.0), np.full(n, 3.0))
    return GroundTruth(metadata, values, known)


def predicted(*cameras: Intrinsics | None) -> VideoPredictions:
    values = np.array([np.full(8, np.nan) if one is None else one.array for one in cameras])
    return VideoPredictions(np.arange(len(cameras)), values)


def scored(
    truth: dict[str, GroundTruth],
    answers: dict[str, VideoPredictions],
    points: FloatArray = POINTS,
    kind: str = RAD_TAN,
    **more: object,
) -> Evaluation:
    predictions = Predictions("method", kind, "influx", answers)
    options = {"points_source": "test", "image_size": SIZE, **more}
    return evaluate(predictions, truth, points, **options)  # type: ignore[arg-type]


def test_a_perfect_method() -> None:
    other = replace(CAMERA, fx=1200.0, k1=-0.1)
    result = scored({"v": truth_of(CAMERA, other)}, {"v": predicted(CAMERA, other)})
    np.testing.assert_array_equal(result.overall.percent_error, 0)
    assert result.overall.histogram.share_below(BIN_PX) == 1.0
    assert result.overall.histogram.n == 10
    assert result.overall.histogram.percentile(100) == pytest.approx(BIN_PX)


def test_a_focal_length_ten_per_cent_too_long() -> None:
    """Errors are 0, 10, 20, 30 px in x, and 10 px in y."""
    long = replace(CAMERA, fx=1100.0, fy=1100.0)
    result = scored({"v": truth_of(CAMERA)}, {"v": predicted(long)}).overall
    np.testing.assert_allclose(result.percent_error, [10, 10, 0, 0], atol=1e-12)
    assert result.histogram.n == 5
    shares = [result.histogram.share_below(px) for px in (5, 15, 25, 35)]
    assert shares == pytest.approx([0.2, 0.6, 0.8, 1.0])
    assert result.histogram.percentile(60) == pytest.approx(10, abs=1.01 * BIN_PX)
    assert result.histogram.percentile(80) == pytest.approx(20, abs=1.01 * BIN_PX)


def test_a_shifted_principal_point() -> None:
    """3.03 and 4.04 px off make 5.05 px for every point; per cent are of corner-origin numbers."""
    shifted = replace(CAMERA, cx=499.5 + 3.03, cy=399.5 - 4.04)
    result = scored({"v": truth_of(CAMERA)}, {"v": predicted(shifted)}).overall
    np.testing.assert_allclose(result.percent_error, [0, 0, 303 / 500, 404 / 400], atol=1e-9)
    assert result.histogram.share_below(5.0) == 0
    assert result.histogram.share_below(5.1) == 1


def test_a_missing_frame_is_infinitely_wrong_and_has_no_per_cent() -> None:
    long = replace(CAMERA, fx=1100.0)
    answers = {"v": predicted(long, None)}
    result = scored({"v": truth_of(CAMERA, CAMERA)}, answers).overall
    assert (result.frames, result.predicted_frames) == (2, 1)
    np.testing.assert_allclose(result.percent_error, [10, 0, 0, 0], atol=1e-12)
    assert (result.histogram.n, result.histogram.infinite) == (10, 5)
    assert result.histogram.share_below(300) == 0.5
    assert result.histogram.percentile(50) == pytest.approx(30, abs=1.01 * BIN_PX)
    assert np.isinf(result.histogram.percentile(51))
    # A frame or a video that is not mentioned is the same.
    short = VideoPredictions(np.array([0]), long.array[None])
    assert scored({"v": truth_of(CAMERA, CAMERA)}, {"v": short}).overall.histogram.infinite == 5
    nothing = scored({"v": truth_of(CAMERA, CAMERA)}, {}).overall
    assert (nothing.predicted_frames, nothing.histogram.infinite) == (0, 10)
    assert np.isnan(nothing.percent_error).all()


def test_a_partly_missing_answer_is_none() -> None:
    values = CAMERA.array[None].copy()
    values[0, 7] = np.nan
    result = scored({"v": truth_of(CAMERA)}, {"v": VideoPredictions(np.array([0]), values)})
    assert result.overall.predicted_frames == 0


def test_points_behind_the_fold() -> None:
    """r (1 - r^2 / 3) turns back at r = 1: a wide camera sees what the other one folds away."""
    true = Intrinsics(300.0, 300.0, 499.5, 399.5)
    folded = replace(true, k1=-1 / 3)
    points = np.array([[0.5, 0, 1], [0.99, 0, 1], [1.01, 0, 1], [1.5, 0, 1]])
    result = scored({"v": truth_of(true)}, {"v": predicted(folded)}, points).overall.histogram
    assert (result.n, result.infinite) == (4, 2)
    # 300 * 0.5^3 / 3 = 12.5 and 300 * 0.99^3 / 3 = 97.03 px.
    assert result.share_below(12.4) == 0
    assert result.share_below(12.6) == 0.25
    assert result.share_below(97.1) == 0.5
    # Where the true camera folds, there is nothing to see.
    result = scored({"v": truth_of(folded)}, {"v": predicted(true)}, points).overall.histogram
    assert (result.n, result.infinite) == (2, 0)


def test_only_interpolated_frames_count() -> None:
    wrong = replace(CAMERA, fx=2000.0)
    truth = truth_of(CAMERA, CAMERA, None, interpolated=(0,))
    result = scored({"v": truth}, {"v": predicted(CAMERA, wrong, wrong)}).overall
    assert (result.frames, result.predicted_frames) == (1, 1)
    assert result.histogram.n == 5
    assert result.percent_error[0] == 0


def test_points_behind_the_camera_do_not_count() -> None:
    result = scored({"v": truth_of(CAMERA)}, {"v": predicted(CAMERA)}, -POINTS).overall
    assert result.histogram.n == 0
    assert np.isnan(result.histogram.share_below(300))


def random_cameras(n: int, rng: np.random.Generator) -> list[Intrinsics]:
    return [
        Intrinsics(
            f := rng.uniform(300, 6000), f * rng.uniform(0.99, 1.01), rng.uniform(450, 550),
            rng.uniform(350, 450), rng.uniform(-0.4, 0.4), rng.uniform(-0.1, 0.1),
            *rng.uniform(-0.02, 0.02, 2),
        )
        for _ in range(n)
    ]  # fmt: skip


def brute_force(errors: list[FloatArray]) -> EpeHistogram:
    every = np.concatenate(errors)
    finite = every[np.isfinite(every)]
    edges = np.arange(MOST_PX * 10 + 1) / 10
    counts = np.histogram(finite[finite < MOST_PX], edges)[0]
    return EpeHistogram(counts, int((finite >= MOST_PX).sum()), int(np.isinf(every).sum()))


def same(ours: EpeHistogram, expected: EpeHistogram) -> bool:
    end = len(ours.counts)
    return (
        np.array_equal(ours.counts, expected.counts[:end])
        and not expected.counts[end:].any()
        and (ours.beyond, ours.infinite) == (expected.beyond, expected.infinite)
    )


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_histogram_is_that_of_brute_force(jobs: int) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 3)) * [1, 0.8, 1] + [0, 0, 2]
    true = {name: random_cameras(90, rng) for name in ("a", "b", "c")}
    guess: dict[str, list[Intrinsics | None]] = {
        name: [None if rng.uniform() < 0.2 else one for one in random_cameras(90, rng)]
        for name in true
    }
    # Some frames come again, as in a clip in which nothing moves.
    for name in true:
        true[name] += true[name][:20]
        guess[name] += guess[name][:20]
    result = scored(
        {name: truth_of(*cameras) for name, cameras in true.items()},
        {name: predicted(*cameras) for name, cameras in guess.items()},
        points,
        jobs=jobs,
    )
    for name in true:
        errors = [epe_px(t, g, points, SIZE) for t, g in zip(true[name], guess[name], strict=True)]
        assert same(result.videos[name].histogram, brute_force(errors))
        assert len(np.concatenate(errors)) > 1000
    everything = [
        epe_px(t, g, points, SIZE)
        for name in true
        for t, g in zip(true[name], guess[name], strict=True)
    ]
    assert same(result.overall.histogram, brute_force(everything))


def test_a_unified_camera() -> None:
    """Against the formula with X, Y, Z and the point's distance."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(2000, 3)) * [1, 0.8, 1] + [0, 0, 2]
    values = np.array([[2500.0, 2400.0, 510.0, 390.0, 1.3], [900.0, 900.0, 499.5, 399.5, -0.9]])
    distance = np.linalg.norm(points, axis=1)
    errors = []
    for fx, fy, cx, cy, xi in values:
        depth = points[:, 2] + xi * distance
        uv = np.stack([fx * points[:, 0] / depth + cx, fy * points[:, 1] / depth + cy], axis=1)
        uv[depth <= 0] = np.inf
        true = np.stack(
            [1000 * points[:, k] / points[:, 2] + c for k, c in ((0, 499.5), (1, 399.5))], axis=1
        )
        seen = (points[:, 2] > 0) & (true >= -0.5).all(axis=1)
        seen &= (true <= np.array(SIZE) - 0.5).all(axis=1)
        errors.append(np.linalg.norm(uv - true, axis=1)[seen])
    answers = VideoPredictions(np.arange(2), values)
    result = scored({"v": truth_of(CAMERA, CAMERA)}, {"v": answers}, points, MEI).overall
    assert same(result.histogram, brute_force(errors))
    assert result.histogram.infinite > 0


def test_all_videos_together_are_the_frames_together() -> None:
    rng = np.random.default_rng(3)
    cameras, guesses = random_cameras(7, rng), random_cameras(7, rng)
    together = scored({"v": truth_of(*cameras)}, {"v": predicted(*guesses)}).overall
    parts = scored(
        {"a": truth_of(*cameras[:2]), "b": truth_of(*cameras[2:])},
        {"a": predicted(*guesses[:2]), "b": predicted(*guesses[2:])},
    )
    np.testing.assert_allclose(parts.overall.percent_error, together.percent_error)
    assert same(parts.overall.histogram, brute_force(
        [epe_px(t, g, POINTS, SIZE) for t, g in zip(cameras, guesses, strict=True)]
    ))  # fmt: skip
    assert merged([]).frames == 0


def test_groups() -> None:
    long = replace(CAMERA, fx=1100.0)
    result = scored(
        {name: truth_of(CAMERA) for name in "abc"},
        {"a": predicted(long), "b": predicted(CAMERA), "c": predicted(CAMERA)},
        properties={"lens": {"a": "canon17", "b": "canon17", "c": "premista80"}},
    )
    lens = result.groups["lens"]
    assert list(lens) == ["canon17", "premista80"]
    assert lens["canon17"].percent_error[0] == pytest.approx(5.0)
    assert lens["premista80"].percent_error[0] == 0


def test_intervals_are_those_of_drawing_videos() -> None:
    """Against drawing with ``choice`` and adding up frames, draw by draw."""
    rng = np.random.default_rng(4)
    truth, answers = {}, {}
    for k in range(12):
        n = int(rng.integers(1, 6))
        truth[f"v{k}"] = truth_of(*[CAMERA] * n)
        answers[f"v{k}"] = predicted(*[replace(CAMERA, fx=1000 * (1 + 0.2 * rng.uniform()))] * n)
    result = scored(truth, answers)
    scores = list(result.videos.values())
    drawn = []
    for _ in range(4000):
        chosen = [scores[i] for i in rng.choice(12, 12)]
        drawn.append(merged(chosen).percent_error[0])
    low, high = np.percentile(drawn, [2.5, 97.5])
    width = high - low
    assert result.intervals["fx"] == pytest.approx((low, high), abs=0.06 * width)
    assert result.intervals["300"] == (100.0, 100.0)
    assert scored({"v": truth_of(CAMERA)}, {"v": predicted(CAMERA)}).intervals == {}


def test_subsampling_takes_every_nth_frame_for_end_points_only() -> None:
    result = scored({"v": truth_of(*[CAMERA] * 10)}, {"v": predicted(*[CAMERA] * 10)}, subsample=3)
    assert result.overall.frames == 10
    assert result.overall.histogram.n == 4 * 5


def test_predictions_of_other_videos_are_refused() -> None:
    with pytest.raises(InputError, match="'w'"):
        scored({"v": truth_of(CAMERA)}, {"w": predicted(CAMERA)})
    with pytest.raises(InputError, match="no frame of the truth counts"):
        scored({"v": truth_of(CAMERA, interpolated=())}, {"v": predicted(CAMERA)})
    with pytest.raises(InputError, match="0th"):
        scored({"v": truth_of(CAMERA)}, {"v": predicted(CAMERA)}, subsample=0)


def test_numbers_that_overflow_do_no_harm() -> None:
    huge = replace(CAMERA, fx=1e308, k1=1e300)
    result = scored({"v": truth_of(CAMERA)}, {"v": predicted(huge)}).overall
    assert result.histogram.n == 5
    assert result.histogram.share_below(300) <= 0.2
