"""From a rendered zoom to the scores of methods, by the commands alone."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import execute

SIZE = "480x310"


def test_colmap_is_run_on_a_simulated_zoom_and_scored(tmp_path: Path) -> None:
    clip, truth = tmp_path / "zoom", tmp_path / "zoom" / "gt_validation.json"
    made = execute(
        "simulate", "canon17", "--out", clip, "--clip", "--size", SIZE, "--frames", 40, "--jobs", 1,
        "--lens-model", "thin",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    for method, options in (
        ("colmap", ("--set", "max_features=1500")),
        ("metadata", ("--metadata", clip / "metadata.csv")),
        ("perfect", ("--truth", clip / "gt.json")),
    ):
        out = tmp_path / f"{method}.json"
        done = execute("predict", clip / "zoom.mp4", "--method", method, *options, "--out", out)
        assert done.returncode == 0, done.stderr
    files = [tmp_path / f"{method}.json" for method in ("colmap", "metadata", "perfect")]
    options = ("--truth", truth, "--size", SIZE, "--out", tmp_path / "scores", "--jobs", 1)
    done = execute("evaluate", *files, *options)
    assert done.returncode == 0, done.stderr
    scores = {
        path.stem: json.loads((tmp_path / "scores" / path.stem / "scores.json").read_text())
        for path in files
    }
    perfect = scores["perfect"]
    assert perfect["percent_error"]["fx"] < 1e-9
    assert perfect["epe_below"]["1"] == 100
    # It answers for every fifth frame at most, and is right where it does.
    colmap = scores["colmap"]
    assert 4 <= colmap["predicted_frames"] <= 8
    assert colmap["percent_error"]["fx"] < 10
    assert colmap["epe_below"]["300"] < 25
    # The lens's focal length is not the camera's, the less so the nearer the focus.
    assert 0.5 < scores["metadata"]["percent_error"]["fx"] < 10
