"""The synthetic site: deterministic, byte-conserving, with effects attributable to their causes."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iosig.transforms.arrays import Reals
from iosig.transforms.synthetic.site import (
    Site,
    SiteParams,
    signature,
    simulate,
)
from iosig.transforms.synthetic.workload import APPLICATIONS, DIRECTIONS, Application, Direction
from iosig.warehouse.contracts.jobs import JOB_RECORDS

GB = 1e9
SHORT = SiteParams(seed=5, days=0.4, controller_count=3)
#: A machine without drift, background traffic or faults.
QUIET = SiteParams(
    seed=2, days=0.2, foreign_level=0, fault_level=0, background_bytes_per_s=0, drift_ratio=0, stop_ratio=0, texture_s=0
)
FRAMES = ("jobs", "polls", "truth", "runs", "bursts", "traffic")


def sum_expected_bytes(site: Site, direction: Direction) -> float:
    """Return all bytes expected in the polls: background and every burst."""
    moved = site.bursts.filter(direction=direction)["moved_bytes"]
    return float(np.sum(moved.to_numpy()) + np.sum(site.traffic[f"background_{direction}_bytes"].to_numpy()))


@pytest.fixture(scope="module")
def site() -> Site:
    return simulate(SiteParams())


@pytest.fixture(scope="module")
def perfect_site() -> Site:
    return simulate(SiteParams(fault_level=0))


def application(name: str) -> Application:
    return next(found for found in APPLICATIONS if found.name == name)


# ---- determinism


def test_same_seed_gives_the_same_frames() -> None:
    first, second = simulate(SHORT), simulate(SHORT)
    for name in FRAMES:
        assert_frame_equal(getattr(first, name), getattr(second, name))


def test_other_seed_gives_another_site() -> None:
    first, second = simulate(SHORT), simulate(replace(SHORT, seed=6))
    assert (
        first.polls["write_bytes_per_s"].head(1000).to_list() != second.polls["write_bytes_per_s"].head(1000).to_list()
    )
    assert_frame_equal(first.truth, second.truth)


def test_additional_application_does_not_change_others() -> None:
    few, more = simulate(SHORT, APPLICATIONS[:2]), simulate(SHORT, APPLICATIONS[:3])
    background = ["polled_at", "background_read_bytes", "background_write_bytes"]
    assert_frame_equal(few.traffic.select(background), more.traffic.select(background))
    plans = ["source", "name", "burst", "direction", "volume_bytes"]
    kept = more.bursts.filter(pl.col("name") != APPLICATIONS[2].name)
    assert_frame_equal(few.bursts.select(plans), kept.select(plans))
    starts = ["job_name", "user", "started_at"]
    others = ~pl.col("user").is_in([found.user for found in APPLICATIONS])
    assert few.jobs.filter(others).height > 0
    assert_frame_equal(
        few.jobs.filter(others).select(starts), more.jobs.filter(others).select(starts), check_row_order=False
    )


def test_longer_site_has_the_same_first_day_of_background() -> None:
    short, long = simulate(SHORT, ()), simulate(replace(SHORT, days=0.7), ())
    columns = ["polled_at", "background_read_bytes", "background_write_bytes"]
    # The last segment ends at a value that the shorter site also has.
    assert_frame_equal(short.traffic.select(columns), long.traffic.select(columns).head(short.traffic.height))


# ---- conservation of bytes


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_traffic_is_background_and_bursts(site: Site, direction: Direction) -> None:
    assert site.traffic[f"{direction}_bytes"].sum() == pytest.approx(sum_expected_bytes(site, direction), rel=1e-12)
    by_name = site.bursts.filter(direction=direction)["moved_bytes"].sum()
    assert by_name > 10 * GB


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_polls_without_faults_contain_every_byte(perfect_site: Site, direction: Direction) -> None:
    params = perfect_site.params
    polls = perfect_site.polls
    assert polls.height == params.tick_count * params.controller_count
    polled = polls[f"{direction}_bytes_per_s"].to_numpy().sum() * params.interval_s
    assert abs(polled - sum_expected_bytes(perfect_site, direction)) < 10 * params.controller_count


def test_complete_runs_move_the_volume_of_the_signature(site: Site) -> None:
    whole = site.runs.filter(kind="complete")
    assert whole.height > 50
    for direction in DIRECTIONS:
        moved = (
            whole.join(site.bursts.filter(direction=direction), on="job_id", how="left")
            .group_by("application", "job_id")
            .agg(pl.col("volume_bytes", "moved_bytes").sum())
        )
        for name, _, planned, done in moved.iter_rows():
            assert planned == pytest.approx(application(name).volume_bytes(direction), rel=1e-12)
            assert done == pytest.approx(planned, rel=1e-12), "contention delays bytes, it drops none"


def test_truth_has_the_volume_of_each_application(site: Site) -> None:
    for found in APPLICATIONS:
        for direction in DIRECTIONS:
            rates = site.truth.filter(application=found.name, direction=direction)
            assert rates["offset_s"].to_list() == list(range(int(found.duration_s)))
            assert rates["bytes_per_s"].sum() == pytest.approx(found.volume_bytes(direction), rel=1e-12)


def test_ior_jobs_equal_the_jobs_of_the_paper() -> None:
    volumes = {
        name: [burst.volume_bytes / GB for burst in application(name).bursts] for name in ("ior_a", "ior_b", "ior_c")
    }
    assert volumes["ior_a"] == [128] * 5
    assert volumes["ior_b"] == [64, 16] * 5
    assert volumes["ior_c"] == [64, 32, 16, 64, 32, 16, 64, 32, 16, 64]
    for name, step in (("ior_a", 300), ("ior_b", 120), ("ior_c", 120)):
        assert set(np.diff([burst.offset_s for burst in application(name).bursts])) == {step}
        assert 2 * GB <= signature(application(name), "write").max() <= 3 * GB


# ---- isolated and concurrent runs


def test_run_without_contention_equals_the_signature() -> None:
    flash = replace(application("flash"), run_count=1)
    quiet = simulate(QUIET, [flash])
    start = (quiet.bursts["started_at"][0] - QUIET.start).total_seconds() - flash.bursts[0].offset_s
    moved = np.concatenate([[0.0], np.cumsum(signature(flash, "write"))])
    edges = np.arange(-1, QUIET.tick_count) * QUIET.interval_s
    expected = np.diff(np.interp(edges - start, np.arange(len(moved)), moved))
    # The signature is known per second, and the run starts between two seconds.
    np.testing.assert_allclose(np.cumsum(quiet.traffic["write_bytes"]), np.cumsum(expected), atol=1.0 * GB)
    job = quiet.jobs.row(0, named=True)
    assert (job["ended_at"] - job["started_at"]).total_seconds() == pytest.approx(flash.duration_s, abs=1)


def _duration_s(found: Site) -> Reals:
    runs = found.runs.filter(kind="complete").join(found.jobs, on="job_id").sort("application", "started_at")
    return (runs["ended_at"] - runs["started_at"]).dt.total_seconds().to_numpy().astype(float)


def test_contention_stretches_and_delays_runs() -> None:
    steady = replace(QUIET, days=1)
    alone, crowded = simulate(steady), simulate(replace(steady, foreign_level=3))
    quiet_bursts = simulate(steady, [application("ior_a")]).bursts
    took = (quiet_bursts["ended_at"] - quiet_bursts["started_at"]).dt.total_microseconds() / 1e6
    expected = application("ior_a").bursts[0].duration_s
    np.testing.assert_allclose(took, expected, atol=1e-3)
    whole = pl.col("source") == "application", pl.col("ended_at").is_not_null()
    stretched = crowded.bursts.filter(*whole, pl.col("name") == "ior_a")
    longer = (stretched["ended_at"] - stretched["started_at"]).dt.total_microseconds().to_numpy() / 1e6
    assert longer.min() > expected - 1e-3
    assert (longer > 1.1 * expected).mean() > 0.3
    count = min(len(_duration_s(alone)), len(_duration_s(crowded)))
    assert count > 60
    assert _duration_s(crowded).sum() / len(_duration_s(crowded)) > _duration_s(alone).sum() / len(_duration_s(alone))


def test_traffic_reaches_and_never_exceeds_the_bandwidth() -> None:
    narrow = replace(QUIET, days=1, foreign_level=2, controller_bytes_per_s=0.3 * GB)
    crowded = simulate(narrow)
    total = crowded.traffic["read_bytes"] + crowded.traffic["write_bytes"]
    capacity = narrow.controller_count * narrow.controller_bytes_per_s * narrow.interval_s
    assert total.max() == pytest.approx(capacity, rel=1e-6)


def test_durations_of_an_application_differ_by_less_than_15_percent(site: Site) -> None:
    runs = site.runs.filter(kind="complete").join(site.jobs, on="job_id")
    spread = (
        runs.with_columns(took=(pl.col("ended_at") - pl.col("started_at")).dt.total_seconds())
        .group_by("application")
        .agg(low=pl.col("took").min(), high=pl.col("took").max(), mean=pl.col("took").mean())
    )
    assert spread.height == len(APPLICATIONS)
    ratio = ((spread["high"] - spread["low"]) / spread["mean"]).to_numpy()
    assert ratio.max() < 0.15
    assert ratio.min() > 0.005


def test_clock_jitter_changes_rates_and_preserves_volumes() -> None:
    ior = [replace(application("ior_a"), run_count=1)]
    even, uneven = simulate(QUIET, ior), simulate(replace(QUIET, texture_s=0.5), ior)
    assert uneven.traffic["write_bytes"].sum() == pytest.approx(even.traffic["write_bytes"].sum(), rel=1e-12)
    plateau = 0.9 * even.traffic["write_bytes"].to_numpy().max()

    def wavering(found: Site) -> float:
        level = found.traffic["write_bytes"].to_numpy()[even.traffic["write_bytes"].to_numpy() > plateau]
        return float(level.std() / level.mean())

    assert wavering(even) < 0.01
    assert 0.05 < wavering(uneven) < 0.4


def test_background_has_the_requested_mean(site: Site) -> None:
    quiet = (
        site.traffic.select("background_read_bytes", "background_write_bytes").sum_horizontal() / site.params.interval_s
    )
    assert quiet.mean() == pytest.approx(0.1 * GB, rel=0.2)
    assert (quiet > 0).all()
    # The background varies slowly: neighboring values correlate, although the range is wide.
    minutes = quiet.rolling_mean(150).drop_nulls().gather_every(150).to_numpy()
    assert np.corrcoef(minutes[1:], minutes[:-1])[0, 1] > 0.7
    assert minutes.max() > 1.5 * minutes.min()


# ---- stops and restarts


def test_restarts_complete_stopped_runs() -> None:
    many = simulate(replace(QUIET, days=3, stop_ratio=1.0), [application("ior_b"), application("flash")])
    runs = many.runs.join(many.jobs, on="job_id")
    assert set(many.runs["kind"]) >= {"stopped", "restart"}
    stopped, restart = runs.filter(kind="stopped"), runs.filter(kind="restart")
    assert set(stopped["state"]) <= {"FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED"}
    assert set(restart["state"]) == {"COMPLETED"}
    assert stopped["cancelled_by"].is_not_null().to_list() == (stopped["state"] == "CANCELLED").to_list()
    again = restart.sort("started_at").join_asof(
        stopped.sort("ended_at").select("application", stopped_at="ended_at", had="burst_count"),
        left_on="started_at", right_on="stopped_at", by="application", check_sortedness=False,
    )  # fmt: skip
    assert (again["submitted_at"] > again["stopped_at"]).all()
    # An interrupted burst is repeated.
    assert (again["first_burst"] - again["had"]).is_in([0, -1]).all()
    counts = {"ior_b": 10, "flash": 7}
    for name, first, count in again.select("application", "first_burst", "burst_count").iter_rows():
        assert first + count == counts[name]
    durations = (runs["ended_at"] - runs["started_at"]).dt.total_seconds()
    limit = runs["application"].replace_strict({"ior_b": 1271.0, "flash": 3001.0})
    assert (durations < limit).all()


# ---- the logs


def test_job_log_is_valid(site: Site) -> None:
    jobs = site.jobs
    known = set(JOB_RECORDS.column_names)
    assert set(jobs.columns) <= known
    assert {"job_id", "user", "job_name", "node_count", "submitted_at", "started_at", "ended_at", "state"} <= set(
        jobs.columns
    )
    assert jobs["job_id"].n_unique() == jobs.height
    assert set(jobs["state"]) <= set(JOB_RECORDS.column("state").choices)
    assert len(set(jobs["state"])) >= 4
    assert (jobs["submitted_at"] <= jobs["started_at"]).all()
    ended = jobs.filter(pl.col("ended_at").is_not_null())
    assert (ended["ended_at"] > ended["started_at"]).all()
    assert (jobs["started_at"].dt.microsecond() == 0).all()
    assert (jobs["state"] == "RUNNING").to_list() == jobs["ended_at"].is_null().to_list()
    assert (jobs.filter(pl.col("user").str.starts_with("u")).height) > 50, "foreign jobs"


@pytest.mark.slow
def test_polls_have_faults_but_correct_values(site: Site, perfect_site: Site) -> None:
    polls, ideal = site.polls, perfect_site.polls
    assert polls.schema == {
        "polled_at": pl.Datetime("us", "UTC"),
        "controller": pl.String,
        "read_bytes_per_s": pl.Float64,
        "write_bytes_per_s": pl.Float64,
    }
    assert_frame_equal(
        polls,
        polls.select("polled_at", "controller").join(ideal, on=["polled_at", "controller"], maintain_order="left"),
    )
    assert polls.is_duplicated().sum() > 10
    assert (polls["polled_at"] < polls["polled_at"].cum_max()).sum() > 100
    there = polls.unique().group_by("polled_at").len()
    missing = ideal.select("polled_at").unique().join(there, on="polled_at", how="anti")
    assert np.ptp(missing["polled_at"].dt.epoch("s").to_numpy()) == 2 * (missing.height - 1), "one outage, in one piece"
    assert 30 <= missing.height <= 150
    per_controller = polls.unique().group_by("controller").len()
    assert per_controller["len"].to_numpy().min() < site.params.tick_count - 600 - missing.height, (
        "one was silent for long"
    )


def test_first_poll_is_at_the_start(perfect_site: Site) -> None:
    days = perfect_site.polls.group_by(pl.col("polled_at").dt.date()).len().sort("polled_at")
    assert days["len"].to_list() == [43_200 * 8] * 3
    assert perfect_site.polls["polled_at"][0] == perfect_site.params.start


def test_site_contains_transfers_storms_and_foreign_jobs(site: Site) -> None:
    sources = site.bursts.group_by("source").agg(
        pl.len(), pl.col("volume_bytes").mean(), pl.col("job_id").null_count().alias("no_job")
    )
    by_source = {row["source"]: row for row in sources.iter_rows(named=True)}
    assert by_source["transfer"]["len"] > 300
    assert by_source["transfer"]["no_job"] == by_source["transfer"]["len"]
    assert by_source["storm"]["volume_bytes"] > 1000 * GB
    foreign = site.bursts.filter(source="foreign", direction="write").sort("job_id", "started_at")
    steps = foreign.group_by("job_id", "name").agg(
        step=(pl.col("started_at").diff().dt.total_microseconds() / 1e6).median(), count=pl.len()
    )
    steps = steps.filter(pl.col("count") > 5)
    by_name = steps.group_by("name").agg(low=pl.col("step").min(), high=pl.col("step").max(), runs=pl.len())
    repeated = by_name.filter(pl.col("runs") > 1)
    assert repeated.height >= 4
    assert (repeated["high"] / repeated["low"]).to_numpy().max() < 1.1, "each foreign application keeps its own step"


def test_site_without_users_has_only_background() -> None:
    nobody = simulate(replace(SHORT, foreign_level=0), ())
    assert nobody.jobs.is_empty()
    assert nobody.bursts.is_empty()
    assert nobody.truth.is_empty()
    assert_frame_equal(
        nobody.traffic.select("read_bytes", "write_bytes"),
        nobody.traffic.select(read_bytes="background_read_bytes", write_bytes="background_write_bytes"),
    )


# ---- invalid parameters


@pytest.mark.parametrize(
    "invalid",
    [
        {"start": datetime(2026, 3, 2)},
        {"start": datetime(2026, 3, 2, tzinfo=timezone(timedelta(hours=1)))},
        {"seed": -1},
        {"days": 0},
        {"controller_count": 0},
    ],
)
def test_invalid_parameters_are_rejected(invalid: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"UTC|needs"):
        SiteParams(**invalid)  # type: ignore[arg-type]
    assert SiteParams(start=datetime(2026, 3, 2, tzinfo=UTC)).tick_count == 129_600


def test_duplicate_applications_are_rejected() -> None:
    with pytest.raises(ValueError, match="same name"):
        simulate(SHORT, [APPLICATIONS[0], APPLICATIONS[0]])


def test_three_days_are_simulated_in_seconds() -> None:
    begun = time.process_time()
    simulate(SiteParams(seed=9))
    # Measured 0.7 s; a loop over ticks would take a minute.
    assert time.process_time() - begun < 6.0
