"""VGGT: a pinhole camera with its pose; here from one picture at a time.

The camera is that of the picture as the model saw it: brought to a width of 518 pixels and a
height that is a multiple of 14, of which no more than 518 rows in the middle are kept.
"""

from __future__ import annotations

from typing import Any

INSTALL = (
    "VGGT needs PyTorch and its repository: "
    "pip install torch torchvision git+https://github.com/facebookresearch/vggt."
)
SETTINGS = {"weights": "facebook/VGGT-1B", "device": "auto"}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import torch
    from PIL import Image
    from vggt.models.vggt import VGGT
    from vggt.utils.load_fn import load_and_preprocess_images
    from vggt.utils.pose_enc import pose_encoding_to_extri_intri

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.split(":")[0]
    short = torch.bfloat16 if kind == "cpu" or torch.cuda.is_bf16_supported() else torch.float16
    model = VGGT.from_pretrained(settings["weights"]).to(device).eval()
    # Only the camera is asked for.
    model.depth_head = model.point_head = model.track_head = None

    def predict(path: str) -> dict[str, float]:
        with Image.open(path) as picture:
            size = picture.size
        seen = load_and_preprocess_images([path]).to(device)
        with torch.no_grad(), torch.autocast(kind, dtype=short, enabled=kind != "cpu"):
            encoding = model(seen)["pose_enc"]
        _, matrix = pose_encoding_to_extri_intri(encoding, seen.shape[-2:])
        return _of_the_whole(matrix[0, 0].tolist(), size, seen.shape[-1], seen.shape[-2])

    return predict


def _of_the_whole(
    matrix: list[list[float]], size: tuple[int, int], seen_width: int, seen_height: int
) -> dict[str, float]:
    resized = round(size[1] * (seen_width / size[0]) / 14) * 14
    x, y, top = size[0] / seen_width, size[1] / resized, (resized - seen_height) // 2
    (fx, _, cx), (_, fy, cy) = matrix[:2]
    return {"fx": x * fx, "fy": y * fy, "cx": x * cx, "cy": y * (cy + top)}
