"""Input formats, one module each; a module here that has a `SOURCE` is a format that iosig can land.

A source recognizes its format from the content (`sniff`) and reads it into landed tables (`read`). It
yields frames that match the contract; a row that cannot be read becomes a row of `rejects`, with its
line, reason and remedy, and the rest goes on. A file that cannot be read at all raises `InputRefused`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import iosig.warehouse.sources
from iosig.warehouse.errors import InputRefused, UsageError, meant

if TYPE_CHECKING:
    import polars as pl

    from iosig.warehouse.contracts import Table

#: what an input tells of: it chooses the section of the settings that holds for it
Kind = Literal["jobs", "polls", "series", "traces", "extrapolations", "predictions", "counters"]

RAW_LIMIT_CHARS = 2000
HEAD_BYTES = 65536
PARQUET_MAGIC = b"PAR1"
#: the file system of what names none, where nobody said which
DEFAULT_FILESYSTEM = "default"
#: as Lustre names targets
TARGET_PATTERN = r"^(.+)-(?:OST|MDT)[0-9a-f]+"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the user or the settings say about an input beyond its content.

    `columns` maps our column names to the input's (`{"polled_at": "ts"}`); `time_zone` is the IANA zone of times that
    carry none, and `filesystem_zones` those of single file systems, which go before it; without a zone such times are
    refused. `direction` and `value` serve bare series: `value` is
    `counter` (cumulative bytes), `rate` (bytes per second) or `volume` (bytes in the interval). The first group of
    `target_pattern` is the file system in the name of a target.
    """

    filesystem: str | None = None
    time_zone: str | None = None
    direction: str | None = None
    value: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    target_pattern: str = TARGET_PATTERN
    filesystem_zones: Mapping[str, str] = field(default_factory=dict, repr=False)

    def zone_of(self, filesystem: str | None) -> str | None:
        """Return the zone of a file system's local times; None if it is not known."""
        own = self.filesystem or filesystem
        return self.filesystem_zones.get(own, self.time_zone) if own else self.time_zone


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one landed table, of exactly its schema."""

    table: Table
    rows: pl.DataFrame

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self.rows.height


@dataclass(frozen=True, slots=True)
class Head:
    """The start of an input, decompressed: what `sniff` decides upon.

    `columns` maps our column names to the input's, as the settings say it for polls. `path` is the input itself, for
    formats that tell themselves apart at their end.
    """

    name: str
    start: bytes
    columns: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None

    @property
    def text(self) -> str:
        """The start as text, whatever its bytes."""
        return self.start.decode("utf-8", "replace")

    @property
    def lines(self) -> list[str]:
        """The whole lines of the start, or its only line."""
        lines = self.text.splitlines()
        return lines[:-1] if len(lines) > 1 and len(self.start) >= HEAD_BYTES else lines


@dataclass(frozen=True, slots=True)
class Source:
    """One input format: its name, one line about it, what it tells of, how to recognize and how to read it."""

    name: str
    doc: str
    kind: Kind
    sniff: Callable[[Head], bool]
    read: Callable[[Path, Reading], Iterator[Batch]]
    #: formats whose content could also pass for a looser one are asked first
    precedence: int = 0
    #: the names of those files of a folder that together are one input of this format, none where there are none;
    #: None where an input is always a file
    owns: Callable[[Path], tuple[str, ...]] | None = None


@cache
def sources() -> tuple[Source, ...]:
    """Return every source of this package, the strictest first."""
    found = [importlib.import_module(name).SOURCE for name in _formats()]
    return tuple(sorted(found, key=lambda source: (-source.precedence, source.name)))


def _formats() -> Iterator[str]:
    """Yield the modules that declare a source; those that do the reading, which take long to import, do not."""
    for info in pkgutil.walk_packages(iosig.warehouse.sources.__path__, "iosig.warehouse.sources."):
        spec = find_spec(info.name)
        text = spec.loader.get_source(spec.name) if spec and isinstance(spec.loader, InspectLoader) else None
        if text is not None and "\nSOURCE = " in text:
            yield info.name


def named(name: str) -> Source:
    """Return the source of that name, or raise UsageError with the names there are."""
    for source in sources():
        if source.name == name:
            return source
    names = sorted(source.name for source in sources())
    raise UsageError(f"No format is called {name!r}.{meant(name, names)} There are: {', '.join(names)}.")


def owner(folder: Path, among: Source | None = None) -> tuple[Source, tuple[str, ...]] | None:
    """Return the source of which a folder is one input, and the names of its files that are; None for other folders.

    `among` asks that source alone.
    """
    for source in sources() if among is None else (among,):
        if source.owns is not None and (names := source.owns(folder)):
            return source, names
    return None


def recognize(head: Head) -> Source:
    """Return the first source that recognizes the content, or raise InputRefused."""
    for source in sources():
        if source.sniff(head):
            return source
    raise InputRefused(
        "The content fits no known format.", "Name it with --format; `iosig land --format help` lists the formats."
    )


def input_name(path: Path, source: Source | None) -> str:
    """Return an input's name; a trace that only has its form's or a number goes by its folders' names as well.

    `ios/8/raw` and `ios/8/raw.tar.zst` are so told from others: hundreds of traces may lie in folders of one name.
    """
    if source is None or source.kind != "traces":
        return path.name
    *folders, name = path.absolute().parts
    while folders[1:] and re.fullmatch(r"_?(?:raw|text|parquet|[0-9]+)", name.split("/")[0].split(".")[0]):
        name = f"{folders.pop()}/{name}"
    return name
