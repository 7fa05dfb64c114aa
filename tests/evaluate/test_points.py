"""The points of the evaluation: the built-in scene, and what is drawn from scans."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from plyfile import PlyData, PlyElement
from scipy.spatial import cKDTree
from scipy.stats import ks_2samp

from influx_wrap.errors import InputError
from influx_wrap.evaluate.points import (
    EvaluationPoints,
    PointsChoice,
    builtin,
    equal_shares,
    eth3d,
    find_scans,
    parse_points,
)
from influx_wrap.evaluate.scan_camera import CAMERA_HEIGHT_M
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from tests.scans import scan_room, turned

POINTS = builtin().points
SIZE = (3424, 2202)
WIDE = Intrinsics(2063.0, 2063.0, 1711.5, 1100.5, k1=-0.15)
TELE = Intrinsics(9700.0, 9700.0, 1711.5, 1100.5)
SEEN_BY = np.array([WIDE.array, TELE.array])
ROOM = scan_room(1.7)


def save(path: Path, points: FloatArray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.zeros(len(points), dtype=[(axis, "f4") for axis in "xyz"])
    for k, axis in enumerate("xyz"):
        rows[axis] = points[:, k]
    PlyData([PlyElement.describe(rows, "vertex")]).write(str(path))
    return path


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eth3d")
    save(folder / "office" / "dslr_scan_eval" / "scan1.ply", ROOM)
    save(folder / "office" / "dslr_scan_eval" / "scan2.ply", ROOM[:10])
    save(folder / "office" / "scan_clean" / "scan1.ply", ROOM[:10])
    save(folder / "kicker" / "scan_clean" / "scan10.ply", ROOM[:10])
    save(folder / "kicker" / "scan_clean" / "scan2.ply", turned(ROOM, 120))
    save(folder / "pipes" / "unpacked" / "here" / "scan1.ply", turned(scan_room(1.3), -50))
    (folder / "pipes" / "scans.ply").touch()
    (folder / "kicker" / "scan_clean" / "scan_alignment.mlp").touch()
    (folder / "kicker" / "scan_clean" / "scan_merged.ply").touch()
    (folder / "images").mkdir()
    return folder


def draw(folder: Path, n: int = 3000, seed: int = 0) -> EvaluationPoints:
    return eth3d(folder, n, seed, seen_by=SEEN_BY, image_size=SIZE)


def test_the_scene() -> None:
    assert POINTS.shape == (100_000, 3)
    assert np.isfinite(POINTS).all()
    assert POINTS[:, 2].min() > 0.5
    indoors, outdoors = POINTS[:50_000], POINTS[50_000:]
    assert indoors[:, 2].max() == pytest.approx(9)
    assert np.percentile(outdoors[:, 2], 90) > 50
    on_the_ground = np.isclose(POINTS[:, 1], 1.44).mean()
    assert 0.1 < on_the_ground < 0.6
    assert POINTS[:, 1].max() <= 1.44 + 1e-9


def test_the_scene_is_the_same_for_everyone() -> None:
    rounded = np.round(builtin(1000, seed=0).points, 6) + 0.0
    digest = hashlib.sha256(np.ascontiguousarray(rounded, dtype="<f8").tobytes()).hexdigest()
    assert digest == ("38df832555dfe30cccde5401803714829215b22b03734aea6c721fea7ce6b0ef")
    assert not np.array_equal(builtin(1000, seed=1).points, builtin(1000, seed=0).points)


@pytest.mark.parametrize("lens", [WIDE, TELE])
def test_scans_are_seen(scenes: Path, lens: Intrinsics) -> None:
    points = draw(scenes).points
    assert points.shape == (3000, 3)
    uv, valid = project(lens, points)
    inside = valid & ((uv >= -0.5) & (uv <= np.array(SIZE) - 0.5)).all(axis=1)
    if lens is WIDE:
        assert inside.mean() > 0.999
    else:
        assert inside.mean() > 0.01


def test_points_are_of_the_room(scenes: Path) -> None:
    """Every third of them is a scene's, on the floor, a wall or a thing in front of the camera."""
    office = draw(scenes).points[1000:2000]
    assert office[:, 1].max() == pytest.approx(CAMERA_HEIGHT_M, abs=0.03)
    assert office[:, 2].max() < 7.5
    # The camera is turned about the vertical and moved along it: distances from it stay.
    scanned = cKDTree(np.hypot(ROOM[:, 0], ROOM[:, 1])[:, None])
    off, _ = scanned.query(np.hypot(office[:, 0], office[:, 2])[:, None])
    assert off.max() < 1e-5


def test_the_same_for_everyone(scenes: Path, tmp_path: Path) -> None:
    drawn = draw(scenes)
    np.testing.assert_array_equal(draw(scenes).points, drawn.points)
    assert not np.array_equal(draw(scenes, seed=1).points, drawn.points)
    fewer = draw(scenes, n=30).points
    for k in range(3):
        np.testing.assert_array_equal(
            fewer[10 * k : 10 * k + 10], drawn.points[1000 * k : 1000 * k + 10]
        )
    (tmp_path / "office").symlink_to(scenes / "office")
    alone = draw(tmp_path, n=1000).points
    np.testing.assert_array_equal(alone, drawn.points[1000:2000])


def test_the_draw_is_fair(scenes: Path) -> None:
    """What is drawn is spread like all that is in view, from side to side and in depth."""
    all_of_it = draw(scenes / "office", n=10**6).points
    few = draw(scenes / "office", n=2000).points
    assert len(all_of_it) > 9 * len(few)
    for values in (lambda p: p[:, 0] / p[:, 2], lambda p: p[:, 1] / p[:, 2], lambda p: p[:, 2]):
        assert ks_2samp(values(few), values(all_of_it)).pvalue > 0.05
    assert len(np.unique(few, axis=0)) == len(few)


