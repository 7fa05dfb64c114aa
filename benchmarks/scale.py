"""What many lenses cost: seconds and bytes of an experiment on a worker of a cluster.

Cells from all zooms of a lens are sent as ``--scheduler`` sends them, but worked on here:
simulated, and then recorded, with their files. What the way there and back adds is measured
with the same bytes and no work, on a cluster on this machine; what a lens costs beside its
experiments, with a run whose results are there already. The last table is a product of
these numbers, and of nothing else.
"""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from influx_wrap.calibrate.recipe import RECIPES, Recipe
from influx_wrap.compute.cluster import connected
from influx_wrap.compute.processes import WorkerDied
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.truth import Noise
from influx_wrap.plan import make_plan
from influx_wrap.run.campaign import Parcel, pack_job, work_on_parcel
from influx_wrap.run.jobs import Job, simulated_jobs
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations

LENSES, CORES = 1000, (2, 16, 100, 1000)
EVERY = 9
N_EMPTY = 200
MOST_OVERHEAD = 0.1


@dataclass(frozen=True)
class Cost:
    """Of one experiment with one recipe: seconds of a core, bytes to the worker and back."""

    seconds: float
    sent: int
    returned: int


@dataclass(frozen=True)
class Load:
    """Nothing to do, but bytes to carry: ``data`` there, ``returned`` bytes back."""

    data: bytes
    returned: int


def run(console: Console) -> bool:
    """Print the report; returns whether the cluster adds little to the work."""
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())
    costs: dict[str, list[Cost]] = {}
    with TemporaryDirectory(prefix="influx-scale-") as folder:
        chosen = simulations(plan, plan.cells[::EVERY], Noise(), seed=0)
        jobs = simulated_jobs(chosen, [], Workspace(Path(folder)))
        for name in ("influx", "batch"):
            _cost(jobs[0], RECIPES[name])  # Compiles.
            label = f"{name} on {len(jobs)} cells"
            for job in track(jobs, label, console=console, transient=True):
                simulated, recorded = _cost(job, RECIPES[name])
                costs.setdefault(f"{name}, simulated", []).append(simulated)
                costs.setdefault(f"{name}, recorded", []).append(recorded)
    _print_costs(costs, console)
    # What weighs most: files there, and a record back.
    heaviest = max(costs["influx, recorded"], key=lambda cost: cost.sent)
    way_s, parent_s = _way_s(Load(bytes(heaviest.sent), heaviest.returned))
    console.print(
        f"The way there and back of {heaviest.sent / 1e3:.0f} kB, on this machine: "
        f"{1e3 * way_s:.0f} ms, of which the parent computes {1e3 * parent_s:.1f} ms."
    )
    rest_s = _rest_s()
    console.print(
        f"Beside its experiments a lens costs {rest_s:.1f} s of the parent's core: "
        f"{LENSES * rest_s / 3600:.1f} h for {LENSES}."
    )
    n_cells = len(plan.cells)
    _print_lenses(costs, n_cells, way_s, parent_s, console)
    return bool(
        way_s < MOST_OVERHEAD * np.mean([cost.seconds for cost in costs["influx, recorded"]])
    )


def _cost(job: Job, recipe: Recipe) -> tuple[Cost, Cost]:
    """Of an experiment that the worker simulates, and of the same as a recorded one."""
    parcel = pack_job(replace(job, recipes=(recipe,)))
    simulated, made = _measured(parcel)
    recorded, _ = _measured(Parcel(replace(parcel.job, simulation=None), made))
    return simulated, recorded


def _measured(parcel: Parcel) -> tuple[Cost, Mapping[str, bytes]]:
    start = time.process_time()
    outcomes, made = work_on_parcel(parcel)
    seconds = time.process_time() - start
    assert all(outcome.record.result is not None for outcome in outcomes), outcomes
    return Cost(seconds, len(pickle.dumps(parcel)), len(pickle.dumps((outcomes, made)))), made


def carry(load: Load) -> bytes:
    """What a worker does with a load."""
    return bytes(load.returned)


def _way_s(load: Load) -> tuple[float, float]:
    """Seconds that a task waits for the cluster, and those that the parent computes for it."""
    from distributed.deploy import SubprocessCluster

    with (
        # The scheduler too in a process of its own: its work is not the parent's.
        SubprocessCluster(n_workers=1, threads_per_worker=1) as local,
        connected(local.scheduler_address) as cluster,
    ):
        list(cluster.parallel(carry, [load] * 5))
        start, start_cpu = time.perf_counter(), time.process_time()
        answers = [answer for _, answer in cluster.parallel(carry, [load] * N_EMPTY)]
        taken = time.perf_counter() - start, time.process_time() - start_cpu
    assert not any(isinstance(answer, WorkerDied) for answer in answers)
    return taken[0] / N_EMPTY, taken[1] / N_EMPTY


def _rest_s() -> float:
    """Seconds of a core that a run takes to start, read results, judge the table and write."""
    with TemporaryDirectory(prefix="influx-scale-") as folder:
        command = [sys.executable, "-m", "influx_wrap.cli.main", "run", "canon17"]
        command += ["--recipe", "batch", "--out", f"{folder}/run"]
        subprocess.run(command, check=True, capture_output=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _print_costs(costs: Mapping[str, list[Cost]], console: Console) -> None:
    table = Table(
        "experiments", "cells", "s mean", "s longest", "kB sent", "kB returned",
        title="an experiment, on one core",
    )  # fmt: skip
    for name, of_kind in costs.items():
        seconds = [cost.seconds for cost in of_kind]
        table.add_row(
            name, f"{len(of_kind)}", f"{np.mean(seconds):.2f}", f"{max(seconds):.2f}",
            f"{np.mean([cost.sent for cost in of_kind]) / 1e3:.1f}",
            f"{np.mean([cost.returned for cost in of_kind]) / 1e3:.1f}",
        )  # fmt: skip
    console.print(table)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    console.print(f"Peak memory of the process: {peak_mb:.0f} MB.")


def _print_lenses(
    costs: Mapping[str, list[Cost]],
    n_cells: int,
    way_s: float,
    parent_s: float,
    console: Console,
) -> None:
    n = LENSES * n_cells
    table = Table(
        "experiments", "core hours", *(f"h, {cores} cores" for cores in CORES), "GB sent",
        "GB returned", "cores one parent feeds",
        title=f"{LENSES} lenses of {n_cells} cells",
    )  # fmt: skip
    for name, of_kind in costs.items():
        work_s = float(np.mean([cost.seconds for cost in of_kind]))
        cores_fed = (work_s + way_s) / parent_s
        hours = [
            f"{n * (work_s + way_s) / cores / 3600:.1f}" if cores < cores_fed else "-"
            for cores in CORES
        ]
        table.add_row(
            name, f"{n * work_s / 3600:.0f}", *hours,
            f"{n * np.mean([cost.sent for cost in of_kind]) / 1e9:.1f}",
            f"{n * np.mean([cost.returned for cost in of_kind]) / 1e9:.1f}",
            f"{cores_fed:.0f}",
        )  # fmt: skip
    console.print(table)
    console.print(f"measured on a core of this machine, which has {os.cpu_count()}")
