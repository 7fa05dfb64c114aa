"""Any scheme against a lens whose every setting is known.

    python -m benchmarks.lens_truth TABLE.json TRUTH.csv [--scheme disparity] ...

TABLE.json is a table as ``lut build`` writes it; TRUTH.csv has the columns ``where`` (``inside``,
``beyond`` or ``nearer`` than the table), ``lfl_mm``, ``fd_m`` and the eight intrinsics. For use by
other benchmarks:

    truth = read_truth(path)                          -> Truth: where, lfl_mm, fd_m, values (n, 8)
    errors = compare(truth, answer.intrinsics, answer.sigma)          -> Errors, arrays (n, 8)
    summary = errors.at(truth.where == "inside").summary(table.image_size)
                                                      -> Summary, plain numbers
    far = far_columns(table, answer.vertices, answer.weights)
                                  -> (n,) how many columns apart an answer's experiments are

``answer`` is a ``TableAnswer`` of ``LensTable.query(truth.lfl_mm, truth.fd_m, scheme=...)``, or
anything with the same arrays.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Printed

from influx_wrap.errors import InputError
from influx_wrap.formats.lut import read_table
from influx_wrap.lut.lens_table import LensTable
from influx_wrap.lut.schemes import SCHEMES
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table

PLACES = ("inside", "beyond", "nearer")
NO_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Truth:
    """A lens at n settings.

    where   (n,) ``inside``, ``beyond`` or ``nearer``: the setting as the table sees it
    lfl_mm  (n,) lens focal lengths
    fd_m    (n,) focus distances, infinity included
    values  (n, 8) intrinsics in the order of ``NAMES``
    """

    where: NDArray[np.str_]
    lfl_mm: FloatArray
    fd_m: FloatArray
    values: FloatArray


def read_truth(path: Path) -> Truth:
    """A CSV file with a line for each setting."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise InputError(f"{path} has no settings.")
    try:
        numbers = {name: [float(row[name]) for row in rows] for name in ("lfl_mm", "fd_m", *NAMES)}
        where = np.array([row["where"] for row in rows])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is no truth of a lens: {error}.") from error
    values = np.column_stack([numbers[name] for name in NAMES])
    return Truth(where, np.array(numbers["lfl_mm"]), np.array(numbers["fd_m"]), values)


@dataclass(frozen=True, eq=False)
class Summary:
    """Errors at some settings. Where there are several numbers, they are those of fx, fy, cx, cy,
    k1, k2, p1, p2, NaN if no sigma is known.

    fx_percent     median, 95 % and largest
    corner_px      the same of what focal length and radial distortion displace at the corner
    centre_px      the same of cx and of cy together
    within_one     (8,) share of the errors within one sigma
    within_two     (8,) within two
    worst_z        (8,) largest error in sigma
    """

    answered: int
    fx_percent: tuple[float, float, float]
    corner_px: tuple[float, float, float]
    centre_px: tuple[float, float, float]
    within_one: FloatArray
    within_two: FloatArray
    worst_z: FloatArray


@dataclass(frozen=True, eq=False)
class Errors:
    """Answers at n settings against the truth.

    true   (n, 8) what is right
    error  (n, 8) answer minus truth; NaN where there is no answer
    sigma  (n, 8) what the answer said about it; NaN where it is not known
    """

    true: FloatArray
    error: FloatArray
    sigma: FloatArray

    def at(self, some: BoolArray) -> Errors:
        """Those of some settings (n,)."""
        return Errors(self.true[some], self.error[some], self.sigma[some])

    @property
    def fx_percent(self) -> FloatArray:
        """(n,) of fx, relative."""
        return np.asarray(100 * np.abs(self.error[:, 0] / self.true[:, 0]))

    @property
    def z(self) -> FloatArray:
        """(n, 8) errors in sigma."""
        return np.asarray(np.abs(self.error) / self.sigma)

    def corner_px(self, image_size: tuple[int, int]) -> FloatArray:
        """(n,) how far f, k1 and k2 move what is truly at the picture's corner."""
        radius = np.hypot(*image_size) / 2
        found = self.true + self.error
        # The direction whose picture is at the corner, by the fixed point of the distortion.
        direction = _direction(radius, self.true)
        return np.asarray(np.abs(_radius_px(direction, found) - _radius_px(direction, self.true)))

    def summary(self, image_size: tuple[int, int]) -> Summary:
        """In a few numbers."""
        answered = np.asarray(np.isfinite(self.error).all(axis=1))
        some = self.at(answered)
        z = some.z[np.isfinite(some.sigma).all(axis=1)]
        nothing = np.full(8, np.nan)
        return Summary(
            int(answered.sum()),
            _quantiles(some.fx_percent),
            _quantiles(some.corner_px(image_size)),
            _quantiles(np.abs(some.error[:, 2:4])),
            (z <= 1).mean(axis=0) if len(z) else nothing,
            (z <= 2).mean(axis=0) if len(z) else nothing,
            z.max(axis=0) if len(z) else nothing,
        )


