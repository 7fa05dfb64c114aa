"""Submissions by the standard library's reader, read back, and refused for what is wrong."""

import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats import submission as module
from influx_wrap.formats import submission_scan
from influx_wrap.formats.manifest import Video
from influx_wrap.formats.submission import (
    MAX_BYTES,
    read_submission,
    submission_faults,
    summarise,
    validate_submission,
    write_submission,
)
from influx_wrap.model.predictions import MEI, PARAMETERS, RAD_TAN, Predictions, VideoPredictions

MANIFEST = {"clip é": Video(3, "val"), "b": Video(2, "test")}
VALUES = {
    RAD_TAN: [2000.0, 2001.0, 1712.0, 1101.0, -0.1, 1 / 3, 1e-7, -1e-5],
    MEI: [2000.0, 2001.0, 1712.0, 1101.0, 0.8],
}


def as_loaded(kind: str = RAD_TAN, **about: object) -> dict[str, Any]:
    """A valid submission: predictions, one of them of whole numbers, and frames without."""
    camera = dict(zip(PARAMETERS[kind], VALUES[kind], strict=True))
    metadata = {"method_name": "mine", "intrinsics_type": kind, "version": "influx"} | about
    return {
        "submission_metadata": metadata,
        "clip é": {
            "0": dict(camera),
            "1": dict.fromkeys(camera),
            "2": camera | {"fx": 7, "cx": 0},
        },
        "b": {"0": camera | {"cy": None}, "1": dict(camera)},
    }


def refuse(word: str) -> None:
    raise ValueError(word)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sub.json"


