"""README and docs against their recordings: outputs, numbers, links, commands that exist."""

import pytest

from tests.docs.checks import faults
from tests.docs.pages import Page, all_pages


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_a_page_says_what_its_commands_print(page: Page) -> None:
    found = faults(page)
    if found:
        pytest.fail("\n".join(found), pytrace=False)
