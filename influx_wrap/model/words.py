"""Phrases that messages of many modules share."""

from __future__ import annotations


def size_text(size: tuple[int, int]) -> str:
    """A size in pixels: ``1920 x 1080``."""
    return f"{size[0]} x {size[1]}"


def counted(n: int, noun: str) -> str:
    """A number of things, whose plural ends in s: ``1 frame``, ``2 frames``."""
    return f"1 {noun}" if n == 1 else f"{n} {noun}s"
