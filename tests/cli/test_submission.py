"""``influx-calib submission`` as a user meets it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke, assert_mistake

CAMERA = {"fx": 1000.0, "fy": 1001.0, "cx": 512.0, "cy": 384.0, "xi": 0.5}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "split.json"
    videos = {"a": {"frame_count": 3, "split": "val"}, "[b]": {"frame_count": 2, "split": "test"}}
    path.write_text(json.dumps(videos))
    return path


@pytest.fixture
def blank(tmp_path: Path, invoke: Invoke, manifest: Path) -> Path:
    path = tmp_path / "blank.json"
    options = ("--manifest", manifest, "--out", path, "--method", "my-method_2", "--type", "mei")
    result = invoke("submission", "template", *options, "--split", "all")
    assert result.exit_code == 0, result.output
    assert "my-method_2" in result.stdout
    return path


def predictions(path: Path, videos: dict[str, Any]) -> Path:
    about = {"method_name": "other", "intrinsics_type": "mei", "version": "all"}
    path.write_text(json.dumps({"submission_metadata": about} | videos))
    return path


def test_from_template_to_submission(
    invoke: Invoke, tmp_path: Path, manifest: Path, blank: Path
) -> None:
    first = predictions(tmp_path / "1.json", {"a": {"0": CAMERA, "2": CAMERA}})
    second = predictions(
        tmp_path / "2.json", {"[b]": {"1": CAMERA}, "a": {"2": CAMERA | {"fx": 9}}}
    )
    out = tmp_path / "sub.json"
    result = invoke("submission", "fill", blank, first, second, "--out", out)
    assert result.exit_code == 0, result.output
    assert "2.json: 2 predictions, 1 of them in place of others" in result.stdout
    assert "a: 1 of 3 frames without" in result.stdout
    assert "[b]: 1 of 2 frames without" in result.stdout
    found = json.loads(out.read_text())
    assert found["submission_metadata"]["method_name"] == "my-method_2"
    assert found["submission_metadata"]["version"] == "influx"
    nothing = dict.fromkeys(CAMERA)
    assert found["a"] == {"0": CAMERA, "1": nothing, "2": CAMERA | {"fx": 9}}
    assert found["[b]"] == {"0": nothing, "1": CAMERA}
    result = invoke("submission", "validate", out, "--manifest", manifest, "--split", "all")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    for words in (
        "type mei",
        "videos 2",
        "frames 5",
        "prediction 3 (60.0 %)",
        "without 2 (40.0 %)",
    ):
        assert words in text
    assert "valid and complete by" in result.stdout
    # A submission can be filled further, in place.
    rest = predictions(tmp_path / "3.json", {"a": {"1": CAMERA}, "[b]": {"0": CAMERA}})
    assert invoke("submission", "fill", out, rest, "--out", out).exit_code == 0
    result = invoke("submission", "validate", out, "--all")
    assert "100.0 %" in result.stdout
    assert "frames without" not in result.stdout


def test_one_split(invoke: Invoke, tmp_path: Path, manifest: Path) -> None:
    out = tmp_path / "val.json"
    options = ("--manifest", manifest, "--method", "m", "--type", "rad-tan", "--out", out)
    assert invoke("submission", "template", *options, "--split", "val").exit_code == 0
    assert list(json.loads(out.read_text())) == ["submission_metadata", "a"]
    check = ("submission", "validate", out, "--manifest", manifest)
    assert invoke(*check, "--split", "val").exit_code == 0
    missing = 'video "[b]" of the manifest is missing, 2 frames. In all, 2 of 5 frames'
    assert_mistake(invoke(*check, "--split", "all"), missing)
    for split in ((), ("--split", "test")):
        assert_mistake(invoke(*check, *split), 'video "a" is not in the manifest')
    assert_mistake(invoke("submission", "validate", out, "--split", "val"), "needs a --manifest")
    manifest.write_text('{"a": {"frame_count": 3}}')
    result = invoke("submission", "template", *options, "--split", "test")
    assert_mistake(result, "no video whose split is test")


def test_faults(invoke: Invoke, tmp_path: Path) -> None:
    path = predictions(tmp_path / "sub.json", {"[a]": {"0": CAMERA | {"fx": -1}, "01": CAMERA}})
    byte = path.read_text().index('{"fx"') + 1
    place = f'{path}, line 1, byte {byte}: video "[a]", frame 0: fx must be above 0, got -1.0.'
    assert_mistake(invoke("submission", "validate", path), place)
    result = invoke("submission", "validate", path, "--all")
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0] == f"Error: {place}"
    assert 'frame "01" is not a plain number' in lines[1]
    assert len(lines) == 2
    predictions(path, {"a": {str(k): {} for k in range(99)}})
    lines = invoke("submission", "validate", path, "--all").stderr.splitlines()
    assert len(lines) == 51
    assert lines[-1] == "There may be more."


def test_mistakes(invoke: Invoke, tmp_path: Path, manifest: Path, blank: Path) -> None:
    out = tmp_path / "sub.json"
    beyond = predictions(tmp_path / "p.json", {"a": {"3": CAMERA}})
    result = invoke("submission", "fill", blank, beyond, "--out", out)
    assert_mistake(result, 'p.json: video "a", frame 3 is not in the template')
    beyond.write_text("{")
    assert_mistake(invoke("submission", "fill", blank, beyond, "--out", out), "p.json, line 1")
    assert_mistake(invoke("submission", "fill", tmp_path, blank, "--out", out), "is a folder")
    nowhere = tmp_path / "none" / "sub.json"
    assert_mistake(
        invoke("submission", "fill", blank, blank, "--out", nowhere), "cannot be written"
    )
    assert_mistake(invoke("submission", "validate", out), "does not exist")
    before = manifest.read_text()
    options = ("--manifest", manifest, "--out", manifest, "--type", "mei", "--method", "m")
    assert_mistake(invoke("submission", "template", *options), "would replace")
    assert manifest.read_text() == before
    result = invoke("submission", "fill", blank, beyond, "--out", beyond)
    assert_mistake(result, "would replace")
    options = ("--manifest", manifest, "--out", out, "--type", "mei")
    result = invoke("submission", "template", *options, "--method", " ")
    assert_mistake(result, "needs the name of its method")
    assert not out.exists()


@pytest.mark.parametrize("name", ["template", "validate", "fill"])
def test_examples(invoke: Invoke, name: str) -> None:
    result = invoke("submission", name, "--help")
    assert result.exit_code == 0
    assert f"influx-calib submission {name}" in result.output


KEYS = {"rad-tan": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2"), "mei": tuple(CAMERA)}
LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def write_json(path: Path, values: object) -> Path:
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def benchmark_takes(file: Path, version: str, manifests: list[Path]) -> bool:
    """The rules of the benchmark's own checker, written down a second time."""
    if not (file.name.endswith(".json") and len(file.name) > len(".json")):
        return False
    if file.name[0] not in LETTERS or set(file.name) - LETTERS - set(".-"):
        return False
    wanted: dict[str, int] = {}
    try:
        for one in manifests:
            for video, about in json.loads(one.read_text(), parse_constant=int).items():
                count = about["frame_count"]
                if not video or type(count) is not int or count < 0:
                    return False
                if about["split"] not in ("val", "test") or video in wanted:
                    return False
                wanted |= {video: count} if about["split"] == "test" else {}
        whole = json.loads(file.read_text(), parse_constant=int)
        about = whole["submission_metadata"]
        method, kind = about["method_name"], about["intrinsics_type"]
        if not isinstance(method, str) or not 1 <= len(method) <= 100 or method[0] == "-":
            return False
        if set(method) - LETTERS - {"-"} or about["version"] != version or not wanted:
            return False
        if len(manifests) != (2 if version == "all" else 1):
            return False
        for video, count in wanted.items():
            for frame in range(count):
                for key in KEYS[kind]:
                    value = whole[video][str(frame)][key]
                    if value is not None and type(value) not in (int, float):
                        return False
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


