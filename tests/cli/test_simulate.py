"""``simulate`` writes experiments, and never into somebody else's folder."""

import json
import shlex
from pathlib import Path

import pytest

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.recording import read_recording
from influx_wrap.formats.recording_truth import read_flight_truth, read_recording_truth
from tests.cli.conftest import Invoke, assert_mistake

SMALL_CAMERA = """kind: camera
name: small
sensor_width_mm: 28.25
sensor_height_mm: 18.17
width_px: 320
height_px: 206
"""


def test_what_is_written(simulated: Path) -> None:
    assert sorted(path.name for path in simulated.iterdir()) == [
        "plan.json",
        "simulation.json",
        "z0f9",
        "z1f9",
        "z7f0",
    ]
    experiment = read_experiment(simulated / "z7f0")
    assert (experiment.lens, experiment.cell) == ("canon17", "z7f0")
    assert experiment.truth is not None
    assert experiment.observations.n_views == 100


def test_every_knob_arrives(invoke: Invoke, tmp_path: Path) -> None:
    knobs = "--noise-px 0.2 --outliers 0.02 --missing-tags 0.1 --bow-mm 0.3 --breathing 0.03 "
    knobs += "--pp-offset-px -8,5 --rtk-ball-m 0.01 --seed 7"
    result = invoke(
        "simulate", "canon17", "--out", tmp_path / "s", "--cells", "z7f0", *knobs.split()
    )
    assert result.exit_code == 0, result.output
    assert "1 cell of canon17" in result.output
    truth = read_experiment(tmp_path / "s" / "z7f0").truth
    assert truth is not None
    noise = truth.noise
    assert (noise.corner_px, noise.outliers, noise.missing_tags) == (0.2, 0.02, 0.1)
    assert (noise.bow_mm, noise.rtk_ball_m) == (0.3, 0.01)
    assert (truth.intrinsics.cx, truth.intrinsics.cy) == (1711.5 - 8, 1100.5 + 5)
    settings = json.loads((tmp_path / "s" / "simulation.json").read_text())
    assert (settings["seed"], settings["breathing"]) == (7, 0.03)
    other = invoke("simulate", "canon17", "--out", tmp_path / "t", "--cells", "z7f0")
    assert other.exit_code == 0
    unlike = read_experiment(tmp_path / "t" / "z7f0").truth
    assert unlike is not None
    assert unlike.intrinsics.fx != truth.intrinsics.fx


def test_the_lens_is_that_of_the_catalogue_unless_told(invoke: Invoke, tmp_path: Path) -> None:
    truths = {}
    for model in ("", "internal", "front", "thin"):
        knobs = ["--lens-model", model] if model else []
        out = tmp_path / f"lens-{model}"
        result = invoke("simulate", "canon17", "--out", out, "--cells", "z7f0", *knobs)
        assert result.exit_code == 0, result.output
        settings = json.loads((out / "simulation.json").read_text())
        assert (settings["lens_model"], settings["fd_jitter"]) == (model or None, 0.01)
        assert (settings["breathing"], settings["pp_offset_px"]) == (None, None)
        read = read_experiment(out / "z7f0")
        assert read.truth is not None
        truths[model] = read.truth.intrinsics
    assert truths[""] == truths["internal"]
    assert truths["internal"].fx < truths["thin"].fx < truths["front"].fx
    assert truths["internal"].cx != 1711.5 == truths["thin"].cx
    refused = invoke("simulate", "canon17", "--out", tmp_path / "no", "--lens-model", "fisheye")
    assert refused.exit_code == 2
    assert "'internal', 'front', 'thin'" in refused.output


def test_cells_can_be_added_with_the_same_settings(invoke: Invoke, tmp_path: Path) -> None:
    for cell in ("z0f9", "z1f9"):
        assert invoke("simulate", "canon17", "--out", tmp_path, "--cells", cell).exit_code == 0
    assert (tmp_path / "z0f9").is_dir()
    assert (tmp_path / "z1f9").is_dir()
    result = invoke("simulate", "canon17", "--out", tmp_path, "--cells", "z2f9", "--seed", 1)
    assert_mistake(result, "other settings")
    assert not (tmp_path / "z2f9").exists()


