"""Tokenize the output of `lctl get_param *.*.job_stats` into headers, times and entries, block by block.

Lustre writes an entry as a list item (lprocfs_jobstats_seq_show in lustre/obdclass/lprocfs_jobstats.c). The first line
of an entry starts with `- job_id:`, and its other lines are indented. All other lines are headers, times that a
collector wrote, or other parameters of the same call, which are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters.samples import instant_us
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import open_decompressed, refusing_damage_after
from iosig.warehouse.sources.rows.rejects import RefusedRow

#: maximum size of a block [B]
BLOCK_BYTES = 16 << 20
ENTRY = b"- job_id:"
_TOKEN = b"job_stats:"
_NAMED = re.compile(rb"(?P<kind>[a-z]+)\.(?P<target>[!-<>-~]+)\.job_stats=(?:job_stats:)?[ \t]*")
_PARAMETER = re.compile(rb"[A-Za-z][\w.@:*/,+\[\] -]*=")
_TIME = re.compile(
    rb"#? ?(?P<time>[0-9]{10}(?:[.,][0-9]{1,9})?|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{5,}[^\n]{0,12})\s*"
)
#: end of entries, which is the first line that may be a time or a parameter
_AFTER = re.compile(rb"\n(?=#? ?[0-9]{4}|[A-Za-z][^\n]*=)")
#: line between entries that is not part of any entry
_STRAY = re.compile(rb"\n(?!- job_id:)[^ \n]")
#: content that may follow entries: times and empty lines up to the end or another parameter
_LOOSE = re.compile(
    rb"(?:#? ?[0-9]{4}[0-9T :.,Z+-]*\s*\n|\s*\n)*+(?:#? ?[0-9]{4}[0-9T :.,Z+-]*\s*\Z|\Z|[A-Za-z][^\n]*=)"
)
_COMPONENTS = {b"obdfilter": "ost", b"mdt": "mdt"}


class Stamp(NamedTuple):
    """A time line before snapshots [us since 1970]."""

    at_us: int


class Begin(NamedTuple):
    """Start of a target's entries, perhaps none; `target` is empty if no header names it."""

    line: int
    component: str
    target: str


class Entries(NamedTuple):
    """Complete entries from `line` on, without the `ENTRY` prefix of the first."""

    line: int
    content: bytes


#: token in the text
Event = Stamp | Begin | Entries | RefusedRow


