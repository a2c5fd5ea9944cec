"""What changed between one reading of a counter and the next within an input, and when each target was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.contracts.counters import SCRAPES
from iosig.warehouse.sources.counters.samples import batches, filesystems, instants
from iosig.warehouse.sources.protocol import Batch, Reading
from iosig.warehouse.sources.rows.rejects import frame_of, refused_rows

Numbers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
#: what a counter is told by, each a text that may be NULL
KEYS = ("filesystem", "component", "target", "job_key", "collector")
_OWNERS = tuple(name for name in KEYS if name != "job_key")
#: counters whose last values are remembered: those read last, where there are more
_MOST_COUNTERS = 2_000_000
#: several operations count into it
_SUMMED = "total_other_count"
_DAY_US = 86_400_000_000
_NEVER = np.iinfo(np.int64).max
#: what to do about an input that is damaged
CUT = "Check for a cut file, or one that two wrote at once."
#: of readings: hashes of their counter and of its owner, which is a target or its jobs, and of what they say
_SCHEMA = pl.Schema({"key": pl.UInt64, "owner": pl.UInt64, "said": pl.UInt64, "at_us": pl.Int64})
_SCRAPE_SCHEMA = pl.Schema(
    dict.fromkeys(_OWNERS, pl.String) | {"is_job_scrape": pl.Boolean, "at_us": pl.Int64, "entry_count": pl.Int64}
)


def settled(keys: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Return KEYS with each target's file system: what the user says, the input, or the target's name."""
    named = filesystems(keys["target"], reading)
    told = named if reading.filesystem else keys.select(pl.coalesce("filesystem", named)).to_series()
    return keys.select(KEYS).with_columns(told.alias("filesystem"))


