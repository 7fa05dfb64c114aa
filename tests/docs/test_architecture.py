"""docs/architecture.md against the package: its names exist, its rooms are as ruled."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PACKAGE = ROOT / "influx_wrap"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
# room.module.name, also below a folder of a room; a file such as run.log has two parts.
NAMES = sorted(set(re.findall(rf"(?<![\w./])(?:{'|'.join(ROOMS)})(?:\.\w+){{2,}}", PAGE)))
ROWS = dict(re.findall(r"^\| `(\w+)/` \| .* \|(.*)\|$", PAGE, re.MULTILINE))
FOR_ALL = {"model", "compute", "errors"}
"""Not listed in the rows, as every room above them may import them."""


def resolve(name: str) -> object:
    """What a dotted name inside the package stands for."""
    parts = name.split(".")
    found: object = import_module(f"influx_wrap.{parts[0]}")
    for i, part in enumerate(parts[1:], start=1):
        module = "influx_wrap." + ".".join(parts[: i + 1])
        is_module = isinstance(found, type(re)) and hasattr(found, "__path__") and find_spec(module)
        found = import_module(module) if is_module else getattr(found, part)
    return found


def allowed() -> dict[str, set[str]]:
    """By room, what the contracts let it import of the package, ``FOR_ALL`` left out."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    levels = [line.split(" | ") for line in layers]
    may = {
        room: {below for level in levels[i + 1 :] for below in level}
        for i, level in enumerate(levels)
        for room in level
    }
    for contract in contracts:
        if contract["type"] == "forbidden":
            for source in contract["source_modules"]:
                room = source.removeprefix("influx_wrap.")
                for forbidden in contract["forbidden_modules"]:
                    may.get(room, set()).discard(forbidden.removeprefix("influx_wrap."))
    return {room: rooms - FOR_ALL for room, rooms in may.items()}


def test_enough_is_found_to_check() -> None:
    assert len(NAMES) > 80
    assert len(ROOMS) > 15


@pytest.mark.parametrize("name", NAMES)
def test_a_name_exists(name: str) -> None:
    assert resolve(name) is not None


def test_a_name_that_does_not_exist_is_found_out() -> None:
    with pytest.raises(AttributeError):
        resolve("run.pipeline.run_lenses")


def test_paths_exist() -> None:
    for path in re.findall(r"`(influx_wrap/[\w/.]+)`", PAGE):
        assert Path(ROOT, path).exists(), path


def test_every_room_has_its_row() -> None:
    assert set(ROWS) == ROOMS


def test_rows_are_in_the_order_of_the_contract() -> None:
    """So that "all below" means what it says."""
    order = [room for room in allowed() if room in ROWS]
    assert [room for room in ROWS if room != "catalogue"] == order


@pytest.mark.parametrize("room", sorted(ROOMS - {"catalogue"}))
def test_a_row_says_what_the_contracts_say(room: str) -> None:
    told, may = ROWS[room].strip(), allowed()
    if told == "all below":
        below = list(ROWS)[list(ROWS).index(room) + 1 :]
        assert may[room] == set(below) - FOR_ALL - {"catalogue"}
    elif told.endswith(" and all below"):
        first = re.fullmatch(r"`(\w+)/` and all below", told)
        assert first is not None
        assert may[room] == {first[1]} | may[first[1]]
    else:
        assert set(re.findall(r"`(\w+)/`", told)) == may[room]


def calls() -> list[tuple[str, str]]:
    """(caller, called) of the trees on the page: the called one is indented below its caller."""
    found, above = [], []
    for line in PAGE.splitlines():
        match = re.match(rf"( *)((?:{'|'.join(ROOMS)})(?:\.\w+){{2,}})(?!\S)", line)
        if line.startswith("```"):
            above = []
        elif match is not None:
            depth = len(match[1]) // 2
            above = [*above[:depth], match[2]]
            assert len(above) == depth + 1, f"indented too far: {line}"
            found += [(above[-2], match[2])] if depth else []
    return found


def test_the_trees_are_found() -> None:
    assert len(calls()) > 60


@pytest.mark.parametrize(("caller", "called"), calls(), ids=lambda name: name.rpartition(".")[2])
def test_a_caller_knows_what_it_calls(caller: str, called: str) -> None:
    """By name: the module of the one has the other's."""
    parts = caller.split(".")
    files = (PACKAGE.joinpath(*parts[:n]).with_suffix(".py") for n in range(len(parts), 1, -1))
    source = next(path for path in files if path.is_file()).read_text(encoding="utf-8")
    assert re.search(rf"\b{called.rpartition('.')[2]}\b", source)
