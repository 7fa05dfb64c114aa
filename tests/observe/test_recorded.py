"""A recording whose metadata name another lens or camera than the run."""

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.recording import read_recording
from influx_wrap.model.experiment import Plan
from influx_wrap.observe.recorded import check_rig
from influx_wrap.observe.sources import open_frames
from influx_wrap.plan import make_plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "frames").mkdir()
    cv2.imwrite(str(tmp_path / "frames" / "0.png"), np.zeros((48, 64), np.uint8))
    (tmp_path / "recording.yaml").write_text("board: 400x300\nmetadata: clip.json\n")
    return tmp_path


def plan() -> Plan:
    catalogue = load_catalogue()
    camera = replace(catalogue.camera("arri-alexa-mini"), width_px=64, height_px=48)
    return make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())


def check(folder: Path, lens: str, camera: str, width: int) -> None:
    state = {"lensFocalLength": 35000, "lensFocusDistanceMetric": 2000}
    sets = [
        ("Lens Device", {"lensModel": lens}),
        ("Camera Device", {"cameraModel": camera}),
        ("Sensor State", {"acquisitionRect": {"width": width, "height": 48}}),
    ]
    values = {
        "descriptiveMetadataSets": [
            {"metadataSetName": name, "metadataSetPayload": payload} for name, payload in sets
        ],
        "frameBasedMetadata": {
            "frames": [{"frameId": 0, "frameBasedMetadataSets": {"Lens State": state}}]
        },
    }
    (folder / "clip.json").write_text(json.dumps(values))
    recording = read_recording(folder, load_catalogue().boards)
    check_rig(recording, open_frames(recording.footage), plan())


def test_the_same(folder: Path) -> None:
    check(folder, "CN7x17 KAS S/P1", "ALEXA Mini", 64)


@pytest.mark.parametrize(
    ("rig", "words"),
    [
        (("ARRI SP40 T1.8", "ALEXA Mini", 64), r"'ARRI SP40 T1.8' by the metadata, canon17 .*run"),
        (("CN7x17 KAS S/P1", "ALEXA Mini LF", 64), "'ALEXA Mini LF' by the metadata, arri-alexa"),
        (("CN7x17 KAS S/P1", "ALEXA Mini", 128), "128 x 48 pixels by the metadata, 64 x 48"),
    ],
)
def test_others(folder: Path, rig: tuple[str, str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        check(folder, *rig)
