"""Compute the template variables and figures of the page `docs/signatures-study.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import numpy as np
import polars as pl

from iosig.studies.pages import Draw, Table
from iosig.studies.signatures import figures as drawing
from iosig.studies.signatures.bounds import DRAWS, KNOWN
from iosig.studies.signatures.calibration import HELD_OUT
from iosig.studies.signatures.families import ALONE, FOREIGN_LEVELS, REAL, REAL_PIECE_HOURS
from iosig.studies.signatures.family_page import draw_calibration, family_values
from iosig.studies.signatures.job_counter_page import build_job_counter_table
from iosig.studies.signatures.methods import DEFAULT, LACKING, SWEEPS
from iosig.studies.signatures.published import measure
from iosig.studies.signatures.running import Results
from iosig.studies.signatures.scores import CHOSEN
from iosig.studies.signatures.sites import DRIFT_RATIO, LEVELS, STUDIED, SiteSetting, derive_seed
from iosig.studies.signatures.summary import (
    BURST_CELL,
    SIMILARITIES,
    SIMILARITY_CELL,
    VOLUME_CELL,
    average_applications,
    evaluate_targets,
    find_best_methods,
    format_spread,
    summarize,
    summarize_drift,
)
from iosig.studies.signatures.timing import fit_growth
from iosig.transforms.arrays import Reals
from iosig.transforms.signatures.methods import DEFAULT_METHODS
from iosig.transforms.synthetic.site import SiteParams

_SWEPT_WORDS = {
    "wavelet_level": "level of the wavelet transform",
    "gamma": "gamma: dense, share of samples",
    "kappa": "kappa: dense neighbour, share of samples",
}
_OTHERS = {"faults": "busy, polls lost", "edison": "real traffic (Edison)"}
_VERDICTS = {True: "reached", False: "not reached", None: "not studied"}
#: number of samples per application in the figure of examples
_DRAWN_SAMPLES = 3
_NAMES = [application.name for application in STUDIED]


def document(results: Results) -> dict[str, object]:
    """Return the results as the JSON document of `iosig study --json`."""
    return {
        "seed_count": results.params.seed_count,
        "seed": results.params.seed,
        "methods": {method.name: method.doc for method in results.methods},
        "targets": [asdict(target) for target in evaluate_targets(results)],
        "summary": summarize(results.answers),
        "times": results.times,
    }


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`; frames of parts that were not studied are empty."""
    summed = summarize(results.answers)
    levels = summed.filter(experiment="levels")
    targets = [
        (target.text, target.wanted, target.found, _VERDICTS[target.is_reached]) for target in evaluate_targets(results)
    ]
    return {
        **{"params": results.params, "methods": {method.name: method.doc for method in results.methods}},
        **{"FOREIGN_LEVELS": FOREIGN_LEVELS, "REAL": REAL, "REAL_PIECE_HOURS": REAL_PIECE_HOURS, "CHOSEN": CHOSEN},
        **{"HELD_OUT": HELD_OUT, "LACKING": LACKING, "ALONE": ALONE, "USUAL_METHODS": DEFAULT_METHODS},
        **{"DRIFT_RATIO": DRIFT_RATIO, "DRAWS": DRAWS, "KNOWN": KNOWN, "DEFAULT": DEFAULT, "site": SiteParams()},
        **{"SIMILARITY": SIMILARITY_CELL, "VOLUME": VOLUME_CELL, "BURSTS": BURST_CELL, "LEVELS": LEVELS},
        "format_spread": format_spread,
        "levels": levels,
        "overall": average_applications(levels),
        "targets": Table(("", "wanted", "found", ""), targets),
        "winners": Table(("level", "", *_NAMES), list(_list_winners(levels))),
        "families": family_values(results),
        "counted": build_job_counter_table(results),
        "swept": summed.filter(pl.col("experiment").is_in(list(_SWEPT_WORDS))),
        "drift": _in_percent(summarize_drift(results)),
        "others": _select_others(summed),
        "times": results.times.with_columns(time_ms=1000 * pl.col("seconds")),
        "exponents": fit_growth(results.times),
    }


