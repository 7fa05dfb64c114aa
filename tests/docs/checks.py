"""What is wrong with a page, told in sentences; nothing is run for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from tests.docs.commands import OURS, command_faults, span_faults, split_script
from tests.docs.pages import ROOT, Block, Page, read_page
from tests.docs.recording import (
    Entry,
    is_rounding,
    numbers_in,
    quotes,
    read_recording,
    recording_path,
)

_MACHINE = re.compile(r"(?<![\w.])/(?:tmp|home|work|root|Users)/|\b20\d\d-\d\d-\d\d\b")


def faults(page: Page) -> list[str]:
    """All of them, each with its line."""
    checks = (link_faults, _block_faults, _recording_faults, _quote_faults, _number_faults)
    return [f"{page.name}:{line}: {text}" for check in checks for line, text in check(page)]


def link_faults(page: Page) -> Iterator[tuple[int, str]]:
    """Links within the repository that lead nowhere."""
    for line, link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if not target.exists():
            yield line, f"{link} does not exist."
        elif anchor and anchor not in read_page(target).anchors:
            yield line, f"{name or 'the page'} has no heading for #{anchor}."


def _block_faults(page: Page) -> Iterator[tuple[int, str]]:
    for block in page.blocks:
        if block.language == "sh":
            for command in split_script(block.text):
                for fault in command_faults(command):
                    yield block.line, fault
            if block.run_by and not _runs(ROOT / block.run_by, page.name):
                yield block.line, f"{block.run_by} does not run this page's commands."
            if block.as_in:
                yield from _not_as_in(block, page)
        elif block.language == "python":
            try:
                compile(block.text, page.name, "exec")
            except SyntaxError as error:
                yield block.line, f"this is not Python: {error}."
        elif not block.language and any(
            line.startswith(tuple(f"{name} " for name in OURS)) for line in block.text.splitlines()
        ):
            yield block.line, "commands belong into a block that is marked sh."
    for line, span in page.spans:
        for fault in span_faults(span):
            yield line, fault


def _not_as_in(block: Block, page: Page) -> Iterator[tuple[int, str]]:
    recorded = {entry.command for entry in _recorded_in(page)}
    for command in split_script(block.text):
        if command not in recorded:
            yield block.line, f"{block.as_in} does not run {command.splitlines()[0]}"


def _recorded_in(page: Page) -> list[Entry]:
    """What the commands of a page have printed, those that other pages run included."""
    pages = [page, *(read_page(path) for path in page.quoted if path.exists())]
    return [entry for one in pages for entry in read_recording(recording_path(one))]


def _runs(test: Path, page: str) -> bool:
    return test.is_file() and f'documented("{page}"' in test.read_text(encoding="utf-8")


def _recording_faults(page: Page) -> Iterator[tuple[int, str]]:
    on_page = [command for block in page.own_scripts for command in split_script(block.text)]
    recorded = read_recording(recording_path(page))
    if on_page != [entry.command for entry in recorded]:
        known = {entry.command for entry in recorded}
        missing = [command.splitlines()[0] for command in on_page if command not in known]
        what = f"not recorded: {'; '.join(missing)}" if missing else "recorded in another order"
        yield 1, f"{what}\n  mend it with make docs PAGES={page.name}"
    for entry in recorded:
        for line in str(entry).splitlines():
            if _MACHINE.search(line):
                yield 1, f"the recording tells of a machine or a day: {line}"


def _quote_faults(page: Page) -> Iterator[tuple[int, str]]:
    printed = "".join(entry.output for entry in _recorded_in(page))
    for block in page.blocks:
        if block.language == "text" and not quotes(printed, block.text):
            yield block.line, "no command of the page has printed this."


def _number_faults(page: Page) -> Iterator[tuple[int, str]]:
    sources = [page, *(read_page(path) for path in page.neighbours if path.exists())]
    printed = numbers_in(_recorded_in(page))
    for source in sources:
        printed |= numbers_in(read_recording(recording_path(source)))
    first = {number: line for line, number in reversed(page.numbers)}
    for number, line in sorted(first.items(), key=itemgetter(1)):
        if number.lstrip("+-") not in page.given and not is_rounding(number, printed):
            yield line, f"{number} was printed by no command, and is not given."
