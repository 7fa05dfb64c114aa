"""Printed sheets, read back by programs that know nothing of how they were made."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import cv2
import numpy as np
import pypdfium2
import pytest
from numpy.typing import NDArray
from PIL import Image

from influx_wrap.errors import InputError
from influx_wrap.formats.sheet import Sheet, write_sheet
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.target import AprilGrid, Checkerboard

Picture = NDArray[np.uint8]

WIDTH_MM, HEIGHT_MM = 200.0, 150.0
ROWS, COLS, TAG_MM, GAP_MM = 8, 11, 12.0, 3.6
SHEET = Sheet(WIDTH_MM, HEIGHT_MM, AprilGrid(COLS, ROWS, TAG_MM / 1e3, GAP_MM / TAG_MM))
SHEET_MM = (WIDTH_MM, HEIGHT_MM)
DPI = 254.0
PER_MM = 10.0


def tag_starts(n_tags: int, size_mm: float) -> FloatArray:
    """Where the tags of a row begin on the sheet, from the sizes alone."""
    tags_mm = n_tags * TAG_MM + (n_tags - 1) * GAP_MM
    return (size_mm - tags_mm) / 2 + (TAG_MM + GAP_MM) * np.arange(n_tags)


LEFT_MM, BOTTOM_MM = tag_starts(COLS, WIDTH_MM), tag_starts(ROWS, HEIGHT_MM)


def edges_px(profile: FloatArray) -> FloatArray:
    """Where a line of pixels goes through half its brightness, pixel 0 from 0 to 1."""
    change = np.diff(np.sign(profile - 127.5)) != 0
    at = np.flatnonzero(change)
    part = (127.5 - profile[at]) / (profile[at + 1] - profile[at])
    return at + 0.5 + part


def tag_edges(picture: Picture, pixel_mm: float) -> tuple[FloatArray, FloatArray]:
    """Edges in mm of the lowest row of tags and, from the bottom, of the leftmost column,
    seen along a line within the tags' black borders."""
    inside_mm = TAG_MM / 10
    row = int((BOTTOM_MM[0] + inside_mm) / pixel_mm)
    col = int((LEFT_MM[0] + inside_mm) / pixel_mm)
    from_below = picture[::-1].astype(float)
    skip = int(7 / pixel_mm)  # caption and rulers
    along = edges_px(from_below[row, skip:-skip]) + skip
    up = edges_px(from_below[skip:-skip, col]) + skip
    return along * pixel_mm, up * pixel_mm


def read_tags(picture: Picture) -> dict[int, FloatArray]:
    """Centre (x, y) in pixels of every tag, by OpenCV."""
    parameters = cv2.aruco.DetectorParameters()
    parameters.markerBorderBits = 2
    parameters.adaptiveThreshWinSizeMin = parameters.adaptiveThreshWinSizeMax = 3
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
    corners, ids, _ = cv2.aruco.ArucoDetector(dictionary, parameters).detectMarkers(picture)
    assert len(np.unique(ids)) == len(ids)
    quads = np.array(corners, dtype=float).reshape(-1, 4, 2)
    return dict(zip(ids.ravel().tolist(), quads.mean(axis=1) + 0.5, strict=True))


def assert_kalibr_numbering(picture: Picture, pixel_mm: float) -> None:
    """All ids are there, row by row from the bottom left."""
    centres = read_tags(picture)
    assert sorted(centres) == list(range(ROWS * COLS))
    for tag_id, (x_px, y_px) in centres.items():
        row, col = divmod(tag_id, COLS)
        height_mm = picture.shape[0] * pixel_mm
        assert abs(x_px * pixel_mm - (LEFT_MM[col] + TAG_MM / 2)) < 0.15
        assert abs(height_mm - y_px * pixel_mm - (BOTTOM_MM[row] + TAG_MM / 2)) < 0.15


