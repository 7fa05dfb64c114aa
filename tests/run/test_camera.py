"""One camera from pictures alone: against the camera that the pictures were rendered with."""

import json
import math
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

import influx_wrap as iw
from influx_wrap.errors import InputError
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.formats.kalibr_results import read_camchain
from influx_wrap.model.intrinsics import project
from influx_wrap.model.target import AprilGrid, Checkerboard
from influx_wrap.run.camera import CAMCHAIN, OPENCV, PAGE, RESULT, CameraCalibration
from tests.cameras import CAMERA, SIZE, pinhole_pictures, pinhole_poses, write_photographs
from tests.clips import write_clip

CHARUCO = charuco_board(9, 7, 0.03, 0.022, "DICT_5X5_50")
CHECKERBOARD = Checkerboard(9, 6, 0.03, 0.03)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a checkerboard; in photo00, photo08 and photo09 it leaves the picture."""
    folder = tmp_path_factory.mktemp("camera") / "photos"
    return write_photographs(folder, pinhole_pictures(CHECKERBOARD, 12))


@pytest.fixture(scope="module")
def charuco(tmp_path_factory: pytest.TempPathFactory) -> CameraCalibration:
    """A camera that was shown a ChArUco board, about which nothing is said."""
    folder = tmp_path_factory.mktemp("camera") / "charuco"
    return iw.calibrate_camera(write_photographs(folder, pinhole_pictures(CHARUCO)), jobs=2)


def test_a_charuco_board_of_which_nothing_is_said(charuco: CameraCalibration) -> None:
    assert charuco.board.is_recognised
    assert "ChArUco board of 9 x 7 squares with markers of DICT_5X5_50" in charuco.board.sentence
    fit = charuco.calibration
    apart = (fit.intrinsics.array - CAMERA.array) / fit.sigma
    assert np.abs(apart).max() < 3.5
    assert fit.intrinsics.fx == pytest.approx(CAMERA.fx, rel=2e-4)
    assert charuco.assessment.grade == "good"


def test_the_field_of_view_is_that_of_opencv_s_undistorted_corners(
    charuco: CameraCalibration,
) -> None:
    fx, fy, cx, cy, *distortion = CAMERA.array
    width, height = SIZE
    middle = np.array([[-0.5, (height - 1) / 2], [width - 0.5, (height - 1) / 2]])
    matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    rays = cv2.undistortPoints(middle[:, None], matrix, np.array(distortion))[:, 0]
    left, right = (np.append(ray, 1) / np.hypot(1, np.linalg.norm(ray)) for ray in rays)
    expected = math.degrees(math.acos(left @ right))
    assert charuco.field_of_view_deg[0] == pytest.approx(expected, abs=0.01)


def test_files_that_others_read(charuco: CameraCalibration, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written = charuco.write(out)
    assert {path.name for path in out.iterdir()} == {path.name for path in written}
    storage = cv2.FileStorage(str(out / OPENCV), cv2.FILE_STORAGE_READ)
    matrix = storage.getNode("camera_matrix").mat()
    coefficients = storage.getNode("distortion_coefficients").mat()
    fx, fy, cx, cy, *distortion = charuco.calibration.intrinsics.array
    assert np.array_equal(matrix, [[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    assert np.array_equal(coefficients[0], [*distortion, 0])
    assert storage.getNode("image_width").real() == SIZE[0]
    assert storage.getNode("verdict").string() == "good"
    assert read_camchain(out / CAMCHAIN, SIZE) == charuco.calibration.intrinsics
    result = json.loads((out / RESULT).read_text())
    assert result["intrinsics"] == charuco.calibration.intrinsics.as_dict()
    assert result["verdict"]["grade"] == "good"
    assert result["board"]["recognised"]
    assert not result["board"]["size_known"]
    assert result["field_of_view_deg"]["diagonal"] == charuco.field_of_view_deg[2]
    assert result["views"]["list"][0]["name"] == "photo00.png"
    assert result["provenance"]["recipe"]["name"] == "influx"


def test_the_page_is_whole(charuco: CameraCalibration, tmp_path: Path) -> None:
    charuco.write(tmp_path)
    page = (tmp_path / PAGE).read_text()
    assert page.count("data:image/jpeg;base64,") == 3
    assert "src=" not in page.split('id="data"')[0]
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["grade"] == "good"
    assert [row[0] for row in data["views"]] == [f"photo{i:02d}.png" for i in range(12)]


def test_the_size_of_the_board_does_not_matter(photographs: Path) -> None:
    recognised = iw.calibrate_camera(photographs, recipe="batch")
    told = iw.calibrate_camera(photographs, "9x6@25mm", recipe="batch")
    assert recognised.board.sentence == told.board.sentence
    assert told.board.has_size
    one, other = recognised.calibration, told.calibration
    assert np.abs((one.intrinsics.array - other.intrinsics.array) / one.sigma).max() < 0.01
    assert one.sigma == pytest.approx(other.sigma, rel=0.01)


def test_what_is_not_used_is_named(photographs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for file in photographs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "IMG_1.HEIC").write_bytes(b"\0")
    damaged = folder / "photo03.png"
    damaged.write_bytes(damaged.read_bytes()[:-300])
    cv2.imwrite(str(folder / "photo04.png"), np.zeros((480, 600), np.uint8))
    cv2.imwrite(str(folder / "wall.png"), np.full((480, 640), 90, np.uint8))
    camera = iw.calibrate_camera([folder], recipe="batch")
    notes = "\n".join(camera.views.notes)
    assert "the board is not found in: photo00.png, photo08.png, photo09.png, wall.png" in notes
    assert "IMG_1.HEIC: HEIC is not read here" in notes
    assert "photo03.png: damaged" in notes
    assert "photo04.png: 600 x 480 pixels, the others have 640 x 480" in notes
    names = [view.name for view in camera.calibration.views]
    assert names == [f"photo{i:02d}.png" for i in (1, 2, 5, 6, 7, 10, 11)]


def test_a_list_a_folder_and_a_video(photographs: Path, tmp_path: Path) -> None:
    files = sorted(photographs.iterdir())
    pictures = [cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) for file in files]
    clip = write_clip(tmp_path / "clip.mp4", [pictures[i] for i in (1, 2, 3) for _ in range(6)])
    camera = iw.calibrate_camera([clip, *files[4:]], "9x6", recipe="batch")
    names = [view.name for view in camera.calibration.views]
    assert [name.split(",")[0] for name in names[:3]] == ["clip.mp4"] * 3
    assert names[0].startswith("clip.mp4, frame ")
    assert names[3:] == [f"photos/photo{i:02d}.png" for i in (4, 5, 6, 7, 10, 11)]
    assert len(set(camera.views.observations.view_ids.tolist())) == len(names)
    assert camera.calibration.intrinsics.fx == pytest.approx(CAMERA.fx, rel=1e-3)
    assert "clip.mp4: 18 frames of 640 x 480 pixels" in camera.views.footage[0].sentence
    shown = [view for view, _ in camera.views.pictures()]
    assert shown == camera.views.observations.view_ids.tolist()


def test_a_folder_of_videos(photographs: Path, tmp_path: Path) -> None:
    files = sorted(photographs.iterdir())[1:7]
    pictures = [cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) for file in files]
    write_clip(tmp_path / "a.mp4", [picture for picture in pictures[:3] for _ in range(6)])
    write_clip(tmp_path / "b.mp4", [picture for picture in pictures[3:] for _ in range(6)])
    camera = iw.calibrate_camera(tmp_path, recipe="batch")
    assert len(camera.views.footage) == 2
    assert {name.split(",")[0] for name in camera.views.observations.view_names} == {
        "a.mp4",
        "b.mp4",
    }


@pytest.fixture(scope="module")
def clips(photographs: Path) -> Path:
    """clip.mp4 and clip.mkv of 7 poses, which are held for 6 frames each."""
    folder = photographs.parent / "clips"
    folder.mkdir()
    files = [photographs / f"photo{i:02d}.png" for i in (1, 2, 3, 5, 7, 10, 11)]
    pictures = [cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) for file in files]
    for name, options in (("clip.mp4", {"movflags": "faststart"}), ("clip.mkv", {})):
        write_clip(folder / name, [one for one in pictures for _ in range(6)], **options)
    return folder


@pytest.mark.parametrize(
    ("name", "share", "lost"),
    [
        ("clip.mp4", 0.8, r"(\d+) of 42 frames of \S*clip.mp4 \((\d+) %\)"),
        ("clip.mkv", 0.8, r"(\d\.\d\d) of 1\.68 s of \S*clip.mkv \((\d+) %\)"),
    ],
)
def test_a_video_that_is_cut_off_is_usable_with_care(
    clips: Path, tmp_path: Path, name: str, share: float, lost: str
) -> None:
    """What is before the damage is used, and how much is lost stands in the verdict."""
    whole = iw.calibrate_camera(clips / name, "9x6", recipe="batch")
    assert whole.assessment.grade == "good"
    data = (clips / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(share * len(data))])
    cut = iw.calibrate_camera(tmp_path / name, "9x6", recipe="batch")
    n_read = cut.views.footage[0].n_frames
    assert 24 < n_read < 42
    assert cut.assessment.grade == "usable with care"
    said = re.search(f"{lost} cannot be read, from frame {n_read} on", cut.assessment.reasons[0])
    assert said is not None, cut.assessment.reasons
    assert float(said[1]) == pytest.approx((42 - n_read) / (1 if name == "clip.mp4" else 25))
    assert float(said[2]) == pytest.approx(100 * (42 - n_read) / 42, abs=0.5)
    assert cut.assessment.film_next[0] == f"copy {name} again"
    assert any("cannot be read" in note for note in cut.views.notes)
    assert cut.as_dict()["verdict"]["grade"] == "usable with care"


def test_a_board_that_is_described_wrongly_is_not_to_be_used(tmp_path: Path) -> None:
    grid = AprilGrid(5, 4, 0.05, 0.3)
    folder = write_photographs(tmp_path / "photos", pinhole_pictures(grid, 6))
    camera = iw.calibrate_camera(folder, "aprilgrid:5x4@50mm,0.2", recipe="batch")
    assert camera.assessment.grade == "do not use"
    assert any("tagSpacing" in reason or "0.2" in reason for reason in camera.assessment.reasons)


def test_too_few_views(photographs: Path) -> None:
    files = [photographs / f"photo{i:02d}.png" for i in (0, 1, 2)]
    with pytest.raises(
        InputError, match=r"only 2 views .*photo01.png, photo02.png.*Film the board"
    ):
        iw.calibrate_camera(files, "9x6")


def test_another_board_is_there(photographs: Path) -> None:
    with pytest.raises(InputError, match="9 x 6 inner corners; the target says 7 x 5"):
        iw.calibrate_camera(photographs, "7x5")


def test_a_row_too_many_is_noticed(tmp_path: Path) -> None:
    """Now and then corners are found beside the board: here, those of half a row."""
    taller = Checkerboard(9, 7, 0.03, 0.03)
    pictures = pinhole_pictures(taller, 4)
    for picture, (rotation, translation) in zip(pictures, pinhole_poses(taller, 4), strict=True):
        x, y = np.array([[5.5, 9.5, 9.5, 5.5], [5.7, 5.7, 8.5, 8.5]]) * 0.03
        corners = np.stack([x, y, np.zeros(4)], axis=1) @ rotation.T + translation
        cv2.fillConvexPoly(picture, np.round(project(CAMERA, corners)[0]).astype(np.int32), 110)
    pictures += pinhole_pictures(CHECKERBOARD, 12)
    camera = iw.calibrate_camera(write_photographs(tmp_path / "all", pictures), "9x7")
    assert camera.assessment.grade != "good"
    said = "the pictures show a checkerboard of 9 x 6 inner corners; the target says 9 x 7"
    assert camera.assessment.reasons[0].startswith(said)


def test_no_board_is_there(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (2, 480, 640), dtype=np.uint8)
    folder = write_photographs(tmp_path / "photos", list(noise))
    with pytest.raises(InputError, match=r"no board is recognised in .* such as --board 9x6@25mm"):
        iw.calibrate_camera(folder)


def test_cameras_of_two_sizes(photographs: Path, tmp_path: Path) -> None:
    other = write_photographs(tmp_path / "other", [np.zeros((100, 200), np.uint8)])
    with pytest.raises(InputError, match=r"200 x 100 pixels, other footage 640 x 480"):
        iw.calibrate_camera([photographs, photographs / "photo01.png", other])
