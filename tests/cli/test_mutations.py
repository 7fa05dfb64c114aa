"""A thousand spoiled files through the commands that read them: an answer or a sentence."""

import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from influx_wrap.formats.kalibr import write_target
from influx_wrap.formats.lens_metadata import write_lens_metadata
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.observe import footage
from influx_wrap.run import campaign, pipeline, recordings
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board
from tests.cli.conftest import Invoke
from tests.clips import CAMERA as CLIP_CAMERA
from tests.clips import GRID, SIZE, pose
from tests.mutations import holds_nan, spoiled
from tests.run.test_campaign import in_this_process

CAMERA = {
    "kind": "camera",
    "name": "mine",
    "sensor_width_mm": 23.6,
    "sensor_height_mm": 13.275,
    "width_px": 1280,
    "height_px": 720,
    "height_above_ground_m": 1.5,
    "pp_prior_px": 12.0,
}
LENS = {
    "kind": "lens",
    "name": "zoom",
    "lfl_min_mm": 24,
    "lfl_max_mm": 70,
    "fd_min_m": 0.5,
    "fd_lower_m": 1.0,
    "metadata_model": "Zoom 24-70",
    "synthetic_k1_min": -0.1,
}
BOARD = {
    "kind": "board",
    "name": "a4",
    "width_mm": 297,
    "height_mm": 210,
    "tag_rows": 5,
    "tag_cols": 7,
    "tag_size_mm": 25,
    "tag_spacing": 0.3,
}


MISTAKE = r"Error: .*[.?]\n(Try: [^\n]*\n)?$"
"""A command to be pasted may follow the sentence."""


@pytest.mark.parametrize("which", ["camera", "lens", "board"])
def test_catalogue_files(which: str, invoke: Invoke, tmp_path: Path) -> None:
    entries = {"camera": CAMERA, "lens": LENS, "board": BOARD}
    for name, entry in entries.items():
        text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in entry.items())
        (tmp_path / f"{name}.yaml").write_text(text)
    out, codes = tmp_path / "plan.json", []
    command = ("plan", "zoom", "--camera", "mine", "--catalogue", tmp_path, "--out", out)
    assert invoke(*command).exit_code == 0
    for data in spoiled(entries[which], 180, seed=len(which)):
        (tmp_path / f"{which}.yaml").write_bytes(data)
        out.unlink(missing_ok=True)
        result = invoke(*command)
        codes.append(result.exit_code)
        assert result.exit_code in (0, 2), (data, result.output, result.exception)
        assert result.exit_code == 0 or re.match(MISTAKE, result.stderr, re.DOTALL), data
        assert not re.search(r"\b(nan|NaN)\b", result.stdout), data
        assert not (out.exists() and holds_nan(out.read_text())), data
    assert 0 in codes
    assert codes.count(2) > 90


RECORDINGS = {
    "board": {"lfl_mm": 32, "fd_m": 0.9, "board": "little", "stills": True, "trust": True},
    "target": {"lfl_mm": 32, "fd_m": 0.9, "target": "target.yaml", "footage": "pictures"},
    "metadata": {"metadata": "metadata.csv", "board": "little", "lens": "canon17", "cell": "a"},
}
POSES = [
    pose((25.0 * x, 25.0 * y, 5.0 * x), (0.02 * y, -0.02 * x, 0.36))
    for x in (-1, 1)
    for y in (-1, 1)
]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue with a small camera and a small board; pictures of the board, and files that
    a recording may name."""
    folder = tmp_path_factory.mktemp("rig")
    camera = {"kind": "camera", "name": "small", "sensor_width_mm": 32.0, "sensor_height_mm": 24.0}
    camera |= {"width_px": SIZE[0], "height_px": SIZE[1]}
    board = {"kind": "board", "name": "little", "width_mm": 300.0, "height_mm": 250.0}
    board |= {"tag_rows": GRID.tag_rows, "tag_cols": GRID.tag_cols, "tag_spacing": 0.3}
    board |= {"tag_size_mm": 1e3 * GRID.tag_size_m}
    (folder / "catalogue").mkdir()
    (folder / "catalogue" / "camera.yaml").write_text(yaml.safe_dump(camera))
    (folder / "catalogue" / "board.yaml").write_text(yaml.safe_dump(board))
    (folder / "files" / "pictures").mkdir(parents=True)
    rng = np.random.default_rng(0)
    rays, options = ray_grid(CLIP_CAMERA, SIZE), RenderOptions(blur_px=0.5, noise=2)
    for i, held in enumerate(POSES):
        image = render_board(rays, GRID, *held, options, rng)
        cv2.imwrite(str(folder / "files" / "pictures" / f"{i}.png"), image)
    write_target(folder / "files" / "target.yaml", GRID)
    frames = np.arange(4)
    metadata = LensMetadata(frames, np.full(4, 32.0), np.full(4, 0.9))
    write_lens_metadata(folder / "files" / "metadata.csv", metadata)
    return folder


@pytest.mark.parametrize("which", RECORDINGS)
def test_recordings(
    which: str, invoke: Invoke, rig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every spoiled one is a cell of one run: it fails in words, and alone."""
    for module in (campaign, footage):
        monkeypatch.setattr(module, "parallel", in_this_process)
    monkeypatch.setattr(recordings, "show_views", lambda *_: None)
    for name in ("write_explorer", "write_report"):
        monkeypatch.setattr(pipeline, name, lambda *_, **__: None)
    data, out, n = tmp_path / "data", tmp_path / "out", 155
    files = [RECORDINGS[which], *spoiled(RECORDINGS[which], n - 1, seed=len(which))]
    for i, content in enumerate(files):
        folder = data / f"c{i}"
        folder.mkdir(parents=True)
        for path in (rig / "files").iterdir():
            (folder / path.name).symlink_to(path)
        text = content if isinstance(content, bytes) else yaml.safe_dump(content).encode()
        (folder / "recording.yaml").write_bytes(text)
    rest = ("--camera", "small", "--data", data, "--out", out, "--recipe", "batch", "--jobs", 1)
    result = invoke("run", "canon17", "--catalogue", rig / "catalogue", *rest)
    assert result.exit_code == 1, (result.output, result.exception)
    workspace = Workspace(out)
    found = workspace.records()
    assert len(found) == n
    assert found["c0"] == workspace.result("c0")
    assert sum(path.name == "failure.json" for path in found.values()) > n / 3
    for name, path in found.items():
        record = json.loads(path.read_text())
        told = (data / name / "recording.yaml").read_bytes(), record.get("reason")
        assert "unexpected" not in str(record.get("reason")), told
        assert "Traceback" not in str(record), told
    for path in out.rglob("*.json"):
        assert not holds_nan(path.read_text()), path
    assert "Traceback" not in workspace.log.read_text()
