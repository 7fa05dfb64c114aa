"""Help texts: an example for every command, no summary cut off, a unit for every number."""

import re
from collections.abc import Iterator

import click
import pytest

from influx_wrap.cli.main import main
from tests.cli.conftest import Invoke

UNIT = re.compile(
    r"pixel|\bpx\b|\bmm\b|metre|minute|\bm\b|second|micro|degree|dpi|per inch|grey level|share"
    r"|from 0 to 1"
    r"|tag widths|relative|number of|how many|times|frames|per cent|\binf\b|of 255|radius of|sigma"
    r"|\bK1\b|\bdB\b|ISO|per second",
    re.IGNORECASE,
)
NAMED_UNIT = re.compile(r"-(px|mm|m|s|um|deg|percent|db|hz|mb)$")


def commands(
    command: click.Command, *names: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield names, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, *names, name)


ALL = dict(commands(main))


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_help(invoke: Invoke, names: tuple[str, ...]) -> None:
    result = invoke(*names, "--help")
    assert result.exit_code == 0
    assert f"influx-calib {' '.join(names)}".strip() in result.output
    assert "Example:" in result.output or not names
    summaries = result.output.partition("\nCommands:\n")[2].splitlines()
    assert [line for line in summaries if line.endswith("...")] == []


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_numbers_have_units(names: tuple[str, ...]) -> None:
    for option in ALL[names].params:
        if not isinstance(option, click.Option) or option.is_flag:
            continue
        assert option.help, option.name
        is_number = option.metavar in ("NUMBER", "X") or option.type is click.FLOAT
        if is_number and not NAMED_UNIT.search(option.opts[0]):
            assert UNIT.search(option.help), f"{option.opts[0]}: {option.help}"


def test_words_are_explained_where_one_begins(invoke: Invoke) -> None:
    text = " ".join(invoke("--help").output.split())
    for word in ("An experiment is", "a cell of", "A rollout is", "a recipe says"):
        assert word in text
