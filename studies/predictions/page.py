"""What the study of predictions shows: its page, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl

from iosig.studies.pages import Block, Figure, Table, percent, tabled
from iosig.studies.predictions.figures import draw_bursts, draw_changes, draw_following
from iosig.studies.predictions.running import PEERS, Results, example
from iosig.studies.predictions.scenarios import (
    AFTER,
    BEFORE,
    END_COUNTS,
    JITTERS,
    NONE_COUNT,
    PERIOD_S,
    PHASE_COUNT,
)
from iosig.studies.predictions.summary import (
    MOST_SMALL_LAG,
    NOMINAL,
    burst_summary,
    change_summary,
    end_summary,
    following_summary,
    hacc_phases,
    hacc_summary,
    hit_summary,
    interval_summary,
    none_summary,
    range_summary,
    small_change_summary,
    targets,
)
from iosig.transforms.predictions.change_points import DETECTOR_NAMES
from iosig.transforms.predictions.predictor import OnlineParams

#: phases since a change that a table has
_SINCE = (0, 1, 2, 3, 4, 6, 9, 14)
_RULES = (*DETECTOR_NAMES, *PEERS)


def document(results: Results) -> dict[str, object]:
    """Return all summaries as plain values."""
    summaries = {
        "hacc": hacc_summary,
        "hacc_phases": hacc_phases,
        "changes": change_summary,
        "small_changes": small_change_summary,
        "following": following_summary,
        "next_bursts": burst_summary,
        "intervals": interval_summary,
        "no_period": none_summary,
        "ranges": range_summary,
        "hits": hit_summary,
        "ends": end_summary,
    }
    return {
        "seed_count": results.params.seed_count,
        "seed": results.params.seed,
        "targets": [asdict(target) for target in targets(results)],
        **{name: summed(results).to_dicts() for name, summed in summaries.items()},
    }


# ---- tables


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables for a terminal."""
    yield "What was aimed at", target_table(results)
    yield "Runs like HACC-IO", hacc_table(results)
    yield "Next bursts", burst_table(results)
    yield "Where there is no period", none_table(results)
    yield "Ranges of the next burst where rhythms keep, change and move", range_table(results)
    yield "What the probability of a hit tells, and how often it holds", hit_table(results)
    yield "After a rhythm has ended", end_table(results)


@tabled("aim", "wanted", "found", "met")
def target_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield what was aimed at, and whether it is met."""
    for one in targets(results):
        yield one.of, one.wanted, one.found, "yes" if one.is_met else "no"


def hacc_table(results: Results) -> Table:
    """Return how runs like HACC-IO are predicted, by method and window."""
    return Table.of(
        hacc_summary(results),
        ("method", "{method}"),
        ("window", "{strategy}"),
        ("mean period", "{period_s:.2f} s"),
        ("range over runs", "{low_period_s:.2f} to {high_period_s:.2f} s"),
        ("error to the next phase", "{next_error:%1} (at most {high_next_error:%1})"),
        ("to the mean distance", "{later_error:%1} (at most {high_later_error:%1})"),
    )


@tabled("phase", "window", "next phase after", "predicted", "range over runs", "runs with a period")
def phase_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the ten predictions of runs like HACC-IO, with the defaults."""
    for row in hacc_phases(results).iter_rows(named=True):
        is_told = row["period_s"] is not None
        yield (
            str(row["phase"]),
            f"{row['window_start_s']:.1f} to {row['now_s']:.1f} s",
            "" if row["next_gap_s"] is None else f"{row['next_gap_s']:.2f} s",
            f"{row['period_s']:.2f} s" if is_told else "none",
            f"{row['low_period_s']:.2f} to {row['high_period_s']:.2f} s" if is_told else "",
            percent(row["told_ratio"], 0),
        )