V1 = {"a": {"frame_count": 3, "split": "test"}, "v": {"frame_count": 2, "split": "val"}}
V2 = {"b": {"frame_count": 2, "split": "test"}, "v": {"frame_count": 5, "split": "val"}}


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """The manifests of a benchmark of two parts, whose validation videos share a name."""
    return [write_json(tmp_path / f"v{k}.json", values) for k, values in ((1, V1), (2, V2))]


def given(manifests: list[Path]) -> list[object]:
    return [word for path in manifests for word in ("--manifest", path)]


def filled(path: Path, method: str = "mine", version: str = "all") -> Path:
    """A submission of all test videos of the version."""
    counts = {"influx": {"a": 3}, "influx_pp_real": {"b": 2}, "all": {"a": 3, "b": 2}}[version]
    about = {"method_name": method, "intrinsics_type": "mei", "version": version}
    videos = {name: {str(k): CAMERA for k in range(n)} for name, n in counts.items()}
    return write_json(path, {"submission_metadata": about} | videos)


def test_version_all_has_the_videos_of_two_manifests(
    invoke: Invoke, tmp_path: Path, two: list[Path]
) -> None:
    blank, out = tmp_path / "blank.json", tmp_path / "sub.json"
    options = ("--method", "mine", "--type", "mei", "--version", "all", "--out", blank)
    result = invoke("submission", "template", *given(two), *options)
    assert result.exit_code == 0, result.output
    assert "videos 2" in " ".join(result.stdout.split())
    nothing = dict.fromkeys(CAMERA)
    whole = json.loads(blank.read_text())
    assert whole.pop("submission_metadata")["version"] == "all"
    assert whole == {"a": dict.fromkeys("012", nothing), "b": dict.fromkeys("01", nothing)}
    first = predictions(tmp_path / "1.json", {"a": {"0": CAMERA, "2": CAMERA}})
    second = predictions(tmp_path / "2.json", {"b": {"1": CAMERA}})
    assert invoke("submission", "fill", blank, first, second, "--out", out).exit_code == 0
    result = invoke("submission", "validate", out, *given(two))
    assert result.exit_code == 0, result.output
    assert f"valid and complete by {two[0]} and {two[1]}" in result.stdout
    assert "without 2 (40.0 %)" in " ".join(result.stdout.split())
    assert benchmark_takes(out, "all", two)


