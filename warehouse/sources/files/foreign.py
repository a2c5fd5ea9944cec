"""Name the cause if content has no format of iosig: a web page, an archive, or messages before a document."""

from __future__ import annotations

import re
from collections.abc import Callable

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.tar_stream import is_tar

_PAGE = re.compile(r"<(?:!doctype html|html)\b(?:.*?<title[^>]*>(.*?)</title>)?", re.IGNORECASE | re.DOTALL)
#: first bytes of archives with several files, other than tar
_ARCHIVES = {b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7-Zip"}
#: maximum number of messages before a JSON document
_MAX_MESSAGES = 20
_MAX_SHOWN_CHARS = 60


def refuse_foreign(content: bytes, is_known: Callable[[bytes], bool]) -> None:
    """Raise InputRefused for the start of an input if its cause is apparent.

    is_known: whether a document is of a known format.
    """
    archives = (name for magic, name in _ARCHIVES.items() if content.startswith(magic))
    if archive := "tar" if is_tar(content) else next(archives, None):
        raise InputRefused(f"The content is a {archive} archive.", "Extract its files, and land these.")
    start = content.decode("utf-8", "replace").lstrip()
    if page := _PAGE.match(start):
        title = f", titled `{_shorten(page[1])}`" if page[1] else ""
        raise InputRefused(f"The content is a web page{title}.", "Check the address and the login, and fetch it again.")
    lines = start.splitlines(keepends=True)
    place = next((place for place, line in enumerate(lines[:_MAX_MESSAGES]) if line.startswith(("{", "["))), 0)
    if place and is_known("".join(lines[place:]).encode()):
        raise InputRefused(
            f"The line `{_shorten(lines[0])}` precedes the JSON document.",
            "Export it again, and write messages to another file.",
        )


def _shorten(text: str) -> str:
    return " ".join(text.split())[:_MAX_SHOWN_CHARS]
