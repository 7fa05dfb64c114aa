"""Intrinsics of a picture that was made of the calibrated one: a window of it, scaled.

Cameras read out a window of their sensor, and deliver, proxies and edits scale it. Counted from the
corner of the top-left pixel, a place u of the calibrated picture is at s (u - x) in one that shows
the window from x on, scaled by s. So fx becomes s fx, and cx, which here counts from the pixel's
centre, s (cx + 1/2 - x) - 1/2. The distortion is one of directions, before any focal length makes
pixels of them: k1, k2, p1 and p2 stay what they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.clip import Clip
from influx_wrap.model.words import size_text

LEAST_SIDE_PX = 16
"""Of a picture that is asked for: smaller ones are mistakes."""
_CORNER_PX = 0.5
_ROUNDING_PX, _ROUNDING = 1.0, 0.02
"""By how much a scaled picture's side may differ from the window's shape: sides are whole numbers,
and even ones for most codecs."""


@dataclass(frozen=True)
class Crop:
    """Which window of the calibrated picture is shown.

    size  (width, height) in its pixels; None: the largest one with the shape of the picture made
    at    (x, y) of its top-left pixel; None: in the middle
    """

    size: tuple[int, int] | None = None
    at: tuple[int, int] | None = None


@dataclass(frozen=True)
class Framing:
    """A picture of ``size``, made of the window of the calibrated one of ``full`` pixels.

    window  (x, y, width, height), counted from the corner of the top-left pixel
    """

    full: tuple[int, int]
    window: tuple[float, float, float, float]
    size: tuple[int, int]

    @property
    def scale(self) -> tuple[float, float]:
        """In x and in y."""
        return self.size[0] / self.window[2], self.size[1] / self.window[3]

    @property
    def is_identity(self) -> bool:
        """Whether it is the calibrated picture itself."""
        return self.size == self.full and self.window == (0, 0, *self.full)

    def intrinsics(self, values: FloatArray) -> FloatArray:
        """Cameras (n, 8) of the calibrated picture, in the picture made."""
        made = values.copy()
        for axis, (scale, start) in enumerate(zip(self.scale, self.window[:2], strict=True)):
            made[:, axis] *= scale
            made[:, 2 + axis] = scale * (values[:, 2 + axis] + _CORNER_PX - start) - _CORNER_PX
        return made

    def clip(self, clip: Clip) -> Clip:
        """A clip of the calibrated picture, as it is in the picture made."""
        assert clip.image_size == self.full
        pitch_x, pitch_y = (p / s for p, s in zip(clip.pixel_um, self.scale, strict=True))
        return replace(
            clip,
            image_size=self.size,
            pixel_um=(pitch_x, pitch_y),
            intrinsics=self.intrinsics(clip.intrinsics),
        )

    @property
    def sentence(self) -> str:
        """What is shown, for the user."""
        x, y, width, height = self.window
        part = "all"
        if (width, height) != self.full:
            part = f"the window {width:.6g} x {height:.6g} at {x:.6g}, {y:.6g}"
        by_x, by_y = self.scale
        scaled = f"scaled by {by_x:.6g}" + (f" and {by_y:.6g}" if by_x != by_y else "")
        scaled = "not scaled" if by_x == by_y == 1 else scaled
        return (
            f"The pictures have {size_text(self.size)} pixels: {part} of the calibrated "
            f"{size_text(self.full)}, {scaled}."
        )


def make_framing(
    full: tuple[int, int],
    size: tuple[int, int] | None,
    crop: Crop | None = None,
    *,
    stretch: bool = False,
) -> Framing:
    """The framing of calibrated pictures of ``full`` pixels that somebody asks for.

    size     (width, height) of the picture made; None: that of the window
    crop     the window; None: the whole picture
    stretch  whether x and y may be scaled differently
    """
    whole = 0.0, 0.0, float(full[0]), float(full[1])
    if size is None and crop is None:
        return Framing(full, whole, full)
    window = whole if crop is None else _window(full, size, crop)
    if size is None:
        size = round(window[2]), round(window[3])
    if min(size) < LEAST_SIDE_PX or min(window[2:]) < LEAST_SIDE_PX:
        small = size if min(size) < LEAST_SIDE_PX else (round(window[2]), round(window[3]))
        raise InputError(f"{size_text(small)} pixels are no picture: {LEAST_SIDE_PX} is the least.")
    if size[0] > full[0] or size[1] > full[1]:
        raise InputError(
            f"{size_text(size)} pixels are more than the {size_text(full)} that were calibrated: "
            "the camera has no such picture. Give the size of its recording."
        )
    framing = Framing(full, window, size)
    if not stretch and not _has_shape(window, size):
        raise InputError(_other_shape(framing, crop))
    return framing


def _window(
    full: tuple[int, int], size: tuple[int, int] | None, crop: Crop
) -> tuple[float, float, float, float]:
    if crop.size is None:
        if size is None:
            raise InputError("--crop center takes the shape of --size: give a size too.")
        least = min(full[0] / size[0], full[1] / size[1])
        width, height = least * size[0], least * size[1]
        return (full[0] - width) / 2, (full[1] - height) / 2, width, height
    width, height = crop.size
    # A camera reads out whole pixels.
    x, y = crop.at or ((full[0] - width) // 2, (full[1] - height) // 2)
    if x < 0 or y < 0 or x + width > full[0] or y + height > full[1]:
        place = "" if crop.at is None else f" at {x}, {y}"
        raise InputError(
            f"the crop {size_text(crop.size)}{place} reaches beyond the calibrated picture of "
            f"{size_text(full)} pixels."
        )
    return x, y, width, height


def _has_shape(window: tuple[float, float, float, float], size: tuple[int, int]) -> bool:
    """Whether a size is that of the window scaled, up to the rounding of one side."""
    width, height = size
    off_px = min(
        abs(height - width * window[3] / window[2]), abs(width - height * window[2] / window[3])
    )
    ratio = math.log(width / height * window[3] / window[2])
    return off_px <= _ROUNDING_PX and abs(ratio) <= _ROUNDING


def _other_shape(framing: Framing, crop: Crop | None) -> str:
    (_, _, width, height), size = framing.window, framing.size
    whole = "calibrated picture" if crop is None else "window"
    whole_text = size_text((round(width), round(height)))
    likes = f"--size {size[0]}x{round(size[0] * height / width)}"
    middle = _window(framing.full, size, Crop())
    centre = f"{middle[2]:.6g} x {middle[3]:.6g}"
    return (
        f"{size_text(size)} pixels have another shape, {size[0] / size[1]:.4g}:1, than the {whole} "
        f"of {whole_text}, {width / height:.4g}:1. Was the picture cut: --crop center takes the "
        f"middle {centre} of the calibrated one, --crop WIDTHxHEIGHT+X+Y another part; all of the "
        f"{whole} is {likes}. Was it squeezed: --stretch."
    )