def expected_edges(starts_mm: FloatArray) -> FloatArray:
    return np.sort(np.concatenate([starts_mm, starts_mm + TAG_MM]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sheet as board.pdf, board.svg and board.png at 254 dpi, ten pixels per mm."""
    made = tmp_path_factory.mktemp("sheet")
    for suffix in ("pdf", "svg", "png"):
        write_sheet(made / f"board.{suffix}", SHEET, DPI)
    return made


def rasterise(path: Path, per_mm: float) -> Picture:
    document = pypdfium2.PdfDocument(path)
    assert len(document) == 1
    page = document[0]
    np.testing.assert_allclose(np.array(page.get_size()) * 25.4 / 72, SHEET_MM, atol=1e-3)
    picture = page.render(scale=per_mm * 25.4 / 72, grayscale=True).to_numpy()
    return np.ascontiguousarray(picture.reshape(picture.shape[:2]))


def test_pdf_has_the_printed_dimensions(folder: Path) -> None:
    picture = rasterise(folder / "board.pdf", PER_MM)
    # pdfium rounds the number of pixels up and stretches the page over them.
    assert abs(picture.shape[1] - 2000) <= 1
    pixel_mm = WIDTH_MM / picture.shape[1]
    along, up = tag_edges(picture, pixel_mm)
    up *= HEIGHT_MM / (picture.shape[0] * pixel_mm)
    np.testing.assert_allclose(along, expected_edges(LEFT_MM), atol=0.03)
    np.testing.assert_allclose(up, expected_edges(BOTTOM_MM), atol=0.03)


def test_pdf_has_all_tags_in_kalibrs_places(folder: Path) -> None:
    picture = rasterise(folder / "board.pdf", PER_MM)
    assert_kalibr_numbering(picture, WIDTH_MM / picture.shape[1])


@pytest.mark.parametrize("per_mm", [3.17, 5.39])
def test_pdf_shows_no_seams(folder: Path, per_mm: float) -> None:
    """The ring of two cells around every code is black throughout, at odd magnifications."""
    picture = rasterise(folder / "board.pdf", per_mm)
    cell_px = TAG_MM / 10 * per_mm
    for left in LEFT_MM * per_mm:
        for top in (HEIGHT_MM - BOTTOM_MM - TAG_MM) * per_mm:
            x, y = round(left) + 2, round(top) + 2
            length, ring = int(10 * cell_px) - 4, int(2 * cell_px) - 4
            assert not picture[y : y + ring, x : x + length].any()
            assert not picture[y : y + length, x : x + ring].any()


def test_pdf_asks_to_be_printed_unscaled(folder: Path) -> None:
    document = pypdfium2.PdfDocument(folder / "board.pdf")
    assert not pypdfium2.raw.FPDF_VIEWERREF_GetPrintScaling(document)
    assert "tag 12 mm, gap 3.6 mm" in document.get_metadata_value("Title")


def test_same_bytes_every_time(folder: Path, tmp_path: Path) -> None:
    for suffix in ("pdf", "svg", "png"):
        write_sheet(tmp_path / f"again.{suffix}", SHEET, DPI)
        again = (tmp_path / f"again.{suffix}").read_bytes()
        assert again == (folder / f"board.{suffix}").read_bytes()


def svg_outlines(path: Path) -> list[list[FloatArray]]:
    """Of every path its outlines (n, 2) in mm, y down."""
    root = ElementTree.parse(path).getroot()
    assert (root.get("width"), root.get("height")) == ("200mm", "150mm")
    assert root.get("viewBox") == "0 0 200 150"
    shapes = [element.get("d") or "" for element in root.iter("{http://www.w3.org/2000/svg}path")]
    outlines = [re.findall(r"M([^MZ]+)Z", shape) for shape in shapes]
    return [
        [np.array(re.findall(r"[\d.]+", text), dtype=float).reshape(-1, 2) for text in texts]
        for texts in outlines
    ]


def test_svg_has_every_corner_where_it_belongs(folder: Path) -> None:
    pattern = np.concatenate(svg_outlines(folder / "board.svg")[0])
    x_mm, y_mm = expected_edges(LEFT_MM), HEIGHT_MM - expected_edges(BOTTOM_MM)
    corners = np.stack(np.meshgrid(x_mm, y_mm), axis=-1).reshape(-1, 2)
    nearest = np.abs(pattern[None] - corners[:, None]).max(axis=2).min(axis=1)
    assert nearest.max() < 1e-3
    np.testing.assert_allclose(pattern.min(axis=0), [x_mm[0] - GAP_MM, y_mm[-1] - GAP_MM])
    np.testing.assert_allclose(pattern.max(axis=0), [x_mm[-1] + GAP_MM, y_mm[0] + GAP_MM])


def test_svg_has_all_tags_in_kalibrs_places(folder: Path) -> None:
    picture = np.full((1500, 2000), 255, dtype=np.uint8)
    for outlines in svg_outlines(folder / "board.svg"):
        pixels = [np.rint(outline * PER_MM - 0.5).astype(np.int32) for outline in outlines]
        cv2.fillPoly(picture, pixels, 0)
    assert_kalibr_numbering(picture, 1 / PER_MM)


def test_png_has_the_printed_dimensions(folder: Path) -> None:
    data = (folder / "board.png").read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        assert image.info["dpi"] == pytest.approx((DPI, DPI), abs=1e-3)
        assert image.size == (2000, 1500)
        picture = np.asarray(image)
    assert picture.shape == (1500, 2000)
    assert_kalibr_numbering(picture, 1 / PER_MM)


def test_png_edges_between_pixels_stay_there(tmp_path: Path) -> None:
    write_sheet(tmp_path / "odd.png", SHEET, 187)
    picture = cv2.imread(str(tmp_path / "odd.png"), cv2.IMREAD_GRAYSCALE)
    with Image.open(tmp_path / "odd.png") as image:
        pixel_mm = 25.4 / image.info["dpi"][0]
    assert pixel_mm == pytest.approx(25.4 / 187, rel=1e-4)
    # The last part of a pixel is cut off on both sides alike.
    shift_mm = (np.array(SHEET_MM) - np.array(picture.shape[::-1]) * pixel_mm) / 2
    along, up = tag_edges(picture, pixel_mm)
    # Straight lines between pixels cross half brightness up to 1.5 - sqrt(2) pixels beside it.
    np.testing.assert_allclose(along + shift_mm[0], expected_edges(LEFT_MM), atol=0.09 * pixel_mm)
    np.testing.assert_allclose(up + shift_mm[1], expected_edges(BOTTOM_MM), atol=0.09 * pixel_mm)
    # The ink itself is exact: the darkness of a tag's border is its width.
    row = picture.shape[0] - 1 - int((BOTTOM_MM[0] + 1.2) / pixel_mm)
    ink_mm = (255.0 - picture[row]).sum() / 255 * pixel_mm
    assert ink_mm == pytest.approx(COLS * TAG_MM, abs=0.02)


def test_rulers_are_as_long_as_the_caption_says(folder: Path) -> None:
    _, along, up, caption = svg_outlines(folder / "board.svg")
    for (ruler,), axis in ((along, 0), (up, 1)):
        line_mm = 0.15
        assert np.ptp(ruler[:, axis]) == pytest.approx(50 + line_mm, abs=1e-3)
        assert np.ptp(ruler[:, 1 - axis]) <= 3.001
    margin_mm = float(LEFT_MM[0] - GAP_MM)
    assert min(outline[:, 0].min() for outline in caption) >= margin_mm
    assert max(outline[:, 0].max() for outline in caption) <= WIDTH_MM - margin_mm
    assert min(outline[:, 1].min() for outline in caption) > HEIGHT_MM - BOTTOM_MM[0] + GAP_MM
    assert max(outline[:, 1].max() for outline in caption) < HEIGHT_MM
    title = ElementTree.parse(folder / "board.svg").getroot()[0].text
    assert title == "200 x 150 mm: AprilGrid 8 x 11, tag36h11, ids 0-87, tag 12 mm, gap 3.6 mm"


def test_no_room_no_marks(tmp_path: Path) -> None:
    square = Sheet(60, 40, Checkerboard(5, 3, 0.01, 0.01))
    write_sheet(tmp_path / "full.svg", square)
    root = ElementTree.parse(tmp_path / "full.svg").getroot()
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 1


def test_checkerboard_in_a_png(tmp_path: Path) -> None:
    target = Checkerboard(cols=6, rows=3, col_spacing_m=0.01, row_spacing_m=0.012)
    write_sheet(tmp_path / "checker.png", Sheet(90, 70, target), 254)
    picture = cv2.imread(str(tmp_path / "checker.png"), cv2.IMREAD_GRAYSCALE)
    left_mm, bottom_mm = (90 - 7 * 10) / 2, (70 - 4 * 12) / 2
    for row in range(4):
        for col in range(7):
            x = round(10 * (left_mm + 10 * (col + 0.5)))
            y = round(10 * (70 - bottom_mm - 12 * (row + 0.5)))
            assert picture[y, x] == (0 if (row + col) % 2 == 0 else 255)
    found, corners = cv2.findChessboardCornersSB(picture, (6, 3))
    assert found
    expected = Sheet(90, 70, target).on_sheet_mm(target.points[:, :2])
    corners_mm = (corners.reshape(-1, 2) + 0.5) / 10
    corners_mm[:, 1] = 70 - corners_mm[:, 1]
    nearest = np.linalg.norm(corners_mm[None] - expected[:, None], axis=2).min(axis=1)
    assert nearest.max() < 0.05


def test_what_cannot_be_printed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"175\.2 x 128\.4 mm, larger"):
        Sheet(170, 150, SHEET.target)
    with pytest.raises(InputError, match="600 tags"):
        Sheet(4000, 4000, AprilGrid(30, 20, 0.1, 0.3))
    with pytest.raises(InputError, match="positive"):
        Sheet(float("nan"), 10, SHEET.target)
    with pytest.raises(InputError, match="300 million"):
        write_sheet(tmp_path / "large.png", SHEET, 4800)
    with pytest.raises(InputError, match="fewer than 3 pixels: take at least 64 dpi"):
        write_sheet(tmp_path / "coarse.png", SHEET, 63)
    with pytest.raises(InputError, match="write an SVG"):
        write_sheet(tmp_path / "large.pdf", Sheet(6000, 3000, SHEET.target))
    with pytest.raises(InputError, match=r"\.pdf, \.svg or \.png"):
        write_sheet(tmp_path / "board.eps", SHEET)
    assert list(tmp_path.iterdir()) == []
