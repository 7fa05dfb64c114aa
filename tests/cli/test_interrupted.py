"""``detect`` interrupted at twenty moments, by Ctrl-C and worse; and workers that the kernel kills
for their memory."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr import write_target
from influx_wrap.observe import two_looks
from influx_wrap.observe.footage import JOURNAL, detect_footage
from influx_wrap.observe.sources import open_frames
from tests.clips import GRID, picture, write_clip

N_FRAMES, N_MOMENTS = 100, 20
SIGNALS = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM)

# A process that has everything loaded forks one detect after the other, so that moments are those
# of its work and not of Python's start.
FORKING = """
import json, os, shutil, signal, sys, time
from pathlib import Path
from influx_wrap.cli.main import main
import influx_wrap.cli.detect, influx_wrap.observe.sources
from influx_wrap.observe import footage

# Workers take longer to start than there is to do; their own deaths are another test's.
footage.parallel = lambda function, tasks, _: ((task, function(task)) for task in tasks)

clip, target, whole, out, n, signals = json.loads(sys.argv[1])

def detect(folder, moment_s=None, how=None):
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1), os.dup2(null, 2)
        command = ["detect", clip, "--target", target, "--out", folder, "--jobs", "1"]
        try:
            main(command)
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(9)
    if how is not None:
        time.sleep(moment_s)
        os.kill(child, how)
    return os.waitpid(child, 0)[1]

start = time.monotonic()
assert detect(whole) == 0
lasts_s = time.monotonic() - start
ends, finished = [], 0
for k in range(n):
    moment_s = lasts_s * (k + 0.5) / n
    ends.append(detect(out, moment_s, signals[k % len(signals)]))
    if Path(out, "detection.json").exists():
        # All of it, or it would not say so.
        for path in Path(whole).iterdir():
            assert Path(out, path.name).read_bytes() == path.read_bytes(), (k, path)
        finished += 1
        shutil.rmtree(out)
print(json.dumps([ends, finished, detect(out)]))
"""


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clip")
    pictures = [picture(seed) for seed in range(6)]
    path = write_clip(folder / "clip.mp4", (pictures[k % 6] for k in range(N_FRAMES)))
    write_target(folder / "target.yaml", GRID)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_twenty_moments(clip: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    given = [str(clip), str(clip.parent / "target.yaml"), str(whole), str(out), N_MOMENTS, SIGNALS]
    run = subprocess.run(
        [sys.executable, "-c", FORKING, json.dumps(given)], capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    ends, finished, last = json.loads(run.stdout.splitlines()[-1])
    assert last == 0
    assert contents(out) == contents(whole), "not the bytes of one that was left alone"
    stopped = [end for end in ends if end != 0]
    assert len(stopped) > N_MOMENTS / 3, "it ended before it was interrupted"
    allowed = {130 << 8, int(signal.SIGKILL), int(signal.SIGTERM)}
    assert set(stopped) <= allowed, f"another end than that of its signal: {ends}"
    assert finished < N_MOMENTS
    assert not list(out.glob(".*")), "something is left over"


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
