"""What differs between the pages in the repository and on the site that mkdocs makes of them.

The Markdown is the same. Pages that do not lie in docs/ are brought in (CONTRIBUTING.md, the
notebooks, ...), links to them are made to follow, and what speaks to the tests alone is taken out:
words behind the language of a fence, and the hidden comments (see tests/docs/pages.py).
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BROUGHT = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "third_party/kalibr/README.md": "third_party/kalibr.md",
    "examples/camera_from_photos.ipynb": "examples/camera_from_photos.md",
    "examples/lens_from_run_to_clip.ipynb": "examples/lens_from_run_to_clip.md",
}
"""Files of the repository, and their pages on the site."""
_PAGES = {**BROUGHT, "README.md": "index.md"}
_ORIGINS = {page: name for name, page in BROUGHT.items()}
_FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)
_COMMENT = re.compile(r"^<!-- *(?:needs|given)\b.*?-->\n?", re.MULTILINE | re.DOTALL)
_NAMED_BY_FILE = re.compile(r"\[([\w-]+\.md)\](?=\(([^)#\s]*))")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(?=[)#])")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Bring in the pages from outside docs/."""
    from mkdocs.structure.files import File

    for name, page in BROUGHT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        content = notebook_markdown(text) if name.endswith(".ipynb") else text
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as the site shows it."""
    from mkdocs.exceptions import PluginError

    try:
        return site_markdown(markdown, page.file.src_uri)
    except ValueError as error:
        raise PluginError(str(error)) from None


def site_markdown(markdown: str, page: str) -> str:
    """The text of a page without the tests' words, its links as they are on the site.

    Raises ``ValueError`` for a link to what the site does not have.
    """
    here = _ORIGINS.get(page, f"docs/{page}")

    def file_of(link: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))

    def titled(match: re.Match[str]) -> str:
        """A page that is called by its file has its title on the site."""
        return f"[{title_of(ROOT / file_of(match[2]))}]"

    def moved(match: re.Match[str]) -> str:
        target = file_of(match[1])
        if target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif target in _PAGES:
            target = _PAGES[target]
        else:
            raise ValueError(f"{here}: {match[1]} is not on the site; see docs/site_hooks.py.")
        return posixpath.relpath(target, posixpath.dirname(page) or ".")

    def prose(part: str) -> str:
        return _LINK.sub(moved, _NAMED_BY_FILE.sub(titled, _COMMENT.sub("", part)))

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        _FENCE.sub(r"\1", part) if part.startswith("```") else prose(part) for part in parts
    )


def title_of(path: Path) -> str:
    """The first heading of a page."""
    return path.read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]


def notebook_markdown(text: str) -> str:
    """The cells of a notebook that has no outputs."""
    cells = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        cells.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(cells) + "\n"
