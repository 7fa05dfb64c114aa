"""When the pages have their turn."""

import pytest

from tests.docs.pages import Page


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The README's commands take longest and are run before all else; pages that start from what
    they made come last, so that no process waits for them."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    page = item.callspec.params.get("page") if hasattr(item, "callspec") else None
    if not isinstance(page, Page) or item.get_closest_marker("system") is None:
        return 1
    return 0 if page.name == "README.md" else 3 if page.needs else 2
