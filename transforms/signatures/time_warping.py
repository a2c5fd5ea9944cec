"""Extract signatures by the `dtw` method: dynamic time warping, the baseline with which IOSI is compared.

IOSI (Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu), section 6.1:
"We initially assign a pair of samples as input to DTW, and feed the result along with another sample to DTW again.
This process is repeated until all samples are exhausted", on preprocessed samples.

The paper does not define how a pair is merged into one sample. Here, each step of the path becomes the mean of both
rates at the mean of both times, interpolated at whole seconds. The result is symmetric in the pair, and has the length
that all preprocessed samples have. Each intermediate result has the same weight as the next sample.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.preprocessing import preprocess
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: maximum size of a cost matrix (ours); samples of more than about 8,000 s use a Sakoe-Chiba band that fits into it
_MAX_MATRIX_BYTES = 1 << 29


def extract_dtw(sample_set: SampleSet) -> Signature:
    """Extract a signature by repeated pairwise dynamic time warping; IOSI, section 6.1."""
    samples = preprocess(sample_set)
    if not len(samples.values):
        return Signature.missing("too_few_samples")
    values = samples.filled
    if not (values > 0).any():
        return Signature.missing("no_io", samples.background_bytes_per_s)
    curve = average_pairwise(values)
    return Signature.from_curve(curve, detect_bursts(curve), samples.background_bytes_per_s)


def average_pairwise(values: Reals) -> Reals:
    """Average samples successively; each is warped together with the average of the previous ones.

    Parameters
    ----------
    values : (runs, points)
        Finite and not negative, in any unit.

    Returns
    -------
    (points,)
    """
    mean = np.ascontiguousarray(values[0], dtype=np.float64)
    for sample in values[1:]:
        mean = _merge_pair(mean, sample)
    return mean


def find_warping_path(first: npt.ArrayLike, second: npt.ArrayLike, max_bytes: int | None = None) -> tuple[Ints, Ints]:
    """Find the path with the smallest sum of squared differences between two samples.

    It leads from the first points to the last ones, each step forward by one point in one sample or in both.

    Parameters
    ----------
    first, second : (n,), (m,)
        Finite, with one point or more.
    max_bytes
        Maximum size of the cost matrix, for n = m; by default, all paths are searched.

    Returns
    -------
    first_points, second_points : (steps,)
    """
    from dtaidistance import dtw_cc

    # scaling by a power of 2 does not change the path, and keeps squares of huge rates in range
    pair = [np.ascontiguousarray(sample, dtype=np.float64) for sample in (first, second)]
    exponent = int(np.frexp(max(float(np.abs(sample).max()) for sample in pair))[1])
    with np.errstate(under="ignore"):
        scaled = [np.ldexp(sample, -exponent) for sample in pair]
    # the library's memory-saving variant returns invalid steps where values are equal
    path = np.array(dtw_cc.warping_path(*scaled, **_window_option(len(pair[0]), max_bytes)), dtype=np.int64)
    return path[:, 0], path[:, 1]


def _window_option(point_count: int, max_bytes: int | None) -> dict[str, int]:
    """Choose the band around the diagonal if the matrix is too large; assume two values per point and shift."""
    if max_bytes is None or 8 * (point_count + 1) ** 2 <= max_bytes:
        return {}
    return {"window": max(1, max_bytes // (16 * point_count) - 1)}


def _merge_pair(first: Reals, second: Reals) -> Reals:
    """Merge two samples of one length into one of that length (points)."""
    left, right = find_warping_path(first, second, _MAX_MATRIX_BYTES)
    rates = first[left] * 0.5 + second[right] * 0.5
    return np.interp(np.arange(len(first)), left * 0.5 + right * 0.5, rates)
