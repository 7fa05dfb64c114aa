"""Recipes: a name for the choice at every stage, so that each change can be judged alone.

``stock``   the original Kalibr, its failures included
``paper``   the paper's four modifications, to the letter
``influx``  the paper's procedure finds the way in and the outliers, and all views together give
            the answer
``batch``   all views at once, without the paper's procedure
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from influx_wrap.calibrate.incremental import IncrementalOptions
from influx_wrap.errors import InputError


@dataclass(frozen=True)
class Recipe:
    """What happens at each stage.

    focal             thin-lens (the caller's focal length) or vanishing-point
    initialise        single or fixed-point
    joint             incremental (views one by one) or batch (all at once)
    answer            incremental: all-views (one adjustment of all that the rollouts trust) or
                      rollout (the one that is chosen)
    rollouts          incremental: how many orders are tried
    shuffle           incremental: random orders; else the views' own order
    fallback_percent  the rollout chosen: with a principal point further than this from the
                      image centre, the result of ``initialise`` is taken instead; None: never
    bow               all views: estimate the bow of a board: auto, on or off
    pp_prior          all views: a soft prior keeps the principal point near the picture's centre:
                      auto (where the views leave it less certain than the prior), on or off
    pp_prior_px       its width; None: what the camera says, or 1 % of the picture's width
    """

    name: str
    focal: Literal["thin-lens", "vanishing-point"] = "thin-lens"
    initialise: Literal["single", "fixed-point"] = "fixed-point"
    joint: Literal["incremental", "batch"] = "incremental"
    answer: Literal["all-views", "rollout"] = "all-views"
    rollouts: int = 100
    shuffle: bool = True
    fallback_percent: float | None = 2.0
    bow: Literal["auto", "on", "off"] = "auto"
    pp_prior: Literal["auto", "on", "off"] = "auto"
    pp_prior_px: float | None = None
    incremental: IncrementalOptions = field(default_factory=IncrementalOptions)

    def as_dict(self) -> dict[str, Any]:
        """Plain nested dictionary, for provenance."""
        return dataclasses.asdict(self)


RECIPES: dict[str, Recipe] = {
    "stock": Recipe(
        name="stock",
        focal="vanishing-point",
        initialise="single",
        answer="rollout",
        rollouts=1,
        fallback_percent=None,
    ),
    "paper": Recipe(name="paper", answer="rollout"),
    "influx": Recipe(name="influx"),
    "batch": Recipe(name="batch", joint="batch", fallback_percent=None),
}

_CHOICES: dict[str, tuple[str, ...]] = {
    "focal": ("thin-lens", "vanishing-point"),
    "initialise": ("single", "fixed-point"),
    "joint": ("incremental", "batch"),
    "answer": ("all-views", "rollout"),
    "bow": ("auto", "on", "off"),
    "pp_prior": ("auto", "on", "off"),
}

_OPTIONAL = ("fallback_percent", "pp_prior_px")


def recipe_named(name: str) -> Recipe:
    """The recipe called ``name``."""
    if name not in RECIPES:
        raise InputError(f"there is no recipe {name!r}; the recipes are {', '.join(RECIPES)}.")
    return RECIPES[name]


def override(recipe: Recipe, settings: dict[str, str]) -> Recipe:
    """A recipe with single choices replaced, as ``--set key=value`` gives them.

    Keys are the fields of ``Recipe`` and of ``IncrementalOptions``.
    """
    outer: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for key, text in settings.items():
        if key in _CHOICES:
            if text not in _CHOICES[key]:
                raise InputError(f"{key} is one of {', '.join(_CHOICES[key])}, not {text!r}.")
            outer[key] = text
        elif key in _plain_fields(recipe):
            outer[key] = _parse(key, text, recipe)
        elif key in _plain_fields(recipe.incremental):
            inner[key] = _parse(key, text, recipe.incremental)
        else:
            known = [*_CHOICES, *_plain_fields(recipe), *_plain_fields(recipe.incremental)]
            raise InputError(f"a recipe has no {key!r}; it has {', '.join(known)}.")
    outer["incremental"] = dataclasses.replace(recipe.incremental, **inner)
    recipe = dataclasses.replace(recipe, **outer)
    if recipe.rollouts < 1:
        raise InputError(f"rollouts must be at least 1, got {recipe.rollouts}.")
    if recipe.pp_prior_px == 0:
        raise InputError("pp_prior_px must be positive (or none): 0 would fix the principal point.")
    return recipe


def _plain_fields(options: Recipe | IncrementalOptions) -> list[str]:
    skipped = {"name", "incremental", *_CHOICES}
    return [f.name for f in dataclasses.fields(options) if f.name not in skipped]


def _parse(key: str, text: str, options: Recipe | IncrementalOptions) -> float | bool | int | None:
    """A value of the same kind as the default; ``none`` where the default may be None."""
    default = getattr(options, key)
    word = text.lower()
    if isinstance(default, bool):
        if word in ("true", "false"):
            return word == "true"
        raise InputError(f"{key} is true or false, not {text!r}.")
    if word == "none" and key in _OPTIONAL:
        return None
    try:
        value = int(text) if isinstance(default, int) else float(text)
    except ValueError:
        raise InputError(f"{key}={text!r} is not a number such as {default}.") from None
    if not 0 <= value < math.inf:
        raise InputError(f"{key} must be a number of at least 0, got {text}.")
    return value
