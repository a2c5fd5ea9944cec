"""Settings of period detection reach the search, and rows of `periods` record them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest

from iosig.estimates.periods import find_rows, get_params
from iosig.estimates.subjects import series_subjects
from iosig.settings.periods import OutlierMethod, PeriodSettings
from iosig.transforms.periods.autoperiod import detect
from iosig.transforms.periods.autoperiod_analysis import CONFIDENCE, Significance
from iosig.transforms.periods.autoperiod_periodogram import UnevenSignals
from iosig.transforms.periods.ftio_outliers import Merge, Method
from iosig.transforms.periods.search import IntervalSampling


def make_rows(ends_s: np.ndarray, rates: np.ndarray) -> pl.DataFrame:
    """Rows of `series_intervals`, whose intervals reach from each time to the next."""
    return pl.DataFrame(
        {
            "ended_on": pl.Series([None] * (len(ends_s) - 1), dtype=pl.Date),
            "subject_id": "node",
            "direction": "write",
            "time_s": ends_s[1:],
            "interval_s": np.diff(ends_s),
            "bytes_per_s": rates[1:],
        }
    )


def read_reference(path: Path) -> pl.DataFrame:
    """Rows of a counter, or of daily levels [days]."""
    if path.name.startswith("trends"):
        days, levels = zip(*(line.split(",") for line in path.read_text().split()), strict=True)
        ends = np.array([date.fromisoformat(day).toordinal() for day in days], dtype=np.float64)
        return make_rows(ends - ends[0], np.array(levels, dtype=np.float64))
    ends_s, counter = np.loadtxt(path, unpack=True)
    return make_rows(ends_s, np.append(np.nan, np.diff(counter) / np.diff(ends_s)))


@pytest.fixture(scope="module")
def uneven() -> pl.DataFrame:
    """Polls of 300 s of a wave of 47.3 s, every 1 s with jitter of .3 s; half of them are lost."""
    random = np.random.default_rng(1)
    ends_s = np.cumsum(random.uniform(0.7, 1.3, 600))
    ends_s = np.concatenate([[0.0], ends_s[random.random(len(ends_s)) < 0.5]])
    return make_rows(ends_s, 1e9 * (1.0 + np.cos(2 * np.pi * ends_s / 47.3)))


def compute_row(rows: pl.DataFrame, **settings: Any) -> dict[str, Any]:
    params = get_params(PeriodSettings(methods=["autoperiod"], **settings))
    (row,) = find_rows(series_subjects(rows), params).periods.to_dicts()
    return row


def test_settings_offer_all_choices_of_the_transforms() -> None:
    choices = {name: get_args(field.annotation) for name, field in PeriodSettings.model_fields.items()}
    assert get_args(OutlierMethod) == get_args(Method)
    assert choices["outlier_merge"] == get_args(Merge)
    assert choices["autoperiod_sampling"] == get_args(IntervalSampling)
    assert choices["autoperiod_significance"] == get_args(Significance)


def test_intervals_are_searched_at_their_times(uneven: pl.DataFrame) -> None:
    row = compute_row(uneven, autoperiod_sampling="intervals")
    middles = (uneven["time_s"] - uneven["interval_s"] / 2).to_numpy()
    rates, offsets = uneven["bytes_per_s"].to_numpy(), np.array([0, uneven.height])
    (expected,) = detect(UnevenSignals(middles, rates, offsets, np.zeros(1), middles[-1:])).period_s
    assert (row["outcome"], row["sampling"], row["sample_count"]) == ("periodic", "intervals", uneven.height)
    assert row["period_s"] == pytest.approx(expected)
    assert row["period_s"] == pytest.approx(47.3, rel=0.02)
    assert compute_row(uneven) == row
    assert compute_row(uneven, autoperiod_sampling="bins")["sampling"] == "bins"


@pytest.mark.parametrize("significance", get_args(Significance))
def test_published_confidence_applies_unless_one_is_given(uneven: pl.DataFrame, significance: Significance) -> None:
    for given, confidence, count in ((None, CONFIDENCE[significance], 100), (0.999, 0.999, 999)):
        settings = PeriodSettings(autoperiod_significance=significance, autoperiod_confidence=given)
        params = get_params(settings, ("autoperiod",)).autoperiod
        assert params is not None
        assert params.confidence == confidence
        assert params.permutation_count == (count if significance == "permutation_test" else 100)
    row = compute_row(uneven, autoperiod_significance=significance)
    known = json.loads(row["method_parameters"])["autoperiod"]
    assert (row["outcome"], known["significance"], known["seed"]) == ("periodic", significance, 0)
    expected_fap = {"monte_carlo": 1 / 101, "permutation_test": 1 / 101}
    assert row["false_alarm_probability"] == pytest.approx(expected_fap.get(significance, 0.0), abs=1e-6)


@pytest.mark.parametrize(("merge", "outcome"), [("none", "periodic"), ("agreement", "too_short")])
def test_rows_record_the_test_of_outliers_and_its_merge(merge: str, outcome: str) -> None:
    """Sixteen samples have eight frequencies, in which no Z-score reaches 3."""
    times = np.arange(17.0)
    rows = make_rows(times, np.where(times % 4 == 1, 5e9, 1e9))
    settings = PeriodSettings(methods=["dft"], outliers="find_peaks", outlier_merge=merge)  # type: ignore[arg-type]
    (row,) = find_rows(series_subjects(rows), get_params(settings)).periods.to_dicts()
    known = json.loads(row["method_parameters"])["dft"]
    assert (row["outcome"], known["method"], known["merge"]) == (outcome, "find_peaks", merge)
    assert known["outliers"]["tolerance"] == settings.tolerance


def test_published_series_have_the_period_of_the_reference(shared_data: Path) -> None:
    """Ten series of PEARC'18, with the periods by SUPReMM; resampled to even steps, one of them has another period."""
    folder = shared_data / "ccr-gpfs"
    with (folder / "golden.tsv").open() as file:
        golden = {row["file"]: float(row["stat_period"] or "nan") for row in csv.DictReader(file, delimiter="\t")}
    rows = pl.concat(read_reference(folder / name).with_columns(subject_id=pl.lit(name)) for name in golden)
    params = get_params(PeriodSettings(methods=["autoperiod"]))
    result = find_rows(series_subjects(rows), params).periods
    periods = dict(zip(result["subject_id"], result["period_s"].fill_null(float("nan")), strict=True))
    np.testing.assert_allclose([periods[name] for name in golden], list(golden.values()), rtol=0.01)


def test_series_without_measurements_have_an_outcome() -> None:
    rows = make_rows(np.arange(60.0), np.full(60, np.nan))
    row = compute_row(rows, autoperiod_sampling="intervals")
    assert (row["outcome"], row["sample_count"], row["period_s"]) == ("no_data", 0, None)
    row = compute_row(make_rows(np.arange(60.0), np.zeros(60)), autoperiod_sampling="intervals")
    assert (row["outcome"], row["sample_count"], row["period_s"]) == ("no_io", 59, None)


def test_subjects_without_intervals_keep_their_even_steps(uneven: pl.DataFrame) -> None:
    params = get_params(PeriodSettings(methods=["autoperiod"], autoperiod_sampling="intervals"))
    (row,) = find_rows(replace(series_subjects(uneven), intervals=None), params).periods.to_dicts()
    assert row["sampling"] == "bins"
