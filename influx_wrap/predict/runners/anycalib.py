"""AnyCalib: a camera with distortion from one picture, from the field of its rays.

Its answers are in pixels of the picture and count from the corner. ``radial:2`` is Brown-Conrady
without tangential terms, ``ucm`` the unified camera. Its other models are neither.
"""

from __future__ import annotations

from typing import Any

INSTALL = (
    "AnyCalib needs PyTorch and its repository: "
    "pip install torch numpy pillow git+https://github.com/javrtg/AnyCalib."
)
SETTINGS = {"weights": "anycalib_gen", "camera_model": "radial:2", "device": "auto"}
KIND = {
    "pinhole": "rad-tan",
    "simple_pinhole": "rad-tan",
    "radial:1": "rad-tan",
    "simple_radial:1": "rad-tan",
    "radial:2": "rad-tan",
    "simple_radial:2": "rad-tan",
    "ucm": "mei",
    "simple_ucm": "mei",
}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import numpy
    import torch
    from anycalib import AnyCalib
    from PIL import Image

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AnyCalib(model_id=settings["weights"]).to(device).eval()
    camera_model = settings["camera_model"]

    def predict(path: str) -> dict[str, float]:
        pixels = torch.from_numpy(numpy.array(Image.open(path).convert("RGB"))).to(device)
        found = model.predict(pixels.permute(2, 0, 1) / 255, cam_id=camera_model)
        return _named(found["intrinsics"].tolist(), camera_model)

    return predict


def _named(values: list[float], camera_model: str) -> dict[str, float]:
    """The parameters in AnyCalib's order: one focal length or two, cx, cy, distortion."""
    if camera_model.startswith("simple_"):
        values = values[:1] + values
    names = ["fx", "fy", "cx", "cy", *(["xi"] if "ucm" in camera_model else ["k1", "k2"])]
    return {names[k]: value for k, value in enumerate(values)}
