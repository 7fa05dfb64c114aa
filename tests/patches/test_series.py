"""The series: added lines only, in the places they are for, and on no other version."""

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from influx_wrap.engines.kalibr_fork import (
    PatchSeries,
    make_fork,
    patched_files,
    read_series,
    recognise_checkout,
)
from influx_wrap.errors import InputError
from tests.patches.fork import PACKAGE, PYTHON, added_after, git, make_upstream, real_checkout

SERIES = read_series()
# After which of upstream's lines, and how many.
PLACES = {
    "kalibr_calibrate_cameras": {12: 1, 26: 2, 82: 1, 122: 2, 139: 1, 209: 2},
    "kalibr_camera_calibration/CameraCalibrator.py": {10: 1, 48: 1, 60: 3, 118: 2},
    "kalibr_common/ConfigReader.py": {542: 1, 552: 3},
    "kalibr_common/TargetExtractor.py": {34: 2},
}
RUFF = """
line-length = 100
target-version = "py38"
[lint]
select = ["E", "F", "I", "UP", "B", "NPY", "RUF", "SIM", "C4", "PIE", "RET"]
# Types as Python 3.8 spells them.
ignore = ["UP006", "UP007", "UP035", "UP045", "B905"]
[lint.per-file-ignores]
# Later patches add a line for each import.
"influx_hooks.py" = ["I001"]
[lint.isort]
known-first-party = ["kalibr_camera_calibration"]
"""


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PatchSeries]:
    folder = tmp_path_factory.mktemp("upstream")
    return folder, make_upstream(folder)


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory, upstream: tuple[Path, PatchSeries]) -> Path:
    folder = tmp_path_factory.mktemp("clone") / "kalibr"
    assert make_fork(folder, upstream[1])
    return folder


@pytest.mark.parametrize("path", SERIES.patches, ids=lambda path: path.name)
def test_nothing_of_kalibr_is_in_a_patch(path: Path) -> None:
    header, _, body = path.read_text().partition("\ndiff --git ")
    assert "Paper:" in header
    for line in f"diff --git {body}".splitlines():
        is_name = line.startswith(("diff --git ", "new file mode ", "--- a/", "+++ b/"))
        is_place = re.fullmatch(r"@@ -\d+,0 \+\d+(,\d+)? @@", line)
        assert is_name or is_place or line == "--- /dev/null" or line.startswith("+"), line


def test_numbered() -> None:
    numbers = [int(path.name[:4]) for path in SERIES.patches]
    assert numbers == list(range(1, len(numbers) + 1))
    ours = {name for name in patched_files(SERIES) if "/influx_" in name}
    assert patched_files(SERIES) - ours == set(SERIES.files)


def test_places(fork: Path) -> None:
    original = [f"line {number}" for number in range(1, 701)]
    for name, places in PLACES.items():
        added = list(added_after(fork / PYTHON / name, original))
        assert Counter(at for at, _ in added) == places, name
        assert all("influx_hooks" in line or at in (34, 118, 122, 542, 552) for at, line in added)


def test_fork_is_made_once(fork: Path, upstream: tuple[Path, PatchSeries]) -> None:
    series = upstream[1]
    before = git(fork, "status", "--short")
    assert not make_fork(fork, series)
    assert git(fork, "status", "--short") == before
    assert recognise_checkout(fork, series).kind == "fork"
    assert recognise_checkout(upstream[0], series).kind == "upstream"
    with pytest.raises(InputError, match="leave --from out"):
        make_fork(fork, series, repository="elsewhere")


@pytest.mark.parametrize("name", PLACES)
def test_other_versions_are_refused_by_name(
    tmp_path: Path, upstream: tuple[Path, PatchSeries], name: str
) -> None:
    folder = tmp_path / "kalibr"
    shutil.copytree(upstream[0], folder)
    path = folder / PYTHON / name
    path.write_text(path.read_text().replace("line 3\n", "line three\n"))
    with pytest.raises(InputError, match=f"{re.escape(name)} is not that of Kalibr"):
        make_fork(folder, upstream[1])
    assert not (folder / PACKAGE / "influx_run.py").exists()
    found = recognise_checkout(folder, upstream[1])
    assert found.kind == "upstream"
    assert name in str(found)


