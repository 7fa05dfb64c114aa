"""One way to an experiment: what is refused, in which order, and what is left of an old one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.flight.pipeline import (
    MatchOutcome,
    MatchRequest,
    ObservedFlight,
    Progress,
    match_folder,
)
from influx_wrap.formats.experiment import EXPERIMENT, read_experiment
from influx_wrap.formats.flight import FLASH_RTK, FLASHES, StoredFlashes, write_flashes
from influx_wrap.formats.flight import write_flash_rtk as write_readings
from tests.flight.flown import FD_M, LFL_MM, SIZE, Flown, fly

CAMERA = f"""kind: camera
name: small
sensor_width_mm: 28.25
sensor_height_mm: 18.17
width_px: {SIZE[0]}
height_px: {SIZE[1]}
"""


@contextmanager
def no_drawing(step: str) -> Iterator[Progress]:
    raise AssertionError("no page was asked for")
    yield


def write_flight(folder: Path, flown: Flown) -> None:
    write_flashes(folder / FLASHES, StoredFlashes(flown.flashes, folder / "clip.mp4", None, {}))
    readings = flown.readings
    places = zip(readings.ids, readings.xyz_m.tolist(), readings.time_s.tolist(), strict=True)
    write_readings(
        folder / FLASH_RTK,
        [{"id": id_, "x": x, "y": y, "alt": z, "timestamp": t} for id_, (x, y, z), t in places],
    )


@pytest.fixture
def match(tmp_path: Path):
    catalogue, folder = tmp_path / "catalogue", tmp_path / "flight"
    catalogue.mkdir()
    folder.mkdir()
    (catalogue / "camera.yaml").write_text(CAMERA)
    known = {"lens": "canon17", "camera": "small", "lfl_mm": LFL_MM, "fd_m": FD_M}

    def run(flown: Flown, **options: object) -> tuple[MatchOutcome, list[ObservedFlight]]:
        write_flight(folder, flown)
        heard: list[ObservedFlight] = []
        outcome = match_folder(
            MatchRequest(folder, catalogue=catalogue, **(known | options)),  # type: ignore[arg-type]
            advice=lambda matched: f"({matched.verdict})",
            settled=heard.append,
            watch=no_drawing,
        )
        return outcome, heard

    return run


def test_the_experiment_is_made(match, tmp_path: Path) -> None:
    outcome, heard = match(fly(0))
    folder = tmp_path / "flight"
    assert outcome.refusal is None
    assert outcome.experiment == folder
    assert outcome.written == (folder / "pairs.csv", folder / "match.json", folder)
    assert heard == [outcome.observed]
    assert len(read_experiment(folder).observations.target.points) == 24


def test_a_question_leaves_no_old_experiment(match, tmp_path: Path) -> None:
    match(fly(1))
    outcome, heard = match(fly(1, missed=(3,)))
    assert outcome.refusal.startswith("23 flashes, 24 readings: reading r03 has no flash")
    assert outcome.refusal.endswith(". (proposed)")
    assert outcome.experiment is None
    assert heard == [outcome.observed]
    assert not (tmp_path / "flight" / EXPERIMENT).exists()
    accepted, _ = match(fly(1, missed=(3,)), accept=True)
    assert accepted.refusal is None


def test_pairs_are_counted_before_a_person_is_asked(match, tmp_path: Path) -> None:
    match(fly(2))
    outcome, _ = match(fly(2, missed=(3,)), min_pairs=24, accept=True)
    assert outcome.refusal.startswith("only 23 of 23 flashes and 24 readings belong together")
    assert not (tmp_path / "flight" / EXPERIMENT).exists()


def test_without_a_setting_nothing_is_made(match, tmp_path: Path) -> None:
    outcome, _ = match(fly(3), lens=None, lfl_mm=None, fd_m=None)
    assert (outcome.refusal, outcome.experiment) == (None, None)
    with pytest.raises(InputError, match="--fd-m is missing"):
        match(fly(3), fd_m=None)
