"""A receiver's bytes to fixes: hand-packed blocks and sentences, and streams spoiled at random."""

import functools
import io
import itertools
import math
import random
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pynmeagps import NMEAReader
from pysbf2 import SBFReader
from pysbf2.sbfhelpers import calc_crc

from influx_drone import nmea, sbf
from influx_drone.rtk import Decoder, Fix, Quality
from influx_drone.simulator import SimulatedReceiver, Situation

NAN = math.nan
WEEK = 2436
SUNDAY = 1_789_257_600
"""2026-09-13 00:00:00 UTC, on which GPS week 2436 begins (18 s before)."""
START = 1_789_516_799.5
"""Half a second before a midnight, so that the date changes."""


def block(number: int, payload: bytes) -> bytes:
    payload += bytes(-len(payload) % 4)
    body = struct.pack("<HH", number, 8 + len(payload)) + payload
    return b"$@" + struct.pack("<H", calc_crc(body)) + body


def pvt(
    tow_ms: int,
    *,
    week: int = WEEK,
    kind: int = 4,
    error: int = 0,
    lat: float = 0.8,
    lon: float = -0.1,
    height: float = 500.25,
    count: int = 20,
    revision: int = 2,
) -> bytes:
    payload = struct.pack("<IHBB3d", tow_ms, week, kind, error, lat, lon, height)
    payload += struct.pack("<5fdf4BHHIB", 47, 0, 0, 0, 0, 0, 0, 0, 0, count, 0, 0, 0, 0, 0)
    payload += [b"", bytes(3), bytes(10)][revision]
    return block(4007 + (revision << 13), payload)


def covariance(tow_ms: int, kind: int = 4, values: tuple[float, ...] | None = None) -> bytes:
    """North-north, east-east, up-up, clock; north-east, north-up, -clock; east-up, ..."""
    values = values or (4.0, 9.0, 16.0, 1.0, 0.5, 0.25, 0.0, -0.75, 0.0, 0.0)
    return block(5906, struct.pack("<IHBB10f", tow_ms, WEEK, kind, 0, *values))


def end_of_pvt(tow_ms: int) -> bytes:
    return block(5921, struct.pack("<IH", tow_ms, WEEK))


def receiver_time(tow_ms: int, leap_s: int, utc: datetime) -> bytes:
    date = (utc.year - 2000, utc.month, utc.day, utc.hour, utc.minute, utc.second)
    return block(5914, struct.pack("<IH7bB", tow_ms, WEEK, *date, leap_s, 7))


def line(body: str) -> bytes:
    checksum = functools.reduce(lambda a, b: a ^ b, body.encode())
    return f"${body}*{checksum:02X}\r\n".encode()


def gga(clock: str, quality: int = 4, alt: str = "100.5", sep: str = "47.25") -> bytes:
    place = "4730.0000000,N,00830.0000000,W"
    return line(f"GPGGA,{clock},{place},{quality},12,0.7,{alt},M,{sep},M,1.0,0001")


def rmc(clock: str, date: str = "150926", lat: str = "4730.0000000", mode: str = "R") -> bytes:
    return line(f"GPRMC,{clock},A,{lat},N,00830.0000000,W,0.0,,{date},,,{mode},V")


def gst(clock: str, sigmas: str = "0.020,0.010,0.0,0.020,0.010,0.030") -> bytes:
    return line(f"GPGST,{clock},1.0,{sigmas}")


def decoded(*data: bytes) -> list[Fix]:
    return Decoder(clock=lambda: 0.0).feed(b"".join(data))


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# SBF


def test_position_and_covariance_of_an_epoch_are_one_fix() -> None:
    fixes = decoded(*(pvt(t) + covariance(t) for t in (1000, 1100)))
    assert len(fixes) == 2
    assert fixes[0] == Fix(
        SUNDAY - 17.0,
        math.degrees(0.8),
        math.degrees(-0.1),
        500.25,
        Quality.FIXED,
        ((9.0, 0.5, -0.75), (0.5, 4.0, 0.25), (-0.75, 0.25, 16.0)),
        20,
    )
    assert fixes[1].time_unix_s == pytest.approx(SUNDAY - 16.9, abs=1e-6)


