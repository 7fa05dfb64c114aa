"""Pictures of the LED at night: its centre is exact, its looks are what was asked for."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.synth.flight import LitFrames
from influx_wrap.synth.motion import FPS
from influx_wrap.synth.night import (
    LED_BGR,
    NightOptions,
    OtherLights,
    develop_night,
    led_glows,
    night_light,
    other_lights,
    render_night,
    to_level,
    to_light,
)
from influx_wrap.synth.night_kernels import add_glows, develop_dark

SIZE = (320, 300)
BLACK = NightOptions(
    core_px=16, halo_px=50, scatter=0, lights=False, noise=0, sky_top=0, sky_bottom=0
)
NOTHING = OtherLights()
DARK = np.empty((0, 12))


def glow(options: NightOptions, u: float, v: float, share: float = 1.0) -> FloatArray:
    return led_glows(options, SIZE, np.array([[u, v], [u, v]]), share)


def picture(
    options: NightOptions, led: FloatArray = DARK, seed: int = 0, others: OtherLights = NOTHING
) -> np.ndarray:
    return render_night(options, SIZE, others, 0, led, np.random.default_rng(seed))


def centroid(light: FloatArray) -> FloatArray:
    v, u = np.mgrid[: light.shape[0], : light.shape[1]]
    return np.array([(u * light).sum(), (v * light).sum()]) / light.sum()


@pytest.mark.parametrize("core_px", [0.0, 3.0, 16.0, 38.0])
@pytest.mark.parametrize("vignetting", [0.0, 0.5])
def test_the_centre_of_the_light_is_the_exact_pixel(core_px: float, vignetting: float) -> None:
    options = replace(BLACK, core_px=core_px, vignetting=vignetting)
    for u, v in np.random.default_rng(0).uniform(100, 180, (12, 2)):
        light = night_light(options, SIZE, glow(options, u, v), 0, 0, SIZE[::-1])
        for channel in range(3):
            np.testing.assert_allclose(centroid(light[..., channel]), [u, v], atol=0.002)


def test_a_moving_light_is_centred_half_way() -> None:
    ends = np.array([[130.2, 140.9], [150.7, 133.3]])
    light = night_light(BLACK, SIZE, led_glows(BLACK, SIZE, ends, 1.0), 0, 0, SIZE[::-1])
    np.testing.assert_allclose(centroid(light[..., 2]), ends.mean(axis=0), atol=0.002)
    still = night_light(BLACK, SIZE, glow(BLACK, 140, 140), 0, 0, SIZE[::-1])
    assert light.sum() == pytest.approx(still.sum(), rel=1e-3)
    assert light.max() < 0.8 * still.max()


def test_the_picture_of_a_clean_light_is_centred_too() -> None:
    for u, v in np.random.default_rng(1).uniform(100, 180, (8, 2)):
        found = picture(BLACK, glow(BLACK, u, v))
        saturation = np.where(found[..., 0] > 100, found[..., 0], 0.0)
        # Pixels at the rim come and go as a whole.
        np.testing.assert_allclose(centroid(saturation), [u, v], atol=0.1)


@pytest.mark.parametrize(("core_px", "halo_px"), [(16, 50), (30, 45), (5, 40)])
def test_core_and_halo_have_the_size_asked_for(core_px: float, halo_px: float) -> None:
    options = replace(BLACK, core_px=core_px, halo_px=halo_px)
    found = picture(options, glow(options, 160, 150))
    lightness = cv2.cvtColor(found, cv2.COLOR_BGR2HLS)[..., 1]
    across = 2 * np.sqrt((lightness > 210).sum() / np.pi)
    assert across == pytest.approx(core_px, abs=0.8)
    hsv = cv2.cvtColor(found, cv2.COLOR_BGR2HSV)
    red = cv2.inRange(hsv, (0, 100, 120), (50, 255, 255))
    red |= cv2.inRange(hsv, (130, 100, 120), (180, 255, 255))
    rows = np.flatnonzero(red.any(axis=1))
    assert len(rows) == pytest.approx(halo_px, abs=1.5)
    assert found[150, 160].tolist() == [255, 255, 255]
    middle = int(150 + (core_px + halo_px) / 4)
    blue, green, bright = found[middle, 160].tolist()
    assert bright > 120
    assert bright > 1.5 * max(blue, green)


def test_a_red_light_has_no_core() -> None:
    options = replace(BLACK, core_px=0)
    found = picture(options, glow(options, 160, 150))
    lightness = cv2.cvtColor(found, cv2.COLOR_BGR2HLS)[..., 1]
    assert lightness.max() < 160
    assert found[150, 160, 2] > 230


@pytest.mark.parametrize("far", [0.55, 0.75])
def test_scatter_glows_on_one_side(far: float) -> None:
    options = replace(BLACK, scatter=0.5, scatter_deg=90.0, scatter_far=far)
    plain, scattered = (
        night_light(o, SIZE, glow(o, 160, 120), 0, 0, SIZE[::-1])[..., 2] for o in (BLACK, options)
    )
    extra = scattered - plain
    assert extra.max() == pytest.approx(0.5, rel=0.03)
    u, v = centroid(extra)
    assert (u, v) == pytest.approx((160, 120 + far * 50), abs=0.1)
    rows, columns = (np.flatnonzero((extra > 0.25).any(axis=axis)) for axis in (1, 0))
    assert len(columns) > 2 * len(rows)


def test_a_share_of_the_exposure_is_a_share_of_the_light() -> None:
    whole, part = (
        night_light(BLACK, SIZE, glow(BLACK, 160, 150, share), 0, 0, SIZE[::-1])
        for share in (1.0, 0.1)
    )
    np.testing.assert_allclose(part, 0.1 * whole)
    cores = [(picture(BLACK, glow(BLACK, 160, 150, s))[..., 0] > 165).sum() for s in (1.0, 0.1)]
    assert 0 <= cores[1] < 0.3 * cores[0]


def test_noise_is_new_in_every_frame_and_of_the_strength_asked_for() -> None:
    options = NightOptions(noise=3, lights=False, sky_top=20, sky_bottom=20, core_px=16, halo_px=50)
    frames = [picture(options, glow(options, 160, 150), seed).astype(float) for seed in range(12)]
    stack = np.array(frames)
    dark = stack[:, :60]
    assert dark.std(axis=0).mean() == pytest.approx(3, rel=0.1)
    assert dark.mean(axis=(0, 1, 2)) == pytest.approx([24.7, 18.8, 15.8], abs=0.5)
    halo = stack[:, 175:200, 130:190]
    for part in (dark, halo):
        moved = part - part.mean(axis=0)
        flat = moved.reshape(len(part), -1)
        correlation = np.corrcoef(flat)[np.triu_indices(len(part), 1)]
        # Less the mean of twelve, frames have -1/11 in common by construction.
        np.testing.assert_allclose(correlation, -1 / 11, atol=0.05)
        channels = np.corrcoef(moved.reshape(-1, 3).T)[np.triu_indices(3, 1)]
        assert np.abs(channels).max() < 0.03
    np.testing.assert_array_equal(picture(options, seed=5), picture(options, seed=5))


def test_photons_make_bright_light_noisier() -> None:
    options, rng = NightOptions(noise=3), np.random.default_rng(0)
    deviation = []
    for light in (0.01, 0.2, 0.8):
        levels = develop_night(np.full((200, 200, 3), light), options, rng).astype(float)
        linear = np.vectorize(to_light)(np.arange(256))[levels.astype(int)]
        deviation.append(linear.std())
    assert deviation[0] < deviation[1] < deviation[2]
    assert deviation[2] / deviation[1] == pytest.approx(2, rel=0.1)


def test_a_dark_frame_is_a_clean_one_with_noise() -> None:
    options = NightOptions(noise=0, vignetting=0.5, core_px=10, halo_px=30)
    lit = LitFrames(*(np.empty(n) for n in (0, 0, 0)), np.empty((0, 2)), np.empty((0, 2, 2)))
    others = other_lights(lit, options, SIZE, np.random.default_rng(0))
    assert len(others.steady) == 4
    clean = picture(options, others=OtherLights(others.steady))
    light = night_light(options, SIZE, DARK, 0, 0, SIZE[::-1])
    away = np.ones(SIZE[::-1], dtype=bool)
    for lamp in others.steady:
        v, u = round(lamp.v), round(lamp.u)
        away[max(v - 25, 0) : v + 26, max(u - 25, 0) : u + 26] = False
        assert clean[v, u].min() > 165
    sky = to_level(light)[away]
    assert np.abs(clean[away].astype(float) - sky).max() <= 0.51
    rows = clean[:, 5].astype(float).mean(axis=1)
    assert rows[-1] > 1.3 * rows[0]


def test_other_lights_keep_away_from_the_led() -> None:
    rng = np.random.default_rng(4)
    uv = rng.uniform([20, 20], [300, 280], (24, 2))
    frames = 10 + 40 * np.arange(24)
    lit = LitFrames(np.arange(24), frames, np.ones(24), uv, np.stack([uv, uv], axis=1))
    options = NightOptions(core_px=6, halo_px=20)
    others = other_lights(lit, options, SIZE, rng)
    for lamp in others.steady:
        assert np.hypot(*(uv - [lamp.u, lamp.v]).T).min() > 20
    assert [lamp.bgr for lamp in others.steady].count(LED_BGR) == 1
    on: list[int] = []
    places = []
    quiet = replace(options, noise=0, sky_top=0, sky_bottom=0)
    plane_alone = OtherLights((), others.aeroplane)
    for frame in range(30 * FPS):
        seen = render_night(quiet, SIZE, plane_alone, frame, DARK, rng)
        if seen[..., 2].max() > 120:
            on.append(frame)
            places.append(centroid(seen[..., 2].astype(float)))
    assert 30 < len(on) < 150
    runs = np.split(on, np.flatnonzero(np.diff(on) > 1) + 1)
    assert max(len(run) for run in runs) <= 3
    assert np.ptp(places, axis=0)[0] > 100


@pytest.mark.parametrize("at", [(0.0, 0.0), (-0.5, 150.0), (319.4, 299.4), (160.0, 299.0)])
def test_a_light_at_the_rim(at: tuple[float, float]) -> None:
    options = replace(BLACK, scatter=0.5)
    found = picture(options, glow(options, *at))
    u, v = (min(max(round(x), 0), n - 1) for x, n in zip(at, SIZE, strict=True))
    assert found[v, u].min() == 255


def test_the_transfer_there_and_back() -> None:
    for level in (0.0, 5.0, 20.0, 21.0, 120.0, 255.0):
        assert to_level(to_light(level)) == pytest.approx(level, abs=0.2)
    assert np.all(np.diff(to_level(np.linspace(0, 1, 1000))) > 0)


def test_kernels_like_their_twins() -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 65281, (7, 90), dtype=np.uint16)
    sigma, grain = rng.integers(0, 256, (7, 90), np.uint8), rng.integers(-127, 128, 500, np.int8)
    start = rng.integers(0, 400, 7)
    out = np.empty((7, 90), np.uint8)
    develop_dark(level, sigma, grain, start, out)
    grains = np.stack([grain[s : s + 90] for s in start]).astype(float)
    exact = level / 256 + sigma / 8 * grains / 32
    np.testing.assert_array_equal(out, np.clip(np.floor(exact + 0.5), 0, 255).astype(np.uint8))

    options = replace(BLACK, scatter=0.4, scatter_deg=30.0)
    glows = led_glows(options, SIZE, np.array([[160.3, 150.8], [165.0, 149.0]]), 0.7)
    light = np.zeros((120, 100, 3))
    add_glows(glows, 100, 90, light)
    v, u = np.mgrid[90:210, 100:200]
    expected = np.zeros_like(light)
    for u0, v0, m_uu, m_uv, m_vv, exponent, end, *bgr, _, _ in glows:
        q = m_uu * (u - u0) ** 2 + 2 * m_uv * (u - u0) * (v - v0) + m_vv * (v - v0) ** 2
        value = np.where(q < end, (1 - q / end) ** 2 * (1 + q) ** -exponent, 0)
        expected += value[..., None] * np.array(bgr)
    np.testing.assert_allclose(light, expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"core_px": -1.0}, "core must be at least 0"),
        ({"core_px": float("nan")}, "core must be at least 0"),
        ({"halo_px": 20.0}, "halo of 20 px is too small around a core of 24 px"),
        ({"scatter": 1.5}, "shares from 0 to 1"),
        ({"vignetting": -0.1}, "shares from 0 to 1"),
        ({"scatter_far": 9.0}, "at most 3 halos away"),
        ({"scatter_deg": float("nan")}, "some side of the LED"),
        ({"noise": 99.0}, "noise must be from 0 to 25"),
        ({"sky_top": -1.0}, "sky from 0 to 100"),
    ],
)
def test_nights_that_cannot_be(values: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        NightOptions(**values)
