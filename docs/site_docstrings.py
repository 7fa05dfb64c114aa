"""Docstrings as Markdown, for the site: lists of arguments and examples keep their lines.

Ours name arguments and fields in columns, ``size  width and height in pixels``, and end with
``Example:`` and indented code. Markdown would make one paragraph of the former.
"""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

try:
    from griffe import Extension
except ModuleNotFoundError:
    # In the environment of the tests, which try ``as_markdown`` alone.
    Extension = object

_ENTRY = re.compile(r"(\w+)(?:  +(\S.*)|)$")


def as_markdown(text: str) -> str:
    """A docstring with a list in place of columns, and a block of code in place of an example."""
    parts = re.split(r"\n{2,}", text)
    return "\n\n".join(_example(part) or _columns(part) or part for part in parts)


def _example(part: str) -> str | None:
    head, _, code = part.partition("\n")
    return f"Example:\n\n```python\n{dedent(code)}\n```" if head == "Example:" else None


def _columns(part: str) -> str | None:
    """``name  text`` in each line that is not indented; an indented one goes on with the last."""
    items: list[str] = []
    for line in part.splitlines():
        if line.startswith(" "):
            if not items:
                return None
            items[-1] += f" {line.strip()}"
            continue
        entry = _ENTRY.match(line)
        if not entry:
            return None
        items.append(f"- `{entry[1]}`: {entry[2] or ''}".rstrip())
    is_list = any("  " in line for line in part.splitlines())
    return "\n".join(items) if is_list else None


class Docstrings(Extension):  # type: ignore[misc]
    """Applies it to everything that griffe reads."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