def test_a_folder_with_other_things_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    result = invoke("simulate", "canon17", "--out", tmp_path, "--cells", "z0f9")
    assert_mistake(result, "not empty and was not made by simulate")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_the_folder(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("simulate", "canon17", "--out", tmp_path / "file" / "sim")
    assert_mistake(result, "cannot be made a folder")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--noise-px", "-1", "-1 is below 0"),
        ("--noise-px", "nan", "not a finite number"),
        ("--noise-px", "many", "'many' is not a number"),
        ("--outliers", "1.5", "a fraction of at most 1"),
        ("--pp-offset-px", "8", "a pair such as 8,-5"),
        ("--breathing", "3", "breathing is a share"),
        ("--cells", "z0f9,", "no cell ''"),
        ("--seed", "-1", "'--seed'"),
    ],
)
def test_values_without_sense(
    invoke: Invoke, tmp_path: Path, option: str, value: str, words: str
) -> None:
    result = invoke("simulate", "canon17", "--out", tmp_path / "sim", option, value)
    assert_mistake(result, words)
    assert not (tmp_path / "sim").exists()


def test_a_cell_that_cannot_be_simulated_is_named(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke(
        "simulate", "canon17", "--out", tmp_path / "s", "--cells", "z7f0", "--missing-tags", 1
    )
    assert_mistake(result, "cell z7f0: there is no view")


@pytest.fixture
def small(tmp_path: Path, invoke: Invoke) -> Invoke:
    """``simulate canon17`` with a camera of few pixels."""
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "small.yaml").write_text(SMALL_CAMERA)
    start = ("--catalogue", tmp_path / "catalogue", "simulate", "canon17", "--camera", "small")
    return lambda *arguments: invoke(*start, *arguments)


