"""Phases: known gaps, the naive implementation, and real runs of IOR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from iosig.transforms.throughput.even_values import Grid, bin_requests
from iosig.transforms.throughput.request_phases import RequestPhases, request_phases
from iosig.transforms.throughput.requests import Requests, step_function
from iosig.warehouse.contracts.traces import TRACE_REQUESTS
from iosig.warehouse.sources.darshan.source import SOURCE
from iosig.warehouse.sources.protocol import Reading
from tests.naive.throughput import request_phases as naive
from tests.naive.throughput.requests import Request
from tests.transforms.request_lists import BOUNDED, DYADIC, of, together

NAN = float("nan")


def phase_rows(found: RequestPhases, subject: int = 0) -> list[naive.RequestPhase]:
    mine = slice(found.offsets[subject], found.offsets[subject + 1])
    columns = (found.onset_s, found.end_s, found.volume_bytes, found.request_count)
    return list(zip(*(column[mine].tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([(0, 1, 5), (3, 4, 7)], [(0, 1, 5, 1), (3, 4, 7, 1)]),
        # a gap equal to the minimum does not separate phases
        ([(0, 1, 5), (2, 3, 7)], [(0, 3, 12, 2)]),
        # a long request covers the gaps inside it
        ([(0, 9, 1), (1, 2, 1), (8, 8.5, 1), (12, 13, 1)], [(0, 9, 3, 3), (12, 13, 1, 1)]),
        # an instant is a phase; requests without bytes and unusable requests are not
        ([(0, 0, 5), (0, 0, 5), (4, 4, 1), (2, 2, 0), (2, 2, NAN), (3, 2, 1)], [(0, 0, 10, 2), (4, 4, 1, 1)]),
        ([], []),
    ],
)
def test_requests_have_the_expected_phases(requests: list[Request], expected: list[naive.RequestPhase]) -> None:
    assert phase_rows(request_phases(of(requests), 1.0)) == expected


def test_gap_may_differ_per_subject() -> None:
    pair = [(0.0, 1.0, 5.0), (3.0, 4.0, 7.0)]
    found = request_phases(together([pair, [], pair]), [1, 1, 2])
    assert found.offsets.tolist() == [0, 2, 2, 3]
    assert phase_rows(found, 2) == [(0, 4, 12, 2)]


@BOUNDED
@given(st.lists(st.lists(DYADIC, max_size=12), max_size=4), st.sampled_from([0, 1 / 64, 0.5, 1]), st.integers(0, 2**32))
def test_phases_match_naive_implementation(lists: list[list[Request]], gap_s: float, seed: int) -> None:
    requests = together(lists)
    found = request_phases(requests.select(np.random.default_rng(seed).permutation(len(requests.start_s))), gap_s)
    assert [phase_rows(found, number) for number in range(len(lists))] == [
        naive.request_phases(each, gap_s) for each in lists
    ]


@BOUNDED
@given(st.lists(DYADIC, max_size=12))
def test_phases_of_the_signal_equal_phases_of_requests(requests: list[Request]) -> None:
    ours, signals = request_phases(of(requests), 0.5), request_phases(step_function(of(requests)).requests(), 0.5)
    np.testing.assert_array_equal(signals.onset_s, ours.onset_s)
    np.testing.assert_array_equal(signals.end_s, ours.end_s)
    np.testing.assert_allclose(signals.volume_bytes, ours.volume_bytes, rtol=1e-13)


# ---- real runs


def segments(log: Path) -> pl.DataFrame:
    """Requests of the DXT modules of a log, as in the warehouse."""
    batches = SOURCE.read(log, Reading())
    return pl.concat([batch.rows for batch in batches if batch.table == TRACE_REQUESTS])


@pytest.mark.parametrize(
    ("log", "module", "direction"),
    [
        ("ior_mpiio_shared_n8_i8_d3", "MPIIO", "read"),
        ("ior_mpiio_shared_n8_i8_d3", "MPIIO", "write"),
        ("ior_posix_fpp_n8_i12_d3", "POSIX", "write"),
    ],
)
def test_phases_of_ior_runs_equal_the_reference(shared_data: Path, log: str, module: str, direction: str) -> None:
    folder = shared_data / "dxt"
    golden = np.loadtxt(folder / f"{log}.{direction}_bursts.csv", delimiter=",", skiprows=1)
    chosen = segments(folder / f"{log}.darshan").filter(pl.col("module") == module, pl.col("direction") == direction)
    began, ceased, length = (chosen[name].to_numpy() for name in ("start_s", "end_s", "request_bytes"))
    requests = Requests.from_arrays(began, ceased, length)
    found = request_phases(requests, 1.0)
    np.testing.assert_allclose(found.onset_s, golden[:, 0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.end_s, golden[:, 1], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.volume_bytes, golden[:, 2])
    np.testing.assert_array_equal(found.request_count, golden[:, 3])
    # the same for the step function and for bins of a millisecond
    steps = step_function(requests)
    of_steps = request_phases(steps.requests(), 1.0)
    np.testing.assert_array_equal(of_steps.onset_s, found.onset_s)
    np.testing.assert_allclose(of_steps.volume_bytes, golden[:, 2], rtol=1e-12)
    last = float(ceased.max())
    bins = Grid.from_range(0.0, last, int(last * 1000) + 1)
    edges = bins.interval_s[0] * np.arange(bins.step_count[0] + 1)
    of_bins = request_phases(
        Requests.from_arrays(edges[:-1], edges[1:], bin_requests(requests, bins).volume_bytes), 1.0
    )
    np.testing.assert_allclose(of_bins.onset_s, golden[:, 0], rtol=0, atol=1e-3)
    np.testing.assert_allclose(of_bins.volume_bytes, golden[:, 2], rtol=1e-12)
