"""The demo's site contains the planted anomalies, and a Darshan log of one of its runs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from iosig.flows.demo.planted import CHANGED, CULPRIT, TRACED, VICTIM, collision, demo_site, find_traced_job_id
from iosig.flows.demo.simulated import signatures_truth
from iosig.flows.demo.trace import REQUEST_BYTES, write_trace
from iosig.transforms.synthetic.site import Site
from tests.warehouse.sources.darshan_tables import tables_of


@pytest.fixture(scope="module")
def site() -> Site:
    return demo_site(1)


def written(site: Site, job_id: str) -> float:
    return float(site.bursts.filter(job_id=job_id, direction="write")["volume_bytes"].sum())


def test_changed_application_doubles_its_writes_on_the_last_day(site: Site) -> None:
    jobs = site.jobs.join(site.runs.filter(application=CHANGED), on="job_id").sort("started_at")
    volumes = {
        day.day: {round(written(site, job_id) / 1e9) for job_id in rows["job_id"]}
        for (day,), rows in jobs.group_by(pl.col("started_at").dt.date())
    }
    assert volumes == {2: {400}, 3: {400}, 4: {800}}
    truth = next(one for one in signatures_truth(site) if one.application.name == CHANGED and len(one.bursts))
    assert truth.bursts.volume_bytes.sum() == pytest.approx(800e9)


def test_culprit_writes_during_most_bursts_of_the_victim(site: Site) -> None:
    found = collision(site)
    assert found.duration_s > 1.05 * found.alone_s
    runs = {name: site.bursts.filter(name=name, direction="write") for name in (VICTIM, CULPRIT)}
    victim = runs[VICTIM].filter(job_id=found.victim_job_id)
    culprit = runs[CULPRIT].filter(job_id=found.culprit_job_id)
    met = victim.join_where(
        culprit, pl.col("started_at") < pl.col("ended_at_right"), pl.col("ended_at") > pl.col("started_at_right")
    )
    assert met["burst"].n_unique() > victim.height / 3


def test_true_slowdown_ratios_are_reported_per_application(site: Site) -> None:
    ratios = {one.application.name: one.slowdown_ratio for one in signatures_truth(site)}
    assert all(0 <= ratio < 0.1 for ratio in ratios.values())
    assert ratios[CULPRIT] > 0


def test_darshan_log_matches_the_bursts_that_the_run_wrote(site: Site, tmp_path: Path) -> None:
    job_id = find_traced_job_id(site)
    job = site.jobs.row(by_predicate=pl.col("job_id") == job_id, named=True)
    tables = tables_of(write_trace(site, job_id, tmp_path))
    assert "rejects" not in tables
    (trace,) = tables["traces"].to_dicts()
    assert (trace["job_id"], trace["user"], trace["application"]) == (job_id, job["user"], TRACED)
    assert (trace["started_at"], trace["ended_at"]) == (job["started_at"], job["ended_at"])
    records = tables["trace_records"]
    bursts = site.bursts.filter(job_id=job_id, direction="write")
    assert records["written_bytes"].sum() == int(written(site, job_id))
    assert records.height == bursts.height == tables["trace_files"].height
    assert (records["written_bytes"] / records["write_count"]).to_list() == pytest.approx(
        [REQUEST_BYTES] * bursts.height, rel=1e-3
    )