def test_how_many_frames_are_missing(invoke: Invoke, tmp_path: Path, two: list[Path]) -> None:
    out = filled(tmp_path / "sub.json")
    whole = json.loads(out.read_text())
    del whole["a"]["0"], whole["a"]["2"]
    write_json(out, whole)
    assert_mistake(
        invoke("submission", "validate", out, *given(two)),
        'video "a" lacks frame 0 and 1 other; the manifest has 3 frames',
        "In all, 2 of 5 frames that must be there are missing.",
    )
    del whole["b"]
    whole["a"]["7"] = CAMERA
    write_json(out, whole)
    result = invoke("submission", "validate", out, *given(two), "--all")
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert "frame 7 is beyond the video" in lines[0]
    assert 'video "b" of the manifest is missing, 2 frames.' in lines[2]
    assert lines[-1] == "In all, 4 of 5 frames that must be there are missing."
    out.write_text(out.read_text()[:-1])
    result = invoke("submission", "validate", out, *given(two), "--all")
    assert "In all" not in result.stderr


METHODS = {
    "space": "my method", "dot": "v1.0", "dash first": "-mine", "slash": "a/b", "umlaut": "größe",
    "digit of another script": "m\u0663", "brackets": "mine[2]", "line break": "mine\n",
    "plus": "mine+", "empty": "", "blank": " ", "101 letters": "m" * 101, "emoji": "m\U0001f3a5",
}  # fmt: skip
FILES = {
    "space": "my sub.json", "hidden": ".sub.json", "dash first": "-sub.json",
    "capitals": "sub.JSON", "no ending": "sub", "two endings": "sub.json.txt", "umlaut": "süb.json",
    "plus": "sub+.json", "brackets": "sub(1).json", "ending alone": ".json",
    "line break": "sub\n.json",
}  # fmt: skip
SOME = {"frame_count": 3, "split": "test"}
MANIFESTS: dict[str, tuple[object, str]] = {
    "a list": ([], "mapping"),
    "not JSON": ('{"a": ', "not JSON"),
    "a video a number": ({"a": 7}, "a must be a mapping"),
    "a video twice": ('{"b": {"frame_count": 1, "split": "test"}, "b": {}}', "'b' comes twice"),
    "a video of the other": ({"a": SOME, "b": SOME}, "'a' is in"),
    "no name": ({"": SOME, "b": SOME}, "has no name"),
    "no frames": ({"b": {"split": "test"}}, "frame_count is missing"),
    "half a frame": ({"b": SOME | {"frame_count": 1.5}}, "whole number"),
    "a truth for frames": ({"b": SOME | {"frame_count": True}}, "whole number"),
    "frames as text": ({"b": SOME | {"frame_count": "2"}}, "whole number"),
    "frames below 0": ({"b": SOME | {"frame_count": -1}}, "at least 1"),
    "frames not a number": ('{"b": {"frame_count": NaN, "split": "test"}}', "line 1: NaN stands"),
    "another split": ({"b": SOME | {"split": "train"}}, "must be val or test"),
    "a split in capitals": ({"b": SOME | {"split": "Test"}}, "must be val or test"),
    "no split": ({"b": {"frame_count": 2}, "c": SOME}, "'b' has no split"),
}


@pytest.mark.parametrize("case", METHODS)
def test_names_of_methods(invoke: Invoke, tmp_path: Path, two: list[Path], case: str) -> None:
    path = filled(tmp_path / "sub.json", METHODS[case])
    assert not benchmark_takes(path, "all", two)
    assert_mistake(invoke("submission", "validate", path, *given(two)), "method_name must be")
    blank = tmp_path / "blank.json"
    options = ("--type", "mei", "--version", "all", "--out", blank)
    result = invoke("submission", "template", *given(two), "--method", METHODS[case], *options)
    assert_mistake(result, "the name of")
    result = invoke("submission", "fill", path, path, "--out", blank)
    assert result.exit_code == 2
    assert not blank.exists()


