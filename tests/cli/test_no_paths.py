"""What is made can be given away: it says nothing of the machine, the folder or the user."""

import getpass
import shutil
from collections.abc import Iterator
from pathlib import Path

import cv2
import pytest
import yaml

from tests import mutate
from tests.cli.conftest import Invoke
from tests.clips import picture

USER = "Theodosia-Quillfeather"
"""A name that nothing else has."""
LOG = "run.log"
"""Says when what happened where, to the one who ran it."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Iterator[Path]:
    """A folder ``out`` in which every kind of command has left what it makes."""
    home = tmp_path_factory.mktemp("machine") / "home" / USER
    with pytest.MonkeyPatch.context() as patch:
        for name in ("USER", "LOGNAME", "USERNAME"):
            patch.setenv(name, USER)
        patch.setenv("HOME", str(home))
        assert getpass.getuser() == USER
        base, out = home / "files", home / "out"
        mutate.base(base)
        out.mkdir()

        def run(*arguments: object, code: int = 0) -> None:
            result = invoke(*arguments)
            assert result.exit_code == code, (arguments, result.output, result.exception)

        exp = base / "exp"
        files = ("--coords", exp / "coords_2d.csv", "--successes", exp / "successes.csv")
        sized = ("--size", "320x240", "--recipe", "batch", "--jobs", 1)
        run("calibrate", "--target", exp / "target.yaml", *files, *sized, "--out", out / "c.json")
        shutil.copytree(base / "det" / "found", out / "found")
        run("annotate", base / "clip.csv", "--lut", base / "lut.json", "--scheme", "paper",
            "--out", out / "gt.json")  # fmt: skip
        for to in ("colmap", "opentrackio", "camchain"):
            run("export", base / "gt.json", "--to", to, "--out", out / f"to-{to}")
        run("evaluate", base / "sub.json", "--truth", base / "gt.json", "--jobs", 1,
            "--out", out / "scores")  # fmt: skip
        run("lut", "plot", base / "lut.json", "--figure", out / "plots")
        run("lut", "explore", base / "lut.json", "--out", out / "explorer.html")
        run("plan", "canon17", "--out", out / "plan.json")
        (base / "photos").mkdir()
        for k in range(6):
            cv2.imwrite(str(base / "photos" / f"{k}.png"), picture(k))
        (base / "photos" / "damaged.png").write_text("no picture")
        run("camera", base / "photos", "--target", exp / "target.yaml", "--recipe", "batch",
            "--jobs", 1, "--out", out / "camera")  # fmt: skip
        _make_run(base, out / "run", run)
        yield out


def _make_run(base: Path, out: Path, run: mutate.Callable[..., None]) -> None:
    """One experiment that succeeds, and some that fail in words that name files."""
    data = base / "data"
    for name in ("good", "broken", "gone", "odd"):
        (data / name).mkdir(parents=True)
    for path in (base / "exp").iterdir():
        shutil.copy(path, data / "good")
        shutil.copy(path, data / "broken")
    about = yaml.safe_load((data / "good" / "experiment.yaml").read_text())
    for name in ("good", "broken"):
        (data / name / "experiment.yaml").write_text(yaml.safe_dump(about | {"cell": name}))
    (data / "broken" / "coords_2d.csv").write_text("1,2\n")
    recording = {"lfl_mm": 20, "fd_m": 2.0, "board": "nobody's"}
    (data / "gone" / "recording.yaml").write_text(yaml.safe_dump(recording))
    (data / "odd" / "recording.yaml").write_text(
        yaml.safe_dump({"lfl_mm": 20, "fd_m": 2.0, "target": "t.yaml", "footage": "clip.mp4"})
    )
    (data / "odd" / "t.yaml").write_bytes((base / "exp" / "target.yaml").read_bytes())
    (data / "odd" / "clip.mp4").write_text("no film")
    run("run", "canon17", "--data", data, "--out", out, "--recipe", "batch", "--jobs", 1, code=1)
    assert len(list((out / "cells").iterdir())) == 4


def test_there_is_something_to_look_at(made: Path) -> None:
    suffixes = {path.suffix for path in made.rglob("*")}
    assert suffixes >= {".json", ".html", ".csv", ".png", ".yaml", ".txt"}
    reasons = [path.read_text() for path in (made / "run" / "cells").rglob("failure.json")]
    assert len(reasons) >= 3
    assert any("coords_2d.csv" in reason for reason in reasons)
    assert any("clip.mp4" in reason for reason in reasons)
    assert USER in str(made)


def test_nothing_names_the_user_or_the_place(made: Path) -> None:
    place = str(made.parents[2]).encode()
    assert place.endswith(b"machine0")
    told = {
        str(path.relative_to(made))
        for path in made.rglob("*")
        if path.is_file() and path.name != LOG
        for word in (USER.encode(), place)
        if word in path.read_bytes()
    }
    assert told == set()
