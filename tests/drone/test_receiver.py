"""How old a fix is, whatever it went through on its way."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator

import pytest

from influx_drone import receiver
from influx_drone.fix import Fix, Quality, no_position
from influx_drone.receiver import Arrival, Limits, Receiver, problems
from influx_drone.simulator import SimulatedReceiver, Situation
from tests.drone.harness import wait_for

LIVE = "simulated:40,-74,60"
WAY_S = 0.08


def fix_at(time_unix_s: float) -> Fix:
    return Fix(time_unix_s, 40.0, -74.0, 60.0, Quality.FIXED, None, 12)


def receiver_of(came: list[tuple[float, float]], spec: str = LIVE) -> Receiver:
    """One that has heard of epochs (seconds after 1.8e9) at times of the drone's clock."""
    receiver = Receiver(spec)
    for epoch_s, clock_s in came:
        receiver._keep(Arrival(fix_at(1.8e9 + epoch_s), clock_s))
    return receiver


def test_a_fix_came_when_it_came() -> None:
    heard = receiver_of([(k / 10, 500 + k / 10 + WAY_S) for k in range(20)])
    latest = heard.latest()
    assert latest is not None
    assert latest.clock_s == pytest.approx(501.9 + WAY_S, abs=1e-5)
    assert len(heard.between(501.0, 501.5)) == 5


def test_fixes_that_were_held_up_are_as_old_as_they_are() -> None:
    """A connection that stood still for three seconds gives all of them at once."""
    came = [(k / 10, 500 + k / 10 + WAY_S) for k in range(20)]
    came += [(k / 10, 505.0 + WAY_S) for k in range(20, 50)]
    heard = receiver_of(came[:-5])
    latest = heard.latest()
    assert latest is not None
    found = problems(latest, Limits(), 505.0 + WAY_S, accept_float=False)
    assert found == ["the last fix is 0.6 s old, more than 0.5 s"]
    heard = receiver_of(came)
    times = [arrival.clock_s - WAY_S for arrival in heard.between(0, 1e9)]
    assert times == pytest.approx([500 + k / 10 for k in range(50)], abs=1e-5)


def test_fixes_that_are_repeated_are_old() -> None:
    came = [(k / 10, 500 + k / 10 + WAY_S) for k in range(50)]
    came += [(k / 10 - 5, 500 + k / 10 + WAY_S) for k in range(50, 100)]
    latest = receiver_of(came).latest()
    assert latest is not None
    [found] = problems(latest, Limits(), 509.9 + WAY_S, accept_float=True)
    assert found == "the last fix is 5.0 s old, more than 0.5 s"


def test_a_recording_begins_anew(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("r") / "recording"
    path.touch()
    came = [(k % 50 / 10, 500 + k / 10 + WAY_S) for k in range(100)]
    latest = receiver_of(came, f"file:{path},loop").latest()
    assert latest is not None
    assert problems(latest, Limits(), 509.9 + WAY_S, accept_float=False) == []


def test_a_fix_without_a_time_came_when_it_came() -> None:
    heard = receiver_of([(0.0, 500.0)])
    heard._keep(Arrival(no_position(math.nan, 0), 500.1))
    latest = heard.latest()
    assert latest is not None
    assert latest.clock_s == 500.1
    assert problems(latest, Limits(), 500.2, accept_float=True) == [
        "there is no fix: the receiver has no position"
    ]


def test_a_stream_that_breaks_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even by an error that no stream is known to have."""
    epoch = SimulatedReceiver(lambda _: Situation(40.0, -74.0, 60.0)).epoch
    opened = []

    def stream(spec: str, stop: threading.Event) -> Iterator[bytes]:
        opened.append(spec)
        if len(opened) < 3:
            raise RuntimeError("no such thing")
        yield epoch(1.8e9)
        yield epoch(1.8e9 + 0.1)

    monkeypatch.setattr(receiver, "open_stream", stream)
    monkeypatch.setattr(receiver, "AGAIN_S", 0.01)
    follower = Receiver(LIVE)
    follower.start()
    wait_for(follower.latest)
    follower.stop()
    assert len(opened) == 3
