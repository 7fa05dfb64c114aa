"""MoGe-2: geometry and a pinhole camera from one picture.

Focal lengths come in widths and heights of the picture, the principal point is in its middle.
"""

from __future__ import annotations

from typing import Any

INSTALL = (
    "MoGe-2 needs PyTorch and its repository: "
    "pip install torch torchvision git+https://github.com/microsoft/MoGe."
)
SETTINGS = {"weights": "Ruicheng/moge-2-vitl-normal", "device": "auto"}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import numpy
    import torch
    from moge.model.v2 import MoGeModel
    from PIL import Image

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = MoGeModel.from_pretrained(settings["weights"]).to(device).eval()

    def predict(path: str) -> dict[str, float]:
        pixels = torch.from_numpy(numpy.array(Image.open(path).convert("RGB"))).to(device)
        height, width = pixels.shape[:2]
        # Processors are slow with numbers of 16 bits.
        found = model.infer(pixels.permute(2, 0, 1) / 255, use_fp16=device != "cpu")
        matrix = found["intrinsics"].tolist()
        return {
            "fx": width * matrix[0][0],
            "fy": height * matrix[1][1],
            "cx": width * matrix[0][2],
            "cy": height * matrix[1][2],
        }

    return predict
