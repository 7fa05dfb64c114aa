"""The lens explorer: a lens's table as a page that answers at any setting.

The page does the table's maths itself, from what is embedded here: of the smooth lens the nodes of
its grid (``assets/explorer/smooth.js``), of every other scheme its places, regions, blended values,
outline and error model, with all digits (``assets/explorer/lookup.js``). So it says what
``influx-calib lut query`` says, without a network and without this package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_text
from influx_wrap.lut.judge import Judgement, favoured
from influx_wrap.lut.lens_model import smooth_lens
from influx_wrap.lut.schemes import DEFAULT, PAPER
from influx_wrap.lut.smooth.lens import SmoothLens
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table
from influx_wrap.report.explorer_smooth import smooth_data
from influx_wrap.report.page import page

SCRIPTS = (
    "smooth.js", "lookup.js", "metadata.js", "lens.js", "plane.js", "answers.js", "breathing.js",
    "left_out.js", "clip.js",
)  # fmt: skip


class ProposedExperiment(Protocol):
    """An experiment to add to a table, as ``plan.next_experiments`` proposes it."""

    @property
    def lfl_mm(self) -> float:
        """Lens focal length."""

    @property
    def fd_m(self) -> float:
        """Focus distance."""

    @property
    def target(self) -> str:
        """What to film."""

    @property
    def gain_px(self) -> float:
        """By how much the largest sigma at the picture's corner gets smaller."""


def write_explorer(
    path: Path,
    table: Table,
    judgements: list[Judgement],
    proposals: Sequence[ProposedExperiment] = (),
) -> None:
    """Write the page of a table, with what leaving experiments out says about every scheme, and
    the experiments to add, the best first.

    A table that the smooth lens cannot be made of has the other schemes.
    """
    title = f"{table.lens} on {table.camera}: lens explorer"
    try:
        lens = smooth_lens(table)
    except InputError:
        lens = None
    data = explorer_data(table, judgements, lens, proposals)
    write_text(path, page("explorer", title, data, figures=True, scripts=SCRIPTS))


def explorer_data(
    table: Table,
    judgements: list[Judgement],
    lens: SmoothLens | None,
    proposals: Sequence[ProposedExperiment],
) -> dict[str, object]:
    """What the page knows of a table; a number that does not exist is null, as is infinity."""
    best = favoured(judgements)
    return {
        "lens": table.lens,
        "camera": table.camera,
        "imageSize": list(table.image_size),
        "pixelUm": list(table.pixel_um),
        "intrinsics": list(NAMES),
        "names": list(table.names),
        "lfl": table.lfl_mm.tolist(),
        "fd": _numbers(table.fd_m),
        "values": table.values.tolist(),
        "isDrone": table.is_drone.tolist(),
        "isMeasured": np.isfinite(table.covariance).all(axis=(1, 2)).tolist(),
        "default": PAPER if lens is None else DEFAULT,
        "favoured": None if best is None else best.scheme,
        "smooth": None if lens is None else smooth_data(lens),
        "schemes": [_scheme(judgement) for judgement in judgements],
        "proposals": [
            {
                "lfl": one.lfl_mm,
                "fd": None if math.isinf(one.fd_m) else one.fd_m,
                "target": one.target,
                "gain": one.gain_px,
            }
            for one in proposals
        ],
    }


def _scheme(judgement: Judgement) -> Mapping[str, object]:
    """All that a scheme's answers and their sigmas are made of, and its leave-one-out errors."""
    lookup, model = judgement.lookup, judgement.model
    columns, effective, scatter = lookup.column_lenses
    return {
        "name": lookup.scheme.name,
        "places": lookup.regions.places.tolist(),
        "regions": lookup.regions.vertices.tolist(),
        "outline": [side.tolist() for side in lookup.regions.outline],
        "blended": lookup.blended.tolist(),
        "variance": _numbers(model.variance),
        "curvature": _numbers(model.curvature),
        "columns": {
            "lfl": columns.tolist(),
            "effective": effective.tolist(),
            "scatter": scatter.tolist(),
        },
        "leftOut": {
            "judged": judgement.judged,
            "isBilinear": judgement.left_out.is_bilinear.tolist(),
            "errors": _numbers(judgement.errors),
            "median": _numbers(judgement.median) if judgement.judged else None,
            "largest": _numbers(judgement.largest) if judgement.judged else None,
            "within": _numbers(judgement.within),
        },
    }


def _numbers(values: FloatArray) -> object:
    """Nested lists, None for what is not finite."""
    numbers = values.astype(object)
    numbers[~np.isfinite(values)] = None
    return numbers.tolist()
