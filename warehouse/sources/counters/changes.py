"""Find changes between consecutive readings of a counter within an input, and the scrape times of each target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts.counters import SCRAPES
from iosig.warehouse.sources.counters.samples import build_sample_batches, find_filesystems, instants
from iosig.warehouse.sources.protocol import Batch, Reading
from iosig.warehouse.sources.rows.rejects import build_refused_rows, build_reject_frame

Numbers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
#: columns that identify a counter; strings that may be NULL
KEYS = ("filesystem", "component", "target", "job_key", "collector")
_OWNERS = tuple(name for name in KEYS if name != "job_key")
#: maximum number of counters with a cached last value; older ones are evicted first
_MAX_COUNTERS = 2_000_000
#: column that sums several operations
_OTHER_COUNT = "total_other_count"
_DAY_US = 86_400_000_000
_NEVER = np.iinfo(np.int64).max
#: remedy for a damaged input
CUT = "Check for a truncated file, or two concurrent writers."
#: columns of readings: hashes of the counter, of its owner (a target or its jobs) and of the values, and the time
_SCHEMA = pl.Schema({"key": pl.UInt64, "owner": pl.UInt64, "said": pl.UInt64, "at_us": pl.Int64})
_SCRAPE_SCHEMA = pl.Schema(
    dict.fromkeys(_OWNERS, pl.String) | {"is_job_scrape": pl.Boolean, "at_us": pl.Int64, "entry_count": pl.Int64}
)


def fill_filesystems(keys: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Fill the file system of KEYS from the user, the input, or the target's name, in this order."""
    filesystems = find_filesystems(keys["target"], reading)
    filesystem = filesystems if reading.filesystem else keys.select(pl.coalesce("filesystem", filesystems)).to_series()
    return keys.select(KEYS).with_columns(filesystem.alias("filesystem"))


