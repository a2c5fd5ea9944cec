"""Render the tutorials, which are marimo notebooks, as Markdown pages of the documentation site.

Each notebook runs once. The HTML that marimo exports loads its program from another host, and has neither the site's
navigation nor its search and colors; a page has them all.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
from collections.abc import Iterator
from datetime import datetime
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from iosig.reports.inline_svg import render_svg
from iosig.reports.panels import Picture

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
_PLAIN_TEXT = re.compile(r"<pre[^>]*>(.*)</pre>", re.DOTALL)


def render_page(notebook: Path) -> str:
    """Run a notebook, and return its text, code and outputs as Markdown; an exception of a cell is raised."""
    outputs, _ = _load(notebook).app.run()
    title, *parts = (
        part
        for number, ((code, is_hidden), output) in enumerate(zip(list_cells(notebook), outputs, strict=True))
        for part in (
            *([] if is_hidden else [f"```python\n{code}\n```"]),
            *([] if output is None else [_render_output(output, f"{notebook.stem.replace('_', '-')}-{number}")]),
        )
    )
    source = (
        f"This page is the output of a [notebook]({notebook.name}). Run and change it with "
        f"`uv run --group docs marimo edit docs/tutorials/{notebook.name}`."
    )
    return "\n\n".join([title, source, *parts, ""])


def _load(notebook: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(notebook.stem, notebook)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_cells(notebook: Path) -> Iterator[tuple[str, bool]]:
    """Yield the code of each cell in the order of the file, and whether a reader does not see it."""
    text = notebook.read_text(encoding="utf-8")
    lines = text.splitlines()
    for function in ast.parse(text).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        (decorator,) = function.decorator_list
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        code = "\n".join(lines[function.body[0].lineno - 1 : function.body[-1].lineno - 1])
        yield textwrap.dedent(code).strip(), any(keyword.arg == "hide_code" for keyword in keywords)


def _render_output(output: Any, name: str) -> str:
    if isinstance(output, Picture):
        return f'<div class="iosig-picture" markdown="0">{render_svg(output, name, "Picture of the code above")}</div>'
    if isinstance(output, pl.DataFrame):
        return _render_frame(output)
    if hasattr(output, "_repr_markdown_"):
        return textwrap.dedent(output._repr_markdown_()).strip()
    text: str = output._repr_html_()
    plain_text = _PLAIN_TEXT.fullmatch(text.strip())
    return f"```text\n{unescape(plain_text[1]).strip()}\n```" if plain_text else text


def _render_frame(frame: pl.DataFrame) -> str:
    rows = [frame.columns, ["---"] * frame.width, *(map(_format_cell, row) for row in frame.iter_rows())]
    note = "\n\nNo rows." if frame.is_empty() else ""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + note


def _format_cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = f"{value:,.10g}" if isinstance(value, float) else str(value)
    return text.replace("|", r"\|").replace("<", "&lt;")
