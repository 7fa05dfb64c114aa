"""A simulated flight of the drone at night as a recording: video, readings, and the truth.

The flight is planned (``synth.flight``), the camera sees its flashes (``synth.night``), and
the recording has what a crew would bring home: a clip in colour, the lens's metadata, and
``flash_rtk.json`` with the receiver's error and a clock that the video knows nothing of.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from influx_drone.fix import Quality
from influx_drone.readings import as_rows
from influx_wrap.errors import InputError
from influx_wrap.formats.flight import FLASH_RTK, write_flash_rtk
from influx_wrap.formats.flight_recording import write_flight_recording
from influx_wrap.formats.recording_truth import FlightTruth
from influx_wrap.synth.film.cells import Film
from influx_wrap.synth.film.simulation import Simulation
from influx_wrap.synth.flight import (
    Flight,
    FlightOptions,
    FlightReadings,
    LitFrames,
    lit_frames,
    simulate_flight,
    take_readings,
)
from influx_wrap.synth.night import (
    NightOptions,
    OtherLights,
    led_glows,
    other_lights,
    render_night,
)


@dataclass(frozen=True)
class NightFootage:
    """How a flight is filmed: the codec, the pictures, and the flight itself."""

    codec: str = "h264"
    night: NightOptions = field(default_factory=NightOptions)
    flight: FlightOptions = field(default_factory=FlightOptions)

    def as_dict(self) -> dict[str, Any]:
        """Plain nested dictionary, for the settings of a simulation."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class NightFilm(Film):
    """A drone's cell about to be filmed."""

    footage: NightFootage
    flight: Flight
    readings: FlightReadings
    lit: LitFrames
    others: OtherLights

    @property
    def codec(self) -> str:
        return self.footage.codec

    @property
    def n_frames(self) -> int:
        return self.flight.n_frames

    def picture(self, frame: int) -> NDArray[np.uint8]:
        options, size = self.footage.night, self.simulation.camera.image_size
        rows = np.flatnonzero(self.lit.frame == frame)
        led = [led_glows(options, size, self.lit.uv_ends[k], self.lit.share[k]) for k in rows]
        glows = np.concatenate([np.empty((0, 12)), *led])
        return render_night(options, size, self.others, frame, glows, self.frame_generator(frame))

    def complete(self, folder: Path, footage: str) -> None:
        simulation = self.simulation
        write_flash_rtk(folder / FLASH_RTK, as_rows(self._journal()))
        write_flight_recording(
            folder,
            footage=footage,
            metadata=self.lens_metadata(),
            lens=simulation.lens,
            camera=simulation.camera.name,
            cell=simulation.cell.name,
            truth=self.truth(),
        )

    def truth(self) -> FlightTruth:
        """The answer, as it is written beside the video."""
        flight, readings, lit = self.flight, self.readings, self.lit
        stops, lit_flash = np.unique(lit.stop, return_inverse=True)
        flash_of_stop = np.full(len(flight.point), -1)
        flash_of_stop[stops] = np.arange(len(stops))
        return FlightTruth(
            self.simulation.truth,
            rtk_ball_m=self.simulation.noise.rtk_ball_m,
            hover_m=flight.hover_m,
            flash_point=flight.point[stops],
            flash_time_s=flight.on_s[stops],
            lit_flash=lit_flash,
            lit_frame=lit.frame,
            lit_uv=lit.uv,
            lit_share=lit.share,
            reading_point=flight.point[readings.stop],
            reading_flash=flash_of_stop[readings.stop],
            reading_m=readings.led_m,
            rotation=readings.rotation,
            translation=readings.translation,
            clock_offset_s=readings.clock_offset_s,
            clock_drift=readings.clock_drift,
        )

    def _journal(self) -> list[dict[str, Any]]:
        """The readings as the drone keeps them."""
        readings = self.readings
        covariance = readings.covariance_m2
        return [
            {
                "id": f"{self.simulation.cell.name}-{k + 1:02d}",
                "point": k + 1,
                "led_on_clock_s": 0.0,
                "fix": {
                    "time_unix_s": round(time_s, 3),
                    "clock_s": 0.0,
                    "latitude_deg": latitude,
                    "longitude_deg": longitude,
                    "height_m": height,
                    "quality": Quality.FIXED.value,
                    "covariance_m2": None if covariance is None else covariance.tolist(),
                },
            }
            for k, (time_s, (latitude, longitude, height)) in enumerate(
                zip(readings.time_s.tolist(), readings.geodetic.tolist(), strict=True)
            )
        ]


def plan_night(simulation: Simulation, footage: NightFootage) -> NightFilm:
    """The flight over the points of ``Simulation.write``, whose readings are off as there."""
    cell, camera, seed = simulation.cell, simulation.camera, simulation.seed
    if cell.board is not None:
        raise InputError(f"cell {cell.name} is shot with a board; the drone does not fly there.")
    experiment = simulation.experiment()
    rng = np.random.default_rng([seed, cell.zoom_index, cell.focus_index, 0])
    flight = simulate_flight(experiment, footage.flight, rng)
    readings = take_readings(flight, simulation.noise.rtk_ball_m, camera.height_above_ground_m, rng)
    lit = lit_frames(flight, simulation.truth, camera.image_size)
    others = OtherLights()
    if footage.night.lights:
        others = other_lights(lit, footage.night, camera.image_size, rng)
    return NightFilm(simulation, footage, flight, readings, lit, others)
