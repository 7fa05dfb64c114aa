"""Times that a busy machine disturbs little."""

from __future__ import annotations

import time
from collections.abc import Callable

REPEATS = 5


def shortest(work: Callable[[], object]) -> float:
    """Seconds of the processor in the fastest of several runs, after one to warm up."""
    work()
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)
