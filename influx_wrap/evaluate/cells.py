"""What the results of a lens's cells say: verdicts, errors against the truth and the bound.

Errors of fx and fy are given in per cent, since that is what a wrong focal length does to
a picture at any zoom; divided by the Cramér-Rao bound they say how much of what the data
offer was used: a root mean square of 1 over many cells is as good as it can be.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics
from influx_wrap.model.record import CellRecord
from influx_wrap.model.result import Assessment, PickDifference

SHOWN = ("fx", "fy", "cx", "cy")
"""The parameters a summary is about."""
VERDICTS = ("good", "usable with care", "do not use", "suspect", "failed", "not judged")
"""What may be said of a cell: the grade of its assessment, that its answer contradicts what was
typed, or why there is none."""
USABLE = VERDICTS[:2]


@dataclass(frozen=True)
class CellResult:
    """One cell; ``reason`` is None where the calibration gave an answer.

    What is not known is None: the setting of a folder that cannot be read, the truth of
    a real experiment, the answer of a failed one. Dictionaries go by parameter.

    suspicions  what was typed and the pictures contradict, a sentence each
    is_suspect  whether the answer is filed wrongly by one of them, and nobody has said otherwise
    warnings    what the calibration says of its own way, a sentence each
    off_paper   how far off the paper's pick is, which is none of the warnings; None if it is not
    """

    cell: str
    lfl_mm: float | None
    fd_m: float | None
    target: str | None
    reason: str | None
    selected: int | str | None
    intrinsics: Intrinsics | None
    sigma: Mapping[str, float] | None
    truth: Intrinsics | None
    bound: Mapping[str, float] | None
    assessment: Assessment | None = None
    suspicions: tuple[str, ...] = ()
    is_suspect: bool = False
    warnings: tuple[str, ...] = ()
    off_paper: PickDifference | None = None

    @classmethod
    def of(cls, record: CellRecord) -> CellResult:
        """From a cell's record."""
        cell, truth, result, failure = record.cell, record.truth, record.result, record.failure
        sigma = None if result is None else dict(zip(NAMES, result.sigma.tolist(), strict=True))
        pick = None if result is None else result.paper_pick
        warnings = () if result is None else result.warnings
        return cls(
            cell=cell.name,
            lfl_mm=cell.lfl_mm,
            fd_m=cell.fd_m,
            target=cell.target,
            reason=None if failure is None else f"{failure.stage}: {failure.reason}",
            selected=None if result is None else result.selected,
            intrinsics=None if result is None else result.intrinsics,
            sigma=sigma,
            truth=None if truth is None else truth.intrinsics,
            bound=None if truth is None else truth.bound,
            assessment=None if result is None else result.assessment,
            suspicions=tuple(one.sentence for one in record.suspicions),
            is_suspect=not record.is_trusted and any(one.harmful for one in record.suspicions),
            warnings=tuple(text for text in warnings if pick is None or text != pick.warning),
            off_paper=None if pick is None else pick.difference,
        )

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``."""
        if self.reason is not None:
            return "failed"
        grade = "not judged" if self.assessment is None else self.assessment.grade
        return "suspect" if self.is_suspect and grade != "do not use" else grade

    @property
    def is_drone(self) -> bool:
        """Whether a drone was the target."""
        return self.target == "drone"

    def error(self, name: str) -> float | None:
        """Estimate minus truth."""
        if self.intrinsics is None or self.truth is None:
            return None
        return float(getattr(self.intrinsics, name) - getattr(self.truth, name))

    def error_percent(self, name: str) -> float | None:
        """Estimate minus truth, in per cent of the truth."""
        error = self.error(name)
        return None if error is None else 100 * error / float(getattr(self.truth, name))

    def bound_percent(self, name: str) -> float | None:
        """The bound's standard deviation in per cent of the truth."""
        if self.bound is None or self.truth is None:
            return None
        return 100 * self.bound[name] / float(getattr(self.truth, name))

    def error_over_bound(self, name: str) -> float | None:
        """Estimate minus truth in units of the bound's standard deviation."""
        error = self.error(name)
        return None if error is None or self.bound is None else error / self.bound[name]

    def sigma_percent(self, name: str) -> float | None:
        """The reported standard deviation in per cent of the estimate."""
        if self.sigma is None:
            return None
        return 100 * self.sigma[name] / float(getattr(self.intrinsics, name))


def rms_over_bound(cells: Iterable[CellResult]) -> dict[str, float] | None:
    """Root mean square of error / bound by parameter; None if there is nothing to compare."""
    compared = [cell for cell in cells if cell.error_over_bound("fx") is not None]
    if not compared:
        return None
    return {
        name: math.sqrt(float(np.mean(np.square(_values(compared, "error_over_bound", name)))))
        for name in SHOWN
    }


