"""WildCamera: a camera from one picture, from the incidence field of its rays.

Its repository is no package: ``repository`` names a copy of it, in which ``weights`` lie.
"""

from __future__ import annotations

import os
import sys
from typing import Any

INSTALL = (
    "WildCamera needs a copy of https://github.com/ShngJZ/WildCamera with its checkpoint, and "
    "pip install torch torchvision timm einops mmcv-lite; name the copy with "
    "--set repository=FOLDER."
)
SETTINGS = {
    "repository": "",
    "weights": "model_zoo/Release/wild_camera_all.pth",
    "device": "auto",
}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    sys.path.insert(0, settings["repository"])
    import torch
    from PIL import Image
    from WildCamera.newcrfs.newcrf_incidencefield import NEWCRFIF

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = NEWCRFIF(version="large07", pretrained=None)
    weights = os.path.join(settings["repository"], settings["weights"])
    model.load_state_dict(torch.load(weights, map_location="cpu"), strict=True)
    model.eval().to(device)

    def predict(path: str) -> dict[str, float]:
        with torch.no_grad():
            found, _ = model.inference(Image.open(path).convert("RGB"), wtassumption=False)
        return {
            "fx": float(found[0, 0]),
            "fy": float(found[1, 1]),
            "cx": float(found[0, 2]),
            "cy": float(found[1, 2]),
        }

    return predict
