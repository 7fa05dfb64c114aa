"""The wheel, in an environment that has nothing else, away from the source: the three ways in."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from influx_wrap.model.target import Checkerboard
from tests.cameras import pinhole_pictures, write_photographs
from tests.clips import write_clip

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
SOURCES = ("influx_wrap", "drone", "pyproject.toml", "README.md", "LICENSE")
TRUE = {"fx": 3000.0, "fy": 3000.0, "cx": 1712.0, "cy": 1101.0} | dict.fromkeys(
    ("k1", "k2", "p1", "p2"), 0.0
)
pytestmark = pytest.mark.system


def execute(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = f"{UV.parent}:{environment['PATH']}"
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
            shutil.copytree(ROOT / name, source / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, source)
    done = execute(UV, "build", "--quiet", "--wheel", "--out-dir", source / "dist", source)
    assert done.returncode == 0, done.stderr
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``influx-calib`` of an environment with the wheel, and without any extra."""
    place = tmp_path_factory.mktemp("environment")
    for words in (
        ("venv", "--quiet", "--python", sys.executable, place / "env"),
        ("pip", "install", "--quiet", "--python", place / "env", wheel),
    ):
        done = execute(UV, *words)
        assert done.returncode == 0, done.stderr
    return place / "env" / "bin" / "influx-calib"


def test_what_is_in_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern in (("catalogue", "*.yaml"), ("report/assets", "*.*"), (".", "*.py")):
        files = [file for file in (ROOT / "influx_wrap" / folder).rglob(pattern) if file.is_file()]
        files = [file for file in files if "__pycache__" not in file.parts]
        assert files
        assert {str(file.relative_to(ROOT)) for file in files} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]


def test_a_camera(program: Path, tmp_path: Path) -> None:
    write_photographs(tmp_path / "photos", pinhole_pictures(Checkerboard(9, 6, 0.03, 0.03), 12))
    done = execute(program, "camera", "photos", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "verdict: good" in done.stdout
    assert (tmp_path / "camera-photos" / "camera.html").stat().st_size > 100_000


def test_a_lens(program: Path, tmp_path: Path) -> None:
    done = execute(program, "run", "canon17", "--cells", "z0f1,z7f0", "--rollouts", 5, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = (tmp_path / "runs" / "canon17" / "summary.csv").read_text().splitlines()
    assert sorted(line.partition(",")[0] for line in summary[1:]) == ["z0f1", "z7f0"]
    assert (tmp_path / "runs" / "canon17" / "report.html").stat().st_size > 100_000


def test_scores(program: Path, tmp_path: Path) -> None:
    setting = {"focal_length_mm": 25.0, "focus_distance_m": 4.0}
    frame = {"intrinsics_gt": TRUE, "intrinsics_gt_extrapolated": TRUE, "lens_metadata": setting}
    about = {"method_name": "method", "intrinsics_type": "rad-tan", "version": "influx"}
    (tmp_path / "truth.json").write_text(json.dumps({"clip": {"0": frame, "1": frame}}))
    predicted = {"0": TRUE | {"fx": 3300.0}, "1": TRUE}
    method = {"submission_metadata": about, "clip": predicted}
    (tmp_path / "method.json").write_text(json.dumps(method))
    words = ("evaluate", "method.json", "--truth", "truth.json", "--out", "scores")
    done = execute(program, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scores = json.loads((tmp_path / "scores" / "scores.json").read_text())
    assert scores["percent_error"]["fx"] == pytest.approx(5.0)
    assert (tmp_path / "scores" / "report.html").exists()


def test_an_extra_is_added_by_the_line_that_names_it(program: Path, tmp_path: Path) -> None:
    """Last of all: the environment has it then."""
    pictures = pinhole_pictures(Checkerboard(9, 6, 0.03, 0.03), 12)
    write_clip(tmp_path / "clip.mp4", [picture for picture in pictures for _ in range(3)])
    camera = (program, "camera", "clip.mp4", "--recipe", "batch")
    refused = execute(*camera, cwd=tmp_path)
    assert refused.returncode == 2
    pasted = refused.stderr.strip().rpartition(": ")[2].rstrip(".")
    added = execute("bash", "-c", pasted, cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    again = execute(*camera, cwd=tmp_path)
    assert again.returncode in (0, 1), again.stderr
    assert "fx" in again.stdout
