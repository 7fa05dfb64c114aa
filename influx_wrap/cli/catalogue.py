"""``influx-calib catalogue``: which lenses, cameras and boards there are, and a file for a new one.

A description is asked for question by question, each with its unit. What is given as an option is
not asked, so that a script can answer everything; the readers of the files judge the answers.
"""

from __future__ import annotations

import difflib
import math
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from influx_wrap.cli.options import catalogue_option, number
from influx_wrap.cli.tables import print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import described_entries, new_path, write_entry
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.plan.boards import COLS, ROWS, SPACING, TAG_OF_LONG_SIDE

FOLDER = Path("catalogue")
"""Of descriptions of one's own, unless --catalogue names another one."""

_Answers = dict[str, object]


@dataclass(frozen=True)
class Question:
    """One key of a description.

    text     what is asked for, with the unit
    kind     of the answer
    usual    the answer if there is none, of the answers before it; without one, it has to be given
    """

    key: str
    text: str
    kind: type
    usual: Callable[[_Answers], object] | None = None


def _number(answers: _Answers, key: str) -> float:
    value = answers[key]
    return float(value) if isinstance(value, int | float) else math.nan


def _tag_size_mm(answers: _Answers) -> float:
    """That of boards that are printed without asking, or less if it has to fit."""
    width_mm, height_mm = _number(answers, "width_mm"), _number(answers, "height_mm")
    gap = _number(answers, "tag_spacing")
    fitting = (
        side_mm / (_number(answers, key) * (1 + gap) + gap)
        for side_mm, key in ((width_mm, "tag_cols"), (height_mm, "tag_rows"))
    )
    return float(f"{min(TAG_OF_LONG_SIDE * max(width_mm, height_mm), 0.95 * min(fitting)):.3g}")


QUESTIONS: Mapping[str, tuple[Question, ...]] = {
    "lens": (
        Question("lfl_min_mm", "shortest focal length, in mm", float),
        Question("lfl_max_mm", "longest focal length, in mm", float, lambda a: a["lfl_min_mm"]),
        Question("fd_min_m", "nearest focus distance, from the sensor, in m", float),
        Question(
            "fd_lower_m",
            "second focus distance that is filmed, in m; the others follow from it",
            float,
            lambda a: float(f"{1.75 * _number(a, 'fd_min_m'):.2g}"),
        ),
        Question("metadata_model", "what the camera's metadata call it", str, lambda a: ""),
    ),
    "camera": (
        Question("sensor_width_mm", "width of the sensor that is recorded, in mm", float),
        Question("sensor_height_mm", "height of the sensor that is recorded, in mm", float),
        Question("width_px", "width of the picture, in pixels", int),
        Question("height_px", "height of the picture, in pixels", int),
        Question("metadata_model", "what its metadata call it", str, lambda a: ""),
    ),
    "board": (
        Question("width_mm", "width of the sheet, in mm", float),
        Question("height_mm", "height of the sheet, in mm", float),
        Question("tag_rows", "rows of tags", int, lambda a: ROWS),
        Question("tag_cols", "columns of tags", int, lambda a: COLS),
        Question("tag_spacing", "gap between tags, in tag widths", float, lambda a: SPACING),
        Question("tag_size_mm", "width of a tag, in mm", float, _tag_size_mm),
    ),
}
NEXT = {
    "lens": "influx-calib plan {name} --catalogue {folder}",
    "camera": "influx-calib plan canon17 --camera {name} --catalogue {folder}",
    "board": "influx-calib board {name} --catalogue {folder} --out {name}.pdf",
}
"""What to do with a new description."""


@click.group("catalogue")
def command() -> None:
    """Lenses, cameras and boards: list them, show one, describe a new one.

    Each is a YAML file: those that come with influx-calib, and those of --catalogue DIR.

    \b
    Example:
      influx-calib catalogue list
      influx-calib catalogue show canon17
      influx-calib catalogue new lens my-zoom
    """


@command.command("list")
@catalogue_option
def list_command(catalogue: Path | None) -> None:
    """All lenses, cameras and boards, one per line.

    \b
    Example:
      influx-calib catalogue list
      influx-calib catalogue list --catalogue mine
    """
    rows = [
        (one.kind, one.entry.name, _sentence(one.entry), str(one.path or "packaged"))
        for one in described_entries(catalogue)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *row, file in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, file]))


@command.command("show")
@click.argument("name")
@catalogue_option
def show_command(name: str, catalogue: Path | None) -> None:
    """The description of NAME, as its file has it.

    \b
    Example:
      influx-calib catalogue show canon17
    """
    known = described_entries(catalogue)
    found = [one for one in known if one.entry.name == name]
    if not found:
        names = [one.entry.name for one in known]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(names)}."
        raise InputError(f"there is no {name!r} in the catalogue. {hint}")
    for one in found:
        where = "packaged" if one.path is None else str(one.path)
        click.echo(f"# {_sentence(one.entry)} ({where})")
        click.echo(one.text.rstrip("\n"))


@command.group("new")
def new_group() -> None:
    """Describe a lens, a camera or a board, in a file of your own.

    What is not given as an option is asked for. The file is written into --catalogue DIR, or
    into the folder catalogue; a file that is there is never written over.

    \b
    Example:
      influx-calib catalogue new lens my-zoom
      influx-calib catalogue new camera my-camera --catalogue mine
    """


