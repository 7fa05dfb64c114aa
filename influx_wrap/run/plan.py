"""The plan of a lens that the catalogue knows."""

from __future__ import annotations

from pathlib import Path

from influx_wrap.formats.catalogue import CAMERA, load_catalogue
from influx_wrap.model.experiment import Plan
from influx_wrap.plan.grid import make_plan


def plan_by_name(lens: str, camera: str = CAMERA, catalogue: Path | None = None) -> Plan:
    """The plan of a lens on a camera, both by their names in the catalogue.

    ``catalogue`` is a folder with lenses, cameras and boards of one's own, beside ours.
    """
    known = load_catalogue(catalogue)
    return make_plan(known.lens(lens), known.camera(camera), known.boards.values())
