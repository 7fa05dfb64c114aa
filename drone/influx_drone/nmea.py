"""NMEA sentences to fixes; pynmeagps takes the sentences apart.

GGA brings the position: its altitude is above the geoid, and with the geoid's separation it is
the height above the ellipsoid (no separation, no fix). GST brings the standard deviations, RMC
or ZDA the date; without either the date is that of the system's clock.

A sentence's checksum is one byte, the XOR of all others. The same bit flipped in two of them goes
unnoticed, so more is asked of a sentence before it is believed:
- Its fields must have the standard's form, to the number of digits before the point.
- GNS, RMC and GLL of the same epoch must tell the same position, mode, and (GNS) heights.
- If they usually come and did not, or if the link was seen to spoil a sentence within the last
  ``CLEAN_RUN``, only a GGA confirmed by GNS counts, and GST does not.
- The date is believed when two sentences agree on it.
What can still pass is a GGA in which two bytes changed alike, unaccompanied by a GNS, on a link
without other faults: two flipped bits in one sentence pass once in 60 times, two random bytes
once in 25 000. SBF, or GGA with GNS, has no such gap; have the receiver send those.
(GST has no second witness but its own error ellipse: a standard deviation may be wrong likewise.)
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pynmeagps import NMEAMessageError, NMEAParseError, NMEAReader, NMEATypeError

from influx_drone.fix import Covariance, Fix, Quality, no_position

CLEAN_RUN = 20
"""Sentences without a fault after which a link is taken for clean again."""
REMEMBERED_EPOCHS = 8
"""What usually comes is what came in at least half of these."""
DAY_MS = 86_400_000
DATE_GAP_MS = 120_000
"""A date is confirmed by another one within this time."""
DATE_WAIT_MS = 3_000
"""After this time without any date the system's is taken."""

QUALITIES = {"4": Quality.FIXED, "5": Quality.FLOAT} | dict.fromkeys("1239", Quality.AUTONOMOUS)
"""By GGA's quality; the others (estimated, typed in, simulated) were not measured."""
MODES = {Quality.FIXED: "RD", Quality.FLOAT: "FD", Quality.AUTONOMOUS: "ADP", Quality.NONE: "NEMS"}
"""What RMC, GLL and GNS may call it; older versions have D for all that is corrected."""
MODES_BEST_FIRST = "RFPDAEMSN"

_TIME = r"(?P<time>\d{6}(?:\.\d{1,6})?)"
_MINUTES = r"[0-5]\d\.\d{2,10}"
_PLACE = rf"(?:(?P<lat>\d{{2}}{_MINUTES}),(?P<ns>[NS]),(?P<lon>\d{{3}}{_MINUTES}),(?P<ew>[EW])|,,,)"
_SIGMA = r"\d+(?:\.\d+)?"
_NUMBER = rf"(?:-?{_SIGMA})?"
FORMS = {
    kind: re.compile(rf"[A-Z]{{2}}{kind},{form}")
    for kind, form in {
        "GGA": rf"{_TIME}?,{_PLACE},(?P<quality>\d),(?P<count>\d{{0,2}}),{_NUMBER},"
        rf"(?P<alt>{_NUMBER}),M?,(?P<sep>{_NUMBER}),M?,{_NUMBER},\d{{0,4}}",
        "GNS": rf"{_TIME},{_PLACE},(?P<mode>[A-Z]{{1,10}}),(?P<count>\d{{0,3}}),{_NUMBER},"
        rf"(?P<alt>{_NUMBER}),(?P<sep>{_NUMBER}),{_NUMBER},\d{{0,4}}(?:,[A-Z]?)?",
        "RMC": rf"{_TIME},(?P<status>[AV]),{_PLACE},{_NUMBER},{_NUMBER},(?P<date>\d{{6}})?,"
        rf"{_NUMBER},[EW]?(?:,(?P<mode>[A-Z])?)?(?:,[A-Z]?)?",
        "GLL": rf"{_PLACE},{_TIME},(?P<status>[AV])(?:,(?P<mode>[A-Z])?)?",
        "GST": rf"{_TIME},{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER},(?P<sigma>{_SIGMA}),"
        rf"{_SIGMA},{_SIGMA}",
        "ZDA": rf"{_TIME},\d\d,\d\d,\d{{4}},(?:-?\d\d)?,(?:\d\d)?",
    }.items()
}
WITNESSES = ("GNS", "RMC", "GLL")


