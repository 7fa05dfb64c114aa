"""Recordings: footage becomes experiments, once, and a bad one is its own failure."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.compute.progress import no_progress
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.recording import write_recording
from influx_wrap.formats.recording_truth import RecordingTruth
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.observe import footage
from influx_wrap.plan import make_plan
from influx_wrap.run import recordings
from influx_wrap.run.recordings import Observed, observe_recording
from influx_wrap.run.views import FIGURES, KEYFRAMES
from tests.clips import CAMERA, write_clip
from tests.films import EMPTY, POSES, pictures_of_poses, write_rig

N_HELD, N_MOVED = 4, 2


def in_this_process(function, tasks, processes):
    for task in tasks:
        yield task, function(task)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footage, "parallel", in_this_process)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue with a small camera and a small board."""
    folder = tmp_path_factory.mktemp("catalogue")
    write_rig(folder)
    return folder


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    return pictures_of_poses()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, pictures: list[np.ndarray]) -> Path:
    """A video with its truth (z1f1), photographs (z2f1), and footage without a board (z3f1)."""
    folder = tmp_path_factory.mktemp("data")
    film, poses, number = [], [], []
    for i, (image, held) in enumerate(zip(pictures, POSES, strict=True)):
        film += [image] * N_HELD + [EMPTY] * N_MOVED
        poses += [held] * (N_HELD + N_MOVED)
        number += [i] * N_HELD + [-1] * N_MOVED
    (folder / "z1f1").mkdir()
    write_clip(folder / "z1f1" / "clip.mkv", film, "ffv1")
    frames = np.arange(len(film))
    write_recording(
        folder / "z1f1",
        footage="clip.mkv",
        metadata=LensMetadata(frames, np.full(len(film), 32.0), np.full(len(film), 20.0)),
        board="little",
        lens="canon17",
        camera="small",
        cell="z1f1",
        truth=RecordingTruth(
            CAMERA,
            np.array([rotation for rotation, _ in poses]),
            np.array([translation for _, translation in poses]),
            np.array(number),
            np.zeros(3),
        ),
    )
    for cell, shown in (("z2f1", pictures), ("z3f1", [EMPTY])):
        (folder / cell / "pictures").mkdir(parents=True)
        for i, image in enumerate(shown):
            cv2.imwrite(str(folder / cell / "pictures" / f"{i}.png"), image)
        (folder / cell / "recording.yaml").write_text("lfl_mm: 32\nfd_m: 20\nboard: little\n")
    return folder


def run(rig: Path, data: Path, out: Path, *options: object) -> Result:
    command = ["--catalogue", rig, "run", "canon17", "--camera", "small", "--data", data]
    command += ["--out", out, "--recipe", "batch", "--jobs", 1, *options]
    return CliRunner().invoke(main, [str(part) for part in command])


def test_footage_becomes_intrinsics(
    rig: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    result = run(rig, data, out)
    assert result.exit_code == 1, "z3f1 shows no board"
    assert "3 experiments of canon17" in result.stderr
    assert "3 of them as footage" in result.stderr
    video = read_experiment(out / "data" / "z1f1")
    held = np.arange(len(POSES)) * (N_HELD + N_MOVED)
    within = video.observations.view_ids[:, None] - held
    assert ((within >= 0) & (within < N_HELD)).sum(axis=0).tolist() == [1] * len(POSES)
    assert video.truth is not None
    assert 0.001 < video.truth.corner_sigma_px < 0.3
    assert (video.lfl_mm, video.fd_m, video.target_name) == (32, 20, "little")
    stills = read_experiment(out / "data" / "z2f1")
    assert stills.observations.n_views == len(POSES)
    assert stills.truth is None

    record = json.loads((out / "cells" / "z1f1" / "result.json").read_text())
    bound, estimate = record["truth"]["bound"], record["intrinsics"]
    for name in ("fx", "fy", "cx", "cy"):
        assert abs(estimate[name] - getattr(CAMERA, name)) < 4 * bound[name]
    assert [view["name"] for view in record["views"]["list"]] == [
        f"frame {i}" for i in video.observations.view_ids
    ]
    photographs = json.loads((out / "cells" / "z2f1" / "result.json").read_text())
    assert photographs["truth"] is None
    names = [view["name"] for view in photographs["views"]["list"]]
    assert names == [f"{i}.png" for i in range(len(POSES))]
    failure = json.loads((out / "cells" / "z3f1" / "failure.json").read_text())
    assert failure["stage"] == "footage"
    assert failure["reason"].startswith("pictures: the target is in none of the 1 frames")
    setting = {"camera": "small", "target": "little", "lfl_mm": 32, "fd_m": 20}
    assert failure["cell"] == {"name": "z3f1", "lens": "canon17", **setting}
    assert "z3f1 failed: footage: pictures: the target" in result.stderr

    # The same again, and an experiment beside the recordings: nothing is read anew.
    monkeypatch.setattr(recordings, "write_experiment", None)
    monkeypatch.setattr(footage, "parallel", None)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "z1f1").symlink_to(data / "z1f1")
    shutil.copytree(out / "data" / "z2f1", mixed / "z4f1")
    again = run(rig, mixed, out)
    assert again.exit_code == 0, again.output
    assert "2 experiments of canon17" in again.stderr
    assert "1 results were there already" in again.stderr
    answers = [
        json.loads((out / "cells" / cell / "result.json").read_text())["intrinsics"]
        for cell in ("z2f1", "z4f1")
    ]
    assert answers[0] == answers[1]


