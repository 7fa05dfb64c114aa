"""PLY files: what another writer wrote is read back, and every fault is named."""

import resource
import time
from pathlib import Path

import numpy as np
import pytest
from plyfile import PlyData, PlyElement, PlyListProperty, PlyProperty

from influx_wrap.errors import InputError
from influx_wrap.formats.ply import PlyPoints, open_ply
from influx_wrap.model.arrays import FloatArray

ENCODINGS = ["ascii", "<", ">"]
HEADER = "ply\nformat ascii 1.0\nelement vertex 2\n"
XYZ = "property float x\nproperty float y\nproperty float z\n"
ROWS = "1 2 3\n4 5 6\n"


def read(scan: PlyPoints, size: int = 1000) -> tuple[FloatArray, int]:
    pieces = list(scan.chunks(size))
    return np.concatenate([points for points, _ in pieces]), sum(n for _, n in pieces)


def write(path: Path, elements: list[PlyElement], encoding: str) -> Path:
    text = encoding == "ascii"
    order = "=" if text else encoding
    PlyData(elements, text=text, byte_order=order, comments=["scanned"]).write(str(path))
    return path


def vertices(n: int, columns: list[tuple[str, str]]) -> PlyElement:
    rng = np.random.default_rng(1)
    data = np.zeros(n, dtype=columns)
    for name, _ in columns:
        data[name] = rng.uniform(-100, 100, n)
    return PlyElement.describe(data, "vertex")


