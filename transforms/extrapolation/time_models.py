"""Extrapolate times to other rank counts by ScalaTrace's four types of curves [1, section 2].

As a function of the rank count n, a time is constant, linear, inversely proportional, or inversely proportional plus a
constant. Each model is fitted by least squares, and the model with the smallest residual standard deviation is
selected. Timings are noisy, and rank counts are few. With two parameters for four points, a wrong model often fits
better than the true model because of noise. The error of its slope grows with the distance. A model of two parameters
must therefore pass Student's t-test, at a level that decreases with the distance (`_FALSE_SLOPE_RATIO`). Models that
predict a negative time are excluded.

[1] X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.traces.time_histograms import BIN_COUNT, EMPTY, Bins, split_evenly
from iosig.transforms.traces.trace import TimeBin, TimeHistogram

CONSTANT, LINEAR, INVERSE, INVERSE_PLUS = range(4)
#: names of the models, indexed by their numbers: `a`, `a + b n`, `b / n`, `a + b / n`
NAMES = ("constant", "linear", "inverse", "inverse plus constant")
_PARAMETERS = np.array([1, 2, 1, 2])

#: reasons why the model with the smallest deviation was rejected, indexed by their numbers
REASONS = ("", "not significant", "negative time")
_SELECTED, _NOT_SIGNIFICANT, _NEGATIVE = range(3)


#: significance level of a second parameter near the known rank counts; there, such a parameter pays off if it exceeds
#: sqrt(2) standard errors (as in AIC), which is a level of 30 % with four rank counts. At f times the largest rank
#: count, the error of a linear model is f times as large. The level is then divided by f, which keeps the expected
#: error constant. The same applies to an inverse model below the smallest rank count
_FALSE_SLOPE_RATIO = 0.3
#: clock resolution, which is the lower limit of residuals [s] (gettimeofday in Recorder 2.5: 1 us)
_CLOCK_S = 1e-6


@dataclass(frozen=True, slots=True)
class TimeModel:
    """Model of a mean time [s] over n: `constant_s + slope_s * n`, or `constant_s + slope_s / n` for inverse models.

    If the model with the smallest deviation was rejected, `set_aside` is its name, and `reason` the reason.
    """

    name: str
    constant_s: float
    slope_s: float
    set_aside: str = ""
    reason: str = ""

    @property
    def formula(self) -> str:
        """Return the formula of the model, in seconds."""
        constant, slope = f"{self.constant_s:.6g}", f"{abs(self.slope_s):.6g}"
        sign = "-" if self.slope_s < 0 else "+"
        return {
            "constant": constant,
            "linear": f"{constant} {sign} {slope} n",
            "inverse": f"{self.slope_s:.6g} / n",
            "inverse plus constant": f"{constant} {sign} {slope} / n",
        }[self.name]


# ---- curves


@dataclass(frozen=True, slots=True)
class Fits:
    """Fitted models of k fields: number of the model, its two coefficients, and its prediction.

    set_aside: number of the model with the smallest deviation. reasons: why it was rejected, as an index in `REASONS`.
    """

    models: Ints
    constants: Reals
    slopes: Reals
    predicted: Reals
    set_aside: Ints
    reasons: Ints


def fit_curves(rank_counts: Sequence[int], values: Reals, process_count: int) -> Fits:
    """Fit the four models to each of k fields, and predict the fields at another rank count.

    Parameters
    ----------
    rank_counts
        Known rank counts, distinct.
    values : (k, rank counts)
        Nonnegative values.
    process_count
        Rank count of the prediction.

    Returns
    -------
    Fits
        Selected models. Ties are resolved in favor of fewer parameters, then in the order of the models.

    Raises
    ------
    ValueError
        If values or rank counts are invalid.
    """
    counts = _validate_counts(rank_counts, process_count)
    if values.ndim != 2 or values.shape[1] != counts.size or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("each field needs a finite, nonnegative value for each rank count")
    curves = _fit_least_squares(counts, values)
    deviations = _residual_deviations(counts, values, curves)
    at = np.array([0.0, process_count, 1 / process_count, 1 / process_count])
    predicted = curves[:, :, 0] + curves[:, :, 1] * at
    is_significant = _test_significance(counts, curves, process_count, deviations)
    is_possible = predicted >= 0
    best = _select_models(deviations, np.ones_like(is_significant))
    selected = _select_models(deviations, is_significant & is_possible)
    row = np.arange(values.shape[0])
    reasons = np.where(best == selected, _SELECTED, np.where(is_significant[row, best], _NEGATIVE, _NOT_SIGNIFICANT))
    constants, slopes = curves[row, selected].T
    return Fits(selected, constants, slopes, predicted[row, selected], best, reasons)


def _validate_counts(rank_counts: Sequence[int], process_count: int) -> Reals:
    counts = np.array(rank_counts, np.float64)
    if not counts.size or (counts < 1).any() or np.unique(counts).size < counts.size or process_count < 1:
        raise ValueError("rank counts must be positive and distinct")
    return counts


def _fit_least_squares(counts: Reals, values: Reals) -> Reals:
    """Fit the constant and the slope of the four models by least squares (k, models, 2)."""
    curves = np.zeros((values.shape[0], len(NAMES), 2))
    mean = values.mean(axis=1)
    curves[:, CONSTANT, 0] = mean
    curves[:, INVERSE, 1] = (values / counts).sum(axis=1) / (counts**-2.0).sum()
    for model, x in ((LINEAR, counts), (INVERSE_PLUS, 1 / counts)):
        centered = x - x.mean()
        spread = (centered * centered).sum()
        slope = ((values - mean[:, None]) * centered).sum(axis=1) / spread if spread > 0 else np.zeros_like(mean)
        curves[:, model] = np.stack([mean - slope * x.mean(), slope], axis=1)
    return curves


def _residual_deviations(counts: Reals, values: Reals, curves: Reals) -> Reals:
    """Compute residual standard deviations (k, models); infinite without degrees of freedom.

    Residuals as small as rounding errors count as 0.
    """
    places = np.stack([np.zeros_like(counts), counts, 1 / counts, 1 / counts])
    residuals = values[:, None, :] - curves[:, :, :1] - curves[:, :, 1:] * places
    residuals[np.abs(residuals) <= 1e-12 * values.max(axis=1, initial=0.0)[:, None, None]] = 0.0
    degrees_of_freedom = counts.size - _PARAMETERS
    squares = (residuals**2).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = np.where(degrees_of_freedom > 0, np.sqrt(squares / np.maximum(degrees_of_freedom, 1)), np.inf)
    # for a single rank count, the constant is the only possible model
    if counts.size == 1:
        deviations[:, CONSTANT] = 0.0
    return deviations


def _select_models(deviations: Reals, is_allowed: Bools) -> Ints:
    """Find the allowed model with the smallest deviation; of several, the model with the fewest parameters."""
    order = np.array([CONSTANT, INVERSE, LINEAR, INVERSE_PLUS])
    models: Ints = order[np.where(is_allowed, deviations, np.inf)[:, order].argmin(axis=1)]
    return models


def _test_significance(counts: Reals, curves: Reals, process_count: int, deviations: Reals) -> Bools:
    """Test whether the parameters of each model (k, models) are significant by Student's t-test."""
    is_significant = np.ones(deviations.shape, np.bool_)
    degrees_of_freedom = counts.size - 2
    if degrees_of_freedom < 1:
        is_significant[:, [LINEAR, INVERSE_PLUS]] = False
        return is_significant
    distance = {LINEAR: process_count / counts.max(), INVERSE_PLUS: counts.min() / process_count}
    for model, x in ((LINEAR, counts), (INVERSE_PLUS, 1 / counts)):
        alpha = _FALSE_SLOPE_RATIO / max(1.0, distance[model])
        limit = stats.t.isf(alpha / 2, degrees_of_freedom)
        # a time is the difference of two clock readings, each with a uniform error of one tick
        noise = np.maximum(deviations[:, model], _CLOCK_S / np.sqrt(6))
        spread = np.sqrt(((x - x.mean()) ** 2).sum())
        is_significant[:, model] = np.abs(curves[:, model, 1]) > limit * noise / spread
        if model == INVERSE_PLUS:
            # the constant must also be significant; otherwise, the plain inverse model is sufficient
            error = noise * np.sqrt(1 / counts.size + (x.mean() / spread) ** 2)
            is_significant[:, model] &= np.abs(curves[:, model, 0]) > limit * error
    return is_significant


