"""For all tests."""

import os
import signal
from typing import Any

import pytest

import influx_wrap  # noqa: F401 - before numpy, so that its arithmetic is that of the command line

PAGES = "tests/docs/test_commands_run.py"

# Pages say when they were written: here always the same, for the same bytes.
os.environ["SOURCE_DATE_EPOCH"] = "1700000000"

# A shell that starts the tests in the background has them ignore Ctrl-C, and every command that
# they start and interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Processes share the system tests file by file, for what a file's tests make together.

    The pages of the docs share nothing that is not under a lock, and go one by one.
    """
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if file == PAGES else file

    return ByFile(config, log)
