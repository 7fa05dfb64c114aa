"""The LED in one picture: the paper's answer, and a centre that is better."""

from collections import Counter

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.observe.led import ColourPicture, Led, bright_pixels, find_leds
from tests.observe.leds import LAMP_BGR, add_light, by_the_book, develop, night

SIZE = (96, 72)


def find_led(picture: ColourPicture) -> Led | None:
    """The likeliest one."""
    return next(iter(find_leds(picture, 1)), None)


def random_lights(rng: np.random.Generator) -> np.ndarray:
    """Up to four lights of any size, brightness, and colour between red and white."""
    light, noise = night(SIZE, rng, noise=rng.choice([0.0, 2.0, 20.0]))
    for _ in range(rng.integers(1, 5)):
        whiteness = rng.choice([0.01, 0.06, 0.2, 0.8])
        add_light(
            light,
            tuple(rng.uniform(-5, np.array(SIZE) + 5)),
            gain=np.exp(rng.uniform(np.log(0.2), np.log(500))),
            core_px=rng.uniform(1, 8),
            halo=rng.choice([0.0, 0.02, 0.2]),
            halo_px=rng.uniform(3, 12),
            scatter=rng.choice([0.0, 0.002, 0.1]),
            scatter_rad=rng.uniform(0, 2 * np.pi),
            colour=(whiteness * rng.uniform(0.5, 1), whiteness, 1.0),
        )
    return develop(light, noise)


def random_shapes(rng: np.random.Generator) -> np.ndarray:
    """Ellipses, frames and arcs in plain colours, over each other and over the border."""
    picture = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    if rng.random() < 0.5:
        at, axes = rng.integers(0, SIZE).tolist(), rng.integers(4, 9, 2).tolist()
        cv2.circle(picture, at, int(rng.integers(10, 30)), (0, 0, 255), -1)
        cv2.ellipse(picture, at, axes, rng.uniform(0, 180), 0, 360, (250, 240, 255), -1)
    for _ in range(rng.integers(2, 9)):
        kind, colour = rng.integers(3), rng.choice([0, 90, 119, 120, 151, 211, 255], 3).tolist()
        at = rng.integers(-5, np.array(SIZE) + 5).tolist()
        thickness = int(rng.choice([-1, 1, 3]))
        if kind == 0:
            axes = rng.integers(1, 25, 2).tolist()
            cv2.ellipse(picture, at, axes, rng.uniform(0, 180), 0, 360, colour, thickness)
        elif kind == 1:
            size = rng.integers(1, 40, 2).tolist()
            end = [at[0] + size[0], at[1] + size[1]]
            cv2.rectangle(picture, at, end, colour, thickness)
        else:
            axes = rng.integers(5, 40, 2).tolist()
            cv2.ellipse(picture, at, axes, 0, 0, rng.uniform(20, 360), colour, abs(thickness))
    return picture


@pytest.mark.parametrize(("make", "n"), [(random_lights, 500), (random_shapes, 1500)])
def test_the_papers_answer_in_random_pictures(make, n):
    rng = np.random.default_rng(5)
    rules: Counter[int] = Counter()
    for number in range(n):
        picture = make(rng)
        before = picture.copy()
        found, expected = find_led(picture), by_the_book(picture)
        assert (found is None) == (expected is None), number
        if found is not None and expected is not None:
            assert (found.rule, found.ellipse_uv, found.axes_px) == expected, number
        rules[expected[0] if expected else 0] += 1
        np.testing.assert_array_equal(picture, before)
    assert min(rules[rule] for rule in range(4)) > 15, rules


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (1, {}),
        (1, {"scatter": 0.002}),
        (2, {"core_px": 2.0, "halo_px": 4.0}),
        (2, {"core_px": 2.0, "halo_px": 4.0, "scatter": 0.002}),
        (3, {"gain": 0.6}),
    ],
)
def test_centres(rule, options):
    rng = np.random.default_rng(2)
    errors, rules = [], Counter()
    for _ in range(40):
        uv = np.array([48, 36]) + rng.uniform(-5, 5, 2)
        light, noise = night(SIZE, rng)
        add_light(light, tuple(uv), scatter_rad=rng.uniform(0, 2 * np.pi), **options)
        led = find_led(develop(light, noise))
        assert led is not None
        rules[led.rule] += 1
        errors.append(led.uv - uv)
    assert rules.most_common(1)[0][0] == rule, rules
    assert np.sqrt(np.mean(np.sum(np.square(errors), axis=1))) < 0.12
    assert np.abs(np.mean(errors, axis=0)).max() < 0.04


def test_scatter_moves_the_ellipse_but_not_the_centre():
    rng = np.random.default_rng(3)
    ours, papers = [], []
    for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False):
        light, noise = night(SIZE, rng)
        add_light(light, (48.3, 35.8), core_px=2.0, halo_px=4.0, scatter=0.01, scatter_rad=angle)
        led = find_led(develop(light, noise))
        assert led is not None
        ours.append(np.hypot(*(np.array(led.uv) - (48.3, 35.8))))
        papers.append(np.hypot(*(np.array(led.ellipse_uv) - (48.3, 35.8))))
    assert np.sqrt(np.mean(np.square(ours))) < 0.15 < 1 < np.sqrt(np.mean(np.square(papers)))


def test_a_light_that_moves_is_found_in_its_middle():
    light, noise = night(SIZE, np.random.default_rng(0))
    for shift in np.linspace(-2, 2, 9):
        add_light(light, (50.2 + shift, 30.7 + shift / 2), gain=300 / 9)
    led = find_led(develop(light, noise))
    assert led is not None
    np.testing.assert_allclose(led.uv, (50.2, 30.7), atol=0.08)


def test_others_come_after_the_led():
    light, noise = night((200, 80), np.random.default_rng(0))
    add_light(light, (40, 40))
    add_light(light, (160, 40), gain=0.6)
    add_light(light, (100, 40), colour=LAMP_BGR, halo=0)
    picture = develop(light, noise)
    leds = find_leds(picture, 3)
    assert [led.rule for led in leds] == [1, 3]
    np.testing.assert_allclose([led.uv for led in leds], [(40, 40), (160, 40)], atol=0.4)
    assert find_leds(picture, 1) == leds[:1]
    before = picture.copy()
    picture.setflags(write=False)
    assert find_leds(picture, 3) == leds
    np.testing.assert_array_equal(picture, before)


def test_nothing_to_see():
    assert find_led(np.zeros((40, 60, 3), np.uint8)) is None
    assert find_led(np.full((40, 60, 3), 119, np.uint8)) is None
    assert find_led(np.full((40, 60, 3), 255, np.uint8)) is None
    assert find_leds(np.zeros((40, 60, 3), np.uint8), 3) == []


def test_bright_pixels_are_those_of_any_bright_channel():
    picture = np.random.default_rng(0).integers(90, 150, (30, 40, 3)).astype(np.uint8)
    np.testing.assert_array_equal(bright_pixels(picture) > 0, picture.max(axis=2) >= 120)


@pytest.mark.parametrize(
    "picture",
    [np.zeros((4, 5), np.uint8), np.zeros((4, 5, 4), np.uint8), np.zeros((4, 5, 3), np.uint16)],
)
def test_pictures_must_be_in_colour(picture):
    with pytest.raises(InputError, match=r"\(H, W, 3\) of 8 bits"):
        find_led(picture)
