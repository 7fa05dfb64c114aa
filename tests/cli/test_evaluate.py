"""``influx-calib evaluate`` on files written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.formats.lut import write_table
from tests.lut.lenses import breathing_table

CAMERA = {
    "fx": 3000.0, "fy": 3000.0, "cx": 1712.0, "cy": 1101.0,
    "k1": 0.0, "k2": 0.0, "p1": 0.0, "p2": 0.0,
}  # fmt: skip
LENS = {"focal_length_mm": 25.0, "focus_distance_m": 4.0}


def truth_file(folder: Path) -> Path:
    """Two videos: one of three frames, the last extrapolated; one of a single frame."""
    frame = {"intrinsics_gt": CAMERA, "intrinsics_gt_extrapolated": CAMERA, "lens_metadata": LENS}
    beyond = frame | {"intrinsics_gt": None}
    path = folder / "truth.json"
    path.write_text(json.dumps({"a": {"0": frame, "1": frame, "2": beyond}, "b": {"0": frame}}))
    return path


def submission(folder: Path, name: str, **videos: object) -> Path:
    metadata = {"method_name": name, "intrinsics_type": "rad-tan", "version": "influx"}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"submission_metadata": metadata, **videos}))
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["evaluate", *map(str, arguments)])


def scores(folder: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((folder / "scores.json").read_text())
    return loaded


def test_a_focal_length_ten_per_cent_off_and_a_missing_frame(tmp_path: Path) -> None:
    long = CAMERA | {"fx": 3300.0}
    answers = submission(tmp_path, "long", a={"0": long, "1": dict.fromkeys(CAMERA)}, b={"0": long})
    out = tmp_path / "out"
    done = invoke(answers, "--truth", truth_file(tmp_path), "--out", out, "--jobs", 1)
    assert done.exit_code == 0, done.output
    found = scores(out)
    assert (found["frames"], found["predicted_frames"]) == (3, 2)
    assert found["percent_error"] == pytest.approx({"fx": 10.0, "fy": 0, "cx": 0, "cy": 0})
    assert set(found["videos"]) == {"a", "b"}
    # Of three frames that see the same points one is infinitely wrong, no error is beyond 172 px.
    assert found["epe_below"]["300"] == pytest.approx(200 / 3)
    assert found["videos"]["b"]["epe_below"]["300"] == 100
    assert found["points"]["number"] == 100_000
    for name in ("table.txt", "table.csv", "table.tex", "report.html"):
        assert (out / name).stat().st_size > 0
    assert "long" in done.output


def test_perfect(tmp_path: Path) -> None:
    answers = submission(tmp_path, "perfect", a={"0": CAMERA, "1": CAMERA}, b={"0": CAMERA})
    out = tmp_path / "out"
    done = invoke(answers, "--truth", truth_file(tmp_path), "--out", out)
    assert done.exit_code == 0, done.output
    found = scores(out)
    assert found["percent_error"] == {"fx": 0, "fy": 0, "cx": 0, "cy": 0}
    assert found["epe_below"] == dict.fromkeys(found["epe_below"], 100)


def test_several_methods(tmp_path: Path) -> None:
    one = submission(tmp_path, "one", a={"0": CAMERA})
    two = submission(tmp_path, "two", b={"0": CAMERA})
    out = tmp_path / "out"
    done = invoke(one, two, "--truth", truth_file(tmp_path), "--out", out)
    assert done.exit_code == 0, done.output
    assert scores(out / "one")["predicted_frames"] == 1
    assert scores(out / "two")["videos"]["a"]["predicted_frames"] == 0
    table = (out / "table.txt").read_text()
    assert "one" in table
    assert "two" in table


def test_groups_from_a_file(tmp_path: Path) -> None:
    answers = submission(tmp_path, "one", a={"0": CAMERA})
    (tmp_path / "groups.csv").write_text("video,place\na,indoors\nb,outdoors\n")
    out = tmp_path / "out"
    options = ("--truth", truth_file(tmp_path), "--groups", tmp_path / "groups.csv", "--out", out)
    assert invoke(answers, *options).exit_code == 0
    assert scores(out)["groups"]["place"]["indoors"]["predicted_frames"] == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "header"),
        ("place\nx\n", "header"),
        ("video,place\nc,x\n", "line 2: there is no truth of video 'c'"),
        ("video,place\na\n", "line 2: 2 values"),
        ("video,place\na,x,y\n", "line 2: 2 values"),
        ("video,place\na,x\na,y\n", "line 3: video 'a' has come already"),
        ("video,place,place\na,x,y\n", "header"),
    ],
)
def test_senseless_groups(tmp_path: Path, text: str, problem: str) -> None:
    answers = submission(tmp_path, "one", a={"0": CAMERA})
    (tmp_path / "groups.csv").write_text(text)
    options = ("--truth", truth_file(tmp_path), "--groups", tmp_path / "groups.csv")
    done = invoke(answers, *options, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert problem in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--size", "big"], "not a size"),
        (["--size", "0x10"], "not a size"),
        (["--points", "moon"], "moon"),
        (["--points", "eth3d:nowhere"], "nowhere"),
        (["--subsample", "0"], "subsample"),
    ],
)
def test_senseless_options(tmp_path: Path, options: list[str], problem: str) -> None:
    answers = submission(tmp_path, "one", a={"0": CAMERA})
    done = invoke(answers, "--truth", truth_file(tmp_path), *options, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert problem in done.output


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    answers = submission(tmp_path, "one", c={"0": CAMERA})
    done = invoke(answers, "--truth", truth_file(tmp_path), "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "'c'" in done.output
    done = invoke(
        tmp_path / "none.json", "--truth", truth_file(tmp_path), "--out", tmp_path / "out"
    )
    assert done.exit_code == 2
    assert "does not exist" in done.output
    same = [
        submission(tmp_path / name, "one", a={"0": CAMERA}) for name in _made(tmp_path, "x", "y")
    ]
    done = invoke(*same, "--truth", truth_file(tmp_path), "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "two files are called one" in done.output


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{}", "has no video"), ("", "not JSON"), ("[]", "mapping"), ('{"a": {}}', "no frame")],
)
def test_senseless_truth(tmp_path: Path, text: str, problem: str) -> None:
    answers = submission(tmp_path, "one", a={"0": CAMERA})
    (tmp_path / "truth.json").write_text(text)
    done = invoke(answers, "--truth", tmp_path / "truth.json", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert problem in done.output


def _made(folder: Path, *names: str) -> tuple[str, ...]:
    for name in names:
        (folder / name).mkdir()
    return names


def test_an_annotated_clip_is_a_truth(tmp_path: Path) -> None:
    """From metadata by annotate to scores, of pictures as large as the table's."""
    table = breathing_table("canon17")
    small = replace(table, image_size=(1712, 1101), values=table.values / [[2] * 4 + [1] * 4])
    write_table(tmp_path / "lut.json", small)
    (tmp_path / "clip.csv").write_text("frame,lfl_mm,fd_m\n0,35,2.4\n1,40,3\n2,40,inf\n")
    gt = tmp_path / "gt.json"
    made = CliRunner().invoke(
        main, [*map(str, ("annotate", tmp_path / "clip.csv", "--lut", tmp_path / "lut.json",
                          "--out", gt))]
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    frames = json.loads(gt.read_text())
    answers = submission(tmp_path, "same", film={k: frames[k]["intrinsics_gt"] for k in "01"})
    out = tmp_path / "out"
    done = invoke(answers, "--truth", gt, "--out", out)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    found = scores(out)
    assert found["percent_error"] == {"fx": 0, "fy": 0, "cx": 0, "cy": 0}
    assert (found["frames"], found["predicted_frames"]) == (2, 2)
    assert found["image_size"] == [1712, 1101]
    assert list(found["groups"]["lens"]) == ["canon17"]
    done = invoke(answers, "--truth", gt, "--out", out, "--size", "3424x2202")
    assert done.exit_code == 2
    assert "1712 x 1101" in done.stderr
    assert "3424 x 2202" in done.stderr


def test_one_clip_and_two_videos(tmp_path: Path) -> None:
    frame = {"intrinsics_gt": CAMERA, "intrinsics_gt_extrapolated": CAMERA, "lens_metadata": LENS}
    (tmp_path / "gt.json").write_text(json.dumps({"0": frame}))
    answers = submission(tmp_path, "one", a={"0": CAMERA}, b={"0": CAMERA})
    done = invoke(answers, "--truth", tmp_path / "gt.json", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "truth of one clip, and there are 2 videos (a, b)" in done.stderr


def test_the_size_that_is_assumed_is_said(tmp_path: Path) -> None:
    answers = submission(tmp_path, "one", a={"0": CAMERA})
    done = invoke(answers, "--truth", truth_file(tmp_path), "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "3424 x 2202 pixels, that is assumed" in done.stderr


def test_predictions_of_other_pictures_are_named(tmp_path: Path) -> None:
    """Scaled pictures, and frames beyond the clip: scored, with a note that says both sizes."""
    half = CAMERA | {key: CAMERA[key] / 2 for key in ("fx", "fy", "cx", "cy")}
    answers = submission(tmp_path, "half", a={"0": half, "1": half}, b={"0": half, "7": half})
    options = ("--truth", truth_file(tmp_path), "--size", "3424x2202", "--out", tmp_path / "out")
    done = invoke(answers, *options)
    assert done.exit_code == 0, done.output
    lines = done.stderr.splitlines()
    assert "half has 1 prediction of frames that the truth does not have, first of" in lines[0]
    assert "at 856, 550 px, far from the middle of pictures with the truth's" in lines[1]
    assert "3424 x 2202 pixels" in lines[1]
    assert len(lines) == 2
    # An extrapolated frame is one that the truth has.
    answers = submission(tmp_path, "whole", a={"0": CAMERA, "2": CAMERA}, b={"0": CAMERA})
    assert invoke(answers, *options).stderr == ""


def test_what_people_take_for_the_truth(tmp_path: Path) -> None:
    answers = submission(tmp_path, "one", a={"0": CAMERA})
    write_table(tmp_path / "lut.json", breathing_table("canon17"))
    (tmp_path / "gt.csv").write_text("frame,lfl_mm\n")
    out = ("--out", tmp_path / "out")
    for name, words in (
        ("one.json", "has predictions, in a submission's form, and not the truth."),
        ("lut.json", "is no truth of a clip: by its format it is 'influx_wrap table'."),
        ("gt.csv", "not from annotate's CSV: annotate with --out NAME.json."),
    ):
        done = invoke(answers, "--truth", tmp_path / name, *out)
        assert done.exit_code == 2
        assert words in done.stderr
    done = invoke(truth_file(tmp_path), "--truth", truth_file(tmp_path), *out)
    assert done.exit_code == 2
    frame = {"intrinsics_gt": CAMERA, "intrinsics_gt_extrapolated": CAMERA, "lens_metadata": LENS}
    (tmp_path / "gt.json").write_text(json.dumps({"0": frame}))
    done = invoke(tmp_path / "gt.json", "--truth", truth_file(tmp_path), *out)
    assert done.exit_code == 2
    assert "This is the truth of a clip." in done.stderr