@dataclass(slots=True)
class Changes:
    """Drops readings that repeat their counter's previous one; a counter's readings arrive mostly in time order."""

    _last: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_SCHEMA))
    _scrapes: list[pl.DataFrame] = field(default_factory=list)

    def take(self, keys: pl.DataFrame, value_hashes: pl.Series, at_us: pl.Series) -> pl.Series:
        """Return the sorted indices of readings that changed, or are the first of their counter or of a UTC day.

        keys: KEYS of each reading. value_hashes: hash of the reading's values. at_us: time of the reading [us since
        1970].
        """
        owners = keys.select(*_OWNERS, pl.col("job_key").is_not_null().alias("is_job_scrape"))
        hashes = pl.DataFrame({"key": keys.select(KEYS).hash_rows(), "owner": owners.hash_rows()})
        last = self._last
        counters = pl.concat([last.select(hashes.columns), hashes])
        readings = _TimeOrdered.from_readings(
            counters,
            np.arange(counters.height),
            np.concatenate([last["said"].to_numpy(), value_hashes.to_numpy()]),
            np.concatenate([last["at_us"].to_numpy(), at_us.to_numpy()]),
        )
        by_key, is_again, is_same = readings.compare_with_previous()
        first, entry_count = readings.scrapes(last.height, by_key, is_again)
        self._count(owners[readings.place[first] - last.height], readings.at_us[first], entry_count)
        self._remember(counters, readings, by_key[~np.append(is_again[1:], False)[: len(by_key)]])
        changed = readings.place[by_key[~is_same]]
        return pl.Series(np.sort(changed[changed >= last.height]) - last.height)

    def _remember(self, counters: pl.DataFrame, readings: _TimeOrdered, chosen: Numbers) -> None:
        if len(chosen) > _MAX_COUNTERS:
            chosen = np.sort(chosen)[-(_MAX_COUNTERS // 2) :]
        remembered = counters[readings.number[chosen]]
        self._last = remembered.with_columns(said=readings.said[chosen], at_us=readings.at_us[chosen])

    def _count(self, owners: pl.DataFrame, at_us: Numbers, entry_count: Numbers) -> None:
        self._scrapes.append(owners.with_columns(at_us=at_us, entry_count=entry_count))
        if sum(frame.height for frame in self._scrapes) > 2 * max(self._scrapes[0].height, 100_000):
            self._scrapes = [self._sum_scrapes()]

    def _sum_scrapes(self) -> pl.DataFrame:
        scrapes = pl.concat([pl.DataFrame(schema=_SCRAPE_SCHEMA), *self._scrapes])
        return scrapes.group_by(*_OWNERS, "is_job_scrape", "at_us").agg(pl.col("entry_count").sum())

    def scrapes(self) -> pl.DataFrame:
        """Return the times and counter counts of each target's scrapes, as rows of `scrapes`."""
        rows = self._sum_scrapes().sort("at_us", *_OWNERS, "is_job_scrape")
        return rows.with_columns(scraped_at=instants(pl.col("at_us"))).select(SCRAPES.column_names)


@dataclass(frozen=True, slots=True)
class _TimeOrdered:
    """Readings in time order, with their counters and owners as integer codes.

    place: index of each reading in the concatenated old and new readings. number: index of its counter among the known
    ones. by_owner: readings by owner, in time order; scrape: positions in `by_owner` at which an owner's readings of
    one time start.
    """

    place: Numbers
    number: Numbers
    key: Numbers
    owner: Numbers
    said: Numbers
    at_us: Numbers
    by_owner: Numbers
    scrape: Numbers

    @classmethod
    def from_readings(
        cls, counters: pl.DataFrame, number: Numbers, value_hashes: Numbers, at_us: Numbers
    ) -> _TimeOrdered:
        """Sort readings by time; counters: their `key` and `owner`; number: each reading's index in `counters`."""
        place = np.argsort(at_us, kind="stable")
        number, at_us = number[place], at_us[place]
        key, owner = (np.unique(counters[name].to_numpy(), return_inverse=True)[1][number] for name in ("key", "owner"))
        by_owner = _sort_stably(owner)
        scrape = np.flatnonzero(~(_equals_previous(owner[by_owner]) & _equals_previous(at_us[by_owner])))
        return cls(place, number, key, owner, value_hashes[place], at_us, by_owner, scrape)

    def compare_with_previous(self) -> tuple[Numbers, Flags, Flags]:
        """Return readings by counter, a mask of those with an earlier reading, and a mask of those that repeat it.

        A reading repeats the previous one if its values are the same, no UTC day has begun in between, and the counter
        was present in its target's previous scrape.
        """
        by_key = _sort_stably(self.key)
        at_us, before_us = self.at_us[by_key], self._previous_scrape_us()[by_key]
        is_again = _equals_previous(self.key[by_key])
        is_same = is_again & _equals_previous(self.said[by_key]) & _equals_previous(at_us // _DAY_US)
        return by_key, is_again, is_same & ((before_us <= np.roll(at_us, 1)) | _equals_previous(at_us))

    def _previous_scrape_us(self) -> Numbers:
        """Return the time of the previous scrape of each reading's owner."""
        first = self.by_owner[self.scrape]
        before_us = np.where(_equals_previous(self.owner[first]), np.roll(self.at_us[first], 1), _NEVER)
        previous_us = np.empty_like(self.at_us)
        previous_us[self.by_owner] = np.repeat(before_us, np.diff(self.scrape, append=len(previous_us)))
        return previous_us

    def scrapes(self, last_count: int, by_key: Numbers, is_again: Flags) -> tuple[Numbers, Numbers]:
        """Return the first new reading of each owner at each time, and the number of its counters.

        last_count: number of old readings. by_key, is_again: as `compare_with_previous` returns them.
        """
        is_new = self.place >= last_count
        is_entry = is_new.copy()
        # two readings of a counter at one time count as one entry
        is_entry[by_key[is_again & _equals_previous(self.at_us[by_key]) & np.roll(is_new[by_key], 1)]] = False
        old, entries = (
            np.add.reduceat(mask[self.by_owner], self.scrape, dtype=np.int64) for mask in (~is_new, is_entry)
        )
        # the indices of old readings come first
        return self.by_owner[(self.scrape + old)[entries > 0]], entries[entries > 0]


def _sort_stably(numbers: Numbers) -> Numbers:
    """Return the stable argsort of non-negative integers."""
    bits = len(numbers).bit_length()
    # sorting packed integers is many times faster than argsort
    return np.sort(numbers << bits | np.arange(len(numbers))) & ((1 << bits) - 1)


def _equals_previous(values: Numbers) -> Flags:
    """Mark values that equal the previous value; False for the first."""
    is_equal = np.zeros(len(values), np.bool_)
    np.equal(values[1:], values[:-1], out=is_equal[1:])
    return is_equal


def pivot_points(points: pl.DataFrame) -> pl.DataFrame:
    """Pivot points to one row per counter and time, and sum the values of each column.

    points: KEYS, `at_us`, `column` (a column of counter_samples), `value` and `line`. The result has KEYS, `at_us`,
    the first `line`, `is_doubled` (a column has two values) and a column for each counted quantity, NULL if absent.
    """
    key = points.select(*KEYS, "at_us").hash_rows().to_frame("key")
    heads = points.filter(key["key"].is_first_distinct())
    places = key.unique(maintain_order=True).with_row_index("place")
    place = key.join(places, on="key", how="left", maintain_order="left")["place"].to_numpy()
    names = points["column"].unique().sort()
    column = names.search_sorted(points["column"]).to_numpy()
    return heads.select(*KEYS, "at_us", "line").hstack(
        _sum_columns(place, heads.height, column, names.to_list(), points["value"].to_numpy())
    )


def pivot_series(series: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Pivot repeatedly read series to one row per counter and time, as `pivot_points` does.

    series: KEYS and `column` of each series; `column` is NULL if another series counts the same. values: `series` (an
    index), `at_us`, `value` and `line`, in the order of lines; each time has one snapshot.
    """
    values = values.filter(series["column"].is_not_null().gather(values["series"]))
    key = series.select(KEYS).hash_rows()
    counter = key.unique().sort().search_sorted(key).to_numpy()
    names = series["column"].drop_nulls().unique().sort()
    column = names.search_sorted(series["column"].fill_null("")).to_numpy()
    number = values["series"].to_numpy()
    times, time = np.unique(values["at_us"].to_numpy(), return_inverse=True)
    cell = counter[number].astype(np.int64) * len(times) + time
    _, first, place = np.unique(cell, return_index=True, return_inverse=True)
    # order rows by their first lines
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    heads = values[first[order]]
    rows = series.select(KEYS)[heads["series"].to_numpy()].hstack(heads.select("at_us", "line"))
    return rows.hstack(
        _sum_columns(ranks[place], rows.height, column[number], names.to_list(), values["value"].to_numpy())
    )


def _sum_columns(place: Numbers, count: int, column: Numbers, names: Sequence[str], value: Numbers) -> list[pl.Series]:
    """Sum values by row (`place`) and column; returns `is_doubled` and the columns."""
    columns = []
    is_doubled = np.zeros(count, np.bool_)
    for number, name in enumerate(names):
        is_selected = column == number
        values = np.zeros(count, np.int64)
        times = np.bincount(place[is_selected], minlength=count)
        if times.max(initial=0) > 1:
            np.add.at(values, place[is_selected], value[is_selected])
        else:
            values[place[is_selected]] = value[is_selected]
        is_doubled |= (times > 1) & (name != _OTHER_COUNT)
        columns.append(pl.Series(name, values).set(pl.Series(times == 0), None))
    return [pl.Series("is_doubled", is_doubled), *columns]


def convert_to_samples(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert readings to samples with `scraped_at` from `at_us`, and `sampled_at` from `held_us` if present."""
    sampled_us = pl.coalesce("held_us", "at_us") if "held_us" in rows.columns else pl.col("at_us")
    times = rows.with_columns(sampled_at=instants(sampled_us), scraped_at=instants(pl.col("at_us")))
    return times.drop("at_us", "held_us", strict=False)


def find_incomplete_jobs(rows: pl.DataFrame) -> pl.Series:
    """Mark jobs with fewer counters than other jobs of their target, since a collector reports all counters or none."""
    counts = [name for name in rows.columns if name.startswith("total_")]
    is_job = rows["job_key"].is_not_null()
    if not counts or not rows.select(pl.any_horizontal(pl.col(counts).has_nulls())).item():
        return pl.repeat(False, rows.height, dtype=pl.Boolean, eager=True)
    target = pl.struct("component", "target", "at_us").hash()
    job = rows.with_columns(_target=target).filter(is_job)
    present = job.group_by("_target").agg(pl.col(name).is_not_null().any() for name in counts)
    marked = rows.with_columns(_target=target).join(
        present, on="_target", how="left", maintain_order="left", suffix="_there"
    )
    is_missing = pl.any_horizontal(pl.col(name).is_null() & pl.col(f"{name}_there").fill_null(False) for name in counts)
    return marked.select(is_missing.alias("lacks")).to_series() & is_job


def select_changes(rows: pl.DataFrame, changes: Changes, reading: Reading) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the changed readings as samples, and jobs with missing counters as refused rows.

    rows: KEYS, `line`, `at_us`, perhaps `held_us`, and columns of counter_samples.
    """
    counts = [name for name in rows.columns if name.startswith("total_")]
    refused = build_reject_frame([])
    if any(rows[name].has_nulls() for name in counts) and (is_incomplete := find_incomplete_jobs(rows)).any():
        refused = build_refused_rows(
            rows.filter(is_incomplete), "The job has fewer counters than others of its target.", CUT
        )
        rows = rows.filter(~is_incomplete)
    rows = rows.with_columns(fill_filesystems(rows, reading))
    changed = changes.take(rows.select(KEYS), rows.select(counts).hash_rows(), rows["at_us"])
    return convert_to_samples(rows[changed]), refused


def build_change_batches(
    rows: pl.DataFrame, refused: pl.DataFrame, changes: Changes, reading: Reading
) -> Iterator[Batch]:
    """Yield the changed readings (see `select_changes`), if any, and the refused rows."""
    if rows.is_empty():
        yield from build_sample_batches(refused)
        return
    changed, lacking_rows = select_changes(rows, changes, reading)
    yield from build_sample_batches(pl.concat([refused, lacking_rows]), changed)
