"""Methods' own packages with small networks of random weights, run by our runners.

They are those that PyPI has, and are installed in ``.venv-methods`` by ``make test-system``: Depth
Anything 3. The last layer of its camera is set, so that the field of view is known.
"""

import json
import math
import subprocess
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.predict.external import make_external
from influx_wrap.predict.installed import external_methods
from influx_wrap.predict.predictor import Footage
from influx_wrap.predict.process import Environment

PYTHON = Path(__file__).parents[2] / ".venv-methods/bin/python"
WIDTH, HEIGHT = 720, 160
FIELDS = (0.25, 0.75)
"""Of view, vertical and horizontal, in radians."""
# PyPI's torchvision is built for GPUs: its compiled operators are missing beside a PyTorch for
# processors. What it does with pictures needs none of them, but it cannot be imported without.
OPERATORS = """
import torch
library = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
WEIGHTS = """
import sys
import torch
from depth_anything_3.api import DepthAnything3
torch.manual_seed(0)
model = DepthAnything3(model_name="da3-small")
layer = model.model.cam_dec.fc_fov[0]
with torch.no_grad():
    layer.weight.zero_()
    layer.bias.copy_(torch.tensor([float(text) for text in sys.argv[2:]]))
model.save_pretrained(sys.argv[1])
"""
LOADER = """
INSTALL = "pip install torch."
SETTINGS = {"workers": 2}

def load(settings):
    import torch

    class Numbers(torch.utils.data.Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): return torch.tensor(float(i))

    def predict(path):
        loader = torch.utils.data.DataLoader(Numbers(), num_workers=settings["workers"])
        f = 100 + sum(float(batch) for batch in loader)
        return {"fx": f, "fy": f, "cx": 8, "cy": 6}

    return predict
"""

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def environment() -> Environment:
    if not PYTHON.exists():
        pytest.fail("There is no .venv-methods: make test-system makes it.", pytrace=False)
    return Environment(str(PYTHON))


@pytest.fixture
def video(tmp_path: Path) -> Footage:
    folder = tmp_path / "frames"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
    cv2.imwrite(str(folder / "0.png"), pixels)
    return Footage("clip", folder)


def test_depth_anything_3(
    environment: Environment, video: Footage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(OPERATORS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (state,) = external_methods(["depth-anything-3"], {}, environment)
    assert state.missing == ()
    weights = tmp_path / "weights"
    fields = [str(angle) for angle in FIELDS]
    subprocess.run([PYTHON, "-c", WEIGHTS, weights, *fields], check=True, timeout=300)
    assert json.loads((weights / "config.json").read_text()) == {"model_name": "da3-small"}
    method = make_external(
        "depth-anything-3", {"weights": str(weights)}, environment, tmp_path / "logs"
    )
    try:
        answers = method.predict(video, lambda done, total: None).answers
    finally:
        method.close()
    fx, fy = (
        side / 2 / math.tan(angle / 2)
        for side, angle in zip((WIDTH, HEIGHT), reversed(FIELDS), strict=True)
    )
    expected = [fx, fy, WIDTH / 2 - 0.5, HEIGHT / 2 - 0.5, 0, 0, 0, 0]
    np.testing.assert_allclose(answers.values, [expected], rtol=1e-6)


def test_a_data_loader_with_workers(
    environment: Environment, video: Footage, tmp_path: Path
) -> None:
    runner = tmp_path / "mine.py"
    runner.write_text(LOADER)
    method = make_external(str(runner), {}, environment, tmp_path / "logs", timeout_s=120)
    try:
        answers = method.predict(video, lambda done, total: None).answers
    finally:
        method.close()
    assert answers.values[0, 0] == 128
