"""What an engine is: observations and a recipe in, a ``Calibration`` out."""

from __future__ import annotations

from typing import Any, Protocol

from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import Calibration
from influx_wrap.compute.progress import Progress
from influx_wrap.model.observations import Observations


class Engine(Protocol):
    """Someone who calibrates.

    An engine that drives processes of its own is not to be sent to a worker process: it does
    several things at once by itself, and has to clean up when it is interrupted.
    """

    @property
    def drives_processes(self) -> bool:
        """Whether the work is done by processes that the engine starts."""

    def accept(self, recipe: Recipe) -> Recipe:
        """The recipe that the engine follows if it is asked for this one.

        Refuses one that it cannot follow, and finds out whether the engine is there.
        """

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
        """Calibrate one experiment by an accepted recipe.

        Raises ``CalibrationError`` if there is no answer.

        ``name`` is the experiment's, for what the engine leaves on disk; ``pp_prior_px`` the
        camera's, how close to the picture's middle its principal point is expected.
        """

    def provenance(self) -> dict[str, Any]:
        """What a result depends on besides our own versions, recipe and inputs."""


def replaced_recipe(asked: Recipe, accepted: Recipe) -> str | None:
    """A sentence for the user if an engine follows another recipe than the one asked for."""
    if accepted.name == asked.name:
        return None
    return (
        f"Recipe {accepted.name} in place of {asked.name}: the answer of a real Kalibr is one of "
        "its rollouts, not an adjustment of all views."
    )
