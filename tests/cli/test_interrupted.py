"""``detect`` interrupted at twenty moments, by Ctrl-C and worse, and ``run`` on recordings at ten;
and workers that the kernel kills for their memory."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr import write_target
from influx_wrap.observe import two_looks
from influx_wrap.observe.footage import JOURNAL, detect_footage
from influx_wrap.observe.sources import open_frames
from tests.clips import GRID, picture, write_clip
from tests.films import pictures_of_poses, write_film, write_rig

N_FRAMES, N_MOMENTS = 100, 20
SIGNALS = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM)

# A process that has everything loaded forks one command after the other, so that moments are those
# of its work and not of Python's start.
FORKING = """
import json, os, shutil, signal, sys, time
from pathlib import Path
from influx_wrap.cli.main import main
import influx_wrap.cli.detect, influx_wrap.cli.run, influx_wrap.observe.sources
from influx_wrap.observe import footage
from influx_wrap.run import campaign

# Workers take longer to start than there is to do; their own deaths are another test's.
here = lambda function, tasks, _: ((task, function(task)) for task in tasks)
footage.parallel = campaign.parallel = here

command, last_file, whole, out, parts, signals = json.loads(sys.argv[1])

def contents(folder):
    files = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != "run.log")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}

def start(folder, moment_s=None, how=None):
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1), os.dup2(null, 2)
        try:
            main([*command, "--out", folder, "--jobs", "1"])
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(9)
    if how is not None:
        time.sleep(moment_s)
        os.kill(child, how)
    return os.waitpid(child, 0)[1]

begun = time.monotonic()
assert start(whole) == 0
lasts_s = time.monotonic() - begun
ends, finished = [], 0
for k, part in enumerate(parts):
    ends.append(start(out, lasts_s * part, signals[k % len(signals)]))
    if Path(out, last_file).exists():
        # All of it, or it would not say so.
        assert contents(out) == contents(whole), k
        finished += 1
        shutil.rmtree(out)
print(json.dumps([ends, finished, start(out)]))
"""


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clip")
    pictures = [picture(seed) for seed in range(6)]
    path = write_clip(folder / "clip.mp4", (pictures[k % 6] for k in range(N_FRAMES)))
    write_target(folder / "target.yaml", GRID)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "run.log")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def interrupted(command: list[object], last_file: str, folder: Path, parts: list[float]) -> int:
    """How often a command was finished although it was to be stopped after such parts of its
    time; what it leaves is in the end that of one left alone."""
    given = [[str(part) for part in command], last_file, str(folder / "whole"), str(folder / "out")]
    run = subprocess.run(
        [sys.executable, "-c", FORKING, json.dumps([*given, parts, SIGNALS])],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    ends, finished, last = json.loads(run.stdout.splitlines()[-1])
    assert last == 0
    assert contents(folder / "out") == contents(folder / "whole"), "not the bytes of one left alone"
    stopped = [end for end in ends if end != 0]
    assert len(stopped) > len(parts) / 3, "it ended before it was interrupted"
    allowed = {130 << 8, int(signal.SIGKILL), int(signal.SIGTERM)}
    assert set(stopped) <= allowed, f"another end than that of its signal: {ends}"
    assert not list((folder / "out").rglob(".*")), "something is left over"
    return int(finished)


def test_twenty_moments(clip: Path, tmp_path: Path) -> None:
    command = ["detect", clip, "--target", clip.parent / "target.yaml"]
    parts = [(k + 0.5) / N_MOMENTS for k in range(N_MOMENTS)]
    assert interrupted(command, "detection.json", tmp_path, parts) < N_MOMENTS


def test_a_run_on_recordings_at_ten_random_moments(tmp_path: Path) -> None:
    """Two videos that are divided and one that is not, their table and its pages."""
    rig, data = tmp_path / "rig", tmp_path / "data"
    rig.mkdir()
    write_rig(rig)
    for number, cell in enumerate(("z1f1", "z2f1")):
        write_film(data / cell, seed=number)
    (data / "z3f1").mkdir()
    (data / "z3f1" / "recording.yaml").write_bytes((data / "z1f1" / "recording.yaml").read_bytes())
    frames = (one for one in pictures_of_poses(2) for _ in range(4))
    write_clip(data / "z3f1" / "clip.mkv", frames, "ffv1")
    command = ["--catalogue", rig, "run", "canon17", "--camera", "small", "--data", data]
    parts = np.random.default_rng(20).uniform(0.05, 0.7, 10).tolist()
    interrupted([*command, "--recipe", "batch"], "report.html", tmp_path, parts)
    for cell in ("z1f1", "z2f1", "z3f1"):
        assert (tmp_path / "out" / "cells" / cell / "result.json").exists()


def largest_worker() -> psutil.Process | None:
    """The one that the kernel takes when memory is short."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "resource_tracker" not in " ".join(process.cmdline()):
                found.append((process.memory_info().rss, process))
        except psutil.Error:
            continue
    return max(found, key=lambda one: one[0])[1] if len(found) > 1 else None


def test_a_worker_that_is_killed_for_its_memory(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence says so, finished frames are kept, and the next run ends with the same bytes."""
    monkeypatch.setattr(two_looks, "STRETCH_FRAMES", 24)
    begun = threading.Event()

    def progress(done: int, _: int | None) -> None:
        if done > 0:
            begun.set()

    def kill() -> None:
        begun.wait(60)
        worker = largest_worker()
        if worker is not None:
            worker.send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    options = {"stills": False, "jobs": 2}
    with pytest.raises(InputError, match=r"exit code -9.*out of memory.*fewer --jobs"):
        detect_footage(open_frames(clip), GRID, tmp_path / "out", progress=progress, **options)
    killer.join()
    assert (tmp_path / "out" / JOURNAL).exists()
    for folder in ("out", "alone"):
        detect_footage(
            open_frames(clip), GRID, tmp_path / folder, progress=lambda *_: None, **options
        )
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
