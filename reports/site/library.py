"""Provide the static assets of the pages: scripts, styles and vendored libraries.

Libraries are unmodified npm packages with their licenses; `vendored/manifest.json` lists their versions and hashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from iosig.reports.inline_svg import page_rules
from iosig.reports.site.packing import Content

_DOCS = re.compile(rb"^[ \t]*/\*\*\n(?:[ \t]*\*[^\n]*\n)+", re.M)
_HERE = Path(__file__).parent
VENDORED, PARTS = _HERE / "vendored", _HERE / "parts"
#: own scripts in the order in which they are joined: each uses the preceding ones
_SCRIPTS = (
    *("texts", "loading", "frame", "tables", "drawing", "search"),
    *("pages", "pages_of_days", "pages_of_all", "lineage", "main"),
)


def assets() -> Iterator[Content]:
    """Yield the files that every page shares: `assets/`."""
    script = "\n".join((PARTS / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    yield Content("assets/iosig.js", f'"use strict";\n(() => {{\n{script}}})();\n'.encode())
    style = f"{page_rules()}\n{(PARTS / 'style.css').read_text(encoding='utf-8')}"
    yield Content("assets/iosig.css", style.encode())
    for path in sorted(VENDORED.iterdir()):
        if path.suffix != ".json":
            yield Content(f"assets/{path.name}", _without_docs(path.read_bytes()))


def _without_docs(script: bytes) -> bytes:
    """Strip documentation comments (`/**` to `*/` on separate lines) from a script."""
    return _DOCS.sub(b"", script)
