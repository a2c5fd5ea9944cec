"""Trust: what an honest judge would expect a signature's correlation with the truth to be.

The truth is in no sample; but what runs have in common can be asked of each other. Of each run the others predict a
low quantile: foreign traffic only adds, so a run that lacks bytes that they predict speaks against them, and one that
has more does not. How well runs are predicted, how alike both halves of them are, and how a method's signature lies to
all that (what of it runs have, what recurs in them and it lacks, how wide its bursts are beside what the durations
leave unsure) makes a row of evidence; a straight line through such rows and the true correlations on the families of
simulated sites makes a trust of it (`iosig.studies.signatures.judging`). Runs are left out of one sorted table, so
that all of them together cost less than one signature.

The answer that is taken is that with the highest trust, where `warped` is given a little more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from iosig.transforms.arrays import SIGMAS_PER_MAD, Bools, Ints, Reals, clipped
from iosig.transforms.signatures.averages import middle_of, of_ordered, quantile_of, row_medians, without_gaps
from iosig.transforms.signatures.bursts import heights, stretches
from iosig.transforms.signatures.robust_alignment import read_totals, running_totals
from iosig.transforms.signatures.sample_sets import SampleSet
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.signatures.stretched import (
    FIRST_LEVEL,
    LEAST_RUN_COUNT,
    RATE_LEVELS,
    floored,
    floors,
    foreign_ratios,
    highest_exponent,
    measured,
    on_steps,
)

#: runs and signatures are judged on so many steps of their duration
STEPS = 512
#: of more runs the cleanest tell
_MOST_RUNS = 20
#: what is this near in time is still the same burst, of the duration
_NEAR_STEPS = 4
#: a run has no background: this quantile of its own rates is left out
_FLOOR_LEVEL = 0.1
#: what recurs is what so many runs have
_RECURRING_LEVEL = 0.3
#: an eye sees a burst that all runs but this share have, half as high as the signature's own; one is told where the
#: signature has a fraction of its height
_SEEN_LEVEL, _SEEN_RATIO, _TOLD_RATIO = 0.2, 0.5, 0.1
#: and where no more than so many such places of a run are to be expected by chance
_BY_CHANCE = 1.0
#: rates above so many times a signature's height are others'
_MOST_HEIGHTS = 1.2
#: with these outcomes a signature can lack what runs have; with others it is for want of runs or bytes
LACKING = ("extracted", "no_common_bursts")

#: rates of so many sets as are judged side by side
_BLOCK_VALUES = 1 << 16

EVIDENCE = (
    "agreement", "near_agreement", "coverage", "likeness", "unexplained", "explained", "longer", "clock", "width",
    "left_out_coverage", "left_out_likeness", "halves", "foreign", "ours", "robust", "robust_foreign", "robust_longer",
    "robust_agreement",
)  # fmt: skip
#: what each piece of evidence adds to the expected correlation: a straight line through the families of sites, and our
#: own simulated one, at other seeds than the study's; and through the truth itself among noise that hides it, of which
#: no more than .75 is to be told
_WEIGHTS: dict[str, float] = {
    "one": -0.3181,
    "agreement": 0.6704,
    "near_agreement": 0.0523,
    "coverage": 0.0000,
    "likeness": 0.0000,
    "unexplained": -0.0123,
    "explained": 0.0096,
    "longer": 6.5895,
    "clock": -0.2113,
    "width": -0.0079,
    "left_out_coverage": 0.3707,
    "left_out_likeness": 0.1978,
    "halves": 0.0000,
    "foreign": 0.0000,
    "ours": 0.0731,
    "robust": 0.3478,
    "robust_foreign": -0.0106,
    "robust_longer": -3.4360,
    "robust_agreement": -0.3129,
}
#: what adds nothing is not asked for
_WEIGHED = tuple(name for name in EVIDENCE if _WEIGHTS[name])
#: bursts of these are borne out by runs (`borne_out`), which counts for more than the rest of the evidence tells
_BORNE_OUT = ("warped", "stretched")
#: between these the answer is chosen by trust, and the first one is given a little more; others where both have none
CONTENDERS = ("warped", "robust")
_GIVEN_MORE = 0.03
#: Runs that are less like what the others of them predict have nothing in common: in the mean over runs, noise alone
#: has .04, and hardly ever more than this. What is trusted less than the second is no signature either. On the study's
#: families that refuses 70 of 1,500 sets, in none of which the 35 % quantile has .7.
_LEAST_LIKENESS, LEAST_TRUST = 0.08, 0.3


@dataclass(frozen=True, slots=True)
class Judge:
    """What runs say of any signature.

    rates (runs, STEPS): on one clock, less each run's floor, in units of 2 ** exponent. near (runs, STEPS): the highest
    rates around, in order of size at each step. common (STEPS): what they have in common. duration_s: the median.
    unsure_ratio: how exactly so many durations tell it. level: the quantile across runs that they have in common. told:
    what is said of the set, whatever the signature.
    """

    rates: Reals
    near: Reals
    common: Reals
    exponent: int
    duration_s: float
    unsure_ratio: float
    level: float
    told: Mapping[str, float]

    @classmethod
    def of(cls, one: SampleSet) -> Judge | None:
        """Return what the runs of a set say; None where too few are measured."""
        return next((judge for _, judge in judges_of([one])), None)

    def evidence(self, signature: Signature, method: str, names: Sequence[str] = EVIDENCE) -> Reals:
        """Return what speaks for and against a signature: a number for each of these names of `EVIDENCE`."""
        found: Reals = evidence_of([self], [signature], method, names)[0]
        return found

    def halves(self) -> float:
        """Return how alike both halves of the runs are."""
        from scipy.ndimage import uniform_filter1d

        halves = [floored(of_ordered(np.sort(self.rates[begin::2], axis=0), self.level))[0] for begin in (0, 1)]
        return float(alike(*(uniform_filter1d(half, _NEAR_STEPS + 1) for half in halves)))

    def covered(self, curve: Reals) -> float:
        """Return how much of a curve (STEPS) runs have, in their mean."""
        return float((np.minimum(self.rates, curve).sum(axis=1) / max(float(curve.sum()), 1e-300)).mean())

    def likeness(self, curve: Reals, highest: float) -> float:
        """Return how alike a curve (STEPS) of that height is to each run, in the mean."""
        return float(alike(np.minimum(self.rates, _MOST_HEIGHTS * highest), curve[None]).mean())

    def trust(self, signature: Signature, method: str) -> float:
        """Return the correlation with the truth that is to be expected, 0 to 1; NaN where there is no signature."""
        return float(trusts_of([self], [signature], method)[0])

    def missed(self, signature: Signature) -> Reals:
        """Return where in a run most runs have a burst that a signature lacks: begin and end, of the duration (n, 2).

        Most: all but a few (`_SEEN_LEVEL`) have it near there, above what they have near everywhere, and at least half
        as high as the signature's bursts are, or as what recurs if there is no signature; and so many runs would hardly
        have one there by chance, as often as they are that high elsewhere.
        """
        return missed_by([self], [signature])[0]

    def lacked_burst_count(self, signature: Signature) -> float:
        """Return how many bursts a signature lacks that most runs have; NaN where that cannot be asked."""
        return float(lacked_burst_counts([self], [signature])[0])

    def on_steps(self, signature: Signature) -> Reals:
        """Return a signature's mean rates on the judge's steps, in its unit."""
        seconds = np.ldexp(signature.bytes_per_s, -self.exponent)
        total = running_totals(seconds[None])
        at = np.arange(STEPS + 1, dtype=np.float64)[None] * (len(seconds) / STEPS)
        rates = np.diff(read_totals(total, at)[0]) * (STEPS / len(seconds))
        # squares of what is absurdly far from all that was measured stay in range
        return clipped(rates, 0.0, 1e100)


def judges_of(sets: Iterable[SampleSet]) -> Iterator[tuple[int, Judge]]:
    """Yield what the runs of each set say, with its place, in any order; nothing of sets of too few that are measured.

    Sets of as many runs go side by side, no more of them than stay in the processor's cache: of one alone, half of the
    time would go to the calls.
    """
    usable = [measured(one) for one in sets]
    counts = np.array([min(one.run_count, _MOST_RUNS) for one in usable], dtype=np.int64)
    for count in np.unique(counts[counts >= LEAST_RUN_COUNT]).tolist():
        places = np.flatnonzero(counts == count).tolist()
        step = max(1, _BLOCK_VALUES // (count * STEPS))
        for first in range(0, len(places), step):
            block = places[first : first + step]
            yield from zip(block, _judges([usable[place] for place in block]), strict=True)


def _judges(sets: Sequence[SampleSet]) -> list[Judge]:
    """Return what the runs of sets say, of which all have as many that count."""
    exponents = [highest_exponent(one) for one in sets]
    cleanest = np.stack([_cleanest(one, exponent) for one, exponent in zip(sets, exponents, strict=True)])
    floor = int(_FLOOR_LEVEL * (STEPS - 1))
    above = cleanest - np.partition(cleanest, floor)[..., [floor]]
    np.maximum(above, 0.0, out=above)
    ordered = np.sort(above, axis=1)
    ratios = foreign_ratios(above, _less_floor(of_ordered(ordered, FIRST_LEVEL)), np.zeros(above.shape[:2]))
    levels = np.interp(ratios, *RATE_LEVELS).tolist()
    common = _less_floor(np.stack([of_ordered(own, level) for own, level in zip(ordered, levels, strict=True)]))
    near = np.sort(highest_around(above, _NEAR_STEPS), axis=1)
    left_out = zip(*(values.tolist() for values in _left_out(above, ordered, np.array(levels))), ratios, strict=True)
    told = [dict(zip(("left_out_coverage", "left_out_likeness", "foreign"), own, strict=True)) for own in left_out]
    middle_s, unsure_ratio = zip(*(_clock(one.duration_s, above.shape[1]) for one in sets), strict=True)
    columns = zip(above, near, common, exponents, middle_s, unsure_ratio, levels, told, strict=True)
    return [Judge(*column) for column in columns]


def _cleanest(one: SampleSet, exponent: int) -> Reals:
    """Return the rates of those runs that tell (runs, STEPS), those that move least first."""
    every = without_gaps(on_steps(one, STEPS, exponent))
    return every[np.argsort(every.sum(axis=1), kind="stable")[:_MOST_RUNS]]


def _clock(duration_s: Reals, run_count: int) -> tuple[float, float]:
    """Return the median of durations, and how exactly so many runs tell it, as a share of it."""
    middle_s = middle_of(duration_s)
    off = SIGMAS_PER_MAD * middle_of(np.abs(duration_s - middle_s)) / middle_s
    return middle_s, off / np.sqrt(run_count)


def _less_floor(curves: Reals) -> Reals:
    """Return curves (curves, STEPS) less the floor of each."""
    found: Reals = np.maximum(curves - floors(curves)[:, None], 0.0)
    return found


def trusts_of(judges: Sequence[Judge], signatures: Sequence[Signature], method: str) -> Reals:
    """Return the correlation with the truth that is to be expected of each signature (n), as `Judge.trust` does."""
    likeness = np.array([judge.told["left_out_likeness"] for judge in judges])
    is_found = np.array([one.outcome == "extracted" for one in signatures])
    found = np.where(is_found, 0.0, np.nan)
    asked = (is_found & (likeness >= _LEAST_LIKENESS)).nonzero()[0].tolist()
    if not asked:
        return found
    evidence = evidence_of([judges[i] for i in asked], [signatures[i] for i in asked], method, _WEIGHED)
    weighted = (_WEIGHTS[name] * values for name, values in zip(_WEIGHED, evidence.T, strict=True))
    found[asked] = clipped(_WEIGHTS["one"] + sum(weighted), 0.0, 1.0)
    return found


def evidence_of(
    judges: Sequence[Judge], signatures: Sequence[Signature], method: str, names: Sequence[str] = EVIDENCE
) -> Reals:
    """Return what speaks for and against signatures, as `Judge.evidence` does of one (n, names)."""
    from scipy.ndimage import uniform_filter1d

    curves = np.stack([judge.on_steps(one) for judge, one in zip(judges, signatures, strict=True)])
    wide = 6 * _NEAR_STEPS + 1
    common = np.stack([judge.common for judge in judges])
    total = np.maximum(curves.sum(axis=1), 1e-300)
    highest = np.maximum([quantile_of(curve, 0.99) for curve in curves], 0.5 * curves.max(axis=1))
    highest = np.maximum(highest, 1e-300)
    recurring = _less_floor(np.stack([judge.near[int(_RECURRING_LEVEL * len(judge.near))] for judge in judges]))
    lacks = np.maximum(recurring - highest_around(curves, 2 * _NEAR_STEPS), 0.0).sum(axis=1)
    width = (curves > 0.25 * highest[:, None]).mean(axis=1) / [max(1, len(one.bursts)) for one in signatures]
    moved = np.maximum([quantile_of(judge.rates.sum(axis=1), 0.2) for judge in judges], 1e-300)
    ratio = [len(one.bytes_per_s) / judge.duration_s for judge, one in zip(judges, signatures, strict=True)]
    longer = clipped(np.array(ratio) - 1.0, -0.1, 0.1)
    agreement, is_robust = alike(curves, common), float(method == "robust")
    told = {name: np.array([judge.told[name] for judge in judges]) for name in judges[0].told}
    found: dict[str, Callable[[], Reals | Sequence[float] | float]] = {
        **{name: partial(np.asarray, values) for name, values in told.items()},
        "halves": lambda: [judge.halves() for judge in judges],
        "agreement": lambda: agreement,
        "near_agreement": lambda: alike(uniform_filter1d(curves, wide), uniform_filter1d(common, wide)),
        "coverage": lambda: [judge.covered(curve) for judge, curve in zip(judges, curves, strict=True)],
        "likeness": lambda: [judge.likeness(*own) for judge, *own in zip(judges, curves, highest, strict=True)],
        "unexplained": lambda: lacks / np.maximum(recurring.sum(axis=1), 1e-300),
        "explained": lambda: clipped(np.log(total / moved + 0.01), -5.0, 5.0),
        "longer": lambda: longer,
        "clock": lambda: np.minimum([judge.unsure_ratio for judge in judges] / np.maximum(width, 1e-3), 3.0),
        "width": lambda: np.log(width + 1e-4),
        "ours": lambda: float(method in _BORNE_OUT),
        "robust": lambda: is_robust,
        "robust_foreign": lambda: is_robust * told["foreign"],
        "robust_longer": lambda: is_robust * longer,
        "robust_agreement": lambda: is_robust * agreement,
    }
    evidence = np.empty((len(judges), len(names)))
    for column, name in enumerate(names):
        evidence[:, column] = found[name]()
    return evidence


def lacked_burst_counts(judges: Sequence[Judge], signatures: Sequence[Signature]) -> Reals:
    """Return how many bursts each signature (n) lacks that most runs have; NaN where that cannot be asked."""
    found = np.full(len(judges), np.nan)
    asked = [place for place, one in enumerate(signatures) if one.outcome in LACKING]
    if asked:
        found[asked] = [len(one) for one in missed_by([judges[i] for i in asked], [signatures[i] for i in asked])]
    return found


def missed_by(judges: Sequence[Judge], signatures: Sequence[Signature]) -> list[Reals]:
    """Return where in a run most runs have a burst that each signature lacks, as `Judge.missed` does."""
    is_found = np.array([one.outcome == "extracted" for one in signatures])
    curves = np.zeros((len(judges), STEPS))
    for place in is_found.nonzero()[0].tolist():
        curves[place] = judges[place].on_steps(signatures[place])
    seen = np.stack([of_ordered(judge.near, _SEEN_LEVEL) for judge in judges])
    floor = floors(seen)[:, None]
    seen = np.maximum(seen - floor, 0.0)
    highest = heights(np.where(is_found[:, None], curves, seen))[:, None]
    is_told = highest_around(curves, 2 * _NEAR_STEPS) > _TOLD_RATIO * highest
    is_seen, least = (seen > _SEEN_RATIO * highest) & ~is_told, floor + _SEEN_RATIO * highest
    for judge, own, own_least, own_told in zip(judges, is_seen, least, is_told, strict=True):
        own &= _hardly_by_chance(judge.near > own_least, ~own & ~own_told)
    return [_whole(own) / STEPS for own in is_seen & (highest > 0)]


def _whole(is_seen: Bools) -> Ints:
    """Return where stretches of steps (steps) begin and are over (n, 2), as wide as what is near something at least.

    What is near is as wide as it is far; less of it was only beside what is told.
    """
    first, after = stretches(is_seen)
    is_whole = after - first > _NEAR_STEPS
    return np.stack([first[is_whole], after[is_whole]], axis=1)


def chosen(trusts: Mapping[str, float]) -> str:
    """Return the method whose answer is to be taken, by what each one's is trusted (NaN: it has none).

    Where none has a signature that is to be trusted, the first contender that was asked, or the first of all.
    """
    known = {method: trust for method, trust in trusts.items() if trust >= LEAST_TRUST}
    contenders = [method for method in CONTENDERS if method in known]
    if contenders:
        return max(contenders, key=lambda method: known[method] + _GIVEN_MORE * (method == CONTENDERS[0]))
    if known:
        return max(known, key=lambda method: known[method])
    return next((method for method in CONTENDERS if method in trusts), next(iter(trusts)))


def missed(one: SampleSet, signature: Signature) -> Reals:
    """Return where in a run most runs of a set have a burst that a signature lacks; see `Judge.missed`."""
    judge = Judge.of(one)
    return np.zeros((0, 2)) if judge is None else judge.missed(signature)


def _hardly_by_chance(is_high: Bools, is_elsewhere: Bools) -> Bools:
    """Return at which steps (steps) so many runs are high as hardly ever would be, each as often as elsewhere.

    is_high (runs, steps). The tail of a binomial distribution, times how often there is room for such a step.
    """
    from scipy.special import bdtrc

    room = len(is_high) * np.count_nonzero(is_elsewhere)
    usual = np.count_nonzero(is_high & is_elsewhere) / room if room else 0.0
    # of each number of runs once
    tail = bdtrc(np.arange(len(is_high) + 1) - 1.0, len(is_high), usual)
    found: Bools = (tail * (STEPS / (2 * _NEAR_STEPS + 1)) < _BY_CHANCE)[np.count_nonzero(is_high, axis=0)]
    return found


def _left_out(rates: Reals, ordered: Reals, levels: Reals) -> tuple[Reals, Reals]:
    """Return how much of what the others of each run predict it has, and how alike it is, in the mean of all runs.

    rates, and in order of size (sets, runs, STEPS). levels (sets). One sorted table serves all runs of a set: without a
    run, what comes after its place moves up by one.
    """
    every, run_count = np.arange(len(rates)), rates.shape[1]
    place = levels * (run_count - 2)
    below = place.astype(np.int64)
    share = (place - below)[:, None, None]
    low, next_, last = (ordered[every, np.minimum(below + step, run_count - 1)][:, None] for step in range(3))
    predicted, above = np.where(rates <= low, next_, low), np.where(rates <= next_, last, next_)
    # in place: with an array for each step they leave the processor's cache
    predicted *= 1.0 - share
    above *= share
    predicted += above
    predicted -= row_medians(predicted)
    np.maximum(predicted, 0.0, out=predicted)
    total = predicted.sum(axis=-1)
    shared = np.minimum(rates, predicted, out=above).sum(axis=-1)
    has = np.divide(shared, total, out=np.zeros(total.shape), where=total > 0)
    highest = predicted.max(axis=-1, keepdims=True)
    likeness = alike(np.minimum(rates, _MOST_HEIGHTS * highest, out=above), predicted)
    return has.mean(axis=-1), likeness.mean(axis=-1)


def highest_around(values: Reals, reach: int) -> Reals:
    """Return the highest of the values (..., steps), 0 or more, up to so many steps before and after each step.

    As `scipy.ndimage.maximum_filter1d` does, which takes several times as long.
    """
    width = 2 * reach + 1
    found = np.zeros((*values.shape[:-1], values.shape[-1] + 2 * reach))
    found[..., reach : reach + values.shape[-1]] = values
    # of windows that are twice as wide each time, and at last of two that overlap
    size = 1
    while size < width:
        step = min(size, width - size)
        found = np.maximum(found[..., :-step], found[..., step:])
        size += step
    return found


def alike(first: Reals, second: Reals) -> Reals:
    """Return Pearson's correlation of curves, the last axis being time; 0 where one is constant."""
    one, other = _about_mean(first), _about_mean(second)
    both = (one * other).sum(axis=-1)
    one *= one
    other *= other
    size = np.sqrt(one.sum(axis=-1) * other.sum(axis=-1))
    found: Reals = np.divide(both, size, out=np.zeros(size.shape), where=size > 0)
    return found


def _about_mean(curves: Reals) -> Reals:
    # a mean by `numpy.mean` takes as long again for few numbers
    found: Reals = curves - np.add.reduce(curves, axis=-1, keepdims=True) / curves.shape[-1]
    return found
