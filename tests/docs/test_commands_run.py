"""The commands of README and docs, run as they stand; they print what is recorded of them."""

from pathlib import Path

import pytest

from tests.docs.pages import Page, all_pages
from tests.docs.record import run_page
from tests.docs.recording import Entry, differences, read_recording, recording_path


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """One folder for all pages, and for all processes of the tests."""
    session = tmp_path_factory.getbasetemp()
    return (session if worker_id == "master" else session.parent) / "docs"


@pytest.mark.system
@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_the_commands_of_a_page_print_what_is_recorded(page: Page, base: Path) -> None:
    recorded = {entry.command: entry for entry in read_recording(recording_path(page))}
    changed = [
        text
        for entry in run_page(page, base, lambda block: not block.is_long, limit_s=1800)
        for text in differences(recorded.get(entry.command, Entry(entry.command, "")), entry)
    ]
    if changed:
        pytest.fail("\n".join(changed), pytrace=False)
