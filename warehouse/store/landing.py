"""Land inputs: write the rows of each input to tables, atomically and exactly once; refused rows land in `rejects`.

A landing is the stored result of reading one input: a folder with a manifest and the data files of its tables. If the
input is landed again, for example with other options, the new landing is the next generation of the same content.
"""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.traces import TRACES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.protocol import (
    Batch,
    Head,
    Reading,
    Source,
    find_folder_source,
    get_input_name,
    get_source,
    list_sources,
    recognize,
    refuse_near_miss,
)
from iosig.warehouse.sources.rows.times import record_zones
from iosig.warehouse.store.files import ExistsError, FileChecksum, LockHeldError
from iosig.warehouse.store.form import mark_form, require_form
from iosig.warehouse.store.manifests import ID_DIGITS, MANIFEST_NAME, Landing, Part, id_in, in_folder, write_manifest
from iosig.warehouse.store.store import Store, write_parquet
from iosig.warehouse.store.time_ranges import TimeRange

if TYPE_CHECKING:
    import polars as pl

    from iosig.warehouse.store.ledger import LandedIndex
    from iosig.warehouse.store.pseudonyms import Names

#: lock shared by running landings; file with the last allocated position in the landing order
_LANDING_LOCK, _SEQUENCE = "landing.lock", "landing.sequence"
#: maximum number of pieces in the write queue, to bound memory use
_MAX_QUEUED_PIECES = 2
_WRITERS = 2
_PollKey = tuple[str, str, str]


def ledger(store: Store) -> list[Landing]:
    """Return the landings in force, the latest generation of each content, in landing order."""
    from iosig.warehouse.store.ledger import read

    index = read(store)
    return list(index.objects(index.in_force))


def find(store: Store, landing_id: str) -> Landing | None:
    """Find a landing by its id, even if it has been replaced; None if it does not exist."""
    from iosig.warehouse.store.ledger import read

    index = read(store)
    return next(index.objects(index.select_landings([landing_id])), None)


@dataclass(frozen=True, slots=True)
class LandingResult:
    """Result of landing one input: it landed now, had landed before, or was refused completely."""

    landing: Landing
    is_new: bool


def land(
    store: Store,
    path: Path,
    reading_of: Callable[[Source], Reading],
    *,
    columns: Mapping[str, str] | None = None,
    format_name: str | None = None,
    replace: bool = False,
    index: LandedIndex | None = None,
    names: Names | None = None,
    sequence: int | None = None,
) -> LandingResult:
    """Land one input unless its content has already landed; `reading_of` chooses the read options for its format.

    An input is a file, or a folder that a format treats as one input. `columns` maps iosig's column names of polls to
    the site's, so that headers with the site's names are recognized. `replace` lands the file again, with other
    options; a file without any landed row is also landed again. Raises InputRefused if the file cannot be read at all;
    the reason then lands as one row of `rejects`. index: index of landed contents, shared by a call that lands many
    inputs. names: pseudonyms, in a private warehouse. sequence: a position in the landing order that was reserved with
    `reserve_positions`; by default the next one.
    """
    from iosig.warehouse.sources.files.opening import content_hash
    from iosig.warehouse.store.ledger import LandedIndex

    folder_source = find_folder_source(path, get_source(format_name) if format_name else None) if isdir(path) else None
    sha256 = content_hash(path, folder_source[1] if folder_source else ())
    index = index or LandedIndex(store)
    earlier = index.generations(sha256)
    _refuse_forgotten(earlier, replace=replace)
    if earlier and earlier[-1].row_count() and not replace:
        return LandingResult(earlier[-1], is_new=False)
    try:
        source = folder_source[0] if folder_source else find_source(path, columns, format_name)
        batches = _mostly_sound(read_batches(source, path, reading_of(source)))
        source_file = get_input_name(path, source)
        result = write(store, source_file, sha256, source.name, earlier, batches, names, sequence)
    except InputRefused as refusal:
        if not earlier:
            source_file = get_input_name(path, folder_source[0] if folder_source else None)
            refused = iter([make_refusal(refusal)])
            format_name = format_name or "unknown"
            index.add(write(store, source_file, sha256, format_name, [], refused, names, sequence).landing)
        raise
    index.add(result.landing)
    return result


