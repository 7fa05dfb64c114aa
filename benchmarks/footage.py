"""``detect`` on footage: its time next to decoding alone, its memory, and that it survives being
killed.

Some seconds of a board that is held, or waved without pause, are rendered and encoded in groups of
frames that need no other, and the packets repeated under later times: for a decoder it is footage
like any other. In one run on one file are measured: decoding with all cores and nothing else
(``ffmpeg -f null``, or PyAV where there is no ffmpeg), ``detect --every-frame``, and ``detect``.
Both ways are calibrated from. Memory is that of all processes together, each shared page counted
once.
"""

from __future__ import annotations

import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from benchmarks.clips import Clip, Scene
from benchmarks.report import verdict
from benchmarks.scene import BOARD
from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.calibrate.result import Calibration
from influx_wrap.engines.native import NativeEngine
from influx_wrap.formats.detections import SUMMARY, read_summary
from influx_wrap.formats.kalibr import write_target
from influx_wrap.model.intrinsics import Intrinsics, image_centre
from influx_wrap.observe.footage import JOURNAL
from influx_wrap.observe.two_looks import STRETCH_FRAMES
from influx_wrap.run.views import choose_views
from influx_wrap.synth.motion import FPS
from influx_wrap.synth.render import RenderOptions

SIZES = {"3.4K": (3424, 2202), "4K": (3840, 2160)}
CODECS = {"H.264": ".mp4", "ProRes": ".mov"}
LOOP = 144
"""Frames that are rendered."""
SECONDS, LONG_SECONDS = 36.0, 600.0
H264 = {"preset": "ultrafast", "crf": "12", "x264-params": f"keyint={FPS}:open-gop=0"}

MOST_RATIO, MOST_SIGMA, MOST_MB = 1.4, 0.2, 1500.0
KILLED_AFTER = 1
"""Stretches in the journal."""
SAMPLE_EVERY_S = 0.25


@dataclass(frozen=True)
class Figures:
    """What was measured of a clip: seconds, what that is in times of decoding, by the clock and in
    time of processors, largest memory, and how far fx, fy, cx and cy are from those of all frames,
    in standard deviations."""

    mb_per_s: float
    decoding_s: float
    every_frame_s: float
    two_looks_s: float
    ratio: float
    processor_ratio: float
    peak_mb: float
    off_sigma: float

    @property
    def passed(self) -> bool:
        """Whether all limits are kept."""
        within = self.ratio <= MOST_RATIO and self.peak_mb <= MOST_MB
        return within and self.off_sigma <= MOST_SIGMA


def run(console: Console, seconds: float = SECONDS) -> bool:
    """Print the report of clips that are about ``seconds`` long, and of one that is ten minutes if
    these are not shorter than usual; returns whether all limits are kept."""
    with tempfile.TemporaryDirectory(prefix="influx-footage-") as name:
        folder = Path(name)
        write_target(folder / "target.yaml", BOARD.grid)
        outcome = [_kinds(console, folder, seconds), _resuming(console, folder, seconds)]
        if seconds >= SECONDS:
            outcome.append(_memory(console, folder))
        return all(outcome)


def _kinds(console: Console, folder: Path, seconds: float) -> bool:
    """All sizes, motions and codecs."""
    n_frames = _whole_loops(seconds)
    table = Table(
        "clip", "MB/s", "decoding", "--every-frame", "two looks", "to decoding", "processors'",
        "memory, MB", "off, sigma",
        title=f"{n_frames} frames, {n_frames / FPS:.0f} s: seconds",
    )  # fmt: skip
    outcome = []
    for size_name, size in SIZES.items():
        for motion in ("held", "waved"):
            rng = np.random.default_rng(6)
            clip = _clip(size, motion, rng)
            name = f"{size_name}, {motion}"
            frames = track(
                clip.pictures(rng), f"rendering {name}", LOOP, console=console, transient=True
            )
            loops = {codec: folder / f"loop{suffix}" for codec, suffix in CODECS.items()}
            _encode(loops, size, frames)
            for codec, loop in loops.items():
                path = folder / f"clip{loop.suffix}"
                _repeat(loop, path, n_frames)
                measured = _measured(path, folder / "out")
                outcome.append(measured.passed)
                table.add_row(
                    f"{name}, {codec}", f"{measured.mb_per_s:.0f}",
                    f"{measured.decoding_s:.1f}", f"{measured.every_frame_s:.1f}",
                    f"{measured.two_looks_s:.1f}", f"{measured.ratio:.2f}",
                    f"{measured.processor_ratio:.2f}", f"{measured.peak_mb:.0f}",
                    f"{measured.off_sigma:.3f}",
                )  # fmt: skip
    console.print(table)
    passed = all(outcome)
    console.print(
        f"decoding is by {decoder()}; two looks take at most {MOST_RATIO:g} of its time, with "
        f"{MOST_MB:g} MB, and give intrinsics within {MOST_SIGMA:g} sigma in {sum(outcome)} of "
        f"{len(outcome)} clips {verdict(passed)}"
    )
    return passed


