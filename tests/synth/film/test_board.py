"""Filmed experiments: the board is where the truth says, in every frame, however made."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.recording import read_recording
from influx_wrap.formats.recording_truth import RecordingTruth, read_recording_truth
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import project
from influx_wrap.model.target import bow_basis
from influx_wrap.model.truth import Noise
from influx_wrap.observe.sources import open_frames
from influx_wrap.plan import make_plan, select_cells
from influx_wrap.synth.film.board import BoardFootage, plan_film
from influx_wrap.synth.film.cells import shoot_films
from influx_wrap.synth.film.simulation import Simulation, simulations
from influx_wrap.synth.render import RenderOptions

CATALOGUE = load_catalogue()
SMALL = Camera("small", 28.25, 18.17, 640, 412)
DEFAULT = Noise()
CLEAN = RenderOptions(blur_px=0.8, noise=0)
GRAINY = RenderOptions(blur_px=0.8, noise=1)


def cells(names: str, noise: Noise = DEFAULT) -> tuple[Simulation, ...]:
    plan = make_plan(CATALOGUE.lens("canon17"), SMALL, CATALOGUE.boards.values())
    return simulations(plan, select_cells(plan, names), noise, seed=0)


def shoot(folder: Path, simulation: Simulation, footage: BoardFootage, processes: int = 1) -> int:
    """Film one cell; returns the number of frames reported."""
    done: list[tuple[int, int | None]] = []
    shoot_films(
        [plan_film(simulation, footage)],
        folder,
        processes=processes,
        progress=lambda *now: done.append(now),
    )
    return done[-1][0]


def tag_misses(folder: Path, frame_numbers: list[int]) -> FloatArray:
    """Found less projected corners (N, 2) of the frames, found by OpenCV."""
    recording, truth = read_recording(folder, CATALOGUE.boards), read_recording_truth(folder)
    assert truth is not None
    grid = recording.target
    wanted = set(frame_numbers)
    frames = {k: picture for k, picture in open_frames(recording.footage).frames() if k in wanted}
    misses = []
    for k, picture in frames.items():
        uv = projected(truth, k, grid.points)
        inside = (uv > 12).all(axis=1) & (uv < np.array([628, 400])).all(axis=1)
        start = np.ascontiguousarray(uv[inside, None], dtype=np.float32)
        stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-4)
        # A window of one cell of a tag: nothing else may come in.
        found = cv2.cornerSubPix(np.asarray(picture), start, (3, 3), (-1, -1), stop)[:, 0]
        misses.append(found - uv[inside])
    return np.concatenate(misses)


def projected(truth: RecordingTruth, frame: int, points: FloatArray) -> FloatArray:
    bent = points + np.array([0, 0, 1]) * (bow_basis(points) @ truth.bow_m)[:, None]
    at = bent @ truth.rotations[frame].T + truth.translations[frame]
    uv, valid = project(truth.intrinsics, at)
    return np.where(valid[:, None], uv, -1e6)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("video")
    (simulation,) = cells("z7f7")
    assert shoot(folder, simulation, BoardFootage(GRAINY, "h264", views=4), processes=2) > 0
    return folder / "z7f7"


def test_a_video_has_the_frames_its_truth_tells_of(video: Path) -> None:
    recording, truth = read_recording(video, CATALOGUE.boards), read_recording_truth(video)
    assert truth is not None
    assert not recording.is_stills
    assert recording.target_name == "800x600"
    assert (recording.lens, recording.camera, recording.cell) == ("canon17", "small", "z7f7")
    assert recording.lfl_mm == pytest.approx(cells("z7f7")[0].cell.lfl_mm)
    assert recording.fd_m == pytest.approx(cells("z7f7")[0].cell.fd_m)
    frames = list(open_frames(recording.footage).frames())
    assert len(frames) == len(truth.pose)
    assert recording.metadata is not None
    assert len(recording.metadata.read_text().splitlines()) == 1 + len(frames)
    assert sorted(set(truth.pose.tolist())) == [-1, 0, 1, 2, 3]


def test_held_frames_show_the_board_where_it_is(video: Path) -> None:
    truth = read_recording_truth(video)
    assert truth is not None
    held = np.flatnonzero(truth.pose >= 0).tolist()[::4]
    misses = tag_misses(video, held)
    assert len(misses) > 200
    assert np.abs(np.median(misses, axis=0)).max() < 0.01
    assert np.percentile(np.abs(misses), 90) < 0.08


def test_moved_frames_are_smeared(video: Path) -> None:
    truth = read_recording_truth(video)
    recording = read_recording(video, CATALOGUE.boards)
    assert truth is not None
    sharpness = np.array(
        [cv2.Laplacian(p, cv2.CV_64F).std() for _, p in open_frames(recording.footage).frames()]
    )
    held, moved = sharpness[truth.pose >= 0], sharpness[truth.pose < 0]
    assert np.median(moved) < 0.6 * np.median(held)


def test_stills_are_the_same_whoever_makes_them(tmp_path: Path) -> None:
    (simulation,) = cells("z7f7")
    footage = BoardFootage(GRAINY, views=3)
    assert shoot(tmp_path / "one", simulation, footage) == 3
    assert shoot(tmp_path / "two", simulation, footage, processes=2) == 3
    files = sorted((tmp_path / "one" / "z7f7").rglob("*.*"))
    assert [file.name for file in files if file.suffix == ".png"] == [
        "000000.png", "000001.png", "000002.png",
    ]  # fmt: skip
    for file in files:
        other = tmp_path / "two" / file.relative_to(tmp_path / "one")
        assert file.read_bytes() == other.read_bytes()
    assert read_recording(tmp_path / "one" / "z7f7", CATALOGUE.boards).is_stills


def test_rendering_goes_on_where_it_stopped(tmp_path: Path) -> None:
    (simulation,) = cells("z7f7")
    footage, folder = BoardFootage(GRAINY, views=3), tmp_path / "z7f7"
    shoot(tmp_path, simulation, footage)
    whole = {file: file.read_bytes() for file in folder.rglob("*.*")}
    (folder / "recording.yaml").unlink()
    (folder / "frames" / "000001.png").unlink()
    (folder / "frames" / ".000001.png.77.tmp").write_bytes(b"half")
    kept = (folder / "frames" / "000000.png").stat().st_mtime_ns
    assert shoot(tmp_path, simulation, footage) == 3
    assert {file: file.read_bytes() for file in folder.rglob("*.*")} == whole
    assert (folder / "frames" / "000000.png").stat().st_mtime_ns == kept
    described = (folder / "recording.yaml").stat().st_mtime_ns
    assert shoot(tmp_path, simulation, footage) == 3
    assert (folder / "recording.yaml").stat().st_mtime_ns == described


def test_a_bent_board_is_filmed_bent(tmp_path: Path) -> None:
    (simulation,) = cells("z7f7", Noise(bow_mm=20))
    shoot(tmp_path, simulation, BoardFootage(CLEAN, views=3))
    misses = tag_misses(tmp_path / "z7f7", [0, 1, 2])
    assert np.abs(np.median(misses, axis=0)).max() < 0.005
    # What OpenCV's refinement is good for at this size.
    assert np.percentile(np.abs(misses), 99) < 0.05


def test_views_differ_as_much_as_they_can() -> None:
    (simulation,) = cells("z7f7")
    everything = plan_film(simulation, BoardFootage(CLEAN))
    assert 90 <= everything.n_frames <= 100
    middle = CATALOGUE.board("800x600").grid.points.mean(axis=0)
    few = plan_film(simulation, BoardFootage(CLEAN, views=10)).trajectory
    normals = few.rotations[:, 0, :, 2]
    # All five orientations: four of them look 45 degrees to a side of their own.
    for axis in (0, 1):
        assert normals[:, axis].max() > 0.5
        assert normals[:, axis].min() < -0.5
    centres = few.rotations[:, 0] @ middle + few.translations[:, 0]
    place = centres[:, :2] / centres[:, 2:]
    assert len(np.unique(np.sign(place), axis=0)) == 4
    many = plan_film(simulation, BoardFootage(CLEAN, views=1000))
    np.testing.assert_array_equal(many.trajectory.rotations, everything.trajectory.rotations)


def test_what_cannot_be_filmed(tmp_path: Path) -> None:
    board, drone = cells("z7f7,z0f9")[::-1]
    with pytest.raises(InputError, match="z0f9 is flown by the drone"):
        plan_film(drone, BoardFootage(CLEAN))
    odd = replace(board, camera=Camera("odd", 28.25, 18.17, 641, 412))
    with pytest.raises(InputError, match="even number"):
        shoot(tmp_path, odd, BoardFootage(CLEAN, "h264", views=1))
    assert not list(tmp_path.rglob("*.yaml"))
