"""``run_lens`` as a library: what it returns, what a listener hears, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.engines.native import NativeEngine
from influx_wrap.errors import InputError
from influx_wrap.run.cell import CellOutcome
from influx_wrap.run.listener import RunListener
from influx_wrap.run.pipeline import run_lens


class Heard(RunListener):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.works: list[str] = []
        self.last: tuple[int, int | None] = (0, None)
        self.outcomes: list[CellOutcome] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, what: str, done: int, total: int | None) -> None:
        if what not in self.works:
            self.works.append(what)
        if what == "calibrating":
            self.last = (done, total)

    def outcome(self, outcome: CellOutcome) -> None:
        self.outcomes.append(outcome)


def test_a_run_and_what_is_heard_of_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options: dict[str, Any] = {"out": str(out), "cells": "z0f9,z1f9", "jobs": 2}
    heard = Heard()
    run = run_lens("canon17", recipe="batch", listener=heard, **options)
    assert list(run.records) == ["z0f9", "z1f9"]
    assert run.totals["ok"] == 2
    assert run.title == "canon17 on arri-alexa-mini, recipe batch"
    assert all(path.exists() for path in run.written)
    assert heard.works == ["calibrating", "the lens's table and its page", "report"]
    assert heard.last == (2, 2)
    assert {one.cell for one in heard.outcomes} == {"z0f9", "z1f9"}
    for name, record in run.records.items():
        assert record.result is not None
        assert record.truth is not None
        assert abs(record.result.intrinsics.fx / record.truth.intrinsics.fx - 1) < 0.01
        assert run.workspace.poses(name).exists()
    assert run.table is not None
    assert run.table.names == ("z0f9", "z1f9")

    again = Heard()
    resumed = run_lens("canon17", recipe=RECIPES["batch"], listener=again, **options)
    assert "2 results were there already." in again.notes
    for name, record in run.records.items():
        assert json.dumps(resumed.records[name].as_dict()) == json.dumps(record.as_dict())
    assert all(one.resumed for one in again.outcomes)


def test_engines_with_processes_of_their_own_work_here(tmp_path: Path) -> None:
    class Driving(NativeEngine):
        @property
        def drives_processes(self) -> bool:
            return True

    with pytest.raises(InputError, match="leave the scheduler out"):
        run_lens("canon17", out=tmp_path, engine=Driving(), scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InputError, match="no lens"):
        run_lens("nonsense", out=tmp_path)
