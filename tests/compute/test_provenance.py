"""What a result was made from, as plain data."""

import json

from influx_wrap import __version__
from influx_wrap.compute.provenance import provenance


def test_provenance() -> None:
    made_from = provenance(recipe={"name": "batch"}, seed=3, inputs={"target": "abc"}, focal_px=7.5)
    assert made_from["influx_wrap"] == __version__
    assert (made_from["seed"], made_from["focal_px"]) == (3, 7.5)
    assert made_from["recipe"] == {"name": "batch"}
    assert {"python", "numpy", "scipy", "numba", "opencv"} <= made_from.keys()
    json.dumps(made_from, allow_nan=False)
