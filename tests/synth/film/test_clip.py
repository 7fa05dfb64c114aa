"""Clips of the room: the files agree with each other, and bytes do not depend on the jobs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.groundtruth import read_ground_truth, read_truths
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.formats.manifest import Video, read_manifest
from influx_wrap.model.experiment import Plan
from influx_wrap.observe.sources import open_frames
from influx_wrap.plan import make_plan
from influx_wrap.synth.film.clip import ClipOptions, RoomClip, plan_clip, shoot_clip, with_size
from influx_wrap.synth.lens import LensOptions, simulated_lens

SIZE = (160, 104)
LENS = LensOptions(pp_offset_px=(3.0, -2.0))


def small_plan() -> Plan:
    catalogue = load_catalogue()
    camera = with_size(catalogue.camera("arri-alexa-mini"), SIZE)
    return make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())


def small_clip(seed: int = 0, n_frames: int = 4, codec: str = "ffv1") -> RoomClip:
    plan = small_plan()
    options = ClipOptions(n_frames=n_frames, motion="both", codec=codec)
    return plan_clip(plan, simulated_lens(plan, LENS), options, seed)


def shot(clip: RoomClip, folder: Path, processes: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    done: list[tuple[int, int | None]] = []
    video = shoot_clip(clip, folder, processes=processes, progress=lambda *now: done.append(now))
    assert done[-1] == (clip.n_frames, clip.n_frames)
    return video


def test_files_agree(tmp_path: Path) -> None:
    clip = small_clip()
    video = shot(clip, tmp_path / "walk")
    assert video == tmp_path / "walk" / "walk.mkv"
    assert sorted(path.name for path in video.parent.iterdir()) == [
        "gt.json", "gt_validation.json", "manifest.json", "metadata.csv", "truth.json", "walk.mkv",
    ]  # fmt: skip
    assert read_manifest(video.parent / "manifest.json") == {"walk": Video(4, "val")}
    truth = read_ground_truth(video.parent / "gt.json")
    np.testing.assert_allclose(truth.intrinsics, clip.intrinsics, rtol=1e-14)
    assert truth.is_interpolated.all()
    (name, validation), *others = read_truths(video.parent / "gt_validation.json", ()).items()
    assert (name, others) == ("walk", [])
    np.testing.assert_array_equal(validation.intrinsics, truth.intrinsics)
    metadata = read_metadata(video.parent / "metadata.csv")
    lens = simulated_lens(small_plan(), LENS)
    for row, (lfl, fd) in enumerate(
        zip(metadata.lfl_mm.tolist(), metadata.fd_m.tolist(), strict=True)
    ):
        np.testing.assert_allclose(lens.intrinsics(lfl, fd).array, clip.intrinsics[row])
    first = json.loads((video.parent / "gt.json").read_text())["0"]["intrinsics_gt"]
    assert (first["cx"], first["cy"]) == (SIZE[0] / 2 + 3, SIZE[1] / 2 - 2)
    poses = json.loads((video.parent / "truth.json").read_text())
    np.testing.assert_array_equal(np.reshape(poses["rotations"], (-1, 3, 3)), clip.rotations)
    np.testing.assert_array_equal(poses["translations"], clip.translations)
    pictures = [picture for _, picture in open_frames(video, colour=True).frames()]
    assert len(pictures) == 4
    for frame, picture in enumerate(pictures):
        np.testing.assert_array_equal(picture, clip.picture(frame))


def test_bytes_depend_on_the_seed_alone(tmp_path: Path) -> None:
    clip = small_clip(n_frames=3)
    alone = shot(clip, tmp_path / "a")
    together = shot(clip, tmp_path / "b", processes=2)
    assert alone.read_bytes() == together.read_bytes()
    assert (tmp_path / "a" / "truth.json").read_bytes() == (
        tmp_path / "b" / "truth.json"
    ).read_bytes()
    other = shot(small_clip(seed=1, n_frames=3), tmp_path / "c")
    assert alone.read_bytes() != other.read_bytes()


def test_a_complete_clip_is_left_and_an_incomplete_one_made_anew(tmp_path: Path) -> None:
    clip = small_clip(n_frames=2, codec="h264")
    video = shot(clip, tmp_path / "walk")
    before = video.stat().st_mtime_ns
    shot(clip, tmp_path / "walk")
    assert video.stat().st_mtime_ns == before
    content = video.read_bytes()
    (tmp_path / "walk" / "truth.json").unlink()
    (tmp_path / "walk" / f".{video.name}.1.tmp").write_bytes(b"half")
    video.write_bytes(b"")
    shot(clip, tmp_path / "walk")
    assert video.read_bytes() == content
    assert not list((tmp_path / "walk").glob(".*"))


def test_another_size_keeps_the_field_of_view() -> None:
    camera = load_catalogue().camera("arri-alexa-mini")
    half = with_size(camera, (camera.width_px // 2, camera.height_px // 2))
    assert half.pixel_um == pytest.approx(2 * camera.pixel_um)
    assert half.sensor_mm == pytest.approx(camera.sensor_mm, rel=1e-12)
    # Pixels keep their shape, and with it fy / fx.
    shape = camera.pitch_um[1] / camera.pitch_um[0]
    assert with_size(camera, (100, 100)).sensor_height_mm == pytest.approx(28.25 * shape)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_frames": 1}, "at least 2 frames"),
        ({"noise": -1.0}, "noise of a picture"),
        ({"noise": float("nan")}, "noise of a picture"),
        ({"vignetting": 1.5}, "vignetting must be from 0 to 1"),
    ],
)
def test_clips_without_sense(options: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(ClipOptions(), **options)
