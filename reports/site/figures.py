"""What a page of the report declares: its figures, and for each the query that gives its numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

_NAMES = re.compile(r"\$([a-z_]+)")
#: what a shell reads within double quotes
_ACTIVE = frozenset('"$`\\!\n\r')


@dataclass(frozen=True, slots=True)
class Figure:
    """A part of a page: a picture or a table, what it shows, why that matters, and the query that gives its numbers."""

    name: str
    heading: str
    shows: str
    matters: str
    query: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its file's name, its title, one line on what it is for, its figures, and the libraries that it loads."""

    name: str
    title: str
    purpose: str
    figures: tuple[Figure, ...]
    libraries: tuple[str, ...] = ()
    is_in_navigation: bool = True

    @property
    def file_name(self) -> str:
        """The file of the page."""
        return f"{self.name}.html"

    def figure(self, name: str) -> Figure:
        """Return the figure of that name."""
        return next(figure for figure in self.figures if figure.name == name)


def command_line(query: str, values: Mapping[str, str] | None = None) -> str:
    """Return the command that asks a query, its names filled in; what stands in a name can do nothing."""
    filled = _NAMES.sub(lambda found: _literal((values or {})[found[1]]), " ".join(query.split()))
    quoted = shlex.quote(filled) if _ACTIVE & set(filled) else f'"{filled}"'
    return f"iosig sql {quoted}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
