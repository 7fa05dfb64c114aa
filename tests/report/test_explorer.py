"""The lens explorer's data: all that the page's own maths needs, and nothing lost on the way."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.lut.judge import judge_all
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.lut.schemes import SCHEMES
from influx_wrap.lut.uncertainty import make_error_model
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.table import Table
from influx_wrap.report.explorer import write_explorer
from tests.report.lenses import ODD, holed

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
    assert [scheme["name"] for scheme in data["schemes"]] == list(SCHEMES)
    for scheme, judgement in zip(data["schemes"], judge_all(table), strict=True):
        lookup = make_lookup(table, scheme["name"])
        model = make_error_model(lookup)
        assert scheme["places"] == lookup.regions.places.tolist()
        assert scheme["regions"] == lookup.regions.vertices.tolist()
        assert scheme["blended"] == lookup.scheme.blended(table.values, table.fd_m).tolist()
        assert scheme["variance"] == model.variance.tolist()
        assert scheme["curvature"] == model.curvature.tolist()
        assert list(scheme["columns"].values()) == [c.tolist() for c in lookup.column_lenses]
        errors = np.array(scheme["leftOut"]["errors"], dtype=float)
        np.testing.assert_array_equal(errors, judgement.errors)
        assert scheme["leftOut"]["median"] == judgement.median.tolist()
        assert 0 < scheme["leftOut"]["judged"] < len(table.names)


def test_the_hull_encloses_all_experiments(tmp_path: Path) -> None:
    for scheme in written(tmp_path, holed())["schemes"]:
        (low_x, low_y), (high_x, high_y) = (np.array(side).T for side in scheme["hull"])
        x, y = np.array(scheme["places"]).T
        assert (np.interp(x, low_x, low_y) <= y + 1e-9).all()
        assert (np.interp(x, high_x, high_y) >= y - 1e-9).all()


@pytest.mark.parametrize("name", ODD)
def test_odd_tables_have_a_page(tmp_path: Path, name: str) -> None:
    table = ODD[name]()
    data = written(tmp_path, table)
    assert len(data["names"]) == len(table.names)
    if data["favoured"] is None:
        assert all(scheme["leftOut"]["median"] is None for scheme in data["schemes"])
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
