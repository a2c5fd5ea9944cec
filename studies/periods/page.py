"""What the study of periods shows: the values of its page (`page.md`), and its figures."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from iosig.studies.pages import Draw, Table, percent
from iosig.studies.periods import figures as drawing
from iosig.studies.periods.running import Results, example
from iosig.studies.periods.scenarios import NULL_SAMPLE_COUNT, SAMPLING_HZ, Experiment, example_settings
from iosig.studies.periods.semi_synthetic import NoiseParams, PhaseParams
from iosig.studies.periods.summary import GROUPS, KINDS, alarm_summary, error_summary, statements
from iosig.studies.periods.unseen_page import before_table, unseen_tables

EXPERIMENTS: tuple[Experiment, ...] = ("compute_time", "desynchronization", "variability", "cut")


def document(results: Results) -> dict[str, object]:
    """Return what JSON has of the results."""
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
            for words, stated, found in (statements(results) if is_traced else ())
        ],
        "alarms": results.alarms,
        "unseen": results.unseen,
    }


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of; the tables of traces and noise, if they were studied."""
    shared: dict[str, object] = {
        **{"params": results.params, "methods": results.methods, "SAMPLING_HZ": SAMPLING_HZ},
        **{"NULL_SAMPLE_COUNT": NULL_SAMPLE_COUNT, "phases": PhaseParams(), "noise": NoiseParams()},
        "has_traces": not results.answers.is_empty(),
        "unseen": list(unseen_tables(results.unseen)),
        "before": before_table(results.unseen),
    }
    return shared if results.answers.is_empty() else shared | _trace_tables(results)


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    examples = [(words, example(setting, results.params.seed)) for words, setting in example_settings().items()]
    return {
        **{name.replace("_", "-"): drawing.draw_errors(results.answers, name).write for name in EXPERIMENTS},
        "deviations": drawing.draw_deviations(results.answers).write,
        "alarms": drawing.draw_alarms(results.alarms).write,
        "traces": drawing.draw_examples(examples, SAMPLING_HZ).write,
    }


def _trace_tables(results: Results) -> dict[str, object]:
    """Return the tables that have a column or row for each method."""
    names = [method.name for method in results.methods]
    stated = [(words, paper, *map(percent, found)) for words, paper, found in statements(results)]
    interval = pl.struct("alarm_ratio", "low_ratio", "high_ratio").map_elements(
        lambda rate: "{} ({} to {})".format(*map(percent, rate.values())), pl.String
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
    """Yield a row for each method: false alarms by kind of noise, errors and shares by group of traces."""
    errors = {(row["method"], row["group"]): row for row in error_summary(results).iter_rows(named=True)}
    for row in alarm_summary(results).iter_rows(named=True):
        groups = [errors[row["method"], group] for group in GROUPS]
        yield (
            row["method"],
            *(percent(row[kind]) for kind in KINDS),
            *(
                f"{percent(group['mean_error'])}, {percent(group['median_error'])} / {percent(group['found_ratio'])}"
                for group in groups
            ),
        )
