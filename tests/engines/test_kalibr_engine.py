"""A Kalibr that is driven: what it is asked, what its answers become, and all that goes wrong."""

import json
import os
import shutil
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import RECIPES, Recipe, override
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.engines.engine import replaced_recipe
from influx_wrap.engines.kalibr import LocalKalibr
from influx_wrap.engines.kalibr_engine import KalibrEngine
from influx_wrap.engines.kalibr_runs import ANSWERS
from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr import read_observations, read_target
from influx_wrap.formats.rosbag import image_topic
from influx_wrap.model.target import PointCloud
from tests.calibrate.scenes import CAMERA, IMAGE_SIZE, board_scene
from tests.engines.standin import FORK_HELP, UPSTREAM_HELP, install

SCENE = board_scene(3, 12)
INFLUX = replace(RECIPES["influx"], rollouts=6)
FOCAL_PX = 1080.5
ALL_VIEWS = "this Kalibr did not say which views it kept: residuals are of all views"
KEPT = [0, 2, 3, 4, 6, 7, 8, 11]
REMOVED = "Kalibr removed 2 corners and does not say which: residuals are of all corners"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``engine(by_seed={...})``: an engine whose Kalibr is the stand-in."""

    def make(timeout_s: float = 60.0, bag: Path | None = None, **facts: Any) -> KalibrEngine:
        folder = install(tmp_path / "bin", CAMERA.array, IMAGE_SIZE, **facts)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return KalibrEngine(LocalKalibr(), tmp_path / "runs", 2, timeout_s, bag)

    return make


def run(engine: KalibrEngine, recipe: Recipe = INFLUX, seed: int = 7) -> Calibration:
    return engine.calibrate(SCENE.observations, recipe, name="z0f0", focal_px=FOCAL_PX, seed=seed)


def asked(tmp_path: Path, k: int) -> dict[str, Any]:
    text = (tmp_path / "runs" / "z0f0" / f"rollout-{k:03d}" / "asked.json").read_text()
    values: dict[str, Any] = json.loads(text)
    return values


def test_answer(engine: Any, tmp_path: Path) -> None:
    progress: list[tuple[int, int | None]] = []
    answer = engine().calibrate(
        SCENE.observations, INFLUX, name="z0f0", focal_px=FOCAL_PX, seed=7,
        progress=lambda *done: progress.append(done),
    )  # fmt: skip
    assert progress == [(done, 6) for done in (1, 2, 3, 4, 5, 6)]
    values = np.array([report.intrinsics.array for report in answer.rollouts])
    # The paper's choice, by hand.
    low, high = np.percentile(values[:, :4], [25, 75], axis=0)
    distance = np.maximum(low - values[:, :4], values[:, :4] - high)
    inside = np.flatnonzero((distance <= 1.5 * (high - low)).all(axis=1))
    medians = np.median(values[inside, :4], axis=0)
    deviations = np.abs(values[inside, :4] / medians - 1).sum(axis=1)
    assert answer.selected == inside[np.argmin(deviations)]
    assert np.array_equal(answer.intrinsics.array, values[answer.selected])
    np.testing.assert_allclose(answer.intrinsics.array, CAMERA.array, rtol=1e-4)
    assert answer.residuals.rms_px == pytest.approx(0.1, rel=0.1)
    assert answer.warnings == (ALL_VIEWS,)
    record = answer.as_dict()
    json.dumps(record, allow_nan=False)
    runs = record["engine"]["runs"]
    assert [r["seed"] for r in runs] == [7000, 7001, 7002, 7003, 7004, 7005]
    sigma = runs[0]["sigma"]
    assert [sigma["fx"], sigma["cy"], sigma["k1"], sigma["p2"]] == [1.0, 4.0, 0.1, 0.4]
    assert record["rollouts"][0]["views_used"] is None
    assert str(tmp_path) not in json.dumps(record)


def test_what_it_is_asked(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(engine())
    folder = tmp_path / "runs" / "z0f0"
    told = asked(tmp_path, 3)
    assert told["arguments"] == [
        *("--target", f"{folder}/target.yaml", "--models", "pinhole-radtan"),
        *("--topics", "/cam0/image_raw", "--dont-show-report", "--export-poses"),
        *("--detection-coords", f"{folder}/coords_2d.csv"),
        *("--detection-successes", f"{folder}/successes.csv"),
        *("--image-width", "1280", "--image-height", "960"),
        *("--report-dir", f"{folder}/rollout-003", "--init-mode", "fixed_point"),
    ]
    assert told["environment"]["FOCAL_LENGTH_GUESS"] == "1080.5"
    assert told["environment"]["INFLUX_SEED"] == "7003"
    assert told["environment"]["MPLBACKEND"] == "Agg"
    target = read_target(folder / "target.yaml")
    read = read_observations(folder / "coords_2d.csv", folder / "successes.csv", target, IMAGE_SIZE)
    assert np.array_equal(read.valid, SCENE.observations.valid)
    np.testing.assert_allclose(
        read.uv[read.valid], SCENE.observations.uv[read.valid], rtol=0, atol=1e-9
    )
    assert (folder / "rollout-003" / "kalibr.log").read_text() == "seed 7003\n"


def test_a_recipe_becomes_options(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCAL_LENGTH_GUESS", "1")
    settings = {
        "rollouts": "1",
        "shuffle": "false",
        "information_gain_bits": "0.5",
        "min_views_outlier": "30",
        "remove_outliers": "false",
    }
    run(engine(), override(RECIPES["stock"], settings))
    told = asked(tmp_path, 0)
    assert told["arguments"][-8:] == [
        *("--init-mode", "default", "--no-shuffle", "--mi-tol", "0.5"),
        *("--min-views-outlier", "30", "--no-outliers-removal"),
    ]
    # Stock finds its focal length itself, whatever is in the caller's environment.
    assert told["environment"]["FOCAL_LENGTH_GUESS"] is None


def test_bad_runs_cost_only_themselves(engine: Any, tmp_path: Path) -> None:
    values = CAMERA.array.tolist()
    misdeeds = ("crash", "kill", "hang", "nothing", "rubbish", "abort", [-5.0, *values[1:]])
    misdeeds = (*misdeeds, values[:7], "diverge")
    behaviours = {str(7000 + k): misdeed for k, misdeed in enumerate(misdeeds)}
    answer = run(engine(timeout_s=1.0, by_seed=behaviours), replace(INFLUX, rollouts=11))
    failures = [run["failure"] for run in answer.engine["runs"]]
    assert failures[9:] == [None, None]
    assert failures[8].startswith(
        "ended well but left no camchain: its optimisation diverged three times (Max. attemps"
    )
    assert answer.engine["runs"][8]["restarts"] == 2
    assert failures[0] == "ended with exit code 1 (Initialization of focal length failed)"
    assert failures[1].startswith("was killed, from outside or because memory ran out")
    assert failures[2] == "did not end within 1 s (seed 7002)"
    assert failures[3] == "ended well but left no camchain (seed 7003)"
    assert failures[4].startswith("left a result that cannot be used: cam-camchain.yaml, line")
    assert failures[5].startswith("was ended by signal 6")
    assert "a focal length must be positive" in failures[6]
    assert "distortion_coeffs must have 4 numbers, got 3" in failures[7]
    assert answer.selected in (9, 10)
    assert answer.rollouts[0].intrinsics is None
    warning, about_views = answer.warnings
    assert about_views == ALL_VIEWS
    assert warning.startswith("9 of 11 runs of Kalibr failed; run 0 ended with exit code 1")
    assert "kalibr.log in z0f0" in warning
    log = tmp_path / "runs" / "z0f0" / "rollout-000" / "kalibr.log"
    assert "focal length failed" in log.read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(asked(tmp_path, 2)["pid"], 0)
    json.dumps(answer.as_dict(), allow_nan=False)


def test_all_runs_bad(engine: Any) -> None:
    crashing = {str(seed): "crash" for seed in range(7000, 7006)}
    with pytest.raises(CalibrationError) as caught:
        run(engine(by_seed=crashing))
    assert caught.value.stage == "kalibr"
    assert "no run of 6 gave a result; run 0 ended with exit code 1" in caught.value.reason
    assert "z0f0/rollout-000/kalibr.log" in caught.value.advice


def test_fallback_is_our_own_initialisation(engine: Any) -> None:
    off_centre = replace(CAMERA, cx=CAMERA.cx + 40).array
    behaviours = {str(seed): off_centre.tolist() for seed in range(7000, 7006)}
    answer = run(engine(by_seed=behaviours))
    ours = calibrate(SCENE.observations, replace(INFLUX, rollouts=1), focal_px=FOCAL_PX)
    assert answer.selected == "initialization"
    assert answer.intrinsics == ours.stages["initialisation"]
    assert "% off the centre" in answer.warnings[0]
    assert "influx_wrap's" in answer.warnings[1]


def test_fences_and_choice_are_those_of_our_own_rollouts(engine: Any) -> None:
    outlier = replace(CAMERA, fx=1.2 * CAMERA.fx).array
    answer = run(engine(by_seed={"7002": outlier.tolist()}))
    assert not answer.rollouts[2].inside_fences
    assert answer.rollouts[2].score is None
    assert answer.selected != 2


def test_answers_do_not_depend_on_what_was_there(engine: Any, tmp_path: Path) -> None:
    first = run(engine(), replace(INFLUX, rollouts=3))
    left = tmp_path / "runs" / "z0f0" / "rollout-000" / "old-camchain.yaml"
    left.write_text("cam0: {}")
    theirs = tmp_path / "runs" / "z0f0" / "notes.txt"
    theirs.write_text("mine")
    again = run(engine(), replace(INFLUX, rollouts=2))
    assert again.engine["runs"][0]["failure"] is None
    assert again.rollouts[0].intrinsics == first.rollouts[0].intrinsics
    assert not (tmp_path / "runs" / "z0f0" / "rollout-002").exists()
    assert theirs.exists()


def test_points_come_without_keys_of_our_own(engine: Any, tmp_path: Path) -> None:
    grid = SCENE.observations.target
    cloud = PointCloud(grid.points, point_sigma=1e-4)
    observations = replace(SCENE.observations, target=cloud)
    engine().calibrate(
        observations, replace(INFLUX, rollouts=1), name="z0f0", focal_px=FOCAL_PX, seed=7
    )
    text = (tmp_path / "runs" / "z0f0" / "target.yaml").read_text()
    assert "pointcloud" in text
    assert "pointSigma" not in text


def test_interrupted(engine: Any, tmp_path: Path) -> None:
    """Ctrl-C, as the progress of a first run that ends: nothing goes on behind our back."""
    hanging = {str(seed): "hang" for seed in range(7001, 7006)}
    kalibr = engine(by_seed=hanging)

    def interrupt(done: int, total: int | None) -> None:
        while not (tmp_path / "runs/z0f0/rollout-001/asked.json").exists():
            time.sleep(0.01)
        time.sleep(0.05)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kalibr.calibrate(
            SCENE.observations, INFLUX, name="z0f0", focal_px=FOCAL_PX, seed=7, progress=interrupt
        )
    assert not [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor")]
    with pytest.raises(ProcessLookupError):
        os.kill(asked(tmp_path, 1)["pid"], 0)
    assert not (tmp_path / "runs/z0f0/rollout-005").exists()


def test_our_own_command_is_no_kalibr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "kalibr_calibrate_cameras"
    module = "influx_wrap.cli.kalibr.kalibr_calibrate_cameras"
    script.write_text(f"#!{sys.executable}\nfrom {module} import main\nmain()\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(InputError, match=r"own imitation, not a Kalibr: put the folder of a real"):
        run(KalibrEngine(LocalKalibr(), tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_what_it_prints_is_in_the_result(engine: Any) -> None:
    answer = run(engine(kept=KEPT))
    assert [view.view for view in answer.views if view.used] == KEPT
    assert {view.reason for view in answer.views if not view.used} == {"Kalibr did not keep it"}
    assert answer.warnings == (REMOVED,)
    told = answer.rollouts[0]
    assert (told.views_used, told.corners_removed, told.restarts) == (len(KEPT), 2, 0)
    assert answer.n_corners_removed == 2
    begun = answer.stages["initialisation"]
    assert (begun.fx, begun.k1) == (1000.5, CAMERA.k1)
    run_0 = answer.as_dict()["engine"]["runs"][0]
    assert run_0["initialisation"]["fx"] == 1000.5
    assert run_0["views_used"] == len(KEPT)


def test_fallback_is_kalibr_s_own_initialisation(engine: Any) -> None:
    off_centre = replace(CAMERA, cx=CAMERA.cx + 40).array
    behaviours = {str(seed): off_centre.tolist() for seed in range(7000, 7006)}
    answer = run(engine(by_seed=behaviours, kept=KEPT))
    assert answer.selected == "initialization"
    assert answer.intrinsics.fx == 1000.5
    assert not [text for text in answer.warnings if "influx_wrap's" in text]


def test_views_of_other_times(engine: Any) -> None:
    """Times that are not ours say how many views there are, not which."""
    answer = run(engine(kept=[100, 101, 102]))
    assert answer.rollouts[0].views_used == 3
    assert len(answer.views_used) == 12
    assert ALL_VIEWS in answer.warnings


class TestFork:
    """Our fork: all rollouts in one start."""

    def test_answer(self, engine: Any, tmp_path: Path) -> None:
        progress: list[tuple[int, int | None]] = []
        killed = "was killed (\x1b[31m[ERROR] [1700000000.5]: why\x1b[0m)"
        kalibr = engine(help=FORK_HELP, help_code=0, kept=KEPT, by_seed={"7001": killed})
        answer = kalibr.calibrate(
            SCENE.observations, INFLUX, name="z0f0", focal_px=FOCAL_PX, seed=7,
            progress=lambda *done: progress.append(done),
        )  # fmt: skip
        assert progress[-1] == (6, 6)
        folder = tmp_path / "runs/z0f0"
        told = json.loads((folder / "rollouts/asked.json").read_text())
        assert told["focal"] == "1080.5"
        assert told["arguments"] == [
            *("--target", f"{folder}/target.yaml", "--models", "pinhole-radtan"),
            *("--topics", "/cam0/image_raw", "--dont-show-report"),
            *("--detection-coords", f"{folder}/coords_2d.csv"),
            *("--detection-successes", f"{folder}/successes.csv"),
            *("--image-width", "1280", "--image-height", "960"),
            *("--report-dir", f"{folder}/rollouts", "--init-mode", "fixed_point"),
            *("--rollouts", "6", "--rollout-jobs", "2", "--rollout-timeout", "60"),
            *("--seed", "7", "--fallback-percent", "2.0"),
        ]
        assert not list(folder.glob("rollout-*"))
        assert [one["seed"] for one in answer.engine["runs"]] == list(range(7000, 7006))
        assert answer.engine["runs"][1]["failure"] == "was killed (why)"
        assert answer.rollouts[1].intrinsics is None
        assert [view.view for view in answer.views_used] == KEPT
        assert answer.stages["initialisation"].fx == 1000.5
        sigma = answer.engine["runs"][0]["sigma"]
        assert (sigma["fx"], sigma["p2"]) == (1.0, 0.4)
        assert answer.engine["version"] == "influx_wrap patches, series 1, for Kalibr 1f60227442d2"
        assert kalibr.provenance()["engine"]["kind"] == "fork"
        json.dumps(answer.as_dict(), allow_nan=False)

    def test_refused_input(self, engine: Any) -> None:
        kalibr = engine(help=FORK_HELP, by_seed={"all": "crash"})
        with pytest.raises(CalibrationError, match=r"exit code 2 .Error: coords_2d.csv is empty"):
            run(kalibr)

    def test_no_rollout_works(self, engine: Any) -> None:
        failing = {str(seed): "ended with exit code 1" for seed in range(7000, 7006)}
        with pytest.raises(CalibrationError, match="no run of 6 gave a result; run 0 ended with"):
            run(engine(help=FORK_HELP, by_seed=failing))


class TestUpstream:
    """Upstream's Kalibr: a bag, the focal length typed, results beside the bag."""

    RECIPE = override(RECIPES["influx"], {"initialise": "single", "rollouts": "2"})

    @pytest.fixture
    def bag(self, tmp_path: Path) -> Path:
        path = tmp_path / "film.bag"
        path.write_text("pictures")
        return path

    def test_answer(self, engine: Any, tmp_path: Path, bag: Path) -> None:
        answer = run(engine(help=UPSTREAM_HELP, bag=bag), self.RECIPE)
        assert [run["failure"] for run in answer.engine["runs"]] == [None, None]
        told = asked(tmp_path, 1)
        report = tmp_path / "runs/z0f0/rollout-001"
        assert told["arguments"][-2:] == ["--bag", str(report / "pictures.bag")]
        assert "--detection-coords" not in told["arguments"]
        # At the start and at every restart.
        assert told["typed"].split() == ["1080.5"] * ANSWERS
        assert told["environment"]["KALIBR_MANUAL_FOCAL_LENGTH_INIT"] == "1"
        assert (report / "pictures-camchain.yaml").exists()
        assert not (report / "pictures.bag").exists()
        assert bag.read_text() == "pictures"

    def test_pictures_of_a_recording(self, engine: Any, tmp_path: Path) -> None:
        """A bag is made of the views' pictures, and its times are the views' numbers."""
        folder = tmp_path / "recordings" / "z0f0"
        (folder / "frames").mkdir(parents=True)
        for number in range(12):
            picture = np.full((IMAGE_SIZE[1], IMAGE_SIZE[0]), number, np.uint8)
            cv2.imwrite(str(folder / "frames" / f"{number:03d}.png"), picture)
        (folder / "recording.yaml").write_text("footage: frames\n")
        kalibr = replace(engine(help=UPSTREAM_HELP, kept=KEPT), recordings=tmp_path / "recordings")
        answer = run(kalibr, self.RECIPE)
        assert [view.view for view in answer.views_used] == KEPT
        topic = image_topic(tmp_path / "runs/z0f0/pictures.bag", "/cam0/image_raw")
        seen = [(one.time_ns, int(one.grey().max())) for one in topic.pictures()]
        assert seen == [((n + 1) * 10**9, n) for n in range(12)]

    def test_refusals(self, engine: Any, bag: Path) -> None:
        with pytest.raises(InputError, match=r"takes no corners.*--bag"):
            run(engine(help=UPSTREAM_HELP), self.RECIPE)
        with pytest.raises(InputError, match="not a file"):
            run(engine(help=UPSTREAM_HELP, bag=bag.with_name("no.bag")), self.RECIPE)
        with pytest.raises(InputError, match="initialise=single"):
            run(engine(help=UPSTREAM_HELP, bag=bag))
        with pytest.raises(InputError, match="leave --bag out"):
            run(engine(bag=bag), self.RECIPE)


