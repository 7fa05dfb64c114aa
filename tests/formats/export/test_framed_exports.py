"""Exports of scaled and cropped pictures: 1000 points, through each format's own reader, are at the
pixels where the calibrated camera sees them, cut and scaled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from influx_wrap.formats.export import EXPORTS
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip
from influx_wrap.model.framing import Crop, make_framing
from influx_wrap.model.intrinsics import NAMES, Intrinsics, project, unproject
from tests.formats.export.clips import (
    IMAGE_SIZE,
    SMALL_SIZE,
    TOLERANCE_PX,
    make_clip,
    opencv_pixels,
    worst,
)
from tests.formats.export.test_text_exports import openlensio_pixels, ulens_rows

Reader = Callable[[Path, int, FloatArray], FloatArray]
"""Pixels (n, 2), centres at integers, of points (n, 3) in a frame, by a file."""

FRAMINGS: dict[str, tuple[tuple[int, int] | None, Crop | None, bool]] = {
    "half": ((1712, 1101), None, False),
    "middle": ((1920, 1080), Crop(), False),
    "middle of no whole pixels": ((1998, 1080), Crop(), False),
    "cut": (None, Crop((1921, 1081), (101, 57)), False),
    "cut and scaled": ((1280, 720), Crop((2560, 1440)), False),
    "rounded": ((1920, 1235), None, False),
    "stretched": ((1920, 1080), None, True),
}
NAMED = ("canon 17-120 \"b\": '1' # ü", "Alexa Mini")


def framed(clip: Clip, framing: str) -> Clip:
    size, crop, stretch = FRAMINGS[framing]
    return make_framing(clip.image_size, size, crop, stretch=stretch).clip(clip)


def seen(clip: Clip, row: int, framing: str, n: int = 1000) -> tuple[FloatArray, FloatArray]:
    """Points (n, 3) that the picture made shows, and their pixels (n, 2) in it: those of the
    calibrated camera, cut and scaled."""
    size, crop, stretch = FRAMINGS[framing]
    made = make_framing(clip.image_size, size, crop, stretch=stretch)
    corner, extent = np.array(made.window[:2]), np.array(made.window[2:])
    places = corner + np.random.default_rng(3).uniform(0, 1, (2 * n, 2)) * extent
    ab, valid = unproject(clip.camera(row), places - 0.5)
    points = np.column_stack([ab, np.ones(2 * n)])[valid][:n] * 3.7
    assert len(points) == n
    uv, _ = project(clip.camera(row), points)
    return points, (uv + 0.5 - corner) * made.size / extent - 0.5


def colmap(path: Path, frame: int, points: FloatArray) -> FloatArray:
    pycolmap = pytest.importorskip("pycolmap")
    for name in ("images.txt", "points3D.txt"):
        (path.parent / name).touch()
    reconstruction = pycolmap.Reconstruction()
    reconstruction.read_text(path.parent)
    pixels: FloatArray = reconstruction.cameras[frame].img_from_cam(points) - 0.5
    return pixels


def opencv(path: Path, frame: int, points: FloatArray) -> FloatArray:
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
    row = storage.getNode("frames").mat().ravel().tolist().index(frame)
    matrix = storage.getNode("camera_matrix").mat()[3 * row : 3 * row + 3]
    k = storage.getNode("distortion_coefficients").mat()[row]
    zero = np.zeros(3)
    return cv2.projectPoints(points, zero, zero, matrix, k)[0][:, 0]


def nerfstudio(path: Path, frame: int, points: FloatArray) -> FloatArray:
    data = json.loads(path.read_text())
    (entry,) = (one for one in data["frames"] if one["file_path"].endswith(f"{frame:06d}.png"))
    values = [entry[key] for key in ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "p1", "p2")]
    return opencv_pixels(points, values, origin_px=0.5)


def camchain(path: Path, frame: int, points: FloatArray) -> FloatArray:
    cam = yaml.safe_load((path / f"camchain-{frame:06d}.yaml").read_text())["cam0"]
    return opencv_pixels(points, [*cam["intrinsics"], *cam["distortion_coeffs"]])


def opentrackio(path: Path, frame: int, points: FloatArray) -> FloatArray:
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    (sample,) = (one for one in samples if one["timing"]["sequenceNumber"] == frame)
    return openlensio_pixels(sample, points)


def ulens(path: Path, frame: int, points: FloatArray) -> FloatArray:
    data = json.loads(path.read_text())
    size = np.array([data["imageDimensions"][key] for key in ("width", "height")])
    row = {4: 0, 5: 1, 9: 2}[frame]
    focal, centre = (
        ulens_rows(data, name)[1][row, 2:] * size
        for name in ("FocalLengthTable", "ImageCenterTable")
    )
    k = ulens_rows(data, "DistortionTable")[1][row, [2, 3, 5, 6]]
    return opencv_pixels(points, [*focal, *centre, *k], origin_px=0.5)


def usd(path: Path, frame: int, points: FloatArray) -> FloatArray:
    pytest.importorskip("pxr")
    from pxr import Usd

    stage = Usd.Stage.Open(str(path))
    prim = stage.GetDefaultPrim()
    values = [prim.GetAttribute(f"influx:{name}").Get(frame) for name in NAMES]
    return opencv_pixels(points, values)


READERS: dict[str, tuple[str, Reader]] = {
    "colmap": ("cameras.txt", colmap),
    "opencv": ("clip.yml", opencv),
    "nerfstudio": ("transforms.json", nerfstudio),
    "camchain": ("chains", camchain),
    "opentrackio": ("clip.jsonl", opentrackio),
    "ulens": ("lens.ulens", ulens),
    "usd": ("clip.usda", usd),
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("to", READERS)
def test_points_are_where_they_belong(to: str, framing: str, tmp_path: Path) -> None:
    if to == "usd":
        pytest.importorskip("pxr")
    clip = make_clip()
    name, reader = READERS[to]
    EXPORTS[to](framed(clip, framing), tmp_path / name)
    for row in (0, 1, 4):
        points, uv = seen(clip, row, framing)
        assert worst(reader(tmp_path / name, int(clip.frames[row]), points), uv) < TOLERANCE_PX


@pytest.mark.parametrize("framing", FRAMINGS)
def test_usd_frustum(framing: str, tmp_path: Path) -> None:
    """The pinhole part, which other programs use; USD has 32-bit floats."""
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    clip = make_clip()
    made = framed(clip, framing)
    EXPORTS["usd"](made, tmp_path / "clip.usda")
    stage = Usd.Stage.Open(str(tmp_path / "clip.usda"))
    camera = UsdGeom.Camera(stage.GetDefaultPrim())
    points, _ = seen(clip, 0, framing)
    window = camera.GetCamera(4).frustum.GetWindow()
    u = (points[:, 0] / points[:, 2] - window.GetMin()[0]) / window.GetSize()[0]
    v = (window.GetMax()[1] + points[:, 1] / points[:, 2]) / window.GetSize()[1]
    fx, fy, cx, cy = made.intrinsics[0, :4]
    pinhole, _ = project(Intrinsics(fx, fy, cx, cy), points)
    assert worst(np.stack([u, v], axis=1) * made.image_size - 0.5, pinhole) < 2e-3


def test_stmaps_are_of_the_framed_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pixel of the pinhole picture is shown in the calibrated one where OpenCV says."""
    pytest.importorskip("OpenEXR")
    monkeypatch.setenv("OPENCV_IO_ENABLE_OPENEXR", "1")
    clip = make_clip(SMALL_SIZE).rows(np.array([0]))
    size, (x, y, width, height) = (40, 25), (3, 2, 80, 50)
    made = make_framing(SMALL_SIZE, size, Crop((width, height), (x, y))).clip(clip)
    EXPORTS["stmap"](made, tmp_path / "maps")
    exr = cv2.imread(str(tmp_path / "maps" / "undistort.000004.exr"), cv2.IMREAD_UNCHANGED)
    assert exr.shape[:2] == (25, 40)
    found = np.stack([exr[..., 2] * 40.0, (1 - exr[..., 1].astype(float)) * 25], axis=-1)
    # The pinhole picture by the calibrated camera: its pixels' places, from the corner.
    fx, fy, cx, cy = clip.intrinsics[0, :4]
    grid = np.stack(np.meshgrid(np.arange(40) + 0.5, np.arange(25) + 0.5), axis=-1) * 2
    ab = (grid + np.array([x - 0.5 - cx, y - 0.5 - cy])) / (fx, fy)
    rays = cv2.convertPointsToHomogeneous(ab.reshape(-1, 1, 2))[:, 0]
    uv = opencv_pixels(rays, clip.intrinsics[0])
    expected = (uv.reshape(25, 40, 2) + 0.5 - (x, y)) / 2
    assert np.abs(found - expected).max() < 3 * 40 * 2**-23


