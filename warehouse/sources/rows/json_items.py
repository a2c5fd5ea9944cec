"""Stream the items of a long list in a JSON document, which may exceed the memory."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError
from pathlib import Path
from typing import IO, Any

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.files.opening import DAMAGE, open_decompressed, reraise_machine_error

#: size of one read [characters]
_CHUNK_CHARS = 1 << 20
_BLANK = " \t\n\r"
_AFTER = frozenset(_BLANK) | frozenset(",:]}")


#: members in which a document states that it is incomplete, or the time of its content
_STATED = frozenset({"errors", "warnings", "status", "error", "isPartial", "last_update"})
_MAX_QUOTED_CHARS = 300
#: part of Slurm's warning that no record matches, which leaves a complete document
_NO_MATCH = "nothing found"


class _MalformedJson(ValueError):
    """Raised when the document is malformed; the message describes the fault."""


@dataclass
class _Window:
    """The buffered part of a text, and the parse position in it."""

    file: IO[bytes]
    decoder: codecs.IncrementalDecoder = field(init=False)
    text: str = ""
    place: int = 0
    is_whole: bool = False

    def __post_init__(self) -> None:
        start = self.file.read(_CHUNK_CHARS)
        self.decoder = codecs.getincrementaldecoder(json.detect_encoding(start))("surrogatepass")
        self.text = self.decoder.decode(start)

    def more(self) -> bool:
        """Read more text into the buffer; return False at the end of the text."""
        if self.is_whole:
            return False
        # double the buffer each time, so that a long item is parsed only a few times
        content = self.file.read(max(_CHUNK_CHARS, len(self.text) - self.place))
        self.is_whole = not content
        self.text = self.text[self.place :] + self.decoder.decode(content, final=self.is_whole)
        self.place = 0
        return True

    def peek(self) -> str:
        """Return the next non-blank character without consuming it; empty at the end."""
        while True:
            while self.place < len(self.text) and self.text[self.place] in _BLANK:
                self.place += 1
            if self.place < len(self.text):
                return self.text[self.place]
            if not self.more():
                return ""

    def take(self, expected: str) -> str:
        """Consume the next non-blank character, which must be one of `expected`."""
        character = self.peek()
        if not character or character not in expected:
            raise _MalformedJson(f"{' or '.join(expected)} is missing" if character else "it is truncated")
        self.place += 1
        return character

    def value(self) -> Any:
        """Parse and consume the next value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.place)
            except JSONDecodeError as error:
                fault: str | None = error.msg
            else:
                # a number may continue beyond the buffer, since a prefix of a number is also a number
                is_complete = self.is_whole or self.text[end : end + 1] in _AFTER
                fault = None if is_complete else "a value is not followed by a comma"
            if fault is None:
                self.place = end
                return value
            if len(self.text) - self.place > (max_bytes := current_limits().max_json_item_bytes):
                raise _MalformedJson(
                    f"an item exceeds {max_bytes:,} bytes (limits.max_json_item_bytes) or is malformed: {fault}"
                )
            if not self.more():
                raise _MalformedJson(fault if self.place < len(self.text) else "it is truncated")


_DECODER = json.JSONDecoder()


def items(path: Path, member: str, remedy: str) -> Iterator[object]:
    """Yield the items of a list member of a document; other members are skipped.

    `data.result` is the member `result` of the object `data`. Raises InputRefused, after the items before it, if the
    document is damaged, is not an object, has no such list, states that it is incomplete, or contains an item or
    another member above the size limit.
    """
    return _items(path, member, remedy, {})


def find_last_update(path: Path, member: str, remedy: str) -> object:
    """Return the member `last_update` of a document with a list `member`, None without it; raises like `items`."""
    stated: dict[str, object] = {}
    for _ in _items(path, member, remedy, stated):
        pass
    return stated.get("last_update")


