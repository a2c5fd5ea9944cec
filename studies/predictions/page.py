"""Compute the template variables and figures of the page `docs/predictions-study.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl

from iosig.studies.pages import Draw, Table, collect_rows, format_percent
from iosig.studies.predictions.figures import draw_bursts, draw_changes, draw_following
from iosig.studies.predictions.running import PEERS, Results, predict_example
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
    MAX_SMALL_LAG,
    NOMINAL,
    burst_summary,
    change_summary,
    end_summary,
    evaluate_targets,
    following_summary,
    hacc_phases,
    hacc_summary,
    hit_summary,
    interval_summary,
    none_summary,
    range_summary,
    small_change_summary,
)
from iosig.transforms.predictions.change_points import DETECTOR_NAMES
from iosig.transforms.predictions.predictor import OnlineParams

#: phases since a change shown in a table
_SINCE = (0, 1, 2, 3, 4, 6, 9, 14)
_RULES = (*DETECTOR_NAMES, *PEERS)
_SUMMARIES: Mapping[str, Callable[[Results], pl.DataFrame]] = {
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


def document(results: Results) -> dict[str, object]:
    """Return the results as the JSON document of `iosig study --json`."""
    return {
        "seed_count": results.params.seed_count,
        "seed": results.params.seed,
        "targets": [asdict(target) for target in evaluate_targets(results)],
        **{name: summarize(results) for name, summarize in _SUMMARIES.items()},
    }


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    return {
        **{"params": results.params, "usual": OnlineParams(), "BEFORE": BEFORE, "AFTER": AFTER, "JITTERS": JITTERS},
        **{"PERIOD_S": PERIOD_S, "PHASE_COUNT": PHASE_COUNT, "NOMINAL": NOMINAL, "NONE_COUNT": NONE_COUNT},
        **{"END_COUNTS": END_COUNTS, "MAX_SMALL_LAG": MAX_SMALL_LAG},
        **{name: summarize(results) for name, summarize in _SUMMARIES.items()},
        "targets": [asdict(target) | {"met": "yes" if target.is_met else "no"} for target in evaluate_targets(results)],
        "phases": hacc_phases(results).to_dicts(),
        "change_cells": change_table(results),
        "lag_cells": lag_table(results),
        "small_change_cells": small_change_table(results),
        "followed_cells": following_table(results),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {
        "hacc": partial(_draw_example, results.params.seed),
        "changes": draw_changes(change_summary(results)).write,
        "following": draw_following(following_summary(results)).write,
        "bursts": draw_bursts(burst_summary(results), interval_summary(results), NOMINAL).write,
    }


@collect_rows("frequency, jitter", *_RULES)
def change_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield each rule's timely detections (doubled, halved), and false ones per 100 runs, by frequency and jitter."""
    summary = change_summary(results)
    for (hz, jitter), setting_rows in summary.group_by(["frequency_hz", "jitter"], maintain_order=True):
        cells = {(row["rule"], row["branch"]): row for row in setting_rows.iter_rows(named=True)}
        yield f"{hz:g} Hz, {format_percent(jitter, 0)}", *(_change_cell(cells, rule) for rule in _RULES)


def _change_cell(cells: dict[tuple[str, str], dict[str, float]], rule: str) -> str:
    ratios = [cells[rule, branch]["in_time_ratio"] for branch in ("doubled", "halved")]
    still = cells[rule, "unchanged"]
    return " / ".join(f"{100 * ratio:.0f}" for ratio in (*ratios, still["false_count"] / still["run_count"]))


@collect_rows(
    *("frequency, jitter", "change", "after 1", "2", "3", "later", "not", "change point right", "others' right"),
)
def lag_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the default detector's lag of detection, and the accuracy of its change points."""
    changes = change_summary(results).filter(pl.col("branch") != "unchanged")
    for row in changes.filter(pl.col("rule") == DETECTOR_NAMES[0]).iter_rows(named=True):
        lags = [row[f"lag_{number}"] for number in (1, 2, 3)] + [row["later_ratio"]]
        same = changes.filter(*(pl.col(name) == row[name] for name in ("frequency_hz", "jitter", "branch")))
        others = same.filter(pl.col("rule").is_in(DETECTOR_NAMES[1:]))
        yield (
            f"{row['frequency_hz']:g} Hz, {format_percent(row['jitter'], 0)}",
            row["branch"],
            *(format_percent(lag, 0) for lag in (*lags, 1 - sum(lags))),
            format_percent(row["right_point_ratio"], 0),
            ", ".join(
                f"{rule} {format_percent(right, 0)}"
                for rule, right in others.select("rule", "right_point_ratio").rows()
            ),
        )


def small_change_table(results: Results) -> Table:
    """Tabulate the fractions of small changes that each rule detects soon, and at all, by jitter."""
    in_percent = pl.col("jitter", "found_ratio", "all_found_ratio") * 100
    shares = small_change_summary(results).with_columns(in_percent)
    shares = shares.with_columns(jitter=pl.format("{} %", pl.col("jitter").round().cast(pl.Int64)))
    return Table.pivot(shares, {"jitter": "jitter"}, "rule", "{found_ratio:.0f} / {all_found_ratio:.0f}", _RULES)


@collect_rows("change", "window", *map(str, _SINCE))
def following_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield the median error of predicted periods by phases since a change."""
    for (branch, strategy), strategy_rows in following_summary(results).group_by(
        ["branch", "strategy"], maintain_order=True
    ):
        rows = {row["since"]: row for row in strategy_rows.iter_rows(named=True)}
        cells = [
            f"{format_percent(rows[since]['error'], 1)}"
            + (f" ({format_percent(ratio, 0)})" if (ratio := rows[since]["told_ratio"]) < 1 else "")
            for since in _SINCE
        ]
        yield str(branch), str(strategy), *cells


def _draw_example(seed: int, path: Path) -> None:
    """Draw the predictions of one run in the same form as those of a followed input."""
    from iosig.reports.predictions.evaluations import PredictionView
    from iosig.reports.predictions.picture import draw
    from iosig.streams.following.rows import Circumstances, Identity, format_row

    run, predictor, evaluations = predict_example(seed)
    identity = Identity(f"HACC-IO, simulated, seed {seed}", "trace", None, "planted", None, "client", False)
    circumstances = Circumstances("write", 1, predictor.params.strategy)
    # a planted run has no date: use an arbitrary one
    day = datetime(2000, 1, 1, tzinfo=UTC)
    rows = [
        format_row(identity, circumstances, day + timedelta(seconds=evaluation.answer.window_end_s), evaluation)
        for evaluation in evaluations
    ]
    window = predictor.pyramid.window(0.0, float(run.phase_end_s[-1]))
    times = [window.start_s + place / window.sampling_hz for place in range(len(window.bytes_per_s))]
    view = PredictionView(
        pl.DataFrame(rows, infer_schema_length=None),
        pl.Series(times, dtype=pl.Float64).to_numpy(),
        window.bytes_per_s,
        run.onset_s,
        run.phase_end_s,
        graph=predictor.automaton.graph(),
    )
    draw(view).write(path)
