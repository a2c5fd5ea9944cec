"""Lists of requests for property tests, with times on which arithmetic is exact or is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import settings, strategies as st

from iosig.transforms.throughput.requests import Requests
from tests.budget import examples
from tests.naive.throughput.requests import Request

#: properties are many here, and each of them is tried on lists of many requests; a busy machine is no failure
BOUNDED = settings(max_examples=examples(40), deadline=None)


def _request(began: float, duration: float, volume: float) -> Request:
    return began, began + duration, volume


#: times in 64ths of a second: sums and differences of them are exact
DYADIC = st.builds(
    _request,
    st.integers(0, 640).map(lambda n: n / 64),
    st.integers(0, 320).map(lambda n: n / 64),
    st.integers(0, 1 << 30).map(float),
)
#: any times and bytes, of all magnitudes side by side
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
    """The requests of many subjects, one after the other."""
    joined = of([request for requests in subjects for request in requests])
    subject = np.repeat(np.arange(len(subjects)), [len(requests) for requests in subjects]).astype(np.int64)
    return replace(joined, subject=subject, subject_count=len(subjects))


def total(requests: Sequence[Request]) -> float:
    """All their bytes."""
    return float(sum(volume for *_, volume in requests))
