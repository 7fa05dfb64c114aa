"""Predictors without pictures: closed forms, and the truth with known errors."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.compute.progress import no_progress
from influx_wrap.errors import InputError
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.predict.predictor import Footage, Predicted
from influx_wrap.predict.trivial import make_trivial
from influx_wrap.predict.videos import VideoJournal, predict_videos
from tests.predict.scenes import write_frames

N = 6
SENSOR_MM = 32.0


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    return write_frames(tmp_path / "frames", N)


def predict(name: str, footage: Footage, **settings: str) -> Predicted:
    return make_trivial(name, settings, SENSOR_MM).predict(footage, no_progress)


def lens(frame: list[int], lfl_mm: list[float]) -> LensMetadata:
    return LensMetadata(np.array(frame), np.array(lfl_mm), np.full(len(frame), 3.0))


def truth(n: int) -> GroundTruth:
    values = np.tile([1000.0, 1010, 800, 600, -0.1, 0.01, 0.001, 0], (n, 1))
    values[1] = np.nan
    metadata = lens(list(range(n)), [50.0] * n)
    return GroundTruth(metadata, values, np.isfinite(values[:, 0]))


def test_constant(frames: Path) -> None:
    answers = predict("constant", Footage("a", frames)).answers
    # 16 x 12 pixels: their middle is 7.5, 5.5 where pixels' centres are whole numbers.
    assert answers.frames.tolist() == list(range(N))
    assert answers.values == pytest.approx(np.tile([19.2, 19.2, 7.5, 5.5, 0, 0, 0, 0], (N, 1)))
    other = predict("constant", Footage("a", frames), focal_ratio="2").answers
    assert other.values[:, 0].tolist() == [32] * N


def test_progress_ends_with_all_frames(frames: Path, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int | None]] = []
    running = predict_videos(
        [Footage("a", frames)],
        lambda stop: make_trivial("constant", {}, SENSOR_MM),
        VideoJournal(tmp_path / "journal", {}),
        progress=lambda *told: heard.append(told),
    )
    assert [outcome.n_frames for outcome in running] == [N]
    assert heard == [("a", N, N)]


def test_metadata_takes_lens_for_camera(frames: Path) -> None:
    told = lens([0, 1, 3, 4, 9], [16, 32, 64, np.nan, 50])
    predicted = predict("metadata", Footage("a", frames, told))
    # A sensor of 32 mm with 16 pixels: 0.5 px per mm, whatever the focus.
    nan = np.nan
    assert predicted.answers.values[:, 0].tolist() == pytest.approx(
        [8, 16, nan, 32, nan, nan], nan_ok=True
    )
    assert predicted.answers.answered.tolist() == [True, True, False, True, False, False]
    assert "1 frames beyond the 6" in predicted.warnings[0]
    assert "3 of 6 frames have no focal length" in predicted.warnings[1]
    with pytest.raises(InputError, match="needs --metadata"):
        predict("metadata", Footage("a", frames))


def test_perfect(frames: Path) -> None:
    known = truth(N)
    answers = predict("perfect", Footage("a", frames, truth=known)).answers
    np.testing.assert_array_equal(answers.values, known.intrinsics)
    with pytest.raises(InputError, match="needs --truth"):
        predict("perfect", Footage("a", frames))


def test_noisy(frames: Path) -> None:
    n = 4000
    known = truth(n)
    answers = predict("noisy", Footage("a", frames, truth=known), sigma="0.1").answers
    ratio = np.log(answers.values[:, :4] / known.intrinsics[:, :4])[answers.answered]
    assert ratio[:, :2].std(axis=0) == pytest.approx(0.1, rel=0.05)
    assert abs(np.corrcoef(ratio[:, :2].T)[0, 1]) < 0.1
    assert not ratio[:, 2:].any()
    assert answers.answered.mean() == pytest.approx(0.9, abs=0.02)
    again = predict("noisy", Footage("a", frames, truth=known), sigma="0.1").answers
    np.testing.assert_array_equal(again.values, answers.values)
    for name, seed in (("b", "0"), ("a", "1")):
        footage = Footage(name, frames, truth=known)
        other = predict("noisy", footage, sigma="0.1", seed=seed).answers
        assert not np.array_equal(other.values, answers.values, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("constant", {"focal_ratio": "wide"}, "focal_ratio must be a number, got 'wide'"),
        ("constant", {"focal_ratio": "-1"}, "must be above 0"),
        ("constant", {"focal_ratio": "nan"}, "must be above 0"),
        ("constant", {"focal": "1"}, "no setting focal; its settings are: focal_ratio"),
        ("perfect", {"sigma": "1"}, "its settings are: none"),
        ("noisy", {"missing": "2"}, "missing is from 0 to 1"),
        ("noisy", {"seed": "0.5"}, "seed must be a whole number"),
    ],
)
def test_mistakes(name: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_trivial(name, settings, SENSOR_MM)