@pytest.mark.parametrize("case", FILES)
def test_names_of_files(invoke: Invoke, tmp_path: Path, two: list[Path], case: str) -> None:
    path = filled(tmp_path / FILES[case])
    assert not benchmark_takes(path, "all", two)
    result = invoke("submission", "validate", path, *given(two))
    assert result.exit_code == 2
    assert "the name of a submission's file has letters A to Z" in result.stderr
    good = filled(tmp_path / "_good.1-2.json")
    assert benchmark_takes(good, "all", two)
    assert invoke("submission", "validate", good, *given(two)).exit_code == 0
    path.unlink()
    for command in (
        ("template", *given(two), "--method", "m", "--type", "mei"),
        ("fill", good, good),
    ):
        result = invoke("submission", *command, "--out", path)
        assert result.exit_code == 2
        assert "the name of a submission's file" in result.stderr
        assert not path.exists()


@pytest.mark.parametrize("case", MANIFESTS)
def test_wrong_manifests(invoke: Invoke, tmp_path: Path, two: list[Path], case: str) -> None:
    values, words = MANIFESTS[case]
    write_json(two[1], values)
    path = filled(tmp_path / "sub.json")
    assert not benchmark_takes(path, "all", two)
    assert_mistake(invoke("submission", "validate", path, *given(two)), words)
    out = tmp_path / "blank.json"
    options = ("--method", "m", "--type", "mei", "--version", "all", "--out", out)
    assert_mistake(invoke("submission", "template", *given(two), *options), words)
    assert not out.exists()


@pytest.mark.parametrize(
    ("version", "which", "words"),
    [
        ("all", (0,), "of 2 manifests, and 1 is given"),
        ("all", (1,), "of 2 manifests, and 1 is given"),
        ("all", (0, 0), "is in"),
        ("all", (0, 1, 1), "is in"),
        ("influx", (0, 1), "of 1 manifest, and 2 are given: a submission to both is version all"),
        ("influx_pp_real", (0, 1), "of 1 manifest, and 2 are given"),
        ("influx", (1,), "is not in the manifest"),
        ("influx_pp_real", (0,), "is not in the manifest"),
    ],
)
def test_another_number_of_manifests(
    invoke: Invoke,
    tmp_path: Path,
    two: list[Path],
    version: str,
    which: tuple[int, ...],
    words: str,
) -> None:
    path = filled(tmp_path / "sub.json", version=version)
    manifests = [two[k] for k in which]
    assert not benchmark_takes(path, version, manifests)
    assert_mistake(invoke("submission", "validate", path, *given(manifests)), words)
    if "is not in" not in words:
        options = ("--method", "m", "--type", "mei", "--version", version)
        out = tmp_path / "blank.json"
        result = invoke("submission", "template", *given(manifests), *options, "--out", out)
        assert result.exit_code == 2
        assert not out.exists()


def test_stricter_than_the_benchmark(invoke: Invoke, tmp_path: Path, two: list[Path]) -> None:
    """What docs/evaluation.md lists as refused by us alone."""
    path = filled(tmp_path / "sub.json")
    text, whole = path.read_text(), json.loads(path.read_text())
    first = whole["a"]["0"]
    cases: dict[str, object] = {
        "is not in the manifest": whole | {"v": {"0": CAMERA}},
        "is beyond the video": whole | {"a": whole["a"] | {"3": CAMERA}},
        '"depth" is not known': whole | {"a": whole["a"] | {"0": first | {"depth": 1}}},
        '"team" is not known': whole
        | {"submission_metadata": whole["submission_metadata"] | {"team": "us"}},
        "fx must be above 0": whole | {"a": whole["a"] | {"0": first | {"fx": 0}}},
        'video "b" comes twice': text[:-1] + f', "b": {json.dumps(whole["b"])}}}',
        "frame 0 comes twice": text.replace('"a": {', f'"a": {{"0": {json.dumps(CAMERA)}, ', 1),
        "fx comes twice": text.replace('{"fx"', '{"fx": 1, "fx"', 1),
    }
    for words, values in cases.items():
        write_json(path, values)
        assert benchmark_takes(path, "all", two), words
        assert_mistake(invoke("submission", "validate", path, *given(two)), words)
    write_json(two[0], V1 | {"empty": {"frame_count": 0, "split": "test"}})
    assert_mistake(invoke("submission", "validate", path, *given(two)), "at least 1")
    write_json(filled(path), json.loads(path.read_text()) | {"b": {}})
    write_json(two[0], V1)
    write_json(two[1], {})
    assert benchmark_takes(path, "all", two)
    assert_mistake(invoke("submission", "validate", path, *given(two)), "names no video")
