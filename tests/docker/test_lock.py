"""What the image is pinned to."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def test_the_lock_fits_the_project_and_pins_by_hash() -> None:
    """If this fails: make lock."""
    lock = (ROOT / "docker" / "requirements.txt").read_text().replace("\\\n", " ")
    lines = [line for line in lock.splitlines() if re.match(r"\w", line)]
    pinned = dict(line.split()[0].split("==") for line in lines)
    assert all("--hash=sha256:" in line for line in lines)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    wanted = [
        *project["dependencies"],
        *project["optional-dependencies"]["video"],
        *settings["build-system"]["requires"],
    ]
    for requirement in map(Requirement, wanted):
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier
