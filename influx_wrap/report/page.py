"""A page of ours: one file that opens from a disk, without a network.

Content travels as JSON inside the page, and scripts put it in as text, never as markup. The
page's own policy forbids it to load anything.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f7f7f5; --card: #ffffff; --ink: #1d2327; --quiet: #66707a; --line: #d9dcdf;
  --mark: #0072b2; --warn: #b34700;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --card: #1e2226; --ink: #e4e7ea; --quiet: #98a2ab; --line: #363c42;
    --mark: #56b4e9; --warn: #ff9d57;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
header { position: sticky; top: 0; z-index: 2; background: var(--paper);
  border-bottom: 1px solid var(--line); padding: .7rem 1.2rem; display: flex; gap: 1.2rem;
  align-items: baseline; flex-wrap: wrap; }
h1 { font-size: 1.05rem; margin: 0; }
main { max-width: 66rem; margin: 0 auto; padding: 1rem 1.2rem 6rem; }
.help { color: var(--quiet); margin: 0 0 1rem; }
kbd { font: inherit; border: 1px solid var(--line); border-radius: 3px; padding: 0 .3em; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  margin: 0 0 .8rem; padding: .8rem; scroll-margin-top: 4.5rem; }
.card:focus, .card:focus-within { outline: 2px solid var(--mark); outline-offset: 1px; }
.number { font-variant-numeric: tabular-nums; }
button, select, input { font: inherit; color: inherit; background: var(--card);
  padding: .2rem .6rem; border: 1px solid var(--line); border-radius: 4px; }
button { cursor: pointer; }
button[aria-pressed="true"] { border-color: var(--mark); color: var(--mark); font-weight: 600; }
"""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function clamp(value, low, high) { return Math.min(Math.max(value, low), high); }
"""


def page(title: str, *, style: str, body: str, script: str, data: Mapping[str, object]) -> str:
    """The whole page; its script finds ``data``, ``make`` and ``clamp``, NaN is refused."""
    # Nothing in a name may end the script that it is in.
    content = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
  style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{content}</script>
<script>{SCRIPT}{script}</script>
</body>
</html>
"""
