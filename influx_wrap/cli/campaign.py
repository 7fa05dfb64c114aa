"""Many cells observed and calibrated, with progress bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from influx_wrap.cli.progress import RESUME, progress_bar
from influx_wrap.compute.cluster import Cluster, connected
from influx_wrap.flight.pipeline import ObservedFlight, observe_flight
from influx_wrap.formats.recording_yaml import is_flight
from influx_wrap.model.experiment import Plan
from influx_wrap.model.hardware import Board
from influx_wrap.run.campaign import Job, Outcome, run_campaign
from influx_wrap.run.recordings import Observed, observe_recording
from influx_wrap.run.views import missing_in_short
from influx_wrap.run.workspace import Workspace


def chosen_cluster(scheduler: str | None) -> AbstractContextManager[Cluster | None]:
    """The cluster of --scheduler; None is for this machine."""
    return nullcontext() if scheduler is None else connected(scheduler)


def observe_with_progress(
    jobs: Sequence[Job],
    plan: Plan,
    boards: Mapping[str, Board],
    processes: int,
    console: Console,
) -> list[Job]:
    """The jobs, those of recordings with their experiments made from the footage.

    Footage that gives none becomes its job's failure.
    """
    observed = []
    with progress_bar(console) as progress:
        for job in jobs:
            if job.recording is not None:
                job = replace(job, camera=plan.camera.name)
                job = _observe(job, plan, boards, processes, progress)
            observed.append(job)
    return observed


def _observe(
    job: Job, plan: Plan, boards: Mapping[str, Board], processes: int, progress: Progress
) -> Job:
    assert job.recording is not None
    task = progress.add_task(f"frames of {job.cell}", total=None)

    def opened(total: int | None) -> None:
        progress.update(task, total=total)

    def frames(done: int) -> None:
        progress.update(task, completed=done)

    def drawing(done: int, total: int) -> None:
        name = f"pictures of {job.cell}"
        progress.update(task, description=name, completed=done, total=total)

    try:
        if is_flight(job.recording):
            flight = observe_flight(
                job.recording, plan, job.folder,
                jobs=processes, opened=opened, progress=frames, drawing=drawing,
            )  # fmt: skip
            texts = _flight_warnings(flight)
        else:
            observed = observe_recording(
                job.recording, plan, boards, job.folder,
                jobs=processes, opened=opened, progress=frames, drawing=drawing,
            )  # fmt: skip
            texts = _warnings(observed)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(RESUME) from None
    except Exception as error:
        return replace(job, failure=error)
    finally:
        progress.remove_task(task)
    for text in texts:
        progress.console.print(f"[yellow]{job.cell}:[/] {escape(text)}.")
    return job


def _warnings(observed: Observed) -> list[str]:
    """What a person should know of a recording, a line each."""
    texts = []
    summary = observed.summary
    if summary.truncated is not None:
        texts.append(
            f"the footage is readable up to frame {summary.n_frames - 1}, then "
            f"{summary.truncated}; going on with that"
        )
    if observed.sheet_problem is not None:
        texts.append(f"contact sheet: {observed.sheet_problem.rstrip('.')}")
    missing = missing_in_short(observed.coverage)
    if missing is not None:
        texts.append(missing)
    return texts


def _flight_warnings(flight: ObservedFlight) -> list[str]:
    """What a person should know of a flight that was calibrated, a line each."""
    texts = []
    if flight.stored.truncated is not None:
        last = flight.stored.flashes.n_frames - 1
        texts.append(
            f"the footage is readable up to frame {last}, then {flight.stored.truncated}; going "
            "on with that"
        )
    return texts + flight.matched.doubts


def calibrate_with_progress(
    jobs: Sequence[Job],
    stores: Mapping[str, Workspace],
    processes: int,
    console: Console,
    cluster: Cluster | None,
    *,
    failures: bool = True,
) -> dict[str, dict[str, dict[str, Any]]]:
    """``run_campaign`` with a bar, and ``failures`` shown as they happen."""
    resumed = 0
    with progress_bar(console) as progress:
        task = progress.add_task("calibrating", total=sum(len(job.recipes) for job in jobs))

        def report(outcome: Outcome) -> None:
            nonlocal resumed
            resumed += outcome.resumed
            progress.advance(task)
            record = outcome.record
            if failures and record["status"] != "ok":
                reason = f"{record['stage']}: {record['reason']}. {record['advice']}"
                console.print(f"[red]{outcome.cell} failed:[/] {escape(reason)}")

        try:
            records = run_campaign(
                jobs, stores, processes=processes, report=report, cluster=cluster
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(RESUME) from None
    if resumed:
        console.print(f"{resumed} results were there already.")
    return records
