"""Times at a rank count that nobody ran, by ScalaTrace's four curve fits over those that were [1, section 2].

A time over the rank counts n is constant, linear, inverse proportional, or inverse proportional plus a constant; each
is fitted by least squares, and that of the smallest standard deviation of residuals is taken. Timings are noisy and
rank counts few: with two parameters for four points, chance often fits better than what is behind it, and a slope out
of noise grows with the distance. So a model of two parameters must hold its own against those of one by Student's
test, and the further away the rank count is, the surer it must be (`_FALSE_SLOPE_RATIO`). None may
predict less than no time.

[1] X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.traces.time_histograms import BIN_COUNT, EMPTY, Bins, even_sizes
from iosig.transforms.traces.trace import TimeBin, TimeHistogram

CONSTANT, LINEAR, INVERSE, INVERSE_PLUS = range(4)
#: the models by their number: `a`, `a + b n`, `b / n`, `a + b / n`
NAMES = ("constant", "linear", "inverse", "inverse plus constant")
_PARAMETERS = np.array([1, 2, 1, 2])

#: why the model of the smallest deviation was not taken, by number
REASONS = ("", "no surer than chance", "below no time")
_TAKEN, _BY_CHANCE, _NEGATIVE = range(3)


#: in how many cases noise may pass for a model of two parameters, at the rank counts. Near them, a parameter pays for
#: itself once it is sqrt(2) times its standard error (as in AIC): with four rank counts, 3 cases in 10. At f times the
#: largest, a linear model's noise is f times as large, and it may pass in as many cases less; so the error that is to
#: be expected of it stays the same. So it is with an inverse one below the smallest
_FALSE_SLOPE_RATIO = 0.3
#: steps of the clock (gettimeofday of Recorder 2.5: 1 us); residuals are taken to be no smaller than its
_CLOCK_S = 1e-6


@dataclass(frozen=True, slots=True)
class TimeModel:
    """The model of a mean time [s] over the ranks n: `constant_s + slope_s * n`, or `/ n` where it is inverse.

    `set_aside` names the model of the smallest deviation where it was another, and `reason` says why.
    """

    name: str
    constant_s: float
    slope_s: float
    set_aside: str = ""
    reason: str = ""

    @property
    def formula(self) -> str:
        """Return the model as text, in seconds."""
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
    """The model of each of k fields: its number, its two coefficients, what it predicts.

    set_aside: the number of the model of the smallest deviation; reasons: why it was not taken (`REASONS`).
    """

    models: Ints
    constants: Reals
    slopes: Reals
    predicted: Reals
    set_aside: Ints
    reasons: Ints


def fitted(rank_counts: Sequence[int], values: Reals, process_count: int) -> Fits:
    """Fit the four models to each of k fields, and predict it at another rank count.

    values (k, rank counts): not negative. Of models that fit equally well, the first in the order of `NAMES` but for
    those of one parameter, which come before those of two.
    """
    counts = _checked(rank_counts, process_count)
    if values.ndim != 2 or values.shape[1] != counts.size or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("each field needs a finite value that is not negative for each rank count")
    curves = _curves(counts, values)
    deviations = _deviations(counts, values, curves)
    at = np.array([0.0, process_count, 1 / process_count, 1 / process_count])
    predicted = curves[:, :, 0] + curves[:, :, 1] * at
    is_sure = _is_sure(counts, curves, process_count, deviations)
    is_possible = predicted >= 0
    best = _smallest(deviations, np.ones_like(is_sure))
    chosen = _smallest(deviations, is_sure & is_possible)
    row = np.arange(values.shape[0])
    reasons = np.where(best == chosen, _TAKEN, np.where(is_sure[row, best], _NEGATIVE, _BY_CHANCE))
    constants, slopes = curves[row, chosen].T
    return Fits(chosen, constants, slopes, predicted[row, chosen], best, reasons)


def _checked(rank_counts: Sequence[int], process_count: int) -> Reals:
    counts = np.array(rank_counts, np.float64)
    if not counts.size or (counts < 1).any() or np.unique(counts).size < counts.size or process_count < 1:
        raise ValueError("rank counts must be from 1 on, and each another")
    return counts


def _curves(counts: Reals, values: Reals) -> Reals:
    """Return constant and slope (k, models, 2) of the four models, by least squares."""
    found = np.zeros((values.shape[0], len(NAMES), 2))
    mean = values.mean(axis=1)
    found[:, CONSTANT, 0] = mean
    found[:, INVERSE, 1] = (values / counts).sum(axis=1) / (counts**-2.0).sum()
    for model, places in ((LINEAR, counts), (INVERSE_PLUS, 1 / counts)):
        off = places - places.mean()
        spread = (off * off).sum()
        slope = ((values - mean[:, None]) * off).sum(axis=1) / spread if spread > 0 else np.zeros_like(mean)
        found[:, model] = np.stack([mean - slope * places.mean(), slope], axis=1)
    return found


def _deviations(counts: Reals, values: Reals, curves: Reals) -> Reals:
    """Return the standard deviation of the residuals (k, models), by the degrees of freedom that are left.

    Where a model leaves none, its deviation tells nothing: it is infinite. One that is rounding alone is none.
    """
    places = np.stack([np.zeros_like(counts), counts, 1 / counts, 1 / counts])
    residuals = values[:, None, :] - curves[:, :, :1] - curves[:, :, 1:] * places
    residuals[np.abs(residuals) <= 1e-12 * values.max(axis=1, initial=0.0)[:, None, None]] = 0.0
    freedom = counts.size - _PARAMETERS
    # A single rank count leaves no freedom to a constant either, which is then all that there is.
    squares = (residuals**2).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(freedom > 0, np.sqrt(squares / np.maximum(freedom, 1)), np.inf)
    if counts.size == 1:
        found[:, CONSTANT] = 0.0
    return found


def _smallest(deviations: Reals, is_allowed: Bools) -> Ints:
    """Return the model of the smallest deviation that is allowed; the one of fewer parameters where two are equal."""
    order = np.array([CONSTANT, INVERSE, LINEAR, INVERSE_PLUS])
    found: Ints = order[np.where(is_allowed, deviations, np.inf)[:, order].argmin(axis=1)]
    return found


def _is_sure(counts: Reals, curves: Reals, process_count: int, deviations: Reals) -> Bools:
    """Return which models (k, models) noise alone would not have made, by Student's test of their parameters."""
    sure = np.ones(deviations.shape, np.bool_)
    freedom = counts.size - 2
    if freedom < 1:
        sure[:, [LINEAR, INVERSE_PLUS]] = False
        return sure
    beyond = {LINEAR: process_count / counts.max(), INVERSE_PLUS: counts.min() / process_count}
    for model, places in ((LINEAR, counts), (INVERSE_PLUS, 1 / counts)):
        chance = _FALSE_SLOPE_RATIO / max(1.0, beyond[model])
        limit = stats.t.isf(chance / 2, freedom)
        # Times are the difference of two clock readings, of which each is off by a uniform part of a step.
        noise = np.maximum(deviations[:, model], _CLOCK_S / np.sqrt(6))
        spread = np.sqrt(((places - places.mean()) ** 2).sum())
        sure[:, model] = np.abs(curves[:, model, 1]) > limit * noise / spread
        if model == INVERSE_PLUS:
            # It must be surely no plain inverse, too.
            error = noise * np.sqrt(1 / counts.size + (places.mean() / spread) ** 2)
            sure[:, model] &= np.abs(curves[:, model, 0]) > limit * error
    return sure