@dataclass(frozen=True)
class Sentence:
    """One of the kinds above, well-formed."""

    kind: str
    time_ms: int | None
    """Of the day, UTC."""
    texts: dict[str, str | None]
    """Fields as they were sent, by the names in ``FORMS``; empty ones are None or ""."""
    values: Any
    """The same for pynmeagps, as numbers, times and dates."""


class NmeaEpochs:
    """Sentences of one receiver, in the order they come.

    A fix is ready when all sentences that usually come with an epoch have come, at the latest
    when the next epoch begins.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._calendar = _Calendar(clock)
        self._distrusted = 0
        self._recent: deque[set[str]] = deque(maxlen=REMEMBERED_EPOCHS)
        self._usual: set[str] = set()
        self._time_ms: int | None = None
        self._epoch: dict[str, Sentence] = {}
        self._is_done = True

    def spoil(self) -> None:
        """The link was seen to lose or change bytes."""
        self._distrusted = CLEAN_RUN

    def sentence(self, line: bytes) -> list[Fix]:
        """Take one sentence, from $ to the line's end, whose checksum is right."""
        self._distrusted = max(0, self._distrusted - 1)
        sentence = parse(line)
        if sentence is None:
            return []
        if sentence.time_ms is None:
            has_none = _quality(sentence) is Quality.NONE and not self._distrusted
            return [no_position(math.nan, _count(sentence))] if has_none else []
        fixes = []
        if sentence.time_ms != self._time_ms:
            fixes = self._finish()
            if self._epoch:
                self._recent.append(set(self._epoch))
                self._usual = _in_most(self._recent)
            self._time_ms, self._epoch, self._is_done = sentence.time_ms, {}, False
        first = self._epoch.setdefault(sentence.kind, sentence)
        if first.kind == "GGA" and first.texts != sentence.texts:
            self._is_done = True
        self._calendar.read(sentence)
        if self._is_complete():
            fixes += self._finish()
        return fixes

    def _is_complete(self) -> bool:
        """Whether all that usually comes has come; where there is no position, GST does not."""
        gga = self._epoch.get("GGA")
        if gga is None or not self._usual:
            return False
        missing = self._usual - self._epoch.keys()
        return not missing or (missing == {"GST"} and _quality(gga) is Quality.NONE)

    def _finish(self) -> list[Fix]:
        """The fix of the epoch at hand, once, if it can be believed."""
        gga = self._epoch.get("GGA")
        if self._is_done or gga is None or self._time_ms is None:
            return []
        self._is_done = True
        witnesses = [self._epoch[kind] for kind in WITNESSES if kind in self._epoch]
        if not all(_agree(gga, witness) for witness in witnesses):
            return []
        quality = _quality(gga)
        is_confirmed = "GNS" in self._epoch or (quality is Quality.NONE and bool(witnesses))
        lacks_witness = bool(self._usual & set(WITNESSES) - self._epoch.keys())
        if (self._distrusted or lacks_witness) and not is_confirmed:
            return []
        time_ms = self._calendar.unix_ms(self._time_ms)
        if time_ms is None:
            return []
        if quality is Quality.NONE:
            return [no_position(time_ms / 1000, _count(gga))]
        if not (gga.texts["lat"] and gga.texts["alt"] and gga.texts["sep"]):
            return []
        gst = None if self._distrusted else self._epoch.get("GST")
        return [
            Fix(
                time_ms / 1000,
                gga.values.lat,
                gga.values.lon,
                round(gga.values.alt + gga.values.sep, 6),
                quality,
                None if gst is None else _covariance(gst),
                _count(gga),
            )
        ]


def _in_most(epochs: deque[set[str]]) -> set[str]:
    """The kinds of sentences that came in at least half of the epochs."""
    return {kind for kind in FORMS if 2 * sum(kind in kinds for kinds in epochs) >= len(epochs)}


