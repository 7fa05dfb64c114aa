"""The receiver's latest fixes, and whether they are good enough to be kept."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from dataclasses import dataclass

from influx_drone.errors import DroneError
from influx_drone.rtk import Decoder, Fix, Quality
from influx_drone.streams import open_stream

AGAIN_S = 1.0
"""When to open a stream again that broke in a way nobody thought of."""

log = logging.getLogger(__name__)

KEPT_S = 30.0
"""How long a fix is remembered: longer than any connection is waited for in silence."""


@dataclass(frozen=True)
class Limits:
    """What a fix must be. A float fix or a large sigma may be accepted; none or an old one not.

    max_age_s    since it came
    max_sigma_m  in its worst direction, if the receiver says
    """

    max_age_s: float = 0.5
    max_sigma_m: float = 0.05


@dataclass(frozen=True)
class Arrival:
    """A fix, and when it came by the drone's clock, or should have come.

    Fixes take about as long from the receiver to here, unless they were held up: by a connection
    that stood still, or by something that repeats old ones. ``clock_s`` is the time at which
    the fix would have been here by the fastest way that any took lately, so that one that
    was held up is as old as it is.
    """

    fix: Fix
    clock_s: float


class Receiver:
    """Follows a stream in a thread of its own."""

    def __init__(self, spec: str) -> None:
        self._spec = spec
        # A recording's clock may go at another rate, and begins anew.
        self._is_live = not spec.startswith("file:")
        self._stop = threading.Event()
        self._chunks = open_stream(spec, self._stop)
        self._lock = threading.Lock()
        self._recent: deque[Arrival] = deque()
        self._thread = threading.Thread(target=self._follow, name="receiver", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join(timeout=2.0)

    def latest(self) -> Arrival | None:
        """The last fix, whatever it is worth."""
        arrivals = self._arrivals()
        return arrivals[-1] if arrivals else None

    def between(self, start_s: float, end_s: float) -> list[Arrival]:
        """The fixes of a span of the drone's clock."""
        return [arrival for arrival in self._arrivals() if start_s <= arrival.clock_s <= end_s]

    def _arrivals(self) -> list[Arrival]:
        with self._lock:
            recent = list(self._recent)
        ways_s = [came.clock_s - came.fix.time_unix_s for came in recent]
        fastest_s = min((way_s for way_s in ways_s if math.isfinite(way_s)), default=math.nan)
        if not self._is_live or math.isnan(fastest_s):
            return recent
        return [
            came if math.isnan(way_s) else Arrival(came.fix, came.fix.time_unix_s + fastest_s)
            for came, way_s in zip(recent, ways_s, strict=True)
        ]

    def _follow(self) -> None:
        while not self._stop.is_set():
            decoder = Decoder()
            try:
                for data in self._chunks:
                    for fix in decoder.feed(data):
                        self._keep(Arrival(fix, time.monotonic()))
                return
            except DroneError as error:
                # Without fixes every trigger is refused, and the log says why.
                log.error("%s", error)
                return
            except Exception:
                log.exception("the receiver's stream %s broke: trying again", self._spec)
                self._stop.wait(AGAIN_S)
                self._chunks = open_stream(self._spec, self._stop)

    def _keep(self, arrival: Arrival) -> None:
        with self._lock:
            self._recent.append(arrival)
            while self._recent[0].clock_s < arrival.clock_s - KEPT_S:
                self._recent.popleft()


def sigma_m(fix: Fix) -> float | None:
    """Standard deviation in the worst direction; None if the receiver does not say.

    The largest eigenvalue of a covariance is at most its largest sum over a row, and within
    a few percent of it where heights are the worst.
    """
    if fix.covariance_m2 is None:
        return None
    return math.sqrt(max(sum(abs(value) for value in row) for row in fix.covariance_m2))


def problems(
    arrival: Arrival | None, limits: Limits, clock_s: float, *, accept_float: bool
) -> list[str]:
    """Why a fix cannot be used at ``clock_s``; nothing if it can."""
    if arrival is None:
        return ["there is no fix: nothing has come from the receiver yet"]
    fix, age_s = arrival.fix, clock_s - arrival.clock_s
    found = []
    if age_s > limits.max_age_s:
        found.append(f"the last fix is {age_s:.1f} s old, more than {limits.max_age_s:g} s")
    if fix.quality is Quality.NONE:
        found.append("there is no fix: the receiver has no position")
    if accept_float or found:
        return found
    if fix.quality is not Quality.FIXED:
        found.append(f"the fix is {fix.quality}, not fixed")
    sigma = sigma_m(fix)
    if sigma is not None and sigma > limits.max_sigma_m:
        found.append(f"the fix is good to {sigma:.3f} m only, not to {limits.max_sigma_m:g} m")
    return found