def test_a_fix_comes_with_the_last_block_it_needs() -> None:
    decoder = Decoder()
    decoder.feed(pvt(0) + covariance(0) + pvt(100) + covariance(100))
    assert decoder.feed(pvt(200)) == []
    assert [fix.covariance_m2 is None for fix in decoder.feed(covariance(200))] == [False]
    assert decoder.feed(end_of_pvt(200) + covariance(200)) == []
    assert decoder.feed(pvt(300)) == []
    assert [fix.covariance_m2 for fix in decoder.feed(end_of_pvt(300))] == [None]
    assert decoder.feed(covariance(400)) == []
    assert len(decoder.feed(pvt(400))) == 1
    assert decoder.feed(pvt(500)) == []
    assert [fix.covariance_m2 for fix in decoder.feed(pvt(600))] == [None]


@pytest.mark.parametrize("revision", [0, 1, 2])
def test_all_revisions_are_read(revision: int) -> None:
    fixes = decoded(*(pvt(t, revision=revision) + end_of_pvt(t) for t in (0, 100)))
    assert [fix.height_m for fix in fixes] == [500.25, 500.25]


@pytest.mark.parametrize(
    ("kind", "error", "quality"),
    [
        (4, 0, Quality.FIXED),
        (5, 0, Quality.FLOAT),
        (1, 0, Quality.AUTONOMOUS),
        (2, 0, Quality.AUTONOMOUS),
        (6, 0, Quality.AUTONOMOUS),
        (7, 0, Quality.AUTONOMOUS),
        (10, 0, Quality.AUTONOMOUS),
        (4 + 64, 0, Quality.FIXED),
        (0, 0, Quality.NONE),
        (4, 1, Quality.NONE),
        (4 + 128, 0, Quality.NONE),
    ],
)
def test_sbf_qualities(kind: int, error: int, quality: Quality) -> None:
    fixes = decoded(*(pvt(t, kind=kind, error=error) + end_of_pvt(t) for t in (0, 100)))
    assert [fix.quality for fix in fixes] == [quality, quality]
    assert all(math.isnan(fix.latitude_deg) == (quality is Quality.NONE) for fix in fixes)


def test_do_not_use_values() -> None:
    nothing = -2e10
    no_fix = {"kind": 0, "error": 1, "lat": nothing, "lon": nothing, "height": nothing}
    without_time = pvt(0xFFFFFFFF, week=0xFFFF, count=255, **no_fix)
    assert decoded(without_time) == [Fix(NAN, NAN, NAN, NAN, Quality.NONE, None, None)]
    assert len(decoded(without_time, without_time)) == 2
    assert decoded(*(pvt(0xFFFFFFFF) + covariance(0xFFFFFFFF) for _ in range(3))) == []
    for bad in ({"lat": nothing}, {"height": nothing}, {"lon": NAN}, {"lat": 1.6}, {"height": 3e4}):
        assert decoded(*(pvt(t, **bad) + end_of_pvt(t) for t in (0, 100, 200))) == []
    unknown = decoded(*(pvt(t) + covariance(t, values=(nothing,) * 10) for t in (0, 100)))
    assert [fix.covariance_m2 for fix in unknown] == [None, None]
    for values in ((1, 1, 1, 1, 2, 0, 0, 0, 0, 0), (1, -1, 1, 1, *6 * (0,)), (NAN,) * 10):
        assert decoded(*(pvt(t) + covariance(t, values=values) for t in (0, 100, 200))) == []


def test_blocks_of_one_epoch_that_disagree_make_no_fix() -> None:
    assert decoded(*(pvt(t, kind=4) + covariance(t, kind=5) for t in (0, 100, 200))) == []


def test_leap_seconds_come_from_the_receiver_if_its_times_fit() -> None:
    right = receiver_time(20_000, 19, datetime(2026, 9, 13, 0, 0, 1))
    wrong = receiver_time(20_000, 17, datetime(2026, 9, 13, 0, 0, 1))
    never = receiver_time(20_000, 19, datetime(2026, 9, 13)).replace(
        b"\x1a\x09\x0d", b"\x1a\x0d\x0d"
    )
    epochs = b"".join(pvt(t) + covariance(t) for t in (20_100, 20_200))
    assert decoded(epochs)[0].time_unix_s == SUNDAY + 2.1
    assert decoded(right, epochs)[0].time_unix_s == SUNDAY + 1.1
    assert decoded(wrong, never, epochs)[0].time_unix_s == SUNDAY + 2.1