@pytest.mark.parametrize("kind", PARAMETERS)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_valid(path: Path, kind: str, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(as_loaded(kind), indent=indent, ensure_ascii=ascii_only)
    path.write_text(text, encoding="utf-8")
    for manifest in (None, MANIFEST):
        summary = validate_submission(path, manifest)
        assert (summary.method, summary.kind, summary.version) == ("mine", kind, "influx")
        assert {name: (v.frames, v.predicted) for name, v in summary.videos.items()} == {
            "clip é": (3, 2),
            "b": (2, 1),
        }
        assert (summary.frames, summary.predicted) == (5, 3)
        assert submission_faults(path, manifest) == []
        found = read_submission(path, manifest)
        assert summarise(found) == summary
    clip = found.videos["clip é"]
    assert clip.frames.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(clip.values[0, 2:4], [1711.5, 1100.5])
    np.testing.assert_array_equal(clip.values[0, 4:], VALUES[kind][4:])
    assert clip.values[2, :3].tolist() == [7, 2001, -0.5]
    assert clip.answered.tolist() == [True, False, True]
    # A single null leaves no prediction.
    assert np.isnan(found.videos["b"].values[0]).all()


def test_any_order(path: Path) -> None:
    """Frames, parameters and the metadata where they like to be, as after sort_keys."""
    n = 12
    camera = dict(zip(PARAMETERS[RAD_TAN], VALUES[RAD_TAN], strict=True))
    videos: dict[str, Any] = {"v": {str(k): camera | {"fx": 100.0 + k} for k in range(n)}}
    path.write_text(json.dumps(as_loaded() | videos, sort_keys=True))
    assert next(iter(json.loads(path.read_text()))) == "b"
    found = read_submission(path, MANIFEST | {"v": Video(n)})
    np.testing.assert_array_equal(found.videos["v"].frames, np.arange(n))
    np.testing.assert_array_equal(found.videos["v"].values[:, 0], 100.0 + np.arange(n))
    np.testing.assert_array_equal(found.videos["v"].values[3, 4:], VALUES[RAD_TAN][4:])


@pytest.mark.parametrize("kind", PARAMETERS)
def test_round_trip(path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    n = len(PARAMETERS[kind])
    values = rng.uniform(0.1, 5000, (50, n))
    values[7] = np.nan
    values[8, 3] = np.nan
    values[9, 1] = np.inf
    videos = {
        'a "quoted" ü\n': VideoPredictions(np.arange(50), values),
        "some frames": VideoPredictions(np.array([3, 17, 999_999]), values[:3]),
    }
    predictions = Predictions("my é method", kind, "all", videos)
    write_submission(path, predictions)
    whole = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert whole.pop("submission_metadata") == {
        "method_name": "my é method", "intrinsics_type": kind, "version": "all",
    }  # fmt: skip
    assert list(whole) == list(videos)
    assert list(whole["some frames"]) == ["3", "17", "999999"]
    corner = whole['a "quoted" ü\n']
    for frame in (7, 8, 9):
        assert corner[str(frame)] == dict.fromkeys(PARAMETERS[kind])
    assert list(corner["0"].values()) == pytest.approx(
        values[0] + np.array([0, 0, 0.5, 0.5, *[0] * (n - 4)]), rel=1e-15
    )
    found = read_submission(path)
    assert (found.method, found.kind, found.version) == ("my é method", kind, "all")
    expected = values.copy()
    expected[7:10] = np.nan
    np.testing.assert_allclose(found.videos['a "quoted" ü\n'].values, expected, atol=1e-12)
    np.testing.assert_array_equal(found.videos["some frames"].frames, [3, 17, 999_999])


def change(do: Callable[[dict[str, Any]], object], **dump: Any) -> bytes:
    """A valid submission, changed."""
    whole = as_loaded()
    do(whole)
    return json.dumps(whole, **dump).encode()


def replace(old: str, new: str, of: bytes | None = None) -> bytes:
    """A valid submission whose text is changed in one place."""
    text = (of or json.dumps(as_loaded(), ensure_ascii=False).encode()).decode()
    assert old in text
    return text.replace(old, new, 1).encode()


def frame_key(key: str) -> bytes:
    return change(lambda s: s["b"].update({key: s["b"].pop("1")}))


def value(new: str) -> bytes:
    return replace('"k2": 0.3', f'"k2": {new}, "was": 0.3').replace(
        b', "was": 0.3333333333333333', b""
    )


VALID = json.dumps(as_loaded()).encode()
IN_0 = r'line 1, byte \d+: video "clip é", frame 0'
NUMBER = rf"{IN_0}: k2 must be a finite number or null, got "
NOT_PLAIN = r'byte \d+: video "b", frame "{}" is not a plain number'

NOT_JSON: dict[str, tuple[bytes, str]] = {
    "empty": (b"", r"sub\.json is empty"),
    "white space": (b" \n ", "one JSON object"),
    "words": (b"fx 1000", "one JSON object"),
    "truncated": (VALID[:-300], r"line 1, byte \d+: this is not JSON: the file ends"),
    "brace missing": (VALID[:-1], r"byte \d+: this is not JSON: the file ends in the middle"),
    "second object": (VALID + b"{}", rf"byte {len(VALID) + 1}: .* something follows"),
    "garbage at the end": (VALID + b"\n\n  x", rf"line 3, byte {len(VALID) + 5}: .* follows"),
    "comma at the end": (VALID[:-1] + b",}", rf"byte {len(VALID) + 1}: .* key in double quotes"),
    "comma missing": (replace('}, "1"', '} "1"'), r"byte \d+: .* comma or a closing brace"),
    "colon missing": (replace('"0": {', '"0" {'), r"byte \d+: .* : is expected"),
    "single quotes": (VALID.replace(b'"', b"'"), r"byte 2: .* key in double quotes"),
    "key without quotes": (replace('"fy":', "fy:"), r"byte \d+: this is not JSON"),
    "comment": (replace('"b":', '/* b */ "b":'), r"byte \d+: .* key in double quotes"),
    "leading zero": (value("01.5"), r"byte \d+: this is not JSON"),
    "plus": (value("+1.5"), r"byte \d+: this is not JSON"),
    "bare point": (value(".5"), r"byte \d+: this is not JSON"),
    "hexadecimal": (value("0x10"), r"byte \d+: this is not JSON"),
    "python's None": (value("None"), r"byte \d+: this is not JSON"),
    "nan of C": (value("nan"), r"byte \d+: this is not JSON"),
    "NaN": (value("NaN"), NUMBER + "NaN, which JSON does not have"),
    "Infinity": (value("Infinity"), NUMBER + "Infinity, which JSON"),
    "-Infinity": (value("-Infinity"), NUMBER + "-Infinity, which JSON"),
    "NaN as method": (replace('"mine"', "NaN"), "method_name must be a name, got NaN"),
    "line break in a name": (replace('"b"', '"b\n"'), r"byte \d+: .* Invalid control character"),
    "bad escape": (replace('"b"', r'"\q"'), r"byte \d+: this is not JSON: Invalid"),
    "byte order mark": (b"\xef\xbb\xbf" + VALID, "byte order mark"),
    "UTF-16": (json.dumps(as_loaded()).encode("utf-16"), "byte 1: this is not text in UTF-8"),
    "Latin-1": (
        json.dumps(as_loaded(), ensure_ascii=False).encode("latin-1"),
        r"byte \d+: this is not text in UTF-8",
    ),
    "half a character": (replace('"b"', '"b%"').replace(b"%", b"\xc3"), "not text in UTF-8"),
    "NUL": (VALID + b"\0", rf"byte {len(VALID) + 1}: .* follows"),
    "deep": (value("[" * 30_000), r"byte \d+: this is not JSON: it is nested too deeply"),
    "deeper": (value("[" * 200_000), r"byte \d+: this is not JSON"),
}  # fmt: skip

BREAKS_A_RULE: dict[str, tuple[bytes, str]] = {
    "list": (b"[]", "one JSON object"),
    "null": (b"null", "one JSON object"),
    "text": (b'"submission_metadata"', "one JSON object"),
    "nothing in it": (b"{}", "submission_metadata is missing"),
    "no metadata": (change(lambda s: s.pop("submission_metadata")), "submission_metadata is miss"),
    "no video": (change(lambda s: (s.pop("b"), s.pop("clip é"))), "has no video"),
    "metadata a list": (
        change(lambda s: s.update(submission_metadata=["mine"])),
        r"line 1, byte 2: submission_metadata must be an object, got a list",
    ),
    "metadata null": (change(lambda s: s.update(submission_metadata=None)), "object, got null"),
    "metadata twice": (
        replace('"clip é"', '"submission_metadata": {}, "clip é"'),
        r"byte \d+: submission_metadata comes twice",
    ),
    **{
        f"no {key}": (
            change(lambda s, key=key: s["submission_metadata"].pop(key)),  # type: ignore[misc]
            f"submission_metadata: {key} is missing",
        )
        for key in ("method_name", "intrinsics_type", "version")
    },
    "unknown in metadata": (
        change(lambda s: s["submission_metadata"].update(team="us")),
        'submission_metadata: "team" is not known here; the keys are method_name',
    ),
    "twice in metadata": (
        replace('"version"', '"method_name": "b", "version"'),
        "submission_metadata: method_name comes twice",
    ),
    "empty method": (replace('"mine"', '""'), 'method_name must be a name, got the text ""'),
    "blank method": (replace('"mine"', '" \\t"'), "method_name must be a name"),
    "number as method": (replace('"mine"', "5"), "method_name must be a name, got 5"),
    "surrogate as method": (replace('"mine"', r'"\ud800"'), r'a name, got the text "\\ud800"'),
    "unknown type": (replace('"rad-tan"', '"fisheye"'), 'be rad-tan or mei, got the text "fish'),
    "type in capitals": (replace('"rad-tan"', '"Rad-Tan"'), "be rad-tan or mei"),
    "type a list": (replace('"rad-tan"', '["rad-tan"]'), "be rad-tan or mei, got a list"),
    "type an object": (replace('"rad-tan"', '{"a": []}'), "be rad-tan or mei, got an object"),
    "unknown version": (replace('"influx"', '"influx2"'), "version must be influx or influx_pp_r"),
    "version a number": (replace('"influx"', "1"), "version must be influx or .* got 1"),
    "mei said, rad-tan given": (
        replace('"rad-tan"', '"mei"'),
        f"{IN_0} is a rad-tan camera, but submission_metadata says mei",
    ),
    "rad-tan said, mei given": (
        json.dumps(as_loaded(MEI, intrinsics_type=RAD_TAN), ensure_ascii=False).encode(),
        f"{IN_0} is a mei camera, but submission_metadata says rad-tan",
    ),
    "metadata at the end says otherwise": (
        change(lambda s: s.update(submission_metadata=s.pop("submission_metadata")
                                  | {"intrinsics_type": "mei"})),
        'intrinsics_type is mei, but video "clip é", frame 0 says rad-tan',
    ),
    "mixed": (
        change(lambda s: s["b"].update({"1": as_loaded(MEI)["b"]["1"]})),
        'video "b", frame 1 is a mei camera',
    ),
    "mixed, metadata at the end": (
        change(lambda s: (s["b"].update({"1": as_loaded(MEI)["b"]["1"]}),
                          s.update(submission_metadata=s.pop("submission_metadata")))),
        'video "b", frame 1 is a mei camera, but video "clip é", frame 0 says rad-tan',
    ),
    "both sets": (
        change(lambda s: s["b"]["0"].update(xi=0.0)),
        'video "b", frame 0: "xi" is not known here',
    ),
    "parameter missing": (change(lambda s: s["b"]["1"].pop("p2")), "frame 1: p2 is missing"),
    "no parameter": (change(lambda s: s["b"]["1"].clear()), "frame 1: fx is missing"),
    "parameter unknown": (
        change(lambda s: s["b"]["1"].update(k3=0)),
        'video "b", frame 1: "k3" is not known here; the keys are fx, fy',
    ),
    "parameter in capitals": (replace('"fx"', '"FX"'), f'{IN_0}: "FX" is not known'),
    "parameter twice": (replace('"k2"', '"k1": 0, "k2"'), f"{IN_0}: k1 comes twice"),
    "boolean": (value("true"), NUMBER + "true"),
    "text as number": (value('"0.1"'), NUMBER + 'the text "0.1"'),
    "list as number": (value("[0.1]"), NUMBER + "a list"),
    "object as number": (value("{}"), NUMBER + "an object"),
    "overflow": (value("1e999"), NUMBER + "one too large"),
    "negative overflow": (value("-1e400"), NUMBER + "one too large"),
    "very long integer": (value("9" * 5000), NUMBER + "one too large"),
    "fx zero": (change(lambda s: s["b"]["1"].update(fx=0)), "frame 1: fx must be above 0"),
    "fx negative": (change(lambda s: s["b"]["1"].update(fx=-3.5)), "fx must be above 0, got -3.5"),
    "fx minus zero": (change(lambda s: s["b"]["1"].update(fx=-0.0)), "fx must be above 0"),
    "fy negative": (change(lambda s: s["b"]["1"].update(fy=-1)), "fy must be above 0"),
    "fx negative beside null": (change(lambda s: s["b"]["0"].update(fx=-1)), "frame 0: fx must"),
    "frame null": (
        change(lambda s: s["b"].update({"1": None})),
        'video "b", frame 1 must be an object of parameters, got null',
    ),
    "frame a list": (change(lambda s: s["b"].update({"1": [1, 2]})), "frame 1 must .* a list"),
    "frame a number": (change(lambda s: s["b"].update({"1": 12})), "frame 1 must .* got 12"),
    **{
        f"frame key {key!r}": (frame_key(key), NOT_PLAIN.format(shown))
        for key, shown in {
            "": "", "00": "00", "01": "01", "+1": r"\+1", "-1": "-1", "-0": "-0", "1.0": r"1\.0",
            " 1": " 1", "1 ": "1 ", "1\n": r"1\\n", "1e0": "1e0", "0x1": "0x1", "1_0": "1_0",
            "one": "one", "frame_1": "frame_1", "١": "١", "１": "１", "²": "²",
        }.items()
    },
    "frame far too large": (frame_key("9" * 5000), "is too large for the number of a frame"),
    "frame too large": (frame_key("10000000"), "frame 10000000 is too large"),
    "frame twice": (replace('"1": {"fx": 2', '"0": {"fx": 2'), 'video "b", frame 0 comes twice'),
    "video a list": (change(lambda s: s.update(b=[])), 'video "b" must be an object of frames'),
    "video null": (change(lambda s: s.update(b=None)), 'video "b" must be an object .* got null'),
    "video a frame": (
        change(lambda s: s.update(b=s["b"]["0"])),
        'video "b", frame "fx" is not a plain number',
    ),
    "video without frames": (change(lambda s: s.update(b={})), 'video "b" has no frame'),
    "video twice": (replace('"b"', '"clip é"'), r'line 1, byte \d+: video "clip é" comes twice'),
    "video twice, escaped": (replace('"b"', r'"clip \u00e9"'), "comes twice"),
    "video without name": (replace('"b"', '""'), 'video "" is not a name'),
    "endless name": (replace('"b"', '"' + "b" * 100_000 + '"'), r"longer than 65536 char"),
    "long name": (replace('"b"', '"' + "b" * 1001 + '"'), r'b\.\.\." is not a name of 1 to 1000'),
    "surrogate as name": (replace('"b"', r'"\udc00"'), r'video "\\udc00" is not a name'),
}  # fmt: skip

AGAINST_THE_MANIFEST: dict[str, tuple[bytes, str]] = {
    "video unknown": (
        change(lambda s: s.update(c=s["b"])),
        r'line 1, byte \d+: video "c" is not in the manifest',
    ),
    "name in other case": (replace('"b"', '"B"'), 'video "B" is not in the manifest'),
    "name composed otherwise": (replace("é", "e\u0301"), "is not in the manifest"),
    "video missing": (change(lambda s: s.pop("b")), 'video "b" of the manifest is missing'),
    "frame beyond": (
        change(lambda s: s["b"].update({"2": s["b"]["1"]})),
        'video "b", frame 2 is beyond the video; the manifest has 2 frames, 0 to 1',
    ),
    "first frame missing": (change(lambda s: s["b"].pop("0")), 'video "b" lacks frame 0'),
    "frame between missing": (
        change(lambda s: s["clip é"].pop("1")),
        'video "clip é" lacks frame 1; the manifest has 3 frames',
    ),
    "last frame missing": (change(lambda s: s["clip é"].pop("2")), 'video "clip é" lacks frame 2'),
    "frames counted from 1": (frame_key("2"), "frame 2 is beyond the video"),
    "no frame": (change(lambda s: s.update(b={})), 'video "b" lacks frame 0'),
}  # fmt: skip


def refused_everywhere(path: Path, words: str, manifest: dict[str, Video] | None) -> None:
    with pytest.raises(InputError, match=words) as error:
        validate_submission(path, manifest)
    message = str(error.value)
    assert message.startswith(str(path))
    assert message.endswith(".")
    assert len(message.splitlines()) == 1
    assert len(message) < 400 + len(str(path))
    message.encode()
    with pytest.raises(InputError, match=re.escape(message)):
        read_submission(path, manifest)
    assert submission_faults(path, manifest)[0] == message


@pytest.mark.parametrize("fault", NOT_JSON)
def test_not_json(path: Path, fault: str) -> None:
    data, words = NOT_JSON[fault]
    path.write_bytes(data)
    with pytest.raises((ValueError, RecursionError)):
        json.loads(data.decode(), parse_constant=refuse)
    refused_everywhere(path, words, None)


@pytest.mark.parametrize("fault", BREAKS_A_RULE)
def test_a_rule_broken(path: Path, fault: str) -> None:
    data, words = BREAKS_A_RULE[fault]
    path.write_bytes(data)
    json.loads(data.decode(), parse_constant=refuse, parse_int=float)
    refused_everywhere(path, words, None)


@pytest.mark.parametrize("fault", AGAINST_THE_MANIFEST)
def test_against_the_manifest(path: Path, fault: str) -> None:
    data, words = AGAINST_THE_MANIFEST[fault]
    path.write_bytes(data)
    if fault != "no frame":
        validate_submission(path)
    refused_everywhere(path, words, MANIFEST)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        validate_submission(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read_submission(tmp_path / "none.json")
    assert submission_faults(tmp_path) == [f"{tmp_path} is a folder, a file is needed."]


def test_too_many_videos(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission_scan, "MAX_VIDEOS", 2)
    path.write_bytes(VALID)
    assert len(validate_submission(path).videos) == 2
    path.write_bytes(AGAINST_THE_MANIFEST["video unknown"][0])
    with pytest.raises(InputError, match='video "c" is one too many'):
        validate_submission(path)


def test_many_faults(path: Path) -> None:
    whole = as_loaded(version="none", method_name="")
    whole["clip é"]["1"] = 7
    whole["clip é"]["01"] = {}
    whole["c"] = {str(k): {"fx": 1} for k in range(100)}
    del whole["b"]
    path.write_text(json.dumps(whole, indent=1))
    faults = submission_faults(path, MANIFEST)
    assert len(faults) == 50
    words = ["method_name must", "version must", "frame 1 must be", '"01" is not', "fx is missing"]
    words += ['"c" is not in the manifest', "frame 0: fy is missing", "frame 1: fy is missing"]
    for fault, expected in zip(faults[:4] + faults[5:], words[:4] + words[5:], strict=False):
        assert expected in fault
    assert words[4] in faults[4]
    assert 'video "b" of the manifest is missing' in submission_faults(path, MANIFEST, 1000)[-1]
    # Behind what is not JSON nothing can be said.
    path.write_bytes(replace('"fx": 2000.0', '"fx": -1').replace(b'"b"', b"b"))
    faults = submission_faults(path, MANIFEST)
    assert len(faults) == 2
    assert "fx must be above 0" in faults[0]
    assert "this is not JSON" in faults[1]


class _Refused(Exception):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _Refused
    return dict(pairs)


def is_valid(data: bytes, manifest: dict[str, Video]) -> bool:
    """The rules once more, on the whole file at once."""
    try:
        whole = json.loads(data.decode(), object_pairs_hook=_pairs, parse_constant=refuse)
    except (ValueError, _Refused):
        return False
    if not isinstance(whole, dict) or whole.keys() != {"submission_metadata", *manifest}:
        return False
    about = whole.pop("submission_metadata")
    if not isinstance(about, dict) or list(map(type, about.values())) != [str] * 3:
        return False
    if about.keys() != {"method_name", "intrinsics_type", "version"}:
        return False
    if about["version"] not in ("influx", "influx_pp_real", "all"):
        return False
    if about["intrinsics_type"] not in PARAMETERS or not about["method_name"].strip():
        return False
    for name, frames in whole.items():
        expected = {str(k) for k in range(manifest[name].frame_count)}
        if not isinstance(frames, dict) or frames.keys() != expected:
            return False
        for camera in frames.values():
            parameters = PARAMETERS[about["intrinsics_type"]]
            if not isinstance(camera, dict) or camera.keys() != set(parameters):
                return False
            for parameter, number in camera.items():
                if number is None:
                    continue
                if type(number) not in (int, float) or not math.isfinite(number):
                    return False
                if parameter in ("fx", "fy") and number <= 0:
                    return False
    return True


def test_random_damage(path: Path) -> None:
    """Accepted and refused as by the rules written down a second time."""
    random_ = random.Random(1)
    valid = json.dumps(as_loaded(), ensure_ascii=False).encode()
    snippets = [b"", b"0", b"-", b"9", b"e9", b"e999", b" ", b"\n", b'"', b",", b"}", b"{", b"null"]
    snippets += [b"true", b"[", b"\xff", b"\xc3\xa9", b"\\", b'"0"', b'"fx"', b"NaN", b".", b"x"]
    accepted = 0
    for _ in range(1500):
        at = random_.randrange(len(valid))
        until = at + random_.choice((0, 1, 1, 2, 5))
        data = valid[:at] + random_.choice(snippets) + valid[until:]
        path.write_bytes(data)
        expected = is_valid(data, MANIFEST)
        accepted += expected
        assert (not submission_faults(path, MANIFEST)) == expected, data
    assert 50 < accepted < 500


def test_200_mib_in_little_memory(path: Path) -> None:
    """A file as large as it may be, much of it frames, and one byte more.

    The rest is white space, so that the test takes seconds; frames alone would not take more
    memory.
    """
    names = PARAMETERS[RAD_TAN]
    camera = "{" + ", ".join(f'"{name}": 1234.567890123{k}' for k, name in enumerate(names)) + "}"
    n_videos, n_frames = 4, 25_000
    with path.open("w") as file:
        metadata = as_loaded()["submission_metadata"]
        file.write(f'{{"submission_metadata": {json.dumps(metadata)}')
        for video in range(n_videos):
            frames = ",\n".join(f'"{k}": {camera}' for k in range(n_frames))
            file.write(f',\n"v{video}": {{{frames}}}')
            file.write(" " * ((MAX_BYTES - 100_000_000) // n_videos))
        assert file.tell() > 100_000_000
        file.write(" " * (MAX_BYTES - file.tell() - 1) + "}")
    assert path.stat().st_size == MAX_BYTES
    code = """
import re, sys
from pathlib import Path
from influx_wrap.formats.submission import validate_submission
def peak_kib():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
before = peak_kib()
print(validate_submission(Path(sys.argv[1])).predicted, peak_kib() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    predicted, grown_kib = map(int, done.stdout.split())
    assert predicted == n_videos * n_frames
    assert grown_kib < 30 * 1024
    with path.open("a") as file:
        file.write("\n")
    heard: list[int] = []
    with pytest.raises(InputError, match=r"has 209715201 bytes; at most 209715200 \(200 MiB\)"):
        validate_submission(path, None, heard.append)
    assert not heard


def test_only_what_is_valid_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("before")
    one = VideoPredictions(np.array([0]), np.array([VALUES[MEI]]))
    wrong = VideoPredictions(np.array([3, 4]), np.array([VALUES[MEI], [1, -1, 1, 1, 1]]))
    for predictions, words in (
        (Predictions(" ", MEI, "all", {"a": one}), "name of its method"),
        (Predictions("m", MEI, "2", {"a": one}), "version must be influx or"),
        (Predictions("m", MEI, "all", {}), "1 to 100000 videos"),
        (Predictions("m", MEI, "all", {"": one}), 'video "": this cannot be the name'),
        (Predictions("m", MEI, "all", {"\ud800": one}), "cannot be the name"),
        (Predictions("m", MEI, "all", {"submission_metadata": one}), "cannot be the name"),
        (
            Predictions("m", MEI, "all", {"a": VideoPredictions(one.frames[:0], one.values[:0])}),
            'video "a" has no frame',
        ),
        (
            Predictions("m", MEI, "all", {"a": VideoPredictions(one.frames - 1, one.values)}),
            "numbered from 0",
        ),
        (
            Predictions("m", MEI, "all", {"a": one, "b": wrong}),
            'video "b", frame 4: fx and fy must be above 0',
        ),
    ):
        with pytest.raises(InputError, match=words):
            write_submission(path, predictions)
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(InputError, match="at most 100"):
        write_submission(path, Predictions("m", MEI, "all", {"a": one}))
    assert [entry.name for entry in path.parent.iterdir()] == ["sub.json"]
    assert path.read_text() == "before"