@tabled("frequency, jitter", *_RULES)
def change_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield, by frequency and jitter, what each rule tells: doubled and halved in time, and false ones in 100 runs."""
    found = change_summary(results)
    for (hz, jitter), of in found.group_by(["frequency_hz", "jitter"], maintain_order=True):
        cells = {(row["rule"], row["branch"]): row for row in of.iter_rows(named=True)}
        yield f"{hz:g} Hz, {percent(jitter, 0)}", *(_change_cell(cells, rule) for rule in _RULES)


def _change_cell(cells: dict[tuple[str, str], dict[str, float]], rule: str) -> str:
    ratios = [cells[rule, branch]["in_time_ratio"] for branch in ("doubled", "halved")]
    still = cells[rule, "unchanged"]
    return " / ".join(f"{100 * ratio:.0f}" for ratio in (*ratios, still["false_count"] / still["run_count"]))


@tabled(
    *("frequency, jitter", "change", "after 1", "2", "3", "later", "not", "change point right", "others' right"),
)
def lag_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield after how many periods the default detector tells of changes, and how exactly since when."""
    found = change_summary(results).filter(pl.col("branch") != "unchanged")
    for row in found.filter(pl.col("rule") == DETECTOR_NAMES[0]).iter_rows(named=True):
        lags = [row[f"lag_{number}"] for number in (1, 2, 3)] + [row["later_ratio"]]
        same = found.filter(*(pl.col(name) == row[name] for name in ("frequency_hz", "jitter", "branch")))
        others = same.filter(pl.col("rule").is_in(DETECTOR_NAMES[1:]))
        yield (
            f"{row['frequency_hz']:g} Hz, {percent(row['jitter'], 0)}",
            row["branch"],
            *(percent(lag, 0) for lag in (*lags, 1 - sum(lags))),
            percent(row["right_point_ratio"], 0),
            ", ".join(
                f"{rule} {percent(right, 0)}" for rule, right in others.select("rule", "right_point_ratio").rows()
            ),
        )


@tabled("jitter", *_RULES)
def small_change_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield, by jitter, the share of small changes that each rule finds soon, and later."""
    for (jitter,), rows in small_change_summary(results).group_by(["jitter"], maintain_order=True):
        cells = {row["rule"]: row for row in rows.iter_rows(named=True)}
        yield (
            percent(jitter, 0),
            *(
                f"{100 * cells[rule]['found_ratio']:.0f} / {100 * cells[rule]['all_found_ratio']:.0f}"
                for rule in _RULES
            ),
        )


@tabled("change", "window", *map(str, _SINCE))
def followed_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the median error of predicted periods by phases since a change."""
    for (branch, strategy), of in following_summary(results).group_by(["branch", "strategy"], maintain_order=True):
        rows = {row["since"]: row for row in of.iter_rows(named=True)}
        cells = [
            f"{percent(rows[since]['error'], 1)}"
            + (f" ({percent(told, 0)})" if (told := rows[since]["told_ratio"]) < 1 else "")
            for since in _SINCE
        ]
        yield str(branch), str(strategy), *cells


def burst_table(results: Results) -> Table:
    """Return what next bursts' foreseen starts are worth, by setting."""
    return Table.of(
        burst_summary(results),
        ("setting", "{setting}"),
        ("foreseen", "{few_told_ratio:%0}, {told_ratio:%0}"),
        ("within, 4 to 9", "{few_within_ratio:%0}"),
        ("within, 10 or more", "{within_ratio:%0}"),
        ("off by, median", "{error:%1}"),
        ("90 %", "{high_error:%1}"),
        ("median, signed", "{bias:%1}"),
        ("width", "{width:%1}"),
        ("phases all found", "{exact_ratio:%0}"),
        ("runs with a change told", "{false_run_ratio:%0}"),
    )


def none_table(results: Results) -> Table:
    """Return how often a period is told where there is none."""
    return Table.of(
        none_summary(results),
        ("what there is", "{branch}"),
        ("method", "{method}"),
        ("periodic", "{periodic_ratio:%1}"),
        ("tentative", "{tentative_ratio:%1}"),
        ("runs with any", "{run_ratio:%0}"),
        ("probability: median", "{probability:.2f}"),
        ("highest", "{high_probability:.2f}"),
    )


def interval_table(results: Results) -> Table:
    """Return whether intervals hold the true period, by their probability."""
    return Table.of(
        interval_summary(results),
        ("runs", "{kind}"),
        ("probability", "{above:g} to {up_to:g}"),
        ("evaluations", "{evaluation_count:,}"),
        ("hold the period", "{hold_ratio:%0}"),
        ("5 % wider", "{near_ratio:%0}"),
        ("width", "{width:%1}"),
    )


def range_table(results: Results) -> Table:
    """Return how many next bursts begin within their ranges, where rhythms keep, change and move."""
    return Table.of(
        range_summary(results),
        ("runs", "{setting}"),
        ("evaluations", "{evaluation_count:,}"),
        ("within", "{within_ratio:%0}"),
        ("width", "{width:%1}"),
    )


def hit_table(results: Results) -> Table:
    """Return whether what `hit_probability` tells is how often intervals hold the next gap."""
    return Table.of(
        hit_summary(results),
        ("hit_probability", "{above:g} to {up_to:g}"),
        ("evaluations", "{evaluation_count:,}"),
        ("told, mean", "{told:%0}"),
        ("hold the next gap", "{hold_ratio:%0}"),
        ("probability, mean", "{probability:%0}"),
    )


