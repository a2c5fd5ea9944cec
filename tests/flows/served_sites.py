"""Synthetic sites with job counters: landed, sampled, and paired with the served bytes as ground truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from iosig.flows.demo.simulated import FILESYSTEM, write_site, write_statistics
from iosig.flows.executors import Engine
from iosig.flows.nightly import begin_run, build
from iosig.flows.steps.order import STEPS
from iosig.flows.steps.plan import make_plan
from iosig.settings.model import Settings
from iosig.transforms.synthetic.job_statistics import JobStatistics, JobStatisticsParams, count_jobs
from iosig.transforms.synthetic.job_statistics_texts import Form
from iosig.transforms.synthetic.site import Site, SiteParams, simulate
from iosig.transforms.synthetic.workload import APPLICATIONS
from iosig.warehouse.contracts.job_io import EXACT_IO
from iosig.warehouse.contracts.samples import EXACT_SAMPLES
from iosig.warehouse.contracts.types import Table
from iosig.warehouse.store.store import Store
from tests.nights import land_files

#: fault rates high enough that each kind occurs within a few hours
FAULTS = {"restarts_per_day": 10.0, "lost_ratio": 0.05, "outages_per_day": 10.0, "outage_s": (300.0, 2000.0)}
_STEPS = (
    "counter ends", "counters", "stage polls", "stage jobs", "stage traces", "traces", "samples", "exact samples",
    "job i/o sources", "applications",
)  # fmt: skip


@dataclass(frozen=True)
class Served:
    """Results for a site: rows of `exact_io` and `exact_samples`, the site and its servers."""

    site: Site
    form: Form
    statistics: JobStatistics
    exact_io: pl.DataFrame
    exact_samples: pl.DataFrame

    def moved(self) -> pl.DataFrame:
        """Return the bytes truly moved: job_id, target, job_key, polled_at, direction, moved_bytes, is_lost."""
        ways = {"read_bytes": "read", "written_bytes": "write"}
        index = ["job_id", "target", "job_key", "polled_at", "is_lost"]
        known = self.statistics.moved.filter(pl.col("job_id").is_not_null())
        return (
            known.unpivot(list(ways), index=index, variable_name="way", value_name="moved_bytes")
            .with_columns(direction=pl.col("way").replace_strict(ways, return_dtype=pl.String))
            .filter(pl.col("moved_bytes") > 0)
        )

    def beside_truth(self) -> pl.DataFrame:
        """Return exact_io with true_bytes, lost_bytes, and is_traceless: the loss cannot be detected."""
        told = self.moved().join(self._lost(), on=["target", "job_key", "polled_at"], how="left")
        truth = told.group_by("job_id", "direction").agg(
            true_bytes=pl.col("moved_bytes").sum(),
            lost_bytes=pl.col("moved_bytes").filter("is_lost").sum(),
            is_traceless=(~pl.col("is_lost") | pl.col("is_traceless")).all(),
        )
        found = self.exact_io.join(truth, on=["job_id", "direction"], how="left")
        return found.with_columns(
            pl.col("true_bytes", "lost_bytes").fill_null(0), pl.col("is_traceless").fill_null(True)
        )

    def _lost(self) -> pl.DataFrame:
        """Return lost bytes and whether the loss is undetectable: target, job_key, polled_at, is_traceless.

        An entry that was unused for most of the cleanup interval may have been dropped. An entry without a start time
        may be the same, unless it reappears soon with a lower value.
        """
        entry, counts = ["target", "job_key"], ["written_bytes", "read_bytes"]
        read = self.statistics.readings.select(*entry, *counts, "scraped_at", "sampled_at").sort("scraped_at")
        scraped = self.statistics.scrapes.select("target", "scraped_at", next_at="scraped_at").sort("scraped_at")
        at = {"left_on": "polled_at", "right_on": "scraped_at", "check_sortedness": False}
        found = (
            self.statistics.moved.filter("is_lost")
            .select(*entry, "polled_at")
            .sort("polled_at")
            .join_asof(read, by=entry, strategy="backward", **at)
            .join_asof(read, by=entry, strategy="forward", suffix="_after", **at)
            .join_asof(scraped, by="target", strategy="forward", **at)
        )
        idle, cleanup_s = pl.col("next_at") - pl.col("sampled_at"), self.statistics.params.cleanup_interval_s
        is_long = (idle >= pl.duration(seconds=0.75 * cleanup_s)).fill_null(True)
        fell = pl.any_horizontal(pl.col(f"{name}_after") < pl.col(name) for name in counts)
        is_soon = pl.col("sampled_at_after") - pl.col("sampled_at") < pl.duration(seconds=0.75 * cleanup_s)
        is_told = (fell & is_soon).fill_null(False) | (self.form == "new")
        return found.select(*entry, "polled_at", is_traceless=is_long | ~is_told)


def landed(
    folder: Path, form: Form, seed: int, days: float, params: JobStatisticsParams, application_count: int = 8
) -> tuple[Store, Site, JobStatistics]:
    """Simulate a site for some time; land its job logs, its polls and the statistics of its servers."""
    short = [one for one in APPLICATIONS if one.duration_s < 2600][:application_count]
    applications = [replace(one, run_count=max(2, int(10 * days))) for one in short]
    site = simulate(SiteParams(seed=seed, days=days, controller_count=2, fault_level=0), applications)
    statistics = count_jobs(site, replace(params, seed=seed, filesystem=FILESYSTEM))
    write_site(site, folder / "site")
    write_statistics(statistics, folder / "site", form)
    store = Store(folder / "warehouse")
    for arrival in land_files(store, folder / "site", time_zone="UTC"):
        assert not arrival.has_refusals, arrival.line()
    return store, site, statistics


def served(
    folder: Path, form: Form, seed: int, days: float, params: JobStatisticsParams, application_count: int = 8
) -> Served:
    """Land a site as `landed` does, and compute its samples."""
    store, site, statistics = landed(folder, form, seed, days, params, application_count)
    run = begin_run(store, Settings(), make_plan(store, Settings()))
    list(build(run, Engine(), steps=[step for step in STEPS if step.name in _STEPS]))

    def built(table: Table) -> pl.DataFrame:
        paths = [run.path(table, day) for day in run.plan.job_days]
        return pl.concat([pl.read_parquet(path) for path in paths if path.exists()])

    return Served(site, form, statistics, built(EXACT_IO), built(EXACT_SAMPLES))
