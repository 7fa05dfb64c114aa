"""Boards for the printer: a sheet of paper with a target in its middle, true to scale.

PDF and SVG hold the target's outlines as one black shape, so that no viewer draws seams
between cells. In a PNG every pixel has the share of white on its area: an edge that falls
between two pixels stays there, where whole-pixel cells would move it by up to half a pixel.
Its pixels are as wide as its resolution says, in the whole pixels per metre that PNG has.

In the margins, if they are wide enough, stand a caption and two rulers, because printers
like to scale, and not always both ways alike.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_bytes
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.pattern import black_outlines, cell_pattern
from influx_wrap.model.target import AprilGrid, Charuco, Checkerboard
from influx_wrap.model.words import size_text

if TYPE_CHECKING:
    from reportlab.pdfgen.canvas import Canvas

DEFAULT_DPI = 300.0
MAX_PIXELS = 300_000_000
MIN_CELL_PIXELS = 3
MAX_PDF_MM = 5080
"""Pages end at 14400 points."""

POINTS_PER_MM = 72 / 25.4
RULERS_MM = (100, 50, 20, 10)
RULER_STEPS = 10
LINE_MM = 0.15
LETTER_MM = (1.0, 3.0)
"""Size of the caption's font: the least that can be read, and the most."""
LETTER_OF_MARGIN = 0.35
_PNG_HEADER_BYTES = 33
_FINE = 8


PrintableTarget = AprilGrid | Checkerboard | Charuco


@dataclass(frozen=True)
class Sheet:
    """Paper of ``width_mm`` x ``height_mm`` with ``target`` printed in its middle."""

    width_mm: float
    height_mm: float
    target: PrintableTarget

    def __post_init__(self) -> None:
        if not min(self.width_mm, self.height_mm) > 0:
            raise InputError("a sheet needs a positive width and height.")
        width, height = self.pattern_mm
        if min(self.margins_mm) < -1e-9 * (width + height):
            raise InputError(
                f"the pattern is {width:.6g} x {height:.6g} mm, larger than the sheet of "
                f"{self.width_mm:g} x {self.height_mm:g} mm: take a larger sheet, smaller tags "
                "or squares, or fewer of them."
            )

    @property
    def pattern_mm(self) -> tuple[float, float]:
        """(width, height) of all that is printed of the target."""
        pattern = cell_pattern(self.target)
        return 1e3 * float(np.ptp(pattern.x_m)), 1e3 * float(np.ptp(pattern.y_m))

    @property
    def margins_mm(self) -> tuple[float, float]:
        """White left and right of the pattern, and below and above it."""
        width, height = self.pattern_mm
        return (self.width_mm - width) / 2, (self.height_mm - height) / 2

    def on_sheet_mm(self, points_m: FloatArray) -> FloatArray:
        """Points (..., 2) of the target's plane on the sheet, from its bottom left corner."""
        pattern = cell_pattern(self.target)
        corner = np.array([pattern.x_m[0], pattern.y_m[0]])
        return np.asarray(1e3 * (points_m - corner) + self.margins_mm)

    @property
    def title(self) -> str:
        """What is on the sheet, in one line."""
        target = self.target
        if isinstance(target, AprilGrid):
            tag_mm = 1e3 * target.tag_size_m
            pattern = (
                f"AprilGrid {target.tag_rows} x {target.tag_cols}, tag36h11, "
                f"ids 0-{target.tag_rows * target.tag_cols - 1}, tag {tag_mm:.6g} mm, "
                f"gap {tag_mm * target.tag_spacing:.6g} mm"
            )
            if target.border_cells == 1:
                pattern += ", border of one cell"
        elif isinstance(target, Charuco):
            pattern = (
                f"ChArUco {target.rows} x {target.cols}, squares "
                f"{1e3 * target.square_size_m:.6g} mm, markers "
                f"{1e3 * target.marker_size_m:.6g} mm of {target.dictionary}"
                f"{', legacy pattern' if target.legacy else ''}"
            )
        else:
            square = (1e3 * target.col_spacing_m, 1e3 * target.row_spacing_m)
            pattern = (
                f"checkerboard {target.rows + 1} x {target.cols + 1}, "
                f"squares {square[0]:.6g} x {square[1]:.6g} mm"
            )
        return f"{self.width_mm:g} x {self.height_mm:g} mm: {pattern}"


def write_sheet(path: Path, sheet: Sheet, dpi: float = DEFAULT_DPI) -> None:
    """Write a sheet as PDF, SVG or PNG, as the suffix says; ``dpi`` is for PNG."""
    match path.suffix.lower():
        case ".pdf":
            data = _as_pdf(sheet)
        case ".svg":
            data = _as_svg(sheet)
        case ".png":
            data = _as_png(sheet, dpi)
        case _:
            raise InputError(f"{path}: a board is written as .pdf, .svg or .png; give one of them.")
    write_bytes(path, data)