@dataclass(slots=True)
class Changes:
    """Tells readings that say what the reading before said; those of one counter come in the order of time, mostly."""

    _last: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_SCHEMA))
    _scrapes: list[pl.DataFrame] = field(default_factory=list)

    def take(self, keys: pl.DataFrame, said: pl.Series, at_us: pl.Series) -> pl.Series:
        """Return the places, in order, of readings that changed, are first, or first on a UTC day.

        keys: KEYS of each reading. said: a hash of all that it says. at_us: when it was read [us since 1970].
        """
        owners = keys.select(*_OWNERS, pl.col("job_key").is_not_null().alias("is_job_scrape"))
        told = pl.DataFrame({"key": keys.select(KEYS).hash_rows(), "owner": owners.hash_rows()})
        last = self._last
        known = pl.concat([last.select(told.columns), told])
        both = _InTime.of(
            known,
            np.arange(known.height),
            np.concatenate([last["said"].to_numpy(), said.to_numpy()]),
            np.concatenate([last["at_us"].to_numpy(), at_us.to_numpy()]),
        )
        by_key, is_again, is_same = both.compared()
        first, entry_count = both.scrapes(last.height, by_key, is_again)
        self._count(owners[both.place[first] - last.height], both.at_us[first], entry_count)
        self._remember(known, both, by_key[~np.append(is_again[1:], False)[: len(by_key)]])
        changed = both.place[by_key[~is_same]]
        return pl.Series(np.sort(changed[changed >= last.height]) - last.height)

    def _remember(self, known: pl.DataFrame, both: _InTime, chosen: Numbers) -> None:
        if len(chosen) > _MOST_COUNTERS:
            chosen = np.sort(chosen)[-(_MOST_COUNTERS // 2) :]
        told = known[both.number[chosen]]
        self._last = told.with_columns(said=both.said[chosen], at_us=both.at_us[chosen])

    def _count(self, owners: pl.DataFrame, at_us: Numbers, entry_count: Numbers) -> None:
        self._scrapes.append(owners.with_columns(at_us=at_us, entry_count=entry_count))
        if sum(frame.height for frame in self._scrapes) > 2 * max(self._scrapes[0].height, 100_000):
            self._scrapes = [self._summed()]

    def _summed(self) -> pl.DataFrame:
        told = pl.concat([pl.DataFrame(schema=_SCRAPE_SCHEMA), *self._scrapes])
        return told.group_by(*_OWNERS, "is_job_scrape", "at_us").agg(pl.col("entry_count").sum())

    def scrapes(self) -> pl.DataFrame:
        """Return when each target was read, and how many counters it had then, as rows of `scrapes`."""
        found = self._summed().sort("at_us", *_OWNERS, "is_job_scrape")
        return found.with_columns(scraped_at=instants(pl.col("at_us"))).select(SCRAPES.column_names)


@dataclass(frozen=True, slots=True)
class _InTime:
    """Readings in the order of time, with their counters and the owners of these as numbers.

    place: where each stood before, among the last ones and new ones. number: where its counter is among what is known.
    by_owner: readings by owner, in the order of time; scrape: where an owner's readings of one time begin there.
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
    def of(cls, known: pl.DataFrame, number: Numbers, said: Numbers, at_us: Numbers) -> _InTime:
        """Put readings in order; known: `key` and `owner` of counters, number: the place there of each reading's."""
        place = np.argsort(at_us, kind="stable")
        number, at_us = number[place], at_us[place]
        key, owner = (np.unique(known[name].to_numpy(), return_inverse=True)[1][number] for name in ("key", "owner"))
        by_owner = _grouped(owner)
        scrape = np.flatnonzero(~(_is_again(owner[by_owner]) & _is_again(at_us[by_owner])))
        return cls(place, number, key, owner, said[place], at_us, by_owner, scrape)

    def compared(self) -> tuple[Numbers, Flags, Flags]:
        """Return readings by counter, which of these have one before them, and which say what that one said.

        What was not there when its target was read the last time begins anew.
        """
        by_key = _grouped(self.key)
        at_us, before_us = self.at_us[by_key], self._before_us()[by_key]
        is_again = _is_again(self.key[by_key])
        is_same = is_again & _is_again(self.said[by_key]) & _is_again(at_us // _DAY_US)
        return by_key, is_again, is_same & ((before_us <= np.roll(at_us, 1)) | _is_again(at_us))

    def _before_us(self) -> Numbers:
        """Return when each reading's owner was read before it."""
        first = self.by_owner[self.scrape]
        before_us = np.where(_is_again(self.owner[first]), np.roll(self.at_us[first], 1), _NEVER)
        found = np.empty_like(self.at_us)
        found[self.by_owner] = np.repeat(before_us, np.diff(self.scrape, append=len(found)))
        return found

    def scrapes(self, last_count: int, by_key: Numbers, is_again: Flags) -> tuple[Numbers, Numbers]:
        """Return the first new reading of each owner at each time, and how many counters were read then.

        last_count: how many readings are not new. by_key, is_again: as `compared` returns them.
        """
        is_new = self.place >= last_count
        is_entry = is_new.copy()
        # a counter that is told twice of one time is one entry
        is_entry[by_key[is_again & _is_again(self.at_us[by_key]) & np.roll(is_new[by_key], 1)]] = False
        old, entries = (
            np.add.reduceat(told[self.by_owner], self.scrape, dtype=np.int64) for told in (~is_new, is_entry)
        )
        # those that are not new come first
        return self.by_owner[(self.scrape + old)[entries > 0]], entries[entries > 0]


def _grouped(numbers: Numbers) -> Numbers:
    """Return the places of numbers in their order, those of equal ones as they stand."""
    bits = len(numbers).bit_length()
    # to sort words is many times as fast as to sort places by them
    return np.sort(numbers << bits | np.arange(len(numbers))) & ((1 << bits) - 1)


def _is_again(values: Numbers) -> Flags:
    """Return which values are that before them."""
    found = np.zeros(len(values), np.bool_)
    np.equal(values[1:], values[:-1], out=found[1:])
    return found


def wide(points: pl.DataFrame) -> pl.DataFrame:
    """Return counters a row from values a row: what counts into one column is added up.

    points: KEYS, `at_us`, `column` (a column of counter_samples), `value` and `line`. The result has KEYS, `at_us`, the
    first `line`, `is_doubled` (a column is told twice) and a column for each that is counted, NULL where it is not.
    """
    key = points.select(*KEYS, "at_us").hash_rows().to_frame("key")
    heads = points.filter(key["key"].is_first_distinct())
    known = key.unique(maintain_order=True).with_row_index("place")
    place = key.join(known, on="key", how="left", maintain_order="left")["place"].to_numpy()
    names = points["column"].unique().sort()
    column = names.search_sorted(points["column"]).to_numpy()
    return heads.select(*KEYS, "at_us", "line").hstack(
        _filled(place, heads.height, column, names.to_list(), points["value"].to_numpy())
    )


def wide_of_series(series: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Return counters a row, as `wide` does, of series that are read more than once.

    series: KEYS and `column` of each; NULL in `column` where a series counts elsewhere. values: `series` (its place),
    `at_us`, `value` and `line`, in the order of lines; of one time there is one snapshot.
    """
    values = values.filter(series["column"].is_not_null().gather(values["series"]))
    key = series.select(KEYS).hash_rows()
    counter = key.unique().sort().search_sorted(key).to_numpy()
    names = series["column"].drop_nulls().unique().sort()
    column = names.search_sorted(series["column"].fill_null("")).to_numpy()
    number = values["series"].to_numpy()
    times, time = np.unique(values["at_us"].to_numpy(), return_inverse=True)
    own = counter[number].astype(np.int64) * len(times) + time
    _, first, place = np.unique(own, return_index=True, return_inverse=True)
    # in the order of their first lines
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    heads = values[first[order]]
    told = series.select(KEYS)[heads["series"].to_numpy()].hstack(heads.select("at_us", "line"))
    return told.hstack(_filled(ranks[place], told.height, column[number], names.to_list(), values["value"].to_numpy()))


def _filled(place: Numbers, count: int, column: Numbers, names: Sequence[str], value: Numbers) -> list[pl.Series]:
    """Return `is_doubled` and the columns of counters, of values with the place of their row and of their column."""
    columns = []
    is_doubled = np.zeros(count, np.bool_)
    for number, name in enumerate(names):
        own = column == number
        values = np.zeros(count, np.int64)
        times = np.bincount(place[own], minlength=count)
        if times.max(initial=0) > 1:
            np.add.at(values, place[own], value[own])
        else:
            values[place[own]] = value[own]
        is_doubled |= (times > 1) & (name != _SUMMED)
        columns.append(pl.Series(name, values).set(pl.Series(times == 0), None))
    return [pl.Series("is_doubled", is_doubled), *columns]


def as_samples(rows: pl.DataFrame) -> pl.DataFrame:
    """Return readings as samples: read at `at_us`, and held since `held_us` where the rows say that."""
    held = pl.coalesce("held_us", "at_us") if "held_us" in rows.columns else pl.col("at_us")
    times = rows.with_columns(sampled_at=instants(held), scraped_at=instants(pl.col("at_us")))
    return times.drop("at_us", "held_us", strict=False)


def lacking(rows: pl.DataFrame) -> pl.Series:
    """Return which jobs have fewer counters than others of their target: a collector gives all of them, or none."""
    counts = [name for name in rows.columns if name.startswith("total_")]
    is_job = rows["job_key"].is_not_null()
    if not counts or not rows.select(pl.any_horizontal(pl.col(counts).has_nulls())).item():
        return pl.repeat(False, rows.height, dtype=pl.Boolean, eager=True)
    target = pl.struct("component", "target", "at_us").hash()
    job = rows.with_columns(_target=target).filter(is_job)
    has = job.group_by("_target").agg(pl.col(name).is_not_null().any() for name in counts)
    marked = rows.with_columns(_target=target).join(
        has, on="_target", how="left", maintain_order="left", suffix="_there"
    )
    lacks = pl.any_horizontal(pl.col(name).is_null() & pl.col(f"{name}_there").fill_null(False) for name in counts)
    return marked.select(lacks.alias("lacks")).to_series() & is_job


def news(rows: pl.DataFrame, changes: Changes, reading: Reading) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return as samples what changed of whole readings, and as refused rows the jobs that lack counters.

    rows: KEYS, `line`, `at_us`, perhaps `held_us`, and columns of counter_samples.
    """
    counts = [name for name in rows.columns if name.startswith("total_")]
    refused = frame_of([])
    if any(rows[name].has_nulls() for name in counts) and (lacks := lacking(rows)).any():
        refused = refused_rows(rows.filter(lacks), "The job has fewer counters than others of its target.", CUT)
        rows = rows.filter(~lacks)
    rows = rows.with_columns(settled(rows, reading))
    changed = changes.take(rows.select(KEYS), rows.select(counts).hash_rows(), rows["at_us"])
    return as_samples(rows[changed]), refused


def landed(rows: pl.DataFrame, refused: pl.DataFrame, changes: Changes, reading: Reading) -> Iterator[Batch]:
    """Yield what changed of whole readings (see `news`), if there are any, and what is refused."""
    if rows.is_empty():
        yield from batches(refused)
        return
    changed, lacking_rows = news(rows, changes, reading)
    yield from batches(pl.concat([refused, lacking_rows]), changed)
