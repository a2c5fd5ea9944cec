"""Define the interface of input formats; a module with a `SOURCE` defines a format that iosig can land.

A source recognizes its format from the content (`sniff`) and reads it into landed tables (`read`). It yields frames
that match the contract. An unreadable row becomes a row of `rejects` with its line, reason and remedy. A file that
cannot be read at all raises `InputRefused`.
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

#: content of an input, which selects the section of the settings that applies to the input
Kind = Literal["jobs", "polls", "series", "traces", "extrapolations", "predictions", "counters", "reviews"]

RAW_LIMIT_CHARS = 2000
HEAD_BYTES = 65536
PARQUET_MAGIC = b"PAR1"
#: name of the file system if neither the input nor the user nor the settings name one
DEFAULT_FILESYSTEM = "default"
#: pattern of Lustre's target names; the first group is the file system
TARGET_PATTERN = r"^(.+)-(?:OST|MDT)[0-9a-f]+"


@dataclass(frozen=True, slots=True)
class Reading:
    """Read options, which the user or the settings specify for an input.

    `columns` maps iosig's column names to the input's (`{"polled_at": "ts"}`). `time_zone` is the IANA zone of times
    without offset; `filesystem_zones` overrides it for single file systems. Without a zone, such times are refused.
    `direction` and `value` apply to bare series: `value` is `counter` (cumulative bytes), `rate` (bytes per second) or
    `volume` (bytes in the interval). The first group of `target_pattern` is the file system in the name of a target.
    `job_id` is the job of a trace that names none.
    """

    filesystem: str | None = None
    time_zone: str | None = None
    direction: str | None = None
    value: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    target_pattern: str = TARGET_PATTERN
    job_id: str | None = None
    filesystem_zones: Mapping[str, str] = field(default_factory=dict, repr=False)

    def zone_of(self, filesystem: str | None) -> str | None:
        """Look up the zone of a file system's local times; None if unknown."""
        name = self.filesystem or filesystem
        return self.filesystem_zones.get(name, self.time_zone) if name else self.time_zone


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one landed table, in exactly its schema."""

    table: Table
    rows: pl.DataFrame

    @property
    def height(self) -> int:
        """Number of rows, known without building the frame."""
        return self.rows.height


@dataclass(frozen=True, slots=True)
class Head:
    """The decompressed start of an input, from which `sniff` recognizes the format.

    `columns` maps iosig's column names to the input's, from the settings for polls. `path` is the input itself, for
    formats that are recognized by the end of a file.
    """

    name: str
    start: bytes
    columns: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None

    @property
    def text(self) -> str:
        """The start decoded as UTF-8, with undecodable bytes replaced."""
        return self.start.decode("utf-8", "replace")

    @property
    def lines(self) -> list[str]:
        """The complete lines of the start, or its only line."""
        lines = self.text.splitlines()
        return lines[:-1] if len(lines) > 1 and len(self.start) >= HEAD_BYTES else lines


@dataclass(frozen=True, slots=True)
class Source:
    """One input format, with the functions that recognize and read it.

    `doc` is a one-line description for users.
    """

    name: str
    doc: str
    kind: Kind
    sniff: Callable[[Head], bool]
    read: Callable[[Path, Reading], Iterator[Batch]]
    #: formats with a higher precedence, which are the stricter ones, are tried first
    precedence: int = 0
    #: function that returns the names of the files in a folder that together form one input of this format, if any;
    #: None if an input is always a file
    owns: Callable[[Path], tuple[str, ...]] | None = None
    #: function that returns the refusal of content that resembles the format, with the remedy, if it does
    find_near_miss: Callable[[Head], InputRefused | None] | None = None


@cache
def list_sources() -> tuple[Source, ...]:
    """Import every source of this package, in order of decreasing precedence."""
    sources = [importlib.import_module(name).SOURCE for name in _find_source_modules()]
    return tuple(sorted(sources, key=lambda source: (-source.precedence, source.name)))


def _find_source_modules() -> Iterator[str]:
    """Yield the names of the modules that declare a source, without modules that are only needed for reading."""
    for info in pkgutil.walk_packages(iosig.warehouse.sources.__path__, "iosig.warehouse.sources."):
        spec = find_spec(info.name)
        text = spec.loader.get_source(spec.name) if spec and isinstance(spec.loader, InspectLoader) else None
        if text is not None and "\nSOURCE = " in text:
            yield info.name


def get_source(name: str) -> Source:
    """Look up a source by its name; raise UsageError with the known names if the name is unknown."""
    for source in list_sources():
        if source.name == name:
            return source
    names = sorted(source.name for source in list_sources())
    raise UsageError(f"Unknown format {name!r}.{meant(name, names)} Known formats: {', '.join(names)}.")


def find_folder_source(folder: Path, among: Source | None = None) -> tuple[Source, tuple[str, ...]] | None:
    """Find the source that reads a folder as one input, and the names of the files that belong to it.

    `among` restricts the search to one source. Returns None for other folders.
    """
    for source in list_sources() if among is None else (among,):
        if source.owns is not None and (names := source.owns(folder)):
            return source, names
    return None


def recognize(head: Head) -> Source:
    """Return the first source that recognizes the content; otherwise raise the InputRefused of a near miss, if any."""
    for source in list_sources():
        if source.sniff(head):
            return source
    for source in list_sources():
        refuse_near_miss(source, head)
    raise InputRefused(
        "The content fits no known format.", "Name it with --format; `iosig land --format help` lists the formats."
    )


def build_near_miss(pattern: str, reason: str, remedy: str) -> Callable[[Head], InputRefused | None]:
    """Return a `find_near_miss` for content whose start contains a pattern; `^` matches at each line."""
    form = re.compile(pattern, re.MULTILINE)
    return lambda head: InputRefused(reason, remedy) if form.search(head.text) else None


def refuse_near_miss(source: Source, head: Head) -> None:
    """Raise InputRefused for content that only resembles the format."""
    if source.find_near_miss and (refusal := source.find_near_miss(head)):
        raise refusal


def get_input_name(path: Path, source: Source | None) -> str:
    """Name an input; a generic trace name (`raw`, a number) is prefixed with its folders' names.

    Hundreds of traces may have such a name, so `ios/8/raw` and `ios/8/raw.tar.zst` keep the names of their folders.
    """
    if source is None or source.kind != "traces":
        return path.name
    *folders, name = path.absolute().parts
    while folders[1:] and re.fullmatch(r"_?(?:raw|text|parquet|[0-9]+)", name.split("/")[0].split(".")[0]):
        name = f"{folders.pop()}/{name}"
    return name
