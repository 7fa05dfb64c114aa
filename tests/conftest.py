"""For all tests."""

import signal

import pytest

# A shell that starts the tests in the background has them ignore Ctrl-C, and every command that
# they start and interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes share the system tests file by file, for what a file's tests make together.

    Before xdist looks at the groups, which it does once.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
