"""How work that takes long tells whoever waits how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int | None], None]
"""Hears how many are done, and of how many, if that is known."""

Advance: TypeAlias = Callable[[int], None]
"""Hears how many more are done."""
