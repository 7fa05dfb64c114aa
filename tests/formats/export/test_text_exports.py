"""Formats that are text: read back by somebody else's reader, or by their own formulas."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from influx_wrap.errors import InputError
from influx_wrap.formats.export import EXPORTS, notes, table_as_clip
from influx_wrap.model.clip import Clip
from influx_wrap.model.table import Table, grid_of
from tests.formats.export.clips import (
    IMAGE_SIZE,
    TOLERANCE_PX,
    expected,
    make_clip,
    opencv_pixels,
    worst,
)

ANSWERED = [4, 5, 6, 9, 12]


def test_colmap_is_read_by_pycolmap(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    clip = make_clip()
    EXPORTS["colmap"](clip, tmp_path / "cameras.txt")
    for name in ("images.txt", "points3D.txt"):
        (tmp_path / name).touch()
    reconstruction = pycolmap.Reconstruction()
    reconstruction.read_text(tmp_path)
    assert sorted(reconstruction.cameras) == ANSWERED
    for frame in ANSWERED:
        camera = reconstruction.cameras[frame]
        assert (camera.width, camera.height) == IMAGE_SIZE
        assert camera.model_name == "OPENCV"
        points, uv = expected(clip, frame)
        assert worst(camera.img_from_cam(points) - 0.5, uv) < TOLERANCE_PX
    assert "1 of 6 frames have no intrinsics" in (tmp_path / "cameras.txt").read_text()


def test_nerfstudio_has_intrinsics_per_frame(tmp_path: Path) -> None:
    clip = make_clip()
    EXPORTS["nerfstudio"](clip, tmp_path / "transforms.json")
    data = json.loads((tmp_path / "transforms.json").read_text())
    assert data["camera_model"] == "OPENCV"
    assert [entry["file_path"] for entry in data["frames"]] == [
        f"images/frame_{frame:06d}.png" for frame in ANSWERED
    ]
    for frame, entry in zip(ANSWERED, data["frames"], strict=True):
        assert (entry["w"], entry["h"]) == IMAGE_SIZE
        assert entry["transform_matrix"] == np.eye(4).tolist()
        keys = ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "p1", "p2")
        points, uv = expected(clip, frame)
        found = opencv_pixels(points, [entry[key] for key in keys], origin_px=0.5)
        assert worst(found, uv) < TOLERANCE_PX
    assert data["frames"][-1]["fd_m"] is None


def openlensio_pixels(sample: dict, points: np.ndarray) -> np.ndarray:
    """OpenLensIO's model on the sensor in millimetres, then pixels, centres at integers."""
    lens, camera = sample["lens"], sample["static"]["camera"]
    (distortion,) = lens["distortion"]
    assert distortion["model"] == "Brown-Conrady U-D"
    x, y = lens["pinholeFocalLength"] * points[:, :2].T / points[:, 2]
    r2 = x * x + y * y
    radial = [*distortion["radial"], 0, 0, 0]
    ratio = (1 + radial[0] * r2 + radial[2] * r2**2 + radial[4] * r2**3) / (
        1 + radial[1] * r2 + radial[3] * r2**2 + radial[5] * r2**3
    )
    q1, q2 = distortion["tangential"]
    xd = x * ratio + 2 * q1 * x * y + q2 * (r2 + 2 * x * x) + lens["projectionOffset"]["x"]
    yd = y * ratio + q1 * (r2 + 2 * y * y) + 2 * q2 * x * y + lens["projectionOffset"]["y"]
    pixels, mm = camera["activeSensorResolution"], camera["activeSensorPhysicalDimensions"]
    u = (xd / mm["width"] + 0.5) * pixels["width"] - 0.5
    v = (yd / mm["height"] + 0.5) * pixels["height"] - 0.5
    return np.stack([u, v], axis=1)


