"""The files of a planned mission: for the autopilot, for a map, and to look at."""

from __future__ import annotations

import tempfile
from pathlib import Path

from influx_wrap.formats.files import check_writable
from influx_wrap.formats.mission import write_kml, write_plan
from influx_wrap.model.flight import Mission


def write_mission_files(mission: Mission, out: Path) -> tuple[Path, ...]:
    """Write the plan ``out``, and map and figure beside it: all of them, or none.

    Returns where they are, the plan first.
    """
    from influx_wrap.report.flight_figure import draw_flight  # matplotlib is slow to load

    figure, chart = out.with_suffix(".png"), out.with_suffix(".kml")
    paths = (out, chart, figure)
    for path in reversed(paths):
        check_writable(path)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.stem}.") as name:
        folder = Path(name)
        draw_flight(mission, folder / figure.name)
        write_kml(folder / chart.name, mission)
        write_plan(folder / out.name, mission)
        for path in reversed(paths):
            (folder / path.name).replace(path)
    return paths
