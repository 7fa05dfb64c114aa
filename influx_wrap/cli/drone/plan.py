"""``influx-calib drone plan``: a flight, checked, for QGroundControl."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import click
import numpy as np

from influx_wrap.cli.options import PATH, lens_argument, number, offset
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.files import check_writable, read_text
from influx_wrap.formats.kml import write_kml
from influx_wrap.formats.qgc import write_plan
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flight import Mission, hover_points_m
from influx_wrap.model.hardware import Camera, Lens
from influx_wrap.model.optics import footprint_m, thin_lens_cfl_mm
from influx_wrap.plan.flight import (
    RESERVE,
    Request,
    Rules,
    crew_distance_m,
    flight_times,
    highest_tilt_deg,
    path_length_m,
    plan_flight,
    round_down,
)
from influx_wrap.plan.tuning import tune_by_pixels, tune_by_sight

RULES = Rules()


@click.command("plan")
@lens_argument
@click.option("--lfl-mm", type=number(above=0), required=True, metavar="NUMBER", help="Zoom.")
@click.option("--fd-m", type=number(above=0), required=True, metavar="NUMBER", help="Focus.")
@click.option(
    "--lat", type=number(), required=True, metavar="DEG", help="Camera's latitude, south negative."
)
@click.option(
    "--lon", type=number(), required=True, metavar="DEG", help="Camera's longitude, west negative."
)
@click.option(
    "--height-m",
    type=number(),
    metavar="NUMBER",
    show_default="the camera's in the catalogue",
    help="Camera above the ground.",
)
@click.option(
    "--heading-deg",
    type=number(),
    required=True,
    metavar="DEG",
    help="Where the camera looks: clockwise from true north, as a compass shows.",
)
@click.option(
    "--tilt-deg",
    type=number(),
    required=True,
    metavar="DEG",
    help="Optical axis to the vertical: 90 is level, less looks up.",
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
@click.option(
    "--cfl-mm",
    type=number(above=0),
    metavar="NUMBER",
    show_default="a thin lens's",
    help="Camera focal length; with --seen or --pixels, the one of that test flight.",
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
@click.option(
    "--min-height-m",
    type=number(at_least=0.5),
    metavar="NUMBER",
    default=RULES.min_height_m,
    show_default=True,
    help="Lowest way point above the ground.",
)
@click.option(
    "--ceiling-m",
    type=number(above=0),
    metavar="NUMBER",
    default=RULES.ceiling_m,
    show_default=True,
    help="Highest place above the ground.",
)
@click.option(
    "--crew-distance-m",
    type=number(at_least=0),
    metavar="NUMBER",
    default=RULES.crew_distance_m,
    show_default=True,
    help="How near the path may come to the camera and its crew, along the ground.",
)
@click.option(
    "--max-distance-m",
    type=number(above=0),
    metavar="NUMBER",
    default=RULES.max_distance_m,
    show_default=True,
    help="How far it may go from the camera, along the ground.",
)
@click.option(
    "--hold-s",
    type=number(at_least=1),
    metavar="NUMBER",
    default=RULES.hold_s,
    show_default=True,
    help="Hover at each point.",
)
@click.option(
    "--speed-m-s",
    type=number(above=0),
    metavar="NUMBER",
    default=RULES.speed_m_s,
    show_default=True,
    help="Between the points.",
)
@click.option(
    "--return-height-m",
    type=number(above=0),
    metavar="NUMBER",
    default=RULES.return_height_m,
    show_default=True,
    help="To which the autopilot climbs to return: its RTL_RETURN_ALT.",
)
@click.option(
    "--battery-min",
    type=number(above=0),
    metavar="NUMBER",
    default=RULES.battery_min,
    show_default=True,
    help=f"How long the drone can fly; {RESERVE:.0%} of it is kept in reserve.",
)
@click.option(
    "--home-lat",
    type=number(),
    metavar="DEG",
    show_default="beside the flight",
    help="Where the drone takes off and lands.",
)
@click.option("--home-lon", type=number(), metavar="DEG", help="With --home-lat.")
@click.pass_obj
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
    min_height_m: float,
    ceiling_m: float,
    crew_distance_m: float,
    max_distance_m: float,
    hold_s: float,
    speed_m_s: float,
    return_height_m: float,
    battery_min: float,
    home_lat: float | None,
    home_lon: float | None,
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
    if (home_lat is None) != (home_lon is None):
        raise InputError("--home-lat and --home-lon belong together; give both or neither.")
    known = load_catalogue(catalogue)
    body = known.camera(camera)
    _check_setting(known.lens(lens), lfl_mm, fd_m)
    cfl = thin_lens_cfl_mm(lfl_mm, fd_m) if cfl_mm is None else cfl_mm
    if not cfl < 1e3 * fd_m / 2:
        raise InputError(f"--cfl-mm {cfl:g} is too long for a focus at {fd_m:g} m.")
    tuned, notes = _tuned(cfl, fd_m, body, seen, pixels)
    request = Request(
        latitude_deg=lat,
        longitude_deg=lon,
        height_m=body.height_above_ground_m if height_m is None else height_m,
        heading_deg=heading_deg,
        tilt_deg=tilt_deg,
        cfl_mm=tuned,
        fd_m=fd_m,
        sensor_mm=body.sensor_mm,
        test_flight=test_flight,
        home=None if home_lat is None or home_lon is None else (home_lat, home_lon),
        rules=Rules(
            min_height_m=min_height_m,
            ceiling_m=ceiling_m,
            crew_distance_m=crew_distance_m,
            max_distance_m=max_distance_m,
            return_height_m=return_height_m,
            battery_min=battery_min,
            hold_s=hold_s,
            speed_m_s=speed_m_s,
        ),
    )
    try:
        mission = plan_flight(request)
    except InputError as error:
        stale = f"\n{out} still holds a flight planned before." if out.exists() else ""
        raise InputError(f"{error}{stale}") from None
    written = _write(mission, out)
    _print(mission, request, notes, cfl_flown=cfl)
    for path in written:
        print_written(path)


def _check_setting(lens: Lens, lfl_mm: float, fd_m: float) -> None:
    if not lens.lfl_min_mm <= lfl_mm <= lens.lfl_max_mm:
        raise InputError(
            f"--lfl-mm {lfl_mm:g}: {lens.name} zooms from {lens.lfl_min_mm:g} to "
            f"{lens.lfl_max_mm:g} mm."
        )
    if fd_m < lens.fd_min_m:
        raise InputError(
            f"--fd-m {fd_m:g}: {lens.name} does not focus nearer than {lens.fd_min_m:g} m."
        )


def _tuned(
    cfl_mm: float, fd_m: float, camera: Camera, seen: str | None, pixels: str | None
) -> tuple[float, tuple[str, ...]]:
    """The CFL to fly, and what the test flight told."""
    if seen is not None and pixels is not None:
        raise InputError("--seen and --pixels exclude each other; pixels say more.")
    if seen is not None:
        tuning = tune_by_sight(cfl_mm, [name.strip() for name in seen.split(",")])
    elif pixels is not None:
        tuning = tune_by_pixels(cfl_mm, fd_m, camera, _read_pixels(pixels))
    else:
        return cfl_mm, ()
    return tuning.cfl_mm, tuning.notes


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


def _write(mission: Mission, out: Path) -> tuple[Path, ...]:
    """Write plan, map and figure: all of them, or none."""
    from influx_wrap.report.flight_figure import draw_flight  # matplotlib is slow to load

    writers = {out.with_suffix(".png"): draw_flight, out.with_suffix(".kml"): _write_map}
    writers[out] = _write_mission
    for path in writers:
        check_writable(path)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.stem}.") as folder:
        for path, write in writers.items():
            write(mission, Path(folder) / path.name)
        for path in writers:
            (Path(folder) / path.name).replace(path)
    return tuple(reversed(writers))


def _write_map(mission: Mission, path: Path) -> None:
    write_kml(path, mission)


def _write_mission(mission: Mission, path: Path) -> None:
    write_plan(path, mission)


def _print(mission: Mission, request: Request, notes: tuple[str, ...], *, cfl_flown: float) -> None:
    rules, heights = request.rules, mission.geodetic[:, 2]
    width, height = footprint_m(request.cfl_mm, request.fd_m, request.sensor_mm)
    times = flight_times(mission, rules)
    lines = list(notes)
    if mission.cfl_mm != cfl_flown:
        lines.append(
            f"CFL {cfl_flown:.3f} mm becomes {mission.cfl_mm:.3f} mm; go on from it with: "
            f"--cfl-mm {mission.cfl_mm:.3f}"
        )
    lines += [
        f"{mission.title}: {len(heights)} way points over a footprint of {width:.1f} x "
        f"{height:.1f} m",
        f"heights above the ground, taken to be level: {heights.min():.1f} to "
        f"{heights.max():.1f} m",
        f"nearest to the camera: {crew_distance_m(mission):.1f} m along the ground",
        f"path: {path_length_m(mission):.0f} m; time: {times.total_s / 60:.1f} min (take-off "
        f"{times.take_off_s:.0f} s, legs {times.legs_s:.0f} s, holds {times.holds_s:.0f} s, "
        f"return {times.return_s:.0f} s) of {rules.battery_min * (1 - RESERVE):.1f} min",
        f"home: {mission.home[0]:.7f}, {mission.home[1]:.7f}, {_home_in_words(mission)}",
        _tilt_in_words(request),
    ]
    console = answers()
    for line in lines:
        console.print(line, soft_wrap=True)


def _tilt_in_words(request: Request) -> str:
    """How far from the vertical the 24 points let the camera look, also for a test flight."""
    points = hover_points_m(request.cfl_mm, request.fd_m, request.sensor_mm)
    tilt = highest_tilt_deg(points, request.height_m, request.rules.min_height_m)
    if tilt is None:
        return "warning: no tilt keeps all of the 24 points high enough"
    words = f"largest tilt that keeps all of the 24 points high enough: {round_down(tilt):.1f} deg"
    return words if request.tilt_deg <= tilt else f"warning: {words}; test with such a tilt"


def _home_in_words(mission: Mission) -> str:
    """Where to put the drone, for somebody who stands at the camera."""
    east, north, _ = mission.home_world_m.tolist()
    heading = math.radians(mission.heading_deg)
    ahead = east * math.sin(heading) + north * math.cos(heading)
    right = east * math.cos(heading) - north * math.sin(heading)
    return (
        f"{abs(ahead):.1f} m {'ahead of' if ahead >= 0 else 'behind'} the camera and "
        f"{abs(right):.1f} m to its {'right' if right >= 0 else 'left'}"
    )
