"""Pages in a real browser, for the tests marked ``system``.

A page of ours opens from a disk and is complete: whatever it says on the console, throws, or asks
for is a fault.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

GRAVE = ("serious", "critical")
SCHEMES_AND_WIDTHS = [(dark, width) for dark in (False, True) for width in (1200, 390)]
"""What every page is looked at in: ``dark`` and ``width`` of `open_page`."""

NO_STOP_IN_A_FIGURE = """() => {
  const stops = (root) => [...root.querySelectorAll("*")].flatMap((one) => [
    ...(one.tabIndex >= 0 ? [one] : []), ...(one.shadowRoot ? stops(one.shadowRoot) : [])]);
  return [...document.querySelectorAll("[role=img]")].every((one) => stops(one).length === 0);
}"""
"""A figure is one thing with one name, also to the Tab key; it is drawn in its own time."""


@contextmanager
def open_page(
    path: Path, *, width: int = 1200, height: int = 900, dark: bool = False, fragment: str = ""
) -> Iterator[Any]:
    """A tab of headless Chromium with the page in it; its faults fail the test at the end.

    fragment  what follows the # of its address
    """
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    assert chromium is not None, "Debian's package chromium is needed"
    as_root = ["--no-sandbox"] if os.getuid() == 0 else []
    faults: list[str] = []

    def heard(message: Any) -> None:
        if message.type in ("error", "warning"):
            faults.append(f"console: {message.text}")

    def asked(dialog: Any) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def requested(request: Any) -> None:
        address = request.url.partition("#")[0]
        # What is in the page already, or made by it.
        if address != path.as_uri() and not address.startswith(("data:", "blob:")):
            faults.append(f"request: {request.url}")

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=as_root)
        try:
            tab = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                accept_downloads=True,
            )
            tab.on("console", heard)
            tab.on("pageerror", lambda error: faults.append(f"error: {error}"))
            tab.on("dialog", asked)
            tab.on("request", requested)
            tab.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))
            yield tab
        finally:
            browser.close()
    assert faults == []


def check_accessible(tab: Any) -> None:
    """axe-core finds no serious or critical fault, Tab stops at nothing inside a figure, and the
    page does not scroll sideways."""
    tab.wait_for_function(NO_STOP_IN_A_FIGURE)
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(tab)
    grave = [fault for fault in found.response["violations"] if fault["impact"] in GRAVE]
    for fault in grave:
        print(f"{fault['id']} ({fault['impact']}): {fault['help']}")
        for node in fault["nodes"]:
            print(f"  {' '.join(map(str, node['target']))}: {node['html'][:200]}")
            print(f"    {node['failureSummary']}")
    assert [fault["id"] for fault in grave] == []
    shown, wanted = tab.evaluate(
        "() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]"
    )
    assert wanted <= shown, f"{wanted} px wide in a window of {shown} px"


def settled(tab: Any) -> None:
    """Scroll through the page, so that all its figures are drawn; ends at its top."""
    tab.evaluate(
        """async () => {
          const pause = () => new Promise((done) => setTimeout(done, 60));
          for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
            scrollTo(0, y);
            await pause();
          }
          scrollTo(0, 0);
        }"""
    )
    tab.wait_for_timeout(900)
    tab.wait_for_function(
        "() => typeof Bokeh === 'undefined' || Bokeh.documents.every((one) => one.is_idle)"
    )
    tab.wait_for_timeout(300)


SEEN = """() => {
  const light = (css) => {
    const [r, g, b] = rgbOf(css).map((c) => c / 255)
      .map((c) => (c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4));
    return .2126 * r + .7152 * g + .0722 * b + .05;
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return high / low;
  };
  const card = cssColour("card"), poor = [], drawn = [];
  for (const { figure, looks } of charts) {
    const axes = [...figure.xaxes, ...figure.yaxes].flatMap((axis) => [axis.axis_line_color,
      axis.major_tick_line_color, axis.major_label_text_color, axis.axis_label_text_color]);
    const grids = [...figure.xgrids, ...figure.ygrids].map((grid) => grid.grid_line_color);
    const glyphs = looks.flatMap(([, colours]) => colours
      .filter(([property, name]) => /^(line|text|hatch)_color$/.test(property) && name !== "card")
      .map(([, name]) => cssColour(name)));
    drawn.push(...axes, ...grids, ...glyphs, figure.outline_line_color);
  }
  return [drawn.length, [...new Set(drawn)].filter((colour) => !(ratio(colour, card) >= 3))];
}"""


def check_lines_are_seen(tab: Any) -> None:
    """Lines, curves, markers' rims, axes, grids and words of all figures, on the colour below them:
    a contrast of 3 at least."""
    drawn, poor = tab.evaluate(SEEN)
    assert drawn > 0
    assert poor == [], f"hardly seen: {poor}"