# NMEA


def test_gga_with_gst_and_rmc() -> None:
    epochs = [gga(c) + gst(c) + rmc(c) for c in ("120000.00", "120000.10", "120000.20")]
    fixes = decoded(*epochs)
    assert [fix.time_unix_s for fix in fixes] == [
        unix("2026-09-15T12:00:00") + tenths / 10 for tenths in (1, 2)
    ]
    last = fixes[-1]
    assert (last.latitude_deg, last.longitude_deg, last.height_m) == (47.5, -8.5, 147.75)
    assert (last.quality, last.n_satellites) == (Quality.FIXED, 12)
    assert last.covariance_m2 is not None
    assert [last.covariance_m2[i][i] for i in range(3)] == pytest.approx([1e-4, 4e-4, 9e-4])


def test_the_error_ellipse_gives_the_correlation() -> None:
    clocks = ("120000.00", "120000.10", "120000.20")
    # Axes of 2 and 1 cm, the long one to the north-east: both ways sqrt(2.5) cm.
    ellipse = "0.020,0.010,45.0,0.0158,0.0158,0.030"
    fix = decoded(*(gga(c) + gst(c, ellipse) + rmc(c) for c in clocks))[-1]
    assert fix.covariance_m2 is not None
    assert fix.covariance_m2[0] == pytest.approx((2.5e-4, 1.5e-4, 0), rel=0.01)
    nonsense = "0.500,0.010,45.0,0.0158,0.0158,0.030"
    fix = decoded(*(gga(c) + gst(c, nonsense) + rmc(c) for c in clocks))[-1]
    assert fix.covariance_m2 is None
    without = ",,,0.0158,0.0158,0.030"
    fix = decoded(*(gga(c) + gst(c, without) + rmc(c) for c in clocks))[-1]
    assert fix.covariance_m2 is not None
    assert fix.covariance_m2[0][1] == 0


@pytest.mark.parametrize(
    ("digit", "mode", "quality"),
    [
        (1, "A", Quality.AUTONOMOUS),
        (2, "D", Quality.AUTONOMOUS),
        (4, "R", Quality.FIXED),
        (4, "D", Quality.FIXED),
        (5, "F", Quality.FLOAT),
        (0, "N", Quality.NONE),
        (6, "E", Quality.NONE),
        (8, "S", Quality.NONE),
    ],
)
def test_nmea_qualities(digit: int, mode: str, quality: Quality) -> None:
    clocks = ("120000.00", "120000.10", "120000.20")
    fixes = decoded(*(gga(c, digit) + rmc(c, mode=mode) for c in clocks))
    assert {fix.quality for fix in fixes} == {quality}


def test_no_position_is_told_at_once_also_without_a_time() -> None:
    assert decoded(line("GPGGA,,,,,,0,00,,,M,,M,,")) == [
        Fix(NAN, NAN, NAN, NAN, Quality.NONE, None, 0)
    ]


def test_what_is_missing_or_ill_formed_gives_no_fix() -> None:
    clocks = [f"12000{i}.00" for i in range(8)]

    def fixes(make: Callable[[str], bytes]) -> list[Fix]:
        return decoded(*(make(c) + rmc(c) for c in clocks))

    assert len(fixes(gga)) == 7
    assert fixes(lambda c: gga(c, sep="")) == []
    assert fixes(lambda c: gga(c, alt="")) == []
    assert fixes(lambda c: gga(c, alt="1e3")) == []
    assert fixes(lambda c: gga(c, alt="99999")) == []
    assert fixes(lambda c: gga(c).partition(b"*")[0] + b"\r\n") == []
    assert fixes(lambda c: gga(c).replace(b"*", b"*0")) == []
    assert fixes(lambda c: gga(c).replace(b"4730", b"4731")) == []
    assert fixes(lambda c: line(f"GPGGA,{c},4730.0,N,00830.0,W,4,12,0.7,100,M,47,M,1")) == []
    assert fixes(lambda c: line(f"GPGGA,{c},4799.0000,N,00830.0,W,4,12,1,100,M,47,M,,")) == []
    assert decoded(*(gga(c.replace("12", "25", 1)) + rmc(c) for c in clocks)) == []


