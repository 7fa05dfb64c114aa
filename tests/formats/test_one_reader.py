"""JSON, YAML, pictures and arrays have one reader each, which no other module goes around."""

import ast
import io
import itertools
import json
import resource
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

import influx_wrap
from influx_wrap.errors import InputError
from influx_wrap.formats.arrays import MOST_BYTES, read_arrays
from influx_wrap.formats.files import MOST_TEXT_BYTES, excerpt, read_json, read_text, read_yaml
from influx_wrap.formats.json_text import MOST_VALUES, parse_json_text
from influx_wrap.formats.kalibr import read_target
from influx_wrap.formats.pictures import MOST_PIXELS, read_picture
from influx_wrap.formats.yaml_text import parse_yaml_text
from influx_wrap.observe.stills import Stills
from influx_wrap.observe.video import VideoFile

PACKAGE = Path(influx_wrap.__file__).parent

READERS = {
    "formats/json_text.py": {"json.loads"},
    "formats/json_stream.py": {"json.JSONDecoder", "_DECODER.raw_decode"},
    "formats/yaml_text.py": {"yaml.load", "yaml.parse"},
    "formats/pictures.py": {"cv2.imdecode"},
    "formats/arrays.py": {"zipfile.ZipFile"},
}
NAMES = {
    "json": {"load", "loads", "JSONDecoder"},
    "yaml": {
        "load", "load_all", "safe_load", "safe_load_all", "full_load", "full_load_all",
        "unsafe_load", "unsafe_load_all", "parse", "compose", "compose_all", "scan",
    },
    "cv2": {"imread", "imreadmulti", "imdecode", "imdecodemulti", "VideoCapture"},
    "np": {"load", "fromfile", "genfromtxt", "memmap"},
    "numpy": {"load", "fromfile", "genfromtxt", "memmap"},
    "Image": {"open"},
    "zipfile": {"ZipFile", "PyZipFile", "Path"},
    "tarfile": {"open", "TarFile"},
    "gzip": {"open", "decompress", "GzipFile"},
    "bz2": {"open", "decompress", "BZ2File"},
    "plt": {"imread"},
}  # fmt: skip
# They run with another method's Python, which does not have this package, and read what it wrote.
OUTSIDE = "predict/runners/"


