"""A cluster: the answers of a local run, whatever happens to its workers."""

import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.compute import arithmetic
from influx_wrap.compute import cluster as module
from influx_wrap.compute.cluster import Cluster, connected
from influx_wrap.compute.processes import WorkerDied
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.truth import Noise
from influx_wrap.plan import make_plan, select_cells
from influx_wrap.run import campaign
from influx_wrap.run.afar import send_stretch
from influx_wrap.run.campaign import pack_job, run_campaign, work_on_parcel
from influx_wrap.run.cell import CellOutcome
from influx_wrap.run.jobs import Job, recorded_jobs, simulated_jobs
from influx_wrap.run.listener import RunListener
from influx_wrap.run.pipeline import calibrate_jobs
from influx_wrap.run.workspace import Workspace
from influx_wrap.synth.film.simulation import simulations
from tests.compute.dask_cluster import dask_cluster
from tests.films import rig_footage, write_film, write_rig

BATCH = RECIPES["batch"]
TWELVE = ",".join(f"z{zoom}f{focus}" for zoom in range(4) for focus in (7, 8, 9))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler with two workers."""
    with dask_cluster(tmp_path_factory.mktemp("dask"), 2) as (address, _):
        yield address


@pytest.fixture(scope="module")
def observer(address: str) -> Iterator[Client]:
    """Somebody who looks on."""
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def cluster(address: str, observer: Client) -> Iterator[Cluster]:
    observer.wait_for_workers(2, timeout=60)
    with connected(address) as cluster:
        yield cluster


def jobs_of(cells: str, workspace: Workspace) -> list[Job]:
    catalogue = load_catalogue()
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())
    chosen = simulations(plan, select_cells(plan, cells), Noise(), seed=0)
    return simulated_jobs(chosen, [BATCH], workspace)


def run(
    jobs: list[Job], workspace: Workspace, cluster: Cluster | None, report: Any = lambda _: None
) -> dict[str, dict[str, Any]]:
    stores = {"batch": workspace}
    records = run_campaign(jobs, stores, processes=1, report=report, cluster=cluster)["batch"]
    return {cell: record.as_dict() for cell, record in records.items()}


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_killed_worker_changes_no_byte(
    cluster: Cluster, observer: Client, tmp_path: Path
) -> None:
    local, afar = Workspace(tmp_path / "local"), Workspace(tmp_path / "afar")
    run(jobs_of(TWELVE, local), local, None)
    pids = observer.run(os.getpid)
    heard: list[CellOutcome] = []
    killed = []

    def report(outcome: CellOutcome) -> None:
        heard.append(outcome)
        if len(heard) >= 3 and not killed:
            busy = [worker for worker, keys in observer.processing().items() if keys]
            if busy:
                killed.append(pids[busy[0]])
                os.kill(killed[0], signal.SIGKILL)

    records = run(jobs_of(TWELVE, afar), afar, cluster, report)
    assert len(killed) == 1
    assert len(heard) == len(records) == 12
    assert all(record["status"] == "ok" for record in records.values())
    assert contents(afar.root) == contents(local.root), "data and cells"

    resumed: list[CellOutcome] = []
    run(jobs_of(TWELVE, afar), afar, cluster, resumed.append)
    assert [outcome.resumed for outcome in resumed] == [True] * 12


def test_workers_get_the_arithmetic_of_the_command(cluster: Cluster, observer: Client) -> None:
    """They have loaded numpy before they hear of us, so their nannies start them anew."""
    observer.wait_for_workers(2, timeout=60)
    assert set(observer.run(arithmetic.name).values()) == {arithmetic.name()}


def in_this_process(
    function: Callable[[Job], list[CellOutcome]], tasks: Sequence[Job], processes: int
) -> Iterator[tuple[Job, list[CellOutcome]]]:
    for task in tasks:
        yield task, function(task)


def test_recorded_experiments_travel(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those with faults, which are told in the same words."""
    monkeypatch.setattr(campaign, "parallel", in_this_process)
    data = tmp_path / "data"
    for job in jobs_of("z0f9,z1f9,z2f9", Workspace(tmp_path)):
        assert job.simulation is not None
        job.simulation.write(data / job.cell)
    (data / "z1f9" / "coords_2d.csv").write_text("nonsense")
    (data / "z2f9" / "target.yaml").unlink()
    found = {}
    for name, chosen in (("local", None), ("afar", cluster)):
        workspace = Workspace(tmp_path / name)
        run(recorded_jobs(data, "canon17", "all", [BATCH], 0, workspace), workspace, chosen)
        found[name] = contents(workspace.root)
    assert set(found["local"]) == {
        "cells/z0f9/poses.csv",
        "cells/z0f9/result.json",
        "cells/z1f9/failure.json",
        "cells/z2f9/failure.json",
    }
    assert found["afar"] == found["local"]


