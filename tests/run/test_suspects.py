"""A poisoned experiment is marked, printed, and never in a table unannounced."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.formats.lut import read_table
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.model.record import CellRecord, CellSetting
from influx_wrap.model.result import Assessment
from influx_wrap.run import campaign, pipeline
from influx_wrap.run.page import write_report
from influx_wrap.run.plan import plan_by_name
from influx_wrap.run.workspace import Workspace
from tests.model.records import make_record, make_result
from tests.run.test_campaign import in_this_process

CELLS = ("z5f2", "z6f5")


def influx(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "parallel", in_this_process)
        for name in ("write_explorer", "write_report"):
            patch.setattr(pipeline, name, lambda *_, **__: None)
        yield


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments with boards of canon17: 48 mm at 1.69 m and 80 mm at 2.7 m."""
    folder = tmp_path_factory.mktemp("suspects") / "data"
    result = influx("simulate", "canon17", "--out", folder, "--cells", ",".join(CELLS))
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def data(right: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(right, tmp_path / "data"))


def mistype(file: Path, key: str, value: object) -> None:
    text, n = re.subn(rf"(?m)^{key}: .*$", f"{key}: {value}", file.read_text())
    assert n == 1
    file.write_text(text)


def run(data: Path, *options: object) -> Result:
    out = ("--out", data.parent / "out", "--recipe", "batch", "--jobs", 1)
    return influx("run", "canon17", "--data", data, *out, *options)


def record_of(data: Path, cell: str) -> CellRecord:
    return CellRecord.from_dict(json.loads(Workspace(data.parent / "out").result(cell).read_text()))


def names_in_table(data: Path) -> tuple[str, ...]:
    return read_table(data.parent / "out" / "lut.json").names


@pytest.mark.usefixtures("quick")
def test_right_experiments_are_not_suspect(data: Path) -> None:
    result = run(data)
    assert result.exit_code == 0, result.output
    assert "suspect" not in result.stderr
    assert names_in_table(data) == CELLS
    assert record_of(data, "z5f2").suspicions == ()
    other = influx("run", "canon17", "--data", data, "--out", data.parent / "b", "--camera", "no")
    assert other.exit_code == 2


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("file", "key", "value", "sentence"),
    [
        ("experiment.yaml", "lfl_mm", 100, r"fx says 48\.\d mm, experiment.yaml says lfl_mm 100"),
        ("experiment.yaml", "fd_m", 1690, r"is 1\.\d+ m away .* 1690 looks like millimetres"),
        ("experiment.yaml", "fd_m", 5.54, r"is 1\.\d+ m away .* 5.54 looks like feet \(1.69 m\)"),
        ("target.yaml", "tagSize", 0.048, r"says fd_m 1\.\d+: board \d+x\d+ would fit"),
        (
            "target.yaml",
            "tagSpacing",
            0.25,
            r"say tagSpacing 0.30\d, the target says 0.25",
        ),
    ],
)
def test_a_poisoned_experiment(
    file: str, key: str, value: float, sentence: str, data: Path
) -> None:
    mistype(data / "z5f2" / file, key, value)
    result = run(data)
    assert result.exit_code == 0, result.output
    assert re.search(f"z5f2 is suspect: .*{sentence}", result.stderr)
    assert re.search(f"not in lut.json: z5f2, .*{sentence}", result.stderr)
    assert "--keep-suspects" in result.stderr
    assert names_in_table(data) == ("z6f5",)
    suspicion = record_of(data, "z5f2").suspicions[0]
    assert suspicion.harmful
    assert re.search(sentence, suspicion.sentence)


@pytest.mark.usefixtures("quick")
def test_who_insists_gets_it(data: Path) -> None:
    setting = data / "z5f2" / "experiment.yaml"
    mistype(setting, "lfl_mm", 100)
    result = run(data, "--keep-suspects")
    assert names_in_table(data) == CELLS
    assert "in lut.json all the same: z5f2, fx says 48" in result.stderr

    out = data.parent / "lut.json"
    built = influx("lut", "build", data.parent / "out", "--out", out)
    assert "1 experiments of canon17" in built.stdout
    assert "left out: z5f2, fx says 48" in built.stdout
    built = influx("lut", "build", data.parent / "out", "--out", out, "--keep-suspects")
    assert "2 experiments of canon17" in built.stdout
    assert "in it all the same: z5f2, fx says 48" in built.stdout

    setting.write_text(setting.read_text() + "trust: true\n")
    result = run(data)
    assert "1 results were there already" in result.stderr
    assert names_in_table(data) == CELLS
    assert record_of(data, "z5f2").is_trusted
    setting.write_text(setting.read_text().replace("trust: true", "trust: maybe"))
    result = run(data)
    assert result.exit_code == 1
    assert "trust must be true or false, got 'maybe'" in result.stderr


@pytest.mark.usefixtures("quick")
def test_without_an_experiment_to_trust_there_is_no_table(data: Path) -> None:
    shutil.rmtree(data / "z6f5")
    mistype(data / "z5f2" / "experiment.yaml", "lfl_mm", 100)
    result = run(data)
    assert result.exit_code == 0
    assert "no lut.json: " in result.stderr
    assert "z5f2: fx says 48" in result.stderr
    assert not (data.parent / "out" / "lut.json").exists()


