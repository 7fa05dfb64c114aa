"""COLMAP: structure from motion with a camera of its own for every frame.

The paper ran it by way of hloc: cameras PER_IMAGE, focal lengths of 0.05 to 20 image widths,
every fifth frame; SuperPoint features (4096 of a picture brought to 1600 px) and LightGlue. Here
the features and their matches are COLMAP's own, SIFT, as many and at that size; ``hloc.py`` is the
paper's way. pycolmap lists other features and LightGlue too, but ends the process on being asked
for them, as it is built without ONNX: they are no setting here. As hloc does,
SIMPLE_RADIAL cameras are assumed, the principal point stays in the middle (COLMAP's default,
and the paper's errors of cx and cy say so), and of several models the largest is taken. Frames
that are not registered have no answer.

With one thread and a seed the same frames give the same numbers.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

INSTALL = "COLMAP needs pycolmap, version 4: pip install 'influx_wrap[predict]'."
SETTINGS = {
    "camera_model": "SIMPLE_RADIAL",
    "matching": "exhaustive",
    "overlap": 10,
    "max_image_size": 1600,
    "max_features": 4096,
    "min_focal_length_ratio": 0.05,
    "max_focal_length_ratio": 20.0,
    "min_model_size": 10,
    "threads": 1,
    "seed": 0,
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

# The places of fx, fy, cx, cy, k1, k2, p1, p2 among a model's parameters.
_MODELS = {
    "SIMPLE_PINHOLE": (0, 0, 1, 2),
    "PINHOLE": (0, 1, 2, 3),
    "SIMPLE_RADIAL": (0, 0, 1, 2, 3),
    "RADIAL": (0, 0, 1, 2, 3, 4),
    "OPENCV": (0, 1, 2, 3, 4, 5, 6, 7),
}
_NAMES = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2")


def load(settings: dict[str, Any]) -> Any:
    """Import pycolmap."""
    import pycolmap

    if settings["matching"] not in ("exhaustive", "sequential"):
        raise ValueError("matching is exhaustive or sequential")

    def predict(frames: dict[int, str]) -> dict[int, dict[str, float]]:
        with tempfile.TemporaryDirectory() as folder:
            return _reconstruct(pycolmap, frames, folder, settings)

    return predict


def _reconstruct(
    colmap: Any, frames: dict[int, str], folder: str, settings: dict[str, Any]
) -> dict[int, dict[str, float]]:
    """Intrinsics of the frames that were registered in the largest model."""
    colmap.set_random_seed(settings["seed"])
    images = os.path.dirname(next(iter(frames.values())))
    names = {os.path.basename(path): frame for frame, path in frames.items()}
    database = os.path.join(folder, "database.db")
    _extract(colmap, database, images, list(names), settings)
    _match(colmap, database, settings)

    mapping = colmap.IncrementalPipelineOptions()
    mapping.min_focal_length_ratio = settings["min_focal_length_ratio"]
    mapping.max_focal_length_ratio = settings["max_focal_length_ratio"]
    mapping.min_model_size = settings["min_model_size"]
    mapping.num_threads = settings["threads"]
    mapping.random_seed = settings["seed"]
    mapping.extract_colors = False
    models = colmap.incremental_mapping(database, images, folder, mapping)
    if not models:
        return {}
    model = max(models.values(), key=lambda model: model.num_reg_images())
    return {
        names[image.name]: _intrinsics(model.cameras[image.camera_id], settings["camera_model"])
        for image in model.images.values()
        if image.has_pose
    }


def _extract(
    colmap: Any, database: str, images: str, names: list[str], settings: dict[str, Any]
) -> None:
    reading = colmap.ImageReaderOptions()
    reading.camera_model = settings["camera_model"]
    extraction = colmap.FeatureExtractionOptions()
    extraction.max_image_size = settings["max_image_size"]
    extraction.sift.max_num_features = settings["max_features"]
    extraction.num_threads = settings["threads"]
    colmap.extract_features(
        database,
        images,
        names,
        camera_mode=colmap.CameraMode.PER_IMAGE,
        reader_options=reading,
        extraction_options=extraction,
        device=colmap.Device.cpu,
    )


def _match(colmap: Any, database: str, settings: dict[str, Any]) -> None:
    matching = colmap.FeatureMatchingOptions()
    matching.num_threads = settings["threads"]
    verification = colmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = settings["seed"]
    arguments = {
        "matching_options": matching,
        "verification_options": verification,
        "device": colmap.Device.cpu,
    }
    if settings["matching"] == "exhaustive":
        colmap.match_exhaustive(database, **arguments)
    else:
        pairing = colmap.SequentialPairingOptions()
        pairing.overlap = settings["overlap"]
        colmap.match_sequential(database, pairing_options=pairing, **arguments)


def _intrinsics(camera: Any, camera_model: str) -> dict[str, float]:
    return {_NAMES[i]: float(camera.params[k]) for i, k in enumerate(_MODELS[camera_model])}
