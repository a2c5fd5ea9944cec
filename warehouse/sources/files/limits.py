"""What one input may take: bounds that no honest input should meet, and that a site may set.

They hold for all that is read within `limited`, however deep: what reads a line is not told by whom it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds: of a line and of an item of JSON in bytes, of what is packed, and of refused rows of a file.

    max_expansion_factor: what is compressed may hold so many times its size, and 64 MiB more. max_refused_count: a file
    of which more rows are refused (or lines are empty), and fewer are read, is refused as a whole.
    """

    max_line_bytes: int = 1 << 20
    max_json_item_bytes: int = 16 << 20
    max_expansion_factor: float = 100.0
    max_refused_count: int = 1_000_000


_IN_FORCE: ContextVar[Limits] = ContextVar("limits")
_DEFAULT = Limits()


def in_force() -> Limits:
    """Return the bounds that hold here."""
    return _IN_FORCE.get(_DEFAULT)


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Have these bounds hold within a block."""
    token = _IN_FORCE.set(limits)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)
