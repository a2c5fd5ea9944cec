"""Write and parse the record of an extrapolation, a JSON object with traces, rank count, result and reasons.

The same extrapolation always yields the same bytes. Records are validated when read, because they may come from another
machine, alone or in the metadata of an extrapolated trace's file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Final, TypeVar

from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows.documents import MalformedError, flag, items, members, text

MARK = "iosig-extrapolation"
VERSION = 1
#: maximum size of a record [B]; a record occurs twice in the footer of a trace's file, which is limited to 16 MiB
MAX_BYTES = 6 << 20
MAX_TRACES = 1000
#: maximum rank count, which is MPI's limit
MAX_PROCESSES = 2**31 - 1
_MAX_NAME_CHARS = 4096
#: maximum plausible total; larger numbers indicate damage
_MAX_TOTAL = 2**127 - 1
_MAX_INT64 = 2**63 - 1
_ID_DIGITS = 16
_OUTCOMES = EXTRAPOLATION_RECORDS.column("outcome").choices
_DONE = "extrapolated"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REMEDY = "Extrapolate again, or fetch the file again."

_T = TypeVar("_T")
_Read = Callable[[object, str], _T]


@dataclass(frozen=True, slots=True, order=True)
class GivenTrace:
    """An input trace, with its process count, the SHA-256 of its content (hex), and its name."""

    process_count: int
    sha256: str
    name: str


@dataclass(frozen=True, slots=True)
class FieldModel:
    """The model that describes a field as a function of the rank count."""

    field: str
    formula: str


@dataclass(frozen=True, slots=True)
class RefusedField:
    """A field that could not be extrapolated, and the reason."""

    outcome: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of the extrapolated trace; None if not counted."""

    class_count: int | None = None
    call_count: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    file_count: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One extrapolation, with its input `traces` in order; the `totals` are all None if no trace was extrapolated."""

    traces: tuple[GivenTrace, ...]
    has_nested_calls: bool
    process_count: int
    outcome: str
    models: tuple[FieldModel, ...]
    refused_fields: tuple[RefusedField, ...]
    totals: Totals

    @property
    def trace_set_id(self) -> str:
        """Hash of the input traces, and of whether nested calls are included (16 hex digits)."""
        content = [[trace.sha256 for trace in self.traces], self.has_nested_calls]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_ID_DIGITS]

    def text(self) -> str:
        """Serialize the record as JSON on one line."""
        return format_json({"format": MARK, "version": VERSION} | asdict(self))

    def row(self) -> dict[str, Any]:
        """Build a row of `extrapolation_records`; landing adds the name of the file.

        Totals beyond 64 bits become NULL.
        """
        refused = [asdict(refused) for refused in self.refused_fields]
        totals = {name: value for name, value in asdict(self.totals).items() if value is None or value <= _MAX_INT64}
        return {
            "trace_set_id": self.trace_set_id,
            "trace_set": format_json([trace.name for trace in self.traces]),
            "trace_ids": format_json([trace.sha256[:_ID_DIGITS] for trace in self.traces]),
            "rank_counts": [trace.process_count for trace in self.traces],
            "process_count": self.process_count,
            "has_nested_calls": self.has_nested_calls,
            "outcome": self.outcome,
            "models": format_json([asdict(model) for model in self.models]),
            "refused_fields": format_json(refused) if refused else None,
            **dict.fromkeys(field.name for field in fields(Totals)),
            **totals,
            "source_file": "",
        }


def format_json(value: object) -> str:
    """Serialize a value as JSON in the canonical form of records."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- reading


def parse(content: bytes) -> Record:
    """Parse a record from its JSON; raise InputRefused unless it is valid, complete and consistent."""
    if len(content) > MAX_BYTES:
        raise InputRefused(f"The record of the extrapolation is longer than {MAX_BYTES:,} bytes.", _REMEDY)
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputRefused(f"The record of the extrapolation is not valid JSON: {error}.", _REMEDY) from error
    if not isinstance(document, dict) or document.get("format") != MARK:
        raise InputRefused(
            "The JSON is not a record of an extrapolation.", "Pass the file that `iosig extrapolate` wrote."
        )
    if _is_whole(document.get("version")) and document["version"] > VERSION:
        raise InputRefused(
            f"The record of the extrapolation has a later version than {VERSION}, the latest known one.",
            "Land it with the iosig that wrote it.",
        )
    try:
        return require_consistent(_RECORD(document, ""))
    except MalformedError as error:
        raise InputRefused(f"The record of the extrapolation is damaged: {error}.", _REMEDY) from error


