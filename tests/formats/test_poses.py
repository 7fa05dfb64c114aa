"""poses.csv: every digit there and back, and files that are not it."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.poses import read_poses, write_poses

POSES = np.random.default_rng(0).standard_normal((3, 12))
VIEWS = [4, 17, 230]


def test_there_and_back(tmp_path: Path) -> None:
    write_poses(tmp_path / "poses.csv", VIEWS, POSES)
    np.testing.assert_array_equal(read_poses(tmp_path / "poses.csv", VIEWS), POSES)
    header = (tmp_path / "poses.csv").read_text().splitlines()[0]
    assert header == "view,r00,r01,r02,r10,r11,r12,r20,r21,r22,tx,ty,tz"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text.replace("view,r00", "view,x"),
        lambda text: text.replace("17,", "18,", 1),
        lambda text: text[: len(text) // 2],
        lambda text: text.rstrip().rpartition("\n")[0],
        lambda text: text.replace("4,", "4,nan,", 1),
        lambda text: text.replace("\n4,", "\nfour,"),
        lambda text: text + "1,2\n",
    ],
)
def test_other_files(tmp_path: Path, spoil) -> None:
    path = tmp_path / "poses.csv"
    write_poses(path, VIEWS, POSES)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InputError, match="does not hold the poses of the 3 views"):
        read_poses(path, VIEWS)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_poses(tmp_path / "poses.csv", VIEWS)
