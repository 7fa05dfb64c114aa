"""``detect`` on long footage: its memory, its speed, and that it survives being killed.

The clip has ten minutes of 4K. Some seconds of a board moved jerkily are rendered and
encoded, in groups of frames that need no other, and the packets repeated under later
times: for a decoder it is footage like any other. Memory is that of all processes
together, each shared page counted once. Speed and resuming are measured on a shorter
clip, next to a loop that decodes and calls OpenCV's marker detector and does no more.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from benchmarks.detection import plain_opencv
from benchmarks.report import verdict
from benchmarks.scene import BOARD, DEPTH_M
from influx_wrap.formats.detections import SUMMARY
from influx_wrap.formats.kalibr import write_target
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import Intrinsics, image_centre
from influx_wrap.observe.footage import JOURNAL
from influx_wrap.observe.journal import CHUNK
from influx_wrap.synth.board import board_poses
from influx_wrap.synth.motion import FPS, jerky
from influx_wrap.synth.render import RenderOptions, ray_grid, render_moving

CAMERA = Camera("4K", sensor_width_mm=28.25, sensor_height_mm=15.9, width_px=3840, height_px=2160)
TRUTH = Intrinsics(3000.0, 3000.0, *image_centre(CAMERA.image_size), k1=-0.05)
RENDERED, SHORT, LONG = 72, 288, 600 * FPS
POSES = slice(3, 100, 17)
TREMOR_RAD = 0.2 / TRUTH.fx
H264 = {"preset": "ultrafast", "crf": "20", "x264-params": f"keyint={FPS}:open-gop=0"}

MOST_MB = 1500.0
MOST_RATIO_TWO_JOBS = 0.8
KILLED_AFTER = 2
"""Chunks in the journal."""

REPEATS = 2
SAMPLE_EVERY_S = 0.25


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    with tempfile.TemporaryDirectory(prefix="influx-footage-") as name:
        folder = Path(name)
        write_target(folder / "target.yaml", BOARD.grid)
        frames = track(_pictures(), "rendering", RENDERED, console=console, transient=True)
        _encode(folder / "loop.mp4", frames)
        short, long = folder / "short.mp4", folder / "long.mp4"
        _repeat(folder / "loop.mp4", short, SHORT)
        _repeat(folder / "loop.mp4", long, LONG)
        return all([_speed(console, short), _resuming(console, short), _memory(console, long)])


def _pictures() -> Iterator[NDArray[np.uint8]]:
    """The first frames of a board that is moved from pose to pose."""
    rng = np.random.default_rng(6)
    rotations, translations = board_poses(BOARD, CAMERA, TRUTH, DEPTH_M, rng)
    middle = BOARD.grid.points.mean(axis=0)
    way = jerky(rotations[POSES], translations[POSES], middle, TREMOR_RAD, rng)
    rays, options = ray_grid(TRUTH, CAMERA.image_size), RenderOptions(blur_px=0.7, noise=2)
    for frame in range(RENDERED):
        pose = way.rotations[frame], way.translations[frame]
        yield render_moving(rays, BOARD.grid, *pose, options, rng)


def _encode(path: Path, pictures: Iterable[NDArray[np.uint8]]) -> None:
    """At the rate of a camera's H.264; ``formats.video`` keeps the noise, at 40 GB."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options=H264)
        stream.width, stream.height = CAMERA.image_size
        stream.pix_fmt = "yuv420p"
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, "gray").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def _repeat(loop: Path, path: Path, n_frames: int) -> None:
    """The packets of ``loop``, over and over."""
    with av.open(str(loop)) as source, av.open(str(path), "w") as container:
        theirs = source.streams.video[0]
        ours = container.add_stream_from_template(theirs)
        packets = [packet for packet in source.demux(theirs) if packet.size]
        assert len(packets) == RENDERED
        assert n_frames % RENDERED == 0
        length = sum(packet.duration for packet in packets)
        contents = [bytes(packet) for packet in packets]
        for round_ in range(n_frames // RENDERED):
            for packet, content in zip(packets, contents, strict=True):
                copy = av.Packet(content)
                copy.pts, copy.dts = packet.pts + round_ * length, packet.dts + round_ * length
                copy.duration, copy.time_base = packet.duration, theirs.time_base
                copy.is_keyframe, copy.stream = packet.is_keyframe, ours
                container.mux(copy)


def _speed(console: Console, clip: Path) -> bool:
    """Seconds per frame with one and two jobs, the start of the program included."""
    outs = {jobs: clip.with_name(f"jobs{jobs}") for jobs in (1, 2)}
    seconds: dict[int, list[float]] = {1: [], 2: []}
    plain = []
    for number in track(range(REPEATS), "timing", console=console, transient=True):
        plain.append(_timed(partial(_plain, clip)))
        for jobs, out in outs.items():
            if number:
                (out / SUMMARY).unlink()
            seconds[jobs].append(_timed(partial(_detect, clip, out, jobs)))
    one, two, least = (min(times) / SHORT for times in (seconds[1], seconds[2], plain))
    same = _contents(outs[1]) == _contents(outs[2])
    passed = same and two <= MOST_RATIO_TWO_JOBS * one
    table = Table(
        "",
        "seconds per frame",
        "to plain",
        title=f"{SHORT} frames of 3840 x 2160, best of {REPEATS}",
    )
    table.add_row("decoding and plain detectMarkers, one thread of OpenCV", f"{least:.3f}", "1")
    table.add_row("detect, 1 job", f"{one:.3f}", f"{one / least:.2f}")
    table.add_row("detect, 2 jobs", f"{two:.3f}", f"{two / least:.2f}")
    console.print(table)
    console.print(
        f"2 jobs take {two / one:.2f} of the time of 1 (<= {MOST_RATIO_TWO_JOBS:g}), "
        f"their files are {'the same' if same else 'NOT the same'} {verdict(passed)}"
    )
    return passed


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _plain(clip: Path) -> None:
    detector, threads = plain_opencv(), cv2.getNumThreads()
    cv2.setNumThreads(1)
    with av.open(str(clip)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            detector.detectMarkers(frame.to_ndarray(format="gray"))
    cv2.setNumThreads(threads)


def _resuming(console: Console, clip: Path) -> bool:
    """Whether a run that was killed goes on, to the files of ``_speed``."""
    out = clip.with_name("killed")
    with _started(clip, out, 2) as process:
        while _n_chunks(out) < KILLED_AFTER and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    said = _detect(clip, out, 2)
    match = re.search(r"there already\s+(\d+)", said)
    n_before = int(match[1]) if match else 0
    same = _contents(out) == _contents(clip.with_name("jobs2"))
    passed = same and 0 < n_before < SHORT
    console.print(
        f"killed after {n_before} of {SHORT} frames and started again: the files are "
        f"{'the same' if same else 'NOT the same'} {verdict(passed)}"
    )
    return passed


def _memory(console: Console, clip: Path) -> bool:
    """Largest memory of ``detect`` on the long clip."""
    out, peak_mb, half_mb = clip.with_name("long"), 0.0, 0.0
    start = time.perf_counter()
    with Progress(console=console, transient=True) as progress, _started(clip, out, 2) as process:
        bar = progress.add_task("10 minutes", total=LONG)
        while process.poll() is None:
            peak_mb = max(peak_mb, _tree_mb(process.pid))
            n_done = CHUNK * _n_chunks(out)
            if n_done < LONG / 2:
                half_mb = peak_mb
            progress.update(bar, completed=n_done)
            time.sleep(SAMPLE_EVERY_S)
        said, _ = process.communicate()
    seconds = time.perf_counter() - start
    whole = process.returncode == 0 and re.search(rf"frames\s+{LONG}\b", said) is not None
    passed = whole and peak_mb <= MOST_MB
    console.print(
        f"{LONG} frames, {clip.stat().st_size / 1e9:.1f} GB, 2 jobs: {peak_mb:.0f} MB at most "
        f"(<= {MOST_MB:g}), {half_mb:.0f} MB in the first half, {seconds / LONG:.3f} s per frame"
        f"{'' if whole else f', but it failed: {said.strip()}'} {verdict(passed)}"
    )
    return passed


def _command(clip: Path, out: Path, jobs: int) -> list[str]:
    program = str(Path(sys.executable).with_name("influx-calib"))
    target = str(clip.with_name("target.yaml"))
    return [
        program,
        "detect",
        str(clip),
        "--target",
        target,
        "--out",
        str(out),
        "--jobs",
        f"{jobs}",
    ]


def _detect(clip: Path, out: Path, jobs: int) -> str:
    """What ``detect`` says."""
    return subprocess.run(
        _command(clip, out, jobs), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@contextmanager
def _started(clip: Path, out: Path, jobs: int) -> Iterator[subprocess.Popen[str]]:
    """``detect``, running; it does not outlive us."""
    command = _command(clip, out, jobs)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _n_chunks(out: Path) -> int:
    return len(list((out / JOURNAL).glob("[!.]*.npz")))


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _tree_mb(root: int) -> float:
    """Proportional set size of a process and all that descend from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # A process may end while it is looked at.
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    tree = {root}
    for _ in parents:
        grown = tree | {child for child, parent in parents.items() if parent in tree}
        if grown == tree:
            break
        tree = grown
    return sum(_pss_kb(pid) for pid in tree) * 1024 / 1e6


def _pss_kb(pid: int) -> int:
    try:
        match = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
    except OSError:
        return 0
    return int(match[1]) if match else 0
