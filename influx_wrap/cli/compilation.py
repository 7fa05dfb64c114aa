"""Shows on a terminal that kernels are being compiled, which happens once after an installation.

A thread looks at the kernels' cache four times a second, so that it also sees what the worker
processes of a command compile. It prints a sentence on the terminal and shows the number of the
last kernel: in the bar of the command, or in one of its own where the command has none. Files and
pipes get neither, like other bars: whether a kernel is in the cache is not part of a result.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console

from influx_wrap.cli.progress import StepBar, bar_shown, count_kernels, spinner
from influx_wrap.compute.kernel_cache import Compilation, compilation_since

EVERY_S = 0.25
ANNOUNCEMENT = (
    "Compiling kernels, once after an installation: half a minute, or more on a busy machine."
)


@contextmanager
def announced() -> Iterator[None]:
    """Compilations in this context are shown on standard error, if that is a terminal."""
    if not sys.stderr.isatty() or sys.stderr is not sys.__stderr__:
        yield
        return
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(over,), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join(1.0)


def _tell(over: threading.Event) -> None:
    began_s = time.time()
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    own = spinner("compiling kernels", console)
    # A terminal that is gone is no reason to say more.
    with suppress(OSError, ValueError):
        _watch_cache(over, began_s, own)
        own.stop()


def _watch_cache(over: threading.Event, began_s: float, own: StepBar) -> None:
    is_told = False
    while not over.wait(EVERY_S):
        now = compilation_since(began_s)
        if now is None:
            continue
        if not is_told:
            is_told = True
            (bar_shown() or own).console.print(ANNOUNCEMENT)
        count_kernels(now.done)
        _show(own, now)


def _show(own: StepBar, now: Compilation) -> None:
    """The bar of its own, while this process compiles and shows no other one."""
    shown = bar_shown()
    if now.here and shown is None:
        own.start()
    elif not now.here or shown is not own:
        own.stop()