def test_sentences_of_one_epoch_must_tell_the_same() -> None:
    clocks = [f"12000{i}.00" for i in range(4)]
    assert len(decoded(*(gga(c) + rmc(c, lat="4730.0000") for c in clocks))) == 3
    assert decoded(*(gga(c) + rmc(c, lat="4730.0000001") for c in clocks)) == []
    assert decoded(*(gga(c) + rmc(c, lat="4730.0002") for c in clocks)) == []
    assert decoded(*(gga(c) + rmc(c, mode="F") for c in clocks)) == []
    assert decoded(*(gga(c) + gga(c, alt="100.6") + rmc(c) for c in clocks)) == []

    def gns(clock: str, alt: str = "100.5", count: int = 19) -> bytes:
        place = "4730.0000000,N,00830.0000000,W"
        return line(f"GNGNS,{clock},{place},RRN,{count},0.7,{alt},47.25,1.0,0001,V")

    assert len(decoded(*(gga(c) + gns(c) + rmc(c) for c in clocks))) == 3
    assert decoded(*(gga(c) + gns(c, alt="100.7") + rmc(c) for c in clocks)) == []
    assert decoded(*(gga(c) + gns(c, count=11) + rmc(c) for c in clocks)) == []


def test_after_a_fault_an_unconfirmed_gga_does_not_count_for_a_while() -> None:
    decoder = Decoder(clock=lambda: unix("2026-09-15T12:00:00"))
    clocks = [f"1200{i:02d}.00" for i in range(60)]
    counts = [len(decoder.feed(gga(c))) for c in clocks[:20]]
    assert sum(counts[5:]) == 15
    decoder.feed(b"noise\r\n")
    counts = [len(decoder.feed(gga(c))) for c in clocks[20:]]
    assert sum(counts[:20]) == 0
    assert sum(counts[22:]) == len(counts[22:])


def test_the_day_changes_at_midnight() -> None:
    clocks = ("235959.80", "235959.90", "000000.00", "000000.10")
    dates = ("150926", "150926", "160926", "160926")
    told = decoded(*(gga(c) + rmc(c, date) for c, date in zip(clocks, dates, strict=True)))
    midnight = unix("2026-09-16T00:00:00")
    assert [fix.time_unix_s for fix in told] == pytest.approx(
        [midnight - 0.1, midnight, midnight + 0.1], abs=1e-6
    )
    first = gga(clocks[0]) + rmc(clocks[0]) + line(f"GPZDA,{clocks[0]},15,09,2026,00,00")
    rest = decoded(first, *map(gga, clocks[1:]), gga("000001.00"), gga("000002.00"))
    assert rest[-1].time_unix_s == midnight + 2


@pytest.mark.parametrize(
    ("now", "day"), [("2026-09-15T23:59:58", "2026-09-16"), ("2026-09-16T00:00:30", "2026-09-16")]
)
def test_without_a_date_it_is_the_systems(now: str, day: str) -> None:
    decoder = Decoder(clock=lambda: unix(now))
    clocks = [f"0000{i:02d}.00" for i in range(6)]
    fixes = decoder.feed(b"".join(map(gga, clocks)))
    assert [fix.time_unix_s - unix(f"{day}T00:00:00") for fix in fixes] == [3, 4, 5]


def test_one_wrong_date_is_not_believed() -> None:
    clocks = [f"12000{i}.00" for i in range(6)]
    dates = ["150926"] * 3 + ["150927"] + ["150926"] * 2
    fixes = decoded(*(gga(c) + rmc(c, date) for c, date in zip(clocks, dates, strict=True)))
    noon = unix("2026-09-15T12:00:00")
    assert [fix.time_unix_s - noon for fix in fixes] == [1, 2, 3, 4, 5]


# What must follow from what


def test_a_jump_is_held_until_it_is_confirmed() -> None:
    def at(tow_ms: int, lat: float = 0.8) -> bytes:
        return pvt(tow_ms, lat=lat) + covariance(tow_ms)

    far = 0.8 + 100 / 6.4e6
    assert decoded(at(0)) == []
    once = decoded(at(0), at(100), at(200, far), at(300))
    assert [round(fix.latitude_deg, 6) for fix in once] == [round(math.degrees(0.8), 6)] * 3
    stays = decoded(at(0), at(100), at(200, far), at(300, far), at(400, far))
    assert len(stays) == 5
    back_in_time = decoded(at(50_000), at(50_100), at(0), at(100), at(200))
    assert [fix.time_unix_s - SUNDAY for fix in back_in_time] == pytest.approx(
        [32, 32.1, -18, -17.9, -17.8], abs=1e-6
    )
    twice = decoded(at(0), at(100), at(100), at(200))
    assert len(twice) == 3


