"""Parse job statistics entries, block by block.

An entry is the output of lprocfs_jobstats_seq_show (lustre/obdclass/lprocfs_jobstats.c) for one job: the job,
`snapshot_time` (the time of the entry's last change, js_time_latest), optionally `start_time` and `elapsed_time`, and a
line for each counter of the target, including zeros. Therefore an entry with fewer counters than earlier ones is
truncated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.sources.counters.jobstats_text import ENTRY
from iosig.warehouse.sources.counters.samples import operation_column, unquote_job_ids
from iosig.warehouse.sources.files.limits import current_limits
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import REJECT_SCHEMA, ParsedRows
from iosig.warehouse.sources.rows.times import INSTANT

Numbers = npt.NDArray[np.int64]
#: column with the index of an entry in its input; column with the line number
PLACE, LINE = "place", "line"
#: length of a prefix of a counter's line that includes the brace; Lustre pads names to 15 characters
_START_CHARS = 26
#: maximum number of distinct counters, which is more than any server has; all further ones share a code
_MAX_NAMES = 62
_COUNTER = (
    r"^  [a-z][a-z0-9_]{0,19} {0,14}: {0,14}\{ samples: *[0-9]{1,17}, unit: *(?:bytes|reqs|usecs?|pages|locks)"
    r"(?:, min: *[0-9]+, max: *[0-9]+, sum: *[0-9]+(?:, sumsq: *[0-9]+)?)?(?:, hist: \{[0-9KMGTPE:, ]*\})? \}$"
)
_HEAD = (
    # older servers write the bytes of an id as they are
    r'^(?P<whole>- job_id:(?: +(?P<job>"[^\x00-\x20\x7f"\x{fffd}]*"|'
    r'[^\x00-\x20\x7f"\x{fffd}](?:[^\x00-\x1f\x7f\x{fffd}]*[^\x00-\x20\x7f\x{fffd}])?)?)? *|'
    r"  (?P<what>snapshot|start|elapsed)_time *: *(?P<seconds>[0-9]{1,10})(?:\.(?P<part>[0-9]{1,9}))?"
    r"(?: secs\.[num]?secs)?)$"
)
_BYTES: Final = {
    "read_bytes": ("total_read_bytes", "total_read_count"),
    "write_bytes": ("total_written_bytes", "total_write_count"),
    # names in the first Lustre releases with job statistics
    "read": ("total_read_bytes", "total_read_count"),
    "write": ("total_written_bytes", "total_write_count"),
}
_OTHER = "total_other_count"
_NO_FORM = "The line is not in Lustre's format; its entry is refused."
_REMEDY = "Check for a truncated file, or two concurrent writers."


@dataclass(slots=True)
class Entries:
    """Parses entries, and remembers the counters of each target."""

    _codes: dict[str, int] = field(default_factory=dict)
    _counters: dict[str, int] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=dict)

    def read(self, entries: Sequence[bytes], lines: Sequence[int], targets: Sequence[str]) -> ParsedRows:
        """Parse entries, given without the prefix `ENTRY`, with the line and target of each.

        Returns rows with columns of `counter_samples`, `place` (index of the entry) and `line`, and the refused rows.
        An entry is refused as a whole, with the reason for its first damaged line.
        """
        text = (ENTRY + (b"\n" + ENTRY).join(entries)).decode("utf-8", "replace")
        frame = pl.Series("text", [text]).str.split("\n").explode().to_frame()
        starts = frame["text"].str.starts_with(ENTRY.decode())
        place = (starts.cast(pl.Int64).cum_sum() - 1).alias(PLACE)
        first = np.flatnonzero(starts.to_numpy())
        offset = np.arange(frame.height) - first[place.to_numpy()]
        frame = frame.with_columns(place, pl.Series(LINE, np.asarray(lines, np.int64)[place.to_numpy()] + offset))
        frame = frame.filter(pl.col("text") != "")
        is_counter = frame["text"].str.contains("{", literal=True)
        heads, bad_heads = _heads(frame.filter(~is_counter))
        counters, bad_counters = _counters(frame.filter(is_counter))
        rows = pl.DataFrame({PLACE: np.arange(len(entries)), LINE: np.asarray(lines, np.int64)}).hstack(
            _parse_heads(heads, len(entries))
        )
        values, masks, doubled = self._values(counters, len(entries))
        ends = self._end_codes(counters, len(entries))
        faulty = pl.concat([bad_heads, bad_counters, *self._faults(rows, masks, ends, doubled, targets)])
        by_line = faulty.sort(PLACE, pl.col("raw").is_null(), LINE, maintain_order=True)
        refused = by_line.unique(PLACE, keep="first", maintain_order=True)
        good = rows.hstack(values).join(refused.select(PLACE), on=PLACE, how="anti", maintain_order="left")
        return ParsedRows(good, refused.select(REJECT_SCHEMA.names()))

    def _values(self, counters: pl.DataFrame, count: int) -> tuple[pl.DataFrame, Numbers, npt.NDArray[np.bool_]]:
        """Return the value columns, a bit mask of each entry's counters, and a mask of entries with repeated ones."""
        for name in counters["name"].unique(maintain_order=True).to_list():
            self._codes.setdefault(name, min(len(self._codes), _MAX_NAMES))
        note_fields(dict(_list_columns(self._codes)), self._codes)
        codes = counters["name"].replace_strict(self._codes, return_dtype=pl.Int64).to_numpy()
        place, samples, sums = (counters[name].to_numpy() for name in (PLACE, "samples", "sum"))
        times = np.bincount(place * (_MAX_NAMES + 1) + codes, minlength=count * (_MAX_NAMES + 1)).reshape(count, -1)
        masks = (times > 0).astype(np.int64) @ (np.int64(1) << np.arange(_MAX_NAMES + 1))
        columns: dict[str, tuple[Numbers, npt.NDArray[np.bool_]]] = {}
        is_bytes = counters["is_bytes"].to_numpy()
        for name, code in self._codes.items():
            rows = np.flatnonzero((codes == code) & (is_bytes == (name in _BYTES)))
            column = operation_column(name)
            if name in _BYTES and rows.size:
                for column, amounts in zip(_BYTES[name], (sums, samples), strict=True):
                    _add_to_column(columns, column, place[rows], amounts[rows], count)
            elif column and name not in _BYTES and rows.size:
                _add_to_column(columns, column, place[rows], samples[rows], count)
        series_by_name = {
            name: pl.Series(name, values).set(pl.Series(~is_present), None)
            for name, (values, is_present) in columns.items()
        }
        return pl.DataFrame(series_by_name), masks, np.any(times[:, :_MAX_NAMES] > 1, axis=1)

    def _end_codes(self, counters: pl.DataFrame, count: int) -> Numbers:
        """Return the code of each entry's last counter; -1 for an entry without counters."""
        ends = counters.group_by(PLACE, maintain_order=True).agg(pl.col("name").last())
        codes = np.full(count, -1)
        codes[ends[PLACE].to_numpy()] = ends["name"].replace_strict(self._codes, return_dtype=pl.Int64).to_numpy()
        return codes

    def _faults(
        self,
        rows: pl.DataFrame,
        masks: Numbers,
        ends: Numbers,
        doubled: npt.NDArray[np.bool_],
        targets: Sequence[str],
    ) -> list[pl.DataFrame]:
        """Refuse entries with missing or repeated parts; a truncated entry lacks the last counter of earlier ones."""
        is_incomplete = np.zeros(len(masks), np.bool_)
        for index, target in enumerate(targets):
            counter_mask, end = self._counters.get(target, 0), int(ends[index])
            is_incomplete[index] = bool(counter_mask & ~masks[index]) and end != self._ends.get(target, end)
            self._counters[target] = counter_mask | int(masks[index])
            if not is_incomplete[index]:
                self._ends[target] = end
        return [
            _refuse_entries(rows, pl.col("sampled_at").is_null(), "The entry has no snapshot_time."),
            _refuse_entries(rows, pl.Series(masks == 0), "The entry has no counters."),
            _refuse_entries(rows, pl.Series(doubled), "The entry has a counter more than once."),
            _refuse_entries(
                rows, pl.Series(is_incomplete), "The entry has fewer counters than earlier ones: it is truncated."
            ),
        ]


