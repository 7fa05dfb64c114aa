"""How well two records agree, computed by hand."""

import math

import numpy as np
import pytest

from influx_wrap.annotate.channels import agree, describe_channels, follow
from influx_wrap.model.lens_metadata import Channel, LensMetadata

NAN, INF = math.nan, math.inf


def fd_channel(*values: float, is_counts: bool = False) -> Channel:
    return Channel("FD", "Focus Distance", "other", np.array(values, float), is_counts)


def clip(channel: Channel, *fd_m: float) -> LensMetadata:
    n = len(fd_m)
    return LensMetadata(np.arange(n), np.full(n, 40.0), np.array(fd_m, float), channels=(channel,))


def test_lengths_that_differ() -> None:
    channel = fd_channel(0.424, 0.436, NAN, 3)
    found = agree(np.array([4, 5, 6, 7]), np.array([0.41, 0.42, 0.5, NAN]), channel)
    assert (found.n_both, found.n_infinite, found.frame) == (2, 0, 5)
    np.testing.assert_allclose([found.median, found.worst], [0.015, 0.016])
    np.testing.assert_allclose(found.percent, 100 * 0.016 / 0.42)
    (said,) = describe_channels(clip(channel, 0.41, 0.42, 0.5, NAN))
    assert said == (
        "FD is told twice: 'Focus Distance' is used, 'other' is not. In 2 frames they differ by "
        "0.015 m in the middle, and by 0.016 m (3.8 %) at most, in frame 1."
    )


@pytest.mark.parametrize(
    ("channel", "fd_m", "words"),
    [
        (fd_channel(2, INF), (2, INF), "They are the same in 2 frames."),
        (fd_channel(INF), (INF,), "They are the same in 1 frame."),
        (fd_channel(2, INF), (INF, 3), "In 2 of 2 frames only one of them is infinite."),
        (fd_channel(2, INF), (2, 3), "In 1 of 2 frames only one of them is infinite."),
        (fd_channel(NAN, 1), (2, NAN), "No frame has both."),
    ],
)
def test_sentences(channel: Channel, fd_m: tuple[float, ...], words: str) -> None:
    (said,) = describe_channels(clip(channel, *fd_m))
    assert said.endswith(words)


def test_an_encoder_that_stands_still() -> None:
    (said,) = describe_channels(clip(fd_channel(777, 777, is_counts=True), 4.8, 4.8))
    assert "both stand still in all 2 frames" in said


@pytest.mark.parametrize("lag", [-3, 0, 1, 4])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_length_follows_the_encoder(lag: int, sign: int) -> None:
    """Counts run with 1 / FD or against it; rounded to what cameras write."""
    time = np.arange(120)

    def nearness(at: np.ndarray) -> np.ndarray:
        return 0.4 + 0.2 * np.sin(0.11 * at) + 0.1 * np.sin(0.31 * at)

    counts = np.round(5000 + sign * 8000 * nearness(time))
    fd_m = np.round(1 / nearness(time - lag), 3)
    channel = fd_channel(*counts, is_counts=True)
    assert follow(time, fd_m, channel).lag == lag
    (said,) = describe_channels(clip(channel, *fd_m))
    assert ("--delay" in said) == (lag != 0)
    if lag:
        assert f"that is --delay {lag}." in said


def test_an_encoder_that_has_nothing_to_do_with_it() -> None:
    rng = np.random.default_rng(0)
    channel = fd_channel(*rng.integers(0, 9999, 200), is_counts=True)
    found = follow(np.arange(200), 1 / rng.uniform(0.1, 1, 200), channel)
    assert found.lag is None
    assert found.together > 190


def test_only_one_moves() -> None:
    channel = fd_channel(1, 2, 3, 3, is_counts=True)
    found = follow(np.arange(4), np.array([2.0, 2, 2, 3]), channel)
    assert (found.together, found.alone) == (0, (1, 2))
