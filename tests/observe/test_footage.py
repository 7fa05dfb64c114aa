"""Detections in footage: the same bytes on any number of processes, killed or not."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.compute.processes import WorkerDied
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import COORDS, SUCCESSES, DetectionSummary, read_summary
from influx_wrap.formats.kalibr import read_observations, read_target
from influx_wrap.model.target import AprilGrid, PointCloud
from influx_wrap.observe import aprilgrid, footage
from influx_wrap.observe.footage import JOURNAL, detect_footage
from influx_wrap.observe.frames import TruncatedInput
from influx_wrap.observe.journal import CHUNK, footage_hash
from influx_wrap.observe.sources import open_frames
from tests.clips import GRID, SIZE, picture, write_clip

PICTURES = [picture(seed) for seed in range(4)]
EMPTY = np.full((SIZE[1], SIZE[0]), 120, np.uint8)


def in_this_process(function, tasks, processes):
    """In place of ``parallel``: the tasks in pairs, each pair backwards."""
    held = []
    for task in tasks:
        held.append(task)
        if len(held) == 2:
            yield from ((t, function(t)) for t in reversed(held))
            held = []
    yield from ((t, function(t)) for t in held)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footage, "parallel", in_this_process)


def write_pictures(folder: Path, pictures: list[np.ndarray]) -> Path:
    folder.mkdir()
    for i, image in enumerate(pictures):
        cv2.imwrite(str(folder / f"{i}.png"), image)
    return folder


def run(path: Path, out: Path, target: AprilGrid = GRID) -> tuple[DetectionSummary, list[int]]:
    heard: list[int] = []
    source = open_frames(path)
    summary = detect_footage(
        source, target, out, stills=path.is_dir(), jobs=1,
        progress=lambda done, _: heard.append(done),
    )  # fmt: skip
    return summary, heard


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.usefixtures("quick")
def test_what_is_found_is_written(tmp_path: Path) -> None:
    frames = [PICTURES[0], EMPTY, PICTURES[1]]
    summary, heard = run(write_pictures(tmp_path / "in", frames), tmp_path / "out")
    assert heard == [0, 1, 2, 3]
    read = read_summary(tmp_path / "out")
    assert read.footage == tmp_path / "in"
    assert (read.image_size, read.n_frames, read.n_points) == (SIZE, 3, 48)
    assert (read.stills, read.ambiguous, read.truncated) == (True, (), None)
    assert read.counts.tolist() == summary.counts.tolist()
    assert read.counts[1] == 0
    assert min(read.counts[0], read.counts[2]) > 40

    names = ("target.yaml", COORDS, SUCCESSES)
    target, coords, successes = (tmp_path / "out" / name for name in names)
    assert read_target(target) == GRID
    seen = read_observations(coords, successes, GRID, SIZE)
    assert seen.view_ids.tolist() == [0, 2]
    for view, image in enumerate((PICTURES[0], PICTURES[1])):
        alone = aprilgrid.detect(image, GRID)
        np.testing.assert_array_equal(seen.valid[view], alone.found)
        np.testing.assert_allclose(seen.uv[view][alone.found], alone.uv[alone.found], atol=1e-8)
    rows = np.loadtxt(tmp_path / "out" / "confidence.csv", delimiter=",")
    assert rows[:, 0].astype(int).tolist() == np.repeat([0, 1, 2], 48).tolist()
    np.testing.assert_array_equal((rows[:, 1] > 0).reshape(3, 48).sum(axis=1), read.counts)


@pytest.mark.usefixtures("quick")
def test_finished_work_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = write_pictures(tmp_path / "in", PICTURES), tmp_path / "out"
    run(folder, out)
    before = contents(out)
    with monkeypatch.context() as patch:
        patch.setattr(footage, "parallel", None)
        assert run(folder, out)[1] == [4]
    cv2.imwrite(str(folder / "2.png"), EMPTY)
    summary, heard = run(folder, out)
    assert heard == [0, 1, 2, 3, 4]
    assert summary.counts[2] == 0
    cv2.imwrite(str(folder / "2.png"), PICTURES[2])
    run(folder, out)
    assert contents(out) == before


@pytest.mark.usefixtures("quick")
def test_stopped_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 2 * CHUNK + 5
    monkeypatch.setattr(aprilgrid, "detect", lambda image, grid: found[int(image[0, 0])])
    found = [aprilgrid_detection(seed) for seed in range(3)]
    images = [np.full((20, 30), i % 3, np.uint8) for i in range(n)]
    folder = write_pictures(tmp_path / "in", images)
    run(folder, tmp_path / "whole")

    def stopped(function, tasks, processes):
        for i, pair in enumerate(in_this_process(function, tasks, processes)):
            if i == CHUNK + 20:
                raise KeyboardInterrupt
            yield pair

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(footage, "parallel", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(folder, out)
    assert [path.name for path in out.iterdir()] == [JOURNAL]
    summary, heard = run(folder, out)
    assert heard == list(range(CHUNK, n + 1))
    assert contents(out) == contents(tmp_path / "whole")
    np.testing.assert_array_equal(summary.counts, [4 + i % 3 for i in range(n)])

    # A chunk that is not whole is done again, and so are those after it.
    with monkeypatch.context() as patch:
        patch.setattr(footage, "parallel", stopped)
        (out / "detection.json").unlink()
        with pytest.raises(KeyboardInterrupt):
            run(folder, out)
    chunk = out / JOURNAL / "000000.npz"
    chunk.write_bytes(chunk.read_bytes()[:-100])
    assert run(folder, out)[1][0] == 0
    assert contents(out) == contents(tmp_path / "whole")


def aprilgrid_detection(seed: int) -> aprilgrid.Detection:
    """A made-up detection with 4 + seed corners."""
    rng = np.random.default_rng(seed)
    confidence = np.zeros(len(GRID.points))
    confidence[[0, 1, 8, 9, 16, 17][: 4 + seed]] = rng.uniform(0.1, 1, 4 + seed)
    uv = np.where(confidence[:, None] > 0, rng.uniform(0, 10, (len(confidence), 2)), np.nan)
    return aprilgrid.Detection(uv, confidence)


@pytest.mark.usefixtures("quick")
def test_two_boards(tmp_path: Path) -> None:
    both = np.hstack([PICTURES[0], PICTURES[1]])
    one = np.hstack([PICTURES[0], EMPTY])
    few = write_pictures(tmp_path / "few", [one, both, one])
    summary, _ = run(few, tmp_path / "out")
    assert summary.ambiguous == read_summary(tmp_path / "out").ambiguous == (1,)
    assert summary.counts[1] == 0
    many = write_pictures(tmp_path / "many", [one, both, both])
    with pytest.raises(InputError, match=r"2 of the 3 frames .* more than once, 1.png first"):
        run(many, tmp_path / "none")
    assert list((tmp_path / "none").iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_too_few_corners_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_line = np.arange(48) < 8
    uv = np.where(on_a_line[:, None], 5.0, np.nan)
    monkeypatch.setattr(
        aprilgrid, "detect", lambda image, grid: aprilgrid.Detection(uv, 1.0 * on_a_line)
    )
    with pytest.raises(InputError, match="in none of the 2 frames"):
        run(write_pictures(tmp_path / "in", [EMPTY, EMPTY]), tmp_path / "out")


@pytest.mark.usefixtures("quick")
def test_truncated_footage_is_kept_up_to_there(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mkv", [PICTURES[i % 4] for i in range(30)])
    run(clip, tmp_path / "whole")
    clip.write_bytes(clip.read_bytes()[: int(0.6 * clip.stat().st_size)])
    summary, _ = run(clip, tmp_path / "out")
    assert 5 < summary.n_frames < 28
    assert summary.truncated == read_summary(tmp_path / "out").truncated
    assert "the file ends" in (summary.truncated or "")
    for name in (COORDS, SUCCESSES, "confidence.csv"):
        whole, part = ((tmp_path / f / name).read_bytes() for f in ("whole", "out"))
        assert whole.startswith(part)
    assert run(clip, tmp_path / "out")[1][0] == 0, "a mended copy may have come in its place"


@pytest.mark.usefixtures("quick")
def test_damage_without_corners_before_it(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mkv", [EMPTY] * 30 + [PICTURES[0]] * 30)
    clip.write_bytes(clip.read_bytes()[: int(0.1 * clip.stat().st_size)])
    with pytest.raises(TruncatedInput, match=r"frames 0 to \d+ are readable"):
        run(clip, tmp_path / "out")


def test_deaths_and_faults_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_pictures(tmp_path / "in", PICTURES[:2])

    def answers(answer: object) -> object:
        def parallel(function: object, tasks: object, processes: int) -> Iterator[object]:
            yield (0, EMPTY), answer

        return parallel

    monkeypatch.setattr(footage, "parallel", answers(WorkerDied(-9)))
    with pytest.raises(InputError, match=r"0.png: .*exit code -9.*--jobs"):
        run(folder, tmp_path / "out")
    monkeypatch.setattr(footage, "parallel", answers(ZeroDivisionError("by zero")))
    with pytest.raises(ZeroDivisionError, match="by zero"):
        run(folder, tmp_path / "out")


def test_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "out" / JOURNAL).mkdir(parents=True)
    with (tmp_path / "out" / JOURNAL / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="in use by another"):
            run(write_pictures(tmp_path / "in", PICTURES[:1]), tmp_path / "out")


def test_clouds_cannot_be_seen(tmp_path: Path) -> None:
    source = open_frames(write_pictures(tmp_path / "in", [EMPTY]))
    with pytest.raises(InputError, match="point cloud"):
        detect_footage(
            source, PointCloud(np.eye(4)[:, :3]), tmp_path, stills=True, jobs=1, progress=print
        )


def test_hashes_of_footage(tmp_path: Path) -> None:
    clip = tmp_path / "clip"
    data = np.random.default_rng(0).bytes(300_000)
    clip.write_bytes(data)
    before = footage_hash(clip)
    clip.rename(tmp_path / "moved")
    assert footage_hash(tmp_path / "moved") == before
    for changed in (data[:-1], data[:-1] + b"x", b"x" + data[1:], data + b"x"):
        clip.write_bytes(changed)
        assert footage_hash(clip) != before
    clip.write_bytes(b"")
    footage_hash(clip)

    folder = write_pictures(tmp_path / "in", PICTURES)
    before = footage_hash(folder)
    (folder / ".hidden").touch()
    assert footage_hash(folder) == before
    (folder / "1.png").rename(folder / "5.png")
    assert footage_hash(folder) != before
