"""UniDepthV2: depth and a pinhole camera from one picture.

Its numbers are passed on as they are. It brings the sides to multiples of 14 and back with one
factor for both, so that fx, fy, cx and cy are off by up to a per cent or so, each its own way.
"""

from __future__ import annotations

from typing import Any

INSTALL = (
    "UniDepth needs PyTorch and its repository: "
    "pip install torch git+https://github.com/lpiccinelli-eth/UniDepth."
)
SETTINGS = {"weights": "lpiccinelli/unidepth-v2-vitl14", "device": "auto"}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import numpy
    import torch
    from PIL import Image
    from unidepth.models import UniDepthV2

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = UniDepthV2.from_pretrained(settings["weights"]).to(device).eval()

    def predict(path: str) -> dict[str, float]:
        picture = numpy.array(Image.open(path).convert("RGB"))
        with torch.no_grad():
            found = model.infer(torch.from_numpy(picture).permute(2, 0, 1).to(device))
        matrix = found["intrinsics"].reshape(3, 3).tolist()
        return {
            "fx": matrix[0][0],
            "fy": matrix[1][1],
            "cx": matrix[0][2],
            "cy": matrix[1][2],
        }

    return predict
