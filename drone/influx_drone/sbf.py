"""Septentrio's binary blocks (SBF) to fixes; pysbf2 takes the blocks apart.

``PVTGeodetic`` brings the position and ``PosCovGeodetic`` its covariance, both stamped with the
same GPS time. A fix is ready when both have come; without a covariance it waits for
``EndOfPVT``, or for the next epoch if the receiver does not send that.

GPS time is ahead of UTC by the leap seconds: 18 since 2017-01-01 (IERS Bulletin C), until a
``ReceiverTime`` block tells what the satellites say now.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from pysbf2 import SBFMessageError, SBFParseError, SBFReader, SBFTypeError

from influx_drone.fix import Covariance, Fix, Quality, no_position

PVT_GEODETIC, POS_COV_GEODETIC, RECEIVER_TIME, END_OF_PVT = 4007, 5906, 5914, 5921
SHORTEST = {PVT_GEODETIC: 85, POS_COV_GEODETIC: 56, RECEIVER_TIME: 22, END_OF_PVT: 14}
"""Bytes with which a block holds all that is used here; later revisions append."""
LONGEST_KNOWN = 96
HEADER = 8

GPS_START_UNIX_S = 315_964_800
WEEK_MS = 604_800_000
LEAP_S = 18

NO_TOW, NO_WEEK, NO_COUNT, NO_LEAP = 0xFFFFFFFF, 0xFFFF, 0xFF, -128
NO_NUMBER = -2e10
"""Septentrio's "do not use" values."""

QUALITIES = {0: Quality.NONE, 4: Quality.FIXED, 5: Quality.FLOAT}
"""By PVT type; all others (stand-alone, differential, SBAS, moving base, PPP) are not RTK."""


class SbfEpochs:
    """Blocks of one receiver, in the order they come."""

    def __init__(self) -> None:
        self._leap_s = LEAP_S
        self._epoch = (NO_WEEK, NO_TOW)
        self._pvt: Any = None
        self._covariance: Any = None
        self._is_done = True

    def block(self, frame: bytes) -> list[Fix]:
        """Take one block whose CRC is right; the fixes it completes."""
        number = int.from_bytes(frame[4:6], "little") & 0x1FFF
        values = parse(frame) if len(frame) >= SHORTEST.get(number, math.inf) else None
        if values is None:
            return []
        epoch = (values.WNc, values.TOW)
        if values.WNc == NO_WEEK or values.TOW >= WEEK_MS:
            without_time = number == PVT_GEODETIC and _quality(values) is Quality.NONE
            return [no_position(math.nan, _count(values.NrSV))] if without_time else []
        if number == RECEIVER_TIME:
            self._set_leap_seconds(values)
            return []
        fixes = []
        if epoch != self._epoch:
            fixes = self._finish()
            self._epoch, self._is_done = epoch, False
            self._pvt = self._covariance = None
        if number == PVT_GEODETIC:
            self._pvt = self._pvt or values
        elif number == POS_COV_GEODETIC:
            self._covariance = self._covariance or values
        if number == END_OF_PVT or (self._pvt and self._covariance):
            fixes += self._finish()
        return fixes

    def _finish(self) -> list[Fix]:
        """The fix of the epoch at hand, once."""
        pvt, covariance = self._pvt, self._covariance
        if self._is_done or pvt is None:
            return []
        self._is_done = True
        quality = _quality(pvt)
        if covariance is not None and _mode(covariance) != _mode(pvt):
            return []
        time_unix_s = (_gps_ms(pvt) - 1000 * self._leap_s) / 1000
        if quality is Quality.NONE:
            return [no_position(time_unix_s, _count(pvt.NrSV))]
        return [
            Fix(
                time_unix_s,
                math.degrees(pvt.Latitude),
                math.degrees(pvt.Longitude),
                pvt.Height,
                quality,
                None if covariance is None else _east_north_up(covariance),
                _count(pvt.NrSV),
            )
        ]

    def _set_leap_seconds(self, values: Any) -> None:
        """Believed only if the block's UTC and GPS times differ by just what it says."""
        if values.DeltaLS == NO_LEAP:
            return
        try:
            utc = datetime(
                2000 + values.UTCYear,
                values.UTCMonth,
                values.UTCDay,
                values.UTCHour,
                values.UTCMin,
                values.UTCSec,
                tzinfo=UTC,
            )
        except ValueError:
            return
        if 0 <= _gps_ms(values) / 1000 - values.DeltaLS - utc.timestamp() < 1:
            self._leap_s = values.DeltaLS


def parse(frame: bytes) -> Any:
    """A block's values by Septentrio's names for them, or None; the CRC was looked at before."""
    try:
        # pysbf2 wants the fields of the newest revision: zeros stand in for those of older ones.
        return SBFReader.parse(frame.ljust(LONGEST_KNOWN, b"\0"), validate=0)
    except (SBFMessageError, SBFParseError, SBFTypeError):
        return None


def _gps_ms(values: Any) -> int:
    """GPS time as milliseconds of the Unix epoch, leap seconds not yet taken off."""
    milliseconds: int = 1000 * GPS_START_UNIX_S + values.WNc * WEEK_MS + values.TOW
    return milliseconds


def _mode(values: Any) -> tuple[int, int, int]:
    return values.Type, getattr(values, "2D"), values.Error


def _quality(pvt: Any) -> Quality:
    """No position if the receiver names an error, or did not measure the height."""
    kind, has_assumed_height, error = _mode(pvt)
    if error or has_assumed_height:
        return Quality.NONE
    return QUALITIES.get(kind, Quality.AUTONOMOUS)


def _count(n_satellites: int) -> int | None:
    return None if n_satellites == NO_COUNT else n_satellites


def _east_north_up(values: Any) -> Covariance | None:
    """Latitude is north and longitude east; None if any is marked as not to be used."""
    nn, ee, uu = values.Cov_latlat, values.Cov_lonlon, values.Cov_hgthgt
    en, nu, eu = values.Cov_latlon, values.Cov_lathgt, values.Cov_lonhgt
    if NO_NUMBER in (ee, nn, uu, en, eu, nu):
        return None
    return ((ee, en, eu), (en, nn, nu), (eu, nu, uu))