def share_within_sigma(cells: Iterable[CellResult]) -> dict[str, float] | None:
    """Share of cells whose error is within the reported sigma, by parameter: 0.68 if sigma is
    right; None if there is nothing to compare."""
    compared = [cell for cell in cells if cell.error("fx") is not None and cell.sigma is not None]
    if not compared:
        return None
    sigmas = {name: [(cell.sigma or {})[name] for cell in compared] for name in SHOWN}
    return {
        name: float(np.mean(np.abs(_values(compared, "error", name)) <= sigmas[name]))
        for name in SHOWN
    }


def percent_errors(cells: Iterable[CellResult]) -> dict[str, dict[str, float]] | None:
    """Median and maximum of the absolute error in per cent, by parameter."""
    compared = [cell for cell in cells if cell.error("fx") is not None]
    if not compared:
        return None
    errors = {name: np.abs(_values(compared, "error_percent", name)) for name in SHOWN}
    return {
        name: {"median": float(np.median(values)), "max": float(values.max())}
        for name, values in errors.items()
    }


def totals(cells: Sequence[CellResult]) -> dict[str, Any]:
    """Plain data: how many cells have an answer, and how good the answers are."""
    return {
        "ok": sum(cell.reason is None for cell in cells),
        "failed": sum(cell.reason is not None for cell in cells),
        "verdicts": count_verdicts(cells),
        "rms_error_over_bound": {
            "board": rms_over_bound(cell for cell in cells if not cell.is_drone),
            "drone": rms_over_bound(cell for cell in cells if cell.is_drone),
        },
        "share_within_sigma": {
            "board": share_within_sigma(cell for cell in cells if not cell.is_drone),
            "drone": share_within_sigma(cell for cell in cells if cell.is_drone),
        },
        "error_percent": percent_errors(cells),
    }


def count_verdicts(cells: Iterable[CellResult]) -> dict[str, int]:
    """How many cells have each of ``VERDICTS``."""
    counts = Counter(cell.verdict for cell in cells)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def usability(cells: Sequence[CellResult]) -> str:
    """Whether the lens can be used, and at how many settings not: a sentence."""
    counts = count_verdicts(cells)
    n_usable = sum(counts[verdict] for verdict in USABLE)
    n_unknown, n_care = counts["not judged"], counts["usable with care"]
    n_bad = len(cells) - n_usable - n_unknown
    of_all = f"of {len(cells)} {'setting' if len(cells) == 1 else 'settings'}"
    if n_bad == len(cells):
        return "No: there is no setting with intrinsics to use."
    if not n_usable:
        return f"Not known: nobody has judged the intrinsics of {n_unknown} {of_all}."
    if n_bad:
        others = [f", with care at {n_care} others"] if n_care else []
        others += [f", not judged at {n_unknown}"] if n_unknown else []
        return f"Not everywhere: do not use it at {n_bad} {of_all}{''.join(others)}."
    parts = [f", with care at {n_care} {of_all}"] if n_care else []
    parts += [f", not judged at {n_unknown} {of_all}"] if n_unknown else []
    if parts or len(cells) == 1:
        return f"Yes{''.join(parts)}."
    return f"Yes, at all {len(cells)} settings."


def as_row(cell: CellResult) -> dict[str, Any]:
    """A cell as one flat row of plain data."""
    fd_m, judged = cell.fd_m, cell.assessment
    return {
        "cell": cell.cell,
        "lfl_mm": cell.lfl_mm,
        "fd_m": "inf" if fd_m is not None and math.isinf(fd_m) else fd_m,
        "target": cell.target,
        "status": "ok" if cell.reason is None else "failed",
        "reason": cell.reason,
        "verdict": cell.verdict,
        "verdict_reasons": None if judged is None else "; ".join(judged.reasons),
        "film_next": None if judged is None else "; ".join(judged.film_next),
        "suspicions": "; ".join(cell.suspicions),
        "selected": cell.selected,
        **{name: getattr(cell.intrinsics, name, None) for name in NAMES},
        **{f"sigma_{name}": (cell.sigma or {}).get(name) for name in NAMES},
        **{f"true_{name}": getattr(cell.truth, name, None) for name in NAMES},
        **{f"error_{name}_percent": cell.error_percent(name) for name in SHOWN},
        **{f"bound_{name}": (cell.bound or {}).get(name) for name in SHOWN},
        **{f"error_over_bound_{name}": cell.error_over_bound(name) for name in SHOWN},
    }


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """CSV text with a header; None is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _values(cells: Iterable[CellResult], method: str, name: str) -> FloatArray:
    return np.array([getattr(cell, method)(name) for cell in cells], dtype=float)
