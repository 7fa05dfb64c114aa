"""Rollouts in one start: children that go on with a made-up Kalibr, well or not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patches.fork import extract_modules

# What Kalibr's main does around the hooks; a child misbehaves as its seed is told to.
MAIN = """
import argparse, atexit, json, os, random, signal, sys, time
from types import SimpleNamespace
import numpy as np
import kalibr_camera_calibration as kcc
from kalibr_camera_calibration import influx_hooks

parser = argparse.ArgumentParser()
parser.add_argument("--models", nargs="+")
parser.add_argument("--topics", nargs="+")
parser.add_argument("--target", dest="targetYaml")
parser.add_argument("--bag", dest="bagfile")
parser.add_argument("--by-seed", type=json.loads)
influx_hooks.add_arguments(parser)
parsed = parser.parse_args()
influx_hooks.begin(parsed)


class Block:
    def __init__(self, values):
        self.values = np.array(values, dtype=float)

    def getParameters(self):
        return self.values.reshape(-1, 1)

    def setParameters(self, values):
        self.values = values.flatten()


projection, distortion = Block([1100, 1101, 639.5, 479.5]), Block([-0.1, 0.01, 0, 0])
projection.distortion = lambda: distortion
projection.ru, projection.rv = lambda: 1280, lambda: 960
camera = SimpleNamespace(geometry=SimpleNamespace(projection=lambda: projection))
atexit.register(print, "tidied up")
influx_hooks.name_results(parsed)
influx_hooks.run_rollouts(parsed, [camera], None)

number = int(os.path.basename(os.path.dirname(parsed.bagfile))[-3:])
does = parsed.by_seed.get(str(number), "answer")
order = list(range(9))
random.shuffle(order)
print("order", order, flush=True)
if does == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if does == "crash":
    raise SystemExit(1)
if does == "hang":
    time.sleep(60)
if does == "give up":
    print("Max. attemps reached... Giving up...")
    raise SystemExit(0)
values = projection.values + [0.01 * order[i] for i in range(4)]
if isinstance(does, list):
    values[:] = does
if does == "nan":
    values[0] = np.nan
print("Removed 3 outlier corners.")
kcc.generateReport()
stem = os.path.splitext(parsed.bagfile)[0]
intrinsics = str(values.tolist()).replace("nan", ".nan")
kcc.write_camchain(stem + "-camchain.yaml", intrinsics, [0, 0, 0, 0])
with open(stem + "-results-cam.txt", "w") as file:
    file.write("text %d" % number)
assert parsed.exportPoses
with open(stem + "-poses-cam0.csv", "w") as file:
    file.write("#timestamp, ...\\n2000000000,0\\n7000000000,0\\n")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = extract_modules(tmp_path_factory.mktemp("modules"))
    (folder / "main.py").write_text(MAIN)
    (folder / "target.yaml").write_text("target_type: pointcloud\n")
    for name in ("coords.csv", "successes.csv"):
        (folder / name).write_text("")
    return folder


def start(
    place: Path, out: Path, *options: object, by_seed: dict[int, Any] | None = None
) -> tuple[int, str, dict[str, Any]]:
    """Exit code, what was printed, and the content of the rollouts' file."""
    given = [
        *("--models", "pinhole-radtan", "--topics", "/cam0/image_raw"),
        *("--target", place / "target.yaml", "--detection-coords", place / "coords.csv"),
        *("--detection-successes", place / "successes.csv"),
        *("--image-width", 1280, "--image-height", 960, "--report-dir", out),
        *("--by-seed", json.dumps(by_seed or {})),
        *options,
    ]
    done = subprocess.run(
        [sys.executable, str(place / "main.py"), *map(str, given)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(place)},
    )
    path = out / "calib-rollouts.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return done.returncode, done.stdout + done.stderr, found


def test_all_in_one_start(place: Path, tmp_path: Path) -> None:
    options = ("--rollouts", 5, "--rollout-jobs", 2, "--seed", 4)
    code, said, found = start(place, tmp_path, *options)
    assert code == 0, said
    assert said.startswith("influx_wrap patches, series 1, for Kalibr 1f60227442d2\n")
    assert "rollout 3 has ended" in said
    assert said.count("tidied up") == 1
    assert found["initialization"] == [1100, 1101, 639.5, 479.5, -0.1, 0.01, 0, 0]
    assert [one["seed"] for one in found["rollouts"]] == [4000, 4001, 4002, 4003, 4004]
    assert len({tuple(one["camera"]) for one in found["rollouts"]}) == 5
    for k, one in enumerate(found["rollouts"]):
        assert one["views"] == [2, 7]
        assert one["corners_removed"] == 3
        log = (tmp_path / f"calib-rollout-{k:03d}" / "kalibr.log").read_text()
        assert log.startswith("order")
        assert "tidied up" not in log
    chosen = found["chosen"]
    assert found["camera"] == found["rollouts"][chosen]["camera"]
    camchain = yaml.safe_load((tmp_path / "calib-camchain.yaml").read_text())["cam0"]
    assert camchain["intrinsics"] + camchain["distortion_coeffs"] == found["camera"]
    assert (tmp_path / "calib-results-cam.txt").read_text() == f"text {chosen}"
    again = start(place, tmp_path / "again", *options)[2]
    assert [one["camera"] for one in again["rollouts"]] == [
        one["camera"] for one in found["rollouts"]
    ]


def test_bad_rollouts_cost_only_themselves(place: Path, tmp_path: Path) -> None:
    bad = {0: "kill", 1: "crash", 2: "hang", 3: "give up", 4: "nan", 5: [-1, 1, 1, 1]}
    options = ("--rollouts", 8, "--rollout-jobs", 4, "--rollout-timeout", 1)
    code, said, found = start(place, tmp_path, *options, by_seed=bad)
    assert code == 0, said
    failures = [one["failure"] for one in found["rollouts"]]
    assert failures[0].startswith("was killed, from outside or because memory ran out (order")
    assert failures[1].startswith("ended with exit code 1")
    assert failures[2].startswith("did not end within 1 s")
    assert failures[3].startswith("ended well but left no camchain (Max. attemps reached")
    assert failures[4].startswith("ended at intrinsics that no camera has ([nan")
    assert "no camera has" in failures[5]
    assert failures[6:] == [None, None]
    assert found["chosen"] in (6, 7)


def test_no_rollout_works(place: Path, tmp_path: Path) -> None:
    code, said, found = start(place, tmp_path, "--rollouts", 2, by_seed={0: "crash", 1: "give up"})
    assert code == 1
    assert "Error: no rollout of 2 gave a result; rollout 0 ended with exit code 1" in said
    assert found["chosen"] is None
    assert not (tmp_path / "calib-camchain.yaml").exists()


def test_fallback(place: Path, tmp_path: Path) -> None:
    off = {k: [1100, 1100, 660, 480] for k in range(2)}
    code, said, found = start(place, tmp_path, "--rollouts", 2, by_seed=off)
    assert code == 0
    assert "the answer is the initialization" in said
    assert found["falls_back"]
    assert found["drift_percent"] == pytest.approx(100 * 20.5 / 640)
    assert found["camera"] == found["initialization"]
    assert not (tmp_path / "calib-results-cam.txt").exists()
    options = ("--rollouts", 2, "--fallback-percent", "inf")
    assert not start(place, tmp_path / "never", *options, by_seed=off)[2]["falls_back"]