def test_sensor_is_the_window(tmp_path: Path) -> None:
    """Millimetres are those of the window that is shown, whatever the pixels."""
    clip = make_clip().rows(np.array([0]))
    made = framed(clip, "cut and scaled")
    assert made.pixel_um == pytest.approx((16.5, 16.5))
    EXPORTS["opentrackio"](made, tmp_path / "clip.jsonl")
    camera = json.loads((tmp_path / "clip.jsonl").read_text())["static"]["camera"]
    assert camera["activeSensorResolution"] == {"width": 1280, "height": 720}
    assert camera["activeSensorPhysicalDimensions"]["width"] == pytest.approx(2560 * 8.25e-3)
    EXPORTS["ulens"](made, tmp_path / "lens.ulens")
    sensor = json.loads((tmp_path / "lens.ulens").read_text())["sensorDimensions"]
    assert sensor["height"] == pytest.approx(1440 * 8.25e-3)


def names_in(to: str, path: Path) -> dict[str, str]:
    """What a file calls clip, lens and camera, by its format's reader."""
    if to == "opentrackio":
        sample = json.loads(path.read_text().splitlines()[0])
        static = sample["static"]
        models = {part: static[part]["model"] for part in ("lens", "camera")}
        return models | {"clip": sample["tracker"]["slate"]}
    if to == "ulens":
        about = json.loads(path.read_text())["metadata"]
        more = {entry["name"]: entry["value"] for entry in about["userMetadata"]}
        return {"lens": about["lensInfo"]["modelName"], **more}
    if to == "nerfstudio":
        data = json.loads(path.read_text())
        return {key: data[key] for key in ("clip", "lens", "camera")}
    if to == "opencv":
        storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
        return {key: storage.getNode(key).string() for key in ("clip", "lens", "camera")}
    if to == "usd":
        from pxr import Usd

        stage = Usd.Stage.Open(str(path))
        prim = stage.GetDefaultPrim()
        return {key: prim.GetAttribute(f"influx:{key}").Get() for key in ("clip", "lens", "camera")}
    if to == "stmap":
        import OpenEXR

        header = OpenEXR.File(str(path / "distort.000004.exr")).header()
        keys = {"clip": "reelName", "lens": "lensModel", "camera": "cameraModel"}
        return {key: header[name] for key, name in keys.items()}
    text = path.read_text() if path.is_file() else (path / "camchain-000004.yaml").read_text()
    (line,) = (line for line in text.splitlines() if "clip A001" in line)
    assert line.startswith("# ")
    parts = line[line.index("clip ") :].rstrip(".").split(", ")[:3]
    return dict(part.split(" ", 1) for part in parts)


