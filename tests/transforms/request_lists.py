"""Lists of requests for property tests, with times on which arithmetic is exact or inexact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import settings, strategies as st

from iosig.transforms.throughput.requests import Requests
from tests.budget import examples
from tests.naive.throughput.requests import Request

#: Fewer examples, because lists of requests are large; no deadline, because a busy machine must not fail a test.
BOUNDED = settings(max_examples=examples(40), deadline=None)


def _request(began: float, duration: float, volume: float) -> Request:
    return began, began + duration, volume


#: Times in 64ths of a second, so that sums and differences are exact.
DYADIC = st.builds(
    _request,
    st.integers(0, 640).map(lambda n: n / 64),
    st.integers(0, 320).map(lambda n: n / 64),
    st.integers(0, 1 << 30).map(float),
)
#: Any times and bytes, with all magnitudes mixed.
FREE = st.builds(
    _request,
    st.floats(-1e3, 1e9),
    st.sampled_from([0.0, 1e-6, 1e-3, 1.0, 1e3]) | st.floats(0, 1e6),
    st.sampled_from([0.0, 1.0, 1e12]) | st.floats(1e-3, 1e15),
)


def of(requests: Sequence[Request]) -> Requests:
    """The requests of one subject."""
    began, ceased, volume = zip(*requests, strict=True) if requests else ((), (), ())
    return Requests.from_arrays(began, ceased, volume)


def together(subjects: Sequence[Sequence[Request]]) -> Requests:
    """The requests of several subjects, concatenated."""
    joined = of([request for requests in subjects for request in requests])
    subject = np.repeat(np.arange(len(subjects)), [len(requests) for requests in subjects]).astype(np.int64)
    return replace(joined, subject=subject, subject_count=len(subjects))


def total(requests: Sequence[Request]) -> float:
    """Exact sum of the bytes of all requests."""
    return float(sum(volume for *_, volume in requests))
