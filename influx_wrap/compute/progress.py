"""How work that takes long tells whoever waits how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None], None]
"""Hears how many are done, and of how many, if that is known."""

Watch: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""Makes of a step's name who hears how far it is, for as long as it goes on."""


def no_progress(done: int, total: int | None) -> None:
    """Nobody waits."""


def no_watch(step: str) -> AbstractContextManager[Progress]:
    """Nobody waits for any step."""
    return nullcontext(no_progress)


def adding(progress: Progress, total: int | None) -> Callable[[int], None]:
    """Hears how many more are done, and tells ``progress`` how many there are by now."""
    done = 0

    def add(more: int) -> None:
        nonlocal done
        done += more
        progress(done, total)

    add(0)
    return add