def _sentence(entry: Camera | Lens | Board) -> str:
    """The most important numbers."""
    if isinstance(entry, Camera):
        return (
            f"{entry.sensor_width_mm:g} x {entry.sensor_height_mm:g} mm, "
            f"{entry.width_px} x {entry.height_px} px"
        )
    if isinstance(entry, Lens):
        return f"{entry.lfl_min_mm:g}-{entry.lfl_max_mm:g} mm, focus from {entry.fd_min_m:g} m"
    grid = entry.grid
    return (
        f"{entry.width_mm:g} x {entry.height_mm:g} mm, {grid.tag_rows} x {grid.tag_cols} tags of "
        f"{1e3 * grid.tag_size_m:g} mm"
    )


def _new(kind: str, name: str, folder: Path, given: _Answers) -> None:
    """Ask for what is not given, and write the file."""
    path = new_path(folder, kind, name)
    questions = QUESTIONS[kind]
    asks = any(given[one.key] is None and one.usual is None for one in questions)
    before: _Answers = {}
    while True:
        values: _Answers = {"kind": kind, "name": name}
        for one in questions:
            value = given[one.key]
            if value is None:
                usual = before.get(one.key, None if one.usual is None else one.usual(values))
                value = _ask(kind, one, usual) if asks else usual
            if value != "":
                values[one.key] = value
        try:
            write_entry(path, values)
            break
        except InputError as error:
            if not (asks and sys.stdin.isatty()):
                raise
            click.echo(f"That cannot be: {error} Once more:", err=True)
            before = values
    for doubt in _doubts(kind, values):
        click.echo(f"Warning: {doubt}", err=True)
    print_written(path)
    next_step = NEXT[kind].format(name=shlex.quote(name), folder=shlex.quote(str(folder)))
    click.echo(f"Next: {next_step}")


def _ask(kind: str, one: Question, usual: object) -> object:
    """The answer of whoever sits there; what is no answer is asked for again."""
    try:
        if one.kind is str:
            text = f"{_capital(one.text)} [{usual or 'unknown'}]"
            answer = click.prompt(text, default=usual, show_default=False, err=True)
            return str(answer).strip()
        return click.prompt(
            _capital(one.text), default=usual, err=True, value_proc=lambda text: _checked(one, text)
        )
    except click.Abort:
        if sys.stdin.isatty():
            raise
        option = f"--{one.key.replace('_', '-')}"
        raise InputError(f"{option} is missing, and there is nobody to ask: {one.text}.") from None


def _checked(one: Question, text: Any) -> object:
    value = number(above=0)(str(text))
    if one.kind is not int:
        return value
    if not value.is_integer():
        raise click.BadParameter(f"{text} is not a whole number.")
    return int(value)


def _doubts(kind: str, values: _Answers) -> list[str]:
    """Numbers that look like another unit's."""
    doubts = []
    if kind == "camera":
        pitch_um = 1e3 * _number(values, "sensor_width_mm") / _number(values, "width_px")
        if not 0.5 < pitch_um < 30:
            doubts.append(
                f"a pixel would be {pitch_um:.3g} um wide: is sensor_width_mm in millimetres?"
            )
        ratio = (_number(values, "sensor_height_mm") / _number(values, "height_px")) / (
            _number(values, "sensor_width_mm") / _number(values, "width_px")
        )
        if abs(ratio - 1) > 0.02:
            doubts.append(
                f"pixels would be {ratio:.3g} times as high as wide: width and height of the "
                "sensor are those of the part that is recorded."
            )
    if kind == "lens":
        if _number(values, "fd_min_m") > 20:
            doubts.append("the nearest focus is far: is fd_min_m in metres?")
        if not 1 < _number(values, "lfl_min_mm") < 2000:
            doubts.append("the focal length is unusual: is lfl_min_mm in millimetres?")
    return doubts


def _add_kind(kind: str) -> None:
    """``catalogue new KIND``, with an option for each question."""

    def create(name: str, catalogue: Path | None, **given: object) -> None:
        _new(kind, name, catalogue or FOLDER, given)

    example = " ".join(
        f"--{question.key.replace('_', '-')} {value}" for question, value in _EXAMPLES[kind]
    )
    create.__doc__ = f"""Describe a {kind}, called NAME, in a file of your own.

    \b
    Example:
      influx-calib catalogue new {kind} my-{kind}
      influx-calib catalogue new {kind} my-{kind} {example}
    """
    made: Any = catalogue_option(create)
    for question in reversed(QUESTIONS[kind]):
        option = f"--{question.key.replace('_', '-')}"
        unit = {int: "N", float: "NUMBER", str: "TEXT"}[question.kind]
        kind_of = {int: click.IntRange(min=1), float: number(above=0), str: str}[question.kind]
        made = click.option(option, type=kind_of, metavar=unit, help=f"{_capital(question.text)}.")(
            made
        )
    new_group.command(kind)(click.argument("name")(made))


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


_EXAMPLES = {
    "lens": list(zip(QUESTIONS["lens"], ("24", "70", "0.4"), strict=False)),
    "camera": list(zip(QUESTIONS["camera"], ("28.25", "18.17", "3424", "2202"), strict=False)),
    "board": list(zip(QUESTIONS["board"], ("420", "297"), strict=False)),
}
for _kind in QUESTIONS:
    _add_kind(_kind)
