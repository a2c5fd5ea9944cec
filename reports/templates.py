"""Create the Jinja environment of all pages, and embed scripts and data in a page.

The filters format numbers and names for readers, with a dash for an unknown value.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosig.reports.texts import duration_range_text, duration_text, printable, rate_text, ratio_text, volume_text

if TYPE_CHECKING:
    from jinja2 import Environment

_UNKNOWN = "\N{EN DASH}"
#: maximum length of a name from the input
MAX_NAME_LENGTH = 300


@cache
def environment(folder: Path) -> Environment:
    """Return the environment of a folder of templates: values are escaped, and a missing value is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    env = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {name: _show_none_as_unknown(text) for name, text in _FILTERS.items()}
    return env


def content_policy(script: str, style: str) -> str:
    """Return a content security policy that permits a page's own inline script and style, and nothing else."""
    script_hash, style_hash = (
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in (script, style)
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'sha256-{style_hash}'; "
        "base-uri 'none'; form-action 'none'"
    )


def script_json(document: Mapping[str, Any]) -> str:
    """Serialize to JSON that is safe inside a script element: ASCII only, with markup characters escaped."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _show_none_as_unknown(text: Callable[..., str]) -> Callable[..., str]:
    @wraps(text)
    def format_value(value: Any, *options: Any) -> str:
        return _UNKNOWN if value is None else text(value, *options)

    return format_value


def _instant(value: datetime | str, precision: str = "minutes") -> str:
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(' ', precision)} UTC"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


_FILTERS: dict[str, Callable[..., str]] = {
    "volume": volume_text,
    "rate": rate_text,
    "duration": duration_text,
    "duration_range": duration_range_text,
    "ratio": ratio_text,
    "share": lambda value: "less than 0.1%" if 0 < value < 0.001 else ratio_text(value),
    "change": "{:+.0%}".format,
    "number": _number,
    "instant": _instant,
    "name": lambda value: printable(value, MAX_NAME_LENGTH),
    "word": lambda value: str(value).replace("_", " "),
}
