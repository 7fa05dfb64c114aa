"""One look: matplotlib's figures have the colours of the pages, and give the look back."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from influx_wrap.report import style


def asset(name: str) -> str:
    return files("influx_wrap.report").joinpath("assets", name).read_text()


def light(name: str, variable: str) -> str:
    """A variable of a page's style sheet in the light scheme, which comes first."""
    found = re.search(rf"--{variable}: (#\w+)", asset(name))
    assert found is not None
    return found[1]


def test_colours_are_those_of_the_pages() -> None:
    for variable in ("ink", "quiet", "line", "mark"):
        assert getattr(style, variable.upper()) == light("shared/page.css", variable)
    for k, colour in enumerate(style.SERIES):
        assert colour == light("scores/scores.css", f"m{k}")


@pytest.mark.parametrize(("name", "ramp"), [("value", "VALUE_RAMP"), ("error", "ERROR_RAMP")])
def test_ramps_are_those_of_the_pages(name: str, ramp: str) -> None:
    found = re.search(rf"{name}: \[(.*?)\]", asset("shared/figures.js"), re.DOTALL)
    assert found is not None
    stops = np.array([to_rgb(stop) for stop in re.findall(r"#\w{6}", found[1])])
    ours = getattr(style, ramp)(np.linspace(0, 1, len(stops)))[:, :3]
    np.testing.assert_allclose(ours, stops, atol=6 / 255)


def luminance(colours: Any) -> Any:
    """Relative luminance (WCAG 2) of sRGB colours (..., 3) from 0 to 1."""
    colours = np.asarray(colours)
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_lightness_tells_values_apart() -> None:
    for ramp in (style.VALUE_RAMP, style.ERROR_RAMP, style.BOARD_RAMP):
        steps = np.diff(luminance(ramp(np.linspace(0, 1, 32))[:, :3]))
        assert (steps < 0).all() or (steps > 0).all()


@pytest.mark.parametrize("colour", [style.INK, style.QUIET, *style.SERIES])
def test_legible_on_paper(colour: str) -> None:
    """3 is what WCAG asks of lines, 4.5 of text."""
    contrast = 1.05 / (luminance(to_rgb(colour)) + 0.05)
    assert contrast > (4.5 if colour in (style.INK, style.QUIET) else 3)


def test_the_look_is_given_back() -> None:
    before = dict(matplotlib.rcParams)
    seen = style.styled(lambda: matplotlib.rcParams["axes.edgecolor"])
    assert [seen(), seen()] == [style.LINE] * 2
    assert dict(matplotlib.rcParams) == before
