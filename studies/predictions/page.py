"""Compute the template variables and figures of the page `docs/predictions-study.md`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl

from iosig.studies.pages import Draw, format_percent
from iosig.studies.predictions.figures import draw_bursts, draw_changes, draw_following
from iosig.studies.predictions.running import RULES, Results, predict_example
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
    changes = change_summary(results)
    return {
        **{"params": results.params, "usual": OnlineParams(), "BEFORE": BEFORE, "AFTER": AFTER, "JITTERS": JITTERS},
        **{"PERIOD_S": PERIOD_S, "PHASE_COUNT": PHASE_COUNT, "NOMINAL": NOMINAL, "NONE_COUNT": NONE_COUNT},
        **{"END_COUNTS": END_COUNTS, "MAX_SMALL_LAG": MAX_SMALL_LAG},
        **{name: summarize(results) for name, summarize in _SUMMARIES.items()},
        "targets": [asdict(target) | {"met": "yes" if target.is_met else "no"} for target in evaluate_targets(results)],
        "phases": hacc_phases(results).to_dicts(),
        **{"RULES": RULES, "OTHER_DETECTORS": DETECTOR_NAMES[1:], "SINCE": _SINCE},
        "detections": _summarize_detections(changes),
        "lags": _summarize_lags(changes),
        "small_change_percents": small_change_summary(results).with_columns(
            pl.col("found_ratio", "all_found_ratio") * 100
        ),
        "format_followed": _format_followed,
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    return {
        "hacc": partial(_draw_example, results.params.seed),
        "changes": draw_changes(change_summary(results)).write,
        "following": draw_following(following_summary(results)).write,
        "bursts": draw_bursts(burst_summary(results), interval_summary(results), NOMINAL).write,
    }


def _summarize_detections(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the percentages of timely detections, and of false ones in unchanged runs, by setting and rule."""
    ratio = pl.when(branch="unchanged").then(pl.col("false_count") / pl.col("run_count")).otherwise("in_time_ratio")
    keys = ("frequency_hz", "jitter", "rule")
    return changes.select(*keys, "branch", percent=100 * ratio).pivot("branch", index=keys, values="percent")


def _summarize_lags(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the default detector's lags of detection, and the accuracy of all detectors' change points by name."""
    changed = changes.filter(pl.col("branch") != "unchanged")
    keys = ("frequency_hz", "jitter", "branch")
    points = changed.pivot("rule", index=keys, values="right_point_ratio")
    detected = pl.col("lag_1") + pl.col("lag_2") + pl.col("lag_3") + pl.col("later_ratio")
    lags = changed.filter(rule=DETECTOR_NAMES[0]).with_columns(missed_ratio=1 - detected)
    return lags.join(points, on=keys, maintain_order="left")


def _format_followed(row: Mapping[str, float]) -> str:
    """Format the median error, and the fraction of runs with a period unless all have one."""
    reported_ratio = row["told_ratio"]
    return format_percent(row["error"], 1) + (f" ({format_percent(reported_ratio, 0)})" if reported_ratio < 1 else "")


def _draw_example(seed: int, path: Path) -> None:
    """Draw the predictions of one run in the same form as those of a followed input."""
    from iosig.reports.predictions.evaluations import PredictionView
    from iosig.reports.predictions.picture import draw
    from iosig.streams.following.rows import Circumstances, Identity, format_row

    run, predictor, evaluations = predict_example(seed)
    identity = Identity(f"HACC-IO, simulated, seed {seed}", "trace", None, "planted", None, "client", False)
    circumstances = Circumstances("write", 1, predictor.params)
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
