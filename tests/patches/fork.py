"""A made-up Kalibr that the series applies to, and its modules as a package that can be imported.

The files that the series touches are upstream's by name only: every line says its number.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from influx_wrap.engines.kalibr_fork import PatchSeries, make_fork, read_series
from influx_wrap.formats.files import file_hash

PYTHON = Path("aslam_offline_calibration/kalibr/python")
PACKAGE = PYTHON / "kalibr_camera_calibration"
STANDINS = Path(__file__).parent / "standins"
N_LINES = 700
IDENTITY = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *IDENTITY, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_upstream(folder: Path) -> PatchSeries:
    """A repository in ``folder``, and the series as if it was for its only commit."""
    series = read_series()
    for name in series.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"line {number}\n" for number in range(1, N_LINES + 1)))
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "made up")
    hashes = {name: file_hash(folder / name) for name in series.files}
    commit = git(folder, "rev-parse", "HEAD").strip()
    return PatchSeries(series.patches, str(folder), commit, hashes)


def extract_modules(folder: Path) -> Path:
    """A folder to import the modules of the series from, beside stand-ins for Kalibr."""
    upstream = folder / "upstream"
    upstream.mkdir()
    series = make_upstream(upstream)
    make_fork(folder / "fork", series)
    place = folder / "modules"
    shutil.copytree(STANDINS, place)
    for path in (folder / "fork" / PACKAGE).glob("influx_*.py"):
        shutil.copyfile(path, place / "kalibr_camera_calibration" / path.name)
    return place


def real_checkout() -> Path | None:
    """The checkout of upstream that the environment names."""
    name = os.environ.get("INFLUX_KALIBR_CHECKOUT")
    return Path(name) if name else None


def added_after(path: Path, original: list[str]) -> Iterator[tuple[int, str]]:
    """(line of the original after which it stands, text) of every line that was added."""
    at = 0
    for line in path.read_text().splitlines():
        if at < len(original) and line == original[at]:
            at += 1
        else:
            yield at, line
    assert at == len(original)
