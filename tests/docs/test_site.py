"""The site of the docs, as far as it can be tried without building it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import influx_wrap
from docs.check_site import faults as dead
from docs.site_docstrings import as_markdown
from docs.site_hooks import BROUGHT, notebook_markdown, site_markdown
from influx_wrap.cli.main import main as influx_calib
from tests.docs.checks import link_faults
from tests.docs.pages import ROOT, read_page

MARKDOWN = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "third_party/*/*.md", "patches/*.md")
    for path in ROOT.glob(pattern)
)


class _Loader(yaml.SafeLoader):
    """mkdocs.yml names a function, which is left alone here."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def nav_pages(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    for part in entry.values() if isinstance(entry, dict) else entry:
        yield from nav_pages(part)


def test_every_page_is_in_the_navigation_once() -> None:
    nav = list(nav_pages(yaml.load((ROOT / "mkdocs.yml").read_text(), _Loader)["nav"]))
    pages = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert sorted(nav) == sorted([*pages, *BROUGHT.values()])


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(path: Path) -> None:
    assert not list(link_faults(read_page(path)))


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_lists_begin_after_an_empty_line(path: Path) -> None:
    """Without it GitHub shows a list, and the site a paragraph."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    glued = re.findall(r"^(?![-*] |\d+\. | |#|<!--)\S.*\n(?:[-*]|1\.) .*$", text, re.MULTILINE)
    assert not glued


def test_the_reference_has_the_names_of_the_library() -> None:
    named = re.findall(r"^::: influx_wrap\.(\S+)", (ROOT / "docs" / "api.md").read_text(), re.M)
    homes = {name: influx_wrap._HOMES[name] for name in influx_wrap.__all__}
    wanted = {
        home.replace(":", ".") if ":" in home else f"{home}.{name}" for name, home in homes.items()
    }
    assert sorted(named) == sorted(wanted)


def test_the_list_of_commands_is_complete() -> None:
    listed = re.findall(r"`influx-calib ([a-z]+)", (ROOT / "docs" / "commands.md").read_text())
    assert set(listed) == set(influx_calib.list_commands(click.Context(influx_calib)))


def test_what_is_for_the_tests_does_not_come_to_the_site() -> None:
    page = (
        'Text.\n\n```sh needs="a drone"\nls # [x](y.md)\n```\n\n<!-- given: 1\n2 -->\n'
        "[a](../CONTRIBUTING.md#style) [b](lut.md#x) [c](#here) [d](https://e.org/f.md)\n"
    )
    assert site_markdown(page, "python.md") == (
        "Text.\n\n```sh\nls # [x](y.md)\n```\n\n"
        "[a](contributing.md#style) [b](lut.md#x) [c](#here) [d](https://e.org/f.md)\n"
    )
    assert site_markdown("[camera.md](camera.md#what-to-film)", "python.md") == (
        "[One camera, in one command](camera.md#what-to-film)"
    )
    assert site_markdown("[a](docs/lut.md)", "contributing.md") == "[a](lut.md)"
    assert site_markdown("[a](../../docs/lut.md)", "third_party/kalibr.md") == "[a](../lut.md)"


def test_a_link_that_leaves_the_site_is_refused() -> None:
    with pytest.raises(ValueError, match=r"docs/python.md: ../Makefile is not on the site"):
        site_markdown("[a](../Makefile)", "python.md")


def test_a_notebook_is_a_page() -> None:
    name = next(name for name in BROUGHT if name.endswith(".ipynb"))
    page = notebook_markdown((ROOT / name).read_text())
    assert page.startswith("# ")
    assert "```python\nimport influx_wrap as iw" in page


def test_docstrings_keep_their_columns() -> None:
    text = (
        "One line.\n\nsize   of it\nname\n       that it has\n\nTwo words here.\n\n"
        "Example:\n    a = 1"
    )
    assert as_markdown(text) == (
        "One line.\n\n- `size`: of it\n- `name`: that it has\n\nTwo words here.\n\n"
        "Example:\n\n```python\na = 1\n```"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<a href='b.html#here'>", None),
        ("<a href='b.html#gone'>", "a.html: b.html#gone has no such element."),
        ("<a href='c.html'>", "a.html: c.html does not exist."),
        ("<img src='c.png'>", "a.html: c.png does not exist."),
        ("<a href='https://e.org'>", None),
        ("<script src='https://e.org/x.js'>", "a.html: https://e.org/x.js is loaded from another"),
        ("<link rel='stylesheet' href='https://e.org/x.css'>", "is loaded from another machine."),
    ],
)
def test_dead_links_are_found(tmp_path: Path, text: str, said: str | None) -> None:
    (tmp_path / "a.html").write_text(f"<html>{text}</html>")
    (tmp_path / "b.html").write_text("<h1 id='here'>b</h1>")
    found, _ = dead(tmp_path.resolve())
    assert len(found) == (said is not None)
    assert said is None or said in found[0]