def end_table(results: Results) -> Table:
    """Return how many evaluations still tell a period after a rhythm has ended."""
    return Table.of(
        end_summary(results),
        ("later gaps", "{setting}"),
        ("evaluations since", "{evaluation_count}"),
        ("still periodic", "{periodic:.1f}"),
        ("in one run of ten", "{high_periodic:.0f}"),
        ("with a tentative period", "{told:.1f}"),
    )


# ---- the page


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    params = results.params
    yield "# How good predictions are while a run goes on"
    yield (
        "Runs whose phases are planted are predicted as followed traces are: after each phase the requests that are "
        "over are handed to the predictor, which samples them, looks for the period, and for phases whose gaps tell of "
        f"changes. {params.seed_count} runs of each setting, seed {params.seed}. Where nothing else is said, "
        f"parameters are the defaults: method {OnlineParams().method}, window {OnlineParams().strategy}, detector "
        f"{OnlineParams().detector}. The paper is FTIO's (Tarraf et al., \"Capturing Periodic I/O Using Frequency "
        "Techniques\", IPDPS'24), sections II-D and III-B."
    )
    yield target_table(results)
    yield from _hacc_blocks(results)
    yield from _change_blocks(results)
    yield from _following_blocks(results)
    yield from _burst_blocks(results)
    yield from _none_blocks(results)


def _draw_example(seed: int, path: Path) -> None:
    """Draw the predictions of one run as those of any followed input."""
    from iosig.reports.predictions.evaluations import PredictionView
    from iosig.reports.predictions.picture import draw
    from iosig.streams.following.rows import Circumstances, Identity, row_of

    run, predictor, evaluations = example(seed)
    identity = Identity(f"HACC-IO, planted, seed {seed}", "trace", None, "planted", None, "client", False)
    told = Circumstances("write", 1, predictor.params.strategy)
    # a planted run is of no day
    day = datetime(2000, 1, 1, tzinfo=UTC)
    rows = [row_of(identity, told, day + timedelta(seconds=found.answer.window_end_s), found) for found in evaluations]
    window = predictor.pyramid.window(0.0, float(run.ended_s[-1]))
    times = [window.started_s + place / window.sampling_hz for place in range(len(window.bytes_per_s))]
    view = PredictionView(
        pl.DataFrame(rows, infer_schema_length=None),
        pl.Series(times, dtype=pl.Float64).to_numpy(),
        window.bytes_per_s,
        run.onset_s,
        run.ended_s,
        graph=predictor.automaton.graph(),
    )
    draw(view, path)


def _hacc_blocks(results: Results) -> Iterator[Block]:
    yield "## HACC-IO"
    yield (
        "As the paper's run of 3,072 ranks (section III-B, Figure 15): ten phases, 8.7 s apart on average, the first "
        "one from 4.1 to 15.3 s, so that the others are 7.7 s apart; here with 3 % jitter and 16 ranks. The paper's "
        "mean predicted period is 8.66 s: it predicts from the first phase on, when the long first distance is most of "
        "what is known, as `dft` does here from the second. What follows is 7.7 s apart: nearer to that is better."
    )
    yield Figure("Predictions of a run like HACC-IO", "hacc", partial(_draw_example, results.params.seed))
    yield hacc_table(results)
    yield (
        "Mean period: of all evaluations that have one. Errors: means from the fourth evaluation on, and those of the "
        "worst run. Merging with autocorrelation refines the paper's confidence and leaves its periods as they are. "
        "With the defaults, phase by phase:"
    )
    yield phase_table(results)


def _change_blocks(results: Results) -> Iterator[Block]:
    yield "## Changes"
    yield (
        f"After {BEFORE} gaps of one length, with a jitter of {' or '.join(percent(each, 0) for each in JITTERS)} of "
        f"the period, the period doubles, halves, or stays for {AFTER} more. Gaps are those that the predictor sees in "
        "its samples; all rules get the same ones. A change is told in time if it is told, in the right direction, "
        "when three gaps of the new period have been seen, at the end of the phase that ends the last. In each cell: "
        "doubled and halved periods told in time, in percent, and false detections in 100 runs that do not change."
    )
    yield Figure("Changes told, and false ones", "changes", partial(draw_changes, change_summary(results)))
    yield change_table(results)
    yield (
        "The peer's rules are those of FTIO's own program, as far as they are known to us "
        "(`studies/predictions/peer_rules.py`): ADWIN cuts where two means differ by more than sqrt(ln(2 / 0.05) / "
        "n), in hertz, and the others take no noise to be less than 0.01 Hz. Frequencies far below 1 Hz are the "
        "usual ones of checkpoints. They get our gaps' frequencies here, not their own program's predictions."
    )
    yield (
        f"`{DETECTOR_NAMES[0]}`, the default: after how many gaps of the new period it tells, and how many of the "
        "change points are right to a quarter of the shorter period."
    )
    yield lag_table(results)
    yield (
        f"Periods that grow by 20 %: runs in which the change is found within {MOST_SMALL_LAG} gaps of the new period, "
        f"and within {AFTER - 1}, in percent, over all frequencies. `cusum` accumulates deviations from half the noise "
        f"on, `{DETECTOR_NAMES[0]}` from the whole of it."
    )
    yield small_change_table(results)


