"""A simulated year: planted jobs, and the statistics recovered from their measurements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from iosig.studies.population import STUDY, page
from iosig.studies.population.running import Results, StudyParams
from iosig.studies.population.year import (
    INTERVAL_S,
    JOB_COUNTS,
    LABELS,
    PERIODIC_RATIOS,
    Year,
    draw_jobs,
    draw_rates,
    list_cells,
    list_periodic,
    list_shares,
    measure,
    simulate_year,
)
from iosig.transforms.periods import autoperiod, autoperiod_analysis

JOB_COUNT = 300


@pytest.fixture(scope="module")
def year() -> Year:
    return simulate_year(JOB_COUNT, 1)


def test_counts_of_the_paper_agree_with_its_percentages() -> None:
    """Table 2 has the shares of reads and writes, which are the sums of Table 1."""
    reads, writes = (JOB_COUNTS.sum(axis=axis) / JOB_COUNTS.sum() * 100 for axis in (1, 0))
    paper = {
        "HILL": (0.38, 1.25),
        "START": (3.42, 2.02),
        "END": (3.72, 6.72),
        "UNIFORM": (2.03, 4.53),
        "OTHER": (2.41, 4.26),
        "CANYON": (3.22, 3.12),
        "NO_USAGE": (84.8, 78.1),
    }
    assert list(zip(reads, writes, strict=True)) == [pytest.approx(paper[label], abs=0.06) for label in LABELS]


def test_jobs_have_the_classes_of_table_1() -> None:
    jobs = draw_jobs(20_000, np.random.default_rng(1))
    shares = jobs.group_by("read", "write").len().filter(read="END", write="OTHER")["len"].item() / jobs.height
    assert shares == pytest.approx(8899 / JOB_COUNTS.sum(), rel=0.2)
    assert jobs["duration_s"].min() >= 600.0, "the paper leaves out shorter jobs"


def test_rates_have_the_planted_volumes_and_quarters(year: Year) -> None:
    writes = year.planted.filter(direction="write")
    rates, start_s = draw_rates(writes, np.random.default_rng(2))
    steps = np.diff(rates.offsets)
    assert ((steps * INTERVAL_S + start_s) >= writes["duration_s"].to_numpy()).all()
    assert ((start_s <= 0) & (start_s > -INTERVAL_S)).all()
    owner = np.repeat(np.arange(len(steps)), steps)
    volumes = np.bincount(owner, np.nan_to_num(rates.values)) * INTERVAL_S
    # a job of one per cent lost measurements lacks few of its bytes
    assert np.median(volumes / writes["bytes"].to_numpy()) == pytest.approx(1.0, abs=0.03)
    assert np.isnan(rates.values).mean() == pytest.approx(0.01, abs=0.003)


def test_recovered_classes_are_the_planted_ones(year: Year) -> None:
    cells = list_cells(year)
    assert cells["planted"].sum() == cells["recovered"].sum() == JOB_COUNT
    assert measure(year)["classes"]["right_ratio"] > 0.97
    shares = list_shares(year)
    assert shares.group_by("direction").agg(pl.col("planted", "recovered").sum().round(9)).drop("direction").rows() == [
        (1.0, 1.0),
        (1.0, 1.0),
    ]


def test_planted_shares_of_periodic_jobs_are_those_of_table_2(year: Year) -> None:
    for row in list_periodic(year).iter_rows(named=True):
        assert row["planted"] == pytest.approx(PERIODIC_RATIOS[row["direction"]], abs=1 / JOB_COUNT)
        assert row["recovered"] == pytest.approx(row["planted"], abs=2 / JOB_COUNT)


def test_statistics_from_the_job_log_are_exact(year: Year) -> None:
    measures = measure(year)
    assert measures["figure_3"]["largest_error"] < 1e-9
    assert measures["repeats"]["wrong_count"] == 0
    assert measures["repeats"]["configuration_count"] > 7
    assert measures["table_1"]["job_count"] == JOB_COUNT


def test_example_is_a_periodic_job(year: Year) -> None:
    steps = autoperiod.trace_search(autoperiod_analysis.analyze_even(year.example))
    assert steps.power.max() > steps.threshold
    assert steps.hill_lag_s.shape == (2, 2)
    periods = year.planted.filter(direction="write")["period_s"].drop_nulls()
    assert np.abs(periods.to_numpy() / steps.hill_lag_s[0, 1] - 1.0).min() < 0.1


def test_wrong_classes_are_measured(year: Year) -> None:
    """Measures of other planted classes: an error must be visible."""
    shifted = year.planted.with_columns(
        label=pl.when(pl.col("label") == "START").then(pl.lit("END")).otherwise("label")
    )
    changed = measure(replace(year, planted=shifted))
    moved = (year.planted.filter(direction="write")["label"] == "START").mean()
    assert changed["table_2_write"]["largest_error"] == pytest.approx(moved, abs=0.02)
    assert changed["classes"]["right_ratio"] < measure(year)["classes"]["right_ratio"]


def test_study_without_sites_measures_the_year_only(year: Year) -> None:
    results = Results(StudyParams(1, parts=("year",)), pl.DataFrame(), year)
    assert set(page.measures(results)) >= {"table_1", "table_2_read", "figure_4", "long_jobs"}
    assert set(page.figures(results)) == {"year", "autoperiod"}
    assert [title for title, _ in STUDY.tables(results)] == [
        "Jobs by class of reads (rows) and writes: planted, recovered",
        "Shares of classes: planted, recovered",
        "Periodic jobs with I/O over the whole run",
    ]
    assert page.measures(replace(results, year=None)) == {}