def test_refused_recipes(engine: Any) -> None:
    with pytest.raises(InputError, match="takes all at once"):
        run(engine(), RECIPES["batch"])
    with pytest.raises(InputError, match="no option for outlier_sigmas"):
        run(engine(), override(RECIPES["influx"], {"outlier_sigmas": "3"}))


@pytest.mark.parametrize("given_px", [None, 1e5])
def test_focal_length_is_the_one_that_stage_3_began_at(
    engine: Any, tmp_path: Path, given_px: float | None
) -> None:
    """Without one, or with one that leads nowhere, it is found in the views, also for Kalibr."""
    answer = engine().calibrate(
        SCENE.observations, replace(INFLUX, rollouts=1), name="z0f0", focal_px=given_px, seed=7
    )
    told = float(asked(tmp_path, 0)["environment"]["FOCAL_LENGTH_GUESS"])
    assert told == answer.focal_start_px
    assert told == pytest.approx(CAMERA.fx, rel=0.1)


def test_recipe_followed(engine: Any) -> None:
    """Kalibr answers with a rollout, whatever is asked for; that is what the result says."""
    kalibr = engine()
    assert kalibr.accept(INFLUX) == replace(RECIPES["paper"], rollouts=6)
    for name in ("paper", "stock"):
        assert kalibr.accept(RECIPES[name]) == RECIPES[name]
    answer = run(kalibr)
    assert (answer.recipe.name, answer.engine["recipe"]) == ("paper", "paper")
    sentence = replaced_recipe(INFLUX, answer.recipe)
    assert sentence is not None
    assert "Recipe paper in place of influx" in sentence
    assert replaced_recipe(RECIPES["stock"], kalibr.accept(RECIPES["stock"])) is None
    with pytest.raises(InputError, match="leave --set answer=all-views out"):
        run(kalibr, override(RECIPES["paper"], {"answer": "all-views"}))