def _pattern(sheet: Sheet) -> list[FloatArray]:
    """Outlines (n, 2) of the target in mm from the sheet's bottom left corner."""
    return [sheet.on_sheet_mm(outline) for outline in black_outlines(sheet.target)]


def _marks(sheet: Sheet) -> list[list[FloatArray]]:
    """Outlines (n, 2) in mm of two rulers and of the caption, those that there is room for."""
    side, below = sheet.margins_mm
    width, height = sheet.pattern_mm
    letter = min(LETTER_OF_MARGIN * min(side, below), LETTER_MM[1])
    if letter < LETTER_MM[0]:
        return []
    marks: list[list[FloatArray]] = []
    note = "print at 100 %"
    ruler_mm = max((r for r in RULERS_MM if r <= min(width, height) / 2), default=None)
    if ruler_mm is not None:
        ruler, top = _ruler(ruler_mm, letter), sheet.height_mm - below
        marks.append([ruler + np.array([side, top + (below - letter) / 2])])
        marks.append([ruler[:, ::-1] + np.array([(side - letter) / 2, top - ruler_mm])])
        note += f", rulers {ruler_mm} mm"
    caption = _letters(f"{sheet.title}; {note}")
    letter = min(letter, width / max(float(outline[:, 0].max()) for outline in caption))
    if letter >= LETTER_MM[0]:
        corner = np.array([side, (below - letter) / 2])
        marks.append([letter * outline + corner for outline in caption])
    return marks


def _ruler(length_mm: int, height_mm: float) -> FloatArray:
    """Outline (n, 2) of a comb: ``length_mm`` from the middle of its first tooth to the
    middle of its last, the first in x = 0; those at the ends and half-way are longer."""
    corners = [(length_mm + LINE_MM / 2, 0.0), (-LINE_MM / 2, 0.0)]
    for step in range(RULER_STEPS + 1):
        at = length_mm * step / RULER_STEPS
        tip = height_mm if step % (RULER_STEPS // 2) == 0 else 0.6 * height_mm
        left, right = at - LINE_MM / 2, at + LINE_MM / 2
        corners += [(left, LINE_MM), (left, tip), (right, tip), (right, LINE_MM)]
    return np.array(corners)


def _letters(text: str) -> list[FloatArray]:
    """Outlines (n, 2) of a line of text from (0, 0) on, for a font of size 1.

    Outlines rather than text look the same everywhere, and need no font where they print.
    """
    # matplotlib is slow to load.
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    # Curves are broken into lines a fraction of a unit long: large letters, small lines.
    large = 100
    path = TextPath((0, 0), text, size=large, prop=FontProperties(family="DejaVu Sans"))
    return [np.asarray(outline) / large for outline in path.to_polygons(closed_only=True)]


def write_book(path: Path, sheets: Sequence[Sheet]) -> None:
    """Write a PDF with a page for each sheet."""
    if path.suffix.lower() != ".pdf":
        raise InputError(f"{path}: several boards in one file are a .pdf; or name a folder.")
    write_bytes(path, _as_pdf(*sheets))


def _as_pdf(*sheets: Sheet) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pageCompression=1, invariant=1)
    canvas.setTitle("; ".join(sheet.title for sheet in sheets))
    canvas.setCreator("influx_wrap")
    # Asks the print dialogue not to fit the page to the paper.
    canvas.setViewerPreference("PrintScaling", "None")
    for sheet in sheets:
        _draw_page(canvas, sheet)
    canvas.save()
    return buffer.getvalue()


def _draw_page(canvas: Canvas, sheet: Sheet) -> None:
    if max(sheet.width_mm, sheet.height_mm) > MAX_PDF_MM:
        raise InputError(
            f"a PDF page is at most {MAX_PDF_MM} mm wide and high, the sheet is "
            f"{sheet.width_mm:g} x {sheet.height_mm:g} mm: write an SVG instead."
        )
    size = (sheet.width_mm * POINTS_PER_MM, sheet.height_mm * POINTS_PER_MM)
    canvas.setPageSize(size)
    for outlines in (_pattern(sheet), *_marks(sheet)):
        shape = canvas.beginPath()
        for outline in outlines:
            first, *others = (POINTS_PER_MM * outline).tolist()
            shape.moveTo(*first)
            for corner in others:
                shape.lineTo(*corner)
            shape.close()
        canvas.drawPath(shape, stroke=0, fill=1)
    canvas.showPage()


def _as_svg(sheet: Sheet) -> bytes:
    width, height = f"{sheet.width_mm:.10g}", f"{sheet.height_mm:.10g}"
    root = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        width=f"{width}mm",
        height=f"{height}mm",
        viewBox=f"0 0 {width} {height}",
    )
    ElementTree.SubElement(root, "title").text = sheet.title
    ElementTree.SubElement(root, "rect", width=width, height=height, fill="white")
    for outlines in (_pattern(sheet), *_marks(sheet)):
        shape = " ".join(_svg_outline(outline, sheet.height_mm) for outline in outlines)
        ElementTree.SubElement(root, "path", fill="black", d=shape)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _svg_outline(outline: FloatArray, height_mm: float) -> str:
    """A closed outline (n, 2) as SVG draws it, with y downwards, to a tenth of a micron."""
    corners = (f"{x:.4f},{height_mm - y:.4f}" for x, y in outline.tolist())
    return f"M{' '.join(corners)}Z"


