"""Score the predictions by setting, and evaluate the targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from iosig.studies.predictions.planted import HACC_PHASES
from iosig.studies.predictions.running import Results
from iosig.studies.predictions.scenarios import BEFORE, END_COUNTS, SMALL
from iosig.transforms.predictions.change_points import DETECTOR_NAMES
from iosig.transforms.predictions.predictor import OnlineParams

#: index of the first phase after the third
THIRD = 3
#: maximum lag of a timely detection [periods]
MAX_LAG = 3
#: maximum lag of an early detection of a small change [periods]
MAX_SMALL_LAG = 10
#: index of the phase from which on ten bursts are known, with enough gaps for a range of 80 %
TENTH = 9
#: maximum error of a right change point, relative to the shorter period
RIGHT_POINT = 0.25
#: minimum width of the next burst's range for gaps that count as varying, relative to the period
MIN_WIDTH = 0.01
#: relative tolerance of an interval for `near_ratio`
NEAR = 0.05
#: index of the phase from which on the ranges of next bursts are evaluated for moving rhythms
FIFTH = 5
#: upper ends of classes of the probability of a hit
HIT_ENDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: upper ends of classes of probability
PROBABILITY_ENDS = (0.25, 0.5, 0.75, 0.9, 1.0)
#: name of the setting with iosig's defaults
USUAL = f"{OnlineParams().method}, {OnlineParams().strategy}"
#: nominal coverage of the range of the next burst
NOMINAL = 1 - 2 * OnlineParams().burst.tail_ratio


def _select_experiment(results: Results, experiment: str) -> pl.DataFrame:
    return results.evaluations.filter(pl.col("experiment") == experiment)


def _relative_error(estimate: str, truth: str) -> pl.Expr:
    return (pl.col(estimate) / pl.col(truth) - 1.0).abs()


def hacc_summary(results: Results) -> pl.DataFrame:
    """Score the predictions of HACC-like runs by method and strategy.

    The mean predicted period of each run is summarized over runs. Errors are means over a run's evaluations after the
    third phase, relative to the next gap (next_error) or to the mean gap since the first phase (later_error).

    Columns: method, strategy; period_s, low_period_s, high_period_s: mean and range over runs; told_ratio: fraction of
    the evaluations after the third phase that gave a period; next_error, high_next_error, later_error,
    high_later_error: mean and maximum over runs.
    """
    late = pl.col("phase") >= THIRD
    runs = (
        _select_experiment(results, "hacc")
        .group_by("method", "strategy", "run", maintain_order=True)
        .agg(
            period_s=pl.col("period_s").mean(),
            told_ratio=pl.col("period_s").is_not_null().filter(late).mean(),
            next_error=_relative_error("period_s", "next_gap_s").filter(late).mean(),
            later_error=_relative_error("period_s", "later_gap_s").filter(late).mean(),
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
    """Average the predictions of the default setting by phase.

    Columns: phase (from 1), now_s, window_start_s, next_gap_s, period_s (mean), low_period_s, high_period_s,
    told_ratio.
    """
    method, strategy = USUAL.split(", ")
    return (
        _select_experiment(results, "hacc")
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
    """Score the detection of doubled and halved periods by frequency, jitter, branch and rule.

    Columns: frequency_hz, jitter, branch, rule, run_count; in_time_ratio: fraction of changes detected within three
    periods, lag_1 to lag_3 by lag; later_ratio: detected later; median_lag; right_point_ratio: fraction of detections
    with the right change point; false_count: false detections, and false_run_count: runs with any.
    """
    lag = pl.col("lag")
    changes = results.changes.filter(pl.col("branch") != SMALL)
    return changes.group_by("frequency_hz", "jitter", "branch", "rule", maintain_order=True).agg(
        pl.len().alias("run_count"),
        in_time_ratio=(lag <= MAX_LAG).fill_null(value=False).mean(),
        later_ratio=(lag > MAX_LAG).fill_null(value=False).mean(),
        **{f"lag_{number}": (lag == number).fill_null(value=False).mean() for number in range(1, MAX_LAG + 1)},
        median_lag=lag.median(),
        right_point_ratio=(pl.col("point_error").abs() <= RIGHT_POINT).mean(),
        false_count=pl.col("false_count").sum(),
        false_run_count=(pl.col("false_count") > 0).sum(),
    )


def small_change_summary(results: Results) -> pl.DataFrame:
    """Compute the fraction of changes by 20 % that each rule detects within ten periods, and at all.

    Columns: jitter, rule, found_ratio, all_found_ratio, over all frequencies.
    """
    lag = pl.col("lag")
    return (
        results.changes.filter(pl.col("branch") == SMALL)
        .group_by("jitter", "rule", maintain_order=True)
        .agg(found_ratio=(lag <= MAX_SMALL_LAG).fill_null(value=False).mean(), all_found_ratio=lag.is_not_null().mean())
        .sort("jitter", maintain_order=True)
    )


def following_summary(results: Results) -> pl.DataFrame:
    """Score how predictions follow a change, by strategy, branch and phases since the change (0: at the change).

    Columns: strategy, branch, since; told_ratio: fraction of runs with a period; error, low_error, high_error: median
    and quartiles of the relative error; near_ratio: fraction of all runs within 10 % of the truth.
    """
    error = _relative_error("period_s", "true_period_s")
    return (
        _select_experiment(results, "following")
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
    """Score the predicted starts of next bursts by setting.

    Columns: setting; few_told_ratio, told_ratio: fraction of evaluations with a prediction after 4 to 9, and after 10
    or more phases; few_within_ratio, within_ratio: fraction of these within their range; error, high_error: median and
    90 % quantile of the error relative to the period (10 or more phases); bias: signed median, positive if late; width:
    median relative width. exact_ratio: fraction of runs with the right number of phases; false_run_ratio: fraction of
    runs with a detected change.
    """
    is_within = (pl.col("earliest_s") <= pl.col("next_onset_s")) & (pl.col("next_onset_s") <= pl.col("latest_s"))
    error = (pl.col("start_s") - pl.col("next_onset_s")) / pl.col("true_period_s")
    has_many_phases = pl.col("phase") >= TENTH
    runs = (
        _select_experiment(results, "bursts")
        .group_by("setting", "run", maintain_order=True)
        .agg(is_exact=pl.col("phase_count").last() == pl.col("phase").last() + 1, is_changed=pl.col("is_changed").any())
        .group_by("setting", maintain_order=True)
        .agg(exact_ratio=pl.col("is_exact").mean(), false_run_ratio=pl.col("is_changed").mean())
    )
    return (
        _select_experiment(results, "bursts")
        .filter(pl.col("next_onset_s").is_not_null(), pl.col("phase") >= THIRD)
        .with_columns(off=error, is_within=is_within, is_told=pl.col("start_s").is_not_null())
        .with_columns(width=(pl.col("latest_s") - pl.col("earliest_s")) / pl.col("true_period_s"))
        .group_by("setting", maintain_order=True)
        .agg(
            few_told_ratio=pl.col("is_told").filter(~has_many_phases).mean(),
            told_ratio=pl.col("is_told").filter(has_many_phases).mean(),
            few_within_ratio=pl.col("is_within").filter(~has_many_phases).mean(),
            within_ratio=pl.col("is_within").filter(has_many_phases).mean(),
            error=pl.col("off").abs().filter(has_many_phases).median(),
            high_error=pl.col("off").abs().filter(has_many_phases).quantile(0.9, "linear"),
            bias=pl.col("off").filter(has_many_phases).median(),
            width=pl.col("width").filter(has_many_phases).median(),
        )
        .join(runs, on="setting", maintain_order="left")
    )


def none_summary(results: Results) -> pl.DataFrame:
    """Score predictions of runs without a period, by branch and method.

    Columns: branch, method; evaluation_count; periodic_ratio, tentative_ratio: fractions of evaluations; run_ratio:
    share of runs with any reported period; probability, high_probability: its median and maximum (0 outside intervals);
    burst_ratio: fraction of evaluations with a predicted burst.
    """
    has_period = pl.col("period_s").is_not_null()
    probability = pl.col("probability").fill_null(0.0).filter(has_period)
    return (
        _select_experiment(results, "none")
        .with_columns(is_ever=has_period.any().over("branch", "method", "run"))
        .group_by("branch", "method", maintain_order=True)
        .agg(
            evaluation_count=pl.len(),
            periodic_ratio=(pl.col("outcome") == "periodic").mean(),
            tentative_ratio=(pl.col("outcome") == "tentative").mean(),
            run_ratio=pl.col("is_ever").mean(),
            probability=probability.median(),
            high_probability=probability.max(),
            burst_ratio=pl.col("start_s").is_not_null().mean(),
        )
        .sort("branch", maintain_order=True, descending=True)
    )


def interval_summary(results: Results) -> pl.DataFrame:
    """Compute the fraction of intervals that hold the true period, by kind of run and class of probability.

    Columns: kind (`steady`: the runs of next bursts, `changed`: after a change, adaptive window); above, up_to: the
    class; evaluation_count; hold_ratio: fraction of intervals that hold the true period; near_ratio: the same with 5 %
    tolerance; width: median relative width.
    """
    is_changed = (pl.col("experiment") == "following") & (pl.col("strategy") == OnlineParams().strategy)
    is_changed &= pl.col("phase") > BEFORE
    true_period, shortest, longest = pl.col("true_period_s"), pl.col("shortest_period_s"), pl.col("longest_period_s")
    rows = results.evaluations.filter((pl.col("experiment") == "bursts") | is_changed).with_columns(
        kind=pl.when(pl.col("experiment") == "bursts").then(pl.lit("steady")).otherwise(pl.lit("changed"))
    )
    return _by_class(
        rows,
        "probability",
        PROBABILITY_ENDS,
        ["kind"],
        hold_ratio=((shortest <= true_period) & (true_period <= longest)).mean(),
        near_ratio=((shortest * (1 - NEAR) <= true_period) & (true_period <= longest * (1 + NEAR))).mean(),
        width=((longest - shortest) / true_period).median(),
    )


def _by_class(
    rows: pl.DataFrame, column: str, ends: Sequence[float], keys: Sequence[str] = (), **values: pl.Expr
) -> pl.DataFrame:
    """Aggregate rows by keys and class of a column; a class is (`above`, `up_to`]."""
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
    """Compute the coverage of next-burst ranges for steady, changed and moving rhythms.

    Columns: setting; evaluation_count: with a range, after five or more phases, and two or more gaps of a changed
    rhythm; within_ratio; width: median width relative to the actual gap.
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
    """Check the calibration of `hit_probability` against the fraction of intervals that hold the next gap.

    Evaluations with an interval of all rhythmic runs, with default parameters. Columns: above, up_to: the class of
    hit_probability; evaluation_count; told: its mean; hold_ratio: fraction of intervals that hold the next gap;
    probability: mean of that column.
    """
    is_usual = (pl.col("strategy") == OnlineParams().strategy) & (pl.col("method") == OnlineParams().method)
    gap, shortest, longest = pl.col("next_gap_s"), pl.col("shortest_period_s"), pl.col("longest_period_s")
    is_rhythm = pl.col("experiment").is_in(["bursts", "following", "moving", "ends"])
    return _by_class(
        results.evaluations.filter(is_rhythm, is_usual, gap.is_not_null()),
        "hit_probability",
        HIT_ENDS,
        told=pl.col("hit_probability").mean(),
        hold_ratio=((shortest <= gap) & (gap <= longest)).mean(),
        probability=pl.col("probability").mean(),
    )


