"""What the study of predictions shows: the values of its page (`page.md`), and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl

from iosig.studies.pages import Draw, Table, percent, tabled
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
    """Return what JSON has of the results."""
    return {
        "seed_count": results.params.seed_count,
        "seed": results.params.seed,
        "targets": [asdict(target) for target in targets(results)],
        **{name: summarize(results) for name, summarize in _SUMMARIES.items()},
    }


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    return {
        **{"params": results.params, "usual": OnlineParams(), "BEFORE": BEFORE, "AFTER": AFTER, "JITTERS": JITTERS},
        **{"PERIOD_S": PERIOD_S, "PHASE_COUNT": PHASE_COUNT, "NOMINAL": NOMINAL, "NONE_COUNT": NONE_COUNT},
        **{"END_COUNTS": END_COUNTS, "MOST_SMALL_LAG": MOST_SMALL_LAG},
        **{name: summarize(results) for name, summarize in _SUMMARIES.items()},
        "targets": [asdict(target) | {"met": "yes" if target.is_met else "no"} for target in targets(results)],
        "phases": hacc_phases(results).to_dicts(),
        "change_cells": change_table(results),
        "lag_cells": lag_table(results),
        "small_change_cells": small_change_table(results),
        "followed_cells": followed_table(results),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {
        "hacc": partial(_draw_example, results.params.seed),
        "changes": draw_changes(change_summary(results)).write,
        "following": draw_following(following_summary(results)).write,
        "bursts": draw_bursts(burst_summary(results), interval_summary(results), NOMINAL).write,
    }


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


def small_change_table(results: Results) -> Table:
    """Return, by jitter, the share of small changes that each rule finds soon, and in all."""
    in_percent = pl.col("jitter", "found_ratio", "all_found_ratio") * 100
    shares = small_change_summary(results).with_columns(in_percent)
    shares = shares.with_columns(jitter=pl.format("{} %", pl.col("jitter").round().cast(pl.Int64)))
    return Table.pivot(shares, {"jitter": "jitter"}, "rule", "{found_ratio:.0f} / {all_found_ratio:.0f}", _RULES)


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
