"""Small pictures of lights at night, and the paper's rules word by word."""

import cv2
import numpy as np

RED, MAGENTA = ((0, 100, 120), (50, 255, 255)), ((130, 100, 120), (180, 255, 255))
LED_BGR, LAMP_BGR = (0.035, 0.06, 1.0), (0.6, 0.9, 1.0)


def night(
    size: tuple[int, int], rng: np.random.Generator, noise: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Light (H, W, 3) of a dark sky, 1 where the sensor clips, and noise to be added later."""
    width, height = size
    light = np.full((height, width, 3), 0.002) * (1 + np.arange(height) / height)[:, None, None]
    return light, rng.normal(0, noise, light.shape)


def add_light(
    light: np.ndarray,
    uv: tuple[float, float],
    *,
    gain: float = 300.0,
    core_px: float = 5.0,
    halo: float = 0.02,
    halo_px: float = 9.0,
    scatter: float = 0.0,
    scatter_rad: float = 0.0,
    colour: tuple[float, float, float] = LED_BGR,
) -> None:
    """Add a round light with a halo and, ``scatter`` times as strong, a glow to one side."""
    v, u = np.mgrid[: light.shape[0], : light.shape[1]]
    du, dv = u - uv[0], v - uv[1]
    r2 = du**2 + dv**2
    shape = np.exp(-r2 / (2 * core_px**2)) + halo / (1 + r2 / halo_px**2) ** 1.5
    along = du * np.cos(scatter_rad) + dv * np.sin(scatter_rad) - 3 * core_px
    across = dv * np.cos(scatter_rad) - du * np.sin(scatter_rad)
    shape += scatter * np.exp(-((along / 2) ** 2 + across**2) / (2 * core_px**2))
    light += gain * shape[..., None] * colour


def develop(light: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The picture (H, W, 3): clipped, with a display's curve, noise and 8 bits."""
    encoded = 255 * np.clip(light, 0, 1) ** (1 / 2.2)
    return np.clip(np.rint(encoded + noise * np.sqrt(1 + encoded / 60)), 0, 255).astype(np.uint8)


def by_the_book(picture: np.ndarray) -> tuple[int, tuple, tuple] | None:
    """Rule, centre and axes by the paper's words, over whole pictures and pixel by pixel."""
    lightness = cv2.cvtColor(picture, cv2.COLOR_BGR2HLS)[..., 1]
    hsv = cv2.cvtColor(picture, cv2.COLOR_BGR2HSV)
    red = (cv2.inRange(hsv, *RED) > 0) | (cv2.inRange(hsv, *MAGENTA) > 0)
    for rule, selected, min_minor in (
        (1, lightness > 210, 10),
        (2, lightness > 150, 8),
        (3, red, 8),
    ):
        kept = []
        contours, _ = cv2.findContours(
            selected.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
        )
        for contour in contours:
            if len(contour) < 5:
                continue
            (u, v), axes, _ = cv2.fitEllipse(contour)
            major, minor = max(axes), min(axes)
            if not minor > min_minor or (rule == 1 and not major / minor < 1.5):
                continue
            height, width = lightness.shape
            if not (-0.5 <= u <= width - 0.5 and -0.5 <= v <= height - 0.5):
                continue
            columns = np.abs(np.arange(width) - u) <= major
            rows = np.abs(np.arange(height) - v) <= major
            square = np.ix_(rows, columns)
            if rule < 3 and red[square].mean() < 0.25:
                continue
            strength = (lightness if rule < 3 else hsv[..., 1])[square].mean()
            kept.append((strength, major / minor, (u, v), (major, minor)))
        if rule == 3 and kept:
            most = max(strength for strength, *_ in kept)
            similar = [one for one in kept if one[0] >= 0.9 * most]
            _, _, uv, axes = min(similar, key=lambda one: (one[1], one[2][1], one[2][0]))
            return rule, uv, axes
        if kept:
            _, _, uv, axes = min(kept, key=lambda one: (-one[0], one[2][1], one[2][0]))
            return rule, uv, axes
    return None
