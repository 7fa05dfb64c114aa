"""Runners of methods that are not installed here, with stand-ins for the methods' modules.

They show that a runner starts in an environment without this package, calls what the method
documents, and brings the answer into pixels of the picture.
"""

import ast
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.predict.external import EXTERNAL, RUNNERS, make_external
from influx_wrap.predict.predictor import Footage, MethodError, Predicted
from influx_wrap.predict.process import Environment
from influx_wrap.predict.runners.perspective_fields import _relative_focal
from tests.predict.scenes import write_frames

TORCH = """
import contextlib, numpy
class cuda:
    is_available = staticmethod(lambda: False)
class Tensor(numpy.ndarray):
    def to(self, device): assert device == "cpu"; return self
    def permute(self, *axes): return self.transpose(axes)
class Model:
    def to(self, device): assert device == "cpu"; return self
    def eval(self): return self
def from_numpy(array): return array.view(Tensor)
def load(path, map_location): return open(path).read()
no_grad = contextlib.nullcontext
"""
MODULES = {
    "geocalib": {
        "geocalib/__init__.py": """
import types, numpy, torch
class GeoCalib(torch.Model):
    def __init__(self, weights): assert weights == "pinhole"
    def load_image(self, path):
        open(path).close()
        return numpy.zeros((3, 12, 16)).view(torch.Tensor)
    def calibrate(self, picture, camera_model):
        f, c = numpy.array([[20.0, 21.0]]), numpy.array([[8.0, 6.0]])
        camera = types.SimpleNamespace(f=f, c=c, dist=numpy.array([[-0.2, 0.0]]))
        return {"camera": camera}
"""
    },
    "perspective-fields": {
        "perspective2d.py": """
import torch
class PerspectiveFields(torch.Model):
    def __init__(self, version): assert version == "Paramnet-360Cities-edina-uncentered"
    def inference(self, img_bgr):
        assert img_bgr.shape == (12, 16, 3)
        return {"pred_general_vfov": 90.0, "pred_rel_cx": 0.0, "pred_rel_cy": 0.25}
"""
    },
    "unidepth": {
        "unidepth/models.py": """
import numpy, torch
class UniDepthV2(torch.Model):
    @classmethod
    def from_pretrained(cls, name):
        assert name == "lpiccinelli/unidepth-v2-vitl14"
        return cls()
    def infer(self, picture):
        assert picture.shape == (3, 12, 16) and picture.dtype == numpy.uint8
        return {"intrinsics": numpy.array([[[20.0, 0, 8], [0, 21, 6], [0, 0, 1]]])}
"""
    },
    "wildcamera": {
        "WildCamera/newcrfs/newcrf_incidencefield.py": """
import numpy, torch
class NEWCRFIF(torch.Model):
    def __init__(self, version, pretrained): assert version == "large07"
    def load_state_dict(self, state, strict): assert state == "weights" and strict
    def inference(self, picture, wtassumption):
        assert picture.size == (16, 12) and wtassumption is False
        return numpy.array([[20.0, 0, 8], [0, 21, 6], [0, 0, 1]]), None
""",
        "model_zoo/Release/wild_camera_all.pth": "weights",
    },
    "droidcalib": {
        "demo.py": """
import os, sys
assert "--opt_intr" in sys.argv
folder = sys.argv[sys.argv.index("--imagedir") + 1]
assert sorted(os.listdir(folder)) == ["000000.png", "000001.png"], os.listdir(folder)
print("Initial intrinsics:")
print("fx = 14.0, fy = 14.0, ppx = 8.0, ppy = 6.0")
print("Estimated intrinsics:")
print("fx = 20.00, fy = 21.00, ppx = 8.00, ppy = 6.00")
"""
    },
    "depth-anything-3": {
        "depth_anything_3/api.py": """
import types, numpy, torch
class DepthAnything3(torch.Model):
    @classmethod
    def from_pretrained(cls, name): return cls()
    def inference(self, pictures):
        (path,) = pictures
        matrix = numpy.array([[[10.0, 0, 4], [0, 7.0, 2], [0, 0, 1]]])
        return types.SimpleNamespace(intrinsics=matrix, depth=numpy.zeros((1, 4, 8)))
"""
    },
}


def ask(method: str, folder: Path, tmp_path: Path, settings: dict[str, str]) -> Predicted:
    for name, text in {"torch.py": TORCH, **MODULES[method]}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    frames = write_frames(tmp_path / "frames", 2)
    made = make_external(method, settings, Environment(sys.executable), tmp_path / "logs")
    try:
        return made.predict(Footage("clip", frames), lambda done, total: None)
    finally:
        made.close()


@pytest.mark.parametrize("method", [name for name in EXTERNAL if name != "colmap"])
def test_adapters(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "installed"
    monkeypatch.setenv("PYTHONPATH", str(folder))
    settings = {
        "wildcamera": {"repository": str(folder), "device": "cpu"},
        "droidcalib": {"repository": str(folder)},
    }.get(method, {})
    values = ask(method, folder, tmp_path, settings).answers.values
    expected = [20, 21, 7.5, 5.5, 0, 0, 0, 0]
    if method == "perspective-fields":
        # Between two rays at right angles, 3/4 above and 1/4 below the axis: Thales' circle.
        focal = 12 * math.sqrt(0.75 * 0.25)
        expected = [focal, focal, 7.5, 8.5, 0, 0, 0, 0]
    assert values == pytest.approx(np.tile(expected, (2, 1)))


def test_geocalib_with_distortion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    settings = {"camera_model": "simple_radial"}
    values = ask("geocalib", tmp_path / "installed", tmp_path, settings).answers.values
    assert values[0].tolist() == pytest.approx([20, 21, 7.5, 5.5, -0.2, 0, 0, 0])


def test_droidcalib_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "installed"
    monkeypatch.setitem(MODULES, "droidcalib", {"demo.py": "print('no motion')"})
    with pytest.raises(MethodError, match="printed no estimated intrinsics"):
        ask("droidcalib", folder, tmp_path, {"repository": str(folder)})
    assert "no motion" in (tmp_path / "logs" / "clip.log").read_text()


def test_focal_length_of_a_general_field_of_view() -> None:
    rng = np.random.default_rng(0)
    for focal, x, y in rng.uniform([0.4, -0.4, -0.4], [4, 0.4, 0.4], (100, 3)):
        rays = np.array([[-x, -0.5 - y, focal], [-x, 0.5 - y, focal]])
        cosine = rays[0] @ rays[1] / np.prod(np.linalg.norm(rays, axis=1))
        assert _relative_focal(math.acos(cosine), x, y) == pytest.approx(focal)


def test_runners_are_for_older_pythons_too() -> None:
    files = sorted(RUNNERS.glob("*.py"))
    assert len(files) == len(EXTERNAL) + 2
    for file in files:
        tree = ast.parse(file.read_text(), feature_version=(3, 8))
        imported = [
            node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
        ]
        assert not any("influx" in module for module in imported)