def test_opentrackio_samples_have_the_documented_fields_and_pixels(tmp_path: Path) -> None:
    clip = make_clip()
    path = tmp_path / "clip.jsonl"
    EXPORTS["opentrackio"](clip, path)
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    assert [sample["timing"]["sequenceNumber"] for sample in samples] == ANSWERED
    urn = re.compile(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    assert len({sample["sampleId"] for sample in samples}) == len(samples)
    lens_keys = {"pinholeFocalLength", "projectionOffset", "distortion", "custom", "focusDistance"}
    for frame, sample in zip(ANSWERED, samples, strict=True):
        assert sample["protocol"] == {"name": "OpenTrackIO", "version": [1, 0, 1]}
        assert urn.fullmatch(sample["sampleId"])
        assert urn.fullmatch(sample["sourceId"])
        assert set(sample["lens"]) <= lens_keys
        points, uv = expected(clip, frame)
        assert worst(openlensio_pixels(sample, points), uv) < TOLERANCE_PX
    assert samples[0]["lens"]["custom"] == [17.3]
    assert samples[0]["lens"]["focusDistance"] == 0.85
    assert "focusDistance" not in samples[-1]["lens"]
    # The sensor's height absorbs the difference of fx and fy, and no more.
    size = samples[0]["static"]["camera"]["activeSensorPhysicalDimensions"]
    assert size["width"] == pytest.approx(3424 * 8.25e-3)
    assert size["height"] == pytest.approx(2202 * 8.25e-3, rel=2e-3)


def test_opencv_reads_its_file(tmp_path: Path) -> None:
    clip = make_clip()
    EXPORTS["opencv"](clip, tmp_path / "clip.yml")
    storage = cv2.FileStorage(str(tmp_path / "clip.yml"), cv2.FILE_STORAGE_READ)
    assert storage.getNode("image_width").real() == IMAGE_SIZE[0]
    assert storage.getNode("image_height").real() == IMAGE_SIZE[1]
    assert storage.getNode("frames").mat().ravel().tolist() == ANSWERED
    assert storage.getNode("fd_m").mat()[-1, 0] == math.inf
    matrices = storage.getNode("camera_matrix").mat().reshape(-1, 3, 3)
    coefficients = storage.getNode("distortion_coefficients").mat()
    zero = np.zeros(3)
    for frame, matrix, k in zip(ANSWERED, matrices, coefficients, strict=True):
        points, uv = expected(clip, frame)
        found, _ = cv2.projectPoints(points, zero, zero, matrix, k)
        assert worst(found[:, 0], uv) < TOLERANCE_PX


def test_camchain_has_a_file_per_frame(tmp_path: Path) -> None:
    clip = make_clip()
    EXPORTS["camchain"](clip, tmp_path / "chains")
    files = sorted((tmp_path / "chains").iterdir())
    assert [file.name for file in files] == [f"camchain-{frame:06d}.yaml" for frame in ANSWERED]
    for frame, file in zip(ANSWERED, files, strict=True):
        cam = yaml.safe_load(file.read_text())["cam0"]
        assert (cam["camera_model"], cam["distortion_model"]) == ("pinhole", "radtan")
        assert tuple(cam["resolution"]) == IMAGE_SIZE
        points, uv = expected(clip, frame)
        found = opencv_pixels(points, [*cam["intrinsics"], *cam["distortion_coeffs"]])
        assert worst(found, uv) < TOLERANCE_PX


def test_camchain_of_one_frame_is_a_file_and_of_more_is_refused(tmp_path: Path) -> None:
    clip = make_clip()
    EXPORTS["camchain"](clip.rows(np.array([0])), tmp_path / "one.yaml")
    assert "cam0" in yaml.safe_load((tmp_path / "one.yaml").read_text())
    with pytest.raises(InputError, match="give the name of a folder"):
        EXPORTS["camchain"](clip, tmp_path / "many.yaml")
    assert not (tmp_path / "many.yaml").exists()


def ulens_rows(data: dict, name: str) -> tuple[list[str], np.ndarray]:
    """Column names and rows of a table in a lens file."""
    (table,) = (t for t in data["cameraParameterTables"] if t["parameterName"] == name)
    rows = [[float(value) for value in row.split(",")] for row in table["data"].split(";")]
    header = [column.strip() for column in table["header"].split(",")]
    assert all(len(row) == len(header) for row in rows)
    return header, np.array(rows)


def test_ulens_has_each_setting_once(tmp_path: Path) -> None:
    clip = make_clip()
    EXPORTS["ulens"](clip, tmp_path / "lens.ulens")
    data = json.loads((tmp_path / "lens.ulens").read_text())
    assert data["imageDimensions"] == {"width": IMAGE_SIZE[0], "height": IMAGE_SIZE[1]}
    header, focal = ulens_rows(data, "FocalLengthTable")
    assert header == ["FocusEncoder", "ZoomEncoder", "Fx", "Fy"]
    assert focal[:, :2].tolist() == [[0.85, 17.3], [1.7, 29.8], [12.5, 74.0]]
    _, centre = ulens_rows(data, "ImageCenterTable")
    header, k = ulens_rows(data, "DistortionTable")
    assert header[2:] == ["K1", "K2", "K3", "P1", "P2"]
    _, nodal = ulens_rows(data, "NodalOffsetTable")
    assert nodal[:, 2:].tolist() == [[0, 0, 0, 1, 0, 0, 0]] * 3
    for row, frame in enumerate([4, 5, 9]):
        fx, fy = focal[row, 2:] * IMAGE_SIZE
        cx, cy = centre[row, 2:] * IMAGE_SIZE
        points, uv = expected(clip, frame)
        values = [fx, fy, cx, cy, *k[row, [2, 3, 5, 6]]]
        assert worst(opencv_pixels(points, values, origin_px=0.5), uv) < TOLERANCE_PX
    assert data["encoderTables"][0]["data"] == "0.85,85.0;1.7,170.0;12.5,1250.0"
    assert any("infinity" in note for note in notes(clip, "ulens"))


def test_ulens_writes_small_numbers_without_exponents(tmp_path: Path) -> None:
    clip = make_clip().rows(np.array([0]))
    clip.intrinsics[0, 6] = -1.25e-9
    EXPORTS["ulens"](clip, tmp_path / "lens.ulens")
    _, k = ulens_rows(json.loads((tmp_path / "lens.ulens").read_text()), "DistortionTable")
    assert k[0, 5] == -1.25e-9
    assert "-0.00000000125," in (tmp_path / "lens.ulens").read_text()


def test_a_clip_at_infinity_has_no_lens_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="infinity throughout"):
        EXPORTS["ulens"](make_clip().rows(np.array([5])), tmp_path / "lens.ulens")