def _clip(size: tuple[int, int], motion: str, rng: np.random.Generator) -> Clip:
    """Of ``LOOP`` frames."""
    camera = Intrinsics(0.85 * size[0], 0.85 * size[0], *image_centre(size), k1=-0.05)
    options = RenderOptions(blur_px=0.7, noise=2.0)
    scene = Scene(BOARD.grid, camera, size, n_poses=16, fills=0.45, options=options)
    if motion == "waved":
        return scene.clip(scene.waved(rng, 0.8, LOOP))
    return scene.clip(scene.held(rng)).first(LOOP)


def _whole_loops(seconds: float) -> int:
    """Frames of a clip that is about so long."""
    return LOOP * max(1, round(seconds * FPS / LOOP))


def _measured(path: Path, out: Path) -> Figures:
    """Both ways, and decoding alone before and after them."""
    with suppress(FileNotFoundError):
        shutil.rmtree(out)
    (decoding_s, used_s), began_s = _clocks(partial(time_decoding, path)), _processors_s()
    looks_s, peak_mb = _detecting(path, out / "looks")
    looked_s = _processors_s() - began_s
    decoding_s = min(decoding_s, time_decoding(path))
    every_s, _ = _detecting(path, out / "every", "--every-frame")
    full, ours = (_calibrated(out / name) for name in ("every", "looks"))
    apart = np.abs(full.intrinsics.array - ours.intrinsics.array) / full.sigma
    n_frames = len(read_summary(out / "looks").counts)
    return Figures(
        mb_per_s=path.stat().st_size / 1e6 / (n_frames / FPS),
        decoding_s=decoding_s,
        every_frame_s=every_s,
        two_looks_s=looks_s,
        ratio=looks_s / decoding_s,
        processor_ratio=looked_s / used_s,
        peak_mb=peak_mb,
        off_sigma=float(apart[:4].max()),
    )


