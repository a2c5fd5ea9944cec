"""Compare the applications' signatures in two releases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from iosig.estimates.columns import finite_or_none
from iosig.estimates.signatures.published import KEY, PLACE, SUBJECT, TABLES, contents, defaults, read_signatures
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.similarity import compare_signatures
from iosig.warehouse.releases.reading import open_release

if TYPE_CHECKING:
    import duckdb

    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store

#: columns of `signature_changes`
SCHEMA: dict[str, pl.DataType] = {
    "application_id": pl.String(),
    "filesystem": pl.String(),
    "direction": pl.String(),
    "status": pl.String(),
    "method_before": pl.String(),
    "method": pl.String(),
    "outcome_before": pl.String(),
    "outcome": pl.String(),
    "change_correlation": pl.Float64(),
    "change_cross_correlation": pl.Float64(),
    "relative_volume_change": pl.Float64(),
    "volume_bytes_before": pl.Float64(),
    "volume_bytes": pl.Float64(),
    "added_burst_count": pl.Int64(),
    "removed_burst_count": pl.Int64(),
    "added_peak_s": pl.List(pl.Float64()),
    "removed_peak_s": pl.List(pl.Float64()),
    "change_ratio": pl.Float64(),
}
#: columns of one side of a pair, and the suffix of the later side's columns
_PAIRED = (*SUBJECT, "method", "outcome", "background_bytes_per_s", "duration_s", "content")
_AFTER = "_after"
#: order of the statuses in the result; within each, largest change first
_STATUSES = ("changed", "gone", "new")
#: maximum total length of a chunk's curves in each release [s]; bounds memory
_CHUNK_S = 5_000_000


def signature_changes(store: Store, before: Release, after: Release, method: str | None = None) -> pl.DataFrame:
    """Compare the signatures of two releases, of one method or of each subject's default; one row per difference.

    Columns: see `SCHEMA`. status: `changed`, or `new` or `gone` if only one release has a signature. Changes are
    relative to the earlier release: correlations of the curves, relative volume change, added and removed bursts with
    their peak times. change_ratio: maximum of 1 - correlation, relative volume change, and the fraction of bursts
    added or removed.
    """
    if before.snapshots.get("signatures") == after.snapshots.get("signatures"):
        return pl.DataFrame(schema=SCHEMA)
    with open_release(store, before, TABLES) as old, open_release(store, after, TABLES) as new:
        pairs = _pairs(_read_release(old, method), _read_release(new, method))
        parts = [_compare(old, new, part) for part in _chunks(pairs)]
    rank = pl.col("status").replace_strict(_STATUSES, list(range(len(_STATUSES))), return_dtype=pl.Int8)
    return pl.concat([pl.DataFrame(schema=SCHEMA), *parts]).sort(
        rank,
        pl.col("change_ratio").fill_null(0.0),
        pl.max_horizontal("volume_bytes_before", "volume_bytes"),
        *PLACE,
        descending=[False, True, True, False, False, False],
    )


# ---- which signatures differ


def _read_release(connection: duckdb.DuckDBPyConnection, method: str | None) -> pl.DataFrame:
    """Read the signatures of a release, each with a hash of its curve."""
    rows = defaults(connection, method).join(contents(connection), on=KEY, how="left", maintain_order="left")
    paired = rows.select(*_PAIRED)
    # a subject has one default; keep the first if a release has more
    return paired.unique(SUBJECT, keep="first", maintain_order=True)


def _pairs(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Join both releases on subjects, and keep those with a signature on either side that differ."""
    joined = before.join(after, on=SUBJECT, how="full", suffix=_AFTER, coalesce=True)
    is_same = (pl.col("content") == pl.col(f"content{_AFTER}")) & (pl.col("method") == pl.col(f"method{_AFTER}"))
    is_there = (pl.col("outcome") == "extracted").fill_null(False)
    is_there_after = (pl.col(f"outcome{_AFTER}") == "extracted").fill_null(False)
    return joined.filter((is_there | is_there_after) & ~is_same.fill_null(False)).sort(SUBJECT)


def _chunks(pairs: pl.DataFrame) -> list[pl.DataFrame]:
    """Split pairs into chunks that fit into memory; each chunk costs one scan of all points."""
    seconds = pl.max_horizontal("duration_s", f"duration_s{_AFTER}").fill_null(0.0)
    number = (seconds.cum_sum() / _CHUNK_S).floor()
    return pairs.with_columns(number.alias("chunk")).partition_by("chunk", maintain_order=True, include_key=False)


# ---- how much


def _compare(old: duckdb.DuckDBPyConnection, new: duckdb.DuckDBPyConnection, pairs: pl.DataFrame) -> pl.DataFrame:
    before = _side(old, pairs, "")
    after = _side(new, pairs, _AFTER)
    rows = [
        {
            **{name: pair[name] for name in PLACE},
            "method_before": pair["method"],
            "method": pair[f"method{_AFTER}"],
            "outcome_before": pair["outcome"],
            "outcome": pair[f"outcome{_AFTER}"],
            **_change(old_signature, new_signature),
        }
        for pair, old_signature, new_signature in zip(pairs.iter_rows(named=True), before, after, strict=True)
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _side(connection: duckdb.DuckDBPyConnection, pairs: pl.DataFrame, suffix: str) -> list[Signature | None]:
    """Read each pair's signature in one release; None if it has none."""
    names = {f"{name}{suffix}": name for name in _PAIRED if name not in SUBJECT}
    rows = pairs.select(*SUBJECT, *names).rename(names)
    is_there = (rows["outcome"] == "extracted").fill_null(False)
    signatures = iter(read_signatures(connection, rows.filter(is_there)))
    return [next(signatures) if has_signature else None for has_signature in is_there]


def _change(before: Signature | None, after: Signature | None) -> dict[str, Any]:
    if before is None or after is None:
        existing = before or after
        volume = None if existing is None else existing.volume_bytes
        return (
            {"status": "new", "volume_bytes": volume}
            if before is None
            else {"status": "gone", "volume_bytes_before": volume}
        )
    comparison = compare_signatures(before, after)
    added, removed = comparison.added.peak_s.tolist(), comparison.removed.peak_s.tolist()
    moved = (len(added) + len(removed)) / max(len(before.bursts) + len(after.bursts), 1)
    # a constant curve has no correlation: treat it as 0
    correlation = comparison.correlation if math.isfinite(comparison.correlation) else 0.0
    volume = comparison.volume_ratio - 1
    return {
        "status": "changed",
        "change_correlation": finite_or_none(comparison.correlation),
        "change_cross_correlation": finite_or_none(comparison.cross_correlation),
        "relative_volume_change": finite_or_none(volume),
        "volume_bytes_before": before.volume_bytes,
        "volume_bytes": after.volume_bytes,
        "added_burst_count": len(added),
        "removed_burst_count": len(removed),
        "added_peak_s": added,
        "removed_peak_s": removed,
        "change_ratio": max(1 - correlation, abs(volume) if math.isfinite(volume) else 0.0, moved),
    }
