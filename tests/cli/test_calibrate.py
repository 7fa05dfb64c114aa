"""``calibrate``: a readable answer, a complete file, and a sentence for every mistake."""

import json
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from influx_wrap.formats.experiment import read_experiment
from influx_wrap.model.intrinsics import NAMES
from tests.cli.conftest import Invoke, assert_mistake, command_line, execute

LENS = ("--lfl-mm", 17, "--fd-m", 13.5, "--pixel-um", 8.25)


def inputs(folder: Path) -> list[object]:
    return [
        *("--target", folder / "target.yaml"),
        *("--coords", folder / "coords_2d.csv"),
        *("--successes", folder / "successes.csv"),
        *("--size", "3424x2202"),
    ]


@pytest.fixture
def drone(simulated: Path, tmp_path: Path) -> Path:
    """A copy of a drone experiment, to be spoiled."""
    folder = tmp_path / "z0f9"
    folder.mkdir()
    for path in (simulated / "z0f9").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_drone(invoke: Invoke, drone: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    result = invoke("calibrate", *inputs(drone), *LENS, "--recipe", "batch", "--out", out)
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    truth = read_experiment(drone).truth
    assert truth is not None
    for name in ("fx", "fy", "cx", "cy"):
        error = record["intrinsics"][name] - getattr(truth.intrinsics, name)
        assert abs(error) < 4 * record["sigma"][name]
    assert record["status"] == "ok"
    assert record["selected"] == "batch"
    assert record["pixel_origin"] == "center"
    assert record["image_size"] == [3424, 2202]
    for text in ("fx", "± sigma", "projection uncertainty", "1 of 1 used", "residuals", "written"):
        assert text in result.output


def test_board_with_few_rollouts(invoke: Invoke, simulated: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    result = invoke(
        *("calibrate", *inputs(simulated / "z7f0"), "--focal-px", 17500),
        *("--recipe", "paper", "--rollouts", 3, "--out", out),
    )
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    assert len(record["rollouts"]) == 3
    assert record["selected"] in (0, 1, 2)
    assert "not used: adds too little information" in result.output
    assert len(record["covariance"]) == len(NAMES)


def test_without_a_focal_length(invoke: Invoke, simulated: Path, tmp_path: Path) -> None:
    """The views give one, the paper's pick stands beside the answer, and a verdict ends it."""
    out = tmp_path / "result.json"
    result = invoke("calibrate", *inputs(simulated / "z7f0"), "--rollouts", 3, "--out", out)
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    assert record["selected"] == "all-views"
    assert record["paper_pick"]["selected"] in (0, 1, 2)
    truth = json.loads((simulated / "z7f0" / "truth.json").read_text())["intrinsics"]
    assert abs(record["intrinsics"]["fx"] / truth["fx"] - 1) < 0.005
    assert record["verdict"]["grade"] in ("good", "usable with care")


def test_provenance(invoke: Invoke, drone: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    options = ("--set", "information_gain_bits=0.5", "--rollouts", 2, "--no-shuffle", "--seed", 5)
    result = invoke("calibrate", *inputs(drone), *LENS, *options, "--out", out)
    assert result.exit_code == 0, result.output
    made_from = json.loads(out.read_text())["provenance"]
    assert set(made_from["inputs"]) == {"target", "coords", "successes"}
    assert all(len(value) == 64 for value in made_from["inputs"].values())
    assert made_from["seed"] == 5
    assert made_from["recipe"]["rollouts"] == 2
    assert made_from["recipe"]["shuffle"] is False
    assert made_from["recipe"]["incremental"]["information_gain_bits"] == 0.5
    for package in ("influx_wrap", "python", "numpy", "scipy", "numba", "opencv"):
        assert made_from[package][0].isdigit()
    assert str(tmp_path) not in out.read_text()


def test_the_answer_does_not_depend_on_jobs(
    invoke: Invoke, simulated: Path, tmp_path: Path
) -> None:
    texts = []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}.json"
        options = ("--focal-px", 17500, "--rollouts", 3, "--jobs", jobs, "--out", out)
        assert invoke("calibrate", *inputs(simulated / "z7f0"), *options).exit_code == 0
        texts.append(out.read_text())
    assert texts[0] == texts[1]


def test_infinite_focus(invoke: Invoke, drone: Path, tmp_path: Path) -> None:
    lens = ("--lfl-mm", 17, "--fd-m", "inf", "--pixel-um", 8.25)
    out = tmp_path / "result.json"
    result = invoke("calibrate", *inputs(drone), *lens, "--recipe", "batch", "--out", out)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["stages"]["focal_px"] == pytest.approx(17e3 / 8.25)


def test_failure_is_a_result(invoke: Invoke, drone: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    result = invoke("calibrate", *inputs(drone), "--recipe", "stock", "--out", out)
    assert result.exit_code == 1
    assert result.stderr.startswith("Failed: focal length: ")
    assert "focal=thin-lens" in result.stderr
    record = json.loads(out.read_text())
    assert record["status"] == "failed"
    assert record["stage"] == "focal length"
    assert record["provenance"]["recipe"]["name"] == "stock"


def _empty(folder: Path) -> None:
    (folder / "coords_2d.csv").write_text("")


def _ragged(folder: Path) -> None:
    path = folder / "coords_2d.csv"
    lines = path.read_text().splitlines()
    lines[4] += ",7"
    path.write_text("\n".join(lines) + "\n")


def _nan(folder: Path) -> None:
    path = folder / "coords_2d.csv"
    lines = path.read_text().splitlines()
    lines[4] = "0,nan,12.5"
    path.write_text("\n".join(lines) + "\n")


def _unknown_target(folder: Path) -> None:
    (folder / "target.yaml").write_text("target_type: teapot\n")


def _three_points(folder: Path) -> None:
    (folder / "successes.csv").write_text("0,1\n" * 3 + "0,0\n" * 21)


def _on_a_line(folder: Path) -> None:
    points = "".join(f"- [{i}.0, {2 * i}.0, {3 * i}.0]\n" for i in range(24))
    (folder / "target.yaml").write_text(f"target_type: pointcloud\npoints:\n{points}")


def _size_mismatch(folder: Path) -> None:
    path = folder / "coords_2d.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def _missing(folder: Path) -> None:
    (folder / "successes.csv").unlink()


def _binary(folder: Path) -> None:
    (folder / "target.yaml").write_bytes(bytes(range(128, 256)))


SPOILED = [
    (_empty, "coords_2d.csv is empty"),
    (_ragged, "coords_2d.csv, line 5: 4 values instead of 3"),
    (_nan, "coords_2d.csv, line 5: the coordinates are not finite"),
    (_unknown_target, "target_type must be one of"),
    (_three_points, "only 3 points"),
    (_on_a_line, "on one line"),
    (_size_mismatch, "coords_2d.csv has 23 rows, but"),
    (_missing, "successes.csv does not exist"),
    (_binary, "target.yaml is not a text file"),
]


@pytest.mark.parametrize(("spoil", "words"), SPOILED)
def test_bad_files(
    invoke: Invoke, drone: Path, tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(drone)
    out = tmp_path / "result.json"
    assert_mistake(invoke("calibrate", *inputs(drone), *LENS, "--out", out), words)
    assert not out.exists()


def test_a_bad_file_in_a_process_of_its_own(drone: Path, tmp_path: Path) -> None:
    _ragged(drone)
    done = execute("calibrate", *inputs(drone), *LENS, "--out", tmp_path / "result.json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"Error: {drone / 'coords_2d.csv'}, line 5: ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lfl-mm", 17, "--fd-m", -2, "--pixel-um", 8.25], "'--fd-m': -2 is not above 0"),
        (["--lfl-mm", 17, "--fd-m", "nan", "--pixel-um", 8.25], "'--fd-m': nan is not a finite"),
        (["--lfl-mm", "inf", "--fd-m", 2, "--pixel-um", 8.25], "'--lfl-mm': inf is not a finite"),
        (["--lfl-mm", 120, "--fd-m", 0.2, "--pixel-um", 8.25], "cannot focus at 0.2 m"),
        (["--focal-px", 0], "'--focal-px': 0 is not above 0"),
        (["--lfl-mm", 17, "--fd-m", 2], "--lfl-mm and --fd-m given without --pixel-um"),
        (["--focal-px", 2000, "--fd-m", 2], "--focal-px and --fd-m exclude each other"),
        ([*LENS, "--set", "rollout=3"], "a recipe has no 'rollout'"),
        ([*LENS, "--set", "rollouts"], "'rollouts' is not of the form key=value"),
        ([*LENS, "--set", "rollouts=3", "--rollouts", 4], "rollouts is set twice"),
        ([*LENS, "--rollouts", 0], "'--rollouts'"),
        ([*LENS, "--size", "3424"], "'3424' is not a size"),
        ([*LENS, "--size", "1000x800"], "outside the 1000 x 800 image"),
    ],
)
def test_bad_options(
    invoke: Invoke, drone: Path, tmp_path: Path, options: list[object], words: str
) -> None:
    out = tmp_path / "result.json"
    assert_mistake(invoke("calibrate", *inputs(drone), *options, "--out", out), words)
    assert not out.exists()


def test_unwritable_outputs_are_refused_before_the_work(
    invoke: Invoke, drone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        pytest.fail("the work was begun")

    monkeypatch.setattr("influx_wrap.engines.native.calibrate", work)
    for out in (tmp_path / "missing" / "result.json", tmp_path, drone / "target.yaml" / "x.json"):
        result = invoke("calibrate", *inputs(drone), *LENS, "--out", out)
        assert_mistake(result, f"{out} cannot be written")


def test_full_disk(drone: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    done = subprocess.run(
        command_line("calibrate", *inputs(drone), "--recipe", "stock", "--out", out),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == f"Error: {out} cannot be written: File too large.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["z0f9"]


@pytest.mark.parametrize(
    "start",
    [
        ("--lfl-mm", 24, "--fd-m", 1, "--pixel-um", 0.00122),
        ("--focal-px", 1e6),
        ("--focal-px", 1e-9),
        ("--focal-px", 1e300),
    ],
)
def test_a_focal_length_that_no_camera_has(
    invoke: Invoke, simulated: Path, tmp_path: Path, start: tuple[object, ...]
) -> None:
    command = ("calibrate", *inputs(simulated / "z7f0"), *start, "--recipe", "batch")
    result = invoke(*command, "--out", tmp_path / "result.json")
    assert_mistake(result, "is no start for pictures 3424 px wide", "pixel size in micrometres")


def test_a_start_without_poses_is_a_failure_in_words(
    invoke: Invoke, simulated: Path, tmp_path: Path
) -> None:
    command = ("calibrate", *inputs(simulated / "z7f0"), "--focal-px", 3e5, "--recipe", "batch")
    result = invoke(*command, "--out", tmp_path / "result.json")
    assert result.exit_code in (0, 1), result.output
    assert isinstance(result.exception, SystemExit | None)


def test_what_contradicts_the_options_is_a_warning(
    invoke: Invoke, drone: Path, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    lens = ("--lfl-mm", 35, "--fd-m", 44.3, "--pixel-um", 8.25)
    result = invoke("calibrate", *inputs(drone), *lens, "--recipe", "batch", "--out", out)
    assert result.exit_code == 0, result.output
    warnings = json.loads(out.read_text())["warnings"]
    assert any("fx says 17.0 mm, the command says lfl_mm 35" in text for text in warnings)
    assert any("44.3 looks like feet (13.5 m)" in text for text in warnings)
    assert "looks like feet" in result.output