def test_another_kalibr_is_another_provenance(engine: Any, tmp_path: Path) -> None:
    kalibr = engine()
    before = kalibr.provenance()
    assert engine().provenance() == before
    with (tmp_path / "bin" / "kalibr_calibrate_cameras").open("a") as script:
        script.write("# newer\n")
    assert kalibr.provenance() != before


def test_a_workspace_s_command_is_known_by_its_sources(tmp_path: Path) -> None:
    source = tmp_path / "src" / "kalibr_calibrate_cameras"
    module = tmp_path / "src" / "kalibr_common" / "TargetExtractor.py"
    relay = tmp_path / "kalibr_calibrate_cameras"
    module.parent.mkdir(parents=True)
    for path, text in ((source, "main()"), (module, "x = 1"), (relay, f"script = '{source}'")):
        path.write_text(text)
        path.chmod(0o755)
    before = LocalKalibr(relay).identity()
    module.write_text("x = 2")
    assert LocalKalibr(relay).identity() != before
    with pytest.raises(InputError, match="neither a command nor a folder"):
        LocalKalibr(tmp_path / "nothing")


def test_no_kalibr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"not on the PATH.*--image"):
        LocalKalibr()


def test_a_kalibr_that_cannot_start(engine: Any) -> None:
    broken = engine(help="ImportError: no module named rospy", help_code=1)
    with pytest.raises(InputError, match=r"--help of .* ended with exit code 1 .ImportError"):
        broken.accept(INFLUX)