def calls(source: str) -> Iterator[str]:
    """``module.name`` of what reads files, and what was imported by such a name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in NAMES.get(owner, ()) or node.attr == "raw_decode":
                yield f"{owner}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in NAMES:
            for alias in node.names:
                if alias.name in NAMES[node.module]:
                    yield f"{node.module}.{alias.name}"


def test_nobody_goes_around_the_readers() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        used = set(calls(path.read_text(encoding="utf-8")))
        if used and not name.startswith(OUTSIDE):
            found[name] = used
    assert found == READERS


def test_the_search_finds_them() -> None:
    source = "import yaml\nfrom json import loads\nx = yaml.safe_load(cv2.imread(np.load('a')))"
    assert set(calls(source)) == {"json.loads", "yaml.safe_load", "cv2.imread", "np.load"}


def refused(read: Callable[[], object], said: str, *, seconds: float = 3, mib: int = 300) -> None:
    """In a sentence, soon, and with little memory more than before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(InputError, match=said):
        read()
    assert time.process_time() - start < seconds
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < mib


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[" * 10**6, "x.json is nested more than 100 levels deep"),
        (b'{"a": ' * 101 + b"1" + b"}" * 101, "nested more than 100 levels"),
        (b'{"a":\n\n' + b"1" * 10_000 + b"}", "line 3: a number has more than 1000 digits"),
        (b'{"a": 0.' + b"1" * 10_000 + b"}", "line 1: a number has more than 1000 digits"),
        (b'{"a": "NaN",\n "b": [1, NaN]}', "line 2: NaN stands where a number belongs"),
        (b'{"a": 1,\n "b": "\\ud800"}', r"line 2: \\ud800 is no character"),
        (b'{"a": 1,\n "\\udc00x": 1}', r"line 2: \\udc00 is no character"),
        (b'{"a": "\\\\\\ud83d x"}', r"line 1: \\ud83d is no character"),
        (b'{"a": "\\u0000"}', r"line 1: \\u0000 is no character"),
        (b'["\xff"]', "not a text file in UTF-8"),
        (b"{", "line 1: this is not JSON"),
        (b"[" + b"{}," * (MOST_VALUES // 2 + 1) + b"1]", "more than 10000000 values"),
    ],
    ids=itertools.count(),
)
def test_json(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "x.json").write_bytes(data)
    refused(lambda: read_json(tmp_path / "x.json"), said)


def test_json_that_only_looks_bad() -> None:
    values = {
        "brackets": "[" * 500,
        "escaped": "\\ud800 is a half, \U0001f600 is whole",
        "digits": "7" * 1000,
        "deep": json.loads("[" * 99 + "]" * 99),
        "word": "NaN",
    }
    for ascii_only in (True, False):
        data = json.dumps(values, ensure_ascii=ascii_only).encode()
        assert parse_json_text(b"\xef\xbb\xbf" + data, "x") == values
    found = parse_json_text(b'{"a": NaN, "b": -Infinity}', "x", bare_nan=True)
    assert str(found) == "{'a': nan, 'b': -inf}"


@pytest.mark.parametrize("before", [0, 1, 499, 999, 1000, 1001])
def test_the_longest_number(before: int) -> None:
    """It is found wherever it stands; one digit less is read."""
    for digits in (1000, 1001):
        data = b'["' + b"x" * before + b'", ' + b"3" * digits + b"]"
        if digits == 1000:
            assert parse_json_text(data, "x") == ["x" * before, int("3" * 1000)]
        else:
            refused(lambda data=data: parse_json_text(data, "x"), "more than 1000 digits")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {k: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "line 6: there are more than 500000 values"),
        (MERGE_BOMB, "line 7: there are more than 500000 values"),
        ("x: &x 1\ny: [" + "*x, " * 1001 + "]", "line 2: there are more than 1000 aliases"),
        ("a: 1\nb: &b [*b]", "line 2: \\*b stands for what it is a part of"),
        ("[" * 10**5, "line 1: it is nested more than 100 levels"),
        ("- " * 10**5, "line 1: it is nested more than 100 levels"),
        ("a: [" + "1, " * 500_000 + "]", "line 1: there are more than 500000 values"),
        ("a: 1\nb: " + "1" * 10_000, "line 2: a number has more than 1000 digits"),
        ("a: 1\nb: 0x" + "f" * 10_000, "line 2: a number has more than 1000 digits"),
        ("a: 1\nb: 1" + ":59" * 10_000, "line 2: a number has more than 1000 digits"),
        ("a: 1\nb: 2026-13-45", "line 2: 2026-13-45 is no time"),
        ("a: 1\nb: !!int ''", "line 2: the tag .*int is not read"),
        ("a: 1\nb: !!timestamp soon", "line 2: the tag .*timestamp is not read"),
        ("a: !!python/object/apply:os.system [true]", "line 1: the tag .*os.system is not read"),
        ('a: 1\nb: "\\0"', "line 2: there is a character that text may not hold"),
        ('a: 1\nb: "\\ud800"', "line 2: "),
        ("? [1]\n: 2", "line 1: this is not YAML"),
    ],
    ids=itertools.count(),
)
def test_yaml(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    refused(lambda: read_yaml(tmp_path / "x.yaml"), said, seconds=6)


def test_yaml_that_only_looks_bad() -> None:
    text = "a: &a {k: [1, 2]}\nb: {<<: *a, l: '!!python'}\nc: *a\nd: 1.5e+3\ne: !!str 12\n"
    found = parse_yaml_text(text, "x")
    both = {"k": [1, 2]}
    assert found == {"a": both, "b": both | {"l": "!!python"}, "c": both, "d": 1500.0, "e": "12"}


def test_more_tags_than_there_are(tmp_path: Path) -> None:
    (tmp_path / "target.yaml").write_text(
        f"target_type: aprilgrid\ntagCols: {10**11}\ntagRows: 6\ntagSize: 0.1\ntagSpacing: 0.3\n"
    )
    refused(
        lambda: read_target(tmp_path / "target.yaml"), "target.yaml: tagCols must be at most 1000"
    )


def test_endless_files(tmp_path: Path) -> None:
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(MOST_TEXT_BYTES + 1)
    refused(lambda: read_text(large), "large.csv has more than 256 MiB", mib=600)
    refused(lambda: read_text(Path("/dev/zero")), "/dev/zero has more than 256 MiB", mib=600)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_bomb(width: int, height: int) -> bytes:
    """A black PNG picture, a thousandth as large as its pixels."""
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(width + 1)) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*one) for one in ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    )


def test_a_picture_of_too_many_pixels(tmp_path: Path) -> None:
    data = png_bomb(20_000, 10_000)
    assert len(data) < 1_000_000
    (tmp_path / "bomb.png").write_bytes(data)
    said = "bomb.png is too large: 20000 x 10000 pixels, at most 160 million"
    refused(lambda: read_picture(tmp_path / "bomb.png"), said, mib=50)
    refused(lambda: Stills(tmp_path, [tmp_path / "bomb.png"], colour=False), "too large", mib=50)


