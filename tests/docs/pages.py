"""A page of the documentation, taken apart: commands, what they print, numbers, links.

README.md and docs/*.md are read by markdown-it. The word behind the fence of a block says what
becomes of it: ``sh`` is run, ``sh long`` by ``make docs`` alone, ``sh run-by="tests/x.py"`` by that
test in surroundings of its own, ``sh as-in="camera.md"`` by that page, which has the same command,
``sh needs="GeoCalib"`` nowhere, ``sh exit=1`` has that exit code; ``text`` is what a command of the
page has printed. Two hidden comments speak to the tests:
``<!-- needs: README.md -->`` starts the page with what another page's commands have made,
``<!-- given: 0.2 2202 -->`` lists numbers that no command prints.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"\d{1,3}(?: \d{3})+(?!\d)|\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_PROSE_NUMBER = re.compile(
    rf"(?<![\w.])(?<![A-Za-z][-.])((?:(?<!\S)[-+])?(?:{NUMBER}))(?![A-Za-z])"
)
_COUNTING = 12
"""Whole numbers up to this one count as words, unless a cell of a table holds nothing else."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its line, the words behind the fence, the text."""

    line: int
    words: tuple[str, ...]
    text: str

    @property
    def language(self) -> str:
        """The first word, or nothing."""
        return self.words[0] if self.words else ""

    @property
    def is_long(self) -> bool:
        """Whether its commands take more than about a minute."""
        return "long" in self.words

    @property
    def needs(self) -> str | None:
        """What a bare machine lacks to run it."""
        return self._option("needs")

    @property
    def run_by(self) -> str | None:
        """The test that runs it."""
        return self._option("run-by")

    @property
    def as_in(self) -> str | None:
        """The page that runs the same commands."""
        return self._option("as-in")

    @property
    def exit_code(self) -> int:
        """That of its last command."""
        return int(self._option("exit") or 0)

    def _option(self, name: str) -> str | None:
        found = [word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")]
        return found[0] if found else None


@dataclass(frozen=True)
class Page:
    """What the tests look at; ``numbers``, ``links`` and ``spans`` (inline code) with lines."""

    path: Path
    blocks: tuple[Block, ...]
    numbers: tuple[tuple[int, str], ...]
    links: tuple[tuple[int, str], ...]
    spans: tuple[tuple[int, str], ...]
    anchors: frozenset[str]
    given: frozenset[str]
    needs: tuple[str, ...]

    @property
    def name(self) -> str:
        """lut.md, README.md."""
        return self.path.name

    @property
    def scripts(self) -> tuple[Block, ...]:
        """The blocks of commands."""
        return tuple(block for block in self.blocks if block.language == "sh")

    @property
    def own_scripts(self) -> tuple[Block, ...]:
        """Those that are run with the page."""
        return tuple(
            block for block in self.scripts if not (block.needs or block.run_by or block.as_in)
        )

    @property
    def quoted(self) -> tuple[Path, ...]:
        """The pages that run some of its commands."""
        names = dict.fromkeys(block.as_in for block in self.scripts if block.as_in)
        return tuple(page_path(name, _root_of(self.path)) for name in names)

    @property
    def neighbours(self) -> tuple[Path, ...]:
        """The pages it links to."""
        targets = (self.path.parent / link.partition("#")[0] for _, link in self.links)
        return tuple({path.resolve() for path in targets if path.suffix == ".md"})


def all_pages(root: Path = ROOT) -> list[Page]:
    """The README first, as others start from what it makes."""
    return [read_page(path) for path in (root / "README.md", *sorted((root / "docs").glob("*.md")))]


def read_page(path: Path) -> Page:
    """Take a page apart."""
    text = path.read_text(encoding="utf-8")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [(token, outer) for outer, token in zip([None, *tokens], tokens, strict=False)
              if token.type == "inline"]  # fmt: skip
    return Page(
        path=path,
        blocks=tuple(
            Block(_line(token), tuple(shlex.split(token.info)), token.content)
            for token in tokens
            if token.type == "fence"
        ),
        numbers=tuple(
            (_line(token), number)
            for token, outer in inline
            for number in _numbers(_prose(token), outer is not None and outer.tag == "td")
        ),
        links=tuple(
            (_line(token), str(child.attrs.get("href") or child.attrs.get("src")))
            for token, _ in inline
            for child in token.children or ()
            if child.type in ("link_open", "image")
        ),
        spans=tuple(
            (_line(token), child.content)
            for token, _ in inline
            for child in token.children or ()
            if child.type == "code_inline"
        ),
        anchors=frozenset(
            _anchor(token.content)
            for token, outer in inline
            if outer is not None and outer.type == "heading_open"
        ),
        given=frozenset(number for words in _comments(text, "given") for number in words),
        needs=tuple(name for words in _comments(text, "needs") for name in words),
    )


def page_path(name: str, root: Path = ROOT) -> Path:
    """Where README.md or a page of docs/ is."""
    return root / name if name == "README.md" else root / "docs" / name


def documented(page: str, run_by: str) -> list[str]:
    """The commands of a page that the test ``run_by`` runs, block by block."""
    return [block.text for block in read_page(page_path(page)).scripts if block.run_by == run_by]


def _root_of(page: Path) -> Path:
    return page.parent if page.name == "README.md" else page.parent.parent


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0


def _prose(token: Token) -> str:
    """The text without its code."""
    return "".join(
        {"text": child.content, "softbreak": " "}.get(child.type, "`" * (child.tag == "code"))
        for child in token.children or ()
    )


def _numbers(prose: str, in_table: bool) -> Iterator[str]:
    for match in _PROSE_NUMBER.finditer(prose):
        number = match[1].replace(" ", "")
        alone = in_table and prose.strip() == match[1]
        if alone or not (number.isdigit() and int(number) <= _COUNTING):
            yield number


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def _comments(text: str, kind: str) -> list[list[str]]:
    """The words of each ``<!-- kind (remark): words -->``."""
    found = re.findall(rf"<!--\s*{kind}\b[^:]*:(.*?)-->", text, re.DOTALL)
    return [words.split() for words in found]
