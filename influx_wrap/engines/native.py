"""Our own calibrator as an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import Calibration
from influx_wrap.calibrate.rollouts import RolloutStore
from influx_wrap.compute.progress import Progress
from influx_wrap.model.observations import Observations


@dataclass(frozen=True)
class NativeEngine:
    """``calibrate/``, with ``jobs`` threads.

    store  keeps the rollouts of one experiment, if several recipes are to be tried on it
    """

    jobs: int = 1
    store: RolloutStore | None = None

    @property
    def drives_processes(self) -> bool:
        """It works in the process that asks."""
        return False

    def accept(self, recipe: Recipe) -> Recipe:
        """Every recipe will do."""
        return recipe

    def calibrate(
        self,
        observations: Observations,
        recipe: Recipe,
        *,
        name: str,
        focal_px: float | None,
        seed: int,
        progress: Progress | None = None,
        pp_prior_px: float | None = None,
    ) -> Calibration:
        """Calibrate one experiment; nothing is left on disk."""
        return calibrate(
            observations, recipe, focal_px=focal_px, seed=seed, jobs=self.jobs, progress=progress,
            pp_prior_px=pp_prior_px, store=self.store,
        )  # fmt: skip

    def provenance(self) -> dict[str, Any]:
        """Our own versions are in every result."""
        return {}
