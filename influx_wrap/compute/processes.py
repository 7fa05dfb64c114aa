"""Work spread over processes, such that the loss of one costs one task; and over threads.

Every worker has a pipe of its own, so a worker that dies (out of memory, killed) is
known by the task it held, and a new one takes its place. Workers are started afresh
rather than forked, ignore Ctrl-C, which is the parent's business, and end with it.

The large arrays of a task, pictures say, are not sent through the pipe, where they would
be copied four times over, but put into memory that parent and worker share.

``parallel`` and ``completed`` wait in slices: Ctrl-C is Python's main thread's to hear, and does
not wake it when another thread received the signal.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import connection, resource_tracker
from typing import Any, Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

LARGE_BYTES = 1 << 18
"""Arrays of this size and more are handed over in shared memory."""

_ALIGNMENT = 64
_SLICE_S = 0.2


@dataclass(frozen=True)
class WorkerDied:
    """In place of a result: the worker ended; a negative ``exitcode`` is a signal's number.

    Of workers on other machines it is not known, but there is a ``reason``.
    """

    exitcode: int | None
    reason: str | None = None


def parallel(
    function: Callable[[Task], Result], tasks: Iterable[Task], processes: int
) -> Generator[tuple[Task, Result | WorkerDied], None, None]:
    """Every task with its result, as they are completed.

    A task is taken from ``tasks`` when a worker is free for it, not before: they may be
    many, and large, and an iterator may have new ones after each result. ``function`` must
    be importable by the workers and is expected not to raise. It may return an array of its
    task, or change it, but not keep it: the next task takes its place. When the generator is
    closed, workers still busy are ended. For the
    main thread only.
    """
    waiting = iter(tasks)
    idle: list[_Worker[Task, Result]] = []
    busy: dict[connection.Connection, tuple[_Worker[Task, Result], Task]] = {}
    try:
        while True:
            # All workers are started before the first is given a task, which it may take
            # only once it is up.
            new = [
                (idle.pop() if idle else _Worker(function, _large_bytes(task)), task)
                for task in islice(waiting, processes - len(busy))
            ]
            busy.update((worker.pipe, (worker, task)) for worker, task in new)
            for worker, task in new:
                worker.give(task)
            if not busy:
                return
            for pipe in connection.wait(list(busy), _SLICE_S):
                assert isinstance(pipe, connection.Connection)
                worker, task = busy.pop(pipe)
                result = worker.take()
                if not isinstance(result, WorkerDied):
                    idle.append(worker)
                yield task, result
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            worker.stop()


def completed(futures: Iterable[Future[Result]]) -> Iterator[Future[Result]]:
    """The futures of threads, as they are completed."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, _SLICE_S, FIRST_COMPLETED)
        yield from done


class _Worker(Generic[Task, Result]):
    """A process, and ``room`` bytes of memory shared with it for the arrays of a task."""

    def __init__(self, function: Callable[[Task], Result], room: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._shared: Any = b""
        if room:
            # Without any, arrays go through the pipe.
            with suppress(OSError):
                self._shared = context.RawArray("B", room)
        arguments = (theirs, self._shared, function)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        # A worker inherits that Ctrl-C is held back from it, so there is no moment when it is
        # not; the parent hears of it afterwards. The tracker, were it not there yet, would be
        # started in between and let Ctrl-C through again.
        resource_tracker.ensure_running()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _hidden_main():
                self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()

    def give(self, task: Task) -> None:
        # To a worker that died while idle; ``take`` finds out.
        with suppress(BrokenPipeError):
            self.pipe.send(_pack(task, memoryview(self._shared).cast("B")))

    def take(self) -> Result | WorkerDied:
        try:
            result: Result = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            return WorkerDied(self._process.exitcode or 0)
        return result

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()


@contextmanager
def _hidden_main() -> Iterator[None]:
    """A new process would run the program again that starts it, to find its functions there;
    ours are all in modules, and a script of a few lines has nothing that keeps it from that."""
    main = vars(sys.modules["__main__"])
    kept: dict[str, object] = {
        name: main.pop(name) for name in ("__file__", "__spec__") if name in main
    }
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(kept)


def _large_bytes(task: object) -> int:
    """The memory that ``_pack`` needs for all large arrays of a task."""
    sizes: list[int] = []
    pickle.dumps(task, protocol=5, buffer_callback=lambda array: sizes.append(array.raw().nbytes))
    return sum(_aligned(size) for size in sizes if size >= LARGE_BYTES)


def _pack(task: object, shared: memoryview) -> tuple[bytes, list[tuple[int, int]]]:
    """A task as bytes, but for the large arrays that fit into ``shared``: these are copied
    there, each into the bytes of a range that is returned."""
    ranges: list[tuple[int, int]] = []

    def stays(array: pickle.PickleBuffer) -> bool:
        content = array.raw()
        start = _aligned(ranges[-1][1]) if ranges else 0
        stop = start + content.nbytes
        if content.nbytes < LARGE_BYTES or stop > len(shared):
            return True
        shared[start:stop] = content
        ranges.append((start, stop))
        return False

    return pickle.dumps(task, protocol=5, buffer_callback=stays), ranges


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT


def _serve(pipe: connection.Connection, shared: Any, function: Callable[[Any], Any]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    memory = memoryview(shared).cast("B")
    # A parent that was killed may be noticed here first, in the middle of a task's bytes.
    with suppress(EOFError, ConnectionError):
        while True:
            data, ranges = pipe.recv()
            task = pickle.loads(data, buffers=[memory[start:stop] for start, stop in ranges])
            pipe.send(function(task))


def _end_with_parent() -> None:
    """A parent that was killed cannot stop its workers; they must not work on unseen."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
