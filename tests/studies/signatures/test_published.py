"""IOSI's evaluation on sites with their default drift: drawn samples, and what is measured."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from iosig.studies.signatures.methods import METHODS, SWEEPS, sweep_methods
from iosig.studies.signatures.published import (
    PUBLISHED,
    SCALING,
    ScalingSetting,
    build_default_setting,
    list_queries,
    list_scaling_queries,
    measure,
)
from iosig.studies.signatures.running import Results, StudyParams, build_items
from iosig.studies.signatures.scores import SCHEMA
from iosig.studies.signatures.sites import IOR, LEVELS, derive_seed
from iosig.studies.signatures.timing import SCHEMA as TIMES
from iosig.transforms.synthetic.site import SiteParams

APPLICATIONS = (*IOR, "s3d")
BURST_COUNTS = {"ior_a": 5, "ior_b": 10, "ior_c": 10, "s3d": 8}


def make_rows(experiment: str, method: str, value: float = 0.0, **scores: float) -> pl.DataFrame:
    """Return one row for each application at the levels calm and busy, with the same scores."""
    rows = [
        {"experiment": experiment, "value": value, "level": level, "seed": 0, "application": name, "method": method}
        | {"burst_count": BURST_COUNTS[name], "outcome": "extracted", "missed_count": 0, "false_count": 0}
        | scores
        for level in ("calm", "busy")
        for name in APPLICATIONS
    ]
    keys = {"experiment": pl.String, "value": pl.Float64, "level": pl.String, "seed": pl.Int64}
    return pl.DataFrame(rows, keys | SCHEMA)


def make_results(*frames: pl.DataFrame, times: pl.DataFrame | None = None) -> Results:
    answers = pl.concat(frames) if frames else make_rows("levels", "iosi")
    return Results(StudyParams(1), METHODS, answers, pl.DataFrame(schema=TIMES) if times is None else times, answers)


@pytest.fixture
def answers() -> list[pl.DataFrame]:
    """Scores of all methods: IOSI is 2 and 5 times as good as DTW, its volume too low, DTW's too high."""
    swept = [
        make_rows(f"{PUBLISHED} {name}", "iosi", value, cross_correlation=0.5, correlation=0.9 - abs(value - usual))
        for name, value, usual in (
            (sweep.name, float(value), sweep.usual) for sweep in SWEEPS for value in sweep.values
        )
    ]
    return [
        make_rows(PUBLISHED, "iosi", cross_correlation=0.8, correlation=0.5, volume_ratio=0.9, missed_count=1),
        make_rows(PUBLISHED, "iosi_filtered", cross_correlation=0.9, correlation=0.6, volume_ratio=1.1),
        make_rows(PUBLISHED, "iosi_raw", cross_correlation=0.6, correlation=0.4, volume_ratio=0.8, false_count=2),
        make_rows(PUBLISHED, "dtw", cross_correlation=0.4, correlation=0.1, volume_ratio=3.0),
        make_rows(PUBLISHED, "chosen", cross_correlation=1.0, correlation=0.8, volume_ratio=1.0),
        make_rows(SCALING, "iosi", cross_correlation=0.7, correlation=0.6, volume_ratio=1.0),
        make_rows(SCALING, "chosen", cross_correlation=0.9, correlation=0.8, volume_ratio=1.0),
        *swept,
    ]


def test_scores_are_compared_with_those_of_dtw(answers: list[pl.DataFrame]) -> None:
    measures = measure(make_results(*answers))
    assert measures["advantage_of_iosi"]["low_cross_correlation"] == pytest.approx(2.0)
    assert measures["advantage_of_iosi"]["high_correlation"] == pytest.approx(5.0)
    assert measures["accuracy_dtw"]["mean_volume_ratio"] == pytest.approx(3.0)