# ---- histograms


def extrapolate_histograms(
    rank_counts: Sequence[int],
    histograms: Sequence[Sequence[TimeHistogram]],
    process_count: int,
    counts: Sequence[int],
) -> list[tuple[TimeHistogram, TimeModel]]:
    """Extrapolate histograms of k fields to a rank count.

    Parameters
    ----------
    rank_counts
        Known rank counts.
    histograms : (k, rank counts)
        Histograms; they must not be empty.
    process_count
        Rank count of the result.
    counts : (k,)
        Number of times in each resulting histogram.

    Returns
    -------
    list[tuple[TimeHistogram, TimeModel]]
        Histogram of each field, and model of its mean.

    Raises
    ------
    ValueError
        If the numbers of fields differ, or a histogram is empty.

    Notes
    -----
    Means, standard deviations, and the bins' minima, means and maxima are modeled separately. The mean determines the
    duration of a replay and therefore takes precedence: the bins are sorted, and scaled to match the mean.
    """
    if len(counts) != len(histograms) or any(len(field) != len(rank_counts) for field in histograms):
        raise ValueError("each field needs a count, and a histogram for each rank count")
    if any(not part.count for field in histograms for part in field) or min(counts, default=0) < 0:
        raise ValueError("histograms must not be empty, and counts must not be negative")
    count_array = np.array(counts, np.int64)
    bin_counts = np.clip(count_array, 1, BIN_COUNT)
    result: list[tuple[TimeHistogram, TimeModel]] = [(EMPTY, TimeModel(NAMES[CONSTANT], 0.0, 0.0))] * len(counts)
    for bin_count in np.unique(bin_counts).tolist():
        members = np.flatnonzero(bin_counts == bin_count)
        selected = [histograms[member] for member in members.tolist()]
        parts = _extrapolate_bins(rank_counts, selected, process_count, count_array[members], bin_count)
        for member, part in zip(members.tolist(), parts, strict=True):
            result[member] = part
    return result


