"""A receiver that is not there: the bytes a Septentrio would send, for dry runs and tests.

It sends SBF (``ReceiverTime`` each second, ``PVTGeodetic``, ``PosCovGeodetic``, ``EndOfPVT``)
or NMEA (GGA, GNS, RMC, GST, ZDA) or both. Where it is and how well it knows that is a
``Situation``, asked for at each epoch: one that stays, any function of time, or a JSON file that
is read again whenever it changes, so that a dry run can be flown by writing to it.
"""

from __future__ import annotations

import json
import logging
import math
import random
import struct
from binascii import crc_hqx
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import reduce
from operator import xor
from pathlib import Path

from influx_drone.errors import DroneError
from influx_drone.fix import Quality
from influx_drone.rtk import METRES_PER_DEGREE
from influx_drone.sbf import (
    END_OF_PVT,
    GPS_START_UNIX_S,
    LEAP_S,
    NO_NUMBER,
    POS_COV_GEODETIC,
    PVT_GEODETIC,
    RECEIVER_TIME,
    WEEK_MS,
)

SIGMAS_M = {
    Quality.NONE: 0.0,
    Quality.AUTONOMOUS: 1.5,
    Quality.FLOAT: 0.3,
    Quality.FIXED: 0.008,
}
"""Horizontal standard deviation each way; upwards it is twice that."""
PVT_TYPES = {Quality.NONE: 0, Quality.AUTONOMOUS: 1, Quality.FLOAT: 5, Quality.FIXED: 4}
GGA_QUALITIES = {Quality.NONE: 0, Quality.AUTONOMOUS: 1, Quality.FLOAT: 5, Quality.FIXED: 4}
NMEA_MODES = {Quality.NONE: "N", Quality.AUTONOMOUS: "A", Quality.FLOAT: "F", Quality.FIXED: "R"}
NOT_ENOUGH_MEASUREMENTS = 1
GEOID_SEPARATION_M = 47.25
N_SATELLITES = 17

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Situation:
    """Where the receiver is and how it fares at one epoch."""

    latitude_deg: float
    longitude_deg: float
    height_m: float
    quality: Quality = Quality.FIXED
    sigma_m: float | None = None
    """Horizontal standard deviation each way; None for what is usual at this quality."""
    is_silent: bool = False
    """It sends nothing at all."""

    def __post_init__(self) -> None:
        if not (abs(self.latitude_deg) <= 90 and abs(self.longitude_deg) <= 180):
            raise DroneError(
                f"a simulated receiver cannot be at latitude {self.latitude_deg}, longitude "
                f"{self.longitude_deg}: give degrees within +-90 and +-180."
            )
        if not -1000 <= self.height_m <= 20_000:
            raise DroneError(
                f"a simulated receiver cannot be at {self.height_m} m: give a height above the "
                "ellipsoid between -1000 and 20000."
            )
        if self.sigma_m is not None and not 0 <= self.sigma_m <= 1e4:
            raise DroneError(f"a standard deviation of {self.sigma_m} m is not within 0 to 10000.")


@dataclass
class FollowedFile:
    """The situation that a JSON file tells, which may change; what it leaves out stays.

    Its keys are the names in ``Situation``. While it is missing or no valid JSON (half-written)
    the last one holds.
    """

    path: Path
    situation: Situation
    _seen: tuple[int, int] | None = field(default=None, init=False)

    def __call__(self, time_unix_s: float) -> Situation:
        try:
            stat = self.path.stat()
            if (stat.st_mtime_ns, stat.st_size) != self._seen:
                told = json.loads(self.path.read_text())
                self.situation = changed(self.situation, told)
                self._seen = (stat.st_mtime_ns, stat.st_size)
        except (OSError, ValueError, TypeError) as error:
            _log.debug("%s is not followed now: %s", self.path, error)
        return self.situation


def changed(situation: Situation, told: dict[str, object]) -> Situation:
    """The situation with some of its fields replaced; raises ValueError or TypeError."""
    names = {f.name for f in fields(Situation)}
    if unknown := set(told) - names:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    values: dict[str, object] = dict(told)
    if "quality" in values:
        values["quality"] = Quality(str(values["quality"]))
    return replace(situation, **values)  # type: ignore[arg-type]


@dataclass
class SimulatedReceiver:
    """Makes the bytes of any epoch; the same seed and situations give the same bytes."""

    situation: Callable[[float], Situation]
    """Of the Unix time of the epoch."""
    sends_sbf: bool = True
    sends_nmea: bool = False
    noise: float = 0.0
    """Error of the position, in parts of its standard deviation: 1 is what a real one has."""
    seed: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def epoch(self, time_unix_s: float) -> bytes:
        """What it sends at a time (which is rounded to 10 ms); nothing while it is silent."""
        time_ms = 10 * round(100 * time_unix_s)
        now = self.situation(time_ms / 1000)
        if now.is_silent:
            return b""
        sigma_m = SIGMAS_M[now.quality] if now.sigma_m is None else now.sigma_m
        now = replace(self._strayed(now, sigma_m), sigma_m=sigma_m)
        sbf = sbf_epoch(time_ms, now) if self.sends_sbf else b""
        nmea = nmea_epoch(time_ms, now) if self.sends_nmea else b""
        return sbf + nmea

    def _strayed(self, now: Situation, sigma_m: float) -> Situation:
        if not self.noise:
            return now
        east, north, up = (self._random.gauss(0, self.noise * sigma_m) for _ in range(3))
        cosine = max(math.cos(math.radians(now.latitude_deg)), 1e-6)
        longitude = now.longitude_deg + east / METRES_PER_DEGREE / cosine
        return replace(
            now,
            latitude_deg=max(-90.0, min(90.0, now.latitude_deg + north / METRES_PER_DEGREE)),
            longitude_deg=(longitude + 180) % 360 - 180,
            height_m=now.height_m + 2 * up,
        )


