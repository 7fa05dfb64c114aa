"""A few of the files that ``python -m tests.mutate 10000`` makes; and what it found once."""

import os
from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.influx import read_lens_settings
from influx_wrap.formats.kalibr_log import read_log
from influx_wrap.run.jobs import by_number
from tests import mutate

N_FILES, SEED = int(os.environ.get("INFLUX_MUTATED_FILES", "250")), 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutate") / "files"
    mutate.base(folder)
    return folder


def test_good_files_are_read(folder: Path) -> None:
    """Else nothing is shown by what becomes of bad ones."""
    for case in mutate.CASES:
        case.read(folder)
        mutate.clear(folder)


def test_mutated_files(folder: Path) -> None:
    outcomes = [mutate.try_file(index, SEED, folder) for index in range(N_FILES)]
    assert not [one for one in outcomes if one.code not in (0, 2) or one.seconds > 10]
    # Most are refused, and not all: what is refused is not merely everything.
    assert sum(one.code == 2 for one in outcomes) > N_FILES / 3
    assert sum(one.code == 0 for one in outcomes) > N_FILES / 20


def test_the_tool_notices(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that fails otherwise is told from one that refuses."""

    def fail(_: Path) -> None:
        raise KeyError("x")

    case = mutate.Case("x", "plan.json", mutate.change_json, fail)
    monkeypatch.setattr(mutate, "CASES", (case,))
    outcome = mutate.try_file(0, 0, folder)
    assert outcome.code == 1
    assert "KeyError" in outcome.told


def test_a_log_with_digits_without_end() -> None:
    """The expression that looks for numbers of views took minutes for it."""
    assert read_log("1" * 500_000 + " images with 3 used").views_used is None


def test_a_key_with_digits_without_end(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    key = f"zoom_{'7' * 900}_focus_distance_0"
    path.write_text(f'{{"zooms": [1], "focus_distances": [1], "exp_details": {{"{key}": {{}}}}}}')
    with pytest.raises(InputError, match="must look like zoom_<i>"):
        read_lens_settings(path)


def test_names_with_other_digits() -> None:
    assert sorted(["z10", "z9", "1²2", "٣"], key=by_number)[:2]
