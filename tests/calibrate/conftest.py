"""Fixtures of the calibration tests."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread() -> Iterator[None]:
    """The matrices are small and the tests run side by side: threads would only fight."""
    with threadpool_limits(limits=1):
        yield