def end_summary(results: Results) -> pl.DataFrame:
    """Count the evaluations that still report a period after a rhythm has ended.

    Columns: setting; evaluation_count: after the end, per run; periodic, told: mean number that are periodic, and with
    any period; high_periodic: 90 % quantile over runs.
    """
    has_period = pl.col("period_s").is_not_null()
    return (
        _select_experiment(results, "ends")
        # the first random gap is known once its phase starts
        .filter(pl.col("phase") > END_COUNTS[0])
        .group_by("setting", "run", maintain_order=True)
        .agg(evaluation_count=pl.len(), periodic=(pl.col("outcome") == "periodic").sum(), told=has_period.sum())
        .group_by("setting", maintain_order=True)
        .agg(
            pl.col("evaluation_count").first(),
            pl.col("periodic", "told").mean(),
            high_periodic=pl.col("periodic").quantile(0.9, "linear"),
        )
    )


# ---- targets


@dataclass(frozen=True, slots=True)
class Target:
    """Description of a target, the required and the achieved value, and whether it is met."""

    of: str
    wanted: str
    found: str
    is_met: bool


def evaluate_targets(results: Results) -> Iterator[Target]:
    """Yield each target with the value achieved by the default parameters."""
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
        jitter_rows = changes.filter(pl.col("jitter") == jitter)
        in_time_ratios = jitter_rows.filter(pl.col("branch") != "unchanged")["in_time_ratio"].to_list()
        unchanged_rows = jitter_rows.filter(pl.col("branch") == "unchanged")
        false_percentages = [
            100 * row["false_count"] / row["run_count"] for row in unchanged_rows.iter_rows(named=True)
        ]
        words = f"jitter {100 * jitter:.0f} %, {DETECTOR_NAMES[0]}"
        yield Target(
            f"Doubled and halved periods detected within {MAX_LAG} periods, {words}",
            "at least 95 % of the runs at each frequency",
            f"{100 * min(in_time_ratios):.0f} % to {100 * max(in_time_ratios):.0f} %",
            min(in_time_ratios) >= 0.95,
        )
        yield Target(
            f"False detections in unchanged runs of 40 phases, {words}",
            "at most 5 in 100 runs at each frequency",
            f"{min(false_percentages):g} to {max(false_percentages):g}",
            max(false_percentages) <= 5,
        )
    bursts = burst_summary(results)
    within_ratios = bursts.filter(pl.col("width") >= MIN_WIDTH)["within_ratio"].to_list()
    yield Target(
        f"Next bursts that begin within the predicted range, after {TENTH + 1} phases or more, where gaps vary",
        f"{100 * NOMINAL:.0f} %, up to 5 points",
        f"{100 * min(within_ratios):.0f} % to {100 * max(within_ratios):.0f} %",
        max(abs(ratio - NOMINAL) for ratio in within_ratios) <= 0.05,
    )
    ends = end_summary(results)
    still_periodic = ends["periodic"].to_list()
    yield Target(
        f"Evaluations still periodic, of the {ends['evaluation_count'].to_list()[0]} after the end of a rhythm",
        "at most 2",
        f"{min(still_periodic):.1f} to {max(still_periodic):.1f}",
        max(still_periodic) <= 2,
    )
