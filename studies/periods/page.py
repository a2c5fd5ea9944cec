"""Compute the template variables and figures of the page `docs/periods-study.md`."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from iosig.studies.pages import Draw, Table, format_percent
from iosig.studies.periods import figures as drawing
from iosig.studies.periods.running import Results, draw_example
from iosig.studies.periods.scenarios import NULL_SAMPLE_COUNT, SAMPLING_HZ, Experiment, list_examples
from iosig.studies.periods.semi_synthetic import NoiseParams, PhaseParams
from iosig.studies.periods.summary import GROUPS, KINDS, alarm_summary, error_summary, evaluate_statements, measure
from iosig.studies.periods.unseen_page import unseen_values

EXPERIMENTS: tuple[Experiment, ...] = ("compute_time", "desynchronization", "variability", "cut", "io_time")


def document(results: Results) -> dict[str, object]:
    """Return the results as the JSON document of `iosig study --json`."""
    params = results.params
    names = [method.name for method in results.methods]
    is_traced = not results.answers.is_empty()
    return {
        "trace_count": params.trace_count,
        "draw_count": params.draw_count,
        "seed": params.seed,
        "methods": {method.name: method.doc for method in results.methods},
        "highest_alarm_ratios": alarm_summary(results) if is_traced else [],
        "errors": error_summary(results) if is_traced else [],
        "statements": [
            {"of": words, "paper": stated, "found": dict(zip(names, ratios, strict=True))}
            for words, stated, ratios in (evaluate_statements(results) if is_traced else ())
        ],
        "alarms": results.alarms,
        "unseen": results.unseen,
    }


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    shared: dict[str, object] = {
        **{"params": results.params, "methods": results.methods, "SAMPLING_HZ": SAMPLING_HZ},
        **{"NULL_SAMPLE_COUNT": NULL_SAMPLE_COUNT, "phases": PhaseParams(), "noise": NoiseParams()},
        "has_traces": not results.answers.is_empty(),
        "unseen": results.unseen,
        **unseen_values(results.unseen),
    }
    return shared if results.answers.is_empty() else shared | _trace_tables(results)


def measures(results: Results) -> Mapping[str, Mapping[str, object]]:
    """Measure what FTIO's section III-A states, for the page that compares the papers."""
    return measure(results)


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    examples = [(words, draw_example(setting, results.params.seed)) for words, setting in list_examples().items()]
    return {
        **{name.replace("_", "-"): drawing.draw_errors(results.answers, name).write for name in EXPERIMENTS},
        "deviations": drawing.draw_deviations(results.answers).write,
        "alarms": drawing.draw_alarms(results.alarms).write,
        "traces": drawing.draw_examples(examples, SAMPLING_HZ).write,
    }


def _trace_tables(results: Results) -> dict[str, object]:
    """Compute the variables of the results by method."""
    names = [method.name for method in results.methods]
    statements = [(words, paper, *map(format_percent, ratios)) for words, paper, ratios in evaluate_statements(results)]
    alarms, errors = alarm_summary(results), error_summary(results)
    by_group = errors.pivot("group", index="method", values=["mean_error", "median_error", "found_ratio"])
    return {
        **{"KINDS": KINDS, "GROUPS": GROUPS},
        "highest_alarms": alarms,
        "errors": errors.with_columns(pl.col("group").replace(GROUPS)),
        "short": alarms.join(by_group, on="method", maintain_order="left"),
        "statements": Table(("", "stated in the paper", *names), statements),
        "alarms": results.alarms,
    }
