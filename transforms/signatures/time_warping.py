"""Dynamic time warping: the baseline that IOSI is compared with.

IOSI (Liu et al., FAST'14, https://www.usenix.org/conference/fast14/technical-sessions/presentation/liu), section 6.1:
"We initially assign a pair of samples as input to DTW, and feed the result along with another sample to DTW again.
This process is repeated until all samples are exhausted", on preprocessed samples.

The paper does not say how a pair becomes one sample again. Here each step of the path becomes the mean of both rates,
at the mean of both times, and the result is read off at whole seconds; that is symmetric in the pair, and keeps the
length that all preprocessed samples have. Every result counts for as much as the sample that it meets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from iosig.transforms.arrays import Ints, Reals
from iosig.transforms.signatures.bursts import bursts_of
from iosig.transforms.signatures.preprocessing import preprocessed
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature

#: what a path's matrix may take (ours): samples of more than about 8,000 s are shifted against each other by no more
#: than what fits (a Sakoe-Chiba band)
_MOST_BYTES = 1 << 29


def dtw(one: SampleSet) -> Signature:
    """Return the signature of a set of runs by pairwise dynamic time warping; IOSI 6.1."""
    samples = preprocessed(one)
    if not len(samples.values):
        return Signature.nothing("too_few_samples")
    values = samples.complete
    if not (values > 0).any():
        return Signature.nothing("no_io", samples.background_bytes_per_s)
    curve = warped_mean(values)
    return Signature.curve(curve, bursts_of(curve), samples.background_bytes_per_s)


def warped_mean(values: Reals) -> Reals:
    """Return samples (runs, points) averaged one after the other, each warped together with the mean of those before.

    Values are finite and not negative. The result (points) is in their unit.
    """
    mean = np.ascontiguousarray(values[0], dtype=np.float64)
    for sample in values[1:]:
        mean = _merged(mean, sample)
    return mean


def warping_path(first: npt.ArrayLike, second: npt.ArrayLike, most_bytes: int | None = None) -> tuple[Ints, Ints]:
    """Return the path that aligns two samples with the least sum of squared differences.

    From both first points to both last ones, each step forward by one point in one sample or in both.

    Parameters
    ----------
    first, second : shapes (n,) and (m,), at least one point each, finite
    most_bytes : what the matrix of the search may take; without it, all paths are searched; only for n = m

    Returns
    -------
    the points of the first and of the second sample (steps)

    """
    from dtaidistance import dtw_cc

    # by a power of 2, which changes no path: squares of huge rates leave the range
    pair = [np.ascontiguousarray(sample, dtype=np.float64) for sample in (first, second)]
    exponent = int(np.frexp(max(float(np.abs(sample).max()) for sample in pair))[1])
    with np.errstate(under="ignore"):
        scaled = [np.ldexp(sample, -exponent) for sample in pair]
    # the library's form that takes less memory returns steps that are none where values are equal
    path = np.array(dtw_cc.warping_path(*scaled, **_window(len(pair[0]), most_bytes)), dtype=np.int64)
    return path[:, 0], path[:, 1]


def _window(points: int, most_bytes: int | None) -> dict[str, int]:
    """Return the widest band around the diagonal that fits, if not all does: about two values a point and shift."""
    if most_bytes is None or 8 * (points + 1) ** 2 <= most_bytes:
        return {}
    return {"window": max(1, most_bytes // (16 * points) - 1)}


def _merged(first: Reals, second: Reals) -> Reals:
    """Return two samples of one length as one of that length (points)."""
    left, right = warping_path(first, second, _MOST_BYTES)
    rates = first[left] * 0.5 + second[right] * 0.5
    return np.interp(np.arange(len(first)), left * 0.5 + right * 0.5, rates)