def test_another_fork_is_refused(tmp_path: Path, upstream: tuple[Path, PatchSeries]) -> None:
    folder = tmp_path / "kalibr"
    make_fork(folder, upstream[1])
    path = folder / PACKAGE / "influx_focal.py"
    path.write_text(path.read_text().replace("PROMPT", "QUESTION"))
    with pytest.raises(InputError, match="not by these patches alone"):
        make_fork(folder, upstream[1])


def test_without_git_history(tmp_path: Path, upstream: tuple[Path, PatchSeries]) -> None:
    """A tarball, inside the repository of somebody else."""
    git(tmp_path, "init", "--quiet")
    folder = tmp_path / "deep" / "kalibr"
    shutil.copytree(upstream[0], folder, ignore=shutil.ignore_patterns(".git"))
    assert make_fork(folder, upstream[1])
    assert (folder / PACKAGE / "influx_run.py").exists()


def test_no_repository(tmp_path: Path, upstream: tuple[Path, PatchSeries]) -> None:
    folder = tmp_path / "kalibr"
    with pytest.raises(InputError, match="git clone failed"):
        make_fork(folder, upstream[1], repository=str(tmp_path / "nothing"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a folder"):
        make_fork(tmp_path / "file", upstream[1])
    with pytest.raises(InputError, match="no checkout of Kalibr"):
        recognise_checkout(tmp_path, upstream[1])
    with pytest.raises(InputError, match="clone influx_wrap"):
        read_series(tmp_path)


def test_another_commit_of_the_repository(
    tmp_path: Path, upstream: tuple[Path, PatchSeries]
) -> None:
    with pytest.raises(InputError, match="git checkout failed"):
        make_fork(tmp_path / "kalibr", SERIES, repository=str(upstream[0]))
    assert list(tmp_path.iterdir()) == []


def test_modules_are_clean(fork: Path, tmp_path: Path) -> None:
    modules = sorted((fork / PACKAGE).glob("influx_*.py"))
    assert len(modules) == 8
    for path in modules:
        tree = ast.parse(path.read_text(), feature_version=(3, 8))
        assert ast.get_docstring(tree)
    (tmp_path / "ruff.toml").write_text(RUFF)
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--no-cache", "--config", str(tmp_path / "ruff.toml"), *map(str, modules)]
    for action in (["check"], ["format", "--check"]):
        done = subprocess.run([*ruff, *action, *config], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_modules_are_typed(fork: Path, tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports"),
        *("--allow-subclassing-any", "--config-file", "", "--cache-dir", str(tmp_path)),
        # numpy's own types are not what is checked here, and take long to read.
        *("--follow-imports", "skip", "--allow-any-generics", "--no-warn-return-any"),
        *("--namespace-packages", "--explicit-package-bases"),
        *map(str, sorted((fork / PACKAGE).glob("influx_*.py"))),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=fork / PYTHON)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(real_checkout() is None, reason="INFLUX_KALIBR_CHECKOUT names no checkout")
def test_real_checkout(tmp_path: Path) -> None:
    checkout = real_checkout()
    assert checkout is not None
    folder = tmp_path / "kalibr"
    assert make_fork(folder, SERIES, repository=str(checkout.resolve()))
    for name, places in PLACES.items():
        original = git(folder, "show", f"HEAD:{PYTHON / name}").splitlines()
        added = list(added_after(folder / PYTHON / name, original))
        assert Counter(at for at, _ in added) == places, name
        compile((folder / PYTHON / name).read_text(), name, "exec")
    assert recognise_checkout(folder, SERIES).kind == "fork"
    assert recognise_checkout(folder, SERIES).version is not None
