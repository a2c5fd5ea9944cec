"""Count each job's share of the counters of nodes, for collectors whose readings name the node's job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.counters.changes import Changes, build_change_batches
from iosig.warehouse.sources.protocol import Batch, Reading
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_reject_frame

#: job ids of a node without a job
NO_JOB = ("", "0", "-")


@dataclass(slots=True)
class JobShares:
    """Counts each job's share of its nodes' counters, from its first reading of a node on.

    The rise since the previous reading belongs to the job if that reading named it or no job. The rise from one job to
    the next belongs to neither, so a share is a lower bound. After a restart of the counter, its value is the rise.
    """

    _last: pl.DataFrame | None = field(default=None)

    def take(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace counters by the share of the job that the reading names; readings of a target come in time order."""
        counts = [name for name in rows.columns if name.startswith("total_")]
        new = rows.with_columns(pl.lit(None, pl.Int64).alias(f"own {name}") for name in counts)
        new = new.with_columns(is_new=pl.lit(True))
        all_rows = new if self._last is None else pl.concat([self._last, new])
        job, before = pl.col("job_key"), pl.col("job_key").shift().over("target")
        continues = (job == before) | before.is_in(NO_JOB)
        rises = {name: pl.col(name) - pl.col(name).shift().over("target") for name in counts}
        rises = {name: pl.when(rise < 0).then(pl.col(name)).otherwise(rise) for name, rise in rises.items()}
        owned = [
            pl.coalesce(f"own {name}", pl.when(continues).then(rise), pl.lit(0)).alias(f"own {name}")
            for name, rise in rises.items()
        ]
        numbered = all_rows.with_columns(*owned, run=(job != before).fill_null(True).cum_sum().over("target"))
        shares = numbered.with_columns(pl.col(f"own {name}").cum_sum().over("target", "run") for name in counts)
        self._last = (
            shares.group_by("target", maintain_order=True).last().select(new.columns).with_columns(is_new=False)
        )
        found = shares.filter("is_new")
        return found.with_columns(
            pl.when(pl.col(name).is_not_null()).then(f"own {name}").alias(name) for name in counts
        ).select(rows.columns)


def _idle_scrapes(idle: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Return scrapes without entries for readings of nodes that had no job."""
    filesystem = pl.lit(reading.filesystem) if reading.filesystem else pl.col("filesystem")
    return idle.select(
        filesystem.alias("filesystem"),
        "component",
        "target",
        "collector",
        scraped_at=samples.instants(pl.col("at_us")),
        entry_count=pl.lit(0, pl.Int64),
        is_job_scrape=pl.lit(True),
    )


def build_share_batches(readings: ParsedRows, shares: JobShares, changes: Changes, reading: Reading) -> Iterator[Batch]:
    """Yield the changed counters of nodes, in total and by job, and the refused rows.

    readings: KEYS with the job that the reading names (NO_JOB for none) as `job_key`, `line`, `at_us`, and counters.
    """
    if readings.rows.is_empty():
        yield from samples.build_sample_batches(readings.refused)
        return
    by_job = shares.take(readings.rows)
    idle = by_job.filter(pl.col("job_key").is_in(NO_JOB))
    jobs = by_job.filter(~pl.col("job_key").is_in(NO_JOB))
    totals = readings.rows.with_columns(job_key=pl.lit(None, pl.String))
    yield from build_change_batches(pl.concat([totals, jobs]).sort(LINE), readings.refused, changes, reading)
    yield from samples.build_sample_batches(build_reject_frame([]), scrapes=_idle_scrapes(idle, reading))