def _following_blocks(results: Results) -> Iterator[Block]:
    yield "## Following a change"
    yield (
        f"A period of {PERIOD_S:g} s that doubles or halves, jitter {percent(JITTERS[0], 0)}: the median error of the "
        "period that is predicted, by phases since the change. Phase 0 is the one that the first new gap begins with: "
        "until the next one, nothing can be known. In brackets, the share of runs with a period, where some have none."
    )
    yield Figure("Errors since a change", "following", partial(draw_following, following_summary(results)))
    yield followed_table(results)


def _burst_blocks(results: Results) -> Iterator[Block]:
    yield "## The next burst"
    yield (
        f"Runs of {PHASE_COUNT} phases with a period of {PERIOD_S:g} s; where nothing else is said, jitter 5 %, 16 "
        "ranks that are out of step by up to 15 % of a phase, and no background. Background is small I/O at random "
        f"times, as a share of the phases' bytes. Ranges are meant to hold {percent(NOMINAL, 0)}, which takes ten "
        "phases. A gap's own jitter cannot be foreseen: the median error of the best guess is 0.67 times the jitter."
    )
    draw = partial(draw_bursts, burst_summary(results), interval_summary(results), NOMINAL)
    yield Figure("Next bursts, and intervals", "bursts", draw)
    yield burst_table(results)
    yield (
        "Foreseen: evaluations that told a start, after 4 to 9 phases and after 10 or more. All else: of these. Off "
        "by, and the width of the range: over the period, after 10 phases or more; signed: late ones are positive. "
        f"Phases all found: runs in which {PHASE_COUNT} were, no more and no fewer; none of these runs changes. "
        "A range adds the interval's shortest and longest period to the tails of the gaps; from ten phases on, its "
        "typical one, for the tails alone are meant to hold so many."
    )
    yield "## Intervals"
    yield (
        "Do intervals of periods (section II-D) hold the true one? Of `steady` runs, those above; of `changed` ones, "
        "those that double or halve, since the change. The probability is the share of evaluations in the interval, "
        "as the paper has it: how steady predictions are, not how probable it is that the period lies between its "
        "ends, which are but the lowest and highest found so far."
    )
    yield interval_table(results)
    yield "## The probability of a hit"
    yield (
        "What `hit_probability` is meant to be: how often the interval holds the next gap. All runs of next bursts, "
        "those that change and move, and those whose rhythm ends, with the defaults; the curve that takes back what "
        "is too high was set on other runs. Before there was such a column, `probability` was read so: at 67, 83 and "
        "98 % the interval held the truth in 37, 66 and 57 %."
    )
    yield hit_table(results)
    yield "## Ranges where rhythms change and move"
    yield (
        f"How many next bursts begin within their ranges, which are meant to hold {percent(NOMINAL, 0)}: steady runs "
        "after six phases or more; runs that double or halve, since two gaps of the new period; and periods that grow "
        "with each gap, or swing. Width: over the gap that came. Before ranges had Student's width and went on with a "
        "drift, they held 65 % after a change, 35 % where periods grow by 3 % a gap, and 59 % where they swing."
    )
    yield range_table(results)


def _none_blocks(results: Results) -> Iterator[Block]:
    yield "## Where there is no period"
    yield (
        f"Phases with exponential pauses ({NONE_COUNT}), I/O without any pause, and one single phase that is looked at "
        "while it lasts and after it. Periodic, tentative: shares of the evaluations with a period from the method, "
        "and from the last gaps alone, which happen to agree. Probability: of the intervals that these are in, 0 "
        "where they are in none; what goes by a prediction should ask for more than that."
    )
    yield none_table(results)
    yield "## After a rhythm has ended"
    yield (
        f"{END_COUNTS[0]} gaps of a period of {PERIOD_S:g} s, then random ones of about that length in the mean: how "
        "many evaluations since are still periodic, in the mean of the runs. Before a rhythm was told to end when "
        "phases stop fitting, 2.8 to 4.1 of 8 were."
    )
    yield end_table(results)