@pytest.mark.parametrize("to", EXPORTS)
def test_names_of_clip_lens_and_camera(to: str, tmp_path: Path) -> None:
    for module in {"usd": ("pxr",), "stmap": ("OpenEXR",)}.get(to, ()):
        pytest.importorskip(module)
    clip = make_clip(SMALL_SIZE).rows(np.array([0]))
    out = tmp_path / {"opencv": "clip.yml", "usd": "clip.usda"}.get(to, "out")
    EXPORTS[to](replace(clip, lens_name=NAMED[0], camera_name=NAMED[1]), out)
    assert names_in(to, out) == {"clip": "A001 C001", "lens": NAMED[0], "camera": NAMED[1]}
    odd = {'"b"': '"b"', "'": "'", "a\nb\x1b[31m\u2028c": "a b [31m c", "- {x": "- {x"}
    for name, shown in odd.items():
        EXPORTS[to](replace(clip, lens_name=name, camera_name=NAMED[1]), out)
        assert names_in(to, out)["lens"] == shown
    # Names that are not known are not there, and one in two lines stays on one, cut where too long.
    other = replace(clip, name="A001\nC001: '" + "x" * 5000)
    if out.is_file():
        EXPORTS[to](other, out)
        text = out.read_text()
        assert "x" * 201 not in text or to in ("ulens", "usd", "camchain")
        assert "None" not in text


def test_full_size_is_as_before(tmp_path: Path) -> None:
    clip = make_clip()
    for name, one in (("a", clip), ("b", make_framing(IMAGE_SIZE, IMAGE_SIZE).clip(clip))):
        EXPORTS["colmap"](one, tmp_path / name)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
