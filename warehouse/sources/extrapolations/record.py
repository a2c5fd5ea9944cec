"""The record of an extrapolation: from which traces, to which rank count, what came of it and why; one JSON object.

The same extrapolation always gives the same bytes. What is read is held to the form: a record comes from another
machine as any input does, alone or within the metadata of an extrapolated trace's file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Final, TypeVar

from warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from warehouse.errors import InputRefused

MARK = "iosig-extrapolation"
VERSION = 1
#: no longer one is written or read: it stands twice in the footer of a trace's file, which may have 16 MiB
MOST_BYTES = 6 << 20
MOST_TRACES = 1000
#: MPI's own limit
MOST_PROCESSES = 2**31 - 1
_MOST_NAME_CHARS = 4096
#: no disk holds as many bytes; beyond it a number is no total but damage
_MOST_TOTAL = 2**127 - 1
_MOST_INT = 2**63 - 1
_ID_DIGITS = 16
_OUTCOMES = EXTRAPOLATION_RECORDS.column("outcome").choices
_DONE = "extrapolated"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEDY = "Extrapolate anew, or copy the file again."

_T = TypeVar("_T")
_Read = Callable[[object, str], _T]


@dataclass(frozen=True, slots=True, order=True)
class GivenTrace:
    """A trace that was extrapolated from: its processes, the SHA-256 of its content in hex, and its name."""

    process_count: int
    sha256: str
    name: str


@dataclass(frozen=True, slots=True)
class FieldModel:
    """What explains a field at all rank counts."""

    field: str
    formula: str


@dataclass(frozen=True, slots=True)
class RefusedField:
    """What could not be extrapolated, and why."""

    outcome: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What the extrapolated trace holds in all; None where it was not counted."""

    class_count: int | None = None
    call_count: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    file_count: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One extrapolation: `traces` in their order, and `totals` of the trace, all None where there is none."""

    traces: tuple[GivenTrace, ...]
    has_nested_calls: bool
    process_count: int
    outcome: str
    models: tuple[FieldModel, ...]
    refused_fields: tuple[RefusedField, ...]
    totals: Totals

    @property
    def trace_set_id(self) -> str:
        """Sixteen hex digits that tell these traces, taken with or without nested calls, from all others."""
        content = [[trace.sha256 for trace in self.traces], self.has_nested_calls]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_ID_DIGITS]

    def text(self) -> str:
        """Return the record as JSON on one line."""
        return as_json({"format": MARK, "version": VERSION} | asdict(self))

    def row(self) -> dict[str, Any]:
        """Return the record as a row of `extrapolation_records`; landing knows the file.

        A total that no column can hold is NULL there.
        """
        refused = [asdict(refused) for refused in self.refused_fields]
        totals = {name: value for name, value in asdict(self.totals).items() if value is None or value <= _MOST_INT}
        return {
            "trace_set_id": self.trace_set_id,
            "trace_set": as_json([trace.name for trace in self.traces]),
            "trace_ids": as_json([trace.sha256[:_ID_DIGITS] for trace in self.traces]),
            "rank_counts": [trace.process_count for trace in self.traces],
            "process_count": self.process_count,
            "has_nested_calls": self.has_nested_calls,
            "outcome": self.outcome,
            "models": as_json([asdict(model) for model in self.models]),
            "refused_fields": as_json(refused) if refused else None,
            **dict.fromkeys(field.name for field in fields(Totals)),
            **totals,
            "source_file": "",
        }


def as_json(value: object) -> str:
    """Return a value as JSON in the form in which records have it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- reading


class _MalformedError(ValueError):
    """A place of the record that is not as it should be."""


def parse(content: bytes) -> Record:
    """Read a record from its JSON; raises InputRefused for whatever is none of ours, whole and consistent."""
    if len(content) > MOST_BYTES:
        raise InputRefused(f"The record of the extrapolation is longer than {MOST_BYTES:,} bytes.", _REMEDY)
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputRefused(f"The record of the extrapolation is no valid JSON: {error}.", _REMEDY) from error
    if not isinstance(document, dict) or document.get("format") != MARK:
        raise InputRefused(
            "The JSON is no record of an extrapolation.", "Give the file that `iosig extrapolate` wrote."
        )
    if _is_whole(document.get("version")) and document["version"] > VERSION:
        raise InputRefused(
            f"The record of the extrapolation is of a later version than {VERSION}, the last one that is known.",
            "Land it with the iosig that wrote it.",
        )
    try:
        return consistent(_record(document))
    except _MalformedError as error:
        raise InputRefused(f"The record of the extrapolation is damaged: {error}.", _REMEDY) from error


