"""The synthetic site: deterministic, conserving, with effects that can be traced to their causes."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from polars.testing import assert_frame_equal

from iosig.transforms.arrays import Reals
from iosig.transforms.synthetic.site import (
    Faults,
    Site,
    SiteParams,
    arrivals,
    perfect,
    signature,
    simulate,
    split_polls,
)
from iosig.transforms.synthetic.workload import APPLICATIONS, DIRECTIONS, Application, Direction
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from tests.budget import examples

GB = 1e9
SHORT = SiteParams(seed=5, days=0.4, controller_count=3)
#: alone on a perfect machine: nothing drifts, nothing disturbs
QUIET = SiteParams(
    seed=2, days=0.2, foreign_level=0, fault_level=0, background_bytes_per_s=0, drift_ratio=0, stop_ratio=0, texture_s=0
)
FRAMES = ("jobs", "polls", "truth", "runs", "bursts", "traffic")


def injected_bytes(site: Site, direction: Direction) -> float:
    """Return all bytes that ought to be in the polls: background and every burst."""
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


# ---- one seed, one site


def test_the_same_seed_gives_the_same_frames() -> None:
    first, second = simulate(SHORT), simulate(SHORT)
    for name in FRAMES:
        assert_frame_equal(getattr(first, name), getattr(second, name))


def test_another_seed_gives_another_site() -> None:
    first, second = simulate(SHORT), simulate(replace(SHORT, seed=6))
    assert (
        first.polls["write_bytes_per_s"].head(1000).to_list() != second.polls["write_bytes_per_s"].head(1000).to_list()
    )
    assert_frame_equal(first.truth, second.truth)


def test_a_further_application_changes_nobody_elses_plans() -> None:
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


def test_a_longer_site_has_the_same_first_day_of_background() -> None:
    short, long = simulate(SHORT, ()), simulate(replace(SHORT, days=0.7), ())
    columns = ["polled_at", "background_read_bytes", "background_write_bytes"]
    # the last stretch is on its way to an aim that the shorter site also has
    assert_frame_equal(short.traffic.select(columns), long.traffic.select(columns).head(short.traffic.height))


# ---- no byte is lost


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_traffic_is_background_and_bursts(site: Site, direction: Direction) -> None:
    assert site.traffic[f"{direction}_bytes"].sum() == pytest.approx(injected_bytes(site, direction), rel=1e-12)
    by_name = site.bursts.filter(direction=direction)["moved_bytes"].sum()
    assert by_name > 10 * GB


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_perfect_polls_hold_every_byte(perfect_site: Site, direction: Direction) -> None:
    params = perfect_site.params
    polls = perfect_site.polls
    assert polls.height == params.tick_count * params.controller_count
    polled = polls[f"{direction}_bytes_per_s"].to_numpy().sum() * params.interval_s
    assert abs(polled - injected_bytes(perfect_site, direction)) < 10 * params.controller_count


def test_every_whole_run_moves_its_signatures_volume(site: Site) -> None:
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


def test_the_truth_holds_each_applications_volume(site: Site) -> None:
    for found in APPLICATIONS:
        for direction in DIRECTIONS:
            rates = site.truth.filter(application=found.name, direction=direction)
            assert rates["offset_s"].to_list() == list(range(int(found.duration_s)))
            assert rates["bytes_per_s"].sum() == pytest.approx(found.volume_bytes(direction), rel=1e-12)


def test_the_ior_jobs_are_the_papers() -> None:
    volumes = {
        name: [burst.volume_bytes / GB for burst in application(name).bursts] for name in ("ior_a", "ior_b", "ior_c")
    }
    assert volumes["ior_a"] == [128] * 5
    assert volumes["ior_b"] == [64, 16] * 5
    assert volumes["ior_c"] == [64, 32, 16, 64, 32, 16, 64, 32, 16, 64]
    for name, step in (("ior_a", 300), ("ior_b", 120), ("ior_c", 120)):
        assert set(np.diff([burst.offset_s for burst in application(name).bursts])) == {step}
        assert 2 * GB <= signature(application(name), "write").max() <= 3 * GB


# ---- alone, and not alone


def test_alone_a_run_is_its_signature() -> None:
    flash = replace(application("flash"), run_count=1)
    quiet = simulate(QUIET, [flash])
    start = (quiet.bursts["started_at"][0] - QUIET.start).total_seconds() - flash.bursts[0].offset_s
    moved = np.concatenate([[0.0], np.cumsum(signature(flash, "write"))])
    edges = np.arange(-1, QUIET.tick_count) * QUIET.interval_s
    expected = np.diff(np.interp(edges - start, np.arange(len(moved)), moved))
    # the signature is known per second, and the run starts between two of them
    np.testing.assert_allclose(np.cumsum(quiet.traffic["write_bytes"]), np.cumsum(expected), atol=1.0 * GB)
    job = quiet.jobs.row(0, named=True)
    assert (job["ended_at"] - job["started_at"]).total_seconds() == pytest.approx(flash.duration_s, abs=1)


def _duration_s(found: Site) -> Reals:
    runs = found.runs.filter(kind="complete").join(found.jobs, on="job_id").sort("application", "started_at")
    return (runs["ended_at"] - runs["started_at"]).dt.total_seconds().to_numpy().astype(float)


def test_contention_stretches_and_delays() -> None:
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


def test_the_bandwidth_is_used_and_never_exceeded() -> None:
    narrow = replace(QUIET, days=1, foreign_level=2, controller_bytes_per_s=0.3 * GB)
    crowded = simulate(narrow)
    total = crowded.traffic["read_bytes"] + crowded.traffic["write_bytes"]
    capacity = narrow.controller_count * narrow.controller_bytes_per_s * narrow.interval_s
    assert total.max() == pytest.approx(capacity, rel=1e-6)


def test_runs_differ_by_less_than_a_tenth(site: Site) -> None:
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


def test_uneven_time_makes_rates_waver_and_keeps_volumes() -> None:
    ior = [replace(application("ior_a"), run_count=1)]
    even, uneven = simulate(QUIET, ior), simulate(replace(QUIET, texture_s=0.5), ior)
    assert uneven.traffic["write_bytes"].sum() == pytest.approx(even.traffic["write_bytes"].sum(), rel=1e-12)
    plateau = 0.9 * even.traffic["write_bytes"].to_numpy().max()

    def wavering(found: Site) -> float:
        level = found.traffic["write_bytes"].to_numpy()[even.traffic["write_bytes"].to_numpy() > plateau]
        return float(level.std() / level.mean())

    assert wavering(even) < 0.01
    assert 0.05 < wavering(uneven) < 0.4


def test_background_is_what_was_asked_for(site: Site) -> None:
    quiet = (
        site.traffic.select("background_read_bytes", "background_write_bytes").sum_horizontal() / site.params.interval_s
    )
    assert quiet.mean() == pytest.approx(0.1 * GB, rel=0.2)
    assert (quiet > 0).all()
    # it varies slowly: an hour apart it still differs by much, a minute apart by little
    minutes = quiet.rolling_mean(150).drop_nulls().gather_every(150).to_numpy()
    assert np.corrcoef(minutes[1:], minutes[:-1])[0, 1] > 0.7
    assert minutes.max() > 1.5 * minutes.min()


# ---- stops and restarts


def test_stopped_runs_are_shorter_and_restarts_do_the_rest() -> None:
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
    # a burst that was under way is done again
    assert (again["first_burst"] - again["had"]).is_in([0, -1]).all()
    counts = {"ior_b": 10, "flash": 7}
    for name, first, count in again.select("application", "first_burst", "burst_count").iter_rows():
        assert first + count == counts[name]
    durations = (runs["ended_at"] - runs["started_at"]).dt.total_seconds()
    limit = runs["application"].replace_strict({"ior_b": 1271.0, "flash": 3001.0})
    assert (durations < limit).all()


# ---- the logs


def test_the_job_log_is_one(site: Site) -> None:
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
def test_polls_have_gaps_doubles_and_stragglers_but_never_a_wrong_value(site: Site, perfect_site: Site) -> None:
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


def test_the_first_poll_is_at_the_start_and_a_day_has_whole_days(perfect_site: Site) -> None:
    days = perfect_site.polls.group_by(pl.col("polled_at").dt.date()).len().sort("polled_at")
    assert days["len"].to_list() == [43_200 * 8] * 3
    assert perfect_site.polls["polled_at"][0] == perfect_site.params.start


def test_interactive_transfers_storms_and_foreign_periods_are_there(site: Site) -> None:
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


def test_a_quiet_site_without_anybody_is_only_background() -> None:
    nobody = simulate(replace(SHORT, foreign_level=0), ())
    assert nobody.jobs.is_empty()
    assert nobody.bursts.is_empty()
    assert nobody.truth.is_empty()
    assert_frame_equal(
        nobody.traffic.select("read_bytes", "write_bytes"),
        nobody.traffic.select(read_bytes="background_read_bytes", write_bytes="background_write_bytes"),
    )


# ---- what cannot be simulated


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": datetime(2026, 3, 2)},
        {"start": datetime(2026, 3, 2, tzinfo=timezone(timedelta(hours=1)))},
        {"seed": -1},
        {"days": 0},
        {"controller_count": 0},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"UTC|needs"):
        SiteParams(**wrong)  # type: ignore[arg-type]
    assert SiteParams(start=datetime(2026, 3, 2, tzinfo=UTC)).tick_count == 129_600


def test_two_applications_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        simulate(SHORT, [APPLICATIONS[0], APPLICATIONS[0]])


def test_three_days_are_simulated_in_seconds() -> None:
    begun = time.perf_counter()
    simulate(SiteParams(seed=9))
    # measured 0.7 s; the bound leaves room for a busy machine, a loop over ticks would take a minute
    assert time.perf_counter() - begun < 6.0


NONE = Faults(lost_ratio=0, late_ratio=0, repeated_ratio=0, block_s=0, controller_outage_s=(0, 0), outage_s=(0, 0))
DAY = 8640
STEP = 10.0


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=80), st.integers(1, 12), st.integers(0, 5))
def test_controllers_count_every_byte_once(volumes: list[float], count: int, seed: int) -> None:
    total = np.array(volumes)
    found = split_polls(total, count, 2.0, np.random.default_rng(seed))
    assert found.shape == (len(volumes), count)
    assert (found >= 0).all()
    assert (found == np.floor(found)).all(), "counters count whole bytes"
    # at no time is a controller's counter a whole byte away from the truth
    lag = np.cumsum(total) - np.cumsum(found.sum(axis=1))
    assert (lag >= -1e-3 * count).all()
    assert (lag <= count + 1e-3).all()


def test_controllers_share_unevenly_but_alike_over_time() -> None:
    found = split_polls(np.full(5000, 8e9), 8, 2.0, np.random.default_rng(3))
    variation = found.std(axis=1) / found.mean(axis=1)
    assert 0.2 < np.median(variation) < 1.0
    shares = found.sum(axis=0) / found.sum()
    assert (abs(shares - 1 / 8) < 0.08).all()


def test_without_faults_polls_come_complete_and_in_order() -> None:
    found, ideal = arrivals(DAY, 3, STEP, NONE, np.random.default_rng(1)), perfect(DAY, 3)
    np.testing.assert_array_equal(found.tick, ideal.tick)
    np.testing.assert_array_equal(found.controller, ideal.controller)
    assert ideal.tick[:4].tolist() == [0, 0, 0, 1]


def test_an_odd_day_has_an_outage_of_all_and_an_even_one_of_a_controller() -> None:
    faults = replace(NONE, controller_outage_s=(2000, 2000), outage_s=(300, 300))
    found = arrivals(2 * DAY, 3, STEP, faults, np.random.default_rng(1))
    counts = np.bincount(found.tick, minlength=2 * DAY)
    assert (np.flatnonzero(counts == 2) < DAY).all()
    assert (counts == 2).sum() == 200
    silent = np.flatnonzero(counts == 0)
    assert (silent >= DAY).all()
    assert len(silent) == 30
    assert silent.max() - silent.min() == 29, "it is one piece"


def test_lost_and_repeated_polls_are_as_many_as_asked_for() -> None:
    lost = arrivals(DAY, 4, STEP, replace(NONE, lost_ratio=0.1), np.random.default_rng(1))
    assert len(lost.tick) / (4 * DAY) == pytest.approx(0.9, abs=0.01)
    twice = arrivals(DAY, 4, STEP, replace(NONE, repeated_ratio=0.1), np.random.default_rng(1))
    places, times = np.unique(twice.tick * 4 + twice.controller, return_counts=True)
    assert len(places) == 4 * DAY
    assert (times == 2).mean() == pytest.approx(0.1, abs=0.01)


def test_late_polls_arrive_after_later_ones_but_within_their_time() -> None:
    late = arrivals(DAY, 4, STEP, replace(NONE, late_ratio=0.01, late_s=100.0), np.random.default_rng(1))
    assert len(late.tick) == 4 * DAY
    behind = np.maximum.accumulate(late.tick) - late.tick
    assert 0.005 < (behind > 0).mean() < 0.015
    assert behind.max() <= 10


def test_a_block_is_held_back_and_comes_at_once() -> None:
    held = arrivals(DAY, 2, STEP, replace(NONE, block_s=400.0), np.random.default_rng(1))
    behind = np.maximum.accumulate(held.tick) - held.tick
    rows = np.flatnonzero(behind > 0)
    assert len(rows) in (39, 40)
    assert np.unique(held.controller[rows]).size == 1
    assert rows.max() - rows.min() < 42


def test_faults_can_be_scaled_and_have_an_upper_end() -> None:
    assert Faults().scaled(1.0) == Faults()
    double, huge = Faults().scaled(2.0), Faults().scaled(1e9)
    assert double.outage_s == (120.0, 600.0)
    assert huge.lost_ratio == 1.0
    assert huge.outage_s == (21600.0, 21600.0)
    assert arrivals(DAY, 2, STEP, huge, np.random.default_rng(1)).tick.size == 0


def test_a_site_shorter_than_a_day_has_its_polls() -> None:
    found = arrivals(100, 2, STEP, Faults(), np.random.default_rng(1))
    assert 0 < len(found.tick) <= 210
    assert found.tick.max() < 100
