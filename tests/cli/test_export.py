"""``influx-calib export`` as a user meets it."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.formats.export import EXPORTS
from influx_wrap.formats.groundtruth import write_ground_truth
from influx_wrap.formats.lut import write_table
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata
from tests.lut.lenses import breathing_table

ENDINGS = {"opentrackio": "jsonl", "ulens": "ulens", "colmap": "txt", "nerfstudio": "json",
           "usd": "usda", "opencv": "yaml", "camchain": "yaml"}  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write_clip(path: Path, n: int) -> None:
    table = breathing_table("canon17")
    lfl_mm, fd_m = np.linspace(20, 30, n), np.linspace(1.2, 3, n)
    answers = make_lookup(table).query(lfl_mm, fd_m)
    metadata = LensMetadata(np.arange(n), lfl_mm, fd_m)
    write_ground_truth(path, GroundTruth(metadata, answers.intrinsics, answers.status == 0))


@pytest.mark.parametrize("to", sorted(set(EXPORTS) - {"stmap"}))
def test_a_clip_in_every_format(tmp_path: Path, to: str) -> None:
    write_clip(tmp_path / "gt.json", 1 if to == "camchain" else 3)
    out = tmp_path / f"out.{ENDINGS[to]}"
    result = run("export", tmp_path / "gt.json", "--to", to, "--out", out)
    assert result.exit_code == 0, result.output
    assert out.stat().st_size > 0


def test_a_table_for_unreal(tmp_path: Path) -> None:
    write_table(tmp_path / "lut.json", breathing_table("canon17"))
    out = tmp_path / "canon17.ulens"
    result = run("export", tmp_path / "lut.json", "--to", "ulens", "--out", out)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["metadata"]["type"] == "LensFile"


def test_nothing_to_export(tmp_path: Path) -> None:
    nothing = {"0": {"intrinsics_gt": None, "intrinsics_gt_extrapolated": None,
                     "lens_metadata": {"focal_length_mm": 24, "focus_distance_m": 2}}}  # fmt: skip
    (tmp_path / "gt.json").write_text(json.dumps(nothing))
    out = tmp_path / "cameras.txt"
    result = run("export", tmp_path / "gt.json", "--to", "colmap", "--out", out)
    assert result.exit_code == 2
    assert "nothing to export" in result.output
    assert not out.exists()
