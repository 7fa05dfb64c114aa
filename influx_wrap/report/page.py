"""A page of ours: one file that opens from a disk, without a network.

What a page is made of lies in ``assets``: ``shared/page.css`` and ``shared/page.js`` are in all
of them, ``shared/figures.js`` and Bokeh's own script in those with figures. Each page has a folder
of its own with its ``.html``, ``.css`` and ``.js``, before which further scripts of the folder may
come. Content travels as JSON inside the page, and scripts put it in as text, never as markup. The
page's own policy forbids it to load anything.

A page says what it is of, when it was written and by which version, on a screen and on every sheet
of paper. The time is the clock's, or that of the environment variable ``SOURCE_DATE_EPOCH``, with
which the same results give the same bytes.
"""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from influx_wrap import __version__
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray

SOURCE_DATE_EPOCH = "SOURCE_DATE_EPOCH"
"""Environment variable with seconds since 1970: what pages say in place of the time it is."""
MOST_ON_PAPER = 90
"""Characters of a title that fit below a sheet."""
BOKEH = ("bokeh.min.js", "bokeh-api.min.js")


def page(
    name: str,
    title: str,
    data: Mapping[str, object],
    *,
    figures: bool = False,
    scripts: Sequence[str] = (),
) -> str:
    """The whole page of the folder ``assets/<name>``; its script finds ``data``, in which NaN is
    refused, and what the further ``scripts`` of the folder define. ``title`` says what it is of."""
    made = f"Written {time_written()} by influx_wrap {__version__}"
    written = f'<p class="written">{html.escape(made)}</p>\n</header>'
    # Nothing in a name may end the script that it is in.
    content = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    shared = ["shared/page.js", *(["shared/figures.js"] if figures else [])]
    own = [f"{name}/{script}" for script in (*scripts, f"{name}.js")]
    libraries = ""
    if figures:
        libraries = "".join(f"<script>{bokeh_script(script)}</script>\n" for script in BOKEH)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
  style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>
{_asset("shared/page.css")}{_asset(f"{name}/{name}.css")}{_sheet_margins(title, made)}</style>
</head>
<body>
{_asset(f"{name}/{name}.html").replace("</header>", written, 1)}
<script type="application/json" id="data">{content}</script>
{libraries}<script>
{"".join(map(_asset, [*shared, *own]))}</script>
</body>
</html>
"""


def time_written() -> str:
    """Now to the minute, in UTC; the time of ``SOURCE_DATE_EPOCH`` if it is set."""
    stated = os.environ.get(SOURCE_DATE_EPOCH)
    if not stated:
        now = datetime.now(UTC)
    else:
        try:
            now = datetime.fromtimestamp(int(stated), UTC)
        except (ValueError, OverflowError, OSError):
            raise InputError(
                f"The environment variable {SOURCE_DATE_EPOCH} is {stated!r}: it has to be a whole "
                "number of seconds since 1970. Mend it or unset it."
            ) from None
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _sheet_margins(title: str, made: str) -> str:
    """Style that writes below every printed sheet what it is of, and which one it is."""
    return (
        f"@page {{ @bottom-left {{ content: {_css_text(f'{title[:MOST_ON_PAPER]}. {made}')}; }} "
        '@bottom-right { content: counter(page) " / " counter(pages); } }\n'
    )


def _css_text(text: str) -> str:
    """A string of a style sheet, in which no character has a meaning of its own."""
    plain = (c if c.isalnum() or c in " .,:-_" else f"\\{ord(c):x} " for c in text)
    return f'"{"".join(plain)}"'


def float32_text(values: FloatArray) -> str:
    """Numbers in single precision and base64, which ``decoded`` of ``shared/page.js`` reads."""
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


def jpeg_url(jpeg: bytes) -> str:
    """A picture as an address, so that it is in the page."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


@cache
def _asset(path: str) -> str:
    return files("influx_wrap.report").joinpath("assets", path).read_text(encoding="utf-8")


@cache
def bokeh_script(name: str) -> str:
    """One of ``BOKEH``, as the library brings it."""
    return files("bokeh").joinpath("server", "static", "js", name).read_text(encoding="utf-8")