def compare(truth: Truth, intrinsics: FloatArray, sigma: FloatArray) -> Errors:
    """Answers (n, 8) with sigma (n, 8) against the truth at the same settings."""
    return Errors(truth.values, intrinsics - truth.values, sigma)


def far_columns(table: Table, vertices: IntArray, weights: FloatArray) -> IntArray:
    """(n,) how many columns apart the experiments are that answers (n, k) come from: 0 for one
    column, 1 for neighbours."""
    n = len(table.names)
    column = np.empty(n, dtype=np.int64)
    for number, (_, rows) in enumerate(table.columns):
        column[rows] = number
    has_part = (vertices >= 0) & (np.abs(weights) > NO_WEIGHT)
    most = np.where(has_part, column[vertices], -1).max(axis=1, initial=-1)
    least = np.where(has_part, column[vertices], n).min(axis=1, initial=n)
    return np.asarray(np.maximum(most - least, 0))


def _quantiles(values: FloatArray) -> tuple[float, float, float]:
    """Median, 95 % and largest."""
    if not values.size:
        return (np.nan, np.nan, np.nan)
    median, most, largest = np.quantile(values, [0.5, 0.95, 1.0]).tolist()
    return median, most, largest


def _radius_px(direction: FloatArray, values: FloatArray) -> FloatArray:
    """(n,) distance from the principal point of directions (n,) with intrinsics (n, 8)."""
    square = direction**2
    distorted = direction * (1 + square * (values[:, 4] + square * values[:, 5]))
    return np.asarray(np.sqrt(values[:, 0] * values[:, 1]) * distorted)


def _direction(radius_px: float, values: FloatArray) -> FloatArray:
    """(n,) directions seen at a distance from the principal point by intrinsics (n, 8)."""
    target = radius_px / np.sqrt(values[:, 0] * values[:, 1])
    direction = target.copy()
    for _ in range(50):
        square = direction**2
        direction = target / (1 + square * (values[:, 4] + square * values[:, 5]))
    return direction


def print_comparison(console: Console, table: LensTable, truth: Truth, scheme: str) -> None:
    """One scheme, inside, beyond and nearer."""
    answer = table.query(truth.lfl_mm, truth.fd_m, scheme=scheme)
    errors = compare(truth, answer.intrinsics, answer.sigma)
    apart = far_columns(table, answer.vertices, answer.weights)
    printed = Printed(
        "where", "answers", "not neighbours", "fx %: median/95 %/largest", "corner px",
        "cx, cy px", "within 1 sigma: fx cx k1", "worst z: fx cx k1",
        title=f"{table.lens}, {len(table.names)} experiments, scheme {scheme}", box=None,
    )  # fmt: skip
    for where in PLACES:
        some = truth.where == where
        if not some.any():
            continue
        summary = errors.at(some).summary(table.image_size)
        names = [NAMES.index(name) for name in ("fx", "cx", "k1")]
        printed.add_row(
            where,
            f"{summary.answered} of {some.sum()}",
            f"{100 * (apart[some] > 1).mean():.1f} %",
            *(
                "/".join(f"{value:.3g}" for value in values)
                for values in (summary.fx_percent, summary.corner_px, summary.centre_px)
            ),
            " ".join(f"{100 * share:.0f} %" for share in summary.within_one[names]),
            " ".join(f"{z:.1f}" for z in summary.worst_z[names]),
        )
    console.print(printed)


def main() -> None:
    """Print what every scheme, or those asked for, is off by."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lens_truth")
    parser.add_argument("table", type=Path, metavar="TABLE.json")
    parser.add_argument("truth", type=Path, metavar="TRUTH.csv")
    parser.add_argument("--scheme", action="append", choices=SCHEMES, help="several times: several")
    arguments = parser.parse_args()
    table, truth = LensTable.of(read_table(arguments.table)), read_truth(arguments.truth)
    for scheme in arguments.scheme or SCHEMES:
        print_comparison(Console(width=160), table, truth, scheme)


if __name__ == "__main__":
    main()
