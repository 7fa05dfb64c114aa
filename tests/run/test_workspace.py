"""A run's folder: locked, resumable, and its artefacts say what they were made from."""

import fcntl
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from influx_wrap.compute.provenance import provenance
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.results import read_result
from influx_wrap.model.record import CellSetting
from influx_wrap.model.result import Failure
from influx_wrap.plan import make_plan
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
    assert read_result(workspace.failure("z0f0")) == FAILURE.as_dict()


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


@pytest.mark.parametrize("name", ["cells", "data", "cells/z0f0", "data/z0f0"])
def test_links_are_not_written_through(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "result.json").write_text("mine")
    (elsewhere / ".result.json.1.tmp").write_text("mine, too")
    root = tmp_path / "run"
    (root / name).parent.mkdir(parents=True)
    (root / name).symlink_to(elsewhere)
    (root / "run.log").touch()
    workspace = Workspace(root)
    with pytest.raises(InputError, match=f"{name} is a link to .*elsewhere"), workspace.open():
        pass
    assert {path.name for path in elsewhere.iterdir()} == {"result.json", ".result.json.1.tmp"}


def test_a_cell_that_becomes_a_link_meanwhile(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "run" / "cells").mkdir(parents=True)
    record = make_record()
    (tmp_path / "run" / "cells" / record.cell.name).symlink_to(elsewhere)
    with pytest.raises(InputError, match="is a link to"):
        Workspace(tmp_path / "run").save(record)
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("text", ["", "garbage", "[]", '{"zooms": NaN}', "\x00", "[" * 9999])
def test_a_plan_that_is_garbage_is_named_with_the_cure(tmp_path: Path, text: str) -> None:
    workspace = Workspace(tmp_path)
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())
    workspace.claim(plan)
    good = workspace.plan.read_bytes()
    workspace.plan.write_text(text)
    cure = r"plan\.json.*remove plan\.json and give the same command again"
    with pytest.raises(InputError, match=cure):
        workspace.claim(plan)
    workspace.plan.unlink()
    workspace.claim(plan)
    assert workspace.plan.read_bytes() == good


def test_a_result_that_was_edited_is_made_anew(tmp_path: Path) -> None:
    workspace, record = Workspace(tmp_path), make_record()
    workspace.save(record)
    made_from = record.provenance
    assert workspace.finished(record.cell.name, made_from) is not None
    path = workspace.result(record.cell.name)
    values = json.loads(path.read_text())
    values["intrinsics"]["fx"] += 1e-9
    path.write_text(json.dumps(values))
    assert workspace.finished(record.cell.name, made_from) is None
