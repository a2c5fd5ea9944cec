"""Check the types of JSON values; an error names the value's place in the document."""

from __future__ import annotations

from collections.abc import Mapping


class MalformedError(ValueError):
    """Raised when a value in a document has an unexpected type; the message is a reason for `rejects`."""


def text(value: object, place: str) -> str:
    """Return a value that must be a string of valid Unicode; raise MalformedError otherwise."""
    if not isinstance(value, str):
        raise MalformedError(f"{place} is not text")
    # JSON can encode lone surrogates, which no column can store.
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise MalformedError(f"{place} is not valid Unicode")
    return value


def flag(value: object, place: str) -> bool:
    """Return a value that must be a Boolean; raise MalformedError otherwise."""
    if not isinstance(value, bool):
        raise MalformedError(f"{place} is neither true nor false")
    return value


def members(value: object, place: str) -> Mapping[str, object]:
    """Return a value that must be a JSON object; raise MalformedError otherwise."""
    if not isinstance(value, dict):
        raise MalformedError(f"{place} is not an object")
    return value


def items(value: object, place: str) -> list[object]:
    """Return a value that must be a JSON list; raise MalformedError otherwise."""
    if not isinstance(value, list):
        raise MalformedError(f"{place} is not a list")
    return value