def test_kalibr_gets_only_the_environment_that_it_needs(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a Kalibr is, it need not see the tokens of who calls it."""
    secrets = {
        "AWS_SECRET_ACCESS_KEY": "s", "GITHUB_TOKEN": "s", "SSH_AUTH_SOCK": "/tmp/agent",
        "INFLUX_DRONE_TOKEN": "s", "http_proxy": "http://me:s@proxy", "DOCKER_HOST": "x",
        "LD_PRELOAD_SECRET": "s", "KALIBR_PASSWORD": "s", "PIP_INDEX_URL": "https://me:s@index",
        "XDG_RUNTIME_DIR": "/run", "DBUS_SESSION_BUS_ADDRESS": "x", "FOCAL_LENGTH_GUESS": "1",
    }  # fmt: skip
    needed = {
        "ROS_PACKAGE_PATH": "/ws/src", "ROS_DISTRO": "noetic", "CMAKE_PREFIX_PATH": "/ws/devel",
        "LD_LIBRARY_PATH": "", "LC_NUMERIC": "C", "OMP_NUM_THREADS": "3", "TMPDIR": "/tmp",
    }  # fmt: skip
    for name, text in (secrets | needed).items():
        monkeypatch.setenv(name, text)
    made = engine()
    noted = tmp_path / "environment.json"
    command = Path(shutil.which("kalibr_calibrate_cameras") or "")
    told = command.read_text()
    first, _, rest = told.partition("\n")
    dump = f"import json, os; open({str(noted)!r}, 'w').write(json.dumps(dict(os.environ)))"
    command.write_text(f"{first}\n{dump}\n{rest}")
    run(made)
    seen = json.loads(noted.read_text())
    assert seen.items() >= needed.items()
    assert {"PATH", "HOME"} <= seen.keys()
    assert secrets.keys() & seen.keys() <= {"FOCAL_LENGTH_GUESS"}
    assert seen["FOCAL_LENGTH_GUESS"] != "1"