# ---- histograms


def extrapolated_histograms(
    rank_counts: Sequence[int],
    histograms: Sequence[Sequence[TimeHistogram]],
    process_count: int,
    counts: Sequence[int],
) -> list[tuple[TimeHistogram, TimeModel]]:
    """Return histograms at a rank count, of so many times each, from those at other rank counts.

    histograms: of each field, that of each rank count; none may be empty. Means, variances and the bins' least, mean
    and largest are modelled each by itself. The mean is what a replay's time comes to, and holds: the bins are put in
    order, and stretched until their mean is that.
    """
    if len(counts) != len(histograms) or any(len(each) != len(rank_counts) for each in histograms):
        raise ValueError("each field needs a count, and a histogram for each rank count")
    if any(not part.count for each in histograms for part in each) or min(counts, default=0) < 0:
        raise ValueError("there are no times to extrapolate from")
    wanted = np.array(counts, np.int64)
    bin_counts = np.clip(wanted, 1, BIN_COUNT)
    found: list[tuple[TimeHistogram, TimeModel]] = [(EMPTY, TimeModel(NAMES[CONSTANT], 0.0, 0.0))] * len(counts)
    for bin_count in np.unique(bin_counts).tolist():
        members = np.flatnonzero(bin_counts == bin_count)
        chosen = [histograms[member] for member in members.tolist()]
        parts = _extrapolated(rank_counts, chosen, process_count, wanted[members], bin_count)
        for member, part in zip(members.tolist(), parts, strict=True):
            found[member] = part
    return found


