"""From ``git clone`` to the first answer, for each of the three ways in.

A clone of this repository is made in an empty folder, with an empty HOME: nothing is installed, no
download is kept, no kernel is compiled. ``make`` installs it, then each of the three commands is
run in a terminal (a pseudo-terminal), each without compiled kernels: photographs of a board, a
whole lens, scores of a prediction. The wall clock and the time of all processors are printed,
since other work may share the machine, and the longest time in which nothing new was shown.

``python -m benchmarks.first_answer COMMIT ...`` measures other commits as well.
"""

from __future__ import annotations

import json
import os
import pty
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.report import verdict

ROOT = Path(__file__).parents[1]
LIMIT_S = 600.0
"""Ten minutes, of the wall clock."""
INSTALL = ("make", ".venv/.installed")
WAYS = {
    "camera photos": ("camera", "photos", "--out", "camera-photos"),
    "run canon17": ("run", "canon17"),
    "evaluate": ("evaluate", "method.json", "--truth", "truth.json", "--out", "scores"),
}
"""What follows ``influx-calib``, by name."""
KERNELS = "influx_wrap/__pycache__/kernels-*"
_SETTINGS = ("PATH", "LANG", "PYENV_ROOT", "SSL_CERT_FILE")
_OF_INSTALLERS = ("PIP_", "UV_", "http_", "https_", "HTTP_", "HTTPS_", "no_proxy", "NO_PROXY")


@dataclass(frozen=True)
class Took:
    """Seconds of the wall clock and of processors, and of the longest silence."""

    wall_s: float
    processor_s: float
    silent_s: float


def run(console: Console, commits: Sequence[str] = ()) -> bool:
    """Print the report; returns whether each first answer comes within ten minutes."""
    report = Table(
        "commit",
        "step",
        "wall, s",
        "processor, s",
        "longest silence, s",
        "from clone, s",
        "limit",
        "",
    )
    passed = []
    with tempfile.TemporaryDirectory() as place:
        with console.status("rendering photographs"):
            given = _given(Path(place) / "given")
        for commit in (*commits, "HEAD"):
            with console.status(f"{commit}: from git clone"):
                steps = _measure(Path(place) / commit.replace("/", "-"), commit, given)
            ready_s = steps["clone"].wall_s + steps["install"].wall_s
            for name, took in steps.items():
                row = [
                    commit,
                    name,
                    *(f"{s:.1f}" for s in (took.wall_s, took.processor_s, took.silent_s)),
                ]
                if name in WAYS:
                    answer_s = ready_s + took.wall_s
                    passed.append(answer_s <= LIMIT_S or commit != "HEAD")
                    row += [f"{answer_s:.1f}", f"{LIMIT_S:.0f}", verdict(passed[-1])]
                report.add_row(*row)
    console.print(report)
    return all(passed)


def _measure(folder: Path, commit: str, given: Path) -> dict[str, Took]:
    home, source = folder / "home", folder / "source"
    home.mkdir(parents=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _SETTINGS or name.startswith(_OF_INSTALLERS)
    } | {"HOME": str(home), "TERM": "xterm", "COLUMNS": "100"}
    began = time.perf_counter()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
    checked_out = ["git", "-C", str(source), "checkout", "--quiet", "--detach", _full(commit)]
    subprocess.run(checked_out, check=True)
    steps = {"clone": Took(time.perf_counter() - began, 0.0, 0.0)}
    steps["install"] = _watched(INSTALL, source, environment)
    shutil.copytree(given, source, dirs_exist_ok=True)
    for name, arguments in WAYS.items():
        for kernels in source.glob(KERNELS):
            shutil.rmtree(kernels)
        steps[name] = _watched((".venv/bin/influx-calib", *arguments), source, environment)
    return steps


def _full(commit: str) -> str:
    """Its hash: a clone knows the names of branches otherwise."""
    asked = ["git", "-C", str(ROOT), "rev-parse", commit]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def _watched(command: Sequence[str], folder: Path, environment: dict[str, str]) -> Took:
    """Run a command on a terminal of its own."""
    ours, theirs = pty.openpty()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = heard = time.perf_counter()
    silent_s, said = 0.0, b""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    while True:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            text = os.read(ours, 1 << 16) if ready else b""
        except OSError:
            break
        if text:
            said += text
            now = time.perf_counter()
            silent_s, heard = max(silent_s, now - heard), now
        elif process.poll() is not None:
            break
    code = process.wait()
    os.close(ours)
    done = time.perf_counter()
    if code:
        sys.exit(f"{' '.join(command)} ended with {code}:\n{said.decode(errors='replace')}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(done - began, used_s, max(silent_s, done - heard))


def _given(folder: Path) -> Path:
    """Photographs of a board, and a prediction with its truth."""
    folder.mkdir()
    camera = {
        "kind": "camera", "name": "small", "sensor_width_mm": 28.25, "sensor_height_mm": 18.17,
        "width_px": 1280, "height_px": 824, "height_above_ground_m": 1.44,
    }  # fmt: skip
    # JSON is YAML.
    (folder / "small.yaml").write_text(json.dumps(camera))
    simulated = folder.with_name("simulated")
    subprocess.run(
        [sys.executable, "-m", "influx_wrap.cli.main", "simulate", "canon17", "--camera", "small",
         "--catalogue", str(folder), "--cells", "z3f4", "--images", "--views", "20",
         "--out", str(simulated)],
        check=True, capture_output=True,
    )  # fmt: skip
    shutil.move(simulated / "z3f4" / "frames", folder / "photos")
    true = {"fx": 3000.0, "fy": 3000.0, "cx": 1712.0, "cy": 1101.0}
    true |= dict.fromkeys(("k1", "k2", "p1", "p2"), 0.0)
    setting = {"focal_length_mm": 25.0, "focus_distance_m": 4.0}
    frame = {"intrinsics_gt": true, "intrinsics_gt_extrapolated": true, "lens_metadata": setting}
    truth = {"clip": {str(number): frame for number in range(100)}}
    (folder / "truth.json").write_text(json.dumps(truth))
    about = {"method_name": "method", "intrinsics_type": "rad-tan", "version": "influx"}
    predicted = {str(number): true | {"fx": 3100.0} for number in range(100)}
    method = {"submission_metadata": about, "clip": predicted}
    (folder / "method.json").write_text(json.dumps(method))
    return folder


if __name__ == "__main__":
    sys.exit(0 if run(Console(width=None if sys.stdout.isatty() else 140), sys.argv[1:]) else 1)
