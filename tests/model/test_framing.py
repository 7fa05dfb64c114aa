"""Pictures made of calibrated ones: where pixels go, by OpenCV and by hand, and what is refused."""

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.model.framing import Crop, Framing, make_framing

FULL = (3424, 2202)


def test_the_window_by_hand() -> None:
    cases: list[tuple[tuple[int, int] | None, Crop | None, bool, tuple[float, ...]]] = [
        (None, None, False, (0, 0, 3424, 2202)),
        ((1712, 1101), None, False, (0, 0, 3424, 2202)),
        ((1920, 1080), Crop(), False, (0, 138, 3424, 1926)),
        ((1000, 1000), Crop(), False, (611, 0, 2202, 2202)),
        ((2048, 858), Crop(), False, (0, 383.765625, 3424, 1434.46875)),
        (None, Crop((1920, 1080)), False, (752, 561, 1920, 1080)),
        # Half a pixel cannot be read out.
        (None, Crop((1921, 1081)), False, (751, 560, 1921, 1081)),
        (None, Crop((1920, 1080), (1504, 1122)), False, (1504, 1122, 1920, 1080)),
        ((1920, 1080), Crop((960, 540), (1, 2)), False, (1, 2, 960, 540)),
        ((1920, 1080), None, True, (0, 0, 3424, 2202)),
    ]
    for size, crop, stretch, window in cases:
        framing = make_framing(FULL, size, crop, stretch=stretch)
        assert framing.window == pytest.approx(window, abs=1e-9)
        assert framing.size == (size or tuple(window[2:]))
    assert make_framing(FULL, None).is_identity
    assert make_framing(FULL, FULL).is_identity
    assert not make_framing(FULL, None, Crop((1920, 1080))).is_identity


def test_sides_are_rounded_by_who_scales() -> None:
    """All of the picture, 1234.77 rows high at 1920 columns: whole or even rows, as encoded."""
    for rows in (1234, 1235):
        framing = make_framing(FULL, (1920, rows))
        assert framing.scale == (1920 / 3424, rows / 2202)
        assert "scaled by 0.560748 and 0.56" in framing.sentence
    with pytest.raises(InputError, match="another shape"):
        make_framing(FULL, (1920, 1233))


def test_pixels_go_where_opencv_puts_them() -> None:
    """Pictures whose values are the pixels' own x and y, cropped and scaled by OpenCV: means of
    2 x 2 and 4 x 3 pixels, so that centres are exact."""
    full = (240, 180)
    ramps = np.stack(np.meshgrid(*(np.arange(float(n)) for n in full)), axis=-1)
    for crop, size in ((None, (120, 90)), (Crop((160, 90), (31, 17)), (80, 45)),
                       (Crop((160, 90), (31, 17)), (40, 30))):  # fmt: skip
        framing = make_framing(full, size, crop, stretch=True)
        x, y, width, height = map(int, framing.window)
        cut = ramps[y : y + height, x : x + width]
        made = cv2.resize(cut, size, interpolation=cv2.INTER_AREA)
        # A camera whose principal point is at a pixel of the picture made, in the calibrated one.
        for column, row in ((0, 0), (7, 3), (size[0] - 1, size[1] - 1)):
            camera = np.array([[100.0, 100.0, *made[row, column], 0.1, 0.2, 0.3, 0.4]])
            assert framing.intrinsics(camera)[0, 2:4] == pytest.approx([column, row], abs=1e-5)
            assert framing.intrinsics(camera)[0, 4:].tolist() == [0.1, 0.2, 0.3, 0.4]
            assert framing.intrinsics(camera)[0, :2] == pytest.approx(
                [100 * size[0] / width, 100 * size[1] / height]
            )


def test_one_after_the_other() -> None:
    """A proxy of a crop is the crop of what was scaled."""
    values = np.array([[2100.0, 2103.0, 1709.2, 1111.7, -0.1, 0.04, 0.001, -0.002]])
    at_once = make_framing(FULL, (480, 270), Crop((1920, 1080), (100, 200)))
    cut = make_framing(FULL, None, Crop((1920, 1080), (100, 200)))
    scaled = make_framing((1920, 1080), (480, 270))
    np.testing.assert_allclose(
        scaled.intrinsics(cut.intrinsics(values)), at_once.intrinsics(values), rtol=1e-14
    )


@pytest.mark.parametrize(
    ("size", "crop", "stretch", "words"),
    [
        ((1920, 1080), None, False, "1.778:1, than the calibrated picture of 3424 x 2202, 1.555:1"),
        ((1920, 1080), None, False, "--crop center takes the middle 3424 x 1926"),
        ((1920, 1080), None, False, "--size 1920x1235"),
        ((1280, 800), Crop((2560, 1440)), False, "than the window of 2560 x 1440"),
        ((3425, 2202), None, True, "more than the 3424 x 2202 that were calibrated"),
        ((3424, 2203), None, False, "more than the 3424 x 2202"),
        ((3840, 2160), Crop(), False, "more than the 3424 x 2202"),
        ((10**9, 10**9), Crop(), True, "more than the 3424 x 2202"),
        ((15, 10), None, False, "15 x 10 pixels are no picture"),
        ((16, 1000), Crop((1, 1000)), True, "1 x 1000 pixels are no picture"),
        (None, Crop(), False, "give a size too"),
        (None, Crop((3425, 2000)), False, "reaches beyond the calibrated picture"),
        (None, Crop((1920, 1080), (1505, 0)), False, "1920 x 1080 at 1505, 0 reaches beyond"),
        (None, Crop((1920, 1080), (0, 1123)), False, "reaches beyond"),
        (None, Crop((10**9, 16)), False, "reaches beyond"),
        (None, Crop((100, 100), (10**9, 0)), False, "reaches beyond"),
    ],
)
def test_what_no_camera_delivers(
    size: tuple[int, int] | None, crop: Crop | None, stretch: bool, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        make_framing(FULL, size, crop, stretch=stretch)


def test_the_sentence() -> None:
    framing = Framing(FULL, (0, 138, 3424, 1926), (1920, 1080))
    assert framing.sentence == (
        "The pictures have 1920 x 1080 pixels: the window 3424 x 1926 at 0, 138 of the calibrated "
        "3424 x 2202, scaled by 0.560748."
    )
    cut = make_framing(FULL, None, Crop((2880, 1620)))
    assert cut.sentence.endswith(
        "2880 x 1620 at 272, 291 of the calibrated 3424 x 2202, not scaled."
    )