def test_images_of_boards(small: Invoke, tmp_path: Path) -> None:
    arguments = ("--out", tmp_path / "s", "--cells", "z7f7,z0f9", "--images", "--views", 2)
    result = small(*arguments, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "Left out, as the drone's flight is filmed with --video only: z0f9." in result.stderr
    assert "1 cell of canon17" in result.stdout
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == [
        "plan.json",
        "simulation.json",
        "z7f7",
    ]
    recording = read_recording(tmp_path / "s" / "z7f7", load_catalogue().boards)
    assert recording.is_stills
    assert sorted(file.name for file in recording.footage.iterdir()) == ["000000.png", "000001.png"]
    settings = json.loads((tmp_path / "s" / "simulation.json").read_text())
    assert settings["footage"]["options"]["blur_px"] == 0.7
    assert settings["footage"]["options"]["noise"] == 2
    assert small(*arguments).exit_code == 0
    assert_mistake(small(*arguments, "--blur-px", 1), "other settings")


def test_a_lossless_video(small: Invoke, tmp_path: Path) -> None:
    arguments = ("--out", tmp_path / "s", "--cells", "z7f7", "--video", "--codec", "ffv1")
    result = small(*arguments, "--views", 1, "--jobs", 1, "--bow-mm", 1)
    assert result.exit_code == 0, result.output
    recording = read_recording(tmp_path / "s" / "z7f7", load_catalogue().boards)
    assert (recording.footage.name, recording.is_stills) == ("clip.mkv", False)
    truth = read_recording_truth(recording.folder)
    assert truth is not None
    assert truth.bow_m.any()


def test_a_board_and_a_night(small: Invoke, tmp_path: Path) -> None:
    arguments = ("--out", tmp_path / "s", "--cells", "z7f7,z0f9", "--video", "--views", 1)
    night = "--core-px 6 --halo-px 20 --scatter 0.1 --no-lights --hover-s 0.45 --miss 2 --extra 1"
    night += " --rtk-ball-m 0.01 --jobs 1"
    result = small(*arguments, *night.split())
    assert result.exit_code == 0, result.output
    assert "2 cells of canon17" in result.stdout
    assert "Left out" not in result.stderr
    assert read_recording_truth(tmp_path / "s" / "z7f7") is not None
    folder = tmp_path / "s" / "z0f9"
    assert sorted(path.name for path in folder.iterdir()) == [
        "clip.mp4", "flash_rtk.json", "metadata.csv", "recording.yaml", "truth.json",
    ]  # fmt: skip
    truth = read_flight_truth(folder)
    assert truth is not None
    assert (len(truth.flash_point), len(truth.reading_point), truth.rtk_ball_m) == (23, 24, 0.01)
    assert int((truth.flash_point < 0).sum()) == 1
    settings = json.loads((tmp_path / "s" / "simulation.json").read_text())
    assert settings["night"]["night"]["halo_px"] == 20
    assert settings["night"]["flight"]["missed"] == 2
    assert small(*arguments, *night.split()).exit_code == 0
    assert_mistake(small(*arguments, "--halo-px", 60), "other settings")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--images --video", "--images and --video exclude each other"),
        ("--images --noise-px 0.1", "--noise-px is the detector's business"),
        ("--video --missing-tags 0.1", "--missing-tags is the detector's business"),
        ("--blur-px 1", "--blur-px needs --images or --video"),
        ("--views 3", "--views needs --images or --video"),
        ("--images --codec ffv1", "--codec needs --video"),
        ("--video --renderer blender", "makes stills only"),
        ("--images --renderer blender --bow-mm 1", "cannot bend a board"),
        ("--images --blur-px 7", "reaches 29 px"),
        ("--images --vignetting 2", "vignetting must be from 0 to 1"),
        ("--images --cells z0f9", "flown by the drone, which is filmed: use --video"),
        ("--images --rtk-ball-m 0.01", "--rtk-ball-m is for the drone"),
        ("--images --halo-px 40", "--halo-px needs --video"),
        ("--no-lights", "--lights needs --video"),
        ("--video --core-px 80", "halo of 90 px is too small around a core of 80 px"),
        ("--video --hover-s 0.2", "too short for a flash of 0.25 s"),
        ("--video --cells z0f9 --miss 25", "at most 24 flashes to miss"),
        ("--video --extra -1", "'--extra'"),
        ("--images --views 0", "'--views'"),
        ("--images --image-noise nan", "not a finite number"),
    ],
)
def test_pictures_without_sense(invoke: Invoke, tmp_path: Path, options: str, words: str) -> None:
    result = invoke("simulate", "canon17", "--out", tmp_path / "sim", *options.split())
    assert_mistake(result, words)
    assert not (tmp_path / "sim").exists()


def test_blender_is_an_extra(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("influx_wrap.cli.simulate.find_spec", lambda name: None)
    result = invoke(
        "simulate", "canon17", "--out", tmp_path / "sim", "--images", "--renderer", "blender"
    )
    assert_mistake(result, "pip install 'influx_wrap[blender]'")
    assert not (tmp_path / "sim").exists()


def test_the_line_to_calibrate_with_can_be_pasted(invoke: Invoke, tmp_path: Path) -> None:
    catalogue, out = tmp_path / "my things", tmp_path / "it's [here]"
    catalogue.mkdir()
    camera = "kind: camera\nname: a b\nsensor_width_mm: 28\nsensor_height_mm: 21\n"
    (catalogue / "camera.yaml").write_text(camera + "width_px: 800\nheight_px: 600\n")
    asked = ("simulate", "canon17", "--camera", "a b", "--catalogue", catalogue, "--out", out)
    result = invoke(*asked, "--cells", "z0f9")
    assert result.exit_code == 0, result.output
    line = result.stdout.partition("Calibrate with: ")[2].strip()
    words = ["influx-calib", "run", "canon17", "--data", str(out)]
    assert shlex.split(line) == [*words, "--camera", "a b", "--catalogue", str(catalogue)]