def members(path: Path, remedy: str) -> Iterator[tuple[str, object]]:
    """Yield the members of a document that is one object, one at a time.

    Raises InputRefused, after the members before it, for a damaged document, one that is no object, one that states
    that it is incomplete, and one with a member above the size limit.
    """
    stated: dict[str, object] = {}
    with _refusing_malformed(remedy, counts := [0]), open_decompressed(path) as file:
        window = _Window(file)
        for name, value in _named_values(window):
            counts[0] += 1
            if name in _STATED:
                stated[name] = value
            yield name, value
        _end(window)
    if message := _find_failure(stated):
        raise InputRefused(f"The document states that it is incomplete: {message}", remedy)


def _items(path: Path, member: str, remedy: str, stated: dict[str, object]) -> Iterator[object]:
    is_there = False
    with _refusing_malformed(remedy, counts := [0]), open_decompressed(path) as file:
        for item in _document(_Window(file), member, stated):
            is_there = True
            if item is not _NONE:
                counts[0] += 1
                yield item
    if message := _find_failure(stated):
        raise InputRefused(f"The document states that it is incomplete: {message}", remedy)
    if not is_there:
        raise InputRefused(f"The JSON has no list of {member}.", remedy)


@contextmanager
def _refusing_malformed(remedy: str, counts: list[int]) -> Iterator[None]:
    """Convert exceptions of a malformed document into InputRefused; counts: the number of items before it."""
    try:
        yield
    except RecursionError as error:
        raise InputRefused(
            f"The file is not valid JSON: item {counts[0] + 1:,} is nested too deeply.", remedy
        ) from error
    except (*DAMAGE, _MalformedJson) as error:
        reraise_machine_error(error)
        after = f" after {counts[0]:,} items" if counts[0] else ""
        raise InputRefused(
            f"The file is not valid JSON{after}: {error}.", f"Check for a truncated file; {remedy}"
        ) from error


def _find_failure(stated: Mapping[str, object]) -> str | None:
    """Quote the message in which a document states that it failed or is partial; None for a complete one."""
    if stated.get("status") == "error":
        return _quote(stated.get("error", "status is error"))
    if stated.get("isPartial") is True:
        return "isPartial is true."
    warnings = stated.get("warnings")
    relevant = [warning for warning in warnings if _NO_MATCH not in str(warning)] if isinstance(warnings, list) else []
    messages = stated.get("errors") or relevant
    return _quote(messages[0] if isinstance(messages, list) else messages) if messages else None


def _quote(message: object) -> str:
    """Format a message, which is a text or an object with a description, as a sentence."""
    if isinstance(message, dict):
        parts = [str(message[name]) for name in ("description", "error", "source") if message.get(name)]
        message = "; ".join(parts) or json.dumps(message)
    return " ".join(str(message).split())[:_MAX_QUOTED_CHARS].rstrip(".") + "."


#: marker that is yielded once at the start of the list, so that an empty list counts as present
_NONE = object()


def _document(window: _Window, member: str, stated: dict[str, object]) -> Iterator[object]:
    yield from _members(window, member, stated)
    _end(window)


def _end(window: _Window) -> None:
    if window.peek() == "{":
        raise _MalformedJson("another document follows its end; write each output to a file of its own")
    if window.peek():
        raise _MalformedJson("extra content follows its end")


def _members(window: _Window, member: str, stated: dict[str, object]) -> Iterator[object]:
    head, _, within = member.partition(".")
    for name in _names(window):
        if name == head and not within and window.peek() == "[":
            yield _NONE
            yield from _elements(window)
        elif name == head and within and window.peek() == "{":
            yield from _members(window, within, {})
        else:
            value = window.value()
            if name in _STATED:
                stated[name] = value


def _named_values(window: _Window) -> Iterator[tuple[str, object]]:
    for name in _names(window):
        yield name, window.value()


def _names(window: _Window) -> Iterator[str]:
    """Yield the names of an object's members; the caller consumes each value before the next name."""
    window.take("{")
    peek = "," if window.peek() != "}" else window.take("}")
    while peek == ",":
        name = window.value()
        if not isinstance(name, str):
            raise _MalformedJson("a member has no name")
        window.take(":")
        yield name
        peek = window.take(",}")


def _elements(window: _Window) -> Iterator[object]:
    window.take("[")
    peek = "," if window.peek() != "]" else window.take("]")
    while peek == ",":
        yield window.value()
        peek = window.take(",]")
