"""The project's own files: one version everywhere, and what they name exists."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import influx_drone
from influx_wrap import __version__

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
# A file or folder of this repository, not a word with a dash or an option.
PATHS = sorted(set(re.findall(r"`([\w.]+(?:/[\w.-]+)+|[\w-]+\.(?:md|toml|cff))`", CONTRIBUTING)))
# `name`, `name` and `name` in `file`.
NAMED = re.findall(
    r"((?:`\w+`(?:,\s+|\s+and\s+|\s+or\s+))*`\w+`)\s+in\s+(?:`([\w/.]+\.py)`|the\s+same\s+file)",
    CONTRIBUTING,
)


def parsed(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def defined(path: Path) -> set[str]:
    """Classes, functions, methods and names that a module assigns."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def test_one_version() -> None:
    assert parsed("CITATION.cff")["version"] == __version__
    released = re.findall(r"^## \[?(\d[\w.]*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == __version__


@pytest.mark.parametrize(
    ("folder", "package"), [(".", "influx_wrap"), ("drone", influx_drone.__name__)]
)
def test_the_packages_read_their_versions(folder: str, package: str) -> None:
    settings = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    assert "version" not in settings["project"]
    attribute = settings["tool"]["setuptools"]["dynamic"]["version"]
    assert attribute == {"attr": f"{package}.__version__"}


def test_changes_to_come_are_first() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert headings.count("[Unreleased]") == 1


def test_citation() -> None:
    """What CFF 1.2.0 asks for, and the paper."""
    citation = parsed("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["title"], citation["license"]) == (settings["name"], settings["license"])
    (paper,) = citation["references"]
    assert paper["title"].startswith("InFlux: ")
    assert paper["authors"][0] == {"given-names": "Erich", "family-names": "Liang"}
    assert all(person.keys() == {"given-names", "family-names"} for person in paper["authors"])


def test_enough_is_found_to_check() -> None:
    assert len(PATHS) > 40
    assert len(NAMED) > 20


@pytest.mark.parametrize(
    "path", [path for path in PATHS if not path.startswith((".venv", "build/"))]
)
def test_files_of_contributing(path: str) -> None:
    assert (ROOT / path).exists()


def test_names_of_contributing() -> None:
    last = ""
    for names, file in NAMED:
        last = file or last
        for name in re.findall(r"`(\w+)`", names):
            assert name in defined(ROOT / last), f"{name} is not in {last}"


def test_targets_of_contributing() -> None:
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = set(re.findall(r"`make ([a-z-]+)", CONTRIBUTING))
    assert named
    assert named <= set(targets)


def test_the_workflow_runs_ci() -> None:
    workflow = parsed(".github/workflows/ci.yml")
    # YAML 1.1 takes the key "on" for a truth value.
    assert {"push", "pull_request"} <= workflow[True].keys()
    (job,) = workflow["jobs"].values()
    assert job["runs-on"].startswith("ubuntu")
    assert "3.11" in job["container"]["image"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def test_hooks_are_those_of_lint() -> None:
    (repository,) = parsed(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = {hook["entry"]: hook for hook in repository["hooks"]}
    assert list(hooks) == [".venv/bin/ruff check", ".venv/bin/ruff format", ".venv/bin/mypy"]
    assert all(hook["language"] == "system" for hook in hooks.values())
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    for entry in hooks:
        assert entry.replace(".venv/bin", "$(BIN)") in lint
    assert "$(BIN)/lint-imports" in lint
