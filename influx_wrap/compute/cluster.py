"""Work spread over the machines of a Dask cluster, in the shape of ``processes.parallel``.

The scheduler knows which worker holds which task: one that is lost with its worker is given
to another, so a worker costs a retry. A task at which worker after worker dies is answered
by ``WorkerDied``. There are never more tasks out than workers, for two reasons: tasks may be
many and large, and the scheduler blames the death of a worker on all tasks that wait there.

An answer is to be the same bytes wherever it was computed, so a worker with other versions is
refused, and one with several threads too: the thread limits of numerical libraries are a
process's, and tasks side by side would undo each other's.
"""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
import re
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from influx_wrap.compute import arithmetic
from influx_wrap.compute.processes import WorkerDied
from influx_wrap.compute.provenance import versions
from influx_wrap.errors import InputError, install_line

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.diagnostics.plugin import NannyPlugin

log = logging.getLogger(__name__)

Task = TypeVar("Task")
Result = TypeVar("Result")

CONNECT_S = 10.0
PATIENCE_S = 60.0
"""How long a cluster may be without any worker, as one that grows on demand is at first."""

RETRIES = 2
"""How often a task is repeated that raised, on a worker whose disk is full for one."""

POLL_S = 1.0
KEPT = "What is finished is kept; the same command goes on from there."

_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(\d{1,5})")
_LOGGERS = ("distributed", "distributed.client", "tornado.application")


def check_address(address: str) -> None:
    """Refuse what is not ``tcp://HOST:PORT`` or ``tls://HOST:PORT``."""
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[3]) < 1 << 16:
        raise InputError(
            f"{address!r} is not the address of a scheduler, such as tcp://10.0.0.1:8786."
        )


@contextmanager
def connected(address: str, *, patience_s: float = PATIENCE_S) -> Iterator[Cluster]:
    """The cluster whose scheduler is at ``address``, with the workers it has now checked.

    Raises ``InputError`` if there is no scheduler, or if a worker cannot be used.
    """
    check_address(address)
    try:
        from distributed import Client
    except ImportError:
        raise InputError(f"a cluster needs dask.distributed: {install_line('cluster')}.") from None
    if address.startswith("tls://"):
        _check_certificates()
    with _quiet():
        try:
            asyncio.run(asyncio.wait_for(_greet(address), CONNECT_S))
            client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except Exception as error:
            log.info("%s: %r", address, error)
            trust = ""
            if address.startswith("tls://"):
                trust = " that trusts this machine's certificate, and that it trusts,"
            raise InputError(
                f"no Dask scheduler{trust} answers at {address} within {CONNECT_S:.0f} s. Start "
                "one there with: dask scheduler."
            ) from None
        try:
            cluster = Cluster(client, address, patience_s)
            cluster.check_workers()
            yield cluster
        finally:
            # A scheduler that is gone cannot be told.
            with suppress(Exception):
                client.close(timeout=2)


def _check_certificates() -> None:
    """Refuse ``tls://`` without what it needs, which Dask would report as a timeout."""
    from distributed.security import Security

    asked: dict[str, Any] = Security().get_tls_config_for_role("client")
    keys = {"ca_file": "ca-file", "cert": "client.cert", "key": "client.key"}
    missing = [f"distributed.comm.tls.{key}" for name, key in keys.items() if not asked.get(name)]
    if missing:
        raise InputError(
            f"tls:// needs certificates, and Dask's configuration has no {', '.join(missing)}: "
            "docs/scale.md says how to set them."
        )
    for name, key in keys.items():
        if not Path(str(asked[name])).is_file():
            raise InputError(f"{asked[name]} does not exist; distributed.comm.tls.{key} names it.")


async def _greet(address: str) -> None:
    """Shake hands and leave: the client itself would wait for ever for a hand to shake."""
    from distributed.comm.core import connect
    from distributed.security import Security

    comm = await connect(address, timeout=CONNECT_S, **Security().get_connection_args("client"))
    await comm.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the messages of the client itself: what is wrong is said in our own words."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