def read_batches(source: Source, path: Path, reading: Reading) -> Iterator[Batch]:
    """Read an input; a trace that names no job belongs to the job in the read options, if they have one."""
    for batch in source.read(path, reading):
        if batch.table == TRACES and reading.job_id is not None:
            import polars as pl

            yield Batch(TRACES, batch.rows.with_columns(pl.col("job_id").fill_null(reading.job_id)))
        else:
            yield batch


def _refuse_forgotten(earlier: Sequence[Landing], *, replace: bool) -> None:
    """Raise InputRefused for content that was forgotten completely, or forgotten in part and landed with `replace`."""
    if earlier and (at := earlier[-1].forgotten_at) and (replace or not earlier[-1].row_count()):
        raise InputRefused(f"Data of this content were erased on {at[:10]} and cannot be landed again.", "Remove it.")


def _mostly_sound(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches; raise InputRefused once the refused rows exceed both the limit and the number of valid rows."""
    counts, max_refused = {True: 0, False: 0}, current_limits().max_refused_count
    for batch in batches:
        counts[batch.table == REJECTS] += batch.height
        if counts[True] > max(max_refused, counts[False]):
            raise InputRefused(
                f"More than {max_refused:,} of its rows are refused (limits.max_refused_count), and fewer are valid.",
                "Name its format with --format, or export it again.",
            )
        yield batch


def find_source(path: Path, columns: Mapping[str, str] | None, format_name: str | None) -> Source:
    """Return the named format of a file, or the first that recognizes it.

    Raises InputRefused without a match, for content that only resembles the format, and for a trace that is appended to
    itself: its requests would count twice, whereas repeated jobs and polls count once.
    """
    from iosig.warehouse.sources.files.opening import read_head, refuse_doubled

    head = read_head(path, columns)
    source = get_source(format_name) if format_name else _recognize(head)
    if format_name and not source.sniff(head):
        refuse_near_miss(source, head)
    if source.kind == "traces":
        refuse_doubled(path)
    return source


def _recognize(head: Head) -> Source:
    """Recognize the format, or raise InputRefused with the cause, if it is apparent."""
    from iosig.warehouse.sources.files.foreign import refuse_foreign

    try:
        return recognize(head)
    except InputRefused:
        refuse_foreign(head.start, lambda start: any(source.sniff(Head(head.name, start)) for source in list_sources()))
        raise


def make_refusal(refusal: InputRefused) -> Batch:
    """Return the single row of `rejects` for an input that was refused completely."""
    from iosig.warehouse.sources.rows.rejects import rejects

    return rejects([(None, refusal.reason, refusal.remedy, None)])


def land_batches(
    store: Store,
    source_file: str,
    format_name: str,
    batches: Iterable[Batch],
    *,
    content: bytes | None = None,
    replace: bool = False,
    names: Names | None = None,
    time_zone: str | None = None,
) -> LandingResult:
    """Land rows that do not come from a file (a database, a command), identified by the hash of their content.

    content: the bytes from which the rows were read, or which represent them; a file of these bytes is the same
    landing. Without it, all rows are kept in memory. `replace` lands the rows again as the latest generation.
    time_zone: zone in which local times of the rows were read.
    """
    import hashlib

    from iosig.warehouse.store.ledger import LandedIndex

    digest = hashlib.sha256(content or b"")
    if content is None:
        batches = list(batches)
    for batch in batches if content is None else ():
        digest.update(batch.table.name.encode())
        digest.update(batch.rows.hash_rows().to_numpy().tobytes())
    earlier = LandedIndex(store).generations(digest.hexdigest())
    _refuse_forgotten(earlier, replace=replace)
    if earlier and not replace:
        return LandingResult(earlier[-1], is_new=False)
    return write(store, source_file, digest.hexdigest(), format_name, earlier, iter(batches), names, None, time_zone)


class _NoNewRowsError(Exception):
    """Raised to discard a repeated landing that, like the previous one, has no rows."""


def write(
    store: Store,
    source_file: str,
    sha256: str,
    format_name: str,
    earlier: Sequence[Landing],
    batches: Iterator[Batch],
    names: Names | None = None,
    sequence: int | None = None,
    time_zone: str | None = None,
) -> LandingResult:
    """Land the rows of one input in a new folder.

    earlier: landings of the same content, if it is landed again. names: pseudonyms, in a private warehouse. sequence:
    position in the landing order, by default the next one. time_zone: zone in which local times were read, for batches
    that have already been read.
    """
    from iosig.warehouse.store.ledger import LandedIndex

    if names is not None:
        source_file, batches = names.path(source_file), pseudonymize(batches, names)
    generation = earlier[-1].generation + 1 if earlier else 0
    landing_id = id_in(sha256, generation)
    # another process has landed the same content: not an error
    with suppress(_NoNewRowsError, ExistsError), create_folder(store, landing_id) as folder:
        times = TimeRange()
        with record_zones() as zones:
            parts = list(_write_parts(folder, landing_id, source_file, times.observe(batches)))
        landing = Landing(
            landing_id=landing_id,
            sequence=next_sequence(store) if sequence is None else sequence,
            generation=generation,
            source_file=source_file,
            content_sha256=sha256,
            format=format_name,
            landed_at=datetime.now(UTC).isoformat(timespec="microseconds"),
            refused_count=sum(part.row_count for part in parts if part.table == REJECTS.name),
            parts=tuple(parts),
            time_zone=time_zone or ", ".join(sorted(zones)) or None,
            **times.texts(),
        )
        if earlier and _is_as_fruitless(landing, earlier[-1]):
            raise _NoNewRowsError
        write_landing(landing, folder)
        return LandingResult(landing, is_new=True)
    return LandingResult(LandedIndex(store).generations(sha256)[-1], is_new=False)


def pseudonymize(batches: Iterable[Batch], names: Names) -> Iterator[Batch]:
    """Replace names in batches with pseudonyms before they land."""
    return (Batch(batch.table, names.hide(batch.table, batch.rows)) for batch in batches)


def write_landing(landing: Landing, folder: Path) -> None:
    """Write the manifest of a landing in its own folder; empty fields are omitted."""
    write_manifest(
        {name: value for name, value in asdict(landing).items() if value is not None and name != "lot"}, folder
    )


@contextmanager
def create_folder(store: Store, name: str) -> Iterator[Path]:
    """Provide a new folder of landings to fill, including its manifest; it appears atomically.

    Raises Exists on exit if another process has already created the folder.
    """
    require_form(store)
    mark_form(store)
    place = f"landed/{name}"
    if store.files.holds(place) and not in_folder(store, name):
        # the folder's manifest is missing, so its content cannot be identified
        store.files.set_aside(place)
    with store.files.lock(_LANDING_LOCK, is_shared=True), store.files.write_folder(place, MANIFEST_NAME) as folder:
        yield folder


def _is_as_fruitless(landing: Landing, before: Landing) -> bool:
    if landing.row_count() or before.row_count():
        return False
    return (landing.format, landing.refused_count) == (before.format, before.refused_count)


def reserve_positions(store: Store, count: int) -> int:
    """Reserve `count` positions in the landing order and return the first; the inputs land later."""
    require_form(store)
    mark_form(store)
    return next_sequence(store, count)


def next_sequence(store: Store, count: int = 1) -> int:
    """Allocate `count` positions in the landing order and return the first; unused ones leave gaps."""
    while True:
        before = store.files.content(_SEQUENCE)
        last = _parse_count(before)
        if last is None:
            last = max((landing.sequence for landing in ledger(store)), default=0)
        if store.files.swap(_SEQUENCE, before, _count(last + count)):
            return last + 1


def _count(number: int) -> bytes:
    return f"{number:016} {zlib.crc32(b'%d' % number):08x}\n".encode()


def _parse_count(content: bytes | None) -> int | None:
    """Return the number of allocated positions; None if the checksum does not match, for example after a bit flip."""
    number = (content or b"").split(b" ")[0]
    return int(number) if number.isdigit() and _count(int(number)) == content else None


def _write_parts(folder: Path, landing_id: str, source_file: str, batches: Iterator[Batch]) -> Iterator[Part]:
    """Write batches as files, overlapping the write of one batch with the read of the next."""
    counts: Counter[str] = Counter()
    writing: deque[Future[Part]] = deque()
    with ThreadPoolExecutor(_WRITERS, "landing") as writer:
        for batch in batches:
            for day, rows in _by_day(batch.table, set_provenance(batch.rows, landing_id, source_file)):
                name = f"{batch.table.name}-{day or 'undated'}-{counts[batch.table.name]}.parquet"
                counts[batch.table.name] += 1
                writing.append(writer.submit(write_part, folder / name, landing_id, batch.table, day, rows))
                if len(writing) > _MAX_QUEUED_PIECES:
                    yield writing.popleft().result()
        for written in writing:
            yield written.result()


def write_part(path: Path, landing_id: str, table: Table, day: str | None, rows: pl.DataFrame) -> Part:
    """Write rows of a table, or of one of its days, as a file of a landing; return the file's description."""
    write_parquet(rows, table, path)
    place, sealed = f"landed/{landing_id}/{path.name}", FileChecksum.from_path(path)
    part = Part(table.name, place, day, rows.height, sealed.byte_count, sealed.sha256)
    if table != POLLS:
        return part
    first, last = _edges(rows)
    longest_s = float(rows.select("interval_s").max().item())
    filesystems = tuple(rows["filesystem"].unique().sort())
    return replace(part, first=first, last=last, longest_interval_s=longest_s, filesystems=filesystems)


def _edges(polls: pl.DataFrame) -> tuple[_PollKey | None, _PollKey | None]:
    """Return the first and last key of sorted polls, or None for both if a key is duplicated."""
    import polars as pl

    keys = polls.select(POLLS.landed_by)
    repeats = keys.select(pl.all_horizontal(pl.all() == pl.all().shift(1)).any()).item()
    if repeats:
        return None, None
    (at, controller, filesystem), (last_at, last_controller, last_filesystem) = keys.row(0), keys.row(-1)
    return (at.isoformat(), controller, filesystem), (last_at.isoformat(), last_controller, last_filesystem)


def set_provenance(rows: pl.DataFrame, landing_id: str, source_file: str) -> pl.DataFrame:
    """Set the provenance columns of an input's rows, if the table has these columns."""
    import polars as pl

    provenance = {"landing_id": landing_id, "source_file": source_file, "trace_id": landing_id[:ID_DIGITS]}
    return rows.with_columns(pl.lit(value).alias(name) for name, value in provenance.items() if name in rows.columns)


def _by_day(table: Table, rows: pl.DataFrame) -> Iterator[tuple[str | None, pl.DataFrame]]:
    """Yield (UTC day, rows) in order for a table partitioned by day, and (None, all rows) for any other table."""
    import polars as pl

    if rows.is_empty():
        return
    if not table.landed_by:
        yield None, rows
        return
    ordered = rows if _is_ordered(rows, table.landed_by) else rows.sort(table.landed_by, maintain_order=True)
    days = ordered[table.landed_by[0]].cast(pl.Date)
    if days[0] == days[-1]:
        yield days[0].isoformat(), ordered
        return
    for (day,), piece in ordered.with_columns(days.alias("day")).group_by("day", maintain_order=True):
        yield day.isoformat(), piece.drop("day")


def _is_ordered(rows: pl.DataFrame, names: Sequence[str]) -> bool:
    """Return whether rows are sorted by these columns. Most are, and the check takes a third of the time of a sort."""
    import polars as pl

    *earlier, last = (pl.col(name) for name in names)
    rises = last >= last.shift(1)
    for value in reversed(earlier):
        rises = (value > value.shift(1)) | ((value == value.shift(1)) & rises)
    return bool(rows.select(rises.slice(1).all()).item())


def sweep(store: Store) -> None:
    """Remove temporary files of killed landings, unless a landing is running."""
    if store.files.holds("landed"):
        with suppress(LockHeldError), store.files.lock(_LANDING_LOCK):
            store.files.sweep("landed")
