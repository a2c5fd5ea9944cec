"""The pages themselves, as HTML: what stands on them without a script, and the places that scripts fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from iosig.reports.site import pages
from iosig.reports.site.figures import Page, command_line
from iosig.reports.site.library import PARTS
from iosig.reports.site.packing import Content
from iosig.reports.texts import duration_text, printable, ratio_text, volume_text

if TYPE_CHECKING:
    from jinja2 import Environment

#: nothing from elsewhere, no script and no style in the page itself
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
_MOST_CHARACTERS, _MOST_QUERY_CHARACTERS = 300, 4000
_UNKNOWN = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class About:
    """What every page says of the release: its id, when it was made, what its checks said, and what is hidden."""

    release_id: str
    created_at: str
    verdict: str
    code_version: str
    has_pseudonyms: bool = False


def shell(page: Page, about: About, told: Mapping[str, Any] | None = None) -> Content:
    """Return a page; told: what its own template is given beside the page and the release."""
    template = _environment().select_template([f"{page.name}.html", "base.html"])
    text = template.render(
        page=page,
        about=about,
        pages=[one for one in pages.PAGES if one.is_in_navigation],
        policy=POLICY,
        **(told or {}),
    )
    return Content(page.file_name, text.encode())


def root_page(releases: Sequence[tuple[str, str, str]]) -> Content:
    """Return the page beside the releases' folders, which leads to the latest.

    releases: of each its id, when it was made, and its verdict.
    """
    text = _environment().get_template("root.html").render(releases=releases, policy=POLICY)
    return Content("index.html", text.encode())


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(PARTS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= _FILTERS
    return made


def application_hash(row: Mapping[str, Any]) -> str:
    """Return what stands after the # where a page links to a signature: its application, file system and direction."""
    parts = [*row["application_id"].split("/"), row["filesystem"], row["direction"]]
    return "/".join(quote(part, safe="") for part in parts)


def run_hash(row: Mapping[str, Any]) -> str:
    """Return what stands after the # where a page links to a run: its cluster, job and start."""
    started_s = row["started_at"].timestamp()
    parts = [row["cluster"], row["job_id"], f"{started_s:.0f}" if started_s.is_integer() else repr(started_s)]
    return "/".join(quote(part, safe="") for part in parts)


def _known(value: Any, text: Callable[[Any], str]) -> str:
    return _UNKNOWN if value is None else text(value)


def _instant(value: Any) -> str:
    known = datetime.fromisoformat(value) if isinstance(value, str) else value
    return _UNKNOWN if known is None else f"{known.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _number(value: Any) -> str:
    return _known(value, lambda known: f"{known:,}" if isinstance(known, int) else f"{known:.3g}")


def _name(value: Any) -> str:
    return _known(value, lambda known: printable(known, _MOST_CHARACTERS))


def _query(query: str) -> str:
    return " ".join(query.split())


#: what templates call numbers and names by
_FILTERS: dict[str, Callable[[Any], object]] = {
    "volume": lambda value: _known(value, volume_text),
    "number": _number,
    "instant": _instant,
    "name": _name,
    "ratio": lambda value: _known(value, ratio_text),
    "change": lambda value: _known(value, "{:+.0%}".format),
    "command_line": lambda query: printable(command_line(query), _MOST_QUERY_CHARACTERS),
    "is_general": lambda query: "$" not in query,
    "asked": _query,
    "application_hash": application_hash,
    "id_hash": lambda name: "/".join(quote(part, safe="") for part in name.split("/")),
    "run_hash": run_hash,
    "duration": lambda value: _known(value, duration_text),
}