def test_one_such_picture_among_others(tmp_path: Path) -> None:
    """It is left out by name, as a damaged one is."""
    for name in "ac":
        cv2.imwrite(str(tmp_path / f"{name}.png"), np.zeros((20, 30), np.uint8))
    (tmp_path / "b.png").write_bytes(png_bomb(20_000, 10_000))
    stills = Stills(tmp_path, sorted(tmp_path.iterdir()), colour=False)
    assert [picture is None for _, picture in stills.photographs()] == [False, True, False]
    assert stills.all_unread([1]) == {
        "b.png": "too large: 20000 x 10000 pixels, at most 160 million are read"
    }


@pytest.mark.parametrize("suffix", [".jpg", ".tif", ".png"])
def test_a_header_that_promises_too_much(tmp_path: Path, suffix: str) -> None:
    """Of every kind of picture, before any pixel is decoded."""
    done, encoded = cv2.imencode(suffix, np.zeros((20, 30), np.uint8))
    assert done
    data = bytes(encoded)
    match suffix:
        case ".jpg":
            at = data.index(b"\xff\xc0") + 5
            data = data[:at] + struct.pack(">HH", 65_500, 65_500) + data[at + 4 :]
        case ".tif":
            for tag, side in ((256, 30), (257, 20)):
                entries = [struct.pack("<HHII", tag, kind, 1, side) for kind in (3, 4)]
                entry = next(entry for entry in entries if entry in data)
                data = data.replace(entry, struct.pack("<HHII", tag, 4, 1, 200_000))
        case ".png":
            data = data[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + data[24:]
    path = tmp_path / f"x{suffix}"
    path.write_bytes(data)
    refused(lambda: read_picture(path), "too large", mib=50)
    assert MOST_PIXELS < 65_500**2


def test_a_video_of_too_many_pixels(tmp_path: Path) -> None:
    """Of a recording, too, whose header promises them."""
    av = pytest.importorskip("av")
    path = tmp_path / "x.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "gray"
        frame = av.VideoFrame.from_ndarray(np.zeros((48, 64), np.uint8), "gray")
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    VideoFile(path, colour=False)
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<II", 64, 48), struct.pack("<II", 20_000, 10_000)))
    refused(
        lambda: VideoFile(path, colour=False), r"x\.avi is too large: 20000 x 10000 pixels", mib=100
    )


def arrays_file(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)


def npy(array: object, shape: str | None = None) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    data = buffer.getvalue()
    return data if shape is None else data.replace(b"(3,)", shape.encode())


def test_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    kept = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.asfortranarray(np.eye(2)),
        "c": np.array("é"),
    }
    for save in (np.savez, np.savez_compressed):
        save(path, **kept)
        found = read_arrays(path, kept)
        assert found is not None
        for name, array in kept.items():
            np.testing.assert_array_equal(found[name], array)
    assert read_arrays(path, ["a", "d"]) is None
    assert read_arrays(tmp_path / "none.npz", ["a"]) is None


def test_arrays_that_are_bombs(tmp_path: Path) -> None:
    """Zeros that unpack to gigabytes, shapes that promise them, objects, damage."""
    path, before = tmp_path / "x.npz", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("a.npy", "w") as out:
        for _ in range(MOST_BYTES // (1 << 24) + 1):
            out.write(bytes(1 << 24))
    assert path.stat().st_size < 1 << 20
    assert read_arrays(path, ["a"]) is None
    for shape in ("(99999999999999,)", "(-1,)", "(2**9,)", "(9**9**9,)", "(True,)", "[3]", "(4,)"):
        arrays_file(path, {"a": npy(np.arange(3.0), shape)})
        assert read_arrays(path, ["a"]) is None, shape
    arrays_file(path, {"a": npy([None])})
    assert read_arrays(path, ["a"]) is None
    np.savez_compressed(path, a=np.arange(1000.0))
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        spoiled = bytearray(whole)
        for at in rng.integers(len(whole), size=rng.integers(1, 4)):
            spoiled[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(spoiled[: int(rng.integers(len(whole) // 2, len(whole) + 1))]))
        found = read_arrays(path, ["a"])
        assert found is None or np.array_equal(found["a"], np.arange(1000.0))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < 300


@pytest.mark.parametrize(
    "value",
    [10**5000, -(10**25), "x" * 10**5, [[1] * 99] * 99, {"a": {"b": 1}}, "\ud800", 1.5],
    ids=itertools.count(),
)
def test_values_in_sentences_are_short(value: object) -> None:
    text = excerpt(value)
    assert len(text) < 500
    text.encode()