@pytest.mark.parametrize("is_seen", [True, False])
def test_two_workers_share_a_clip_and_one_is_killed(
    cluster: Cluster, observer: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    is_seen: bool,
) -> None:  # fmt: skip
    """Workers that see the video read it there; to others, which have another one in its place,
    or none, stretches are sent. The bytes are those of this machine alone."""
    monkeypatch.setattr(campaign, "parallel", in_this_process)
    data = tmp_path / "data"
    (tmp_path / "rig").mkdir()
    write_rig(tmp_path / "rig")
    write_film(data / "z1f1")
    footage, pids = rig_footage(tmp_path / "rig"), observer.run(os.getpid)
    killed, sent, over = [], [], threading.Event()

    def kill() -> None:
        """A worker that looks at a stretch, in the way that is asked for."""
        while not killed and not over.wait(0.01):
            busy = [worker for worker, keys in observer.processing().items() if keys]
            if busy and is_seen in sent:
                killed.append(pids[busy[0]])
                os.kill(killed[0], signal.SIGKILL)

    def calibrated(name: str, chosen: Cluster | None) -> dict[str, bytes]:
        workspace = Workspace(tmp_path / name)
        jobs = recorded_jobs(data, "canon17", "all", [BATCH], 0, workspace)
        calibrate_jobs(jobs, {"batch": workspace}, 1, RunListener(), chosen, footage=footage)
        return contents(workspace.root)

    def noted(*arguments: Any, is_seen: bool) -> Any:
        sent.append(is_seen)
        return send_stretch(*arguments, is_seen=is_seen)

    local = calibrated("local", None)
    monkeypatch.setattr(campaign, "send_stretch", noted)
    if not is_seen:
        monkeypatch.setattr(campaign, "footage_hash", lambda path: "of another one")
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        afar = calibrated("afar", cluster)
    finally:
        over.set()
        killer.join()
    assert len(killed) == 1
    assert "cells/z1f1/result.json" in local
    assert afar == local
    assert all(sent) if is_seen else not sent[-1]


def test_a_parcel_needs_no_common_disk(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "run")
    (simulated,) = jobs_of("z0f9", workspace)
    (there,), made = work_on_parcel(pack_job(simulated))
    assert not workspace.root.exists()
    assert there.record.result is not None
    folder = tmp_path / "data" / "z0f9"
    folder.mkdir(parents=True)
    for name, data in made.items():
        (folder / name).write_bytes(data)
    (recorded,) = recorded_jobs(folder.parent, "canon17", "all", [BATCH], 0, workspace)
    parcel = pack_job(recorded)
    shutil.rmtree(folder)
    (again,), nothing = work_on_parcel(parcel)
    assert not nothing
    made_from = again.record.provenance["inputs"]
    assert made_from == there.record.provenance["inputs"]
    assert None not in made_from.values()
    assert again.record.as_dict()["intrinsics"] == there.record.as_dict()["intrinsics"]


def square_or_fail(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        raise ValueError("four")
    return number * number


def test_deaths_and_errors_cost_their_own_task_only(cluster: Cluster) -> None:
    results = dict(cluster.parallel(square_or_fail, range(8)))
    assert results == {
        **{number: number * number for number in range(8)},
        3: WorkerDied(None, "2 workers in a row ended at it"),
        4: WorkerDied(None, "ValueError: four"),
    }


def test_tasks_are_taken_when_a_worker_is_free(cluster: Cluster) -> None:
    taken = []

    def numbers() -> Iterator[int]:
        for number in range(10, 16):
            taken.append(number)
            yield number

    for n_done, _ in enumerate(cluster.parallel(square_or_fail, numbers()), start=1):
        assert len(taken) <= n_done + 2
    assert n_done == 6


def wait_for_file(path: Path | None) -> None:
    while path is not None and not path.exists():
        time.sleep(0.05)


def test_closing_cancels(cluster: Cluster, observer: Client, tmp_path: Path) -> None:
    """No task is left, though none of those at hand can come to its end."""
    go = tmp_path / "go"
    with closing(cluster.parallel(wait_for_file, [None, go, go, go])) as results:
        next(results)
    end = time.monotonic() + 20
    while any(key.startswith("influx-") for key in observer.run_on_scheduler(keys_of)):
        assert time.monotonic() < end
        time.sleep(0.05)
    go.touch()


def keys_of(dask_scheduler: Any) -> list[str]:
    return [str(key) for key in dask_scheduler.tasks]


def other_versions() -> dict[str, str]:
    return {"influx_wrap": "0.0.9", "numba": "0.1"}


def test_other_versions_are_refused(
    cluster: Cluster, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "versions", other_versions)
    with pytest.raises(InputError, match=r"has influx_wrap .* in place of 0\.0\.9, numba"):
        connected(address).__enter__()
    with pytest.raises(InputError, match=r"the worker tcp://.* in place of"):
        list(cluster.parallel(square_or_fail, [1]))


def test_threads_are_refused() -> None:
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            dashboard_address=":0",
            protocol="tcp",
        ) as threaded,
        pytest.raises(InputError, match=r"has 2 threads.*--nthreads 1"),
        connected(threaded.scheduler_address),
    ):
        pass  # fmt: skip


def test_a_cluster_without_workers_is_given_up() -> None:
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp") as empty,
        connected(empty.scheduler_address, patience_s=0.5) as cluster,
        pytest.raises(InputError, match="has had no workers for 1 s"),
    ):
        list(cluster.parallel(square_or_fail, [1]))


@pytest.mark.parametrize(
    "address",
    ["", "localhost:8786", "tcp://host", "http://host:8786", "tcp://host:0", "tcp://host:99999"],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a scheduler"):
        connected(address).__enter__()


def test_nobody_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_S", 1.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            connected(address).__enter__()
        silent.listen()
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            connected(address).__enter__()
