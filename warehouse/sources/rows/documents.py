"""Values of JSON documents, each held to what it should be; what is something else is named by its place."""

from __future__ import annotations

from collections.abc import Mapping


class MalformedError(ValueError):
    """A place of a document that is not as it should be, in the words of a reason."""


def text(value: object, place: str) -> str:
    """Return a text that a column can hold."""
    if not isinstance(value, str):
        raise MalformedError(f"{place} is no text")
    # JSON can spell half characters, which no column can hold.
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise MalformedError(f"{place} is no valid Unicode text")
    return value


def flag(value: object, place: str) -> bool:
    """Return what is true or false."""
    if not isinstance(value, bool):
        raise MalformedError(f"{place} is neither true nor false")
    return value


def members(value: object, place: str) -> Mapping[str, object]:
    """Return an object's members."""
    if not isinstance(value, dict):
        raise MalformedError(f"{place} is no object")
    return value


def items(value: object, place: str) -> list[object]:
    """Return a list's items."""
    if not isinstance(value, list):
        raise MalformedError(f"{place} is no list")
    return value
