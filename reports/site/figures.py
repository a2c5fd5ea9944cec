"""Define how a page of the report is declared: its figures, and for each figure the query behind its numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

_NAMES = re.compile(r"\$([a-z_]+)")
#: characters that a shell interprets within double quotes
_ACTIVE = frozenset('"$`\\!\n\r')


@dataclass(frozen=True, slots=True)
class Figure:
    """Plot or table of a page, with its description, its relevance, and the query behind its numbers."""

    name: str
    heading: str
    shows: str
    matters: str
    query: str


@dataclass(frozen=True, slots=True)
class Page:
    """Declaration of one page of the report site: file name, title, purpose, figures, and required libraries."""

    name: str
    title: str
    purpose: str
    figures: tuple[Figure, ...]
    libraries: tuple[str, ...] = ()
    is_in_navigation: bool = True

    @property
    def file_name(self) -> str:
        """File name of the page in the report folder."""
        return f"{self.name}.html"

    def figure(self, name: str) -> Figure:
        """Look up a figure of this page by name."""
        return next(figure for figure in self.figures if figure.name == name)


def command_line(query: str, values: Mapping[str, str] | None = None) -> str:
    """Return the shell command that runs a query, with its parameters inserted and escaped."""
    filled = _NAMES.sub(lambda match: _literal((values or {})[match[1]]), " ".join(query.split()))
    quoted = shlex.quote(filled) if _ACTIVE & set(filled) else f'"{filled}"'
    return f"iosig sql {quoted}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
