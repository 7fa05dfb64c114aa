"""The lens explorer's data: all that the page's own maths needs, and nothing lost on the way."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.lut.judge import judge_all
from influx_wrap.lut.lens_model import smooth_lens
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.lut.schemes import REGION_SCHEMES
from influx_wrap.lut.smooth.left_out import expected
from influx_wrap.lut.uncertainty import make_error_model
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table
from influx_wrap.report.explorer import write_explorer
from tests.report.lenses import ODD, holed


@dataclass(frozen=True)
class Proposal:
    lfl_mm: float
    fd_m: float
    target: str
    gain_px: float


NASTY = "</script><script>alert(1)</script>"


def content(path: Path) -> dict[str, Any]:
    match = re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def written(folder: Path, table: Table) -> dict[str, Any]:
    write_explorer(folder / "page.html", table, judge_all(table))
    return content(folder / "page.html")


def test_the_table_is_embedded_to_the_last_digit(tmp_path: Path) -> None:
    table = holed()
    data = written(tmp_path, table)
    assert data["intrinsics"] == list(NAMES)
    assert data["names"] == list(table.names)
    assert data["lfl"] == table.lfl_mm.tolist()
    assert data["fd"] == table.fd_m.tolist()
    assert data["isDrone"] == table.is_drone.tolist()
    assert [scheme["name"] for scheme in data["schemes"]] == list(REGION_SCHEMES)
    for scheme, judgement in zip(data["schemes"], judge_all(table), strict=True):
        lookup = make_lookup(table, scheme["name"])
        model = make_error_model(lookup)
        assert scheme["places"] == lookup.regions.places.tolist()
        assert scheme["regions"] == lookup.regions.vertices.tolist()
        assert scheme["blended"] == lookup.blended.tolist()
        assert scheme["variance"] == model.variance.tolist()
        assert scheme["curvature"] == model.curvature.tolist()
        assert list(scheme["columns"].values()) == [c.tolist() for c in lookup.column_lenses]
        errors = np.array(scheme["leftOut"]["errors"], dtype=float)
        np.testing.assert_array_equal(errors, judgement.errors)
        assert scheme["leftOut"]["median"] == judgement.median.tolist()
        assert 0 < scheme["leftOut"]["judged"] < len(table.names)


def test_the_outline_encloses_all_experiments(tmp_path: Path) -> None:
    for scheme in written(tmp_path, holed())["schemes"]:
        (low_x, low_y), (high_x, high_y) = (np.array(side).T for side in scheme["outline"])
        x, y = np.array(scheme["places"]).T
        assert (np.interp(x, low_x, low_y) <= y + 1e-9).all()
        assert (np.interp(x, high_x, high_y) >= y - 1e-9).all()


def numbers(text: str, kind: str) -> FloatArray:
    return np.frombuffer(base64.b64decode(text), dtype=kind).astype(float)


def test_the_smooth_lens_is_embedded(tmp_path: Path) -> None:
    table = holed()
    table = replace(table, smooth=smooth_lens(table).fit)
    lens, data = smooth_lens(table), written(tmp_path, table)
    smooth, grid = data["smooth"], lens.grid
    assert data["default"] == smooth["name"] == "smooth"
    rows, columns = smooth["size"]
    means = numbers(smooth["means"], "<f8").reshape(rows, columns, 8)
    np.testing.assert_array_equal(means, grid.nodes[..., :8])
    covariances = numbers(smooth["covariances"], "<f4").reshape(rows, columns, 36)
    np.testing.assert_allclose(covariances, grid.nodes[..., 8:], rtol=1e-6)
    said, left_out = expected(lens), smooth["leftOut"]
    np.testing.assert_array_equal(left_out["z"], said.z)
    np.testing.assert_array_equal(left_out["expected"], said.values)
    assert not any(left_out["setAside"])
    # A z-score is the difference in sigmas, to first order.
    away = (np.array(data["values"]) - said.values) / said.sigma
    np.testing.assert_allclose(away, said.z, atol=0.05, rtol=0.05)


def test_an_odd_experiment_is_marked(tmp_path: Path) -> None:
    table = holed()
    table.values[11, :2] *= 1.03
    left_out = written(tmp_path, table)["smooth"]["leftOut"]
    worst = np.abs(left_out["z"]).max(axis=1)
    assert worst.argmax() == 11
    assert worst[11] > left_out["odd"]
    assert np.flatnonzero(left_out["setAside"]).tolist() == [11]


def test_experiments_at_infinity_and_those_to_add(tmp_path: Path) -> None:
    table = holed()
    fd_m = table.fd_m.copy()
    fd_m[-1] = np.inf
    table = replace(table, fd_m=fd_m)
    proposals = [Proposal(50.0, np.inf, "drone", 0.4)]
    write_explorer(tmp_path / "page.html", table, judge_all(table), proposals)
    data = content(tmp_path / "page.html")
    assert data["fd"][-1] is None
    assert len(data["schemes"][0]["places"]) == len(table.names) - 1
    assert len(data["smooth"]["leftOut"]["z"]) == len(table.names)
    assert data["proposals"] == [{"lfl": 50.0, "fd": None, "target": "drone", "gain": 0.4}]


@pytest.mark.parametrize("name", ODD)
def test_odd_tables_have_a_page(tmp_path: Path, name: str) -> None:
    table = ODD[name]()
    data = written(tmp_path, table)
    assert len(data["names"]) == len(table.names)
    if data["favoured"] is None:
        assert all(scheme["leftOut"]["median"] is None for scheme in data["schemes"])
    few = len(table.names) < 4
    assert (data["smooth"] is None) == few
    assert data["default"] == ("paper" if few else "smooth")
    assert all(data["isMeasured"]) == (name != "no covariances")


def test_one_file_with_all_in_it(tmp_path: Path) -> None:
    table = holed()
    write_explorer(tmp_path / "page.html", replace(table, lens=NASTY), judge_all(table))
    text = (tmp_path / "page.html").read_text()
    assert len(text) < 5_000_000
    assert "<script>alert" not in text
    assert content(tmp_path / "page.html")["lens"] == NASTY
    assert not re.search(r"<(script|link|img)[^>]*\s(src|href)=", text)


def test_nowhere_to_write(tmp_path: Path) -> None:
    table = ODD["one experiment"]()
    with pytest.raises(InputError, match="cannot be written"):
        write_explorer(tmp_path / "nowhere" / "page.html", table, judge_all(table))
