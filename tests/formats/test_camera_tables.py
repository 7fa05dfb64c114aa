"""Tables of Sony, RED, Canon and of nobody in particular; values computed by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.model.lens_metadata import LensMetadata, ReportedClip
from tests.formats import camera_files as files

NAN, INF = math.nan, math.inf


def read(folder: Path, name: str, text: str | bytes, **beside: str) -> LensMetadata:
    """What a file tells, with others beside it under their names."""
    for other, content in beside.items():
        (folder / other.replace("__", ".")).write_text(content)
    data = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(data)
    return read_metadata(folder / name)


def check(metadata: LensMetadata, lfl_mm: list[float], fd_m: list[float]) -> None:
    np.testing.assert_allclose(metadata.lfl_mm, lfl_mm, rtol=1e-12)
    np.testing.assert_allclose(metadata.fd_m, fd_m, rtol=1e-12)


def test_venice(tmp_path: Path) -> None:
    found = read(tmp_path, "A001C001_260101XX.csv", files.VENICE)
    assert found.frame.tolist() == [0, 1, 2, 3]
    check(found, [50] * 4, [3.048, 2.286, INF, NAN])
    assert found.rig.lens_models == ("7050.0100",)
    assert found.rig.camera_models == ("MPC-3628",)
    assert found.notes == ()


def test_venice_with_its_xml(tmp_path: Path) -> None:
    xml = {"A001C001_260101XXM01__XML": files.TALKING_XML}
    found = read(tmp_path, "A001C001_260101XX.csv", files.VENICE, **xml)
    check(found, [50] * 4, [3.048, 2.286, INF, NAN])
    assert found.rig.lens_models == ("S7i-50",)
    assert found.rig.names_of("S7i-50") == ("S7i-50", "7050.0100")
    assert found.rig.image_sizes == ((4096, 2160),)
    assert found.clip == ReportedClip(4, 24.0)
    lfl, fd = found.channels
    np.testing.assert_array_equal(lfl.values, [50, NAN, NAN, NAN])
    np.testing.assert_array_equal(fd.values, [3.04, NAN, NAN, NAN])
    assert "beside it" in found.notes[0]


def test_another_xml_is_not_taken(tmp_path: Path) -> None:
    xml = {"A001C002_260101XXM01__XML": files.VENICE_XML}
    assert read(tmp_path, "A001C001_260101XX.csv", files.VENICE, **xml).rig.image_sizes == ()


@pytest.mark.parametrize("lost", [1, 2])
def test_venice_with_a_line_missing(tmp_path: Path, lost: int) -> None:
    """The XML says that the clip has 4 frames, so the timecodes are right."""
    lines = files.VENICE.splitlines()
    del lines[1 + lost]
    text = "\n".join(lines) + "\n"
    assert read(tmp_path, "A001.csv", text).frame.tolist() == [0, 1, 2]
    found = read(tmp_path, "A001.csv", text, A001M01__XML=files.VENICE_XML)
    assert found.frame.tolist() == [k for k in range(4) if k != lost]
    assert "jump ahead" in found.notes[1]
    known = read_metadata(tmp_path / "A001.csv", ReportedClip(n_frames=3))
    assert known.frame.tolist() == [0, 1, 2]


def test_length_that_the_xml_contradicts(tmp_path: Path) -> None:
    xml = files.VENICE_XML.replace('Duration value="4"', 'Duration value="48"')
    found = read(tmp_path, "A001.csv", files.VENICE, A001M01__XML=xml)
    assert "The clip has 48 frames by its metadata, which list 4 frames" in found.notes[-1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_venice_as_spreadsheets_write_it(
    tmp_path: Path, encoding: str, separator: str, end: str
) -> None:
    """Other separators, decimal commas, columns in another order, empty ones at the end."""
    lines = [line.replace('"', "").split(",") for line in files.VENICE.splitlines()]
    comma = "." if separator == "," else ","
    rows = [[cell.replace("7.5", f"7{comma}5") for cell in reversed(row)] for row in lines]
    head = ["sep=;", ""] if separator == ";" else []
    text = end.join([*head, *(separator.join([*row, "", ""]) for row in rows), separator * 9, ""])
    found = read(tmp_path, "clip.csv", text.encode(encoding))
    check(found, [50] * 4, [3.048, 2.286, INF, NAN])
    assert found.rig.lens_models == ("7050.0100",)


def test_venice_in_metres(tmp_path: Path) -> None:
    text = files.VENICE.replace("(ft)", "(m)")
    check(read(tmp_path, "clip.csv", text), [50] * 4, [10, 7.5, INF, NAN])


def test_red(tmp_path: Path) -> None:
    found = read(tmp_path, "B002.frames.csv", files.RED)
    assert found.frame.tolist() == [0, 1, 2]
    check(found, [35] * 3, [1.2, 1.25, NAN])
    (cooke,) = found.channels
    assert (cooke.quantity, cooke.used, cooke.name) == ("FD", "Focus Distance", "Cooke Metadata")
    np.testing.assert_allclose(cooke.values, [1.22, 1.248, NAN])
    assert found.rig.lens_models == ()


@pytest.mark.parametrize(
    "name", ["B002.frames.csv", "B002_Frames.csv", "B.FRAMES.CSV", "frames.csv"]
)
def test_red_with_its_static_file(tmp_path: Path, name: str) -> None:
    static = (
        name.replace("frames", "static")
        .replace("Frames", "Static")
        .replace("FRAMES", "STATIC")
        .replace(".", "__")
    )
    found = read(tmp_path, name, files.RED, **{static: files.RED_STATIC})
    check(found, [35] * 3, [1.2, 1.25, NAN])
    assert found.rig.lens_models == ("35mm T1.5",)
    assert "ACME 35mm T1.5" in found.rig.names_of("35mm T1.5")
    assert found.rig.camera_models == ("KOMODO-X 6K S35",)
    assert found.rig.image_sizes == ((6144, 3240),)
    assert found.clip == ReportedClip(3, 25.0)
    assert [c.name for c in found.channels] == ["the static file"] * 2 + ["Cooke Metadata"]


def test_red_static_alone(tmp_path: Path) -> None:
    found = read(tmp_path, "B002.static.csv", files.RED_STATIC)
    assert found.frame.tolist() == [0]
    check(found, [35], [1.21])
    assert found.rig.camera_models == ("KOMODO-X 6K S35",)
    assert "first frame only" in found.notes[0]
    two = files.RED_STATIC + files.RED_STATIC.partition("\n")[2]
    with pytest.raises(InputError, match="has 2 of them: it must be one"):
        read(tmp_path, "B002.static.csv", two)


def test_a_static_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"B002\.static\.csv should be RED's static file"):
        read(tmp_path, "B002.frames.csv", files.RED, B002__static__csv="a,b\n1,2\n")


def test_red_packets_in_inches(tmp_path: Path) -> None:
    """480 tenths of an inch are 1219.2 mm: 0b000111_100000."""
    text = files.RED.replace("53/44", "47/60").replace("53/60", "47/60")
    found = read(tmp_path, "frames.csv", text)
    np.testing.assert_allclose(found.channels[0].values, [1.2192, 1.2192, NAN])
    assert "tenths of an inch" in found.notes[0]


def test_red_packets_alone(tmp_path: Path) -> None:
    text = files.RED.replace(",1200,", ",0,").replace(",1250,", ",,")
    found = read(tmp_path, "frames.csv", text)
    np.testing.assert_allclose(found.fd_m, [1.22, 1.248, NAN])
    assert "taken for millimetres" in found.notes[0]


def test_red_with_broken_packets_and_lines_in_another_order(tmp_path: Path) -> None:
    head, *rows = files.RED.splitlines()
    rows[0] = rows[0].replace("64/40", "13/40")
    found = read(tmp_path, "frames.csv", "\n".join([head, *reversed(rows)]))
    assert found.frame.tolist() == [0, 1, 2]
    check(found, [35] * 3, [1.2, 1.25, NAN])
    np.testing.assert_allclose(found.channels[0].values, [NAN, 1.248, NAN])
    assert "1 Cooke /i packet cannot be decoded." in found.notes


def test_red_zoom(tmp_path: Path) -> None:
    """A zoom tells its focal length in the packet, too: 0b000000_100011 is 35."""
    text = files.RED.replace("58/40/40/40/40/42", "58/40/40/63/40/42")
    lfl, _ = read(tmp_path, "frames.csv", text).channels
    assert lfl.quantity == "LFL"
    np.testing.assert_array_equal(lfl.values, [35, 35, NAN])


def test_canon_has_a_position_and_no_distance(tmp_path: Path) -> None:
    found = read(tmp_path, "X_Frames.csv", files.CANON, X_Static__csv=files.CANON_STATIC)
    check(found, [18, 18.55, NAN], [NAN] * 3)
    assert found.rig.image_sizes == ((5952, 3140),)
    assert "FocusPosition is where the focus ring stands (0.5 to 0.75), not a" in found.notes[-1]
    assert "The clip lasts 0.10 s by X_Static.csv." in found.notes


def test_canon_with_a_distance(tmp_path: Path) -> None:
    lines = files.CANON.splitlines()
    fds = ["Focus Distance [m]", "2.5", "inf", "3"]
    text = "\n".join(f"{line},{fd}" for line, fd in zip(lines, fds, strict=True))
    found = read(tmp_path, "X_Frames.csv", text)
    check(found, [18, 18.55, NAN], [2.5, INF, 3])
    assert found.notes == ()


def test_canon_static_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither LFL nor FD: give the .*_Frames\.csv"):
        read(tmp_path, "X_Static.csv", files.CANON_STATIC)


@pytest.mark.parametrize(
    "text",
    [
        "frame;lfl_mm;fd_m\n0;35,5;2,4\n1;36;inf\n2;;3\n",
        "fd_m,frame,lfl_mm\n2.4,0,35.5\ninf,1,36\n3,2,\n",
        "# made by hand\nFrame\tLFL (mm)\tFD (mm)\n1\t36\tinf\n0\t35.5\t2400\n2\t\t3000\n",
        "Frame Number,Focal Length,Focus Distance,Distance Unit\n0,35.5mm,240,cm\n1,36,inf,\n"
        "2,--,3,Meter\n",
        'FrameNo,Focal Length in mm,"Focus Distance, told"\n'.replace(
            '"Focus Distance, told"', "FD_cm"
        )
        + "0,35.5,240\n1,36,∞\n2,n/a,300\n",
        '"frame";"focal length";"focus distance"\n0;"35,5 mm";"2,4 m"\n1;36 mm;inf\n2;;"3 m"\n',
        "frame|lens focal length (mm)|lens focus distance (in)\n0|35.5|94.48818897637796\n"
        "1|36|inf\n2||118.11023622047244\n",
    ],
)
def test_tables_of_nobody_in_particular(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, "clip.txt", text)
    assert found.frame.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.lfl_mm, [35.5, 36, NAN], rtol=1e-12)
    np.testing.assert_allclose(found.fd_m, [2.4, INF, 3], rtol=1e-12)


def test_two_distances_are_two_channels(tmp_path: Path) -> None:
    text = "Focal Length,Lens Focus Distance (m),Focus Distance (ft)\n35,3,10\n35,inf,far\n"
    found = read(tmp_path, "clip.csv", text)
    check(found, [35, 35], [3, INF])
    (other,) = found.channels
    assert (other.used, other.name) == ("Lens Focus Distance (m)", "Focus Distance (ft)")
    np.testing.assert_allclose(other.values, [3.048, NAN])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Focal Length,Focus Distance\n35,3\n", "line 2: Focus Distance '3' has no unit"),
        ("Focal Length (mm),Focus Distance (m)\n", "has no frame"),
        ("Focal Length (mm),Focus Distance (m)\n35\n", "line 2: 1 columns instead of 2"),
        (
            "Focal Length (mm),Focus Distance (m),Note\n35,3,x\n35,3\n",
            "line 3: 2 columns instead of 3. Is the file complete",
        ),
        ("Focal Length (mm),Focus Distance (m)\n35,5,83\n", "line 2: 3 columns instead of 2"),
        ("Focal Length (mm),Focus Distance (m)\n35,-3\n", "line 2: Focus Distance .* positive"),
        ("Focal Length (mm),Focus Distance (mi)\n35,3\n", "the unit 'mi' of Focus"),
        ("frame,lfl_mm,fd_ft\n0,35,3\n0,35,3\n", "line 3: frame 0 has had a line already"),
        ("frame,lfl_mm,fd_ft\nfirst,35,3\n", "frame 'first' is not a number"),
        ('frame,lfl_mm,fd_ft\n0,35,"3\n1,35,3\n', "line 4: quotation marks that do not fit"),
        ("frame;lfl_mm;fd_m\n0;35.5;2,4\n", "some numbers have a point and others a comma"),
        ("Focal Length (mm),Focus Distance (m)\n1e9,3\n", "no focal length in millimetres"),
        ("Focal Length (mm),Focus Distance (m)\n35,0.0003\n", "Is its unit another one"),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        read(tmp_path, "clip.csv", text)
    assert str(tmp_path / "clip.csv") in str(error.value)


def test_red_without_frame_numbers_and_with_a_line_twice(tmp_path: Path) -> None:
    """By timecode; the packets stay with their rows."""
    lines = [line.partition(",")[2] for line in files.RED.splitlines()]
    text = "\n".join([*lines[:2], lines[1].replace("1200", "9999"), *lines[2:]])
    found = read(tmp_path, "a.frames.csv", text, a__static__csv=files.RED_STATIC)
    assert found.frame.tolist() == [0, 1, 2]
    check(found, [35] * 3, [1.2, 1.25, NAN])
    np.testing.assert_allclose(found.channels[-1].values, [1.22, 1.248, NAN])
