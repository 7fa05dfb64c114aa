"""``make docs``: run the commands of the pages, record what they print, say what has changed.

Each page is run by one bash in a folder of its own in build/docs, which has links to what a
checkout has; what another page needs of it stays there for the next time.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.docs.checks import faults
from tests.docs.commands import split_script
from tests.docs.pages import ROOT, Block, Page, all_pages
from tests.docs.recording import (
    Entry,
    differences,
    read_recording,
    recording_path,
    write_recording,
)

_LINKED = (".venv", ".venv-blender", "Makefile", "benchmarks", "docker", "docs", "drone", "tests")
_DONE = ".printed"
_MARK = "\x1e"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NOT_INHERITED = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "INFLUX_SEED", "FOCAL_LENGTH_GUESS")


class PageError(Exception):
    """A command that did not end as the page says."""


def run_page(
    page: Page,
    base: Path,
    wanted: Callable[[Block], bool],
    *,
    show: bool = False,
    limit_s: float | None = None,
) -> list[Entry]:
    """The wanted blocks of a page, run in ``base``, or what they printed when they were.

    Pages it needs are run first. Safe to call from several processes. ``show`` names each
    command on stderr when it begins.
    """
    folder = base / page.path.stem
    base.mkdir(parents=True, exist_ok=True)
    with (base / f"{page.path.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _DONE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            _furnish(folder)
            for needed in (other for other in all_pages() if other.name in page.needs):
                run_page(needed, base, wanted, show=show, limit_s=limit_s)
                _bring(base / needed.path.stem, folder)
            blocks = [block for block in page.own_scripts if wanted(block)]
            write_recording(folder / _DONE, _run(page, blocks, folder, show, limit_s))
    return read_recording(folder / _DONE)


def _furnish(folder: Path) -> None:
    """What a checkout has, without anything that would make ``make`` install it anew."""
    if not (ROOT / ".venv" / ".installed").exists():
        raise PageError("There is no .venv yet: make test sets it up.")
    folder.mkdir(parents=True)
    for name in _LINKED:
        (folder / name).symlink_to(ROOT / name)
    (folder / "pyproject.toml").touch()
    os.utime(folder / "pyproject.toml", (0, 0))


def _bring(source: Path, folder: Path) -> None:
    for path in source.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
        elif path.is_file() and path.name != _DONE and not (folder / path.name).exists():
            shutil.copy(path, folder / path.name)


def _run(
    page: Page, blocks: list[Block], folder: Path, show: bool, limit_s: float | None
) -> list[Entry]:
    commands, script = _script(blocks)
    environment = {k: v for k, v in os.environ.items() if k not in _NOT_INHERITED}
    environment["PATH"] = f"{folder / '.venv' / 'bin'}:{environment['PATH']}"
    environment |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
    log = folder.parent / f"{folder.name}.log"
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=None if show else subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = shell.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise PageError(f"{page.name}: not done after {limit_s:g} s.") from None
        finally:
            # What a page leaves in the background ends with it.
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    parts = log.read_bytes().decode(errors="replace").split(_MARK)[1:]
    entries = [Entry(c, _clean(part, folder)) for c, part in zip(commands, parts, strict=False)]
    if code:
        last = entries[-1] if entries else "bash"
        raise PageError(f"{page.name}: exit code {code} is not what the page says of\n{last}")
    return entries


def _script(blocks: list[Block]) -> tuple[list[str], str]:
    """The commands, and a script that puts a mark before each one's output."""
    commands, lines = [], ["exec 3>&2 2>&1", "set -e"]
    for block in blocks:
        parts = split_script(block.text)
        for command in parts:
            lines += [f"printf '{_MARK}'", f"echo {_quoted('$ ' + command)} >&3", command]
        if block.exit_code and parts:
            code = block.exit_code
            lines[-1] = f"set +e\n{lines[-1]}\n[ $? -eq {code} ] || exit 99\nset -e"
        commands += parts
    return commands, "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _clean(printed: str, folder: Path) -> str:
    """Without colours, bars that were overwritten, and places on this machine."""
    lines = _ESCAPE.sub("", printed).replace("\r\n", "\n").removesuffix("\n").split("\n")
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines] if printed else []
    text = "".join(f"{line}\n" for line in lines)
    for place in (folder, folder.resolve(), ROOT):
        text = text.replace(f"{place}/", "").replace(str(place), ".")
    return text


def record(page: Page, base: Path, long: str | None = None) -> list[str]:
    """Run a page and write its recording; the lines that have changed.

    ``long`` is "no" for all blocks but the long ones, or a text for the long ones that contain
    it and no others. What is not run keeps what was recorded.
    """

    def wanted(block: Block) -> bool:
        if long in (None, "no"):
            return long is None or not block.is_long
        return block.is_long and long in block.text

    path = recording_path(page)
    before = {entry.command: entry for entry in read_recording(path)}
    (base / page.path.stem / _DONE).unlink(missing_ok=True)
    now = {entry.command: entry for entry in run_page(page, base, wanted, show=True)}
    order = [c for block in page.own_scripts for c in split_script(block.text)]
    known = before | now
    if order:
        write_recording(path, [known[command] for command in order if command in known])
    return [text for c in now.keys() & before.keys() for text in differences(before[c], now[c])]


def main() -> int:
    """Returns 0 if the pages say what their commands print."""
    parser = argparse.ArgumentParser(prog="make docs", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="lut.md ...; all of them")
    parser.add_argument(
        "--long", metavar="TEXT", help="no: leave out long blocks; else those with TEXT alone"
    )
    arguments = parser.parse_args()
    pages = all_pages()
    unknown = set(arguments.pages) - {page.name for page in pages}
    if unknown:
        parser.error(f"there is no page {', '.join(sorted(unknown))}")
    wrong: list[str] = []
    for page in pages:
        if not arguments.pages or page.name in arguments.pages:
            print(f"== {page.name}", file=sys.stderr)
            try:
                for change in record(page, ROOT / "build" / "docs", arguments.long):
                    print(change)
            except PageError as error:
                wrong.append(str(error))
            wrong += faults(page)
    blocks = [(page.name, block) for page in pages for block in page.scripts]
    for name, block in blocks:
        if block.needs:
            print(f"{name}:{block.line}: not run, it needs {block.needs}")
        elif block.run_by:
            print(f"{name}:{block.line}: run by {block.run_by}")
        elif block.as_in:
            print(f"{name}:{block.line}: run by {block.as_in}")
    skipped = sum(block.needs is not None for _, block in blocks)
    print(f"{len(blocks)} blocks of commands, {skipped} of them not run, {len(wrong)} faults")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
