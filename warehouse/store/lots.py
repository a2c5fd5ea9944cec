"""Land small traces together in lots.

A lot is a folder of landings that share data files. Each trace in it is identified by its own content and name.

The cost of a file barely depends on its size: to write, list and open five separate files for a trace of a kilobyte
costs more than to read their content. Results do not depend on whether a trace lies in a lot or in its own folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.traces import (
    TRACE_FILES,
    TRACE_HEATMAPS,
    TRACE_MODULES,
    TRACE_RECORDS,
    TRACE_REQUESTS,
    TRACES,
)
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Batch, Reading, Source, get_input_name
from iosig.warehouse.sources.rows.times import record_zones
from iosig.warehouse.store import landing
from iosig.warehouse.store.files import ExistsError, FileChecksum
from iosig.warehouse.store.landing import LandingResult
from iosig.warehouse.store.ledger import LandedIndex
from iosig.warehouse.store.manifests import (
    ID_DIGITS,
    LOT_PREFIX,
    in_folder,
    landing_column,
    make_landing_id,
    write_manifest,
)
from iosig.warehouse.store.store import Store, write_parquet
from iosig.warehouse.store.time_ranges import TimeRange

if TYPE_CHECKING:
    import polars as pl

    from iosig.warehouse.store.pseudonyms import Names

#: maximum size of an input in a lot [B]; a larger one gets a folder of its own
SMALL_BYTES = 1 << 20
#: a lot, which is kept in memory, is full at this number of inputs or rows
MAX_INPUTS = 500
MAX_ROWS = 1 << 18
#: in a smaller lot, each input gets a folder of its own
MIN_INPUTS = 8
#: tables with a column that identifies the landing of each row
_LANDING_ID_TABLES = (TRACES, TRACE_MODULES, TRACE_FILES, TRACE_RECORDS, TRACE_HEATMAPS, TRACE_REQUESTS, REJECTS)


@dataclass(frozen=True, slots=True)
class _InputInMemory:
    """An input in memory, with its name, content hash and rows, and the reason if it was refused.

    sequence: its reserved position in the landing order, if any.
    """

    path: Path
    source_file: str
    content_sha256: str
    format: str
    batches: Sequence[Batch]
    refusal: InputRefused | None
    sequence: int | None
    time_zone: str | None = None

    @property
    def landing_id(self) -> str:
        return make_landing_id(self.content_sha256)

    @property
    def row_count(self) -> int:
        return sum(batch.height for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of landing one input of a lot: a landing, or the reason for its refusal."""

    path: Path
    landed: LandingResult
    refusal: InputRefused | None


class Lot:
    """Collects small inputs of one call until they land together."""

    def __init__(self, store: Store, index: LandedIndex | None = None, names: Names | None = None) -> None:
        """Create an empty lot; names: pseudonyms of a private warehouse."""
        self._store = store
        self._names = names
        self._known = index or LandedIndex(store)
        #: path and content hash of each given input, in order; duplicate content is read only once
        self._given: list[tuple[Path, str]] = []
        self._inputs: dict[str, _InputInMemory] = {}
        self._row_count = 0
        #: formats with tables that lots do not support; further inputs in these formats are not read
        self._unshared: set[str] = set()

    @property
    def is_full(self) -> bool:
        """Whether the lot should land before more inputs are added."""
        return len(self._given) >= MAX_INPUTS or self._row_count >= MAX_ROWS

    def add(
        self,
        path: Path,
        reading_of: Callable[[Source], Reading],
        *,
        columns: Mapping[str, str] | None = None,
        format_name: str | None = None,
        sequence: int | None = None,
    ) -> bool:
        """Read a file if it is a small trace or has landed before; return whether the lot accepted it.

        A refused file is accepted as well: its reason lands as one row of `rejects`. See `landing.land`.
        """
        from iosig.warehouse.sources.files.opening import content_hash, file_size

        size = file_size(path)
        if size is None or size > SMALL_BYTES:
            return False
        try:
            sha256 = content_hash(path)
            before = self._known.generations(sha256)
            if before and not before[-1].row_count():
                return False
            if not before and sha256 not in self._inputs:
                source = landing.find_source(path, columns, format_name)
                if source.kind != "traces" or source.name in self._unshared:
                    return False
                item = _read(path, sha256, source, reading_of(source), sequence, is_named=format_name is not None)
                if self._names is not None:
                    batches = [*landing.pseudonymize(item.batches, self._names)]
                    item = replace(item, source_file=self._names.path(item.source_file), batches=batches)
                if not {batch.table for batch in item.batches} <= set(_LANDING_ID_TABLES):
                    self._unshared.add(source.name)
                    return False
                self._inputs[sha256] = item
                self._row_count += item.row_count
        except InputRefused:
            return False
        self._given.append((path, sha256))
        return True

    def land(self) -> Iterator[Outcome]:
        """Land the inputs of the lot, yield the outcome of each input in order, and reset the lot."""
        paths, inputs = self._given, self._inputs
        self._given, self._inputs, self._row_count = [], {}, 0
        landed = _land_inputs(self._store, list(inputs.values()))
        for path, sha256 in paths:
            refusal = inputs[sha256].refusal if sha256 in inputs else None
            result = landed.pop(sha256, None)
            if result is not None:
                self._known.add(result.landing)
            # a second input with the same content counts as landed before
            yield Outcome(path, result or LandingResult(self._known.generations(sha256)[-1], is_new=False), refusal)


