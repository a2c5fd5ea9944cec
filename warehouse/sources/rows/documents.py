"""Type checks of JSON values; a value of another type is reported by its place in the document."""

from __future__ import annotations

from collections.abc import Mapping


class MalformedError(ValueError):
    """A value of a document has an unexpected type; the message is a reason for `rejects`."""


def text(value: object, place: str) -> str:
    """Require a string of valid Unicode, which a column can store."""
    if not isinstance(value, str):
        raise MalformedError(f"{place} is not text")
    # JSON can encode lone surrogates, which no column can store.
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise MalformedError(f"{place} is not valid Unicode")
    return value


def flag(value: object, place: str) -> bool:
    """Require a Boolean value."""
    if not isinstance(value, bool):
        raise MalformedError(f"{place} is neither true nor false")
    return value


def members(value: object, place: str) -> Mapping[str, object]:
    """Require a JSON object."""
    if not isinstance(value, dict):
        raise MalformedError(f"{place} is not an object")
    return value


def items(value: object, place: str) -> list[object]:
    """Require a JSON list."""
    if not isinstance(value, list):
        raise MalformedError(f"{place} is not a list")
    return value
