"""Compute the template variables and figures of the page `docs/periods-study.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from iosig.studies.pages import Draw, Table, format_percent
from iosig.studies.periods import figures as drawing
from iosig.studies.periods.running import Results, draw_example
from iosig.studies.periods.scenarios import NULL_SAMPLE_COUNT, SAMPLING_HZ, Experiment, list_examples
from iosig.studies.periods.semi_synthetic import NoiseParams, PhaseParams
from iosig.studies.periods.summary import GROUPS, KINDS, alarm_summary, error_summary, evaluate_statements
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
            {"of": words, "paper": stated, "found": dict(zip(names, found, strict=True))}
            for words, stated, found in (evaluate_statements(results) if is_traced else ())
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
    """Build the tables with one column or row per method."""
    names = [method.name for method in results.methods]
    stated = [(words, paper, *map(format_percent, found)) for words, paper, found in evaluate_statements(results)]
    interval = pl.struct("alarm_ratio", "low_ratio", "high_ratio").map_elements(
        lambda rate: "{} ({} to {})".format(*map(format_percent, rate.values())), pl.String
    )
    noise = pl.format("{}: {}", "kind", "noise").alias("noise")
    alarms = results.alarms.select(noise, "method", cell=interval).pivot("method", index="noise", values="cell")
    columns = [*(f"{kind}: false alarms" for kind in KINDS), *(f"{name}: error / found" for name in GROUPS.values())]
    errors = error_summary(results).with_columns(pl.col("group").replace(GROUPS))
    by_method = {"method": "method"}
    return {
        "highest_alarms": alarm_summary(results),
        "error_cells": Table.pivot(errors, by_method, "group", "{mean_error:%}, {median_error:%}"),
        "found_cells": Table.pivot(errors, by_method, "group", "{found_ratio:%}"),
        "short": Table(("method", *columns), list(_short_rows(results))),
        "statements": Table(("", "stated in the paper", *names), stated),
        "alarms": Table(alarms.columns, alarms.rows()),
    }


def _short_rows(results: Results) -> Iterator[tuple[str, ...]]:
    """Yield a row per method: false alarms by kind of noise, then errors and detection rates by group of traces."""
    errors = {(row["method"], row["group"]): row for row in error_summary(results).iter_rows(named=True)}
    for row in alarm_summary(results).iter_rows(named=True):
        alarms = [format_percent(row[kind]) for kind in KINDS]
        yield row["method"], *alarms, *(_format_errors(errors[row["method"], group]) for group in GROUPS)


def _format_errors(row: Mapping[str, float | None]) -> str:
    mean, median, found = (format_percent(row[name]) for name in ("mean_error", "median_error", "found_ratio"))
    return f"{mean}, {median} / {found}"
