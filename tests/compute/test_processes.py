"""Workers: every task is answered, and the loss of a worker costs one task."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import heap
from multiprocessing.context import SpawnProcess
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.compute.processes import LARGE_BYTES, WorkerDied, parallel
from influx_wrap.formats.pictures import UnusablePicture
from influx_wrap.observe.frames import GreyInput, TruncatedInput


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


ERRORS = {
    "cut": TruncatedInput(Path("clip.mov"), 12, "the file ends"),
    "grey": GreyInput(Path("clip.mov")),
    "picture": UnusablePicture("a.png", "not a picture"),
    "calibration": CalibrationError("pose", "no pose", "Film again."),
}


def error_called(name: str) -> Exception:
    return ERRORS[name]


def test_errors_travel() -> None:
    """As results, whatever they are made from."""
    for name, error in parallel(error_called, list(ERRORS), 1):
        assert type(error) is type(ERRORS[name])
        assert str(error) == str(ERRORS[name])
        assert vars(error) == vars(ERRORS[name])


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


Arrays = tuple[int, list[np.ndarray]]


def of_all_kinds() -> Iterator[Arrays]:
    """Tasks with arrays small and large, more and fewer than in the first, in all layouts."""
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 1 << 16, (300, 1001), dtype=np.uint16)
    assert picture.nbytes > LARGE_BYTES
    # The first two decide on the memory of two workers: an odd number of bytes, and none.
    yield 0, [rng.integers(0, 255, LARGE_BYTES + 1, dtype=np.uint8), picture]
    yield 1, [np.arange(3.0)]
    yield 2, [picture]
    yield 3, [picture, picture, 1 + picture, 2 + picture]
    yield 4, []
    yield 5, [np.asfortranarray(picture), picture[::2], picture.T]
    yield 6, [picture + 6]


def change_and_return(task: Arrays) -> Arrays:
    number, arrays = task
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    for array in arrays:
        array += 1
    return number, arrays


def check_arrays(processes: int) -> None:
    expected = dict(of_all_kinds())
    results = list(parallel(change_and_return, of_all_kinds(), processes))
    assert sorted(task[0] for task, _ in results) == list(expected)
    for (number, given), result in results:
        for array, known in zip(given, expected[number], strict=True):
            np.testing.assert_array_equal(array, known, "the parent's own was changed")
        if number == 2:
            assert result == WorkerDied(-signal.SIGKILL)
            continue
        assert not isinstance(result, WorkerDied)
        assert result[0] == number
        # Array 1 of task 3 is array 0, so both are changed twice.
        twice = [number == 3 and k < 2 for k in range(len(given))]
        for changed, known, more in zip(result[1], expected[number], twice, strict=True):
            assert changed.dtype == known.dtype
            np.testing.assert_array_equal(changed, known + np.array(1 + more, known.dtype))


@pytest.mark.parametrize("processes", [1, 2])
def test_arrays_arrive_as_they_are(processes: int) -> None:
    check_arrays(processes)


def test_arrays_go_through_the_pipe_without_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(arena: object, size: int) -> str:
        raise OSError("No space left on device")

    monkeypatch.setattr(heap.Arena, "_choose_dir", full)
    check_arrays(1)


def where_it_lies(task: np.ndarray) -> int:
    return int(task.__array_interface__["data"][0])


def test_large_arrays_are_shared() -> None:
    """Those that fit into the memory of the first lie in one place, aligned for any type."""
    sizes = (4, 3, 2, 4)
    tasks = [np.zeros(size * LARGE_BYTES, np.uint8) for size in sizes]
    places = [place for _, place in parallel(where_it_lies, tasks, 1)]
    assert len(set(places)) == 1
    assert isinstance(places[0], int)
    assert places[0] % 8 == 0


def say_first_only(path: Path) -> None:
    path.write_text(str(os.getpid()))
    if path.name == "slow":
        time.sleep(60)


WAITS = {
    "threads": """
import os, signal, threading, time
from concurrent.futures import ThreadPoolExecutor
from influx_wrap.compute.processes import completed

def interrupted_here():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(60)

try:
    list(completed([ThreadPoolExecutor(1).submit(interrupted_here)]))
except KeyboardInterrupt:
    os._exit(7)
""",
    "processes": """
import os, signal, threading, time
from influx_wrap.compute.processes import parallel

def interrupted_here():
    time.sleep(2)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=interrupted_here, daemon=True).start()
try:
    list(parallel(time.sleep, [60], 1))
except KeyboardInterrupt:
    os._exit(7)
""",
}


@pytest.mark.parametrize("kind", WAITS)
def test_ctrl_c_is_heard_whichever_thread_receives_it(kind: str) -> None:
    script = f"if __name__ == '__main__':\n{textwrap.indent(WAITS[kind], '    ')}"
    ended = subprocess.run([sys.executable, "-c", script], timeout=30, check=False)
    assert ended.returncode == 7


def test_ctrl_c_is_not_lost_while_a_worker_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    start = SpawnProcess.start

    def start_and_interrupt(process: SpawnProcess) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(parallel(abs, [1], 1))


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from influx_wrap.compute.processes import parallel\n"
        "from tests.compute.test_processes import say_and_sleep\n"
        "if __name__ == '__main__': list(parallel(say_and_sleep, [Path(sys.argv[1])], 1))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    path = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, script, path], env=environment)
    wait_for(lambda: path.exists() and path.read_text())
    pid = int(path.read_text())
    assert is_alive(pid)
    parent.kill()
    parent.wait()
    wait_for(lambda: not is_alive(pid))