def test_source_says_what_was_used(scenes: Path) -> None:
    assert draw(scenes).source == (
        "eth3d (3 scenes: kicker, office, pipes; first scans of dslr_scan_eval, here, scan_clean; "
        "seed 0)"
    )
    assert builtin(10).source == "builtin"


def test_which_scan(scenes: Path) -> None:
    found = {name: str(path.relative_to(scenes)) for name, path in find_scans(scenes).items()}
    assert found == {
        "kicker": "kicker/scan_clean/scan2.ply",
        "office": "office/dslr_scan_eval/scan1.ply",
        "pipes": "pipes/unpacked/here/scan1.ply",
    }
    assert list(find_scans(scenes / "office")) == ["office"]


def test_cameras_by_hand(tmp_path: Path) -> None:
    save(tmp_path / "office" / "scan_clean" / "scan1.ply", ROOM)
    camera = {"position": [0, 0, 0.5], "forward": [-2, 0, 0], "up": [0, 0, 1]}
    (tmp_path / "cameras.json").write_text(json.dumps({"office": camera}))
    drawn = draw(tmp_path)
    assert drawn.points[:, 2].max() == pytest.approx(3, abs=1e-5)
    assert "cameras of office from cameras.json" in drawn.source


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1: this is not JSON"),
        ("[]", "mapping"),
        ('{"attic": {}}', "attic is not known here; the keys are office"),
        ('{"office": 3}', "office must be a mapping"),
        ('{"office": {"position": [0, 0, 0], "forward": [1, 0, 0]}}', "office: up is missing"),
        ('{"office": {"position": [0, 0], "forward": [1, 0, 0], "up": [0, 0, 1]}}', "3 numbers"),
        ('{"office": {"position": [0, 0, NaN], "forward": [1, 0, 0], "up": [0, 0, 1]}}', "NaN"),
        ('{"office": {"position": [0, 0, 0], "forward": [1, 0, 0], "up": [2, 0, 0]}}',
         "office: forward and up must be"),
        ('{"office": {"position": [0, 0, 99], "forward": [0, 0, 1], "up": [1, 0, 0]}}',
         "no point is in view of the camera at .*99.*cameras.json"),
    ],
)  # fmt: skip
def test_faulty_cameras(tmp_path: Path, content: str, message: str) -> None:
    save(tmp_path / "office" / "scan_clean" / "scan1.ply", ROOM)
    (tmp_path / "cameras.json").write_text(content)
    with pytest.raises(InputError, match=message):
        draw(tmp_path)


def test_points_without_a_place_are_told(tmp_path: Path) -> None:
    points = ROOM.copy()
    points[:7] = np.nan
    save(tmp_path / "office" / "scan_clean" / "scan1.ply", points)
    drawn = draw(tmp_path)
    assert drawn.source.endswith("7 points without a place left out)")
    assert np.isfinite(drawn.points).all()


@pytest.mark.parametrize(
    ("available", "n", "shares"),
    [
        ([100, 100, 100], 9, [3, 3, 3]),
        ([100, 100, 100], 11, [4, 4, 3]),
        ([100, 2, 100], 12, [5, 2, 5]),
        ([1, 2, 3], 100, [1, 2, 3]),
        ([7, 1, 100], 100, [7, 1, 92]),
    ],
)
def test_equal_shares(available: list[int], n: int, shares: list[int]) -> None:
    assert equal_shares(available, n) == shares


def test_progress(scenes: Path) -> None:
    heard: list[tuple[int, int]] = []
    choice = PointsChoice(scenes / "office")
    choice.load(SEEN_BY, SIZE, lambda done, total: heard.append((done, total)))
    assert heard == [(0, 1), (1, 1)]


def test_choices(tmp_path: Path) -> None:
    chosen = parse_points("builtin")
    np.testing.assert_array_equal(chosen.load(SEEN_BY, SIZE).points, POINTS)
    assert parse_points(f"eth3d:{tmp_path}") == PointsChoice(tmp_path)
    for text in ("", "eth3d", "eth3d:", "ETH3D:x", "scans", "builtin:x"):
        with pytest.raises(InputError, match="are not known; say builtin or eth3d:DIR"):
            parse_points(text)
    with pytest.raises(InputError, match="is not a folder"):
        parse_points(f"eth3d:{tmp_path / 'nowhere'}")
    with pytest.raises(InputError, match="no scene in it has a scan"):
        draw(tmp_path)


MEASURE = """
import resource, sys
from pathlib import Path
import numpy as np
from influx_wrap.evaluate.points import eth3d
def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak_mb()
seen_by = np.array([[2063.0, 2063, 1711.5, 1100.5, 0, 0, 0, 0]])
eth3d(Path(sys.argv[1]), 10_000, seen_by=seen_by, image_size=(3424, 2202))
print(peak_mb() - before)
"""


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Of a file of 120 MB, which is 240 MB as an array, only pieces are in memory."""
    path = tmp_path / "office" / "scan_clean" / "scan1.ply"
    path.parent.mkdir(parents=True)
    block = np.tile(ROOM.astype("<f4"), (46, 1))[:10_000_000]
    header = "ply\nformat binary_little_endian 1.0\nelement vertex {}\n"
    header += "".join(f"property float {axis}\n" for axis in "xyz") + "end_header\n"
    with path.open("wb") as file:
        file.write(header.format(len(block)).encode())
        block.tofile(file)
    assert path.stat().st_size > 110e6
    del block
    answer = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert float(answer.stdout) < 100
