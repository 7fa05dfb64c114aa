"""A run's folder: locked, resumable, and its artefacts say what they were made from."""

import fcntl
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from influx_wrap.compute.provenance import provenance
from influx_wrap.errors import InputError
from influx_wrap.model.record import CellSetting
from influx_wrap.model.result import Failure
from influx_wrap.run.workspace import Workspace
from tests.model.records import make_record, make_result

MADE_FROM = provenance(recipe={"name": "batch"}, seed=3, inputs={"target": "abc"}, focal_px=7.5)
CELL = CellSetting("z0f0", "canon17")
RESULT = make_record(make_result(corner_sigma_px=0.1 + 0.2), CELL, provenance=MADE_FROM)
FAILURE = make_record(Failure("pose", "why", "what to do"), CELL, provenance=MADE_FROM)


def found(workspace: Workspace) -> dict[str, Any] | None:
    record = workspace.finished("z0f0", MADE_FROM)
    return None if record is None else json.loads(json.dumps(record.as_dict()))


def test_results_are_found_again(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert workspace.finished("z0f0", MADE_FROM) is None
    workspace.save(RESULT)
    assert found(workspace) == json.loads(json.dumps(RESULT.as_dict()))
    assert workspace.finished("z0f1", MADE_FROM) is None


@pytest.mark.parametrize(
    "change", [{"seed": 4}, {"recipe": {"name": "stock"}}, {"inputs": {}}, {"influx_wrap": "9"}]
)
def test_results_of_other_work_are_not(tmp_path: Path, change: dict[str, Any]) -> None:
    workspace = Workspace(tmp_path)
    workspace.save(RESULT)
    assert workspace.finished("z0f0", MADE_FROM | change) is None


def test_failures_are_tried_again(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.save(FAILURE)
    assert workspace.finished("z0f0", MADE_FROM) is None
    assert json.loads(workspace.failure("z0f0").read_text()) == FAILURE.as_dict()


def test_a_cell_has_a_result_or_a_failure(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.save(RESULT)
    workspace.save(FAILURE)
    assert not workspace.result("z0f0").exists()
    workspace.save(RESULT)
    assert not workspace.failure("z0f0").exists()


def test_a_failure_left_by_a_kill_between_write_and_removal_goes(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.save(RESULT)
    workspace.failure("z0f0").write_text("{}")
    assert found(workspace) == json.loads(json.dumps(RESULT.as_dict()))
    assert not workspace.failure("z0f0").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"status": "ok"}', "null", "\x00"])
def test_spoiled_results_are_computed_again(tmp_path: Path, text: str) -> None:
    workspace = Workspace(tmp_path)
    workspace.save(RESULT)
    workspace.result("z0f0").write_text(text)
    assert workspace.finished("z0f0", MADE_FROM) is None


def test_one_run_at_a_time(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "run")
    with (
        workspace.open(),
        pytest.raises(InputError, match="in use by another run"),
        Workspace(tmp_path / "run").open(),
    ):
        pass
    with workspace.open():
        pass


def test_the_lock_is_the_log(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "run")
    with workspace.open():
        logging.getLogger("influx_wrap.somewhere").info("a message")
    logging.getLogger("influx_wrap.somewhere").info("another")
    text = workspace.log.read_text()
    assert "a message" in text
    assert "another" not in text
    with workspace.log.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_full_disk_costs_the_log_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "run")
    workspace.root.mkdir()
    workspace.log.symlink_to("/dev/full")
    with workspace.open():
        for _ in range(1000):
            logging.getLogger("influx_wrap.somewhere").info("a message that fills a buffer")
    assert capsys.readouterr().err == ""


def test_leftovers_of_killed_writers_go(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with workspace.open():
        workspace.save(RESULT)
    leftover = workspace.result("z0f0").with_name(".result.json.123.tmp")
    leftover.write_text("half a resu")
    with workspace.open():
        pass
    assert not leftover.exists()
    assert workspace.result("z0f0").exists()


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not made by a run"), Workspace(tmp_path).open():
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_unusable_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InputError, match="cannot be made a folder"), Workspace(root).open():
            pass
    (tmp_path / "run" / "run.log").mkdir(parents=True)
    with pytest.raises(InputError, match=r"run\.log cannot be written"):
        Workspace(tmp_path / "run").open().__enter__()
