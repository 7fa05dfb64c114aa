"""MapAnything: geometry and a pinhole camera; here from one picture at a time.

The camera is fitted to the rays of the picture as the model saw it: made smaller until it just
covers one of a few sizes, of which the middle is kept. Pixel (0, 0) is a pixel's centre there.
"""

from __future__ import annotations

import math
from typing import Any

INSTALL = (
    "MapAnything needs PyTorch and its repository: "
    "pip install torch torchvision git+https://github.com/facebookresearch/map-anything."
)
SETTINGS = {"weights": "facebook/map-anything", "device": "auto"}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import torch
    from mapanything.models import MapAnything
    from mapanything.utils.image import load_images
    from PIL import Image

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = MapAnything.from_pretrained(settings["weights"]).to(device).eval()

    def predict(path: str) -> dict[str, float]:
        with Image.open(path) as picture:
            size = picture.size
        views = load_images([path])
        seen = views[0]["img"].shape
        matrix = model.infer(views, apply_mask=False)[0]["intrinsics"][0].tolist()
        return _of_the_whole(matrix, size, (seen[-1], seen[-2]))

    return predict


def _of_the_whole(
    matrix: list[list[float]], size: tuple[int, int], seen: tuple[int, int]
) -> dict[str, float]:
    # As MapAnything has it: the small term keeps the sides from falling short of what is kept.
    scale = max(seen[0] / size[0], seen[1] / size[1]) + 1e-8
    found = {}
    for axis, name in enumerate("xy"):
        resized = math.floor(size[axis] * scale)
        cut = (resized - seen[axis]) // 2
        found[f"f{name}"] = matrix[axis][axis] * size[axis] / resized
        found[f"c{name}"] = (matrix[axis][2] + 0.5 + cut) * size[axis] / resized
    return found
