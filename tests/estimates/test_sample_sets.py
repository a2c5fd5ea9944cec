"""Rows with samples become sample sets: merged over node counts, and truncated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from iosig.estimates.sample_sets import build_sample_sets, get_params
from iosig.settings.model import SignatureSettings

AT = datetime(2018, 2, 9, 9, 0, tzinfo=UTC)


def make_rows(*runs: tuple[str, int, int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rows and subjects of runs of (application, nodes, steps of 2 s)."""
    names, nodes, steps = zip(*runs, strict=True)
    rows = pl.DataFrame(
        {
            "application_id": names,
            "node_count": nodes,
            "started_at": [AT] * len(runs),
            "grid_started_at": [AT - timedelta(seconds=0.5)] * len(runs),
            "interval_s": [2.0] * len(runs),
            "duration_s": [2.0 * count for count in steps],
            "is_truncated": [None, *[True] * (len(runs) - 1)],
            "sample_bytes_per_s": [[float(place) for place in range(count)] for count in steps],
        }
    )
    return rows, rows.group_by("application_id", maintain_order=True).agg(count=pl.len())


def test_rows_of_each_application_are_a_set() -> None:
    sets = build_sample_sets(*make_rows(("a/b/1", 1, 3), ("a/b/1", 1, 4), ("a/c/2", 2, 5)), SignatureSettings())
    assert sets.offsets.tolist() == [0, 2, 3]
    assert sets.samples.counts.tolist() == [3, 4, 5]
    assert sets.start_s.tolist() == pytest.approx([-0.5] * 3)
    assert sets.is_truncated is not None
    assert sets.is_truncated.tolist() == [False, True, True]
    assert sets.get_set(1).samples.values.tolist() == [0, 1, 2, 3, 4]


def test_set_over_node_counts_has_the_shortest_duration() -> None:
    sets = build_sample_sets(*make_rows(("a/b/*", 1, 50), ("a/b/*", 2, 100), ("a/c/2", 2, 100)), SignatureSettings())
    assert sets.samples.counts.tolist() == [50, 50, 100]
    assert sets.is_truncated is not None
    assert sets.is_truncated.tolist() == [False, True, True]


def test_long_runs_are_truncated() -> None:
    settings = SignatureSettings(max_duration_s=20.0)
    sets = build_sample_sets(*make_rows(("a/b/1", 1, 50), ("a/b/1", 1, 8), ("a/c/2", 2, 9)), settings)
    assert sets.duration_s.tolist() == [20.0, 16.0, 18.0]
    assert sets.is_truncated is not None
    assert sets.is_truncated.tolist() == [False, True, True], "a run of which only the beginning is used is complete"
    assert sets.samples.counts.tolist() == [11, 8, 9]


def test_settings_become_parameters() -> None:
    params = get_params(SignatureSettings(min_sample_count=7, wavelet_level=3, gamma=0.4, kappa=0.8))
    assert (params.min_run_count, params.iosi.level, params.iosi.gamma, params.iosi.kappa) == (7, 3, 0.4, 0.8)
