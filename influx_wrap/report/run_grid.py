"""Where experiments stand in the plane of lens focal length and focus distance.

An experiment of the plan stands where its name says. All others stand by their own setting: in a
row or column of the plan if it is the same setting, else in one that is made for them. A folder
may have any name, and a lens be filmed at settings that no plan has.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from influx_wrap.evaluate.cells import CellResult
from influx_wrap.formats.influx import LensSettings
from influx_wrap.model.experiment import place_of

NAMED_SETTING, SAME_SETTING = 0.05, 0.02
"""How far, as a share, an experiment may be from the planned setting that it is named after, and
from another one to stand in the same row or column."""


@dataclass(frozen=True)
class Axis:
    """Ascending settings in which experiments stand; names of those in the plan, else ``""``."""

    values: tuple[float, ...]
    names: tuple[str, ...]

    @property
    def named(self) -> tuple[tuple[float, str], ...]:
        """Settings with their names."""
        return tuple(zip(self.values, self.names, strict=True))

    def place(self, value: float) -> int:
        """The number of the setting that is nearest."""
        return min(range(len(self.values)), key=lambda k: _apart(value, self.values[k]))


@dataclass(frozen=True)
class RunGrid:
    """Columns and rows, and the (column, row) of every experiment; None without a setting."""

    lfl_mm: Axis
    fd_m: Axis
    places: tuple[tuple[int, int] | None, ...]


def run_grid(results: Sequence[CellResult], settings: LensSettings | None) -> RunGrid:
    """The grid of a run, without rows and columns in which there is nothing."""
    planned_lfl, planned_fd = ((), ()) if settings is None else (settings.lfl_mm, settings.fd_m)
    stands = [_setting(result, planned_lfl, planned_fd) for result in results]
    known = [stand for stand in stands if stand is not None]
    lfl_mm = _axis((lfl for lfl, _ in known), planned_lfl, "z")
    fd_m = _axis((fd for _, fd in known), planned_fd, "f")
    return RunGrid(
        lfl_mm,
        fd_m,
        tuple(
            None if stand is None else (lfl_mm.place(stand[0]), fd_m.place(stand[1]))
            for stand in stands
        ),
    )


def _setting(
    result: CellResult, planned_lfl: Sequence[float], planned_fd: Sequence[float]
) -> tuple[float, float] | None:
    """LFL and FD of an experiment: the plan's if they are the same."""
    place = place_of(result.cell)
    if place is not None and place[0] < len(planned_lfl) and place[1] < len(planned_fd):
        planned = planned_lfl[place[0]], planned_fd[place[1]]
        actual = result.lfl_mm, result.fd_m
        if all(
            a is None or _same(a, p, NAMED_SETTING) for a, p in zip(actual, planned, strict=True)
        ):
            return planned
    if result.lfl_mm is None or result.fd_m is None:
        return None
    return _snapped(result.lfl_mm, planned_lfl), _snapped(result.fd_m, planned_fd)


def _snapped(value: float, planned: Sequence[float]) -> float:
    near = min(planned, key=lambda wanted: _apart(value, wanted), default=None)
    return near if near is not None and _same(value, near) else value


def _axis(values: Iterable[float], planned: Sequence[float], letter: str) -> Axis:
    used = set(values)
    named = {value: f"{letter}{k}" for k, value in enumerate(planned) if value in used}
    groups: list[list[float]] = []
    for value in sorted(used - set(named)):
        if groups and _same(value, groups[-1][0]):
            groups[-1].append(value)
        else:
            groups.append([value])
    named |= {statistics.median(group): "" for group in groups}
    ascending = sorted(named)
    return Axis(tuple(ascending), tuple(named[value] for value in ascending))


def _apart(value: float, wanted: float) -> float:
    return 0.0 if value == wanted else abs(value - wanted)


def _same(value: float, wanted: float, share: float = SAME_SETTING) -> bool:
    return value == wanted or abs(value - wanted) <= share * abs(wanted) < math.inf