def faces(n: int) -> PlyElement:
    data = np.zeros(n, dtype=[("vertex_indices", "O"), ("quality", "f4")])
    for k in range(n):
        data["vertex_indices"][k] = np.arange(k % 5, dtype="i4")
    element = PlyElement.describe(data, "face", len_types={"vertex_indices": "u1"},
                                  val_types={"vertex_indices": "i4"})  # fmt: skip
    assert isinstance(element.properties[0], PlyListProperty)
    assert isinstance(element.properties[1], PlyProperty)
    return element


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "columns",
    [
        [("x", "f4"), ("y", "f4"), ("z", "f4")],
        [("x", "f8"), ("y", "f8"), ("z", "f8")],
        [("red", "u1"), ("z", "f4"), ("nx", "f8"), ("x", "i2"), ("label", "i4"), ("y", "f8")],
    ],
)
def test_what_another_program_wrote(
    tmp_path: Path, encoding: str, columns: list[tuple[str, str]]
) -> None:
    written = vertices(2500, columns)
    path = write(tmp_path / "scan.ply", [written], encoding)
    points, dropped = read(open_ply(path))
    assert dropped == 0
    expected = np.column_stack([written.data[axis].astype(float) for axis in "xyz"])
    # plyfile's text has single precision's digits, and more of double precision's.
    assert points == pytest.approx(expected, rel=1e-6 if encoding == "ascii" else 0, abs=0)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_elements_are_skipped(tmp_path: Path, encoding: str) -> None:
    written = vertices(50, [("x", "f4"), ("y", "f4"), ("z", "f4")])
    view = np.array([(1.0, 2.0)], dtype=[("view_px", "f4"), ("view_py", "f4")])
    camera = PlyElement.describe(view, "camera")
    path = write(tmp_path / "scan.ply", [camera, faces(30), written], encoding)
    expected = np.column_stack([written.data[axis].astype(float) for axis in "xyz"])
    assert read(open_ply(path))[0] == pytest.approx(expected, rel=1e-6)
    path = write(tmp_path / "after.ply", [written, faces(30), camera], encoding)
    assert read(open_ply(path))[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_points_without_a_place_are_dropped(tmp_path: Path, encoding: str) -> None:
    written = vertices(100, [("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "f4")])
    written.data["y"][3], written.data["z"][3] = np.nan, np.nan
    written.data["x"][50] = np.inf
    written.data["intensity"][7] = np.nan
    points, dropped = read(open_ply(write(tmp_path / "scan.ply", [written], encoding)))
    assert dropped == 2
    assert len(points) == 98


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_pieces_do_not_matter(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "scan.ply", [vertices(103, [(a, "f8") for a in "xyz"])], encoding)
    scan = open_ply(path)
    assert scan.n == 103
    assert [len(points) for points, _ in scan.chunks(50)] == [50, 50, 3]
    for size in (1, 7, 103, 1000):
        np.testing.assert_array_equal(read(scan, size)[0], read(scan, 50)[0])


def test_a_header_with_other_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "scan.ply"
    header = HEADER.replace("ascii", "binary_little_endian") + XYZ + "end_header\n"
    data = np.arange(6, dtype="<f4").tobytes()
    path.write_bytes(header.replace("\n", "\r\n").encode() + data)
    np.testing.assert_array_equal(read(open_ply(path))[0], np.arange(6.0).reshape(2, 3))


def test_numbers_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "scan.ply"
    path.write_text(HEADER + XYZ + "end_header\n1e2 -2.5 +3\n  4\t5 6  \n")
    np.testing.assert_array_equal(read(open_ply(path))[0], [[100, -2.5, 3], [4, 5, 6]])


BINARY = HEADER.replace("ascii", "binary_little_endian")
FACES = "element face 1\nproperty list uchar int vertex_indices\n"
FAULTS = {
    "empty": (b"", "does not begin with 'ply'"),
    "another format": (b"solid cube\n", "does not begin with 'ply'"),
    "no end": ((HEADER + XYZ).encode(), "no end_header"),
    "endless": (b"ply\n" + b"comment " + b"a" * (1 << 20), "no end_header"),
    "not text": (b"ply\nformat \xff\xfe\nend_header\n", "line 2: the header is not text"),
    "no format": ((HEADER.replace("format ascii 1.0\n", "") + XYZ + "end_header\n").encode(),
                  "no format"),
    "unknown format": ((HEADER.replace("ascii", "binary") + "end_header\n").encode(),
                       "line 2: format binary 1.0 is not known"),
    "unknown version": ((HEADER.replace("1.0", "2.0") + "end_header\n").encode(),
                        "line 2: format ascii 2.0"),
    "rubbish": ((HEADER + "colour red\nend_header\n").encode(), "line 4: 'colour red'"),
    "no vertex": (b"ply\nformat ascii 1.0\n" + FACES.encode() + b"end_header\n3 0 1 2\n",
                  "no element 'vertex', only face"),
    "no element": (b"ply\nformat ascii 1.0\nend_header\n", "none at all"),
    "no x": ((HEADER + XYZ.replace(" x", " u") + "end_header\n" + ROWS).encode(),
             "no property x"),
    "no points": ((HEADER.replace("2", "0") + XYZ + "end_header\n").encode(), "no vertices"),
    "negative count": ((HEADER.replace("2", "-2") + "end_header\n").encode(), "line 3: .*'-2'"),
    "count is no number": ((HEADER.replace("2", "two") + "end_header\n").encode(), "'two'"),
    "twice an element": ((HEADER + "element vertex 2\nend_header\n").encode(),
                         "line 4: element vertex is there twice"),
    "twice a property": ((HEADER + XYZ + "property int x\nend_header\n").encode(),
                         "line 7: property x is there twice"),
    "unknown type": ((HEADER + "property half x\nend_header\n").encode(), "line 4: .*half x"),
    "list of float length": ((HEADER + "property list float int x\nend_header\n").encode(),
                             "line 4: property 'list float int x'"),
    "list among vertices": ((HEADER + XYZ + "property list uchar int i\nend_header\n").encode(),
                            "property i of the vertices is a list"),
    "property first": (b"ply\nformat ascii 1.0\nproperty int x\nend_header\n",
                       "line 3: a property stands before"),
}  # fmt: skip
FAULTY_ROWS = {
    "text cut off": ((HEADER + XYZ + "end_header\n1 2 3\n").encode(),
                     "announces 2 vertices, there are 1"),
    "text cut off in a row": ((HEADER + XYZ + "end_header\n1 2 3\n4 5").encode(),
                              "line 9: a vertex has 3 properties, here are 2"),
    "not a number": ((HEADER + XYZ + "end_header\n1 2 3\n4 five 6\n").encode(), "line 9: x, y"),
    "binary cut off": ((BINARY + XYZ + "end_header\n").encode() + b"\0" * 23,
                       "announces 2 vertices, there are 1"),
    "cut off in faces": ((BINARY.replace("element", FACES + "element") + XYZ
                          + "end_header\n").encode() + b"\3\0\0", "ends in element face"),
    "cut off before faces": ((BINARY.replace("element", FACES + "element") + XYZ
                              + "end_header\n").encode(), "ends in element face"),
    "cut off in a camera": ((BINARY.replace("element", "element camera 9\nproperty int i\nelement")
                             + XYZ + "end_header\n").encode() + b"\0\0", "ends in element camera"),
    "text cut off in faces": ((HEADER.replace("element", FACES + "element") + XYZ
                               + "end_header\n").encode(), "ends in element face"),
    "a list of -1": ((BINARY.replace("element", FACES.replace("uchar", "char") + "element") + XYZ
                      + "end_header\n").encode() + b"\xff" * 40, "has -1 items"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_a_faulty_header(tmp_path: Path, kind: str) -> None:
    content, message = FAULTS[kind]
    path = tmp_path / "scan.ply"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        open_ply(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("kind", FAULTY_ROWS)
def test_faulty_rows(tmp_path: Path, kind: str) -> None:
    content, message = FAULTY_ROWS[kind]
    path = tmp_path / "scan.ply"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read(open_ply(path))
    assert str(path) in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_ply(tmp_path / "scan.ply")
    with pytest.raises(InputError, match="is a folder"):
        open_ply(tmp_path)


def header(*lines: str) -> bytes:
    """A binary header with these lines, and vertices of x, y and z after what they say."""
    rest = ("element vertex 1", "property float x", "property float y", "property float z")
    whole = ("ply", "format binary_little_endian 1.0", *lines, *rest, "end_header", "")
    return "\n".join(whole).encode()


def test_a_thousand_million_empty_faces(tmp_path: Path) -> None:
    """Refused by what the header says: to skip them would take an hour."""
    path = tmp_path / "faces.ply"
    faces = ("element face 1000000000", "property list uchar int vertex_indices")
    path.write_bytes(header(*faces))
    with path.open("r+b") as file:
        file.truncate(1_000_000_300)
    start = time.process_time()
    with pytest.raises(InputError, match="1000000000 rows of element face with lists stand before"):
        list(open_ply(path).chunks())
    assert time.process_time() - start < 1


@pytest.mark.parametrize("what", ["element", "property int"])
def test_names_without_end(tmp_path: Path, what: str) -> None:
    path = tmp_path / "names.ply"
    end = " 0" if what == "element" else ""
    path.write_bytes(header("element other 1", *(f"{what} p{k}{end}" for k in range(40_000))))
    start = time.process_time()
    with pytest.raises(InputError, match="more than 1000"):
        open_ply(path)
    assert time.process_time() - start < 2


def test_wide_rows_take_no_more_memory(tmp_path: Path) -> None:
    """A chunk is so many rows, or so many bytes."""
    path = tmp_path / "wide.ply"
    wide = "".join(f"property double p{k}\n" for k in range(900))
    announced = header().replace(b"vertex 1\n", b"vertex 1000000000\n" + wide.encode())
    path.write_bytes(announced + bytes(10_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="announces 1000000000 vertices, there are 1"):
        list(open_ply(path).chunks())
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 300


def test_a_line_without_end(tmp_path: Path) -> None:
    path = tmp_path / "line.ply"
    path.write_bytes(header().replace(b"binary_little_endian", b"ascii"))
    with path.open("r+b") as file:
        file.truncate(3 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="a vertex has 3 properties"):
        list(open_ply(path).chunks())
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 300
