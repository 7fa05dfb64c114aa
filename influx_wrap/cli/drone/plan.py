"""``influx-calib drone plan``: a flight, checked, for QGroundControl."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
import numpy as np

from influx_wrap.cli.options import PATH, catalogue_option, lens_argument, number_option, offset
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.flight.files import write_mission_files
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.files import read_text
from influx_wrap.model.arrays import FloatArray
from influx_wrap.plan.faults import RESERVE
from influx_wrap.plan.flight import FlightRefused, LensFlight, PlannedFlight, plan_lens_flight
from influx_wrap.plan.mission import (
    Rules,
    crew_distance_m,
    flight_times,
    path_length_m,
    round_down,
)

RULES = Rules()


@click.command("plan")
@lens_argument
@number_option("--lfl-mm", None, "Zoom.", above=0, required=True)
@number_option("--fd-m", None, "Focus.", above=0, required=True)
@number_option("--lat", None, "Camera's latitude, south negative.", metavar="DEG", required=True)
@number_option("--lon", None, "Camera's longitude, west negative.", metavar="DEG", required=True)
@number_option(
    "--height-m", None, "Camera above the ground.", shown="the camera's in the catalogue"
)
@number_option(
    "--heading-deg",
    None,
    "Where the camera looks: clockwise from true north, as a compass shows.",
    metavar="DEG",
    required=True,
)
@number_option(
    "--tilt-deg",
    None,
    "Optical axis to the vertical: 90 is level, less looks up.",
    metavar="DEG",
    required=True,
)
@click.option(
    "--out",
    type=PATH,
    required=True,
    help="The mission, NAME.plan; a map NAME.kml and a figure NAME.png go beside it.",
)
@click.option(
    "--test-flight", is_flag=True, help="Only to the four corners of the picture, to tune the CFL."
)
@number_option(
    "--cfl-mm",
    None,
    "Camera focal length; with --seen or --pixels, the one of that test flight.",
    above=0,
    shown="a thin lens's",
)
@click.option(
    "--seen",
    metavar="NAMES",
    help="Where the test flight was seen: left,right,top,bottom, or top-left,..., or all, or none.",
)
@click.option(
    "--pixels",
    metavar="U,V;U,V;..",
    help="Where in the picture it was seen, or a file with a U,V on each line.",
)
@number_option(
    "--min-height-m", RULES.min_height_m, "Lowest way point above the ground.", at_least=0.5
)
@number_option("--ceiling-m", RULES.ceiling_m, "Highest place above the ground.", above=0)
@number_option(
    "--crew-distance-m",
    RULES.crew_distance_m,
    "How near the path may come to the camera and its crew, along the ground.",
    at_least=0,
)
@number_option(
    "--max-distance-m",
    RULES.max_distance_m,
    "How far it may go from the camera, along the ground.",
    above=0,
)
@number_option("--hold-s", RULES.hold_s, "Hover at each point.", at_least=1)
@number_option("--speed-m-s", RULES.speed_m_s, "Between the points.", above=0)
@number_option(
    "--return-height-m",
    RULES.return_height_m,
    "To which the autopilot climbs to return: its RTL_RETURN_ALT.",
    above=0,
)
@number_option(
    "--battery-min",
    RULES.battery_min,
    f"How long the drone can fly, in minutes; {RESERVE:.0%} of it is kept in reserve.",
    above=0,
)
@number_option(
    "--home-lat",
    None,
    "Where the drone takes off and lands.",
    metavar="DEG",
    shown="beside the flight",
)
@number_option("--home-lon", None, "With --home-lat.", metavar="DEG")
@catalogue_option
def command(
    catalogue: Path | None,
    lens: str,
    camera: str,
    lfl_mm: float,
    fd_m: float,
    lat: float,
    lon: float,
    height_m: float | None,
    heading_deg: float,
    tilt_deg: float,
    out: Path,
    test_flight: bool,
    cfl_mm: float | None,
    seen: str | None,
    pixels: str | None,
    home_lat: float | None,
    home_lon: float | None,
    **rules: float,
) -> None:
    """Plan a flight for a setting of LENS: 24 points to hover at, or a test flight.

    Every rule is checked first, and nothing is written if one is broken. The ground is taken
    to be level. After a test flight, --seen or --pixels tell what was seen of it and scale
    the camera focal length.

    \b
    Example:
      influx-calib drone plan canon17 --lfl-mm 17 --fd-m 13.5 --lat 40.3430 --lon -74.6550 \\
        --heading-deg 30 --tilt-deg 58 --out test.plan --test-flight
      influx-calib drone plan canon17 --lfl-mm 17 --fd-m 13.5 --lat 40.3430 --lon -74.6550 \\
        --heading-deg 30 --tilt-deg 58 --out mission.plan --seen left,right
    """
    if out.suffix.lower() != ".plan":
        raise InputError(f"--out {out}: the name must end in .plan.")
    home = _home(home_lat, home_lon)
    known = load_catalogue(catalogue)
    asked = LensFlight(
        camera=known.camera(camera),
        lens=known.lens(lens),
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        latitude_deg=lat,
        longitude_deg=lon,
        height_m=height_m,
        heading_deg=heading_deg,
        tilt_deg=tilt_deg,
        cfl_mm=cfl_mm,
        seen=None if seen is None else [name.strip() for name in seen.split(",")],
        pixels=None if pixels is None else partial(_read_pixels, pixels),
        test_flight=test_flight,
        home=home,
        rules=Rules(**rules),
    )
    planned = _planned(asked, out)
    written = write_mission_files(planned.mission, out)
    _print(planned)
    for path in written:
        print_written(path)


def _planned(asked: LensFlight, out: Path) -> PlannedFlight:
    try:
        return plan_lens_flight(asked)
    except FlightRefused as error:
        stale = f"\n{out} still holds a flight planned before." if out.exists() else ""
        raise InputError(f"{error}{stale}") from None


def _home(lat: float | None, lon: float | None) -> tuple[float, float] | None:
    if (lat is None) != (lon is None):
        raise InputError("--home-lat and --home-lon belong together; give both or neither.")
    return None if lat is None or lon is None else (lat, lon)


def _read_pixels(text: str) -> FloatArray:
    """(n, 2) from ``U,V;U,V`` or from a file with one pair per line."""
    path = Path(text)
    if "," in text and not path.exists():
        rows = [(f"--pixels, position {i}", row) for i, row in enumerate(text.split(";"), 1)]
    else:
        lines = enumerate(read_text(path).splitlines(), 1)
        rows = [(f"{path}, line {i}", line) for i, line in lines if line.strip()]
    pairs = []
    for where, row in rows:
        try:
            pairs.append(offset(row))
        except click.BadParameter as error:
            raise InputError(f"{where}: {error.message}") from None
    return np.array(pairs, dtype=float).reshape(-1, 2)


def _print(planned: PlannedFlight) -> None:
    mission = planned.mission
    times = flight_times(mission, planned.request.rules)
    heights = mission.geodetic[:, 2]
    width, height = planned.footprint_m
    lines = list(planned.notes)
    if mission.cfl_mm != planned.flown_cfl_mm:
        lines.append(
            f"CFL {planned.flown_cfl_mm:.3f} mm becomes {mission.cfl_mm:.3f} mm; go on from it "
            f"with: --cfl-mm {mission.cfl_mm:.3f}"
        )
    lines += [
        f"{mission.title}: {len(heights)} way points over a footprint of {width:.1f} x "
        f"{height:.1f} m",
        f"heights above the ground, taken to be level: {heights.min():.1f} to "
        f"{heights.max():.1f} m",
        f"nearest to the camera: {crew_distance_m(mission):.1f} m along the ground",
        f"path: {path_length_m(mission):.0f} m; time: {times.total_s / 60:.1f} min (take-off "
        f"{times.take_off_s:.0f} s, legs {times.legs_s:.0f} s, holds {times.holds_s:.0f} s, "
        f"return {times.return_s:.0f} s) of {planned.longest_min:.1f} min",
        f"home: {mission.home[0]:.7f}, {mission.home[1]:.7f}, {_home_in_words(planned)}",
        _tilt_in_words(planned),
    ]
    console = answers()
    for line in lines:
        console.print(line, soft_wrap=True)


def _tilt_in_words(planned: PlannedFlight) -> str:
    """How far from the vertical the 24 points let the camera look, also for a test flight."""
    tilt = planned.highest_tilt_deg
    if tilt is None:
        return "warning: no tilt keeps all of the 24 points high enough"
    words = f"largest tilt that keeps all of the 24 points high enough: {round_down(tilt):.1f} deg"
    is_kept = planned.request.tilt_deg <= tilt
    return words if is_kept else f"warning: {words}; test with such a tilt"


def _home_in_words(planned: PlannedFlight) -> str:
    """Where to put the drone, for somebody who stands at the camera."""
    ahead, right = planned.home_from_camera_m
    return (
        f"{abs(ahead):.1f} m {'ahead of' if ahead >= 0 else 'behind'} the camera and "
        f"{abs(right):.1f} m to its {'right' if right >= 0 else 'left'}"
    )
