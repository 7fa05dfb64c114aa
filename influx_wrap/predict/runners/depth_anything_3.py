"""Depth Anything 3: depth, pose and a pinhole camera; here from one picture at a time.

Not among the paper's methods; later ones are compared with it.
"""

from __future__ import annotations

from typing import Any

INSTALL = "Depth Anything 3 needs its package and PyTorch: pip install depth-anything-3."
SETTINGS = {"weights": "depth-anything/DA3-LARGE-1.1", "device": "auto"}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import torch
    from depth_anything_3.api import DepthAnything3
    from PIL import Image

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = DepthAnything3.from_pretrained(settings["weights"]).to(device).eval()

    def predict(path: str) -> dict[str, float]:
        with Image.open(path) as picture:
            width, height = picture.size
        found = model.inference([path])
        matrix = found.intrinsics[0]
        # The camera is that of the picture as the model saw it.
        seen_height, seen_width = found.depth.shape[-2:]
        x, y = width / seen_width, height / seen_height
        return {
            "fx": x * float(matrix[0, 0]),
            "fy": y * float(matrix[1, 1]),
            "cx": x * float(matrix[0, 2]),
            "cy": y * float(matrix[1, 2]),
        }

    return predict