def _record(document: Mapping[str, object]) -> Record:
    names = ("format", "version", *(field.name for field in fields(Record)))
    found = _members(document, "the record", names)
    if found["version"] != VERSION or not _is_whole(found["version"]):
        raise _MalformedError(f"version is not {VERSION}")
    traces = _list(found["traces"], "traces", _trace)
    if not 1 <= len(traces) <= MOST_TRACES:
        raise _MalformedError(f"traces has {len(traces):,} members, not 1 to {MOST_TRACES:,}")
    return Record(
        traces=tuple(sorted(traces)),
        has_nested_calls=_flag(found["has_nested_calls"], "has_nested_calls"),
        process_count=_process_count(found["process_count"], "process_count"),
        outcome=_outcome(found["outcome"], "outcome"),
        models=_list(found["models"], "models", _model),
        refused_fields=_list(found["refused_fields"], "refused_fields", _refused_field),
        totals=_totals(found["totals"], "totals"),
    )


def consistent(record: Record) -> Record:
    """Return the record; raises ValueError if its outcome is not that of its refused fields."""
    if any(refused.outcome == _DONE for refused in record.refused_fields):
        raise _MalformedError(f"a refused field has the outcome {_DONE}")
    expected = record.refused_fields[0].outcome if record.refused_fields else _DONE
    if record.outcome != expected:
        raise _MalformedError(f"the outcome is {record.outcome}, and its refused fields say {expected}")
    if record.outcome != _DONE and record.totals != Totals():
        raise _MalformedError("there are totals of a trace that was refused")
    return record


def _trace(value: object, place: str) -> GivenTrace:
    found = _members(value, place, ("process_count", "sha256", "name"))
    sha256 = _text(found["sha256"], f"{place}.sha256")
    if not _SHA256.fullmatch(sha256):
        raise _MalformedError(f"{place}.sha256 is no SHA-256 in hex")
    name = _text(found["name"], f"{place}.name")
    if not 1 <= len(name) <= _MOST_NAME_CHARS:
        raise _MalformedError(f"{place}.name has {len(name):,} characters, not 1 to {_MOST_NAME_CHARS:,}")
    return GivenTrace(_process_count(found["process_count"], f"{place}.process_count"), sha256, name)


def _model(value: object, place: str) -> FieldModel:
    return FieldModel(**_members(value, place, ("field", "formula"), _text))


def _refused_field(value: object, place: str) -> RefusedField:
    found = _members(value, place, ("outcome", "field", "reason"), _text)
    _outcome(found["outcome"], f"{place}.outcome")
    return RefusedField(**found)


def _totals(value: object, place: str) -> Totals:
    return Totals(**_members(value, place, [field.name for field in fields(Totals)], _total))


def _total(value: object, place: str) -> int | None:
    return None if value is None else _number(value, place, 0, _MOST_TOTAL)


def _outcome(value: object, place: str) -> str:
    if value not in _OUTCOMES:
        raise _MalformedError(f"{place} is none of {', '.join(_OUTCOMES)}")
    return str(value)


def _flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise _MalformedError(f"{place} is neither true nor false")
    return value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object, place: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _MalformedError(f"{place} is no whole number from {low} to {high}")
    return value


_process_count: Final = partial(_number, low=1, high=MOST_PROCESSES)


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise _MalformedError(f"{place} is no text")
    # JSON can spell half characters, which no column can hold.
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise _MalformedError(f"{place} is no valid Unicode text")
    return value


def _anything(value: object, place: str) -> object:
    return value


def _members(value: object, place: str, names: Any, read: _Read[Any] = _anything) -> dict[str, Any]:
    """Return the members of an object, each read; it has these names and no others."""
    if not isinstance(value, dict):
        raise _MalformedError(f"{place} is no object")
    if missing := [name for name in names if name not in value]:
        raise _MalformedError(f"{place} has no {missing[0]}")
    if len(value) > len(names):
        raise _MalformedError(f"{place} has more than {', '.join(names)}")
    return {name: read(value[name], f"{place}.{name}") for name in names}


def _list(value: object, place: str, read: _Read[_T]) -> tuple[_T, ...]:
    if not isinstance(value, list):
        raise _MalformedError(f"{place} is no list")
    return tuple(read(member, f"{place}[{index}]") for index, member in enumerate(value))
