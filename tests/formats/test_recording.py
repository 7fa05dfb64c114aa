"""The folder of a recording: what it says, what it leaves open, and what is wrong in it."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.flight_recording import read_flight_recording, write_flight_recording
from influx_wrap.formats.kalibr import write_target
from influx_wrap.formats.recording import Recording, read_recording, write_recording
from influx_wrap.formats.recording_truth import (
    FlightTruth,
    RecordingTruth,
    read_flight_truth,
    read_recording_truth,
)
from influx_wrap.formats.recording_yaml import is_flight, read_setting
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import Checkerboard, PointCloud

BOARDS = load_catalogue().boards
TYPED = {"lfl_mm": 24.0, "fd_m": 1.9, "board": "800x600"}


def write(folder: Path, **values: object) -> Path:
    (folder / "recording.yaml").write_text(yaml.safe_dump(values))
    return folder


def with_clip(folder: Path, **values: object) -> Recording:
    (folder / "clip.mov").touch()
    return read_recording(write(folder, **values), BOARDS)


def truth(n_frames: int = 4) -> RecordingTruth:
    rng = np.random.default_rng(0)
    return RecordingTruth(
        Intrinsics(2000.1, 2000.2, 1711.3, 1100.4, -0.1, 0.02, 1e-5, -2e-5),
        rng.normal(size=(n_frames, 3, 3)),
        rng.normal(size=(n_frames, 3)),
        np.array([0, 0, -1, 1][:n_frames]),
        np.array([1e-3, 0, 0]),
    )


def test_a_setting_typed_in(tmp_path: Path) -> None:
    found = with_clip(tmp_path, **TYPED, lens="canon17", cell="z3f2")
    assert (found.lfl_mm, found.fd_m, found.metadata) == (24, 1.9, None)
    assert (found.target, found.target_name) == (BOARDS["800x600"].grid, "800x600")
    assert (found.footage, found.is_stills) == (tmp_path / "clip.mov", False)
    assert (found.lens, found.camera, found.cell) == ("canon17", None, "z3f2")


@pytest.mark.parametrize("infinity", [math.inf, "inf"])
def test_focus_at_infinity(tmp_path: Path, infinity: object) -> None:
    assert with_clip(tmp_path, **(TYPED | {"fd_m": infinity})).fd_m == math.inf


def test_metadata_gives_the_median(tmp_path: Path) -> None:
    (tmp_path / "lens.csv").write_text("frame,lfl_mm,fd_m\n0,24,inf\n1,24.1,inf\n2,24.02,inf\n")
    found = with_clip(tmp_path, metadata="lens.csv", board="800x600")
    assert (found.lfl_mm, found.fd_m) == (24.02, math.inf)
    assert found.metadata == tmp_path / "lens.csv"


def test_metadata_of_arris_tool(tmp_path: Path) -> None:
    def entry(frame: int, lfl_um: int) -> dict[str, object]:
        state = {"lensFocalLength": lfl_um, "lensFocusDistanceMetric": 1900}
        sets = [{"metadataSetName": "Lens State", "metadataSetPayload": state}]
        return {"frameId": frame, "frameBasedMetadataSets": sets}

    frames = [entry(7, 24000), entry(8, 24020), entry(9, 24100)]
    path = tmp_path / "lens.JSON"
    path.write_text(json.dumps({"frameBasedMetadata": {"frames": frames}}))
    found = with_clip(tmp_path, metadata="lens.JSON", board="800x600")
    assert (found.lfl_mm, found.fd_m) == pytest.approx((24.02, 1.9))
    assert found.metadata == path
    path.write_text(json.dumps({"frameBasedMetadata": {"frames": [*frames, entry(10, 25000)]}}))
    with pytest.raises(InputError, match=r"lens\.JSON: the lens was moved"):
        with_clip(tmp_path, metadata="lens.JSON", board="800x600")
    path.write_text("frame,lfl_mm,fd_m")
    with pytest.raises(InputError, match=r"lens\.JSON, line 1: this is not JSON"):
        with_clip(tmp_path, metadata="lens.JSON", board="800x600")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,24,3\n1,24.2,3\n", "lfl_mm is 24 in frame 0 and 24.2 in frame 1"),
        ("4,24,3\n5,24,inf\n6,24,3\n", "fd_m is 3 in frame 4 and inf in frame 5"),
        ("0,24,3\n1,nan,3\n", "line 3: lfl_mm must be above 0"),
    ],
)
def test_a_lens_that_was_moved(tmp_path: Path, rows: str, words: str) -> None:
    (tmp_path / "m.csv").write_text("frame,lfl_mm,fd_m\n" + rows)
    with pytest.raises(InputError, match=words):
        with_clip(tmp_path, metadata="m.csv", board="800x600")


def test_a_target_of_ones_own(tmp_path: Path) -> None:
    target = Checkerboard(9, 6, 0.02, 0.02)
    write_target(tmp_path / "mine.yaml", target)
    found = with_clip(tmp_path, lfl_mm=24, fd_m=2, target="mine.yaml")
    assert (found.target, found.target_name) == (target, "mine.yaml")
    write_target(tmp_path / "mine.yaml", PointCloud(np.eye(4)[:, :3]))
    with pytest.raises(InputError, match="footage needs a board"):
        with_clip(tmp_path, lfl_mm=24, fd_m=2, target="mine.yaml")


def test_pictures_are_stills_unless_said_otherwise(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "000000.PNG").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / ".hidden.mp4").touch()
    found = read_recording(write(tmp_path, **TYPED), BOARDS)
    assert (found.footage, found.is_stills) == (tmp_path / "frames", True)
    assert not read_recording(write(tmp_path, **TYPED, stills=False), BOARDS).is_stills
    (tmp_path / "clip.mp4").touch()
    with pytest.raises(InputError, match=r"several .*\(clip.mp4, frames\); name one"):
        read_recording(write(tmp_path, **TYPED), BOARDS)
    chosen = read_recording(write(tmp_path, **TYPED, footage="clip.mp4"), BOARDS)
    assert (chosen.footage, chosen.is_stills) == (tmp_path / "clip.mp4", False)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "target is missing; give target or board"),
        ({"board": "800x600"}, "metadata is missing; give metadata or lfl_mm"),
        (TYPED | {"board": "900x600"}, "board 900x600 is not in the catalogue, which has"),
        (TYPED | {"target": "t.yaml"}, "target and board are both given"),
        (TYPED | {"metadata": "m.csv"}, "metadata and lfl_mm are both given"),
        ({"board": "800x600", "metadata": "m.csv", "fd_m": 2}, "fd_m and metadata are both"),
        ({"board": "800x600", "lfl_mm": 24}, "fd_m is missing"),
        (TYPED | {"lfl_mm": -1}, "lfl_mm must be above 0"),
        (TYPED | {"lfl_mm": math.nan}, "lfl_mm must be finite"),
        (TYPED | {"lfl_mm": "24 mm"}, "lfl_mm must be a number"),
        (TYPED | {"fd": 2}, "fd is not known here"),
        (TYPED | {"footage": "other.mp4"}, "footage .*other.mp4 does not exist"),
        (TYPED | {"footage": "empty"}, "footage .*empty holds no pictures"),
        (TYPED | {"stills": 1}, "stills must be true or false"),
        (TYPED | {"stills": True}, "clip.mov is not a folder of pictures"),
        ({"board": "800x600", "metadata": "m.csv"}, "m.csv does not exist"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, values: dict[str, object], words: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=words) as error:
        with_clip(tmp_path, **values)
    assert str(tmp_path) in str(error.value)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_recording(tmp_path / "missing", BOARDS)
    with pytest.raises(InputError, match=r"recording\.yaml does not exist"):
        read_recording(tmp_path, BOARDS)
    with pytest.raises(InputError, match="has no footage: put a video"):
        read_recording(write(tmp_path, **TYPED), BOARDS)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").touch()
    frames = np.arange(4)
    write_recording(
        tmp_path,
        footage="clip.mp4",
        metadata=LensMetadata(frames, np.full(4, 24.5), np.full(4, 1 / 3)),
        board="400x300",
        lens="canon17",
        camera="arri-alexa-mini",
        cell="z3f2",
        truth=truth(),
    )
    found = read_recording(tmp_path, BOARDS)
    assert (found.lfl_mm, found.fd_m, found.target_name) == (24.5, 1 / 3, "400x300")
    assert (found.lens, found.camera, found.cell) == ("canon17", "arri-alexa-mini", "z3f2")
    answer, expected = read_recording_truth(tmp_path), truth()
    assert answer is not None
    assert answer.intrinsics == expected.intrinsics
    for name in ("rotations", "translations", "pose", "bow_m"):
        np.testing.assert_array_equal(getattr(answer, name), getattr(expected, name))


def test_truth_of_chosen_frames(tmp_path: Path) -> None:
    grid, answer = BOARDS["400x300"].grid, truth()
    views = answer.of_views([3, 1], grid, corner_px=0.03)
    np.testing.assert_array_equal(views.rotations, answer.rotations[[3, 1]])
    np.testing.assert_array_equal(views.translations, answer.translations[[3, 1]])
    assert views.corner_sigma_px == 0.03
    assert np.ptp(views.target_points[:, 2]) == pytest.approx(1e-3, rel=0.01)
    assert views.outliers.shape == (2, len(grid.points))
    with pytest.raises(InputError, match="frame 4 is not in the truth: it has 4 frames"):
        answer.of_views([0, 4], grid, corner_px=0.03)
    assert read_recording_truth(tmp_path) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('"pose": [0]', "rotations must have 1 rows, got 4"),
        ('"bow_m": [0]', "bow_m must have 3 numbers"),
        ('"pixel_origin": "corner"', "pixel_origin must be center"),
    ],
)
def test_faults_of_a_truth(tmp_path: Path, change: str, words: str) -> None:
    metadata = LensMetadata(np.arange(4), np.full(4, 24.5), np.full(4, 1.0))
    write_recording(
        tmp_path, footage="c.mp4", metadata=metadata, board="b", lens="l", camera="c", cell="z0f0",
        truth=truth(),
    )  # fmt: skip
    path = tmp_path / "truth.json"
    key = change.split(":")[0]
    lines = [
        f" {change}," if line.strip().startswith(key) else line
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=words):
        read_recording_truth(tmp_path)


def flight_truth() -> FlightTruth:
    """Three flashes, the second without a reading; three readings, the last without a flash."""
    rng = np.random.default_rng(0)
    return FlightTruth(
        Intrinsics(2000.1, 2000.2, 1711.3, 1100.4, -0.1, 0.02, 1e-5, -2e-5),
        rtk_ball_m=0.005,
        hover_m=rng.normal(size=(24, 3)),
        flash_point=np.array([3, -1, 7]),
        flash_time_s=np.array([1.01, 3.3, 4.7]),
        lit_flash=np.array([0, 0, 1, 2, 2]),
        lit_frame=np.array([24, 25, 79, 113, 114]),
        lit_uv=rng.uniform(0, 2000, (5, 2)),
        lit_share=np.array([0.5, 1, 1, 0.25, 1]),
        reading_point=np.array([3, 7, 11]),
        reading_flash=np.array([0, 2, -1]),
        reading_m=rng.normal(size=(3, 3)),
        rotation=rotation_matrix(np.array([0.3, -1.2, 0.4])),
        translation=np.array([1.0, -2.0, 30.0]),
        clock_offset_s=1.75e9 + 0.123,
        clock_drift=3e-5,
    )


def write_flight(folder: Path) -> Path:
    (folder / "clip.mp4").touch()
    (folder / "flash_rtk.json").write_text("[]")
    write_flight_recording(
        folder,
        footage="clip.mp4",
        metadata=LensMetadata(np.arange(4), np.full(4, 24.5), np.full(4, 13.5)),
        lens="canon17",
        camera="arri-alexa-mini",
        cell="z3f9",
        truth=flight_truth(),
    )
    return folder


def test_a_flight_is_written_and_read(tmp_path: Path) -> None:
    found = read_flight_recording(write_flight(tmp_path))
    assert is_flight(tmp_path)
    assert (found.footage, found.rtk) == (tmp_path / "clip.mp4", tmp_path / "flash_rtk.json")
    assert (found.lfl_mm, found.fd_m, found.metadata) == (24.5, 13.5, tmp_path / "metadata.csv")
    assert (found.lens, found.camera, found.cell) == ("canon17", "arri-alexa-mini", "z3f9")
    assert read_setting(tmp_path).target_name == "drone"
    answer, expected = read_flight_truth(tmp_path), flight_truth()
    assert answer is not None
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(answer, name), value)
        if isinstance(value, np.ndarray):
            assert getattr(answer, name).dtype == value.dtype
    with pytest.raises(InputError, match="rtk makes this the recording of a flight"):
        read_recording(tmp_path, BOARDS)


def test_a_flight_typed_in(tmp_path: Path) -> None:
    (tmp_path / "clip.mov").touch()
    (tmp_path / "rtk.json").touch()
    found = read_flight_recording(write(tmp_path, lfl_mm=24, fd_m=13.5, rtk="rtk.json"))
    assert (found.lfl_mm, found.rtk, found.metadata) == (24, tmp_path / "rtk.json", None)
    assert read_flight_truth(tmp_path) is None
    assert not is_flight(write(tmp_path, **TYPED))
    assert not is_flight(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (TYPED | {"rtk": "rtk.json"}, "board and rtk are both given"),
        (TYPED, "board and rtk are both given"),
        ({"lfl_mm": 24, "fd_m": 2, "rtk": "r.json"}, "rtk .*r.json does not exist"),
        ({"lfl_mm": 24, "fd_m": 2, "rtk": 7}, "rtk must be text"),
        ({"lfl_mm": 24, "fd_m": 2}, "rtk is missing"),
        ({"rtk": "rtk.json"}, "metadata is missing"),
        ({"lfl_mm": 24, "fd_m": 2, "rtk": "rtk.json", "stills": True}, "stills is not known"),
    ],
)
def test_mistakes_of_a_flight(tmp_path: Path, values: dict[str, object], words: str) -> None:
    (tmp_path / "clip.mov").touch()
    (tmp_path / "rtk.json").touch()
    with pytest.raises(InputError, match=words):
        read_flight_recording(write(tmp_path, **values))


def test_what_a_flights_truth_tells() -> None:
    answer = flight_truth()
    centre_m, unit_m = np.array([1.0, 2.0, 3.0]), 7.5
    truth = answer.of_readings([2, 0], centre_m, unit_m, corner_px=0.2)
    seen = (truth.target_points @ truth.rotations[0].T + truth.translations[0]) * unit_m
    np.testing.assert_allclose(seen, answer.reading_m[[2, 0]], atol=1e-12)
    # A target without error is what the readings' own frame makes of the LED's places.
    xyz_m = truth.target_points * unit_m + centre_m
    np.testing.assert_allclose(
        xyz_m @ answer.rotation.T + answer.translation, answer.reading_m[[2, 0]], atol=1e-12
    )
    assert (truth.noise.corner_px, truth.noise.rtk_ball_m) == (0.2, 0.005)
    assert truth.outliers.shape == (1, 2)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("lit_frame", [1, 2], "lit_frame has 2 rows, lit_flash has 5"),
        ("reading_m", [[0, 0, 0]], "reading_m has 1 rows, reading_point has 3"),
        ("rotation", [[1, 0, 0]], "rotation must have 3 rows, got 1"),
        ("translation", [1], "translation must have 3 rows"),
        ("reading_flash", [0, 9, 1], r"reading_flash\[1\] must be from -1 to 2"),
        ("flash_point", [24, 1, 2], r"flash_point\[0\] must be from -1 to 23"),
        ("lit_flash", [0, 0, 0, 2, 2], "lit_flash must have rows of every flash"),
        ("lit_uv", [[1, 2, 3]], r"lit_uv\[0\] must be a list of 2"),
        ("pixel_origin", "corner", "pixel_origin must be center"),
        ("clock_drift", None, "clock_drift must be a number"),
    ],
)
def test_faults_of_a_flights_truth(tmp_path: Path, key: str, value: object, words: str) -> None:
    path = write_flight(tmp_path) / "truth.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(InputError, match=words):
        read_flight_truth(tmp_path)
