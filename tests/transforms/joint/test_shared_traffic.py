"""Samples are cut out of shared traffic as the nightly run does it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iosig.transforms.joint.shared_traffic import SharedTraffic


def small() -> SharedTraffic:
    """Make ten steps with three runs of two applications; the second run is not a sample."""
    return SharedTraffic(
        np.arange(10.0),
        2.0,
        np.array([1, 0, 0]),
        2,
        np.array([0.0, 1.0, 2.5]),
        np.array([4.0, 3.0, 20.0]),
        np.array([True, False, True]),
    )


def test_samples_are_grouped_and_cut_at_right_edges() -> None:
    shared = small()
    assert shared.sample_runs.tolist() == [2, 0]
    assert shared.set_offsets.tolist() == [0, 1, 2]
    # A run includes the step in which it starts, by its right edge; the last run ends with the polls.
    assert [one.tolist() for one in shared.sample_windows()] == [[2, 0], [10, 4]]
    cut = shared.cut_samples(shared.volume_bytes)
    assert cut.values.tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3]


def test_sample_sets_have_rates_and_times() -> None:
    shared = small()
    sets = shared.make_sample_sets(shared.cut_samples(shared.volume_bytes))
    assert sets.interference is None
    assert sets.samples.values[:3].tolist() == [1.0, 1.5, 2.0]
    assert sets.start_s.tolist() == [-1.0, 0.0]
    assert sets.duration_s.tolist() == [35.0, 8.0]
    assert sets.offsets.tolist() == [0, 1, 2]


def test_cleaned_samples_use_expected_starts() -> None:
    shared = small()
    raw = shared.cut_samples(shared.volume_bytes)
    # truncation to whole seconds removes half a second on average
    assert shared.make_sample_sets(raw, np.zeros(len(raw.values))).start_s.tolist() == [-1.5, -0.5]


def test_subsecond_log_times_are_not_corrected() -> None:
    exact = replace(small(), started=np.array([0.0, 1.0, 2.3]))
    assert exact.start_estimate.tolist() == exact.started.tolist()
    assert exact.end_estimate.tolist() == exact.ended.tolist()
    # whole seconds relative to a grid that starts at a fraction of a second
    shifted = replace(small(), started=small().started + 0.15, ended=small().ended + 0.15)
    assert shifted.start_estimate == pytest.approx(shifted.started + 0.25)
    assert shifted.end_estimate == pytest.approx(shifted.ended + 0.25)
