"""Recipes: what they choose, how single choices are replaced, what is refused."""

import dataclasses
import json

import pytest

from influx_wrap.calibrate.recipe import RECIPES, Recipe, override, recipe_named
from influx_wrap.errors import InputError


def test_the_four_recipes() -> None:
    stock, influx, batch = (recipe_named(name) for name in ("stock", "influx", "batch"))
    assert (stock.focal, stock.initialise, stock.rollouts) == ("vanishing-point", "single", 1)
    assert stock.fallback_percent is None
    assert (influx.focal, influx.initialise, influx.rollouts) == ("thin-lens", "fixed-point", 100)
    assert (stock.answer, influx.answer) == ("rollout", "all-views")
    paper = recipe_named("paper")
    assert dataclasses.replace(paper, name="influx", answer="all-views") == influx
    assert influx.fallback_percent == 2.0
    assert stock.joint == influx.joint == "incremental"
    assert batch.joint == "batch"
    assert stock.incremental == influx.incremental
    assert influx.incremental.information_gain_bits == 0.2
    assert influx.incremental.outlier_sigmas == 4.0
    assert influx.incremental.min_views_outlier == 20


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"focal": "vanishing-point"}, {"focal": "vanishing-point"}),
        ({"initialise": "single", "joint": "batch"}, {"initialise": "single", "joint": "batch"}),
        ({"rollouts": "7"}, {"rollouts": 7}),
        ({"shuffle": "false"}, {"shuffle": False}),
        ({"shuffle": "True"}, {"shuffle": True}),
        ({"fallback_percent": "none"}, {"fallback_percent": None}),
        ({"fallback_percent": "3"}, {"fallback_percent": 3.0}),
        ({"bow": "on"}, {"bow": "on"}),
        ({"answer": "rollout"}, {"answer": "rollout"}),
        ({"pp_prior": "off"}, {"pp_prior": "off"}),
        ({"pp_prior_px": "12.5"}, {"pp_prior_px": 12.5}),
        ({"pp_prior_px": "none"}, {"pp_prior_px": None}),
    ],
)
def test_choices_are_replaced_one_by_one(settings: dict, expected: dict) -> None:
    changed = override(RECIPES["influx"], settings)
    assert changed == dataclasses.replace(RECIPES["influx"], **expected)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("information_gain_bits", "0.05", 0.05),
        ("outlier_sigmas", "3", 3.0),
        ("min_views_outlier", "10", 10),
        ("remove_outliers", "false", False),
        ("linearisation_px", "0", 0.0),
        ("max_restarts", "0", 0),
    ],
)
def test_settings_of_the_incremental_stage(key: str, text: str, value: float) -> None:
    changed = override(RECIPES["stock"], {key: text})
    assert getattr(changed.incremental, key) == value
    assert type(getattr(changed.incremental, key)) is type(value)
    assert (
        dataclasses.replace(changed, incremental=RECIPES["stock"].incremental) == RECIPES["stock"]
    )


def test_nothing_to_replace() -> None:
    assert override(RECIPES["batch"], {}) == RECIPES["batch"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"focal": "guess"}, ["focal", "thin-lens", "vanishing-point", "'guess'"]),
        ({"bow": "maybe"}, ["bow", "auto, on, off", "'maybe'"]),
        ({"rolouts": "5"}, ["'rolouts'", "rollouts"]),
        ({"name": "mine"}, ["'name'"]),
        ({"incremental": "x"}, ["'incremental'"]),
        ({"rollouts": "many"}, ["rollouts", "'many'", "not a number"]),
        ({"rollouts": "2.5"}, ["rollouts", "'2.5'"]),
        ({"rollouts": "0"}, ["at least 1"]),
        ({"rollouts": "-3"}, ["rollouts", "-3"]),
        ({"rollouts": "none"}, ["rollouts", "'none'"]),
        ({"rollouts": "true"}, ["rollouts", "'true'"]),
        ({"shuffle": "0.5"}, ["shuffle", "'0.5'"]),
        ({"shuffle": "none"}, ["shuffle", "'none'"]),
        ({"outlier_sigmas": "-1"}, ["outlier_sigmas", "-1"]),
        ({"outlier_sigmas": "nan"}, ["outlier_sigmas", "nan"]),
        ({"outlier_sigmas": "none"}, ["outlier_sigmas", "'none'"]),
        ({"max_iterations": "true"}, ["max_iterations", "'true'"]),
        ({"pp_prior_px": "true"}, ["pp_prior_px", "'true'"]),
        ({"pp_prior_px": "0"}, ["pp_prior_px"]),
    ],
    ids=str,
)
def test_nonsense_is_refused_in_a_sentence(settings: dict, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        override(RECIPES["influx"], settings)
    for word in words:
        assert word in str(caught.value)


def test_an_unknown_recipe() -> None:
    with pytest.raises(InputError, match="stock, paper, influx, batch"):
        recipe_named("kalibr")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_a_recipe_is_plain_data(recipe: Recipe) -> None:
    plain = json.loads(json.dumps(recipe.as_dict()))
    assert plain["name"] == recipe.name
    assert plain["incremental"]["outlier_sigmas"] == recipe.incremental.outlier_sigmas