def measures(results: Results) -> Mapping[str, Mapping[str, object]]:
    """Measure what IOSI's evaluation states, for the page that compares the papers."""
    return measure(results)


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    summed = summarize(results.answers)
    drift, other_scores = summarize_drift(results), _select_others(summed)
    levels = summed.filter(experiment="levels")
    ends = _in_percent(drift.filter(pl.col("value").is_in([drift["value"].min(), drift["value"].max()])))
    accuracy = f"{_describe_agreement(levels)} (paper: Figure 16)"
    examples = "Samples, truth and signatures, busy (paper: Figures 12 to 15)"
    sweeps = "iosi_filtered by its parameters, busy (paper: Figures 17 and 18); dashed: the paper's values"
    varied = [drawing.SweptParameter(sweep.name, _SWEPT_WORDS[sweep.name], sweep.usual) for sweep in SWEEPS]
    drifting = f"Runs with varying compute times, calm: {_describe_agreement(ends)}"
    return {
        "accuracy": drawing.draw_accuracy(levels, accuracy).write,
        "examples": lambda path: drawing.draw_examples(_examples(results), examples).write(path),
        "expected-correlation": partial(draw_calibration, results),
        "sweeps": drawing.draw_sweeps(summed, varied, sweeps).write,
        "drift": drawing.draw_drift(drift, drifting).write,
        "others": drawing.draw_accuracy(other_scores, _describe_agreement(other_scores)).write,
        "times": lambda path: drawing.draw_times(results.times, _describe_longest(results.times)).write(path),
    }


# ---- tables


def _list_winners(levels: pl.DataFrame) -> Iterator[Sequence[str]]:
    """Yield the method with the highest mean by level, metric and application."""
    for level in levels["level"].unique(maintain_order=True).to_list():
        for yardstick in SIMILARITIES:
            winner = find_best_methods(levels, level, yardstick)
            yield (level, yardstick.replace("_", "-"), *(winner.get(name, "-") for name in _NAMES))


# ---- figures


def _in_percent(drift: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the drift experiment, with the drift in percent as their level."""
    return drift.with_columns(
        level=pl.col("value").map_elements(lambda ratio: f"{100 * ratio:g} %", return_dtype=pl.String)
    )


def _select_others(summed: pl.DataFrame) -> pl.DataFrame:
    """Return the scores with lost polls and on measured traffic, with a label."""
    return (
        summed.filter(pl.col("experiment").is_in(list(_OTHERS)))
        .with_columns(level=pl.col("experiment").replace_strict(_OTHERS, return_dtype=pl.String))
        .sort("level", maintain_order=True)
    )


def _examples(results: Results) -> list[drawing.Example]:
    """Return examples from the first busy site: first samples of complete runs, the truth, and all signatures."""
    labeled = SiteSetting(foreign_level=LEVELS["busy"], days=results.params.days).draw(
        derive_seed(results.params.seed, 0)
    )
    signatures_by_method = [(method.name, method.extract(labeled.sets)) for method in results.methods]
    examples = []
    for place, (application, truth) in enumerate(zip(labeled.applications, labeled.truths, strict=True)):
        samples = labeled.sets.get_set(place)
        complete_runs = np.flatnonzero(samples.duration_s > 0.95 * len(truth.bytes_per_s))[:_DRAWN_SAMPLES]
        curves: list[tuple[str, Reals, float]] = [
            *(
                (f"sample {number}", samples.rates[run], samples.interval_s)
                for number, run in enumerate(complete_runs, start=1)
            ),
            ("truth", truth.bytes_per_s, 1.0),
            *((name, signatures[place].bytes_per_s, 1.0) for name, signatures in signatures_by_method),
        ]
        examples.append(drawing.Example(application.name, curves))
    return examples


def _describe_agreement(rows: pl.DataFrame) -> str:
    """Describe the mean cross-correlation of the default and of IOSI by level."""
    parts = []
    for method in (DEFAULT, "iosi_filtered", "iosi"):
        means = rows.filter(method=method).group_by("level", maintain_order=True)
        values = means.agg(pl.col("mean_cross_correlation").mean()).iter_rows()
        parts.append(f"{method} {', '.join(f'{value:.2f} ({level})' for level, value in values)}")
    return f"Cross-correlation with the truth: {'; '.join(parts)}"


def _describe_longest(times: pl.DataFrame) -> str:
    """Describe each method's time for the longest samples."""
    longest = times.filter(by="points").filter(pl.col("value") == pl.col("value").max())
    durations = ", ".join(
        f"{name} {1000 * time_s:,.{1 if time_s < 0.1 else 0}f} ms"
        for name, time_s in longest.select("method", "seconds").iter_rows()
    )
    return f"A set of 8 samples of {float(longest['value'][0]):,.0f} points takes {durations} (paper: Figure 19)"
