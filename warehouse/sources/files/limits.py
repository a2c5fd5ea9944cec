"""Limit the size of one input; a site can set the limits, and no valid input should exceed them.

The limits apply to everything that is read within `apply_limits`; they are not passed as arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum sizes of a line, a JSON item, decompressed content, and the refused rows of a file.

    max_expansion_factor: decompressed content may have up to this multiple of the compressed size, plus 64 MiB.
    max_refused_count: a file with more refused rows (or empty lines) than this, and fewer good ones, is refused as a
    whole.
    """

    max_line_bytes: int = 1 << 20
    max_json_item_bytes: int = 16 << 20
    max_expansion_factor: float = 100.0
    max_refused_count: int = 1_000_000


_IN_FORCE: ContextVar[Limits] = ContextVar("limits")
_DEFAULT = Limits()


def current_limits() -> Limits:
    """Return the limits of the enclosing `apply_limits`, or the defaults."""
    return _IN_FORCE.get(_DEFAULT)


@contextmanager
def apply_limits(limits: Limits) -> Iterator[None]:
    """Apply limits within a `with` block."""
    token = _IN_FORCE.set(limits)
    try:
        yield
    finally:
        _IN_FORCE.reset(token)