def sbf_epoch(time_ms: int, now: Situation) -> bytes:
    """The blocks of an epoch; ``time_ms`` is Unix time."""
    week, tow_ms = divmod(time_ms - 1000 * (GPS_START_UNIX_S - LEAP_S), WEEK_MS)
    stamp = struct.pack("<IH", tow_ms, week)
    error = NOT_ENOUGH_MEASUREMENTS if now.quality is Quality.NONE else 0
    mode = struct.pack("<BB", PVT_TYPES[now.quality], error)
    place = (math.radians(now.latitude_deg), math.radians(now.longitude_deg), now.height_m)
    east_m2 = (now.sigma_m or 0.0) ** 2
    # Latitude, longitude, height, clock; then the covariances of their pairs.
    covariance = (east_m2, east_m2, 4 * east_m2, 1e-4, *6 * (0.0,))
    undulation, count = GEOID_SEPARATION_M, N_SATELLITES
    if error:
        place, covariance = (NO_NUMBER,) * 3, (NO_NUMBER,) * 10
        undulation, count = NO_NUMBER, 255
    motion = (0.0, 0.0, 0.0, NO_NUMBER)
    blocks = [
        (
            PVT_GEODETIC + (2 << 13),
            mode
            + struct.pack("<3d5fdf", *place, undulation, *motion, 0.0, 0.0)
            + struct.pack("<4B2HI2BH3HBx", 0, 0, count, 0, 0, 100, 0, 0, 1, 0, 20, 2, 3, 0),
        ),
        (POS_COV_GEODETIC, mode + struct.pack("<10f", *covariance)),
        (END_OF_PVT, b"\0\0"),
    ]
    if time_ms % 1000 == 0:
        utc = datetime.fromtimestamp(time_ms / 1000, UTC)
        date = (utc.year - 2000, utc.month, utc.day, utc.hour, utc.minute, utc.second)
        blocks.insert(0, (RECEIVER_TIME, struct.pack("<7bBxx", *date, LEAP_S, 7)))
    return b"".join(sbf_block(number, stamp + payload) for number, payload in blocks)


def sbf_block(number: int, payload: bytes) -> bytes:
    """A block with header and CRC; the payload's length must make a multiple of four."""
    body = struct.pack("<HH", number, 8 + len(payload)) + payload
    return b"$@" + crc_hqx(body, 0).to_bytes(2, "little") + body


def nmea_epoch(time_ms: int, now: Situation) -> bytes:
    """The sentences of an epoch; ``time_ms`` is Unix time."""
    utc = datetime.fromtimestamp(time_ms // 1000, UTC)
    clock = f"{utc:%H%M%S}.{time_ms % 1000 // 10:02d}"
    mode = NMEA_MODES[now.quality]
    quality = GGA_QUALITIES[now.quality]
    if now.quality is Quality.NONE:
        sentences = [
            f"GPGGA,{clock},,,,,{quality},00,,,M,,M,,",
            f"GNGNS,{clock},,,,,{mode},00,,,,,,V",
            f"GPRMC,{clock},V,,,,,,,{utc:%d%m%y},,,{mode},V",
        ]
    else:
        place = (
            f"{_minutes(now.latitude_deg, 2)},{'NS'[now.latitude_deg < 0]},"
            f"{_minutes(now.longitude_deg, 3)},{'EW'[now.longitude_deg < 0]}"
        )
        altitude, separation = now.height_m - GEOID_SEPARATION_M, GEOID_SEPARATION_M
        sigma = now.sigma_m or 0.0
        sentences = [
            f"GPGGA,{clock},{place},{quality},{N_SATELLITES},0.7,{altitude:.4f},M,"
            f"{separation:.4f},M,1.0,0007",
            f"GNGNS,{clock},{place},{mode * 3},{N_SATELLITES},0.7,{altitude:.4f},"
            f"{separation:.4f},1.0,0007,V",
            f"GPRMC,{clock},A,{place},0.0,,{utc:%d%m%y},,,{mode},V",
            f"GPGST,{clock},0.5,{sigma:.3f},{sigma:.3f},0.0,{sigma:.3f},{sigma:.3f},"
            f"{2 * sigma:.3f}",
        ]
    sentences.append(f"GPZDA,{clock},{utc:%d,%m,%Y},00,00")
    return b"".join(map(nmea_sentence, sentences))


def nmea_sentence(body: str) -> bytes:
    """A sentence with $, checksum and line end."""
    checksum = reduce(xor, body.encode())
    return f"${body}*{checksum:02X}\r\n".encode()


def _minutes(degrees: float, digits: int) -> str:
    """Degrees (``digits`` of them) and minutes, in steps of 0.2 mm."""
    whole, ticks = divmod(round(abs(degrees) * 60 * 10**7), 60 * 10**7)
    return f"{whole:0{digits}d}{ticks // 10**7:02d}.{ticks % 10**7:07d}"
