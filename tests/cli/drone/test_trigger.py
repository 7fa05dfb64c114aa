"""``influx-calib drone trigger`` without a drone; with one: tests/drone/test_ssh.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from influx_drone.readings import as_rows
from influx_wrap.cli.main import main
from influx_wrap.formats.flight import read_flash_rtk, write_flash_rtk


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("@drone", "no [user@]host[:port]"),
        ("pi@", "no [user@]host[:port]"),
        ("pi@drone:ssh", "no [user@]host[:port]"),
        ("pi:secret@drone", "a password does not belong on a command line"),
    ],
)
def test_a_senseless_host_is_refused(tmp_path: Path, host: str, problem: str) -> None:
    done = CliRunner().invoke(
        main, ["drone", "trigger", "--host", host, "--out", str(tmp_path / "f")]
    )
    assert done.exit_code == 2
    assert problem in done.output
    assert not (tmp_path / "f").exists()


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    options = ["--host", "pi@127.0.0.1:1", "--identity", str(tmp_path / "no_key")]
    done = CliRunner().invoke(
        main, ["drone", "trigger", *options, "--out", str(tmp_path / "f")], input="\n"
    )
    assert done.exit_code == 2
    assert "no_key does not exist" in done.output


def reading(n: int, **fix: object) -> dict[str, object]:
    base = {
        "time_unix_s": 1.8e9 + 10 * n,
        "latitude_deg": 40.35 + 1e-5 * n,
        "longitude_deg": -74.65,
        "height_m": 60.0 + n,
        "quality": "fixed",
        "covariance_m2": [[1e-4, 0, 0], [0, 1e-4, 0], [0, 0, 4e-4]],
        "clock_s": 100.0 + 10 * n,
    }
    return {"id": f"r{n}", "point": n + 1, "n": n + 1, "fix": base | fix,
            "led_on_clock_s": 100.03 + 10 * n}  # fmt: skip


def test_readings_are_cartesian_and_in_the_order_of_time(tmp_path: Path) -> None:
    rows = as_rows([reading(1), reading(0), reading(2, covariance_m2=None)])
    write_flash_rtk(tmp_path / "r.json", rows)
    readings = read_flash_rtk(tmp_path / "r.json")
    assert readings.ids == ("r0", "r1", "r2")
    # A hundred-thousandth of a degree of latitude is 1.11 m northwards.
    assert readings.xyz_m[:, 1] == pytest.approx([0, 1.1103, 2.2206], abs=1e-3)
    assert readings.xyz_m[:, 0] == pytest.approx([0, 0, 0], abs=1e-6)
    assert readings.xyz_m[:, 2] == pytest.approx([60, 61, 62], abs=1e-6)
    assert readings.time_s[0] == pytest.approx(1.8e9 + 0.03, abs=1e-6)
    assert json.loads((tmp_path / "r.json").read_text())[0]["latitude_deg"] == 40.35
