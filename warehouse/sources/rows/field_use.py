"""Record which fields of an input its reader takes, to explain how an input is read.

Readers note the fields that they find. Without `record_fields`, notes have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FieldUse:
    """Fields of an input in the order of their occurrence.

    taken: iosig's column of each field that is read. ignored: the other fields.
    """

    taken: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)


_USE: ContextVar[FieldUse | None] = ContextVar("field_use", default=None)


@contextmanager
def record_fields() -> Iterator[FieldUse]:
    """Record the fields that readers note within the context."""
    use = FieldUse()
    token = _USE.set(use)
    try:
        yield use
    finally:
        _USE.reset(token)


def is_recording() -> bool:
    """Return whether notes are recorded, for notes that take long to prepare."""
    return _USE.get() is not None


def note_fields(columns: Mapping[str, str], names: Iterable[str]) -> None:
    """Note the fields `names` of an input; `columns` maps the fields that are read to iosig's columns."""
    use = _USE.get()
    if use is None:
        return
    for name in names:
        if name in columns:
            use.taken[name] = columns[name]
            use.ignored.pop(name, None)
        elif name not in use.taken:
            use.ignored[name] = None
