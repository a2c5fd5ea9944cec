"""The study in short: what is told of its rows, by setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from iosig.studies.predictions.planted import HACC_PHASES
from iosig.studies.predictions.running import Results
from iosig.studies.predictions.scenarios import BEFORE, END_COUNTS, SMALL
from iosig.transforms.predictions.change_points import DETECTOR_NAMES
from iosig.transforms.predictions.predictor import OnlineParams

#: evaluations that count as after the third phase
THIRD = 3
#: a change is told in time within so many periods
MOST_LAG = 3
#: a small change is found soon within this many periods
MOST_SMALL_LAG = 10
#: from this phase on there are ten bursts, and so as many gaps as a range of 80 % needs
TENTH = 9
#: a change point is right if it is not further off than this share of the shorter period
RIGHT_POINT = 0.25
#: gaps vary where the range of the next burst is as wide as this share of the period
LEAST_WIDTH = 0.01
#: how far from an interval a period may be and still be about in it
NEAR = 0.05
#: from this phase on ranges of the next burst are counted where rhythms move
FIFTH = 5
#: upper ends of classes of the probability of a hit
HIT_ENDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: upper ends of classes of probability
PROBABILITY_ENDS = (0.25, 0.5, 0.75, 0.9, 1.0)
#: settings that are iosig's own: its defaults
USUAL = f"{OnlineParams().method}, {OnlineParams().strategy}"
#: what the range of a next burst is meant to hold
NOMINAL = 1 - 2 * OnlineParams().burst.tail_ratio


def _of(results: Results, experiment: str) -> pl.DataFrame:
    return results.evaluations.filter(pl.col("experiment") == experiment)


def _error(found: str, truth: str) -> pl.Expr:
    return (pl.col(found) / pl.col(truth) - 1.0).abs()


def hacc_summary(results: Results) -> pl.DataFrame:
    """Return how well runs like HACC-IO are predicted, by method and strategy.

    Columns: method, strategy; period_s, low_period_s, high_period_s: the mean predicted period of a run, its mean and
    range over the runs; told_ratio: the share of evaluations after the third phase with a period; next_error,
    high_next_error: mean error after the third phase against the distance to the next phase, its mean and its highest
    over the runs; later_error, high_later_error: the same against the mean distance of the phases since the first.
    """
    late = pl.col("phase") >= THIRD
    runs = (
        _of(results, "hacc")
        .group_by("method", "strategy", "run", maintain_order=True)
        .agg(
            period_s=pl.col("period_s").mean(),
            told_ratio=pl.col("period_s").is_not_null().filter(late).mean(),
            next_error=_error("period_s", "next_gap_s").filter(late).mean(),
            later_error=_error("period_s", "later_gap_s").filter(late).mean(),
        )
    )
    return runs.group_by("method", "strategy", maintain_order=True).agg(
        pl.col("period_s", "told_ratio", "next_error", "later_error").mean(),
        pl.col("period_s").min().alias("low_period_s"),
        pl.col("period_s").max().alias("high_period_s"),
        pl.col("next_error").max().alias("high_next_error"),
        pl.col("later_error").max().alias("high_later_error"),
    )


def hacc_phases(results: Results) -> pl.DataFrame:
    """Return the predictions of the usual setting, phase by phase, as means over the runs.

    Columns: phase (from 1), now_s, window_start_s, next_gap_s, period_s (mean), low_period_s, high_period_s,
    told_ratio.
    """
    method, strategy = USUAL.split(", ")
    return (
        _of(results, "hacc")
        .filter(pl.col("method") == method, pl.col("strategy") == strategy)
        .group_by(pl.col("phase") + 1, maintain_order=True)
        .agg(
            pl.col("now_s", "window_start_s", "next_gap_s", "period_s").mean(),
            pl.col("period_s").min().alias("low_period_s"),
            pl.col("period_s").max().alias("high_period_s"),
            told_ratio=pl.col("period_s").is_not_null().mean(),
        )
    )


def change_summary(results: Results) -> pl.DataFrame:
    """Return how rules tell of doubled and halved periods, by frequency, jitter, branch and rule.

    Columns: frequency_hz, jitter, branch, rule, run_count; in_time_ratio: the share of runs whose change was told
    within three periods, and lag_1 to lag_3 after how many; later_ratio: after more, as far as was looked; median_lag;
    right_point_ratio: the share of the told ones whose change point is right; false_count: false detections in all
    runs, and false_run_count: runs with any.
    """
    lag = pl.col("lag")
    known = results.changes.filter(pl.col("branch") != SMALL)
    return known.group_by("frequency_hz", "jitter", "branch", "rule", maintain_order=True).agg(
        pl.len().alias("run_count"),
        in_time_ratio=(lag <= MOST_LAG).fill_null(value=False).mean(),
        later_ratio=(lag > MOST_LAG).fill_null(value=False).mean(),
        **{f"lag_{number}": (lag == number).fill_null(value=False).mean() for number in range(1, MOST_LAG + 1)},
        median_lag=lag.median(),
        right_point_ratio=(pl.col("point_error").abs() <= RIGHT_POINT).mean(),
        false_count=pl.col("false_count").sum(),
        false_run_count=(pl.col("false_count") > 0).sum(),
    )


def small_change_summary(results: Results) -> pl.DataFrame:
    """Return how many changes by 20 % each rule finds within ten periods, and within all that are looked at.

    Columns: jitter, rule, found_ratio, all_found_ratio, over all frequencies.
    """
    lag = pl.col("lag")
    return (
        results.changes.filter(pl.col("branch") == SMALL)
        .group_by("jitter", "rule", maintain_order=True)
        .agg(
            found_ratio=(lag <= MOST_SMALL_LAG).fill_null(value=False).mean(), all_found_ratio=lag.is_not_null().mean()
        )
        .sort("jitter", maintain_order=True)
    )


def following_summary(results: Results) -> pl.DataFrame:
    """Return how a change is followed, by strategy, branch and phases since the change (0: the one it begins with).

    Columns: strategy, branch, since; told_ratio: the share of runs with a period; error, low_error, high_error: median
    and quartiles of the period's error, where there is one; near_ratio: the share of all runs within 10 % of the truth.
    """
    error = _error("period_s", "true_period_s")
    return (
        _of(results, "following")
        .with_columns(since=pl.col("phase") - BEFORE, error=error)
        .group_by("strategy", "branch", "since", maintain_order=True)
        .agg(
            told_ratio=pl.col("period_s").is_not_null().mean(),
            low_error=pl.col("error").quantile(0.25, "linear"),
            high_error=pl.col("error").quantile(0.75, "linear"),
            near_ratio=(pl.col("error") <= 0.1).fill_null(value=False).mean(),
            error=pl.col("error").median(),
        )
    )


def burst_summary(results: Results) -> pl.DataFrame:
    """Return what next bursts' foreseen starts are worth, by setting.

    Columns: setting; few_told_ratio, told_ratio: the share of evaluations that foresaw one after 4 to 9, and after 10
    phases or more; few_within_ratio, within_ratio: the share of these bursts that began within their range; error,
    high_error: median and 90 % quantile of how far off the start was, over the period (after 10 or more); bias: the
    median with its sign, late ones positive; width: the median width of the range over the period. exact_ratio: the
    share of runs in which as many phases were found as there are; false_run_ratio: that of runs with a change told.
    """
    is_within = (pl.col("earliest_s") <= pl.col("next_onset_s")) & (pl.col("next_onset_s") <= pl.col("latest_s"))
    off = (pl.col("start_s") - pl.col("next_onset_s")) / pl.col("true_period_s")
    many = pl.col("phase") >= TENTH
    runs = (
        _of(results, "bursts")
        .group_by("setting", "run", maintain_order=True)
        .agg(is_exact=pl.col("phase_count").last() == pl.col("phase").last() + 1, is_changed=pl.col("is_changed").any())
        .group_by("setting", maintain_order=True)
        .agg(exact_ratio=pl.col("is_exact").mean(), false_run_ratio=pl.col("is_changed").mean())
    )
    return (
        _of(results, "bursts")
        .filter(pl.col("next_onset_s").is_not_null(), pl.col("phase") >= THIRD)
        .with_columns(off=off, is_within=is_within, is_told=pl.col("start_s").is_not_null())
        .with_columns(width=(pl.col("latest_s") - pl.col("earliest_s")) / pl.col("true_period_s"))
        .group_by("setting", maintain_order=True)
        .agg(
            few_told_ratio=pl.col("is_told").filter(~many).mean(),
            told_ratio=pl.col("is_told").filter(many).mean(),
            few_within_ratio=pl.col("is_within").filter(~many).mean(),
            within_ratio=pl.col("is_within").filter(many).mean(),
            error=pl.col("off").abs().filter(many).median(),
            high_error=pl.col("off").abs().filter(many).quantile(0.9, "linear"),
            bias=pl.col("off").filter(many).median(),
            width=pl.col("width").filter(many).median(),
        )
        .join(runs, on="setting", maintain_order="left")
    )


def none_summary(results: Results) -> pl.DataFrame:
    """Return how often a period is told where there is none, by what there is and method.

    Columns: branch, method; evaluation_count; periodic_ratio, tentative_ratio: shares of the evaluations; run_ratio:
    the share of runs in which one was ever told; probability, high_probability: the median and highest that went
    with one (0 where it was in no interval); burst_ratio: the share of evaluations that foresaw a next burst.
    """
    told = pl.col("period_s").is_not_null()
    given = pl.col("probability").fill_null(0.0).filter(told)
    return (
        _of(results, "none")
        .with_columns(is_ever=told.any().over("branch", "method", "run"))
        .group_by("branch", "method", maintain_order=True)
        .agg(
            evaluation_count=pl.len(),
            periodic_ratio=(pl.col("outcome") == "periodic").mean(),
            tentative_ratio=(pl.col("outcome") == "tentative").mean(),
            run_ratio=pl.col("is_ever").mean(),
            probability=given.median(),
            high_probability=given.max(),
            burst_ratio=pl.col("start_s").is_not_null().mean(),
        )
        .sort("branch", maintain_order=True, descending=True)
    )


def interval_summary(results: Results) -> pl.DataFrame:
    """Return whether intervals hold the true period, by kind of run and class of their probability.

    Columns: kind (`steady`: the runs of next bursts, `changed`: since a change, window adaptive); above, up_to: the
    class; evaluation_count; hold_ratio: the share whose interval holds the true period; near_ratio: the same with 5 %
    more on either side; width: the median width over the true period.
    """
    is_changed = (pl.col("experiment") == "following") & (pl.col("strategy") == OnlineParams().strategy)
    is_changed &= pl.col("phase") > BEFORE
    true, short, long = pl.col("true_period_s"), pl.col("shortest_period_s"), pl.col("longest_period_s")
    rows = results.evaluations.filter((pl.col("experiment") == "bursts") | is_changed).with_columns(
        kind=pl.when(pl.col("experiment") == "bursts").then(pl.lit("steady")).otherwise(pl.lit("changed"))
    )
    return _by_class(
        rows,
        "probability",
        PROBABILITY_ENDS,
        ["kind"],
        hold_ratio=((short <= true) & (true <= long)).mean(),
        near_ratio=((short * (1 - NEAR) <= true) & (true <= long * (1 + NEAR))).mean(),
        width=((long - short) / true).median(),
    )


def _by_class(
    rows: pl.DataFrame, column: str, ends: Sequence[float], keys: Sequence[str] = (), **values: pl.Expr
) -> pl.DataFrame:
    """Return the number and values of rows by keys and class of a column: from `above` one end up to the next."""
    rows = rows.filter(pl.col(column).is_not_null())
    edges = pl.Series([0.0, *ends])
    place = edges[1:].search_sorted(rows[column], "left")
    return (
        rows.with_columns(edges.gather(place).alias("above"), edges.gather(place + 1).alias("up_to"))
        .group_by(*keys, "above", "up_to")
        .agg(evaluation_count=pl.len(), **values)
        .sort(*keys, "above", descending=[*[True] * len(keys), False])
    )


def range_summary(results: Results) -> pl.DataFrame:
    """Return how many next bursts begin within their ranges, where rhythms keep, change and move.

    Columns: setting; evaluation_count: with a range, after five phases or more, of a changed rhythm since two gaps of
    it; within_ratio; width: the median width over the gap that came.
    """
    is_within = (pl.col("earliest_s") <= pl.col("next_onset_s")) & (pl.col("next_onset_s") <= pl.col("latest_s"))
    is_usual = pl.col("strategy") == OnlineParams().strategy
    is_changed = (pl.col("experiment") == "following") & is_usual & (pl.col("phase") > BEFORE + 1)
    is_moving = (pl.col("experiment") == "moving") & (pl.col("phase") >= FIFTH)
    is_steady = (pl.col("experiment") == "bursts") & (pl.col("phase") >= FIFTH)
    named = pl.when(pl.col("experiment") == "following").then("branch").otherwise("setting")
    return (
        results.evaluations.filter(is_steady | is_changed | is_moving, pl.col("next_onset_s").is_not_null())
        .filter(pl.col("earliest_s").is_not_null())
        .with_columns(kind="experiment", setting=named, is_within=is_within)
        .with_columns(width=(pl.col("latest_s") - pl.col("earliest_s")) / pl.col("next_gap_s"))
        .group_by("kind", "setting", maintain_order=True)
        .agg(
            evaluation_count=pl.len(),
            within_ratio=pl.col("is_within").mean(),
            width=pl.col("width").median(),
        )
        .sort("kind", maintain_order=True)
    )


def hit_summary(results: Results) -> pl.DataFrame:
    """Return whether what `hit_probability` tells is how often intervals hold the next gap, and `probability` beside.

    Of all evaluations with an interval of steady, changed and moving runs and of those whose rhythm ends (defaults
    only). Columns: above, up_to: the class of hit_probability; evaluation_count; told: its mean; hold_ratio: the share
    whose interval holds the next gap; probability: the mean of that column.
    """
    is_usual = (pl.col("strategy") == OnlineParams().strategy) & (pl.col("method") == OnlineParams().method)
    gap, short, long = pl.col("next_gap_s"), pl.col("shortest_period_s"), pl.col("longest_period_s")
    is_rhythm = pl.col("experiment").is_in(["bursts", "following", "moving", "ends"])
    return _by_class(
        results.evaluations.filter(is_rhythm, is_usual, gap.is_not_null()),
        "hit_probability",
        HIT_ENDS,
        told=pl.col("hit_probability").mean(),
        hold_ratio=((short <= gap) & (gap <= long)).mean(),
        probability=pl.col("probability").mean(),
    )


def end_summary(results: Results) -> pl.DataFrame:
    """Return how many evaluations still tell a period after a rhythm has ended, of those since.

    Columns: setting; evaluation_count: since the end, of each run; periodic, told: how many of them are periodic in
    the mean of the runs, and those with any period, tentative ones too; high_periodic: the 90 % quantile of runs.
    """
    told = pl.col("period_s").is_not_null()
    return (
        _of(results, "ends")
        # the first gap that is random shows with the phase that ends it
        .filter(pl.col("phase") > END_COUNTS[0])
        .group_by("setting", "run", maintain_order=True)
        .agg(evaluation_count=pl.len(), periodic=(pl.col("outcome") == "periodic").sum(), told=told.sum())
        .group_by("setting", maintain_order=True)
        .agg(
            pl.col("evaluation_count").first(),
            pl.col("periodic", "told").mean(),
            high_periodic=pl.col("periodic").quantile(0.9, "linear"),
        )
    )


# ---- what was aimed at


@dataclass(frozen=True, slots=True)
class Target:
    """Something that was aimed at: in words, as a bound, what was found, and whether it is met."""

    of: str
    wanted: str
    found: str
    is_met: bool


def targets(results: Results) -> Iterator[Target]:
    """Yield what predictions are to reach, and what they do with the defaults."""
    row = hacc_summary(results).filter((pl.col("method") + ", " + pl.col("strategy")) == USUAL).row(0, named=True)
    for column, words in (("next_error", "the distance to the next phase"), ("later_error", "the mean distance")):
        yield Target(
            f"HACC-IO's {HACC_PHASES} phases: mean error after the third, against {words}",
            "below 5 %",
            f"{100 * row[column]:.1f} %, {100 * row['high_' + column]:.1f} % in the worst run",
            row[column] < 0.05,
        )
    changes = change_summary(results).filter(pl.col("rule") == DETECTOR_NAMES[0])
    for jitter in changes["jitter"].unique().sort().to_list():
        of = changes.filter(pl.col("jitter") == jitter)
        told = of.filter(pl.col("branch") != "unchanged")["in_time_ratio"].to_list()
        still = of.filter(pl.col("branch") == "unchanged")
        false = [100 * row["false_count"] / row["run_count"] for row in still.iter_rows(named=True)]
        words = f"jitter {100 * jitter:.0f} %, {DETECTOR_NAMES[0]}"
        yield Target(
            f"Doubled and halved periods detected within {MOST_LAG} periods, {words}",
            "at least 95 % of the runs at each frequency",
            f"{100 * min(told):.0f} % to {100 * max(told):.0f} %",
            min(told) >= 0.95,
        )
        yield Target(
            f"False detections in unchanged runs of 40 phases, {words}",
            "at most 5 in 100 runs at each frequency",
            f"{min(false):g} to {max(false):g}",
            max(false) <= 5,
        )
    bursts = burst_summary(results)
    within = bursts.filter(pl.col("width") >= LEAST_WIDTH)["within_ratio"].to_list()
    yield Target(
        f"Next bursts that begin within the predicted range, after {TENTH + 1} phases or more, where gaps vary",
        f"{100 * NOMINAL:.0f} %, up to 5 points",
        f"{100 * min(within):.0f} % to {100 * max(within):.0f} %",
        max(abs(ratio - NOMINAL) for ratio in within) <= 0.05,
    )
    ends = end_summary(results)
    still_periodic = ends["periodic"].to_list()
    yield Target(
        f"Evaluations still periodic, of the {ends['evaluation_count'].to_list()[0]} after the end of a rhythm",
        "at most 2",
        f"{min(still_periodic):.1f} to {max(still_periodic):.1f}",
        max(still_periodic) <= 2,
    )