def test_speed_is_measured_across_the_date_line() -> None:
    def at(tow_ms: int, lon: float) -> bytes:
        return pvt(tow_ms, lon=lon) + covariance(tow_ms)

    assert len(decoded(at(0, math.pi), at(100, -math.pi), at(200, math.pi - 1e-8))) == 3


# Streams


def situation(time_unix_s: float) -> Situation:
    """A drone on its way, with solutions of all kinds."""
    k = round(10 * (time_unix_s - START))
    kinds = [Quality.FIXED] * 5 + [Quality.FLOAT, Quality.FLOAT, Quality.NONE, Quality.AUTONOMOUS]
    return Situation(
        47.123456 + 1.4e-6 * k,
        -8.765432 - 2.1e-6 * k,
        512.345 + 0.131 * k,
        kinds[k % len(kinds)],
        sigma_m=(0.008, 0.012, 0.3)[k % 3],
    )


def stream(*, sends_sbf: bool = False, sends_nmea: bool = False, n: int = 11) -> list[bytes]:
    receiver = SimulatedReceiver(situation, sends_sbf, sends_nmea, noise=1)
    return [receiver.epoch(START + i / 10) for i in range(n)]


STREAMS = {
    "sbf": {"sends_sbf": True},
    "nmea": {"sends_nmea": True},
    "mixed": {"sends_sbf": True, "sends_nmea": True},
}


@pytest.mark.parametrize("kind", STREAMS)
def test_every_epoch_of_a_clean_stream_comes_out_at_once(kind: str) -> None:
    decoder = Decoder()
    n_fixes = [len(decoder.feed(epoch)) for epoch in stream(**STREAMS[kind], n=10)]
    assert sum(n_fixes) == 10
    assert n_fixes[3:] == [1] * 7
    receiver = SimulatedReceiver(situation, **STREAMS[kind])
    times = [START + i / 10 for i in range(20)]
    data = b"".join(map(receiver.epoch, times))
    for time_s, fix in zip(times, decoded(data), strict=False):
        truth = situation(time_s)
        assert fix.time_unix_s == pytest.approx(time_s, abs=1e-6)
        assert fix.quality is truth.quality
        if truth.quality is not Quality.NONE:
            assert fix.latitude_deg == pytest.approx(truth.latitude_deg, abs=1e-9)
            assert fix.longitude_deg == pytest.approx(truth.longitude_deg, abs=1e-9)
            assert fix.height_m == pytest.approx(truth.height_m, abs=6e-5)
            assert fix.covariance_m2 is not None
            assert fix.covariance_m2[2][2] == pytest.approx(4 * (truth.sigma_m or 0) ** 2)


def test_others_read_what_the_simulator_sends() -> None:
    blocks = b"".join(stream(sends_sbf=True))
    read = [message.identity for _, message in SBFReader(io.BytesIO(blocks), quitonerror=2)]
    assert read.count("PVTGeodetic") == read.count("PosCovGeodetic") == 11
    lines = b"".join(stream(sends_nmea=True))
    sentences = NMEAReader(io.BytesIO(lines), quitonerror=2, validate=3)
    assert sum(message.msgID == "GNS" for _, message in sentences) == 11


@pytest.mark.parametrize("kind", STREAMS)
def test_any_chunking_gives_the_same_fixes(kind: str) -> None:
    rng = random.Random(1)
    data = spoil_bytes(rng, b"".join(stream(**STREAMS[kind])))
    whole = decoded(data)
    assert whole
    byte_by_byte = Decoder(clock=lambda: 0.0)
    assert list(itertools.chain(*(byte_by_byte.feed(bytes([b])) for b in data))) == whole
    for _ in range(20):
        cuts = sorted(rng.choices(range(len(data)), k=rng.randrange(1, 40)))
        decoder = Decoder(clock=lambda: 0.0)
        pieces = [data[a:b] for a, b in itertools.pairwise([0, *cuts, len(data)])]
        assert list(itertools.chain(*map(decoder.feed, pieces))) == whole


