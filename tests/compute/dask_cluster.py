"""A scheduler and its workers, as processes of their own on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from influx_wrap.compute import arithmetic

ROOT = Path(__file__).parents[2]


@contextmanager
def dask_cluster(
    folder: Path, n_workers: int, options: Sequence[str] = ()
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a cluster, and its scheduler's process. A worker's nanny replaces it.

    ``options`` are for scheduler and workers alike.

    Workers begin as somebody starts them by hand: nobody has told them of our arithmetic.
    """
    environment = {
        **{key: text for key, text in os.environ.items() if key not in arithmetic.ENVIRONMENT},
        "PYTHONPATH": str(ROOT),
        # Two deaths are enough to tell a task that kills its workers.
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    }
    port_file = folder / "scheduler.json"
    local = ("--no-dashboard", "--scheduler-file", str(port_file), *options)

    def start(module: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *local, *options]
        with (folder / f"{module}.log").open("ab") as log:
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    processes = [start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")]
    try:
        processes += [
            start(
                "dask_worker", "--nthreads", "1", "--host", "127.0.0.1",
                "--local-directory", str(folder / f"worker{k}"),
            )
            for k in range(n_workers)
        ]  # fmt: skip
        end = time.monotonic() + 60
        while (address := _address(port_file)) is None:
            assert time.monotonic() < end, (folder / "dask_scheduler.log").read_text()
            time.sleep(0.05)
        yield address, processes[0]
    finally:
        for process in processes:
            # With the workers that a nanny has started, and with nothing to be saved.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _address(port_file: Path) -> str | None:
    """The scheduler's; None as long as its file is not there, or not written to the end."""
    try:
        return str(json.loads(port_file.read_text())["address"])
    except (OSError, json.JSONDecodeError):
        return None
