"""``annotate``: from a file of lens metadata to files of intrinsics."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

import influx_wrap as iw
from influx_wrap.formats.lut import write_table
from influx_wrap.lut.lens_model import make_lens_model
from influx_wrap.model.intrinsics import NAMES
from tests.cli.conftest import Invoke, assert_mistake
from tests.lut.lenses import breathing_table, fitted_table


@pytest.fixture(scope="module")
def lut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lut") / "lut.json"
    write_table(path, fitted_table("canon17"))
    return path


def write(folder: Path, *lines: str) -> Path:
    (folder / "clip.csv").write_text("\n".join(["frame,lfl_mm,fd_m", *lines]) + "\n")
    return folder / "clip.csv"


@pytest.mark.parametrize("scheme", [None, "thin-lens"])
def test_json(invoke: Invoke, tmp_path: Path, lut: Path, scheme: str | None) -> None:
    clip, out = write(tmp_path, "0,35,2.4", "1,36,inf"), tmp_path / "gt.json"
    chosen = () if scheme is None else ("--scheme", scheme)
    result = invoke("annotate", clip, "--lut", lut, "--out", out, *chosen)
    assert result.exit_code == 0, result.output
    assert "2 frames: 1 interpolated, 1 extrapolated, 0 without an answer" in result.stdout
    assert f"written: {out}" in result.stdout
    found = json.loads(out.read_text())
    lookup = make_lens_model(breathing_table("canon17"), scheme or "smooth")
    expected = lookup.query([35, 36], [2.4, math.inf]).intrinsics
    expected[:, 2:4] += 0.5
    for row, key in enumerate(("intrinsics_gt", "intrinsics_gt_extrapolated")):
        values = [found[str(row)][key][name] for name in NAMES]
        np.testing.assert_allclose(values, expected[row], rtol=1e-12)
    assert found["1"]["intrinsics_gt"] is None


def test_csv_by_name_or_by_option(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip = write(tmp_path, "0,35,2.4")
    invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.csv")
    invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.txt", "--format", "csv")
    assert (tmp_path / "gt.csv").read_bytes() == (tmp_path / "gt.txt").read_bytes()
    with (tmp_path / "gt.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["status"] == "interpolated"
    assert 0 < float(row["sigma_fx"]) < 0.05 * float(row["fx"])


def test_faults_are_told_and_not_mended(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    lines = ("0,35,3", "1,35,", "2,35,3", "4,35,3", "5,12,3", "6,12,3", "7,35,3")
    clip, out = write(tmp_path, *lines), tmp_path / "gt.json"
    result = invoke("annotate", clip, "--lut", lut, "--out", out)
    assert result.exit_code == 0
    assert "1 frame (3) not listed in the metadata." in result.stderr
    assert "1 frame (1) without LFL or FD." in result.stderr
    assert "2 frames (5-6) with an LFL outside the table" in result.stderr
    assert "LFL jumps from 35 to 12 mm between frames 4 and 5" in result.stderr
    assert "LFL jumps from 12 to 35 mm between frames 6 and 7" in result.stderr
    assert "warning" not in result.stdout
    found = json.loads(out.read_text())
    assert list(found) == ["0", "1", "2", "4", "5", "6", "7"]
    nothing = [k for k, frame in found.items() if frame["intrinsics_gt_extrapolated"] is None]
    assert nothing == ["1", "5", "6"]
    result = invoke("annotate", clip, "--lut", lut, "--out", out, "--fill-gaps", 1)
    assert "2 frames (1, 3) filled from their neighbours." in result.stderr
    found = json.loads(out.read_text())
    assert found["3"]["intrinsics_gt"] == found["1"]["intrinsics_gt"] == found["0"]["intrinsics_gt"]
    assert found["1"]["lens_metadata"]["focus_distance_m"] is None


def test_arri_metadata(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    """The same clip as the Reference Tool and Meta Extract tell it, in inches and in feet."""
    clip, art, extract = (tmp_path / name for name in ("art.json", "gt1.json", "gt2.json"))
    payloads = [
        {"lensFocalLength": 35000, "lensFocusDistanceImperial": 120_000},
        {"lensFocalLength": 35000, "lensFocusDistanceImperial": -1},
    ]
    sets = [[{"metadataSetName": "Lens State", "metadataSetPayload": p}] for p in payloads]
    frames = [{"frameId": 5 + k, "frameBasedMetadataSets": s} for k, s in enumerate(sets)]
    clip.write_text(json.dumps({"frameBasedMetadata": {"frames": frames}}))
    assert invoke("annotate", clip, "--lut", lut, "--out", art).exit_code == 0
    header = "Lens Focal Length\tLens Focus Distance\tLens Distance Unit\n"
    clip.write_text(header + "35.0\t10.0\tFoot\n35.0\t-1\tFoot\n")
    assert invoke("annotate", clip, "--lut", lut, "--out", extract).exit_code == 0
    one, other = (json.loads(path.read_text()) for path in (art, extract))
    for frame, key in (("0", "intrinsics_gt"), ("1", "intrinsics_gt_extrapolated")):
        assert one[frame][key] == pytest.approx(other[frame][key], rel=1e-8)
        assert one[frame][key]["fx"] > 0
    assert one["1"]["lens_metadata"]["focus_distance_m"] == "inf"


def test_long_lists_are_cut(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip = write(tmp_path, *(f"{3 * k},{35 if k % 2 else 110},3" for k in range(50)))
    result = invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.json")
    assert "98 frames (1-2, 4-5," in result.stderr
    assert "and 29 more ranges) not listed" in result.stderr
    # A factor of 3.1 in three frames is possible.
    assert "jumps" not in result.stderr


def test_mistakes(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip, out = write(tmp_path, "0,200,3"), tmp_path / "gt.json"
    result = invoke("annotate", clip, "--lut", lut, "--out", out)
    assert_mistake(result, str(clip), "no frame of the clip can be annotated", "17 to 120 mm")
    assert not out.exists()
    assert_mistake(invoke("annotate", clip, "--lut", lut, "--out", clip), "would replace")
    missing = tmp_path / "none" / "gt.json"
    assert_mistake(invoke("annotate", clip, "--lut", lut, "--out", missing), "cannot be written")
    assert_mistake(invoke("annotate", lut, "--lut", lut, "--out", out), "is JSON, but neither")
    assert_mistake(invoke("annotate", clip, "--lut", clip, "--out", out), "not JSON")
    assert_mistake(invoke("annotate", tmp_path / "no.csv", "--lut", lut, "--out", out), "no.csv")


SP40 = ("ARRI SP40 T1.8", "Alexa LF Plus W", "1920", "1080")
CANON17 = ("CN7x17 KAS S/P1", "ALEXA Mini", "3424", "2202")


def meta_extract(folder: Path, rig: tuple[str, ...]) -> Path:
    columns = ("Lens Model", "Camera Model", "Image Width", "Image Height", "Lens Focal Length",
               "Lens Focus Distance", "Lens Distance Unit")  # fmt: skip
    lines = [columns, *[(*rig, "40.000", "4.812", "Meter")] * 2]
    (folder / "extract.csv").write_text("\n".join(map("\t".join, lines)) + "\n")
    return folder / "extract.csv"


def test_another_lens_is_refused(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip, out = meta_extract(tmp_path, SP40), tmp_path / "gt.json"
    result = invoke("annotate", clip, "--lut", lut, "--out", out)
    names = ("ARRI SP40 T1.8", "canon17", "CN7x17 KAS S/P1", "Alexa LF Plus W", "arri-alexa-mini")
    assert_mistake(result, str(clip), *names, "1920 x 1080", "3424 x 2202", "--any-lens")
    assert not out.exists()


@pytest.mark.parametrize("wrong", range(3))
def test_one_difference_is_enough(invoke: Invoke, tmp_path: Path, lut: Path, wrong: int) -> None:
    rig = tuple(SP40[k] if min(k, 2) == wrong else CANON17[k] for k in range(4))
    clip = meta_extract(tmp_path, rig)
    assert_mistake(
        invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.json"), SP40[wrong]
    )


def test_the_right_lens_passes_without_a_word(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip = meta_extract(tmp_path, CANON17)
    result = invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    rig = json.loads((tmp_path / "gt.json").read_text())["0"]["filmed_with"]
    assert rig["lens"] == "canon17"
    assert rig["camera"] == "arri-alexa-mini"
    assert rig["image_size"] == [3424, 2202]
    assert rig["doubts"] == []


def test_who_insists_is_recorded(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip = meta_extract(tmp_path, SP40)
    for name in ("gt.json", "gt.csv"):
        out = tmp_path / name
        result = invoke("annotate", clip, "--lut", lut, "--out", out, "--any-lens")
        assert result.exit_code == 0, result.output
        assert "warning: the lens is 'ARRI SP40 T1.8'" in result.stderr
    doubts = json.loads((tmp_path / "gt.json").read_text())["0"]["filmed_with"]["doubts"]
    assert "ARRI SP40 T1.8" in doubts[0]
    with (tmp_path / "gt.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["doubts"] for row in rows} == {"; ".join(doubts)}
    assert {row["lens"] for row in rows} == {"canon17"}


def test_metadata_without_a_name_pass_with_a_note(
    invoke: Invoke, tmp_path: Path, lut: Path
) -> None:
    clip = write(tmp_path, "0,35,2.4")
    result = invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.json")
    assert result.exit_code == 0
    assert "note: The metadata name no lens" in result.stderr
    assert "canon17" in result.stderr


def test_a_catalogue_of_ones_own(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    """What metadata call a lens is said where the lens is described."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "canon.yaml").write_text(
        "kind: lens\nname: canon17\nlfl_min_mm: 17\nlfl_max_mm: 120\nfd_min_m: 0.85\n"
        "fd_lower_m: 1.5\nmetadata_model: ARRI SP40 T1.8\n"
    )
    clip, out = meta_extract(tmp_path, (SP40[0], *CANON17[1:])), tmp_path / "gt.json"
    result = invoke("--catalogue", mine, "annotate", clip, "--lut", lut, "--out", out)
    assert result.exit_code == 0, result.output


def test_the_library_refuses_as_well(tmp_path: Path) -> None:
    clip = meta_extract(tmp_path, SP40)
    with pytest.raises(iw.InputError, match="ARRI SP40"):
        iw.annotate(clip, breathing_table("canon17"))
    assert iw.annotate(clip, breathing_table("canon17"), any_lens=True).truth.answered.all()