def parse_events(path: Path, zone: str | None) -> Iterator[Event]:
    """Yield the events of a file in order; times without an offset are local in `zone`.

    Raises InputRefused at damage, and for an entry without an end within the line limit.
    """
    text = _Text(zone)
    for line, content in _blocks(path):
        yield from text.block(line, content)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield consecutive parts of a file that end at entry boundaries, each with the number of its first line."""
    line, pending = 1, b""
    with refusing_damage_after(lambda: line - 1), open_decompressed(path) as file:
        pending = file.read(BLOCK_BYTES)
        while content := file.read(BLOCK_BYTES):
            if cut := _find_last_start(pending):
                yield line, pending[:cut].replace(b"\r\n", b"\n")
                line += pending.count(b"\n", 0, cut)
            pending = pending[cut:] + content
    if pending:
        yield line, pending.replace(b"\r\n", b"\n")


def _find_last_start(content: bytes) -> int:
    """Return the offset of the last line that starts a new item; 0 if no line does."""
    max_bytes = current_limits().max_line_bytes
    place = len(content)
    while (place := content.rfind(b"\n", max(len(content) - max_bytes, 0), place)) > 0:
        after = content[place + 1 : place + 1 + len(_TOKEN)]
        if after and after[:1] not in b" \t\r\n" and not _TOKEN.startswith(after):
            return place + 1
    if len(content) > max_bytes:
        raise InputRefused(
            f"An entry is longer than {max_bytes:,} bytes (limits.max_line_bytes).",
            "Check that the file is output of lctl.",
        )
    return 0


@dataclass(slots=True)
class _Text:
    """Tokenizer, which is within entries, within another parameter, or outside of both."""

    zone: str | None
    is_among_entries: bool = False
    is_foreign: bool = False

    def block(self, line: int, content: bytes) -> Iterator[Event]:
        """Yield the events in a part of the text."""
        place = 0
        while (span := _header(content, place)) is not None:
            start, end, header = span
            yield from self._parse_between(line, content[place:start])
            line += content.count(b"\n", place, start)
            yield self._start_target(line, header)
            line += content.count(b"\n", start, end)
            place = end
        yield from self._parse_between(line, content[place:])

    def _start_target(self, line: int, header: bytes) -> Event:
        match = _NAMED.fullmatch(header.partition(b"\n")[0])
        self.is_among_entries, self.is_foreign = True, False
        if match is None:
            return Begin(line, "", "")
        if (component := _COMPONENTS.get(match["kind"])) is None:
            self.is_among_entries, self.is_foreign = False, True
            reason = "The job statistics are neither of obdfilter (OST) nor of mdt."
            return line, reason, "Collect the statistics of the targets.", _shown(header)
        return Begin(line, component, match["target"].decode())

    def _parse_between(self, line: int, content: bytes) -> Iterator[Event]:
        """Yield the events between two headers: entries first, then lines."""
        start = 0 if content.startswith(ENTRY) else content.find(b"\n" + ENTRY) + 1
        if not self.is_among_entries or not (start or content.startswith(ENTRY)):
            yield from self._parse_lines(line, content)
            return
        yield from self._parse_lines(line, content[:start])
        end, after = _end(content), None
        if stray := _STRAY.search(content, start, end):
            after = content.find(b"\n" + ENTRY, stray.start(), end) + 1
        sure = after or end
        yield Entries(line + content.count(b"\n", 0, start), content[start + len(ENTRY) : sure])
        if after:
            yield _refuse_unsure(line + content.count(b"\n", 0, after), content[after:end])
        yield from self._parse_lines(line + content.count(b"\n", 0, end), content[end:])

    def _parse_lines(self, line: int, content: bytes) -> Iterator[Event]:
        """Yield the events of lines outside entries; lines of other parameters are skipped."""
        for number, text in enumerate(content.split(b"\n") if content else (), start=line):
            if not text.strip():
                continue
            if (at_us := self._parse_time(text)) is not None:
                self.is_among_entries = self.is_foreign = False
                yield Stamp(at_us)
            elif _PARAMETER.match(text):
                self.is_among_entries, self.is_foreign = False, True
            elif not self.is_foreign and not text.startswith(b"#"):
                reason = "The line is neither an entry of job statistics, nor a header, nor a time."
                yield number, reason, "Check for a truncated file, or two concurrent writers.", _shown(text)

    def _parse_time(self, text: bytes) -> int | None:
        match = _TIME.fullmatch(text)
        return instant_us(match["time"].decode("utf-8", "replace"), self.zone) if match else None


def _header(content: bytes, place: int) -> tuple[int, int, bytes] | None:
    """Return start, end and text (one or two lines) of the next header; None if no header follows."""
    while (position := content.find(_TOKEN, place)) >= 0:
        start, end = content.rfind(b"\n", 0, position) + 1, content.find(b"\n", position) + 1 or len(content)
        line = content[start:end].rstrip()
        if line == _TOKEN:
            before = content.rfind(b"\n", 0, max(start - 1, 0)) + 1
            target_line = _NAMED.fullmatch(content[before : max(start - 1, 0)])
            return (before if target_line else start), end, content[before if target_line else start : end].rstrip()
        if line.endswith(_TOKEN) and _NAMED.fullmatch(line):
            return start, end, line
        place = end
    return None


def _end(content: bytes) -> int:
    """Return the offset at which the last entry ends; damaged lines within an entry stay, and make it invalid."""
    after = _AFTER.search(content, content.rfind(b"\n" + ENTRY) + 1)
    return after.end() if after and _LOOSE.match(content, after.end()) else len(content)


def _refuse_unsure(line: int, content: bytes) -> RefusedRow:
    count = content.count(b"\n" + ENTRY) + 1
    reason = f"{count} entries from here on follow a damaged line, which may have been the header of another target."
    return line, reason, "Check for a truncated file, or two concurrent writers.", None


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
