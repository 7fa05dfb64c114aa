"""How large the pages of a full lens are, and how long a browser takes to open them.

All cells of canon17 are simulated and calibrated (recipe ``batch``, the quickest), and the run's
report and its lens's explorer opened in headless Chromium, from the disk, each in a fresh tab.
Beside them an empty page with Bokeh's scripts alone, which is what any page with figures
costs. A page is open when its own scripts have run: words, tables and numbers are there then and
answer. Its first figures are drawn a moment later, others when they are scrolled to. Times are
the shortest of several.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.report import verdict
from influx_wrap.report.page import BOKEH, bokeh_script

LENS = "canon17"
REPEATS = 5
MOST_MB, MOST_SECONDS = 5.0, 1.0
OPENED = "() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
DRAWN = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
SEEN = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        console.print("playwright is not installed: left out.")
        return True
    chromium = shutil.which("chromium")
    if chromium is None:
        console.print("There is no chromium: left out. make system-packages installs it.")
        return True
    report = Table(
        "page", "MB", "first seen, s", "open, s", "times Bokeh alone", "drawn, s", "limit", ""
    )
    passed = []
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place) / "run"
        with console.status(f"calibrating {LENS}"):
            command = [sys.executable, "-m", "influx_wrap.cli.main", "run", LENS]
            subprocess.run(
                [*command, "--recipe", "batch", "--out", str(folder)],
                check=True, capture_output=True,
            )  # fmt: skip
        blank = Path(place) / "blank.html"
        scripts = "".join(f"<script>{bokeh_script(name)}</script>" for name in BOKEH)
        blank.write_text(f"<!doctype html><title>blank</title><p>blank</p>{scripts}")
        as_root = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=as_root)
        alone = None
        for path in (blank, folder / "report.html", folder / "explorer.html"):
            seen_s, open_s, drawn_s = [], [], []
            for _ in range(REPEATS):
                tab = browser.new_page(viewport={"width": 1200, "height": 900})
                tab.goto(path.as_uri(), wait_until="load")
                tab.wait_for_function(f"() => ({DRAWN})() > 0")
                open_s.append(1e-3 * tab.evaluate(OPENED))
                drawn_s.append(1e-3 * tab.evaluate(DRAWN))
                seen_s.append(1e-3 * tab.evaluate(SEEN))
                tab.close()
            size_mb = path.stat().st_size / 1e6
            alone = alone or min(open_s)
            passed.append(size_mb < MOST_MB and min(open_s) < MOST_SECONDS)
            report.add_row(
                path.name, f"{size_mb:.2f}", f"{min(seen_s):.2f}", f"{min(open_s):.2f}",
                f"{min(open_s) / alone:.1f}", f"{min(drawn_s):.2f}",
                f"< {MOST_MB:g} MB, open < {MOST_SECONDS:g} s",
                verdict(passed[-1]),
            )  # fmt: skip
        browser.close()
    console.print(report)
    return all(passed)
