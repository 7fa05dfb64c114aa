"""Is anything dead on the site? ``python docs/check_site.py build/site``

Every link and picture of every page has to lead to a file of the site, an anchor to an element of
it, and nothing may be loaded from another machine. Links to other places are counted, not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "src")}
_LOADING_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect"}


class _Page(HTMLParser):
    """Where a page leads to, and the names of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.names |= {value for key in ("id", "name") if (value := found.get(key))}
        for key, value in attrs:
            if not value:
                continue
            if (tag, key) in LOADED:
                self.loaded.append(value)
            elif tag == "link" and key == "href":
                relations = set((found.get("rel") or "").split())
                (self.loaded if relations & _LOADING_RELATIONS else self.links).append(value)
            elif key == "href":
                self.links.append(value)


def faults(site: Path) -> tuple[list[str], int]:
    """What is dead, a sentence for each, and the number of links looked at."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    dead, seen = [], 0
    for path, page in pages.items():
        here = path.relative_to(site)
        for address in page.loaded:
            if urlsplit(address).netloc:
                dead.append(f"{here}: {address} is loaded from another machine.")
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            # The page of what is not found has addresses from the site's root.
            base = site if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                dead.append(f"{here}: {address} does not exist.")
            elif parts.fragment and unquote(parts.fragment) not in pages[target].names:
                dead.append(f"{here}: {address} has no such element.")
    return dead, seen


def main(site: Path) -> int:
    """Print what is dead; the exit code."""
    if not (site / "index.html").exists():
        print(f"{site} has no index.html: make docs-site builds it.", file=sys.stderr)
        return 2
    site = site.resolve()
    dead, seen = faults(site)
    print("\n".join(dead) or f"{seen} links within the site, all alive.")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
