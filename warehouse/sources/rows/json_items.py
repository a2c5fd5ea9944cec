"""Items of a long list in a JSON document, one after the other: the document may be larger than the memory."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError
from pathlib import Path
from typing import IO, Any

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import in_force
from iosig.warehouse.sources.files.opening import DAMAGE, open_bytes, raise_of_machine

#: text that is read at once
_CHUNK_CHARS = 1 << 20
_BLANK = " \t\n\r"
_AFTER = frozenset(_BLANK) | frozenset(",:]}")


class _Unsound(ValueError):
    """What is wrong with a document."""


@dataclass
class _Window:
    """The part of a text that is looked at, and where in it."""

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
        """Look at more of the text; return whether there is more."""
        if self.is_whole:
            return False
        # twice as much each time, so that a long item is not begun too often
        content = self.file.read(max(_CHUNK_CHARS, len(self.text) - self.place))
        self.is_whole = not content
        self.text = self.text[self.place :] + self.decoder.decode(content, final=self.is_whole)
        self.place = 0
        return True

    def sign(self) -> str:
        """Return the next character that is not blank, without taking it; nothing at the end."""
        while True:
            while self.place < len(self.text) and self.text[self.place] in _BLANK:
                self.place += 1
            if self.place < len(self.text):
                return self.text[self.place]
            if not self.more():
                return ""

    def take(self, expected: str) -> str:
        """Take the next character that is not blank, which must be one of these."""
        found = self.sign()
        if not found or found not in expected:
            raise _Unsound(f"{' or '.join(expected)} is missing" if found else "it breaks off")
        self.place += 1
        return found

    def value(self) -> Any:
        """Take the next value."""
        self.sign()
        while True:
            try:
                found, end = _DECODER.raw_decode(self.text, self.place)
            except JSONDecodeError as error:
                fault: str | None = error.msg
            else:
                # a number may go on behind what is looked at, or behind a part of it that is a number, too
                is_ended = self.is_whole or self.text[end : end + 1] in _AFTER
                fault = None if is_ended else "a value is not followed by a comma"
            if fault is None:
                self.place = end
                return found
            if len(self.text) - self.place > (most := in_force().max_json_item_bytes):
                raise _Unsound(
                    f"an item has more than {most:,} bytes (limits.max_json_item_bytes), or is none: {fault}"
                )
            if not self.more():
                raise _Unsound(fault if self.place < len(self.text) else "it breaks off")


_DECODER = json.JSONDecoder()


def items(path: Path, member: str, remedy: str) -> Iterator[object]:
    """Yield the items of a member of a document, which is a list; other members are passed over.

    `data.result` is the member `result` of the object that is the member `data`.

    Raises InputRefused, after the items before it, where the document is damaged, is no object, has no such list, or
    holds an item, or another member, that is larger than the limit.
    """
    count, is_there = 0, False
    try:
        with open_bytes(path) as file:
            for found in _document(_Window(file), member):
                is_there = True
                if found is not _NONE:
                    count += 1
                    yield found
    except RecursionError as error:
        raise InputRefused(f"The file is no valid JSON: item {count + 1:,} is nested too deeply.", remedy) from error
    except (*DAMAGE, _Unsound) as error:
        raise_of_machine(error)
        after = f" after {count:,} items" if count else ""
        raise InputRefused(f"The file is no valid JSON{after}: {error}.", f"Check for a cut file; {remedy}") from error
    if not is_there:
        raise InputRefused(f"The JSON has no list of {member}.", remedy)


#: an empty list was there
_NONE = object()


def _document(window: _Window, member: str) -> Iterator[object]:
    yield from _members(window, member)
    if window.sign():
        raise _Unsound("something comes behind its end")


def _members(window: _Window, member: str) -> Iterator[object]:
    own, _, within = member.partition(".")
    window.take("{")
    sign = "," if window.sign() != "}" else window.take("}")
    while sign == ",":
        name = window.value()
        if not isinstance(name, str):
            raise _Unsound("a member has no name")
        window.take(":")
        if name == own and not within and window.sign() == "[":
            yield _NONE
            yield from _elements(window)
        elif name == own and within and window.sign() == "{":
            yield from _members(window, within)
        else:
            window.value()
        sign = window.take(",}")


def _elements(window: _Window) -> Iterator[object]:
    window.take("[")
    sign = "," if window.sign() != "]" else window.take("]")
    while sign == ",":
        yield window.value()
        sign = window.take(",]")