class _Calendar:
    """The date, which GGA does not tell."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._confirmed_ms: int | None = None
        self._heard_ms: int | None = None
        self._first_ms: int | None = None

    def read(self, sentence: Sentence) -> None:
        """Take the date of an RMC or a ZDA."""
        date = None
        if sentence.kind == "RMC" and sentence.texts["date"]:
            date = sentence.values.date
        elif sentence.kind == "ZDA":
            try:
                values = sentence.values
                date = datetime(values.year, values.month, values.day)
            except ValueError:
                return
        if not date or sentence.time_ms is None:
            return
        midnight = datetime(date.year, date.month, date.day, tzinfo=UTC)
        told_ms = 1000 * int(midnight.timestamp()) + sentence.time_ms
        for known_ms in (self._confirmed_ms, self._heard_ms):
            if known_ms is not None and abs(told_ms - known_ms) <= DATE_GAP_MS:
                self._confirmed_ms = told_ms
                break
        self._heard_ms = told_ms

    def unix_ms(self, time_ms: int) -> int | None:
        """A time of day as Unix time, on the day that is nearest; None while that is open."""
        if self._confirmed_ms is not None:
            return _nearest_day(time_ms, self._confirmed_ms)
        if self._first_ms is None:
            self._first_ms = time_ms
        has_waited = (time_ms - self._first_ms) % DAY_MS >= DATE_WAIT_MS
        if self._heard_ms is None and has_waited:
            return _nearest_day(time_ms, round(1000 * self._clock()))
        return None


def _nearest_day(time_ms: int, near_ms: int) -> int:
    """The Unix time with this time of day that is nearest to another."""
    days = round((near_ms - time_ms) / DAY_MS)
    return days * DAY_MS + time_ms


def parse(line: bytes) -> Sentence | None:
    """A sentence of a kind that is used here, or None; the checksum was looked at before."""
    body = line[1:].partition(b"*")[0].decode("ascii")
    kind = body[2:5]
    form = FORMS.get(kind)
    match = form.fullmatch(body) if form else None
    if match is None:
        return None
    try:
        values: Any = NMEAReader.parse(line)
    except (NMEAMessageError, NMEAParseError, NMEATypeError):
        return None
    texts = match.groupdict()
    if not texts["time"]:
        return Sentence(kind, None, texts, values)
    if not values.time:
        return None
    time = values.time
    seconds = 3600 * time.hour + 60 * time.minute + time.second
    return Sentence(kind, 1000 * seconds + round(time.microsecond / 1000), texts, values)


def _quality(gga: Sentence) -> Quality:
    return QUALITIES.get(gga.texts["quality"] or "", Quality.NONE)


def _count(gga: Sentence) -> int | None:
    return int(gga.texts["count"]) if gga.texts["count"] else None


def _agree(gga: Sentence, witness: Sentence) -> bool:
    """Whether another sentence of the same epoch tells the same."""
    quality, told = _quality(gga), witness.texts
    if told["mode"]:
        mode = next((letter for letter in MODES_BEST_FIRST if letter in (told["mode"] or "")), "N")
        if mode not in MODES[quality]:
            return False
    elif (told["status"] == "V") != (quality is Quality.NONE):
        return False
    if quality is Quality.NONE:
        return True
    names = ["lat", "lon", "alt", "sep"] if witness.kind == "GNS" else ["lat", "lon"]
    return (
        (gga.texts["ns"], gga.texts["ew"]) == (told["ns"], told["ew"])
        and all(_same(gga.texts[name], told[name]) for name in names)
        and (witness.kind != "GNS" or _same_count(_count(gga), _count(witness)))
    )


def _same(a: str | None, b: str | None) -> bool:
    """The same number, if need be after rounding to the other's decimals."""
    if a == b or not a or not b:
        return a == b
    decimals = [len(text.partition(".")[2]) for text in (a, b)]
    return decimals[0] != decimals[1] and abs(float(a) - float(b)) <= 10.0 ** -min(decimals)


def _same_count(gga: int | None, gns: int | None) -> bool:
    """GGA's count of satellites stops at 12 in some receivers."""
    return gga == gns or (gga == 12 and gns is not None and gns > 12)


def _covariance(gst: Sentence) -> Covariance | None:
    """From the standard deviations, and the error ellipse if it is told and fits them."""
    told = gst.values
    ee, nn, uu = told.stdLong**2, told.stdLat**2, told.stdAlt**2
    en = 0.0
    if all(isinstance(value, float) for value in (told.stdMajor, told.stdMinor, told.orient)):
        # Whatever way the ellipse lies, its squared axes sum up to those of any other two.
        ulp = 10.0 ** -len((gst.texts["sigma"] or "").partition(".")[2])
        rounding = ulp * (told.stdMajor + told.stdMinor + told.stdLong + told.stdLat + ulp)
        trace = told.stdMajor**2 + told.stdMinor**2
        if not math.isclose(trace, ee + nn, rel_tol=0.02, abs_tol=rounding):
            return None
        angle = math.radians(told.orient)
        en = (told.stdMajor**2 - told.stdMinor**2) * math.sin(angle) * math.cos(angle)
        if en * en > ee * nn:
            en = 0.0
    return ((ee, en, 0.0), (en, nn, 0.0), (0.0, 0.0, uu))