def test_a_table_is_exported_by_its_experiments(tmp_path: Path) -> None:
    clip = make_clip().rows(np.array([0, 1, 4]))
    table = Table(
        "canon17",
        "camera",
        clip.image_size,
        clip.pixel_um,
        ("a", "b", "c"),
        clip.lfl_mm,
        clip.fd_m,
        clip.intrinsics,
        np.full((3, 8, 8), np.nan),
        np.zeros(3, dtype=bool),
        grid_of(clip.lfl_mm, clip.fd_m),
    )
    EXPORTS["ulens"](table_as_clip(table), tmp_path / "canon17.ulens")
    data = json.loads((tmp_path / "canon17.ulens").read_text())
    assert data["metadata"]["name"] == "canon17"
    _, focal = ulens_rows(data, "FocalLengthTable")
    assert focal[:, 2:] * IMAGE_SIZE == pytest.approx(clip.intrinsics[:, :2], rel=1e-15)
    assert table_as_clip(table).frames.tolist() == [0, 1, 2]
    EXPORTS["colmap"](table_as_clip(table), tmp_path / "cameras.txt")
    assert len((tmp_path / "cameras.txt").read_text().splitlines()) == 5


@pytest.mark.parametrize("to", EXPORTS)
def test_a_clip_without_any_answer_is_refused(to: str, tmp_path: Path) -> None:
    clip = make_clip().rows(np.array([3]))
    with pytest.raises(InputError, match="nothing to export"):
        EXPORTS[to](clip, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["opentrackio", "ulens", "colmap", "nerfstudio", "opencv", "usd"])
def test_no_file_says_nan(to: str, tmp_path: Path) -> None:
    if to == "usd":
        pytest.importorskip("pxr")
    clip = make_clip()
    EXPORTS[to](clip, tmp_path / "out")
    assert not re.search(r"\bnan\b", (tmp_path / "out").read_text(), re.IGNORECASE)
    assert "1 of 6 frames have no intrinsics and are left out, the first is frame 7." in (
        notes(clip, to)
    )


@pytest.mark.parametrize("to", ["opentrackio", "ulens", "colmap", "nerfstudio", "opencv"])
def test_a_path_that_cannot_be_written_is_named(to: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        EXPORTS[to](make_clip(), tmp_path / "absent" / "out")


def test_impossible_clips_are_refused() -> None:
    clip = make_clip()
    parts = (clip.name, clip.image_size, clip.pixel_um)
    arrays = (clip.frames, clip.lfl_mm, clip.fd_m, clip.intrinsics)
    with pytest.raises(InputError, match="shape"):
        Clip(*parts, clip.frames, clip.lfl_mm[:-1], clip.fd_m, clip.intrinsics)
    with pytest.raises(InputError, match="frame 4 more than once"):
        Clip(*parts, np.array([4, 4, 6, 7, 9, 12]), *arrays[1:])
    with pytest.raises(InputError, match="count from 0"):
        Clip(*parts, clip.frames - 5, *arrays[1:])
    holed = clip.intrinsics.copy()
    holed[1, 4] = np.nan
    with pytest.raises(InputError, match="frame 5 of clip"):
        Clip(*parts, *arrays[:3], holed)
    with pytest.raises(InputError, match="must have a size"):
        Clip(clip.name, (0, 100), clip.pixel_um, *arrays)
