"""Exact samples of simulated sites equal the served bytes, or are marked incomplete."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import polars as pl
import pytest

from iosig.transforms.synthetic.job_statistics import JobStatisticsParams
from iosig.transforms.synthetic.job_statistics_texts import FORMS, Form
from tests.flows.served_sites import FAULTS, Served, served

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks")]

_FEW = JobStatisticsParams(interval_s=2.0, ost_count=2, mdt_count=0)


def expect_volumes(found: Served) -> int:
    """Compare the volume of each run with the truth; return the number of runs without known loss."""
    both = found.beside_truth()
    off = both["volume_bytes"].cast(pl.Int64) - both["true_bytes"] + both["lost_bytes"]
    assert (off <= 0).all(), "nobody moved more than was counted"
    is_measured = both["outcome"] == "measured"
    silent = both.filter(is_measured & (both["lost_bytes"] > 0))
    assert silent.filter(~pl.col("is_traceless")).is_empty()
    # an entry that reports its start time loses only bytes that were never scraped
    assert (off.filter(is_measured & (both["lost_bytes"] == 0) | (found.form == "new")) == 0).all()
    ended = set(found.site.jobs.filter(pl.col("ended_at").is_not_null())["job_id"])
    assert set(both["job_id"]) == ended
    return int(is_measured.sum())


def expect_samples(found: Served) -> int:
    """Compare each exact sample on the poll grid with the bytes its run was served; return the number of samples.

    Up to a time at which all targets of the run were scraped, the steps contain every byte served until then.
    """
    step_s, run = found.site.params.interval_s, ["job_id", "direction"]
    measured = found.exact_io.filter(outcome="measured")
    known = found.exact_samples.join(measured, on=run, how="semi")
    assert (known["interval_s"] == step_s).all()
    right = pl.col("grid_started_at") + pl.col("step").cast(pl.Int64) * pl.duration(microseconds=round(step_s * 1e6))
    steps = known.with_columns(step=pl.int_ranges(1, pl.col("sample_bytes_per_s").list.len() + 1)).explode(
        "step", "sample_bytes_per_s"
    )
    in_truth = found.moved().group_by(*run, "polled_at").agg(pl.col("moved_bytes").sum())
    used = found.moved().select("job_id", "target").unique().with_columns(count=pl.len().over("job_id"))
    scrapes = found.statistics.scrapes.select("target", polled_at="scraped_at")
    whole = used.join(scrapes, on="target").filter(pl.len().over("job_id", "polled_at") == pl.col("count"))
    both = steps.with_columns(polled_at=right).join(in_truth, on=[*run, "polled_at"], how="left")
    off = pl.col("sample_bytes_per_s") * step_s - pl.col("moved_bytes").fill_null(0)
    read = both.with_columns(off=off.cum_sum().over(run)).join(whole, on=["job_id", "polled_at"], how="semi")
    assert (read["off"] == 0).all()
    # a run is measured through an outage, too, if its entries are known to be the same
    assert read.height == both.height or (found.statistics.params.lost_ratio > 0 and read.height > 0)
    assert both["moved_bytes"].sum() >= 0.9 * measured["volume_bytes"].sum()
    return known.height


def test_exact_samples_equal_served_bytes_if_scraped_at_the_poll_interval(tmp_path: Path) -> None:
    found = served(tmp_path, "new", 3, 0.05, _FEW, application_count=2)
    assert expect_volumes(found) > 5
    assert expect_samples(found) > 5


_CASES = list(product(FORMS, (2.0, 10.0, 60.0), (False, True), range(4)))


@pytest.mark.long
@pytest.mark.parametrize(("form", "interval_s", "has_faults", "seed"), _CASES)
def test_volumes_equal_the_truth_or_are_marked_incomplete(
    form: Form, interval_s: float, has_faults: bool, seed: int, tmp_path: Path
) -> None:
    params = JobStatisticsParams(interval_s=interval_s, **(FAULTS if has_faults else {}))  # type: ignore[arg-type]
    found = served(tmp_path, form, seed, 0.08 if interval_s < 5 else 0.4, params)
    whole = expect_volumes(found)
    # an entry without a start time may have been dropped before its next use
    assert has_faults or whole == found.exact_io.height or (form != "new" and whole > 0.7 * found.exact_io.height)
    if interval_s == found.site.params.interval_s:
        expect_samples(found)