def test_a_spoiled_length_swallows_nothing() -> None:
    decoder = Decoder()
    epochs = stream(sends_sbf=True, n=6)
    for epoch in epochs[:3]:
        decoder.feed(epoch)
    assert len(decoder.feed(b"$@\x12\x34\xa7\x4f\x00\x1f" + epochs[3])) == 1
    assert len(decoder.feed(epochs[4][:40] + epochs[5])) == 1


def test_endless_garbage_takes_no_memory() -> None:
    rng = random.Random(2)
    decoder = Decoder()
    decoder.feed(rng.randbytes(100_000))
    tracemalloc.start()
    for chunk in (rng.randbytes(20_000), b"$" * 20_000, b"$GPGGA," + b"1" * 20_000, b"$@" * 10_000):
        for _ in range(4):
            decoder.feed(chunk)
    decoder.feed(b"$@\0\0\0\0\x00\x20")
    for _ in range(40):
        decoder.feed(b"A" * 4000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 400_000
    assert len(decoder.feed(b"".join(stream(sends_sbf=True)))) == 11


# Spoiled at random


def spoil_bits(rng: random.Random, data: bytes) -> bytes:
    spoiled = bytearray(data)
    for _ in range(rng.choice([1, 2, 5, 20])):
        spoiled[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def spoil_neighbours(rng: random.Random, data: bytes) -> bytes:
    """Flipped bits within the length of a sentence."""
    spoiled, start = bytearray(data), rng.randrange(len(data))
    for _ in range(rng.choice([2, 2, 4])):
        spoiled[min(start + rng.randrange(90), len(data) - 1)] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def spoil_bytes(rng: random.Random, data: bytes) -> bytes:
    spoiled = bytearray(data)
    for _ in range(rng.choice([1, 2, 5, 20])):
        spoiled[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(spoiled)


def spoil_digits(rng: random.Random, data: bytes) -> bytes:
    """The hardest: all stays well-formed."""
    spoiled = bytearray(data)
    for _ in range(60):
        at = rng.randrange(len(data))
        if spoiled[at : at + 1].isdigit():
            spoiled[at] = ord(rng.choice("0123456789"))
    return bytes(spoiled)


def lose(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice([1, 1, 3])):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + data[at + rng.randrange(1, 500) :]
    return data


def insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randrange(1, 300)) + data[at:]


def repeat(rng: random.Random, data: bytes) -> bytes:
    at, start = rng.randrange(len(data)), rng.randrange(len(data))
    return data[:at] + data[start : start + rng.randrange(1, 600)] + data[at:]


def truncate(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return rng.choice([data[:at], data[at:]])


WAYS = (spoil_bits, spoil_neighbours, spoil_bytes, spoil_digits, lose, insert, repeat, truncate)


def test_ten_thousand_spoiled_streams_give_no_wrong_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    # Most frames are unspoiled and the same in every variant: they are taken apart once.
    for module in (sbf, nmea):
        monkeypatch.setattr(module, "parse", functools.lru_cache(1000)(module.parse))
    rng = random.Random(5)
    data = {kind: b"".join(stream(**options)) for kind, options in STREAMS.items()}
    # One epoch more completes the last one.
    longer = {kind: b"".join(stream(**options, n=12)) for kind, options in STREAMS.items()}
    truth = {kind: set(decoded(longer[kind])) for kind in ("sbf", "nmea")}
    truth["mixed"] = truth["sbf"] | truth["nmea"]
    for fixes in truth.values():
        # The covariance's own frame may be the one that is lost.
        fixes |= {replace(fix, covariance_m2=None) for fix in fixes}
    kinds = ["sbf", "nmea", "mixed", "nmea"]
    n_fixes, wrong = 0, []
    for variant in range(10_000):
        kind = kinds[variant % len(kinds)]
        way = WAYS[variant // len(kinds) % len(WAYS)]
        fixes = decoded(way(rng, data[kind]))
        n_fixes += len(fixes)
        wrong += [(variant, way.__name__, fix) for fix in fixes if fix not in truth[kind]]
    assert wrong == []
    assert n_fixes > 60_000


def test_garbage_gives_no_fix() -> None:
    rng = random.Random(6)
    alphabet = b"$@GPGGA,.*0123456789\r\n"
    for _ in range(200):
        assert decoded(rng.randbytes(2000)) == []
        assert decoded(bytes(rng.choices(alphabet, k=2000))) == []
