"""What a real Kalibr prints and exports, written by hand after what was seen of one."""

from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr_log import read_fork_rollouts, read_log, read_pose_times

LOG = """importing libraries
Initializing cam0:
\tCamera model:\t  pinhole-radtan
\tNumber of images: 31
\tProjection initialized to: [1098.11111111 1098.22222222  639.5         411.5       ]
\tDistortion initialized to: [-0.05       0.01       0.0002
 -0.0001    ]
initializing initial guesses
\t projection cam0: [1098.11111111 1098.22222222  639.5         411.5       ]
Processed 26 of 31 views with 17 views used
[ WARN] [1700000000.5]: Optimization diverged possibly due to a bad initialization.
[ WARN] [1700000000.5]: Restarting for a new attempt...
\tProjection initialized to: [1099.25       1099.5         639.5         411.5       ]
\tDistortion initialized to: [-0.06        0.02        0.0003     -0.00020001]
[DEBUG] [1700000001.5]: Removed 5 outlier corners on batch 3
[ WARN] [1700000002.5]: Removed 12 outlier corners.

Processed 31 images with 18 images used
"""


def test_log() -> None:
    log = read_log(LOG)
    assert log.initialisation is not None
    expected = [1099.25, 1099.5, 639.5, 411.5, -0.06, 0.02, 0.0003, -0.00020001]
    assert log.initialisation.tolist() == expected
    assert (log.views_used, log.corners_removed, log.restarts) == (18, 12, 1)
    assert log.gave_up is None


def test_log_of_a_run_without_an_answer() -> None:
    text = "Initialization of focal length failed. You can enable manual input by setting ...\n"
    nan = (
        "Projection initialized to: [nan nan nan nan]\nDistortion initialized to: [nan nan nan nan]"
    )
    log = read_log(text + nan)
    assert log.initialisation is None
    assert log.gave_up == "it found no focal length"
    assert read_log("").views_used is None
    diverged = read_log(LOG + "Max. attemps reached... Giving up...")
    assert diverged.gave_up == "its optimisation diverged three times"


def test_poses(tmp_path: Path) -> None:
    path = tmp_path / "cam0-poses-cam0.csv"
    header = "#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x []\n"
    row = "1600000000050000000,0.012345,-0.100000,-0.400000,0.1,0.2,0.3,0.9\n"
    path.write_text(header + row)
    assert read_pose_times(path) == [1600000000050000000]
    path.write_text(header + "soon,1\n")
    with pytest.raises(InputError, match="begin with a time in ns"):
        read_pose_times(path)


ROLLOUTS = """{"version": "influx_wrap patches, series 1, for Kalibr 1f60227442d2", "seed": 4,
 "initialization": [1, 2, 3, 4, 5, 6, 7, 8], "chosen": 0, "rollouts": [
 {"seed": 4000, "camera": [1, 2, 3, 4, 5, 6, 7, 9], "views": [2, 7], "corners_removed": 3,
  "failure": null},
 {"seed": 4001, "camera": null, "views": null, "corners_removed": null, "failure": "was killed"}]}
"""


def test_rollouts_of_the_fork(tmp_path: Path) -> None:
    path = tmp_path / "calib-rollouts.json"
    path.write_text(ROLLOUTS)
    found = read_fork_rollouts(path)
    assert found.chosen == 0
    assert np.array_equal(found.initialisation, np.arange(1, 9))
    good, bad = found.rollouts
    assert good.theta is not None
    assert good.theta[7] == 9
    assert (good.views, good.corners_removed) == ((2, 7), 3)
    assert (bad.theta, bad.failure) == (None, "was killed")
    for old, new in (("7, 9]", "7]"), ('"was killed"', "null"), ("[2, 7]", "7"), ("{", "[")):
        path.write_text(ROLLOUTS.replace(old, new, 1))
        with pytest.raises(InputError):
            read_fork_rollouts(path)
