"""Work spread over processes, such that the loss of one costs one task.

Every worker has a pipe of its own, so a worker that dies (out of memory, killed) is
known by the task it held, and a new one takes its place. Workers are started afresh
rather than forked, ignore Ctrl-C, which is the parent's business, and end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import connection
from typing import Any, Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class WorkerDied:
    """In place of a result: the worker ended; a negative ``exitcode`` is a signal's number."""

    exitcode: int


def parallel(
    function: Callable[[Task], Result], tasks: Iterable[Task], processes: int
) -> Generator[tuple[Task, Result | WorkerDied], None, None]:
    """Every task with its result, as they are completed.

    A task is taken from ``tasks`` when a worker is free for it, not before: they may be
    many, and large. ``function`` must be importable by the workers and is expected not to
    raise. When the generator is closed, workers still busy are ended. For the main thread
    only.
    """
    waiting = iter(tasks)
    idle: list[_Worker[Task, Result]] = []
    busy: dict[connection.Connection, tuple[_Worker[Task, Result], Task]] = {}
    try:
        while True:
            # All workers are started before the first is given a task, which it may take
            # only once it is up.
            new = [
                (idle.pop() if idle else _Worker(function), task)
                for task in islice(waiting, processes - len(busy))
            ]
            busy.update((worker.pipe, (worker, task)) for worker, task in new)
            for worker, task in new:
                worker.give(task)
            if not busy:
                return
            for pipe in connection.wait(list(busy)):
                assert isinstance(pipe, connection.Connection)
                worker, task = busy.pop(pipe)
                result = worker.take()
                if not isinstance(result, WorkerDied):
                    idle.append(worker)
                yield task, result
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            worker.stop()


class _Worker(Generic[Task, Result]):
    def __init__(self, function: Callable[[Task], Result]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, function), daemon=True)
        # A worker inherits that it ignores Ctrl-C, so there is no moment when it does not.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
        theirs.close()

    def give(self, task: Task) -> None:
        # To a worker that died while idle; ``take`` finds out.
        with suppress(BrokenPipeError):
            self.pipe.send(task)

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


def _serve(pipe: connection.Connection, function: Callable[[Any], Any]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # A parent that was killed may be noticed here first, in the middle of a task's bytes.
    with suppress(EOFError, ConnectionError):
        while True:
            pipe.send(function(pipe.recv()))


def _end_with_parent() -> None:
    """A parent that was killed cannot stop its workers; they must not work on unseen."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
