"""Templates of submissions, and predictions put into them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.manifest import Video
from influx_wrap.formats.submission import validate_submission, write_submission
from influx_wrap.model.predictions import MEI, PARAMETERS, RAD_TAN, Predictions, VideoPredictions
from influx_wrap.predict.submission import fill, make_template

MANIFEST = {"clip é": Video(3, "val"), "b": Video(2, "test")}


def test_template(tmp_path: Path) -> None:
    path = tmp_path / "sub.json"
    write_submission(path, make_template(MANIFEST, "mine", MEI, "influx_pp_real"))
    assert json.loads(path.read_text()) == {
        "submission_metadata": {
            "method_name": "mine",
            "intrinsics_type": "mei",
            "version": "influx_pp_real",
        },
        "clip é": {str(k): dict.fromkeys(PARAMETERS[MEI]) for k in range(3)},
        "b": {str(k): dict.fromkeys(PARAMETERS[MEI]) for k in range(2)},
    }
    summary = validate_submission(path, MANIFEST)
    assert (summary.frames, summary.predicted) == (5, 0)
    with pytest.raises(InputError, match="1000000000000 frames are too many"):
        make_template({"a": Video(10**12)}, "mine", MEI, "all")


def test_fill() -> None:
    template = make_template(MANIFEST, "mine", MEI, "influx")

    def predictions(video: str, frames: list[int], fx: list[float]) -> Predictions:
        values = np.array([[float(f), f, 1.0, 1.0, 0.0] for f in fx])
        values[np.isnan(fx)] = np.nan
        return Predictions("other", MEI, "all", {video: VideoPredictions(np.array(frames), values)})

    first = fill(template, predictions("clip é", [0, 2], [10, 12]))
    assert (first.taken, first.replaced) == (2, 0)
    second = fill(first.predictions, predictions("clip é", [0, 1, 2], [10, 11, 13]))
    assert (second.taken, second.replaced) == (3, 1)
    third = fill(second.predictions, predictions("clip é", [1], [math.nan]))
    assert (third.taken, third.replaced) == (0, 0)
    found = third.predictions
    assert (found.method, found.version) == ("mine", "influx")
    assert found.videos["clip é"].values[:, 0].tolist() == [10, 11, 13]
    assert not found.videos["b"].answered.any()
    assert not template.videos["clip é"].answered.any()
    with pytest.raises(InputError, match='video "c" is not in the template'):
        fill(template, predictions("c", [0], [1]))
    with pytest.raises(InputError, match='video "b", frame 2 is not in the template'):
        fill(template, predictions("b", [0, 2], [math.nan, math.nan]))
    with pytest.raises(InputError, match="these are mei predictions"):
        fill(make_template(MANIFEST, "mine", RAD_TAN, "all"), template)