def _processors_s() -> float:
    """Time of processors that ended processes have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _clocks(work: Callable[[], float]) -> tuple[float, float]:
    """What a work says it took, and the time of processors."""
    began_s = _processors_s()
    return work(), _processors_s() - began_s


def _calibrated(detections: Path) -> Calibration:
    observations = choose_views(detections).observations
    return NativeEngine().calibrate(
        observations, RECIPES["batch"], name="clip", focal_px=None, seed=0
    )


def decoder() -> str:
    return "PyAV with all cores" if shutil.which("ffmpeg") is None else "ffmpeg -f null"


def time_decoding(path: Path) -> float:
    """Of all frames, as a process of its own."""
    code = (
        "import av, sys\n"
        "with av.open(sys.argv[1]) as file:\n"
        "    file.streams.video[0].thread_type = 'AUTO'\n"
        "    print(sum(1 for _ in file.decode(video=0)))"
    )
    command = [sys.executable, "-c", code, str(path)]
    if shutil.which("ffmpeg") is not None:
        command = ["ffmpeg", "-v", "error", "-i", str(path), "-map", "0:v", "-f", "null", "-"]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _detecting(path: Path, out: Path, *options: str) -> tuple[float, float]:
    """Seconds, the start of the program included, and largest memory."""
    began, peak_mb = time.perf_counter(), 0.0
    with _started(path, out, *options) as process:
        while process.poll() is None:
            peak_mb = max(peak_mb, _tree_mb(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(SAMPLE_EVERY_S)
        seconds = time.perf_counter() - began
        said, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"detect failed: {said.strip()}")
    return seconds, peak_mb


def _encode(
    loops: dict[str, Path], size: tuple[int, int], pictures: Iterable[NDArray[np.uint8]]
) -> None:
    """At the rates of cameras; ``formats.video`` keeps the noise, at 40 GB."""
    with (
        av.open(str(loops["H.264"]), "w") as h264_file,
        av.open(str(loops["ProRes"]), "w") as prores_file,
    ):
        h264 = h264_file.add_stream("libx264", rate=FPS, options=H264)
        prores = prores_file.add_stream("prores", rate=FPS)
        h264.pix_fmt, prores.pix_fmt = "yuv420p", "yuv422p10le"
        files = ((h264_file, h264), (prores_file, prores))
        for _, stream in files:
            stream.width, stream.height = size
        for number, picture in enumerate(pictures):
            grey = av.VideoFrame.from_ndarray(picture, "gray")
            for file, stream in files:
                frame = grey.reformat(format=stream.pix_fmt)
                frame.pts, frame.time_base = number, Fraction(1, FPS)
                file.mux(stream.encode(frame))
        for file, stream in files:
            file.mux(stream.encode(None))


def _repeat(loop: Path, path: Path, n_frames: int) -> None:
    """The packets of ``loop``, over and over."""
    with av.open(str(loop)) as source, av.open(str(path), "w") as container:
        theirs = source.streams.video[0]
        ours = container.add_stream_from_template(theirs)
        packets = [packet for packet in source.demux(theirs) if packet.size]
        assert len(packets) == LOOP
        assert n_frames % LOOP == 0
        length = sum(packet.duration for packet in packets)
        contents = [bytes(packet) for packet in packets]
        for round_ in range(n_frames // LOOP):
            for packet, content in zip(packets, contents, strict=True):
                copy = av.Packet(content)
                copy.pts, copy.dts = packet.pts + round_ * length, packet.dts + round_ * length
                copy.duration, copy.time_base = packet.duration, theirs.time_base
                copy.is_keyframe, copy.stream = packet.is_keyframe, ours
                container.mux(copy)


def _resuming(console: Console, folder: Path, seconds: float) -> bool:
    """Whether a run that was killed goes on, to the files of one that was not; of the last loop."""
    clip, n_frames = folder / "killed.mp4", max(_whole_loops(seconds), 3 * LOOP)
    _repeat(folder / "loop.mp4", clip, n_frames)
    out, alone = folder / "killed", folder / "alone"
    with _started(clip, out) as process:
        while _n_stretches(out) < KILLED_AFTER and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    n_before = _n_stretches(out)
    _detecting(clip, out)
    _detecting(clip, alone)
    same = _contents(out) == _contents(alone)
    passed = same and n_before > 0
    console.print(
        f"killed after {n_before} stretches of a clip of {n_frames} frames and "
        f"started again: the files are {'the same' if same else 'NOT the same'} {verdict(passed)}"
    )
    return passed


def _memory(console: Console, folder: Path) -> bool:
    """Largest memory of ``detect`` on ten minutes of the last loop."""
    clip, out, n_frames = folder / "long.mp4", folder / "long", _whole_loops(LONG_SECONDS)
    _repeat(folder / "loop.mp4", clip, n_frames)
    peak_mb, half_mb, began = 0.0, 0.0, time.perf_counter()
    with Progress(console=console, transient=True) as progress, _started(clip, out) as process:
        bar = progress.add_task("10 minutes", total=n_frames)
        while process.poll() is None:
            peak_mb = max(peak_mb, _tree_mb(process.pid))
            n_done = STRETCH_FRAMES * _n_stretches(out)
            if n_done < n_frames / 2:
                half_mb = peak_mb
            progress.update(bar, completed=n_done)
            time.sleep(SAMPLE_EVERY_S)
        said, _ = process.communicate()
    seconds = time.perf_counter() - began
    whole = process.returncode == 0 and re.search(rf"frames\s+{n_frames}\b", said) is not None
    passed = whole and (out / SUMMARY).exists() and peak_mb <= MOST_MB
    console.print(
        f"{n_frames} frames, {clip.stat().st_size / 1e9:.1f} GB: {peak_mb:.0f} MB at most "
        f"(<= {MOST_MB:g}), {half_mb:.0f} MB in the first half, {seconds / n_frames:.3f} s per "
        f"frame{'' if whole else f', but it failed: {said.strip()}'} {verdict(passed)}"
    )
    return passed


def _command(clip: Path, out: Path, *options: str) -> list[str]:
    program = str(Path(sys.executable).with_name("influx-calib"))
    target = str(clip.with_name("target.yaml"))
    return [program, "detect", str(clip), "--target", target, "--out", str(out), *options]


@contextmanager
def _started(clip: Path, out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """``detect``, running; it does not outlive us."""
    with subprocess.Popen(
        _command(clip, out, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _n_stretches(out: Path) -> int:
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
