"""Build records of extrapolations from the models' results, store them in the trace's file, and land them.

`iosig extrapolate` writes one record per rank count, with or without a resulting trace.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from iosig.settings.model import Settings
from iosig.streams.landing import names_in
from iosig.transforms.extrapolation.result import ExtrapolatedTrace
from iosig.transforms.traces import totals as trace_totals
from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.sources.extrapolations import source as extrapolations
from iosig.warehouse.sources.extrapolations.record import (
    FieldModel,
    GivenTrace,
    Record,
    RefusedField,
    Totals,
    format_json,
    parse,
    require_consistent,
)
from iosig.warehouse.sources.files.opening import content_hash
from iosig.warehouse.sources.protocol import find_folder_source, get_input_name, get_source
from iosig.warehouse.store import landing, ledger
from iosig.warehouse.store.landing import LandingResult
from iosig.warehouse.store.manifests import Landing
from iosig.warehouse.store.store import Store

#: maximum size of a record's models, and of its refused fields [B]; both together leave room for the traces
_MAX_LISTED_BYTES = 2 << 20
_NOT_LISTED = "Not listed: the record would be too long."

_T = TypeVar("_T", bound=FieldModel | RefusedField)

__all__ = [
    "GivenTrace",
    "Record",
    "Totals",
    "land",
    "land_if_there",
    "make_given_trace",
    "make_totals",
    "metadata",
    "record",
]


def make_given_trace(path: Path, process_count: int) -> GivenTrace:
    """Describe an input trace for the record of an extrapolation, by the name and hash that it has when landed."""
    source = get_source("recorder")
    owned = find_folder_source(path, source) if path.is_dir() else None
    sha256 = content_hash(path, owned[1] if owned else ())
    return GivenTrace(process_count, sha256, get_input_name(path, source))


def record(
    extrapolated: ExtrapolatedTrace,
    traces: Iterable[GivenTrace],
    *,
    has_nested_calls: bool,
    totals: Totals | None = None,
) -> Record:
    """Build the record of an extrapolation from these traces.

    totals: totals of the extrapolated trace, if they were computed. Raises ValueError if the traces have other rank
    counts than the extrapolation, if totals are given without a trace, or if the outcome contradicts the refusals.
    """
    given_traces = tuple(sorted(replace(trace, name=_plain(trace.name)) for trace in traces))
    if {trace.process_count for trace in given_traces} != set(extrapolated.rank_counts):
        raise ValueError(f"the traces must have {extrapolated.rank_counts} ranks")
    if extrapolated.trace is None and totals is not None:
        raise ValueError("a refused extrapolation cannot have totals")
    class_count = None if extrapolated.trace is None else len(extrapolated.trace.classes)
    models = [FieldModel(_plain(model.field), _plain(model.formula)) for model in extrapolated.models]
    refused = [
        RefusedField(refusal.outcome, _plain(refusal.field), _plain(refusal.reason))
        for refusal in extrapolated.refusals
    ]
    result = Record(
        traces=given_traces,
        has_nested_calls=has_nested_calls,
        process_count=extrapolated.process_count,
        outcome=extrapolated.outcome,
        models=_limit_list(models, lambda text: FieldModel(text, _NOT_LISTED)),
        refused_fields=_limit_list(refused, lambda text: RefusedField(extrapolated.outcome, text, _NOT_LISTED)),
        totals=replace(totals or Totals(), class_count=class_count),
    )
    return require_consistent(result)


def make_totals(trace_sums: trace_totals.Totals) -> Totals:
    """Return a trace's totals for its record: bytes of outer calls, counted once; None if any part is unknown.

    `record` counts the classes.
    """
    outer = [row for row in trace_sums.modules if not row.is_nested]
    is_clear = all(row.is_nested is False for row in outer)
    return Totals(
        call_count=trace_sums.call_count,
        read_bytes=_sum(row.read_bytes for row in outer) if is_clear else None,
        written_bytes=_sum(row.written_bytes for row in outer) if is_clear else None,
        file_count=_sum(row.file_count for row in trace_sums.files),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of the numbers, or None if any is unknown."""
    values = list(numbers)
    return None if None in values else sum(number for number in values if number is not None)


def _plain(text: str) -> str:
    """Escape bytes of a file name that are not valid UTF-8, so that every column can store it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _limit_list(members: Sequence[_T], unlisted: Callable[[str], _T]) -> tuple[_T, ...]:
    """Return the first members of a record's list, and, if some are omitted, an entry with their number."""
    ends = list(accumulate(len(format_json(asdict(member)).encode()) + 1 for member in members))
    if not ends or ends[-1] <= _MAX_LISTED_BYTES:
        return tuple(members)
    listed_count = bisect_right(ends, _MAX_LISTED_BYTES)
    return (*members[:listed_count], unlisted(f"and {len(members) - listed_count:,} more"))


def metadata(record: Record) -> dict[str, str]:
    """Return the metadata of the extrapolated trace's file, from which it can be landed elsewhere."""
    return {extrapolations.METADATA_KEY: record.text()}


def land(store: Store, record: Record, source_file: str, settings: Settings | None = None) -> LandingResult:
    """Land a record as the latest for its traces and rank count, unless an equal one is already the latest.

    source_file: actual or intended path of the trace's file.
    """
    names = names_in(store, settings or Settings.model_construct())
    content = record.text().encode()
    # do not land a record that could not be read elsewhere
    batch = extrapolations.batch(parse(content))
    last = _last_word(store, record)
    rows = batch.rows if names is None else names.hide(batch.table, batch.rows)
    if last is not None and last[1] == rows.drop("source_file").row(0, named=True):
        return LandingResult(last[0], is_new=False)
    name = _plain(source_file)
    return landing.land_batches(
        store, name, extrapolations.SOURCE.name, [batch], content=content, replace=True, names=names
    )


def land_if_there(
    store: Store, record: Record, source_file: str, settings: Settings | None = None
) -> LandingResult | None:
    """Land a record in an existing warehouse; return None if the warehouse has no landings and no releases."""
    return land(store, record, source_file, settings) if store.exists else None


def _last_word(store: Store, record: Record) -> tuple[Landing, dict[str, Any]] | None:
    """Return the last landing with a record of the same traces and rank count, and this record without its file."""
    landings = ledger.read(store)
    files = landings.parts(EXTRAPOLATION_RECORDS, landings.in_force)
    paths = store.locals(files["path"])
    if not paths:
        return None
    rows = scan_parquet(paths, path_column="path")
    matches = rows.filter(trace_set_id=record.trace_set_id, process_count=record.process_count).collect()
    if matches.is_empty():
        return None
    # files are read in the order of landing, and each is in the folder of its landing
    (landing,) = landings.objects(landings.select_landings([Path(matches["path"][-1]).parent.name]))
    return landing, matches.drop("source_file", "path").row(-1, named=True)
