"""The lens explorer: a lens's table as a page that answers at any setting.

The page does the table's maths itself (``assets/explorer/lookup.js``), from what is embedded here
with all digits: for every scheme its places, regions, blended values, hull and error model. So it
says what ``influx-calib lut query`` says, without a network and without this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from influx_wrap import __version__
from influx_wrap.formats.files import write_text
from influx_wrap.lut.judge import Judgement, favoured
from influx_wrap.lut.schemes import DEFAULT
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table
from influx_wrap.report.page import page

SCRIPTS = (
    "lookup.js", "metadata.js", "lens.js", "plane.js", "answers.js", "left_out.js", "clip.js",
)  # fmt: skip


def write_explorer(path: Path, table: Table, judgements: list[Judgement]) -> None:
    """Write the page of a table, with what leaving experiments out says about every scheme."""
    title = f"{table.lens} on {table.camera}"
    data = explorer_data(table, judgements)
    write_text(path, page("explorer", title, data, figures=True, scripts=SCRIPTS))


def explorer_data(table: Table, judgements: list[Judgement]) -> dict[str, object]:
    """What the page knows of a table; a number that does not exist is null."""
    best = favoured(judgements)
    return {
        "version": __version__,
        "lens": table.lens,
        "camera": table.camera,
        "imageSize": list(table.image_size),
        "pixelUm": list(table.pixel_um),
        "intrinsics": list(NAMES),
        "names": list(table.names),
        "lfl": table.lfl_mm.tolist(),
        "fd": table.fd_m.tolist(),
        "isDrone": table.is_drone.tolist(),
        "isMeasured": np.isfinite(table.covariance).all(axis=(1, 2)).tolist(),
        "default": DEFAULT,
        "favoured": None if best is None else best.scheme,
        "schemes": [_scheme(judgement) for judgement in judgements],
    }


def _scheme(judgement: Judgement) -> Mapping[str, object]:
    """All that a scheme's answers and their sigmas are made of, and its leave-one-out errors."""
    lookup, model, table = judgement.lookup, judgement.model, judgement.lookup.table
    columns, effective, scatter = lookup.column_lenses
    return {
        "name": lookup.scheme.name,
        "places": lookup.regions.places.tolist(),
        "regions": lookup.regions.vertices.tolist(),
        "hull": [side.tolist() for side in lookup.bounds],
        "blended": lookup.scheme.blended(table.values, table.fd_m).tolist(),
        "variance": _numbers(model.variance),
        "curvature": model.curvature.tolist(),
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