def require_consistent(record: Record) -> Record:
    """Raise ValueError if the record's outcome contradicts its refused fields."""
    if any(refused.outcome == _DONE for refused in record.refused_fields):
        raise MalformedError(f"a refused field has the outcome {_DONE}")
    expected = record.refused_fields[0].outcome if record.refused_fields else _DONE
    if record.outcome != expected:
        raise MalformedError(f"the outcome is {record.outcome}, but its refused fields imply {expected}")
    if record.outcome != _DONE and record.totals != Totals():
        raise MalformedError("a refused trace has totals")
    return record


def _version(value: object, place: str) -> int:
    if value != VERSION or not _is_whole(value):
        raise MalformedError(f"{place} is not {VERSION}")
    return VERSION


def _sha256(value: object, place: str) -> str:
    if not _SHA256.fullmatch(digest := text(value, place)):
        raise MalformedError(f"{place} is not a SHA-256 in hex")
    return digest


def _name(value: object, place: str) -> str:
    if not 1 <= len(name := text(value, place)) <= _MAX_NAME_CHARS:
        raise MalformedError(f"{place} has {len(name):,} characters, not 1 to {_MAX_NAME_CHARS:,}")
    return name


def _outcome(value: object, place: str) -> str:
    if value not in _OUTCOMES:
        raise MalformedError(f"{place} is not one of {', '.join(_OUTCOMES)}")
    return str(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object, place: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise MalformedError(f"{place} is not an integer from {low} to {high}")
    return value


def _total(value: object, place: str) -> int | None:
    return None if value is None else _number(value, place, 0, _MAX_TOTAL)


def _object(factory: Callable[..., _T], readers: Mapping[str, _Read[Any]]) -> _Read[_T]:
    """Build a reader of objects with exactly these members."""

    def read(value: object, place: str) -> _T:
        values = members(value, place or _WHOLE)
        if missing := [name for name in readers if name not in values]:
            raise MalformedError(f"{place or _WHOLE} has no {missing[0]}")
        if len(values) > len(readers):
            raise MalformedError(f"{place or _WHOLE} has more than {', '.join(readers)}")
        return factory(
            **{name: reader(values[name], f"{place}.{name}".lstrip(".")) for name, reader in readers.items()}
        )

    return read


def _list(read: _Read[_T]) -> _Read[tuple[_T, ...]]:
    return lambda value, place: tuple(read(item, f"{place}[{index}]") for index, item in enumerate(items(value, place)))


def _traces(value: object, place: str) -> tuple[GivenTrace, ...]:
    traces = _list(_TRACE)(value, place)
    if not 1 <= len(traces) <= MAX_TRACES:
        raise MalformedError(f"{place} has {len(traces):,} members, not 1 to {MAX_TRACES:,}")
    return tuple(sorted(traces))


def _anything(value: object, place: str) -> object:
    return value


def _make_record(**values: Any) -> Record:
    return Record(**{field.name: values[field.name] for field in fields(Record)})


_WHOLE = "the record"
_process_count: Final = partial(_number, low=1, high=MAX_PROCESSES)
_TRACE = _object(GivenTrace, {"process_count": _process_count, "sha256": _sha256, "name": _name})
_RECORD = _object(
    _make_record,
    {
        "format": _anything,
        "version": _version,
        "traces": _traces,
        "has_nested_calls": flag,
        "process_count": _process_count,
        "outcome": _outcome,
        "models": _list(_object(FieldModel, {"field": text, "formula": text})),
        "refused_fields": _list(_object(RefusedField, {"outcome": _outcome, "field": text, "reason": text})),
        "totals": _object(Totals, dict.fromkeys((field.name for field in fields(Totals)), _total)),
    },
)
