"""A page of ours: one file that opens from a disk, without a network.

What a page is made of lies in ``assets``: ``shared/page.css`` and ``shared/page.js`` are in all
of them, ``shared/figures.js`` and Bokeh's own script in those with figures. Each page has a folder
of its own with its ``.html``, ``.css`` and ``.js``, before which further scripts of the folder may
come. Content travels as JSON inside the page, and scripts put it in as text, never as markup. The
page's own policy forbids it to load anything.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from influx_wrap.model.arrays import FloatArray

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
    refused, and what the further ``scripts`` of the folder define."""
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
{_asset("shared/page.css")}{_asset(f"{name}/{name}.css")}</style>
</head>
<body>
{_asset(f"{name}/{name}.html")}
<script type="application/json" id="data">{content}</script>
{libraries}<script>
{"".join(map(_asset, [*shared, *own]))}</script>
</body>
</html>
"""


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
