"""The one reader of YAML, within limits.

YAML can say a lot in a few lines: names that stand for other names a billion times over, levels
without end, objects of a programming language. The parser's events are counted, an alias as what
it stands for, before anything is made of them.
"""

from __future__ import annotations

from typing import Any

import yaml

from influx_wrap.errors import InputError
from influx_wrap.formats.json_text import MOST_DIGITS, MOST_LEVELS

MOST_VALUES = 500_000
"""What is read in a few seconds; an alias counts as all that it stands for."""
MOST_ALIASES = 1000

_TAGS = (None, "!", "tag:yaml.org,2002:str")

# The one in C is twenty times as fast, but not everywhere.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Fault(Exception):
    """What is wrong, and in which line."""

    def __init__(self, mark: Any, problem: str) -> None:
        super().__init__(problem)
        self.line = mark.line + 1


class _Loader(_Base):  # type: ignore[misc]
    """PyYAML's, which does not choke on numbers."""

    def construct_yaml_int(self, node: Any) -> Any:
        self._check_digits(node)
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: Any) -> Any:
        self._check_digits(node)
        return super().construct_yaml_float(node)

    def construct_yaml_timestamp(self, node: Any) -> Any:
        try:
            return super().construct_yaml_timestamp(node)
        except ValueError as error:
            raise _Fault(node.start_mark, f"{node.value} is no time: {error}") from None

    def _check_digits(self, node: Any) -> None:
        if len(node.value) > MOST_DIGITS:
            raise _Fault(node.start_mark, f"a number has more than {MOST_DIGITS} digits")


for _kind in ("int", "float", "timestamp"):
    _Loader.add_constructor(
        f"tag:yaml.org,2002:{_kind}", getattr(_Loader, f"construct_yaml_{_kind}")
    )


def parse_yaml_text(text: str, where: str, *, most_values: int = MOST_VALUES) -> object:
    """The value of YAML text; ``where`` is what messages call it."""
    try:
        _check(text, most_values)
        return yaml.load(text, Loader=_Loader)
    except _Fault as fault:
        raise InputError(f"{where}, line {fault.line}: {fault}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{where}{line}: this is not YAML.") from None


def _check(text: str, most_values: int) -> None:
    """Refuse what would be too much, before it is made."""
    # How many values each collection around this place has so far, and its name.
    open_ones: list[tuple[int, str | None]] = [(0, None)]
    sizes: dict[str, int] = {}
    n_aliases = 0
    for event in yaml.parse(text, Loader=_Loader):
        size, name = 0, getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            n_aliases += 1
            if n_aliases > MOST_ALIASES:
                raise _Fault(event.start_mark, f"there are more than {MOST_ALIASES} aliases")
            if event.anchor in (anchor for _, anchor in open_ones):
                raise _Fault(event.start_mark, f"*{event.anchor} stands for what it is a part of")
            size = sizes.get(event.anchor or "", 0)
        elif isinstance(event, yaml.ScalarEvent):
            _check_text(event)
            size = 1
            if name is not None:
                sizes[name] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            if event.tag not in _TAGS:
                raise _tagged(event)
            if len(open_ones) > MOST_LEVELS:
                raise _Fault(event.start_mark, f"it is nested more than {MOST_LEVELS} levels deep")
            open_ones.append((1, name))
        elif isinstance(event, yaml.CollectionEndEvent):
            size, anchor = open_ones.pop()
            if anchor is not None:
                sizes[anchor] = size
        if size:
            total, anchor = open_ones[-1]
            open_ones[-1] = (total + size, anchor)
            if total + size > most_values:
                raise _Fault(event.start_mark, f"there are more than {most_values} values")


def _check_text(event: Any) -> None:
    if event.tag not in _TAGS:
        raise _tagged(event)
    value = event.value
    if "\0" in value or (not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise _Fault(event.start_mark, "there is a character that text may not hold")


def _tagged(event: Any) -> _Fault:
    return _Fault(event.start_mark, f"the tag {event.tag[:60]} is not read; write plain values")