def _extrapolated(
    rank_counts: Sequence[int],
    histograms: Sequence[Sequence[TimeHistogram]],
    process_count: int,
    counts: Ints,
    bin_count: int,
) -> list[tuple[TimeHistogram, TimeModel]]:
    """Extrapolate histograms that are all to have so many bins."""
    height, width = len(histograms), len(rank_counts)
    flat = [part for each in histograms for part in each]
    means = np.array([part.mean_s for part in flat]).reshape(height, width)
    deviations = np.sqrt(np.maximum([part.variance_s2 for part in flat], 0.0)).reshape(height, width)
    bins = rebinned(flat, bin_count).reshape(height, width, 3 * bin_count)
    # Standard deviations are times as well, so that the same noise of the clock is theirs; variances are not.
    fields = np.concatenate([means[:, None], deviations[:, None], bins.transpose(0, 2, 1)], axis=1)
    fits = fitted(rank_counts, np.maximum(fields, 0.0).reshape(-1, width), process_count)
    predicted = fits.predicted.reshape(height, -1)
    shaped = _consistent(predicted[:, 2:].reshape(height, bin_count, 3), predicted[:, 0], counts)
    models = _models(fits, slice(0, None, fields.shape[1]))
    return _assembled(shaped, predicted[:, 0], predicted[:, 1] ** 2, counts, models)


def rebinned(histograms: Sequence[TimeHistogram], bin_count: int) -> Reals:
    """Return least, mean and largest (n, bins, 3) of so many equal parts of each histogram's times.

    Histograms of that many bins keep theirs; of others, the times within a bin are spread as `Bins` has it.
    """
    found = np.empty((len(histograms), bin_count, 3))
    sizes = np.array([len(part.bins) for part in histograms], np.int64)
    for size in np.unique(sizes).tolist():
        members = np.flatnonzero(sizes == size)
        rows = [
            (each.count, each.minimum_s, each.mean_s, each.maximum_s)
            for member in members.tolist()
            for each in histograms[member].bins
        ]
        table = np.array(rows, np.float64).reshape(members.size, size, 4)
        found[members] = table[:, :, 1:] if size == bin_count else _parted(table, bin_count)
    return found


