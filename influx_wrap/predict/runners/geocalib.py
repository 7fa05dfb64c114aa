"""GeoCalib: a camera from one picture, from its perspective field by optimisation.

The paper does not name weights or camera model: the method's defaults are taken. Pictures that
are distorted have weights of their own, ``distorted``. Its division model is no camera of ours.
"""

from __future__ import annotations

from typing import Any

INSTALL = (
    "GeoCalib needs PyTorch and its repository: "
    "pip install torch git+https://github.com/cvg/GeoCalib."
)
SETTINGS = {"weights": "pinhole", "camera_model": "pinhole", "device": "auto"}
KIND = {"pinhole": "rad-tan", "simple_radial": "rad-tan", "radial": "rad-tan"}
_DISTORTION = {"pinhole": (), "simple_radial": ("k1",), "radial": ("k1", "k2")}


def load(settings: dict[str, Any]) -> Any:
    """The model with its weights."""
    import torch
    from geocalib import GeoCalib

    device = settings["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model = GeoCalib(weights=settings["weights"]).to(device)

    def predict(path: str) -> dict[str, float]:
        picture = model.load_image(path).to(device)
        camera = model.calibrate(picture, camera_model=settings["camera_model"])["camera"]
        (fx, fy), (cx, cy) = camera.f[0].tolist(), camera.c[0].tolist()
        found = {"fx": fx, "fy": fy, "cx": cx, "cy": cy}
        # The second number of a simple_radial camera stands for nothing.
        for k, name in enumerate(_DISTORTION[settings["camera_model"]]):
            found[name] = float(camera.dist[0, k])
        return found

    return predict
