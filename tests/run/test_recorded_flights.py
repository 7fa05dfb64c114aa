"""``run --data`` on a filmed flight: asks where it must, and then calibrates to the bound."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.compute.progress import no_progress
from influx_wrap.errors import InputError
from influx_wrap.flight.pipeline import ObservedFlight, observe_flight
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.experiment import read_experiment
from influx_wrap.formats.files import read_json
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Camera
from influx_wrap.model.truth import Noise
from influx_wrap.observe import flashes as flash_detector
from influx_wrap.plan import make_plan, select_cells
from influx_wrap.run import campaign
from influx_wrap.synth.film.cells import shoot_films
from influx_wrap.synth.film.night import NightFootage, plan_night
from influx_wrap.synth.film.simulation import simulations
from influx_wrap.synth.flight import FlightOptions
from influx_wrap.synth.night import NightOptions

TINY = Camera("tiny", 28.25, 18.17, 480, 308)
CAMERA = """kind: camera
name: tiny
sensor_width_mm: 28.25
sensor_height_mm: 18.17
width_px: 480
height_px: 308
"""
NIGHT = NightOptions(core_px=12, halo_px=24, scatter=0.0, lights=False)
FLIGHT = FlightOptions(hover_s=0.45, transit_s=0.1, missed=1)
LONE = "z2f9-13"


def in_this_process(function, tasks, processes):
    for task in tasks:
        yield task, function(task)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other process, and no table, which other tests look at."""
    monkeypatch.setattr(flash_detector, "parallel", in_this_process)
    monkeypatch.setattr(campaign, "parallel", in_this_process)
    monkeypatch.setattr("influx_wrap.run.pipeline._write_table", lambda *_: ((), []))


@pytest.fixture(scope="module")
def plan() -> Plan:
    known = load_catalogue()
    return make_plan(known.lens("canon17"), TINY, known.boards.values())


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalogue")
    (folder / "camera.yaml").write_text(CAMERA)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> Path:
    """A film that lacks one flash (z2f9), and an experiment that lacks nothing (z0f9)."""
    folder = tmp_path_factory.mktemp("data")
    whole, cut = simulations(plan, select_cells(plan, "z0f9,z2f9"), Noise(), seed=0)
    whole.write(folder / "z0f9")
    shoot_films(
        [plan_night(cut, NightFootage("h264", NIGHT, FLIGHT))],
        folder,
        processes=1,
    )
    return folder


def run(catalogue: Path, data: Path, out: Path, *options: object) -> Result:
    command = ["--catalogue", catalogue, "run", "canon17", "--camera", "tiny", "--data", data]
    command += ["--out", out, "--recipe", "batch", "--jobs", 1, *options]
    return CliRunner().invoke(main, [str(part) for part in command])


def observe(plan: Plan, source: Path, out: Path) -> ObservedFlight:
    return observe_flight(
        source / "z2f9", plan, out,
        jobs=1, progress=no_progress, drawing=no_progress,
    )  # fmt: skip


def status(out: Path, cell: str) -> str:
    summary = json.loads((out / "summary.json").read_text())
    return next(row["status"] for row in summary["cells"] if row["cell"] == cell)


def test_a_flight_with_a_missed_flash(
    catalogue: Path, plan: Plan, data: Path, tmp_path: Path
) -> None:
    out, source = tmp_path / "out", tmp_path / "data"
    shutil.copytree(data, source)
    result = run(catalogue, source, out)
    assert result.exit_code == 1, result.output
    assert "1 of them as footage" in result.stderr
    assert f"reading {LONE} has no flash, which should begin in frame" in result.stderr
    assert status(out, "z0f9") == "ok"
    assert status(out, "z2f9") == "failed"
    cell = out / "data" / "z2f9"
    assert not (cell / "experiment.yaml").exists()
    failure = (out / "cells" / "z2f9" / "failure.json").read_text()
    assert str(tmp_path) not in failure
    assert read_json(cell / "match.json").text("verdict") == "proposed"

    review = cell / "review.csv"
    text = review.read_text()
    page = (cell / "review.html").stat().st_mtime_ns
    with pytest.raises(InputError, match=rf"\(reading {LONE}\) is undecided"):
        observe(plan, source, cell)
    assert (cell / "review.html").stat().st_mtime_ns == page, "it would be the same"
    review.write_text(text.replace("undecided", "maybe"))
    with pytest.raises(InputError, match="'maybe' is none of use, leave, undecided"):
        observe(plan, source, cell)

    review.unlink()
    (source / "z2f9" / "review.csv").write_text(text.replace("undecided", "leave"))
    result = run(catalogue, source, out)
    assert result.exit_code == 0, result.output
    stored = read_experiment(cell)
    assert len(stored.observations.target.points) == 23
    assert stored.truth is not None
    record = json.loads((out / "cells" / "z2f9" / "result.json").read_text())
    error = record["intrinsics"]["fx"] - record["truth"]["intrinsics"]["fx"]
    assert abs(error) < 3 * record["truth"]["bound"]["fx"]
    assert not (out / "cells" / "z2f9" / "failure.json").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("flash_rtk.json", None, "does not exist"),
        ("clip.mp4", b"no film", "FFmpeg"),
        ("clip.mp4", None, "does not exist"),
    ],
)
def test_a_bad_flight(
    plan: Plan, data: Path, tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    shutil.copytree(data / "z2f9", tmp_path / "z2f9")
    if content is None:
        (tmp_path / "z2f9" / name).unlink()
    else:
        (tmp_path / "z2f9" / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        observe(plan, tmp_path, tmp_path / "out")
    assert not (tmp_path / "out" / "experiment.yaml").exists()
