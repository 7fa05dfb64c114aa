"""Cooke /i packets, decoded by hand from the protocol's layout."""

import math

import numpy as np
import pytest

from influx_wrap.formats.cooke import decode_cooke

# d, focus 0b000000_000000_000110_101000, T 5.60, ring 5.6+0, prime, hyperfocal, near, far,
# field of view, entrance pupil, normalised zoom, S and the serial number.
PRIME = "64/40/40/46/68/48/70/B8/80/40/40/40/42/66/6D/40/40/46/5E/40/40/46/73/45/4E/41/7F/40/40/53"


def packet(fd: int, zoom: int) -> bytes:
    """A packet by the layout, its other values 0."""
    packed = [fd >> shift & 63 | 64 for shift in (18, 12, 6, 0)]
    zooms = [zoom >> shift & 63 | 64 for shift in (6, 0)]
    return bytes([0x64, *packed, 0x40, 0x40, 0x40, 0x40, *zooms, *[0x40] * 18, 0x53])


def test_prime() -> None:
    found = decode_cooke(PRIME)
    assert found is not None
    # 6 * 64 + 0x28
    assert found.fd == 424
    assert math.isnan(found.lfl_mm)


@pytest.mark.parametrize(("fd", "zoom"), [(424, 0), (1, 15), (64**3 + 5, 4095), (10669, 290)])
@pytest.mark.parametrize("mark", ["/", " ", "", ":", "-", ", "])
def test_every_writing_of_the_bytes(fd: int, zoom: int, mark: str) -> None:
    data = packet(fd, zoom)
    for text in (mark.join(f"{byte:02X}" for byte in data), mark.join(f"{b:02x}" for b in data)):
        found = decode_cooke(text)
        assert found is not None
        assert found.fd == fd
        np.testing.assert_array_equal(found.lfl_mm, zoom or math.nan)


def test_infinity_and_nothing() -> None:
    far, nothing = (decode_cooke(packet(fd, 50).hex(" ")) for fd in (2**24 - 1, 0))
    assert far is not None
    assert nothing is not None
    assert far.fd == math.inf
    assert math.isnan(nothing.fd)


@pytest.mark.parametrize(
    "text",
    ["", "64", PRIME[:25], "65" + PRIME[2:], PRIME.replace("46/68", "06/68"), "zz/zz", "d" * 5000,
     PRIME.replace("B8/80/40/40", "B8/80/C0/40")],
)  # fmt: skip
def test_no_packets(text: str) -> None:
    assert decode_cooke(text) is None
