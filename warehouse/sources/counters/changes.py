"""What changed between one reading of a counter and the next within an input, and when each target was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from warehouse.contracts.counters import SCRAPES
from warehouse.sources.counters.samples import filesystems, instants
from warehouse.sources.protocol import Reading

Numbers = npt.NDArray[Any]
#: what a counter is told by, each a text that may be NULL
KEYS = ("filesystem", "component", "target", "job_key", "collector")
_OWNERS = tuple(name for name in KEYS if name != "job_key")
#: counters whose last values are remembered: those read last, where there are more
_MOST_COUNTERS = 2_000_000
#: several operations count into it
_SUMMED = "total_other_count"
_DAY_US = 86_400_000_000
#: what to do about an input that is damaged
CUT = "Check for a cut file, or one that two wrote at once."
_SCHEMA = pl.Schema({"key": pl.UInt64, "said": pl.UInt64, "owner": pl.UInt64, "at_us": pl.Int64, "place": pl.Int64})
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
        is_job = keys["job_key"].is_not_null()
        owner = keys.select(_OWNERS).with_columns(is_job.alias("is_job")).hash_rows()
        new = pl.DataFrame(
            {"key": keys.select(KEYS).hash_rows(), "said": said, "owner": owner, "at_us": at_us}
        ).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("place"))
        counted = new.group_by("owner", "at_us").agg(pl.col("place").first(), pl.col("key").n_unique().alias("count"))
        self._count(keys, is_job, counted)
        both = pl.concat([self._last, new.select(_SCHEMA.names())])
        # what was read of a target before each time: a counter that was not there then begins anew
        before = (
            both.select("owner", "at_us")
            .unique()
            .sort("owner", "at_us")
            .with_columns(
                pl.when(pl.col("owner") == pl.col("owner").shift()).then(pl.col("at_us").shift()).alias("before_us")
            )
        )
        # readings mostly come in the order of time: then the counters alone are to be put in order
        seen = cast(int | None, self._last["at_us"].max())
        is_ordered = at_us.is_sorted() and (seen is None or at_us.is_empty() or seen <= int(at_us[0]))
        order = ["key"] if is_ordered else ["key", "at_us", "place"]
        told = both.join(before, on=["owner", "at_us"], how="left", maintain_order="left").sort(
            order, nulls_last=False, maintain_order=True
        )
        is_same = (
            (pl.col("key") == pl.col("key").shift())
            & (pl.col("said") == pl.col("said").shift())
            & (pl.col("at_us") // _DAY_US == pl.col("at_us").shift() // _DAY_US)
            & ((pl.col("before_us") <= pl.col("at_us").shift()) | (pl.col("at_us") == pl.col("at_us").shift()))
        )
        marked = told.with_columns(is_same=is_same.fill_null(False))
        last = told.filter((pl.col("key") != pl.col("key").shift(-1)).fill_null(True)).select(_SCHEMA.names())
        if last.height > _MOST_COUNTERS:
            last = last.sort("at_us", descending=True).head(_MOST_COUNTERS // 2)
        self._last = last.with_columns(place=pl.lit(None, pl.Int64))
        return marked.filter(~pl.col("is_same") & pl.col("place").is_not_null())["place"].sort()

    def _count(self, keys: pl.DataFrame, is_job: pl.Series, counted: pl.DataFrame) -> None:
        places = counted["place"].to_numpy()
        self._scrapes.append(
            keys[places]
            .select(_OWNERS)
            .with_columns(
                is_job.gather(places).alias("is_job_scrape"),
                counted["at_us"],
                counted["count"].cast(pl.Int64).alias("entry_count"),
            )
        )
        if sum(frame.height for frame in self._scrapes) > 2 * max(self._scrapes[0].height, 100_000):
            self._scrapes = [self._summed()]

    def _summed(self) -> pl.DataFrame:
        told = pl.concat([pl.DataFrame(schema=_SCRAPE_SCHEMA), *self._scrapes])
        return told.group_by(*_OWNERS, "is_job_scrape", "at_us").agg(pl.col("entry_count").sum())

    def scrapes(self) -> pl.DataFrame:
        """Return when each target was read, and how many counters it had then, as rows of `scrapes`."""
        found = self._summed().sort("at_us", *_OWNERS, "is_job_scrape")
        return found.with_columns(scraped_at=instants(pl.col("at_us"))).select(SCRAPES.column_names)


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
    lacks = lacking(rows)
    refused = rows.filter(lacks).select(
        "line", reason=pl.lit("The job has fewer counters than others of its target."), remedy=pl.lit(CUT),
        raw=pl.lit(None, pl.String),
    )  # fmt: skip
    rows = rows.filter(~lacks) if lacks.any() else rows
    keys = settled(rows, reading)
    counts = [name for name in rows.columns if name.startswith("total_")]
    changed = changes.take(keys, rows.select(counts).hash_rows(), rows["at_us"])
    return as_samples(rows.with_columns(keys["filesystem"])[changed.to_numpy()]), refused
