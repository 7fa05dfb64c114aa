"""One arithmetic: the same bytes whatever processor the libraries take this one for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from influx_wrap.compute import arithmetic
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.truth import Noise
from influx_wrap.plan import make_plan, select_cells
from influx_wrap.synth.film.simulation import simulations

# What this process was told is not for its children to inherit.
UNTOLD = {key: value for key, value in os.environ.items() if key not in arithmetic.ENVIRONMENT}

CALIBRATE = """
import sys
from dataclasses import replace
from pathlib import Path
from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.compute import arithmetic
from influx_wrap.formats.experiment import read_experiment
import numpy as np

print(arithmetic.name())
for folder in sorted(Path(sys.argv[1]).iterdir()):
    observations = read_experiment(folder).observations
    observations = observations.subset(np.arange(min(int(sys.argv[2]), observations.n_views)))
    for recipe in (replace(RECIPES["influx"], rollouts=2), RECIPES["batch"]):
        answer = calibrate(observations, recipe, focal_px=float(folder.name), seed=3)
        print(answer.intrinsics.array.tobytes().hex(), answer.covariance.tobytes().hex())
"""

ALL_VIEWS, FEW_VIEWS = "100", "5"
"""An emulated processor is a hundred times slower."""

pytestmark = pytest.mark.skipif(
    arithmetic.name() != arithmetic.LEVEL, reason=f"not a processor of {arithmetic.LEVEL}"
)


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board and a flight, in folders named after a first guess of the focal length."""
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())
    root = tmp_path_factory.mktemp("experiments")
    for one in simulations(plan, select_cells(plan, "z6f5,z2f9"), Noise(), seed=0):
        one.write(root / str(round(one.truth.fx)))
    return root


def calibrated(
    experiments: Path,
    *words: str,
    code: str = CALIBRATE,
    views: str = ALL_VIEWS,
    **environment: str,
) -> str:
    """What a process of its own prints: the name of its arithmetic, and all digits."""
    command = [*words, sys.executable, "-c", code, str(experiments), views]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**UNTOLD, **environment}, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def expected(experiments: Path) -> str:
    answer = calibrated(experiments)
    assert answer.splitlines()[0] == arithmetic.LEVEL
    assert len(set(answer.splitlines())) == 5
    return answer


@pytest.mark.parametrize(
    "environment",
    [
        {
            "OPENBLAS_CORETYPE": "Nehalem", "NUMBA_CPU_NAME": "nehalem", "OPENCV_IPP": "sse42",
            "OPENCV_CPU_DISABLE": "AVX2,AVX", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 X86_V3",
        },
        {"OPENBLAS_CORETYPE": "Zen", "NUMBA_CPU_NAME": "znver2", "OPENBLAS_NUM_THREADS": "1"},
    ],
)  # fmt: skip
def test_other_settings_change_no_digit(
    experiments: Path, expected: str, environment: dict[str, str]
) -> None:
    assert calibrated(experiments, **environment) == expected


def test_numpy_loaded_before(experiments: Path, expected: str) -> None:
    """What cannot be changed any more is named; a process begun with the settings has them."""
    code = f"import numpy\n{CALIBRATE}"
    late = calibrated(experiments, code=code, OPENBLAS_CORETYPE="Nehalem").splitlines()
    assert "Nehalem" in late[0]
    assert late[1:] != expected.splitlines()[1:], "OpenBLAS does not matter: nor does this test"
    assert calibrated(experiments, code=code, **arithmetic.ENVIRONMENT) == expected


def test_processors_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    for key in arithmetic.ENVIRONMENT:
        monkeypatch.delenv(key)
    arithmetic.settle()
    assert not set(arithmetic.ENVIRONMENT) & set(os.environ)


@pytest.mark.system
def test_on_another_processor(experiments: Path) -> None:
    """Emulated, which the libraries cannot tell from a real one; of the other manufacturer."""
    expected = calibrated(experiments, views=FEW_VIEWS)
    assert expected.splitlines()[0] == arithmetic.LEVEL
    qemu = shutil.which("qemu-x86_64")
    assert qemu is not None, "Debian's package qemu-user is needed"
    is_amd = "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    processor = "Haswell" if is_amd else "EPYC-Rome"
    assert calibrated(experiments, qemu, "-cpu", processor, views=FEW_VIEWS) == expected
