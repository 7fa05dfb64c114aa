"""Ten small nights: flights filmed with few pixels, unlike each other in lens and light."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.hardware import Camera
from influx_wrap.model.truth import Noise
from influx_wrap.nights import NightFilm, NightFootage, plan_night
from influx_wrap.plan import make_plan, select_cells
from influx_wrap.simulation import film, simulations
from influx_wrap.synth.flight import FlightOptions
from influx_wrap.synth.night import NightOptions

SMALL = Camera("small", 28.25, 18.17, 1280, 824)
BRISK = FlightOptions(hover_s=0.5, transit_s=0.25)


@dataclass(frozen=True)
class Night:
    """One of the ten: a cell of a lens, and what is special about it."""

    lens: str
    cell: str
    night: NightOptions
    flight: FlightOptions = BRISK
    codec: str = "h264"


WHITE = NightOptions(core_px=18, halo_px=60, scatter=0.2)
TEN: Mapping[str, Night] = {
    "plain": Night("canon17", "z0f9", replace(WHITE, scatter=0, lights=False)),
    "lights": Night("canon17", "z2f8", WHITE),
    "large": Night("canon17", "z3f9", NightOptions(core_px=40, halo_px=90, scatter=0.4)),
    "small": Night("canon17", "z1f7", NightOptions(core_px=6, halo_px=36, scatter=0.2)),
    "red": Night("canon17", "z4f9", NightOptions(0, 30, scatter=0.3, scatter_far=0.55)),
    "scattered": Night(
        "canon17", "z0f7", replace(WHITE, scatter=0.9, scatter_deg=200, scatter_far=0.5)
    ),
    "missed": Night("canon17", "z2f9", WHITE, replace(BRISK, missed=1)),
    "extra": Night("canon17", "z4f8", WHITE, replace(BRISK, extra=1)),
    "windy": Night("premista80", "z0f9", WHITE, replace(BRISK, drift_m=0.02)),
    "grainy": Night(
        "canon17", "z6f9", replace(WHITE, noise=5, vignetting=0.4, sky_top=15, sky_bottom=35)
    ),
}


def plan(night: Night, camera: Camera = SMALL, seed: int = 0) -> NightFilm:
    """The film of a night, not yet made."""
    catalogue = load_catalogue()
    cells = make_plan(catalogue.lens(night.lens), camera, catalogue.boards.values())
    (simulation,) = simulations(cells, select_cells(cells, night.cell), Noise(), seed=seed)
    return plan_night(simulation, NightFootage(night.codec, night.night, night.flight))


def make(
    name: str, folder: Path, *, processes: int = 1, report: Callable[[int], None] = lambda _: None
) -> Path:
    """Film one of ``TEN`` in a folder of its name; returns the recording's folder."""
    one = plan(TEN[name])
    film([one], folder / name, processes=processes, report=report)
    return folder / name / one.simulation.cell.name
