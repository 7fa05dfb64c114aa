"""The notebooks in examples/: stored without outputs, and run from the first cell to the last."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LONGEST_CELL_S = 300
"""Kernels may have to be compiled first."""


def executed(name: str, asked: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the expression ``asked`` is after all cells of a notebook, run in ``folder``.

    A cell that fails raises.
    """
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    answer = nbformat.v4.new_code_cell(f"import json; print(json.dumps({asked}))")
    notebook.cells.append(answer)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=LONGEST_CELL_S, resources=resources).execute()
    pictures = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert pictures, "no cell has drawn anything"
    return json.loads(notebook.cells[-1].outputs[-1].text)


def test_two_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["camera_from_photos", "lens_from_run_to_clip"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_stored(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_camera_from_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "[((fit.intrinsics.array - truth.array) / fit.sigma).tolist(), views.n_views]"
    off, n_views = executed("camera_from_photos.ipynb", asked, tmp_path, monkeypatch)
    assert max(map(abs, off)) < 4
    assert n_views >= 15


def test_lens_from_run_to_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (
        "[[(r.result.intrinsics.fx - r.truth.intrinsics.fx) / r.result.sigma[0]"
        " for r in run.records.values()], fx.tolist(), clip.filled]"
    )
    off, fx, filled = executed("lens_from_run_to_clip.ipynb", asked, tmp_path, monkeypatch)
    assert len(off) == 6
    assert max(map(abs, off)) < 4
    assert all(a < b for a, b in pairwise(fx))
    assert filled == [[12, 12]]
    written = json.loads((tmp_path / "gt.json").read_text())
    assert len(written) == len(fx) == 25
    assert (tmp_path / "runs" / "few" / "report.html").exists()
