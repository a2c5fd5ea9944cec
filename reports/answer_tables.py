"""Format the result of a query as an HTML table, which notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from iosig.reports.texts import format_count, printable, volume_range_texts, volume_text

#: maximum number of rows that a notebook shows
MAX_ROWS = 20
#: maximum length of a name
_MAX_CHARS = 80
_UNKNOWN = "-"


def render_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], row_count: int) -> str:
    """Return a table with its caption above; None is shown as a dash.

    rows: the first ones of `row_count`.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = [f"<tr>{''.join(map(_render_cell, row))}</tr>" for row in rows]
    left_out = row_count - len(body)
    note = f"<p>and {format_count(left_out, 'more row')}</p>" if left_out > 0 else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>" if body else ""
    return f"<div><p>{escape(caption)}</p>{table}{note}</div>"


def _render_cell(value: object) -> str:
    if value is None:
        return f"<td>{_UNKNOWN}</td>"
    if isinstance(value, int | float):
        return f'<td align="right">{value:,}</td>'
    return f"<td>{escape(printable(value, _MAX_CHARS))}</td>"


def bytes_cell(value: float | None) -> str | None:
    """Format bytes; None stays None."""
    return None if value is None else volume_text(value)


def bytes_range_cell(value: float | None, low: float | None, high: float | None) -> str | None:
    """Format bytes with their range, such as "6.3 TB (5.9-6.6)"; None stays None."""
    if value is None:
        return None
    text, range_text = volume_range_texts(value, low, high)
    return text if low == high else f"{text} ({range_text})"