def _extrapolate_bins(
    rank_counts: Sequence[int],
    histograms: Sequence[Sequence[TimeHistogram]],
    process_count: int,
    counts: Ints,
    bin_count: int,
) -> list[tuple[TimeHistogram, TimeModel]]:
    """Extrapolate histograms with the same number of bins in their results."""
    height, width = len(histograms), len(rank_counts)
    flat = [part for field in histograms for part in field]
    means = np.array([part.mean_s for part in flat]).reshape(height, width)
    deviations = np.sqrt(np.maximum([part.variance_s2 for part in flat], 0.0)).reshape(height, width)
    bins = rebin(flat, bin_count).reshape(height, width, 3 * bin_count)
    # standard deviations are times with the same clock noise, unlike variances
    fields = np.concatenate([means[:, None], deviations[:, None], bins.transpose(0, 2, 1)], axis=1)
    fits = fit_curves(rank_counts, np.maximum(fields, 0.0).reshape(-1, width), process_count)
    predicted = fits.predicted.reshape(height, -1)
    shaped = _make_consistent(predicted[:, 2:].reshape(height, bin_count, 3), predicted[:, 0], counts)
    models = _time_models(fits, slice(0, None, fields.shape[1]))
    return _build_histograms(shaped, predicted[:, 0], predicted[:, 1] ** 2, counts, models)


def rebin(histograms: Sequence[TimeHistogram], bin_count: int) -> Reals:
    """Divide each histogram into bins with equal numbers of times; return their minima, means and maxima (n, bins, 3).

    A histogram that has the requested number of bins is unchanged. In others, times are distributed as `Bins` assumes.
    """
    result = np.empty((len(histograms), bin_count, 3))
    sizes = np.array([len(part.bins) for part in histograms], np.int64)
    for size in np.unique(sizes).tolist():
        members = np.flatnonzero(sizes == size)
        rows = [
            (part.count, part.minimum_s, part.mean_s, part.maximum_s)
            for member in members.tolist()
            for part in histograms[member].bins
        ]
        table = np.array(rows, np.float64).reshape(members.size, size, 4)
        result[members] = table[:, :, 1:] if size == bin_count else _split_bins(table, bin_count)
    return result