@pytest.mark.usefixtures("quick")
def test_a_verdict_not_to_use_it_counts_as_well(data: Path) -> None:
    run(data)
    workspace = Workspace(data.parent / "out")
    record = record_of(data, "z5f2")
    assert record.result is not None
    refused = Assessment("do not use", ("the residuals follow the radius",))
    workspace.save(replace(record, outcome=replace(record.result, assessment=refused)))
    out = data.parent / "lut.json"
    built = influx("lut", "build", workspace.root, "--out", out)
    assert "left out: z5f2, do not use because the residuals follow the radius" in built.stdout
    assert read_table(out).names == ("z6f5",)


@pytest.mark.usefixtures("quick")
def test_experiments_of_another_camera_are_refused(data: Path) -> None:
    mistype(data / "z5f2" / "experiment.yaml", "camera", "another")
    result = run(data)
    assert result.exit_code == 1
    assert "an experiment with camera another, not with arri-alexa-mini" in result.stderr


@pytest.mark.usefixtures("quick")
def test_exchanged_rows_and_columns_are_named(data: Path) -> None:
    target = data / "z5f2" / "target.yaml"
    mistype(target, "tagCols", 8)
    mistype(target, "tagRows", 11)
    result = run(data)
    assert "11 columns, the target says 8 (and 11 rows): are rows and columns" in result.stderr
    assert names_in_table(data) == ("z6f5",)


def test_records_of_earlier_versions_are_read(right: Path, tmp_path: Path) -> None:
    assert right.exists()
    old = {
        "status": "failed", "stage": "a", "reason": "b", "advice": "c", "truth": None,
        "cell": {
            "name": "z0f0", "lens": None, "camera": None, "target": None, "lfl_mm": 1, "fd_m": 2,
        },
        "provenance": {},
    }  # fmt: skip
    record = CellRecord.from_dict(old)
    assert (record.suspicions, record.is_trusted, record.doubts) == ((), False, ())


def thin_lens_run(root: Path, *, odd: str) -> Workspace:
    """The results of a lens at 20 settings, of which that of ``odd`` was filed as 60 mm."""
    workspace = Workspace(root)
    plan = plan_by_name("canon17", "arri-alexa-mini", None)
    for zoom, lfl_mm in enumerate((20.0, 30.0, 40.0, 50.0)):
        for focus, fd_m in enumerate((1.0, 1.5, 2.0, 4.0, 8.0)):
            name = f"z{zoom}f{focus}"
            fx = thin_lens_focal_px(lfl_mm, fd_m, plan.camera.pixel_um)
            typed = CellSetting(
                name, "canon17", plan.camera.name, "800x600", 60.0 if name == odd else lfl_mm, fd_m
            )
            answer = make_result(
                Intrinsics(fx, fx, 1711.5, 1100.5),
                image_size=plan.camera.image_size,
                assessment=Assessment("good"),
                warnings=(),
            )
            workspace.save(make_record(answer, typed))
    return workspace


def test_what_only_the_others_contradict_is_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in the experiment itself is wrong; the page, the summary and the terminal agree."""
    workspace = thin_lens_run(tmp_path / "made", odd="z1f2")
    records = {
        name: CellRecord.from_dict(json.loads(path.read_text()))
        for name, path in workspace.records().items()
    }

    def calibrate_jobs(jobs: object, stores: dict[str, Workspace], *_: object) -> object:
        for record in records.values():
            stores["batch"].save(record)
        return {"batch": records}

    monkeypatch.setattr(pipeline, "calibrate_jobs", calibrate_jobs)
    monkeypatch.setattr(pipeline, "observe_jobs", lambda jobs, *_: jobs)
    for name in ("write_explorer",):
        monkeypatch.setattr(pipeline, name, lambda *_, **__: None)
    monkeypatch.setattr(pipeline, "write_report", write_report)
    data = tmp_path / "data"
    assert influx("simulate", "canon17", "--cells", "z5f2", "--out", data).exit_code == 0
    result = run(data)
    assert result.exit_code == 0, result.output
    sentence = "fx says 30.5 mm, the other experiments say "
    assert f"not in lut.json: z1f2, {sentence}" in result.stderr
    assert f"z1f2: suspect, {sentence}" in result.stdout
    assert "19 good, 1 suspect" in result.stdout
    out = Workspace(tmp_path / "out")
    summary = {cell["cell"]: cell for cell in json.loads(out.summary_json.read_text())["cells"]}
    assert [name for name, cell in summary.items() if cell["verdict"] != "good"] == ["z1f2"]

    def on_page() -> dict[str, list[str]]:
        cells = json.loads(out.report.read_text().split('id="data">')[1].split("</script>")[0])
        return {
            cell["name"]: cell["suspicions"] for cell in cells["cells"] if cell["verdict"] != "good"
        }

    assert list(on_page()) == ["z1f2"]
    assert on_page()["z1f2"][0].startswith(sentence)
    assert influx("report", out.root).exit_code == 0
    assert list(on_page()) == ["z1f2"]
    # A result that is another since is not what the table speaks of.
    out.save(replace(records["z1f2"], provenance={"inputs": {}, "seed": 1}))
    assert influx("report", out.root).exit_code == 0
    assert on_page() == {}
