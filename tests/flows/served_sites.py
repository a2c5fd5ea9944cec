"""Synthetic sites whose servers count by job: landed, and made samples of, beside what was served in truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from flows.demo import FILESYSTEM, write_site
from flows.landing import Told, land_paths
from flows.night.order import STEPS, open_night
from flows.settings import Settings
from flows.steps.plan import make_plan
from transforms.synthetic.job_statistics import JobStatistics, JobStatisticsParams, count_jobs
from transforms.synthetic.job_statistics_texts import Form, lctl_texts
from transforms.synthetic.site import Site, SiteParams, simulate
from transforms.synthetic.workload import APPLICATIONS
from warehouse.contracts.job_io import EXACT_IO
from warehouse.contracts.samples import EXACT_SAMPLES
from warehouse.contracts.types import Table
from warehouse.store.store import Store

#: faults by the dozen: in a few hours each kind comes up
FAULTS = {"restarts_per_day": 10.0, "lost_ratio": 0.05, "outages_per_day": 10.0, "outage_s": (300.0, 2000.0)}
_STEPS = ("stage counters", "stage polls", "stage jobs", "traces", "samples")


@dataclass(frozen=True)
class Served:
    """What was made of a site: rows of `exact_io` and `exact_samples`; and the site and its servers."""

    site: Site
    statistics: JobStatistics
    exact_io: pl.DataFrame
    exact_samples: pl.DataFrame

    def beside_truth(self) -> pl.DataFrame:
        """Return exact_io with true_bytes, lost_bytes, and is_unseen: lost of an entry that nobody saw ever."""
        per_target = (
            moved(self.statistics)
            .group_by("job_id", "direction", "target")
            .agg(
                true_bytes=pl.col("moved_bytes").sum(),
                lost_bytes=pl.col("moved_bytes").filter("is_lost").sum(),
                is_unseen=pl.col("is_lost").all(),
            )
        )
        truth = per_target.group_by("job_id", "direction").agg(
            pl.col("true_bytes", "lost_bytes").sum(),
            is_unseen=((pl.col("lost_bytes") == 0) | pl.col("is_unseen")).all() & (pl.col("lost_bytes").sum() > 0),
        )
        found = self.exact_io.join(truth, on=["job_id", "direction"], how="left")
        return found.with_columns(pl.col("true_bytes", "lost_bytes").fill_null(0), pl.col("is_unseen").fill_null(False))


def moved(statistics: JobStatistics) -> pl.DataFrame:
    """Return what was moved in truth, by direction: job_id, target, polled_at, direction, moved_bytes, is_lost."""
    ways = {"read_bytes": "read", "written_bytes": "write"}
    return (
        statistics.moved.filter(pl.col("job_id").is_not_null())
        .unpivot(list(ways), index=["job_id", "target", "polled_at", "is_lost"], variable_name="way")
        .with_columns(direction=pl.col("way").replace_strict(ways, return_dtype=pl.String), moved_bytes="value")
        .filter(pl.col("moved_bytes") > 0)
    )


def served(folder: Path, form: Form, seed: int, days: float, params: JobStatisticsParams) -> Served:
    """Let a site be served for some time, land what its servers say, and make samples of it."""
    applications = [replace(one, run_count=max(2, int(10 * days))) for one in APPLICATIONS if one.duration_s < 2600]
    site = simulate(SiteParams(seed=seed, days=days, controller_count=2, fault_level=0), applications)
    statistics = count_jobs(site, replace(params, seed=seed, filesystem=FILESYSTEM))
    write_site(site, folder / "site")
    (folder / "site/servers").mkdir()
    for told in lctl_texts(statistics, form):
        (folder / "site/servers" / f"{told.server}_{told.day}.txt").write_text(told.text)
    store = Store(folder / "warehouse")
    for arrival in land_paths(store, Settings(), [str(folder / "site")], Told()):
        assert not arrival.has_refusals, arrival.line()
    night = open_night(store, Settings(), make_plan(store, Settings()))
    for step in STEPS:
        if step.name in _STEPS:
            list(night.do(step))

    def built(table: Table) -> pl.DataFrame:
        paths = [night.run.path(table, day) for day in night.run.plan.job_days]
        return pl.concat([pl.read_parquet(store.root / path) for path in paths if (store.root / path).exists()])

    return Served(site, statistics, built(EXACT_IO), built(EXACT_SAMPLES))