class Cluster:
    """A connection to a scheduler; made by ``connected``."""

    def __init__(self, client: Client, address: str, patience_s: float) -> None:
        self._client = client
        self._address = address
        self._patience_s = patience_s
        self._last_seen_s = time.monotonic()
        self._counted_s, self._n_counted = -math.inf, 0

    def check_workers(self) -> None:
        """Refuse workers whose answers might not be ours."""
        self._n_workers()
        self._settle_arithmetic()
        with self._watched():
            found: Mapping[str, object] = self._client.run(_problem, _expected(), on_error="return")
        for worker, problem in sorted(found.items()):
            if isinstance(problem, OSError):
                continue  # It ended just now.
            if isinstance(problem, Exception):
                problem = f"cannot run influx_wrap ({type(problem).__name__}: {problem})"
            if problem is not None:
                raise _unlike(worker, str(problem))

    def _settle_arithmetic(self) -> None:
        """A worker loads numpy before influx_wrap: its nanny starts it anew with the settings."""
        if arithmetic.name() != arithmetic.LEVEL:
            return
        with self._watched():
            found = self._client.run(arithmetic.name, on_error="return")
            names = {name for name in found.values() if isinstance(name, str)}
            if names - {arithmetic.LEVEL}:
                self._client.register_plugin(_settling_nannies())

    def parallel(
        self, function: Callable[[Task], Result], tasks: Iterable[Task]
    ) -> Generator[tuple[Task, Result | WorkerDied], None, None]:
        """Every task with its result, as they are completed.

        A task is taken from ``tasks`` when there is a worker for it, not before.
        ``function`` must be importable by the workers. When the generator is closed, tasks
        that wait are cancelled; a worker ends the one at hand unheard. Raises ``InputError``
        if the scheduler is lost, or all workers are for too long.
        """
        waiting, expected = iter(tasks), _expected()
        busy: dict[Future[Any], Task] = {}
        done: SimpleQueue[Future[Any]] = SimpleQueue()
        try:
            while True:
                free = max(self._n_workers(), 1) - len(busy)
                for task in islice(waiting, max(free, 0)):
                    future = self._send(pickle.dumps((expected, function, task), protocol=5))
                    busy[future] = task
                    future.add_done_callback(done.put)
                if not busy:
                    return
                try:
                    future = done.get(timeout=POLL_S)
                except Empty:
                    # To see that there is still a cluster.
                    continue
                yield busy.pop(future), self._result(future)
        finally:
            if busy and self._client.status == "running":
                with suppress(Exception):
                    self._client.cancel(list(busy), force=True)

    def _send(self, message: bytes) -> Future[Any]:
        with self._watched():
            return self._client.submit(
                _answer, message, key=f"influx-{uuid.uuid4().hex}", retries=RETRIES, pure=False
            )

    def _result(self, future: Future[Any]) -> Any:
        """What the function returned, or ``WorkerDied``."""
        from distributed import KilledWorker

        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                deaths = error.allowed_failures + 1
                return WorkerDied(None, f"{deaths} workers in a row ended at it")
            return WorkerDied(None, f"{type(error).__name__}: {error}")
        if future.status != "finished":
            raise self._lost()
        with self._watched():
            answer = future.result(timeout=self._patience_s)
        if isinstance(answer, _Unlike):
            raise _unlike(answer.worker, answer.problem)
        return answer

    def _n_workers(self) -> int:
        """How many workers there are, or were just now; refuses those with several threads."""
        now_s = time.monotonic()
        if now_s - self._counted_s < POLL_S:
            return self._n_counted
        with self._watched():
            threads = self._client.nthreads()
        self._counted_s, self._n_counted = now_s, len(threads)
        if threads:
            self._last_seen_s = now_s
        elif now_s - self._last_seen_s > self._patience_s:
            raise InputError(
                f"the scheduler at {self._address} has had no workers for "
                f"{math.ceil(self._patience_s)} s. Start some with: dask worker {self._address} "
                f"--nthreads 1 --nworkers -1. {KEPT}"
            )
        for worker, n_threads in threads.items():
            if n_threads != 1:
                raise InputError(
                    f"the worker {worker} has {n_threads} threads, but needs to be a process "
                    "with one. Start it with: dask worker --nthreads 1 --nworkers N."
                )
        return self._n_counted

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """A scheduler that goes away is an ``InputError``, whatever the client says of it."""
        try:
            yield
        except Exception as error:
            log.info("%s: %r", self._address, error)
            raise self._lost() from None

    def _lost(self) -> InputError:
        return InputError(f"the scheduler at {self._address} does not answer any more. {KEPT}")


def _settling_nannies() -> NannyPlugin:
    """Has nannies start their workers anew, with what libraries read before anything is imported.

    Classes of this module's own would need distributed at import; this one travels by value.
    """
    from distributed.diagnostics.plugin import NannyPlugin

    class SettleArithmetic(NannyPlugin):
        name = "influx-arithmetic"
        restart = True

        def __init__(self, environment: dict[str, str]) -> None:
            self.environment = environment

        async def setup(self, nanny: Any) -> None:
            nanny.pre_spawn_env.update(self.environment)

    return SettleArithmetic(arithmetic.ENVIRONMENT)


def _unlike(worker: str, problem: str) -> InputError:
    return InputError(
        f"the worker {worker} {problem}. Install the same versions on all machines. {KEPT}"
    )


@dataclass(frozen=True)
class _Unlike:
    """In place of an answer: a worker that came later is not like the others."""

    worker: str
    problem: str


def _expected() -> dict[str, str]:
    return {**versions(), "distributed": metadata.version("distributed")}


def _problem(expected: Mapping[str, str]) -> str | None:
    """On a worker: how its versions differ from the client's; None if they do not."""
    here = _expected()
    differences = [
        f"{name} {here.get(name)} in place of {version}"
        for name, version in expected.items()
        if here.get(name) != version
    ]
    return f"has {', '.join(differences)}" if differences else None


def _answer(message: bytes) -> Any:
    """On a worker: what the function says to the task."""
    from distributed import get_worker

    expected, function, task = pickle.loads(message)
    problem = _problem(expected)
    return function(task) if problem is None else _Unlike(get_worker().address, problem)
