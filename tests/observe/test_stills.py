"""Folders of photographs: one bad picture costs that picture, and is named."""

from pathlib import Path

import cv2
import numpy as np
import pytest

import influx_wrap as iw
from influx_wrap.errors import InputError
from influx_wrap.formats.pictures import picture_size
from influx_wrap.model.words import by_reason
from influx_wrap.observe.sources import open_frames
from tests.clips import GRID, SIZE, picture

UPRIGHT = 6
"""The EXIF orientation of a photograph that was taken with the camera turned by 90 degrees."""


@pytest.fixture(scope="module")
def boards() -> list[np.ndarray]:
    return [picture(seed) for seed in range(4)]


def write(folder: Path, boards: list[np.ndarray], suffix: str = ".png") -> Path:
    folder.mkdir()
    for i, board in enumerate(boards):
        cv2.imwrite(str(folder / f"left{i:02d}{suffix}"), board)
    return folder


def with_orientation(path: Path, orientation: int) -> None:
    """Put an EXIF orientation into a JPEG."""
    tiff = b"MM\0*\0\0\0\x08" + b"\0\x01" + b"\x01\x12\0\x03\0\0\0\x01"
    tiff += orientation.to_bytes(2, "big") + b"\0\0" + b"\0\0\0\0"
    exif = b"Exif\0\0" + tiff
    data = path.read_bytes()
    marker = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big")
    path.write_bytes(data[:2] + marker + exif + data[2:])


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_a_damaged_photograph_costs_that_one(tmp_path, boards, bad):
    folder = write(tmp_path / "photos", boards)
    file = folder / f"left{bad:02d}.png"
    file.write_bytes(file.read_bytes()[:-300])
    seen = iw.detect(folder, GRID, jobs=2)
    assert seen.observations.view_ids.tolist() == [i for i in range(4) if i != bad]
    assert seen.truncated is None
    assert dict(seen.unread) == {file.name: "damaged or not a picture"}
    assert seen.keyframes().n_views == 3


def test_what_is_not_a_picture_here_is_named(tmp_path, boards):
    folder = write(tmp_path / "photos", boards)
    for name in ("IMG_1.HEIC", "IMG_2.heic", "DSC.NEF", "scan.bmp", "notes.txt", ".hidden.heic"):
        (folder / name).write_bytes(b"\0")
    unread = iw.detect(folder, GRID, jobs=2).unread
    assert sorted(unread) == ["DSC.NEF", "IMG_1.HEIC", "IMG_2.heic", "scan.bmp"]
    lines = by_reason(unread)
    assert len(lines) == 3
    assert any("IMG_1.HEIC, IMG_2.heic: HEIC is not read" in line for line in lines)
    many = by_reason({f"{i}.heic": "HEIC" for i in range(12)})
    assert many == ["not used: 0.heic, 1.heic, 2.heic, 3.heic, 4.heic and 7 more: HEIC"]


def test_a_folder_of_heic_photographs(tmp_path):
    (tmp_path / "IMG_1.HEIC").write_bytes(b"\0")
    with pytest.raises(InputError, match=r"IMG_1\.HEIC: HEIC is not read here, convert"):
        open_frames(tmp_path)


@pytest.mark.parametrize("odd", [0, 2])
def test_another_size_is_named_with_both(tmp_path, boards, odd):
    """Even if it comes first: the size is that of most photographs."""
    folder = write(tmp_path / "photos", boards)
    cv2.imwrite(str(folder / f"left{odd:02d}.png"), np.rot90(boards[odd]))
    seen = iw.detect(folder, GRID, jobs=2)
    assert seen.observations.image_size == SIZE
    assert seen.observations.n_views == 3
    assert dict(seen.unread) == {
        f"left{odd:02d}.png": "240 x 320 pixels, the others have 320 x 240"
    }


def test_the_orientation_is_that_of_the_sensor(tmp_path, boards):
    """A photograph that a screen would turn by 90 degrees has its pixels where they were."""
    folder = write(tmp_path / "photos", boards, ".jpg")
    plain = [grey for _, grey in open_frames(folder).frames()]
    for name in ("left01.jpg", "left02.jpg"):
        with_orientation(folder / name, UPRIGHT)
    turned = cv2.imread(str(folder / "left01.jpg"), cv2.IMREAD_GRAYSCALE)
    assert turned.shape == SIZE, "OpenCV turns it unless told not to"
    np.testing.assert_array_equal([grey for _, grey in open_frames(folder).frames()], plain)
    seen = iw.detect(folder, GRID, jobs=2)
    assert not seen.unread
    assert seen.observations.n_views == 4


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif"])
def test_sizes_are_in_the_header(tmp_path, name):
    path = tmp_path / name
    cv2.imwrite(str(path), np.zeros((37, 53), np.uint8))
    assert picture_size(path) == (53, 37)
    if name == "a.jpg":
        with_orientation(path, UPRIGHT)
        assert picture_size(path) == (53, 37)
    data = path.read_bytes()
    for end in range(min(len(data), 200)):
        path.write_bytes(data[:end])
        assert picture_size(path) in (None, (53, 37))
    path.write_bytes(b"no picture at all, but long enough")
    assert picture_size(path) is None