def observe(rig: Path, folder: Path, out: Path, camera: str = "small") -> Observed:
    known = load_catalogue(rig)
    plan = make_plan(known.lens("canon17"), known.camera(camera), known.boards.values())
    return observe_recording(
        folder,
        plan,
        known.boards,
        out,
        jobs=1,
        progress=no_progress,
        drawing=no_progress,
    )


def test_footage_of_another_rig(rig: Path, data: Path, tmp_path: Path) -> None:
    for key, value in (("lens", "premista80"), ("camera", "arri-alexa-mini")):
        folder = tmp_path / key
        shutil.copytree(data / "z2f1", folder)
        with (folder / "recording.yaml").open("a") as file:
            file.write(f"{key}: {value}\n")
        with pytest.raises(InputError, match=f"recording with {key} {value}, not with"):
            observe(rig, folder, tmp_path / "out")
    size = "frames of 320 x 240 pixels, camera arri-alexa-mini of 3424 x 2202"
    with pytest.raises(InputError, match=size):
        observe(rig, data / "z2f1", tmp_path / "out", "arri-alexa-mini")
    assert not (tmp_path / "out").exists()


def test_a_damaged_photograph_costs_that_one(rig: Path, data: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "z1f1", tmp_path / "out"
    shutil.copytree(data / "z2f1", folder)
    (folder / "pictures" / "3.png").write_bytes(b"broken")
    (folder / "pictures" / "IMG_0001.HEIC").write_bytes(b"an iPhone's")
    summary = observe(rig, folder, out).summary
    assert summary.truncated is None
    assert list(summary.unread) == ["3.png", "IMG_0001.HEIC"]
    assert summary.unread["3.png"] == "damaged or not a picture"
    kept = read_experiment(out).observations
    assert kept.view_ids.tolist() == [0, 1, 2, 4, 5, 6, 7, 8]
    assert kept.view_names == tuple(f"{i}.png" for i in (0, 1, 2, 4, 5, 6, 7, 8))
    shutil.copy(data / "z2f1" / "pictures" / "3.png", folder / "pictures")
    assert list(observe(rig, folder, out).summary.unread) == ["IMG_0001.HEIC"]
    assert read_experiment(out).observations.n_views == len(POSES)


def test_truncated_footage_goes_on(rig: Path, data: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "z1f1", tmp_path / "out"
    (folder / "pictures").mkdir(parents=True)
    for i in range(len(POSES) * N_HELD):
        shutil.copy(
            data / "z2f1" / "pictures" / f"{i // N_HELD}.png", folder / "pictures" / f"{i}.png"
        )
    described = (data / "z2f1" / "recording.yaml").read_text()
    (folder / "recording.yaml").write_text(described + "stills: false\n")
    (folder / "pictures" / f"{8 * N_HELD}.png").write_bytes(b"broken")
    summary = observe(rig, folder, out).summary
    assert summary.truncated == f"{8 * N_HELD}.png is damaged or not a picture"
    assert read_experiment(out).observations.n_views == len(POSES) - 1


def test_footage_that_is_not_used_is_named(rig: Path, data: Path, tmp_path: Path) -> None:
    recordings_folder, out = tmp_path / "data", tmp_path / "out"
    shutil.copytree(data / "z2f1", recordings_folder / "z2f1")
    (recordings_folder / "z2f1" / "pictures" / "a.heic").write_bytes(b"an iPhone's")
    shutil.copytree(data / "z2f1" / "pictures", recordings_folder / "forgotten" / "pictures")
    shutil.copytree(data / "z2f1", recordings_folder / "monday" / "z2f2")
    shutil.copy(data / "z1f1" / "clip.mkv", recordings_folder / "loose.mkv")
    (recordings_folder / "notes").mkdir()
    (recordings_folder / "notes.txt").write_text("windy")
    result = run(rig, recordings_folder, out)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stderr.split())
    logged = (out / "run.log").read_text()
    for text in (
        "not used: forgotten/: there is footage but no recording.yaml in it",
        "not used: monday/: its cells lie a folder deeper, give it as --data",
        "not used: loose.mkv: it needs a folder of its own with a recording.yaml",
        "z2f1: not used: a.heic: HEIC is not read here, convert to JPEG",
    ):
        assert text in told
        assert text in logged
    assert "notes" not in told
    shutil.rmtree(recordings_folder / "z2f1")
    empty = run(rig, recordings_folder, tmp_path / "other")
    assert empty.exit_code == 2
    assert "Not used: loose.mkv" in " ".join(empty.stderr.split())


def test_a_board_that_is_never_held(rig: Path, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "z1f1"
    shutil.copytree(data / "z2f1", folder)
    for i in range(1, len(POSES), 2):
        cv2.imwrite(str(folder / "pictures" / f"{i}.png"), EMPTY)
    with (folder / "recording.yaml").open("a") as file:
        file.write("stills: false\n")
    with pytest.raises(InputError, match="no keyframe in 9 frames: the board is never held still"):
        observe(rig, folder, tmp_path / "out")


def test_what_was_chosen_is_shown_once(
    rig: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    first = observe(rig, data / "z2f1", out)
    listed = json.loads((out / KEYFRAMES).read_text())
    assert listed["frames"] == list(range(len(POSES)))
    assert listed["warnings"] == list(first.views.coverage.warnings)
    assert first.views.coverage.warnings
    shown = {name: (out / name).read_bytes() for name in (KEYFRAMES, *FIGURES)}

    alone = tmp_path / "alone"
    command = ["keyframes", str(out / "detections"), "--out", str(alone)]
    assert CliRunner().invoke(main, command).exit_code == 0
    for path in alone.iterdir():
        assert path.read_bytes() == (out / path.name).read_bytes()

    # Neither corners nor views are made again, and the figures only if one is missing.
    monkeypatch.setattr(footage, "parallel", None)
    monkeypatch.setattr(recordings, "write_experiment", None)
    for name in (KEYFRAMES, *FIGURES):
        (out / name).unlink()
        again = observe(rig, data / "z2f1", out)
        assert again.views.coverage.warnings == first.views.coverage.warnings
        assert {name: (out / name).read_bytes() for name in shown} == shown
    (out / KEYFRAMES).write_text("{}")
    observe(rig, data / "z2f1", out)
    assert (out / KEYFRAMES).read_bytes() == shown[KEYFRAMES]
    monkeypatch.setattr(recordings, "choose_views", None)
    kept = observe(rig, data / "z2f1", out).views.coverage
    assert kept.warnings == first.views.coverage.warnings
    np.testing.assert_array_equal(kept.views_per_cell, first.views.coverage.views_per_cell)
    np.testing.assert_array_equal(
        kept.views_per_orientation, first.views.coverage.views_per_orientation
    )


def test_an_interrupted_drawing(
    rig: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    whole = observe(rig, data / "z2f1", tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(recordings, "show_views", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            observe(rig, data / "z2f1", out)
    assert observe(rig, data / "z2f1", out).views.coverage.warnings == whole.views.coverage.warnings
    for path in (tmp_path / "whole").iterdir():
        if path.is_file():
            assert (out / path.name).read_bytes() == path.read_bytes()


def test_a_failure_knows_its_setting(rig: Path, data: Path, tmp_path: Path) -> None:
    """As far as recording.yaml tells it, whatever else is missing."""
    told = {
        "a": "lfl_mm: 24\nfd_m: .inf\nboard: little\ncamera: other\n",
        "b": "lfl_mm: -1\nfd_m: 2\nboard: unknown\n",
        "c": "lfl_mm: [\n",
    }
    for name, text in told.items():
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "recording.yaml").write_text(text)
    assert run(rig, tmp_path / "data", tmp_path / "out").exit_code == 1
    cells = [
        json.loads((tmp_path / "out" / "cells" / name / "failure.json").read_text())["cell"]
        for name in told
    ]
    assert [(cell["lfl_mm"], cell["fd_m"], cell["target"], cell["camera"]) for cell in cells] == [
        (24, "inf", "little", "other"),
        (None, None, "unknown", "small"),
        (None, None, None, "small"),
    ]
