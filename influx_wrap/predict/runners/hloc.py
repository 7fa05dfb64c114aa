"""COLMAP by way of hloc, with the paper's settings: SuperPoint features and LightGlue.

The paper's are superpoint_max (4096 of a picture brought to 1600 px), cameras PER_IMAGE, focal
lengths of 0.05 to 20 image widths and every fifth frame. It names neither pairs nor camera model:
all pairs are matched, and SIMPLE_RADIAL cameras assumed, which is hloc's default. Frames that are
not registered have no answer. The program is a copy of hloc's repository, with its submodules.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

INSTALL = (
    "hloc needs a copy of its repository, with its submodules: git clone --recursive "
    "https://github.com/cvg/Hierarchical-Localization, then pip install -r requirements.txt in it; "
    "name the copy with --set repository=FOLDER."
)
SETTINGS = {
    "repository": "",
    "features": "superpoint_max",
    "matcher": "superpoint+lightglue",
    "camera_model": "SIMPLE_RADIAL",
    "overlap": 0,
    "min_focal_length_ratio": 0.05,
    "max_focal_length_ratio": 20.0,
}
KIND = {
    "SIMPLE_PINHOLE": "rad-tan",
    "PINHOLE": "rad-tan",
    "SIMPLE_RADIAL": "rad-tan",
    "RADIAL": "rad-tan",
    "OPENCV": "rad-tan",
}
WHOLE_VIDEO = True
STRIDE = 5
TIMEOUT_S = 3600


def load(settings: dict[str, Any]) -> Any:
    """Import hloc and look its configurations up."""
    if settings["repository"]:
        sys.path.insert(0, os.path.abspath(settings["repository"]))
    import pycolmap
    from hloc import extract_features, match_features, reconstruction

    known = {"features": extract_features.confs, "matcher": match_features.confs}
    for name, configurations in known.items():
        if settings[name] not in configurations:
            raise ValueError(f"{name} is one of {', '.join(configurations)}")
    features, matcher = (known[name][settings[name]] for name in known)
    options = {name: settings[name] for name in SETTINGS if name.endswith("_ratio")}

    def predict(frames: dict[int, str]) -> dict[int, dict[str, float]]:
        numbers = {os.path.basename(path): frame for frame, path in frames.items()}
        pictures = Path(next(iter(frames.values()))).parent
        names = sorted(numbers)
        if len(names) < 2:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            pairs = out / "pairs.txt"
            pairs.write_text(_pairs(names, settings["overlap"]))
            found = extract_features.main(features, pictures, out, image_list=names)
            matches = match_features.main(matcher, pairs, features["output"], out)
            model = reconstruction.main(
                out / "sfm",
                pictures,
                pairs,
                found,
                matches,
                camera_mode=pycolmap.CameraMode.PER_IMAGE,
                image_list=names,
                image_options={"camera_model": settings["camera_model"]},
                mapper_options=options,
            )
        registered = [] if model is None else model.images.values()
        return {
            numbers[image.name]: _intrinsics(model.cameras[image.camera_id])
            for image in registered
            if image.has_pose
        }

    return predict


def _pairs(names: list[str], overlap: int) -> str:
    """All pairs, or those no more than ``overlap`` pictures apart."""
    return "".join(
        f"{first} {second}\n"
        for i, first in enumerate(names)
        for second in names[i + 1 : i + 1 + overlap if overlap else None]
    )


def _intrinsics(camera: Any) -> dict[str, float]:
    found = {
        "fx": camera.focal_length_x,
        "fy": camera.focal_length_y,
        "cx": camera.principal_point_x,
        "cy": camera.principal_point_y,
    }
    for name, place in zip(("k1", "k2", "p1", "p2"), camera.extra_params_idxs()):  # noqa: B905
        found[name] = float(camera.params[place])
    return found
