"""``influx-calib keyframes`` on folders of detections whose poses are known."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.formats.detections import DetectionSummary, write_detections
from influx_wrap.formats.kalibr import read_observations, read_target
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.pose import TILTS_DEG, rotation_matrix, transform
from influx_wrap.model.target import AprilGrid
from tests.cli.conftest import assert_mistake

GRID = AprilGrid(tag_cols=6, tag_rows=5, tag_size_m=0.08, tag_spacing=0.3)
SIZE = (320, 200)
HOLD, MOVE = 4, 2


def poses(tilts_deg):
    """uv (P, T, 2) and valid (P, T): each tilt at nine places."""
    camera = Intrinsics(420.0, 420.0, 159.5, 99.5)
    places = [[x, y, 2.2] for x in (-0.45, 0, 0.45) for y in (-0.25, 0, 0.25)]
    turns = np.repeat(np.radians(tilts_deg), len(places), axis=0)
    rotations = rotation_matrix(turns) @ np.diag([1.0, -1.0, -1.0])
    centres = np.tile(places, (len(tilts_deg), 1)) - rotations @ GRID.points.mean(axis=0)
    uv, valid = project(camera, transform(rotations, centres, GRID.points))
    return uv, valid & ((uv > 3) & (uv < np.array(SIZE) - 4)).all(axis=-1)


def write_footage(path, n):
    """A folder of n grey pictures."""
    path.mkdir()
    rng = np.random.default_rng(0)
    for i in range(n):
        picture = rng.integers(90, 130, SIZE[::-1], dtype=np.uint8)
        cv2.imwrite(str(path / f"{i:04d}.png"), picture)


def write_video(folder: Path, tilts_deg=TILTS_DEG, *, stills=False):
    """A folder of detections in which every pose is held, then lost; returns the poses' count."""
    rng = np.random.default_rng(0)
    uv, valid = poses(tilts_deg)
    hold, move = (1, 0) if stills else (HOLD, MOVE)
    frames, found = [], []
    for one, seen in zip(uv, valid, strict=True):
        frames += [one + rng.normal(0, 0.02, one.shape) for _ in range(hold)] + [one] * move
        found += [seen] * hold + [np.zeros_like(seen)] * move
    confidence = np.array(found, dtype=float)
    write_footage(folder.parent / "footage", len(frames))
    counts = (confidence > 0).sum(axis=1)
    summary = DetectionSummary(
        footage=folder.parent / "footage",
        image_size=SIZE,
        stills=stills,
        n_points=len(GRID.points),
        counts=counts,
        ambiguous=(),
        truncated=None,
        made_from={},
    )
    write_detections(folder, GRID, summary, [(np.array(frames), confidence)])
    return len(uv)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Detections of 45 poses in all five orientations; not to be changed."""
    folder = tmp_path_factory.mktemp("whole") / "detections"
    write_video(folder)
    return folder


@pytest.fixture
def detections(whole, tmp_path):
    """A copy of them, with their footage."""
    shutil.copytree(whole.parent, tmp_path / "copy")
    return tmp_path / "copy" / "detections"


def test_one_view_per_pose(invoke, detections):
    result = invoke("keyframes", detections)
    assert result.exit_code == 0, result.output
    assert "45 of 270 frames chosen" in result.stdout
    assert "poses were held: the board is at rest in 180 frames, in motion in 0" in result.stdout
    assert "warning" not in result.stdout
    out = detections / "keyframes"
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("target.yaml", "coords_2d.csv", "successes.csv", "keyframes.json", "view_names.json"),
        *("detections.png", "coverage.png", "contact.png"),
    }
    listed = json.loads((out / "keyframes.json").read_text())
    frames = np.array(listed["frames"])
    assert (frames // (HOLD + MOVE)).tolist() == list(range(45))
    assert (frames % (HOLD + MOVE) < HOLD).all()
    assert listed["warnings"] == []
    assert listed["views_per_orientation"]["parallel to the sensor"] == 9
    assert sum(listed["left_out"].values()) == 270 - 45

    target = read_target(out / "target.yaml")
    files = "coords_2d.csv", "successes.csv"
    kept = read_observations(*(out / name for name in files), target, SIZE)
    every = read_observations(*(detections / name for name in files), target, SIZE)
    assert kept.view_ids.tolist() == listed["frames"]
    assert kept.view_names == tuple(f"frame {i}" for i in frames) == tuple(listed["names"])
    assert listed["mode"] == "held"
    assert kept.valid.sum(axis=1).tolist() == listed["corners"]
    same = np.isin(every.view_ids, frames)
    assert np.array_equal(kept.uv, every.uv[same])
    assert np.array_equal(kept.valid, every.valid[same])


def test_the_same_twice(invoke, detections, tmp_path):
    for name in ("a", "b"):
        assert invoke("keyframes", detections, "--out", tmp_path / name).exit_code == 0
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_missing_tilts_are_named(invoke, tmp_path):
    write_video(tmp_path / "detections", TILTS_DEG[:3])
    result = invoke("keyframes", tmp_path / "detections")
    assert result.exit_code == 0, result.output
    assert "warning: no view shows the board tilted left" in result.stdout
    assert "warning: no view shows the board tilted right" in result.stdout


def test_a_board_that_never_rests(invoke, tmp_path):
    """Half a turn of the board through the picture, a few pixels per frame."""
    folder, n = tmp_path / "detections", 120
    time = np.linspace(0, 1, n)[:, None]
    camera = Intrinsics(420.0, 420.0, 159.5, 99.5)
    turns = np.radians(35) * np.sin(2 * np.pi * np.hstack([2 * time, 3 * time, time]))
    rotations = rotation_matrix(turns) @ np.diag([1.0, -1.0, -1.0])
    centres = np.hstack([0.3 * np.cos(5 * time), 0.2 * np.sin(8 * time), 2.0 + 0.3 * time])
    uv, valid = project(
        camera, transform(rotations, centres - rotations @ GRID.points.mean(axis=0), GRID.points)
    )
    valid &= ((uv > 3) & (uv < np.array(SIZE) - 4)).all(axis=-1)
    write_footage(tmp_path / "footage", n)
    summary = DetectionSummary(
        tmp_path / "footage", SIZE, False, len(GRID.points), valid.sum(axis=1), (), None, {}
    )
    write_detections(folder, GRID, summary, [(uv, valid.astype(float))])
    result = invoke("keyframes", folder)
    assert result.exit_code == 0, result.output
    assert "poses were not held: the board is in motion in" in result.stdout
    assert "left out: much like a chosen frame" in result.stdout
    listed = json.loads((folder / "keyframes" / "keyframes.json").read_text())
    assert listed["mode"] == "moved"
    assert 20 <= len(listed["frames"]) <= 60
    assert sum(listed["left_out"].values()) == n - len(listed["frames"])


def test_stills_are_all_kept(invoke, tmp_path):
    n = write_video(tmp_path / "detections", stills=True)
    result = invoke("keyframes", tmp_path / "detections")
    assert result.exit_code == 0, result.output
    assert f"{n} of {n} frames chosen" in result.stdout


def test_footage_that_is_gone_or_elsewhere(invoke, detections):
    footage, moved = detections.parent / "footage", detections.parent / "moved"
    footage.rename(moved)
    result = invoke("keyframes", detections)
    assert result.exit_code == 0, result.output
    assert "contact sheet: none" in result.stdout
    assert "--footage" in result.stdout
    assert not (detections / "keyframes" / "contact.png").exists()
    assert (detections / "keyframes" / "keyframes.json").exists()

    assert invoke("keyframes", detections, "--footage", moved).exit_code == 0
    assert (detections / "keyframes" / "contact.png").exists()

    shutil.rmtree(moved)
    moved.mkdir()
    cv2.imwrite(str(moved / "0.png"), np.zeros((20, 30), dtype=np.uint8))
    result = invoke("keyframes", detections, "--footage", moved)
    assert result.exit_code == 0, result.output
    assert "30 x 20" in result.stdout
    assert not (detections / "keyframes" / "contact.png").exists()


def test_footage_that_is_damaged(invoke, detections):
    (detections.parent / "footage" / "0205.png").write_bytes(b"no picture")
    (detections.parent / "footage" / "0206.png").write_bytes(b"no picture")
    result = invoke("keyframes", detections)
    assert result.exit_code == 0, result.output
    assert "it lacks 1 frame that" in result.stdout
    assert ": frame 205." in result.stdout


def test_mistakes(invoke, detections, tmp_path):
    assert_mistake(invoke("keyframes", tmp_path), str(tmp_path), "detect")
    assert_mistake(invoke("keyframes", detections, "--out", detections), "Choose another")
    (tmp_path / "file").write_text("")
    assert_mistake(invoke("keyframes", detections, "--out", tmp_path / "file"), "file")
    rows = (detections / "successes.csv").read_text().replace(",1\n", ",0\n", 1)
    (detections / "successes.csv").write_text(rows)
    assert_mistake(invoke("keyframes", detections), "not of one recording")
    (detections / "coords_2d.csv").write_text("")
    assert_mistake(invoke("keyframes", detections), "coords_2d.csv")
    assert not (detections / "keyframes").exists()


def test_a_board_that_is_never_held(invoke, tmp_path):
    folder = tmp_path / "detections"
    write_footage(tmp_path / "footage", 1)
    rng = np.random.default_rng(0)
    uv, valid = poses(TILTS_DEG[:1])
    n_found = [0, int(valid[0].sum()), 8, 0]
    confidence = np.zeros((4, len(GRID.points)))
    confidence[1] = valid[0]
    confidence[2, rng.choice(np.flatnonzero(valid[0]), 8, replace=False)] = 1
    summary = DetectionSummary(
        tmp_path / "footage", SIZE, False, len(GRID.points), np.array(n_found), (), None, {}
    )
    write_detections(folder, GRID, summary, [(np.repeat(uv[:1], 4, axis=0), confidence)])
    assert_mistake(invoke("keyframes", folder), "no keyframe in 4 frames", "held still")
