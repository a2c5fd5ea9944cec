"""Render the HTML of the pages: the static content, and the elements that scripts fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from iosig.reports.site import pages
from iosig.reports.site.figures import Page, command_line
from iosig.reports.site.library import PARTS
from iosig.reports.site.packing import Content
from iosig.reports.templates import environment
from iosig.reports.texts import printable

if TYPE_CHECKING:
    from jinja2 import Environment

#: content security policy: no external resources, no inline scripts or styles
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
_MAX_QUERY_CHARS = 4000


@dataclass(frozen=True, slots=True)
class About:
    """Release metadata shown on every page: id, creation time, verdict, code version, and pseudonymization."""

    release_id: str
    created_at: str
    verdict: str
    code_version: str
    has_pseudonyms: bool = False


def shell(page: Page, about: About, variables: Mapping[str, Any] | None = None) -> Content:
    """Render a page; variables: additional variables for its template."""
    template = _environment().select_template([f"{page.name}.html", "base.html"])
    text = template.render(
        page=page,
        about=about,
        pages=[item for item in pages.PAGES if item.is_in_navigation],
        policy=POLICY,
        **(variables or {}),
    )
    return Content(page.file_name, text.encode())


def root_page(releases: Sequence[tuple[str, str, str]]) -> Content:
    """Render the root page, which links to the latest of the release folders.

    releases: id, creation time and verdict of each release.
    """
    text = _environment().get_template("root.html").render(releases=releases, policy=POLICY)
    return Content("index.html", text.encode())


@cache
def _environment() -> Environment:
    overlay = environment(PARTS).overlay()
    overlay.filters |= _FILTERS
    return overlay


def application_hash(row: Mapping[str, Any]) -> str:
    """Return the URL fragment that identifies a signature: application, file system and direction."""
    parts = [*row["application_id"].split("/"), row["filesystem"], row["direction"]]
    return "/".join(quote(part, safe="") for part in parts)


def run_hash(row: Mapping[str, Any]) -> str:
    """Return the URL fragment that identifies a run: cluster, job and start."""
    start_s = row["started_at"].timestamp()
    parts = [row["cluster"], row["job_id"], f"{start_s:.0f}" if start_s.is_integer() else repr(start_s)]
    return "/".join(quote(part, safe="") for part in parts)


def _id_hash(name: str) -> str:
    return "/".join(quote(part, safe="") for part in name.split("/"))


#: filters in addition to those shared by all templates
_FILTERS: dict[str, Callable[[Any], object]] = {
    "command_line": lambda query: printable(command_line(query), _MAX_QUERY_CHARS),
    "is_general": lambda query: "$" not in query,
    "asked": lambda query: " ".join(query.split()),
    "application_hash": application_hash,
    "id_hash": _id_hash,
    "run_hash": run_hash,
}
