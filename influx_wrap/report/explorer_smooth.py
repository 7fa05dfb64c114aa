"""The smooth lens as the explorer's page holds it: the nodes of its grid, and its experiments.

Outputs at the nodes have all digits, their covariances those of single precision, of which sigma
needs a few. The page interpolates (``assets/explorer/smooth.js``); it fits nothing.
"""

from __future__ import annotations

import base64

import numpy as np

from influx_wrap.lut.smooth.left_out import ODD, expected
from influx_wrap.lut.smooth.lens import LFL_MARGIN, NEAREST, SmoothLens
from influx_wrap.lut.smooth.outputs import N_OUTPUTS
from influx_wrap.report.page import float32_text


def smooth_data(lens: SmoothLens) -> dict[str, object]:
    """All that the page's answers are made of, and what the others say of each experiment."""
    grid, places, hull = lens.grid, lens.grid.places, lens.hull
    outputs = lens.measured.outputs
    means, covariances = grid.nodes[..., :N_OUTPUTS], grid.nodes[..., N_OUTPUTS:]
    return {
        "name": lens.scheme_name,
        "lfl": list(places.lfl_mm),
        "width": places.width,
        "nearest": places.nearest_m,
        "offset": places.offset,
        "leastShare": NEAREST,
        "margin": LFL_MARGIN,
        "low": grid.low.tolist(),
        "step": grid.step.tolist(),
        "size": list(grid.nodes.shape[:2]),
        "means": base64.b64encode(means.astype("<f8").tobytes()).decode(),
        "covariances": float32_text(covariances),
        "scale": outputs.scale.tolist(),
        "hull": {
            "low": hull.low.tolist(),
            "scale": hull.scale.tolist(),
            "sides": hull.sides.tolist(),
        },
        "leftOut": _left_out(lens),
    }


def _left_out(lens: SmoothLens) -> dict[str, object]:
    """Every experiment as the others predict it; errors as those of the other schemes."""
    table, said = lens.table, expected(lens)
    errors = np.abs(said.values - table.values)
    errors[:, :4] *= 100 / np.abs(table.values[:, :4])
    return {
        "judged": len(table.names),
        "errors": errors.tolist(),
        "median": np.median(errors, axis=0).tolist(),
        "largest": errors.max(axis=0).tolist(),
        "within": np.mean(np.abs(said.z) <= 1, axis=0).tolist(),
        "expected": said.values.tolist(),
        "sigma": said.sigma.tolist(),
        "z": said.z.tolist(),
        "odd": ODD,
        "setAside": [name in lens.fit.set_aside for name in table.names],
    }
