"""Small textured clips with known cameras, drawn by OpenCV's homographies."""

from pathlib import Path

import cv2
import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.pose import rotation_matrix

SIZE = (416, 268)
TEXTURE_PX = 480
# Corner, then the ends of the two edges, of rectangles in metres: drawn from back to front.
RECTANGLES = np.array(
    [
        [[-4, -3, 7], [4, -3, 7], [-4, 2, 7]],
        [[-4, 2, 1.5], [4, 2, 1.5], [-4, 2, 7]],
        [[-4, -3, 1.5], [-4, -3, 7], [-4, 2, 1.5]],
        [[0.4, 0.2, 4.5], [2.2, 0.2, 4.2], [0.4, 2, 4.5]],
        [[-2.2, -0.5, 5.5], [-0.8, -0.5, 5.0], [-2.2, 2, 5.5]],
    ],
    dtype=float,
)


def texture(seed: int) -> np.ndarray:
    """Blobs of all sizes, in colour."""
    rng = np.random.default_rng(seed)
    picture = np.zeros((TEXTURE_PX, TEXTURE_PX, 3))
    for size in (12, 30, 60, 120):
        noise = rng.normal(0, 1, (size, size, 3))
        picture += cv2.resize(noise, (TEXTURE_PX, TEXTURE_PX), interpolation=cv2.INTER_CUBIC)
    return np.clip(128 + 40 * picture, 0, 255).astype(np.uint8)


def draw(matrix: FloatArray, rotation: FloatArray, centre: FloatArray) -> np.ndarray:
    """(H, W, 3) the place seen by a camera ``matrix`` (3, 3) that stands at ``centre``."""
    picture = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    for seed, (corner, right, down) in enumerate(RECTANGLES):
        # From texture pixels to the plane, to the camera, to the picture.
        plane = np.column_stack([right - corner, down - corner, corner - centre])
        homography = matrix @ rotation @ plane @ np.diag([1 / TEXTURE_PX, 1 / TEXTURE_PX, 1])
        seen = cv2.warpPerspective(texture(seed), homography, SIZE, flags=cv2.INTER_AREA)
        mask = cv2.warpPerspective(np.ones((TEXTURE_PX, TEXTURE_PX), np.uint8), homography, SIZE)
        picture[mask > 0] = seen[mask > 0]
    return picture


def write_zoom(folder: Path, n: int = 8) -> FloatArray:
    """Write the frames of a camera that walks and zooms; returns the focal lengths (n,) in px."""
    folder.mkdir()
    focal_px = np.linspace(370, 450, n)
    for i, focal in enumerate(focal_px):
        matrix = np.array([[focal, 0, 207.5], [0, focal, 133.5], [0, 0, 1]])
        s = i / (n - 1)
        rotation = rotation_matrix(np.array([0.02 * np.sin(5 * s), 0.25 * (0.5 - s), 0.03 * s]))
        centre = np.array([1.8 * (s - 0.5), 0.35 * np.sin(4 * s), 0.5 * s])
        cv2.imwrite(str(folder / f"{i:03d}.png"), draw(matrix, rotation, centre))
    return focal_px


def write_frames(folder: Path, n: int) -> Path:
    """Write ``n`` small pictures, of which the brightness is the frame's number."""
    folder.mkdir()
    for i in range(n):
        cv2.imwrite(str(folder / f"{i}.png"), np.full((12, 16, 3), i, np.uint8))
    return folder