def _read(
    path: Path, sha256: str, source: Source, reading: Reading, sequence: int | None, *, is_named: bool
) -> _InputInMemory:
    """Read an input into memory; if it is refused, the reason is its only row."""
    item = _InputInMemory(path, get_input_name(path, source), sha256, source.name, [], None, sequence)
    try:
        with record_zones() as zones:
            batches = list(landing.read_batches(source, path, reading))
        return replace(item, batches=batches, time_zone=", ".join(sorted(zones)) or None)
    except InputRefused as refusal:
        # the format is known only if the user has named it
        name = source.name if is_named else "unknown"
        return replace(item, format=name, batches=[landing.make_refusal(refusal)], refusal=refusal)


def _land_inputs(store: Store, inputs: Sequence[_InputInMemory]) -> dict[str, LandingResult]:
    """Land inputs, in one folder if there are enough, and map content hashes to landings."""
    if len(inputs) < MIN_INPUTS:
        return {
            item.content_sha256: landing.write(
                store,
                item.source_file,
                item.content_sha256,
                item.format,
                [],
                iter(item.batches),
                sequence=item.sequence,
                time_zone=item.time_zone,
            )
            for item in inputs
        }
    name = LOT_PREFIX + hashlib.sha256("".join(item.content_sha256 for item in inputs).encode()).hexdigest()[:16]
    # another process has landed the same lot: not an error
    with suppress(ExistsError), landing.create_folder(store, name) as folder:
        _fill(store, folder, name, inputs)
    return {item.content_sha256: LandingResult(item, is_new=True) for item in in_folder(store, name)}


def _fill(store: Store, folder: Path, name: str, inputs: Sequence[_InputInMemory]) -> None:
    """Write the data files of a lot and its manifest."""
    files, counts = {}, {}
    for table in _LANDING_ID_TABLES:
        rows = _rows(table, inputs)
        if rows is not None:
            files[table.name] = write_file(folder, name, table, rows)
            counts[table.name] = dict(rows.group_by(landing_column(table)).len().iter_rows())
    sequences = [item.sequence for item in inputs if item.sequence is not None]
    if not sequences:
        first = landing.next_sequence(store, len(inputs))
        sequences = [*range(first, first + len(inputs))]
    landings = [
        _landing(item, sequence, {name: counts_by_id.get(item.landing_id, 0) for name, counts_by_id in counts.items()})
        for item, sequence in zip(inputs, sequences, strict=True)
    ]
    write_manifest({"files": files, "landings": landings}, folder)


def _rows(table: Table, inputs: Sequence[_InputInMemory]) -> pl.DataFrame | None:
    """Concatenate the rows of all inputs in order, each with the id of its landing."""
    import numpy as np
    import polars as pl

    from iosig.warehouse.sources.rows import traced

    batches = [
        (place, batch)
        for place, item in enumerate(inputs)
        for batch in item.batches
        if batch.table == table and batch.height
    ]
    if not batches:
        return None
    rows = traced.concat_batches([batch for _, batch in batches])
    owner = np.repeat([place for place, _ in batches], [batch.height for _, batch in batches])
    id_columns = {
        "landing_id": [item.landing_id for item in inputs],
        "source_file": [item.source_file for item in inputs],
        "trace_id": [item.landing_id[:ID_DIGITS] for item in inputs],
    }
    return rows.with_columns(
        pl.Series(name, values, dtype=pl.String).gather(owner)
        for name, values in id_columns.items()
        if name in rows.columns
    )


def write_file(folder: Path, lot: str, table: Table, rows: pl.DataFrame) -> dict[str, str | int]:
    """Write the rows of a table as a file of a lot, and return its manifest entry."""
    path = write_parquet(rows, table, folder / f"{table.name}.parquet")
    return {"path": f"landed/{lot}/{path.name}", **asdict(FileChecksum.from_path(path))}


def _landing(item: _InputInMemory, sequence: int, row_counts: Mapping[str, int]) -> dict[str, object]:
    times = TimeRange()
    for _ in times.observe(item.batches):
        pass
    optional = {"time_zone": item.time_zone, **times.texts()}
    return {
        "landing_id": item.landing_id,
        "sequence": sequence,
        "source_file": item.source_file,
        "content_sha256": item.content_sha256,
        "format": item.format,
        "landed_at": datetime.now(UTC).isoformat(timespec="microseconds"),
        "refused_count": row_counts.get(REJECTS.name, 0),
        "row_counts": {name: count for name, count in row_counts.items() if count},
    } | {name: value for name, value in optional.items() if value is not None}
