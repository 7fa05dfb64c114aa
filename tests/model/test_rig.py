"""Lens and camera by metadata, against those of a table."""

import pytest

from influx_wrap.model.rig import DeviceName, ReportedRig, compare_rig

LENS = DeviceName("canon17", "CN7x17 KAS S/P1")
CAMERA = DeviceName("arri-alexa-mini", "ALEXA Mini")
SIZE = (3424, 2202)


@pytest.mark.parametrize(
    ("reported", "is_it"),
    [
        ("CN7x17 KAS S/P1", True),
        ("cn7X17 kas s-p1 ", True),
        ("Canon17", True),
        ("CN7x17 KAS", False),
        ("ARRI SP40 T1.8", False),
    ],
)
def test_names(reported: str, is_it: bool) -> None:
    assert LENS.is_called(reported) is is_it


def test_a_larger_camera_of_almost_the_same_name() -> None:
    assert CAMERA.is_called("ARRI ALEXA Mini") is True
    assert CAMERA.is_called("ALEXA Mini LF") is False


def test_no_name_to_compare_with() -> None:
    assert DeviceName("mine").is_called("CN7x17 KAS S/P1") is None
    assert DeviceName("mine").is_called("Mine") is True


def test_agreement() -> None:
    reported = ReportedRig(("CN7x17 KAS S/P1",), ("Alexa Mini",), (SIZE,))
    compared = compare_rig(reported, LENS, CAMERA, SIZE, owner="the table")
    assert compared.contradictions == compared.notes == ()


def test_every_value_is_held_against_the_table() -> None:
    lenses = ("CN7x17 KAS S/P1", "ARRI SP40 T1.8")
    reported = ReportedRig(lenses, ("Alexa LF",), ((1920, 1080), SIZE))
    found = compare_rig(reported, LENS, CAMERA, SIZE, owner="the table").contradictions
    assert len(found) == 3
    for text, words in zip(
        found,
        [("ARRI SP40", "canon17", "CN7x17"), ("Alexa LF", "mini"), ("1920 x 1080", "3424 x 2202")],
        strict=True,
    ):
        for word in words:
            assert word in text


def test_what_could_not_be_compared_is_said() -> None:
    nothing = compare_rig(ReportedRig(), LENS, CAMERA, SIZE, owner="the table")
    assert not nothing.contradictions
    assert "name no lens" in nothing.notes[0]
    unnamed = compare_rig(ReportedRig(("X 20",)), DeviceName("mine"), CAMERA, SIZE, owner="it")
    assert not unnamed.contradictions
    assert "'X 20'" in unnamed.notes[0]
    assert "mine" in unnamed.notes[0]