def test_bursts_of_the_ior_jobs_are_counted_together(answers: list[pl.DataFrame]) -> None:
    measures = measure(make_results(*answers))
    expected = {"burst_count": 25, "missed_count": 3.0, "false_count": 0.0, "s3d_missed_count": 1.0}
    assert measures["bursts_iosi"] == expected
    assert measures["bursts_iosi_raw"]["false_count"] == 6.0


def test_volumes_on_either_side_of_the_truth_are_counted(answers: list[pl.DataFrame]) -> None:
    expected = {"case_count": 8, "iosi_low_count": 8, "iosi_filtered_low_count": 0, "dtw_high_count": 8}
    assert measure(make_results(*answers))["volume"] == expected


def test_best_values_are_those_of_the_highest_mean_correlation(answers: list[pl.DataFrame]) -> None:
    measures = measure(make_results(*answers))
    assert [measures[sweep.name]["best"] for sweep in SWEEPS] == [2.0, 0.5, 0.9]
    assert measures["gamma"]["correlation_70"] == pytest.approx(0.7)


def test_missing_signature_counts_as_one_without_io(answers: list[pl.DataFrame]) -> None:
    lost = make_rows(PUBLISHED, "iosi", missed_count=5).with_columns(
        outcome=pl.lit("no_common_bursts"), seed=pl.lit(1, pl.Int64)
    )
    measures = measure(make_results(*answers, lost))
    assert measures["accuracy_iosi"]["mean_cross_correlation"] == pytest.approx(0.4)
    assert measures["bursts_iosi"]["missed_count"] == pytest.approx((3 + 15) / 2)


def test_other_experiments_are_not_measured() -> None:
    assert measure(make_results()) == {}


def test_times_grow_with_samples_and_points() -> None:
    points = [("points", n, name, 1e-6 * n**power) for n in (500, 1000) for name, power in (("iosi", 1), ("dtw", 2))]
    samples = [("samples", n, name, base + n * 0.01) for n in (2, 4) for name, base in (("iosi", 0.05), ("dtw", 0.04))]
    times = pl.DataFrame([*points, *samples], TIMES, orient="row").with_columns(
        seconds=pl.when(pl.col("method") == "dtw", pl.col("value") == 4).then(1.0).otherwise("seconds")
    )
    measured = measure(make_results(times=times))["times"]
    assert (measured["iosi_exponent"], measured["dtw_exponent"]) == pytest.approx((1.0, 2.0))
    assert measured["dtw_slower_from"] == 4


# ---- sites


def test_sites_have_their_default_drift() -> None:
    assert {build_default_setting(level, 5.0).drift_ratio for level in LEVELS} == {SiteParams().drift_ratio}
    items = list(build_items(StudyParams(1, parts=("published",)), METHODS))
    # all sites, then those with one application on several node counts
    assert [item.level for item in items] == [*LEVELS, *LEVELS]
    assert [len(item.queries) > 6 for item in items] == [False, True, False, False, False, False]


def test_paper_methods_and_defaults_are_evaluated() -> None:
    names = {method.name for _, _, method in list_queries(METHODS, "calm")}
    assert names >= {"iosi", "iosi_filtered", "iosi_raw", "dtw"}
    assert "median" not in names
    swept = {experiment for experiment, _, _ in list_queries(METHODS, "busy")} - {PUBLISHED}
    assert swept == {f"{PUBLISHED} {name}" for name, _, _ in sweep_methods("iosi")}
    assert {experiment for experiment, _, _ in list_scaling_queries(METHODS)} == {SCALING}


@pytest.mark.slow
def test_runs_on_several_node_counts_have_the_duration_of_the_smallest() -> None:
    samples = ScalingSetting(build_default_setting("calm", 2.0)).draw(derive_seed(0, 0))
    assert samples.sets.set_count == 1
    assert len(samples.applications) == 1
    assert np.median(samples.sets.duration_s) == pytest.approx(samples.applications[0].duration_s, rel=0.2)