def _split_bins(table: Reals, bin_count: int) -> Reals:
    """Divide consecutive bins (n, b, 4) into equal parts, and return the minimum, mean and maximum of each part."""
    bins = Bins(*(table[:, None, :, column] for column in range(4)))
    ends = np.cumsum(table[:, :, 0], axis=1)
    starts = ends - table[:, :, 0]
    edges = np.linspace(0.0, 1.0, bin_count + 1) * ends[:, -1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (edges[:, :, None] - starts[:, None]) / table[:, None, :, 0]
    shares = np.clip(np.nan_to_num(shares), 0.0, 1.0)
    means = np.diff(bins.sums(shares).sum(axis=2), axis=1) / np.diff(edges, axis=1)
    times = bins.quantiles(shares)
    # bin of each edge; an edge between two bins ends one part in the first bin and begins the next in the second bin
    tolerance = 1e-9 * ends[:, -1:]
    last = np.minimum((ends[:, None] < (edges - tolerance)[:, :, None]).sum(axis=2), ends.shape[1] - 1)
    next_ = np.minimum((ends[:, None] <= (edges + tolerance)[:, :, None]).sum(axis=2), ends.shape[1] - 1)
    minima = np.take_along_axis(times, next_[:, :, None], axis=2)[:, :-1, 0]
    maxima = np.take_along_axis(times, last[:, :, None], axis=2)[:, 1:, 0]
    return np.stack([np.minimum(minima, means), means, np.maximum(maxima, means)], axis=2)


def _make_consistent(bins: Reals, means: Reals, counts: Ints) -> Reals:
    """Sort the values of bins (n, b, 3), and scale the values to the given means."""
    # sorted values are minimum, mean and maximum of consecutive bins
    ordered = np.sort(bins.reshape(len(bins), -1), axis=1).reshape(bins.shape)
    sizes = split_evenly(counts, np.full(counts.size, bins.shape[1])).reshape(-1, bins.shape[1])
    weights = np.where(counts[:, None] > 0, sizes, 1) / np.maximum(counts, 1)[:, None]
    bin_means = (ordered[:, :, 1] * weights).sum(axis=1)
    ratio = np.divide(means, bin_means, out=np.ones_like(means), where=bin_means > 0)
    scaled = np.where((bin_means > 0)[:, None, None], ordered * ratio[:, None, None], means[:, None, None])
    # minimum, mean and maximum of a single time are equal
    return np.where((sizes == 1)[:, :, None], scaled[:, :, 1:2], scaled)


def _time_models(fits: Fits, rows: slice) -> list[TimeModel]:
    columns = (fits.models, fits.constants, fits.slopes, fits.set_aside, fits.reasons)
    return [
        TimeModel(NAMES[model], constant, slope, NAMES[set_aside] if reason else "", REASONS[reason])
        for model, constant, slope, set_aside, reason in zip(
            *(column[rows].tolist() for column in columns), strict=True
        )
    ]


def _build_histograms(
    bins: Reals, means: Reals, variances: Reals, counts: Ints, models: list[TimeModel]
) -> list[tuple[TimeHistogram, TimeModel]]:
    """Create histograms from bins (n, b, 3); limit their variances to values that the means and bins allow."""
    sizes = split_evenly(counts, np.full(counts.size, bins.shape[1])).reshape(-1, bins.shape[1])
    shares = sizes / np.maximum(counts, 1)[:, None]
    # scaled bins may miss the mean by a rounding error
    means = np.clip(means, bins[:, 0, 0], bins[:, -1, 2])
    between = (shares * (bins[:, :, 1] - means[:, None]) ** 2).sum(axis=1)
    max_variances = (bins[:, -1, 2] - means) * (means - bins[:, 0, 0])
    allowed = np.maximum(between, np.minimum(variances, np.maximum(max_variances, 0.0)))
    result: list[tuple[TimeHistogram, TimeModel]] = []
    rows = zip(counts.tolist(), sizes.tolist(), bins.tolist(), means.tolist(), allowed.tolist(), models, strict=True)
    for count, bin_sizes, parts, mean, variance, model in rows:
        time_bins = tuple(TimeBin(size, *part) for size, part in zip(bin_sizes, parts, strict=True))
        histogram = TimeHistogram(count, parts[0][0], mean, parts[-1][2], variance, time_bins) if count else EMPTY
        result.append((histogram, model))
    return result
