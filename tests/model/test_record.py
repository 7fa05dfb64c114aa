"""Records: the plain data of a file and back, and what is refused."""

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.record import CellRecord, CellSetting, CellTruth
from influx_wrap.model.result import Failure, PaperPick, PickDifference
from influx_wrap.run.workspace import EDITED
from tests.model.records import TRUE, make_record, make_result

DRONE = CellSetting("z0f9", "canon17", None, "drone", None, math.inf)
RECORDS = [
    make_record(truth=CellTruth(TRUE, dict.fromkeys(NAMES, 0.5))),
    make_record(cell=DRONE, truth=CellTruth(TRUE, None)),
    make_record(make_result(selected="batch", bow_m=(1e-3, 0.0, -2e-4), rollouts=())),
    make_record(make_result(engine={"name": "kalibr", "runs": []})),
    make_record(
        make_result(paper_pick=PaperPick(3, TRUE, PickDifference("cx", 4.5, "of rollouts", "3")))
    ),
    make_record(Failure("pose", "no pose fits", "Leave it out.")),
]


@pytest.mark.parametrize("record", RECORDS)
def test_there_and_back_through_a_file(record: CellRecord) -> None:
    text = json.dumps(record.as_dict(), allow_nan=False)
    again = CellRecord.from_dict(json.loads(text))
    assert json.dumps(again.as_dict(), allow_nan=False) == text
    assert again.cell == record.cell
    assert (again.result is None) == (record.failure is not None)


def test_what_it_says() -> None:
    record = make_record()
    data = record.as_dict()
    assert data["status"] == "ok"
    assert data["sigma"] == dict.fromkeys(NAMES, 0.5)
    assert data["views"]["total"] == 2
    assert data["views"]["used"] == 1
    assert data["views"]["corners_removed"] == 2
    assert data["projection_uncertainty_px"]["median"] == 0.2
    assert list(data)[-3:] == ["cell", "truth", "provenance"]
    assert record.result is not None
    np.testing.assert_array_equal(record.result.sigma, np.full(8, 0.5))
    assert make_record(cell=DRONE).as_dict()["cell"]["fd_m"] == "inf"


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every container in plain data with each of its keys."""
    if isinstance(data, dict):
        return [(data, k) for k in data] + [p for v in data.values() for p in _places(v)]
    if isinstance(data, list):
        return [p for v in data for p in _places(v)]
    return []


def test_edited_records_raise_what_readers_expect() -> None:
    n = len(_places(RECORDS[0].as_dict()))
    for k in range(n):
        for change in ("gone", None, "nonsense", [], {}):
            data = copy.deepcopy(RECORDS[0].as_dict())
            container, key = _places(data)[k]
            if change == "gone":
                del container[key]
            else:
                container[key] = change
            try:
                CellRecord.from_dict(data)
            except EDITED:
                continue
