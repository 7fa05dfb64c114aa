"""Commands of a page: a block split into them, and whether each is one that exists.

A command that is not run is at least parsed, by its own parser: click's for ``influx-calib``,
argparse's for the others. For ``make``, target and variables have to be in the Makefile.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import click

from influx_wrap.cli.main import main as influx_calib
from influx_wrap.cli.plan import NEXT, next_command
from tests.docs.pages import ROOT

_ARGPARSE = {
    "influx-drone-server": "influx_drone.cli",
    "python -m benchmarks": "benchmarks.__main__",
} | {
    f"kalibr_{name}": f"influx_wrap.cli.kalibr.kalibr_{name}"
    for name in ("calibrate_cameras", "detect_corners", "create_target_pdf", "bagcreater")
}
OURS = ("influx-calib", "make", *_ARGPARSE)
_BEFORE_A_COMMAND = re.compile(r"do|then|if|while|!|time|sudo|env|exec|[A-Za-z_]\w*=.*")


def split_script(script: str) -> list[str]:
    """Its commands, each with all of its lines; comments are left out."""
    commands: list[str] = []
    pending: list[str] = []
    for line in script.splitlines():
        if not pending and (not line.strip() or line.startswith("#")):
            continue
        pending.append(line)
        if _is_complete("\n".join(pending)):
            commands.append("\n".join(pending))
            pending = []
    return [*commands, *(["\n".join(pending)] if pending else [])]


def _is_complete(command: str) -> bool:
    if command.endswith("\\"):
        return False
    check = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)
    return check.returncode == 0 and not check.stderr


def command_faults(command: str) -> Iterator[str]:
    """What is wrong with the commands in a line of shell, as far as they are ours."""
    for words in _simple_commands(command):
        fault = _fault(words)
        if fault:
            yield f"{' '.join(words)}: {fault}"


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each command in a line; a here-document's text is none."""
    head, here, _ = command.partition("<<")
    line = (head if here else command).replace("\\\n", " ").replace("\n", " ; ")
    line = re.sub(r"(?<=\s)\d?[<>]+&?\s*[^\s;|&]+", " ", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set("();&|"):
            if words:
                yield words
            words = []
        elif words or not _BEFORE_A_COMMAND.fullmatch(word):
            words.append(word)


def _fault(words: list[str]) -> str | None:
    name, arguments = Path(words[0]).name, words[1:]
    if name == "influx-calib":
        return _click_fault(influx_calib, arguments)
    if name == "make":
        return _make_fault(arguments)
    if name == "python" and arguments[:1] == ["-m"]:
        name, arguments = f"python -m {arguments[1]}", arguments[2:]
    return _argparse_fault(name, arguments) if name in _ARGPARSE else None


def _click_fault(command: click.Command, arguments: list[str]) -> str | None:
    """Only parse: neither callbacks nor types that look at files have a say."""
    if arguments[:1] in (["--help"], ["--version"]):
        return None
    if command.name == "plan" and arguments[:1] == [NEXT]:
        return _click_fault(next_command, arguments[1:])
    context = click.Context(command)
    try:
        options, rest, _ = command.make_parser(context).parse_args(list(arguments))
    except click.UsageError as error:
        return error.format_message()
    if isinstance(command, click.Group):
        inner = command.get_command(context, rest[0]) if rest else None
        return _click_fault(inner, rest[1:]) if inner else f"there is no command {rest[:1]}"
    if rest:
        return f"{rest[0]} is one word too many"
    for parameter in command.params:
        # Arguments that were not given are None in click 8, or a sentinel of its own.
        value = options.get(parameter.name or "")
        if parameter.required and not isinstance(value, (str, bool, list, tuple)):
            return f"{parameter.opts[0]} is missing"
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            try:
                parameter.type.convert(value, parameter, context)
            except click.BadParameter as error:
                return error.format_message()
    return None


class _Parsed(BaseException):
    """Thrown where the command would begin its work."""


def _argparse_fault(name: str, arguments: list[str]) -> str | None:
    main: Callable[[], object] = import_module(_ARGPARSE[name]).main
    parse = argparse.ArgumentParser.parse_args

    def only_parse(parser: argparse.ArgumentParser, *given: object, **more: object) -> None:
        parse(parser, *given, **more)  # type: ignore[call-overload]
        raise _Parsed

    with (
        patch.object(argparse.ArgumentParser, "parse_args", only_parse),
        patch.object(sys, "argv", [name, *arguments]),
        redirect_stderr(io.StringIO()) as said,
        redirect_stdout(io.StringIO()),
    ):
        try:
            main()
        except _Parsed:
            return None
        except SystemExit as end:
            if not end.code:
                return None
    return said.getvalue().strip().splitlines()[-1]


def _make_fault(arguments: list[str]) -> str | None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in arguments:
        variable, is_set, _ = word.partition("=")
        pattern = rf"^{re.escape(variable)} *[:?+]?=" if is_set else rf"^{re.escape(word)}:"
        if not re.search(pattern, makefile, re.MULTILINE):
            return f"the Makefile has no {variable}"
    return None


def span_faults(span: str) -> Iterator[str]:
    """What is wrong with a command in running text, where words may stand for others.

    Alternatives are written ``lut build|query``; of options only the names are looked at.
    """
    words = span.split()
    if not words or words[0] != "influx-calib":
        return
    commands: list[click.Command] = [influx_calib]
    for word in words[1:]:
        if not isinstance(commands[0], click.Group) or not re.fullmatch(r"[a-z][a-z|-]*", word):
            break
        group = commands[0]
        found = [group.get_command(click.Context(group), name) for name in word.split("|")]
        if None in found:
            yield f"{span}: there is no command {word}"
            return
        commands = [command for command in found if command is not None]
    known = {opt for command in commands for parameter in command.params for opt in parameter.opts}
    known |= {opt for parameter in influx_calib.params for opt in parameter.opts} | {"--help"}
    for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span):
        if option not in known:
            yield f"{span}: there is no option {option}"
