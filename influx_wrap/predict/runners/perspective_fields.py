"""Perspective Fields: a camera from one picture, here with a free principal point."""

from __future__ import annotations

import math
from typing import Any

INSTALL = (
    "Perspective Fields needs PyTorch, OpenCV, imageio and its repository: pip install torch "
    "opencv-python-headless imageio git+https://github.com/jinlinyi/PerspectiveFields."
)
SETTINGS = {"weights": "Paramnet-360Cities-edina-uncentered", "device": "auto"}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import cv2
    import torch
    from perspective2d import PerspectiveFields

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = PerspectiveFields(settings["weights"]).eval().to(device)

    def predict(path: str) -> dict[str, float]:
        picture = cv2.imread(path)
        assert picture is not None
        height, width = picture.shape[:2]
        found = model.inference(img_bgr=picture)
        vfov_deg, x, y = (
            float(found[name]) for name in ("pred_general_vfov", "pred_rel_cx", "pred_rel_cy")
        )
        focal_px = height * _relative_focal(math.radians(vfov_deg), x, y)
        return {
            "fx": focal_px,
            "fy": focal_px,
            "cx": width * (x + 0.5),
            "cy": height * (y + 0.5),
        }

    return predict


def _relative_focal(vfov: float, x: float, y: float) -> float:
    """Focal length in image heights from the "general" vertical field of view.

    That is the angle between the rays to the middles of the upper and the lower edge; x, y is
    where the principal point lies from the picture's middle. In the plane of the two rays the
    edges are seen at a distance s = hypot(focal, x) from the optical centre, at heights y - 1/2
    and y + 1/2, so that tan(vfov) = s / (s^2 + y^2 - 1/4).
    """
    cotangent = math.cos(vfov) / math.sin(vfov)
    s = (cotangent + math.sqrt(cotangent**2 + 1 - 4 * y**2)) / 2
    return math.sqrt(s**2 - x**2)