def _list_columns(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns of each counter that is read, as text."""
    for name in names:
        if columns := ", ".join(_BYTES.get(name, ())) or operation_column(name):
            yield name, columns


def _add_to_column(
    columns: dict[str, tuple[Numbers, npt.NDArray[np.bool_]]], name: str, place: Numbers, amounts: Numbers, count: int
) -> None:
    values, is_present = columns.setdefault(name, (np.zeros(count, np.int64), np.zeros(count, np.bool_)))
    is_present[place] = True
    np.add.at(values, place, amounts)


def _refuse_entries(rows: pl.DataFrame, broken: pl.Expr | pl.Series, reason: str) -> pl.DataFrame:
    return rows.filter(broken).select(
        PLACE, LINE, reason=pl.lit(reason), remedy=pl.lit(_REMEDY), raw=pl.lit(None, pl.String)
    )


def _refuse_lines(lines: pl.DataFrame) -> pl.DataFrame:
    limit = current_limits().max_line_bytes
    is_long = pl.col("text").str.len_bytes() > limit
    too_long = pl.lit(f"The line is longer than {limit:,} bytes (limits.max_line_bytes); its entry is refused.")
    reason = pl.when(is_long).then(too_long).otherwise(pl.lit(_NO_FORM))
    return lines.select(PLACE, LINE, reason=reason, remedy=pl.lit(_REMEDY), raw="text")


def _counters(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Parse counter lines to `place`, `name`, `samples`, `sum` and `is_bytes`; refuse malformed ones."""
    has_brace = lines["text"].str.head(_START_CHARS).str.contains("{", literal=True)
    is_sound = lines["text"].str.contains(_COUNTER) & has_brace
    sound_lines = lines if is_sound.all() else lines.filter(is_sound)
    # the distinct prefixes are few, so each is parsed only once
    starts = sound_lines["text"].str.head(_START_CHARS)
    prefixes = {
        start: (start[2 : start.index(":")].rstrip(" "), start.find("{") + len("{ samples:"))
        for start in starts.unique()
    }
    names = starts.replace_strict({start: name for start, (name, _) in prefixes.items()}, return_dtype=pl.String)
    offsets = starts.replace_strict({start: end for start, (_, end) in prefixes.items()}, return_dtype=pl.Int64)
    parts = sound_lines.select(PLACE, LINE, pl.col("text").str.slice(offsets).str.splitn(",", 3).alias("part")).unnest(
        "part"
    )
    is_bytes = pl.col("field_1").str.contains("bytes", literal=True)
    parsed = parts.select(
        PLACE,
        LINE,
        names.alias("name"),
        pl.col("field_0").str.strip_chars_start(" ").cast(pl.Int64).alias("samples"),
        is_bytes.alias("is_bytes"),
        pl.lit(0, pl.Int64).alias("sum"),
    )
    byte_fields = parts["field_2"].filter(parsed["is_bytes"]).str.splitn(",", 4).struct[2]
    sums = byte_fields.str.splitn(":", 2).struct[1].str.strip_chars(" }").cast(pl.Int64, strict=False)
    with_sums = parsed["sum"].scatter(parsed["is_bytes"].arg_true(), sums)
    # byte counters need a sum that fits a 64-bit column
    is_incomplete = with_sums.is_null() | (~parsed["is_bytes"] & names.str.ends_with("_bytes"))
    bad = lines.filter(~is_sound)
    if is_incomplete.any():
        return parsed.with_columns(with_sums).filter(~is_incomplete), _refuse_lines(
            pl.concat([bad, sound_lines.filter(is_incomplete)])
        )
    return parsed.with_columns(with_sums), _refuse_lines(bad)


def _heads(lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Parse the other lines to `place`, `what` (NULL: the job), `job` and `at_us`; refuse malformed ones."""
    parsed = lines.with_columns(pl.col("text").str.extract_groups(_HEAD).alias("found")).unnest("found")
    part = pl.col("part").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64).fill_null(0)
    doubled = pl.struct(PLACE, "what", pl.col("whole").is_null()).is_duplicated()
    heads = parsed.select(
        PLACE,
        LINE,
        "text",
        "what",
        "job",
        at_us=pl.col("seconds").cast(pl.Int64) * 1_000_000 + part,
        is_bad=pl.col("whole").is_null() | doubled,
        is_long=pl.col("text").str.len_bytes() > current_limits().max_line_bytes,
    )
    is_bad = pl.any_horizontal("is_bad", "is_long")
    return heads.filter(~is_bad), _refuse_lines(heads.filter(is_bad))


def _parse_heads(heads: pl.DataFrame, count: int) -> pl.DataFrame:
    """Build job_key, sampled_at, counter_started_at and `elapsed_us` of each entry, in order."""
    columns: dict[str, Any] = {}
    for name, kind in (("sampled_at", "snapshot"), ("counter_started_at", "start"), ("elapsed_us", "elapsed")):
        selected = heads.filter(pl.col("what") == kind)
        values, is_present = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        values[selected[PLACE].to_numpy()], is_present[selected[PLACE].to_numpy()] = selected["at_us"].to_numpy(), True
        columns[name] = pl.Series(values).set(pl.Series(~is_present), None)
    jobs = heads.filter(pl.col("what").is_null())
    keys = pl.DataFrame({PLACE: np.arange(count)}).join(jobs, on=PLACE, how="left", maintain_order="left")["job"]
    rows = pl.DataFrame(columns | {"job_key": unquote_job_ids(keys)})
    return rows.cast({"sampled_at": INSTANT, "counter_started_at": INSTANT})