def _parted(table: Reals, bin_count: int) -> Reals:
    """Return least, mean and largest of equal parts of bins (n, b, 4), which follow one another."""
    bins = Bins(*(table[:, None, :, column] for column in range(4)))
    ends = np.cumsum(table[:, :, 0], axis=1)
    starts = ends - table[:, :, 0]
    edges = np.linspace(0.0, 1.0, bin_count + 1) * ends[:, -1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (edges[:, :, None] - starts[:, None]) / table[:, None, :, 0]
    shares = np.clip(np.nan_to_num(shares), 0.0, 1.0)
    means = np.diff(bins.sums(shares).sum(axis=2), axis=1) / np.diff(edges, axis=1)
    times = bins.at(shares)
    # The bin in which an edge lies; at the border of two, the one behind it is what a part begins with.
    slack = 1e-9 * ends[:, -1:]
    last = np.minimum((ends[:, None] < (edges - slack)[:, :, None]).sum(axis=2), ends.shape[1] - 1)
    next_ = np.minimum((ends[:, None] <= (edges + slack)[:, :, None]).sum(axis=2), ends.shape[1] - 1)
    least = np.take_along_axis(times, next_[:, :, None], axis=2)[:, :-1, 0]
    most = np.take_along_axis(times, last[:, :, None], axis=2)[:, 1:, 0]
    return np.stack([np.minimum(least, means), means, np.maximum(most, means)], axis=2)


def _consistent(bins: Reals, means: Reals, counts: Ints) -> Reals:
    """Return bins (n, b, 3) in order, each mean within its bin, and the mean of all of them the one that is given."""
    # Sorted, the numbers of all bins are the least, mean and largest of bins that follow one another.
    ordered = np.sort(bins.reshape(len(bins), -1), axis=1).reshape(bins.shape)
    sizes = even_sizes(counts, np.full(counts.size, bins.shape[1])).reshape(-1, bins.shape[1])
    weights = np.where(counts[:, None] > 0, sizes, 1) / np.maximum(counts, 1)[:, None]
    found = (ordered[:, :, 1] * weights).sum(axis=1)
    ratio = np.divide(means, found, out=np.ones_like(means), where=found > 0)
    stretched = np.where((found > 0)[:, None, None], ordered * ratio[:, None, None], means[:, None, None])
    # One time is its own least and largest.
    return np.where((sizes == 1)[:, :, None], stretched[:, :, 1:2], stretched)


def _models(fits: Fits, rows: slice) -> list[TimeModel]:
    columns = (fits.models, fits.constants, fits.slopes, fits.set_aside, fits.reasons)
    return [
        TimeModel(NAMES[model], constant, slope, NAMES[other] if reason else "", REASONS[reason])
        for model, constant, slope, other, reason in zip(*(column[rows].tolist() for column in columns), strict=True)
    ]


def _assembled(
    bins: Reals, means: Reals, variances: Reals, counts: Ints, models: list[TimeModel]
) -> list[tuple[TimeHistogram, TimeModel]]:
    """Return histograms of bins (n, b, 3), with a variance that times of such a mean and such bins can have."""
    sizes = even_sizes(counts, np.full(counts.size, bins.shape[1])).reshape(-1, bins.shape[1])
    shares = sizes / np.maximum(counts, 1)[:, None]
    # Stretched, bins may miss the mean by a rounding error.
    means = np.clip(means, bins[:, 0, 0], bins[:, -1, 2])
    between = (shares * (bins[:, :, 1] - means[:, None]) ** 2).sum(axis=1)
    widest = (bins[:, -1, 2] - means) * (means - bins[:, 0, 0])
    allowed = np.maximum(between, np.minimum(variances, np.maximum(widest, 0.0)))
    found: list[tuple[TimeHistogram, TimeModel]] = []
    rows = zip(counts.tolist(), sizes.tolist(), bins.tolist(), means.tolist(), allowed.tolist(), models, strict=True)
    for count, held, parts, mean, variance, model in rows:
        made = tuple(TimeBin(size, *part) for size, part in zip(held, parts, strict=True))
        found.append((TimeHistogram(count, parts[0][0], mean, parts[-1][2], variance, made) if count else EMPTY, model))
    return found
