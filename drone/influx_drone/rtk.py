"""The bytes of an RTK receiver to fixes: SBF and NMEA, alone or mixed, in any chunking.

Frames are cut out of the stream here, so that decoding goes on after anything: a frame ends only
where its checksum says so, and after a wrong one the search resumes at the very next byte.
``sbf`` and ``nmea`` make fixes of the frames. Where a receiver sends both, SBF counts, which has
the full covariance and the better checksum.

A 16-bit CRC lets one in 65536 spoiled frames pass, NMEA's checksum more (see ``nmea``). Therefore
a fix must also follow from the one before: later, by 10 s at most, and no farther than a drone
flies in that time. One that does not (the first, after an outage, after a jump of the clock) is
held until the next one confirms it, and then both come out. A wrong fix can thus still come out
if it passed its checksum and lies within metres of the truth.
"""

from __future__ import annotations

import math
import re
import time
from binascii import crc_hqx
from collections.abc import Callable, Iterator
from functools import reduce
from operator import xor

from influx_drone.fix import Fix as Fix
from influx_drone.fix import Quality as Quality
from influx_drone.fix import is_plausible
from influx_drone.nmea import NmeaEpochs
from influx_drone.sbf import HEADER, SbfEpochs

LONGEST_SBF, LONGEST_NMEA = 8192, 128
"""Bytes. NMEA's own limit is 82, which receivers with more decimals exceed."""
SENTENCE = re.compile(rb"\$([A-Z0-9]{3,10},[\x20-\x23\x25-\x29\x2b-\x7e]*)\*([0-9A-F]{2})\r?\n")
SENTENCE_BEGUN = re.compile(rb"\$[\x20-\x23\x25-\x7e]*\r?")

MAX_GAP_S = 10.0
MAX_SPEED_M_PER_S = 50.0
MAX_JUMP_M = 10.0
"""When the kind of solution changes, so does its error, without any motion."""
SBF_PATIENCE = 20
"""Epochs of NMEA that must come without any of SBF before NMEA counts."""
METRES_PER_DEGREE = 111_320.0


class Decoder:
    """Follows one receiver; never raises on bytes, whatever they are."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """``clock`` tells the Unix time; only its date is used, if the receiver sends none."""
        self._buffer = bytearray()
        self._sbf = SbfEpochs()
        self._nmea = NmeaEpochs(clock)
        self._sbf_due = 0
        self._last: Fix | None = None
        self._held: Fix | None = None

    def feed(self, data: bytes) -> list[Fix]:
        """Take the next bytes; the fixes they complete, in the order of the stream."""
        self._buffer += data
        fixes = []
        for frame in self._frames():
            for fix in self._decoded(frame):
                if is_plausible(fix):
                    fixes += self._confirmed(fix)
        return fixes

    def _frames(self) -> Iterator[bytes]:
        """Cut the valid frames from the buffer; what may still become one stays in it."""
        buffer = self._buffer
        while True:
            start = buffer.find(b"$")
            stray = buffer[: start if start >= 0 else len(buffer)]
            if stray.strip(b"\r\n"):
                self._nmea.spoil()
            del buffer[: len(stray)]
            if not buffer:
                return
            size = _frame_size(buffer, 0)
            if size is None:
                # A spoiled length would swallow all that follows: a valid frame ends the wait.
                inner = _next_valid(buffer)
                if inner is None:
                    return
                self._nmea.spoil()
                del buffer[:inner]
            elif size == 0:
                self._nmea.spoil()
                del buffer[:1]
            else:
                frame = bytes(buffer[:size])
                del buffer[:size]
                yield frame

    def _decoded(self, frame: bytes) -> list[Fix]:
        if frame.startswith(b"$@"):
            fixes = self._sbf.block(frame)
            if fixes:
                self._sbf_due = SBF_PATIENCE
            return fixes
        fixes = self._nmea.sentence(frame)
        if fixes and self._sbf_due:
            self._sbf_due -= 1
            return []
        return fixes

    def _confirmed(self, fix: Fix) -> list[Fix]:
        """The fix if it follows from the last; with the one held back if it follows from that."""
        if math.isnan(fix.time_unix_s):
            return [fix]
        fixes = [fix]
        if self._last is None or not _follows(self._last, fix):
            if self._held is None or not _follows(self._held, fix):
                self._held = fix
                return []
            fixes = [self._held, fix]
        self._last, self._held = fix, None
        return fixes


def _frame_size(buffer: bytearray, start: int) -> int | None:
    """Bytes of the valid frame that begins here; 0 if none does, None if that is still open."""
    if buffer[start + 1 : start + 2] == b"@":
        return _sbf_size(buffer, start)
    return _nmea_size(buffer, start)


def _sbf_size(buffer: bytearray, start: int) -> int | None:
    if len(buffer) - start < HEADER:
        return None
    size = int.from_bytes(buffer[start + 6 : start + 8], "little")
    if size % 4 or not HEADER <= size <= LONGEST_SBF:
        return 0
    if len(buffer) - start < size:
        return None
    crc = int.from_bytes(buffer[start + 2 : start + 4], "little")
    return size if crc_hqx(buffer[start + 4 : start + size], 0) == crc else 0


def _nmea_size(buffer: bytearray, start: int) -> int | None:
    end = buffer.find(b"\n", start, start + LONGEST_NMEA)
    if end < 0:
        begun = buffer[start : start + LONGEST_NMEA]
        is_open = len(begun) < LONGEST_NMEA and SENTENCE_BEGUN.fullmatch(begun)
        return None if is_open else 0
    sentence = SENTENCE.fullmatch(buffer, start, end + 1)
    if sentence is None or reduce(xor, sentence[1]) != int(sentence[2], 16):
        return 0
    return end + 1 - start


def _next_valid(buffer: bytearray) -> int | None:
    """Where the first valid frame after the one at the buffer's beginning begins."""
    start = buffer.find(b"$", 1)
    while start >= 0:
        if _frame_size(buffer, start):
            return start
        start = buffer.find(b"$", start + 1)
    return None


def _follows(before: Fix, fix: Fix) -> bool:
    """Whether a drone that had the first fix can have the second."""
    gap_s = fix.time_unix_s - before.time_unix_s
    if not 0 < gap_s <= MAX_GAP_S:
        return False
    if Quality.NONE in (before.quality, fix.quality):
        return True
    north = fix.latitude_deg - before.latitude_deg
    east = (fix.longitude_deg - before.longitude_deg + 180) % 360 - 180
    east *= math.cos(math.radians(fix.latitude_deg))
    up_m = fix.height_m - before.height_m
    step_m = math.hypot(METRES_PER_DEGREE * north, METRES_PER_DEGREE * east, up_m)
    return step_m <= MAX_SPEED_M_PER_S * gap_s + MAX_JUMP_M