def _as_png(sheet: Sheet, dpi: float) -> bytes:
    pixels_per_m = round(dpi / 0.0254)
    _check_resolution(sheet, dpi)
    pixel_mm = 1e3 / pixels_per_m
    x_mm, y_mm = (_pixel_edges(size, pixel_mm) for size in (sheet.width_mm, sheet.height_mm))
    pattern = cell_pattern(sheet.target)
    corner_x, corner_y = sheet.margins_mm
    share_x = _shares(x_mm, 1e3 * (pattern.x_m - pattern.x_m[0]) + corner_x)
    share_y = _shares(y_mm, 1e3 * (pattern.y_m - pattern.y_m[0]) + corner_y)
    # All rows of pixels within a row of cells are the same: each kind is computed once.
    kinds, kind = np.unique(share_y, axis=0, return_inverse=True)
    shades = np.rint(255 * (1 - kinds @ pattern.black @ share_x.T)).astype(np.uint8)
    image: NDArray[np.uint8] = shades[kind.ravel()]
    for mark in _marks(sheet):
        _stamp(image, [(outline - [x_mm[0], y_mm[0]]) / pixel_mm for outline in mark])
    done, encoded = cv2.imencode(".png", np.flipud(image))
    if not done:
        raise InputError(f"a PNG of {size_text(image.shape[::-1])} pixels cannot be made.")
    return _with_resolution(encoded.tobytes(), pixels_per_m)


def _check_resolution(sheet: Sheet, dpi: float) -> None:
    per_mm = dpi / 25.4
    n_pixels = per_mm**2 * sheet.width_mm * sheet.height_mm
    if n_pixels > MAX_PIXELS:
        raise InputError(
            f"a sheet of {sheet.width_mm:g} x {sheet.height_mm:g} mm at {dpi:g} dpi has "
            f"{n_pixels / 1e6:.0f} million pixels, more than {MAX_PIXELS / 1e6:.0f} million: "
            "lower the dpi, or write a PDF or SVG."
        )
    pattern = cell_pattern(sheet.target)
    cell_mm = 1e3 * float(min(np.diff(pattern.x_m).min(), np.diff(pattern.y_m).min()))
    if cell_mm * per_mm < MIN_CELL_PIXELS:
        raise InputError(
            f"at {dpi:g} dpi the smallest cells, {cell_mm:.3g} mm wide, have fewer than "
            f"{MIN_CELL_PIXELS} pixels: take at least "
            f"{np.ceil(MIN_CELL_PIXELS / cell_mm * 25.4):.0f} dpi, or write a PDF or SVG."
        )


def _pixel_edges(size_mm: float, pixel_mm: float) -> FloatArray:
    """Edges (n + 1,) of a row of whole pixels that lies in the middle of the sheet."""
    n = max(round(size_mm / pixel_mm), 1)
    return size_mm / 2 + pixel_mm * (np.arange(n + 1, dtype=float) - n / 2)


def _shares(edges: FloatArray, lines: FloatArray) -> FloatArray:
    """(n, m) the share of each pixel between ``edges`` (n + 1,) in each cell between
    ``lines`` (m + 1,), to a millionth."""
    within = np.clip(edges[:, None], lines[:-1], lines[1:])
    shares = np.diff(within, axis=0) / (edges[1] - edges[0])
    return np.asarray(np.round(shares, 6), dtype=float)


def _stamp(image: NDArray[np.uint8], outlines: list[FloatArray]) -> None:
    """Draw outlines (n, 2), in pixels from the first corner of the picture, smoothed."""
    points = np.concatenate(outlines)
    low = np.maximum(np.floor(points.min(axis=0)).astype(int), 0)
    width, height = np.ceil(points.max(axis=0)).astype(int) - low
    fine = np.zeros((height * _FINE, width * _FINE), dtype=np.uint8)
    corners = [np.rint((o - low) * _FINE - 0.5).astype(np.int32) for o in outlines]
    cv2.fillPoly(fine, corners, 255)
    black = cv2.resize(fine, (int(width), int(height)), interpolation=cv2.INTER_AREA)
    part = image[low[1] : low[1] + height, low[0] : low[0] + width]
    np.minimum(part, 255 - black[: part.shape[0], : part.shape[1]], out=part)


def _with_resolution(png: bytes, pixels_per_m: int) -> bytes:
    """The PNG with a pHYs chunk behind its header."""
    chunk = b"pHYs" + struct.pack(">IIB", pixels_per_m, pixels_per_m, 1)
    chunk = struct.pack(">I", 9) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:_PNG_HEADER_BYTES] + chunk + png[_PNG_HEADER_BYTES:]
