"""Phrases that messages of many modules share."""

from __future__ import annotations

from collections.abc import Mapping


def size_text(size: tuple[int, int]) -> str:
    """A size in pixels: ``1920 x 1080``."""
    return f"{size[0]} x {size[1]}"


def counted(n: int, noun: str) -> str:
    """A number of things, whose plural ends in s: ``1 frame``, ``2 frames``."""
    return f"1 {noun}" if n == 1 else f"{n} {noun}s"


def by_reason(unread: Mapping[str, str]) -> list[str]:
    """Names and why each is left out as lines, one for each reason, with at most five names."""
    names: dict[str, list[str]] = {}
    for name, why in unread.items():
        names.setdefault(why, []).append(name)
    return [
        f"not used: {', '.join(some[:5])}{f' and {len(some) - 5} more' * (len(some) > 5)}: {why}"
        for why, some in names.items()
    ]
