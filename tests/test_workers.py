"""Workers: every task is answered, and the loss of a worker costs one task."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from influx_wrap.workers import WorkerDied, parallel


def square_or_die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        os._exit(5)
    return number * number


def say_and_sleep(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(60)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def wait_for(condition: object, seconds: float = 20.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("processes", [1, 2])
def test_deaths_cost_their_own_task_only(processes: int) -> None:
    results = dict(parallel(square_or_die, range(8), processes))
    assert results == {
        **{number: number * number for number in range(8)},
        3: WorkerDied(-signal.SIGKILL),
        4: WorkerDied(5),
    }


def test_tasks_are_taken_when_a_worker_is_free() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(10, 16):
            taken.append(number)
            yield number

    for n_done, _ in enumerate(parallel(square_or_die, numbers(), 2), start=1):
        assert len(taken) <= n_done + 2
    assert n_done == 6


def test_closing_ends_busy_workers(tmp_path: Path) -> None:
    tasks = [tmp_path / "quick", tmp_path / "slow"]
    with closing(parallel(say_first_only, tasks, 2)) as results:
        task, _ = next(results)
        assert task.name == "quick"
        wait_for((tmp_path / "slow").exists)
    pid = int((tmp_path / "slow").read_text())
    wait_for(lambda: not is_alive(pid))


def say_first_only(path: Path) -> None:
    path.write_text(str(os.getpid()))
    if path.name == "slow":
        time.sleep(60)


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from influx_wrap.workers import parallel\n"
        "from tests.test_workers import say_and_sleep\n"
        "if __name__ == '__main__': list(parallel(say_and_sleep, [Path(sys.argv[1])], 1))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    path = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, script, path], env=environment)
    wait_for(lambda: path.exists() and path.read_text())
    pid = int(path.read_text())
    assert is_alive(pid)
    parent.kill()
    parent.wait()
    wait_for(lambda: not is_alive(pid))
