"""Pieces of JSON against the standard library's reader of the whole."""

import json
import random
from pathlib import Path

import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats import json_stream
from influx_wrap.formats.json_stream import BareConstant, JsonStream, open_json

TEXT = """{ "a" : {"x": 1, "x": [1.5, null, true, {"y": "z"}]},
  "ü\\u00fc\\n": {}, "b"\t:\r\n{"u": -0.0e-3 , "v": "€" } } \n"""


def read(path: Path, max_bytes: int = 10_000) -> list[tuple[str, list[tuple[str, object]]]]:
    with open_json(path, max_bytes) as stream:
        found = [(key, [(name, stream.value()) for name in stream.members()])
                 for key in stream.members()]  # fmt: skip
        stream.end()
    return found


@pytest.fixture(params=[1, 2, 7, 1000])
def piece_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows that end in the middle of keys, values, white space and characters."""
    monkeypatch.setattr(json_stream, "_PIECE_BYTES", request.param)
    monkeypatch.setattr(json_stream, "LONGEST_VALUE", 50)


@pytest.mark.usefixtures("piece_bytes")
def test_all_of_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(TEXT.encode())
    whole = json.loads(TEXT, object_pairs_hook=tuple, parse_int=float)
    assert read(path) == [(key, list(members)) for key, members in whole]


@pytest.mark.usefixtures("piece_bytes")
def test_what_is_cut_off_is_refused_with_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    data = TEXT.rstrip().encode()
    for n in range(1, len(data)):
        path.write_bytes(data[:n])
        with pytest.raises(
            InputError, match=r"a\.json, (line \d, )?byte \d+: this is not"
        ) as error:
            read(path)
        byte = int(str(error.value).partition("byte ")[2].partition(":")[0])
        assert byte <= n + 1


@pytest.mark.usefixtures("piece_bytes")
def test_damage_is_noticed_as_by_the_whole_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    random_ = random.Random(0)
    data = TEXT.encode()
    refused = 0
    for _ in range(400):
        at = random_.randrange(len(data))
        damaged = (
            data[:at] + bytes([random_.choice(b'{}[]",:01.-e \\\x01\xff\xc3n')]) + data[at + 1 :]
        )
        path.write_bytes(damaged)
        try:
            whole = json.loads(damaged.decode(), object_pairs_hook=tuple, parse_int=float)
        except ValueError:
            refused += 1
            with pytest.raises(InputError, match=r"this is (not|longer)"):
                read(path)
            continue
        # What stays JSON may be of another shape, which is not for this reader to judge.
        if isinstance(whole, tuple) and all(isinstance(value, tuple) for _, value in whole):
            assert read(path) == [(key, list(members)) for key, members in whole]
    assert refused > 200


def test_places(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('{"é":\n {"x": 1,\n  "y": 2}}'.encode())
    places = []
    with open_json(path, 100) as stream:
        for _ in stream.members():
            places.append(stream.place())
            for _ in stream.members():
                places.append(stream.place())
                stream.value()
                places.append(stream.place())
    expected = [(1, 2), (2, 10), (2, 15), (3, 20), (3, 25)]
    assert places == [f"{path}, line {line}, byte {byte}" for line, byte in expected]


def test_constants_are_kept_for_the_caller_to_name(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": {"b": NaN, "c": [-Infinity]}}')
    nan, infinity = BareConstant("NaN"), BareConstant("-Infinity")
    assert read(path) == [("a", [("b", nan), ("c", [infinity])])]


def test_white_space_and_long_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    monkeypatch.setattr(json_stream, "_PIECE_BYTES", 64)
    monkeypatch.setattr(json_stream, "LONGEST_VALUE", 50)
    sizes: list[int] = []
    more = JsonStream._more

    def watched(stream: JsonStream) -> bool:
        sizes.append(len(stream._text))
        return more(stream)

    monkeypatch.setattr(JsonStream, "_more", watched)
    path.write_text('{"a":' + " \n" * 2000 + '{"b": 1}}')
    assert read(path) == [("a", [("b", 1.0)])]
    assert max(sizes) < 200
    path.write_text('{"a": {"b": "' + "x" * 4000 + '"}}')
    with pytest.raises(InputError, match="longer than 50 characters"):
        read(path)


def test_size_is_limited_while_reading_too(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(TEXT)
    size = path.stat().st_size
    with pytest.raises(InputError, match=f"has {size} bytes; at most {size - 1}"):
        read(path, size - 1)
    assert read(path, size)
    with path.open("rb") as file:
        stream = JsonStream(path, file, size - 1, lambda _: None)
        with pytest.raises(InputError, match="at most"):
            stream.begins_object()


def test_progress(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    heard: list[tuple[int, int | None]] = []
    with open_json(path, 10, lambda *now: heard.append(now)) as stream:
        assert list(stream.members()) == []
        stream.end()
    assert heard[-1] == (2, 2)
