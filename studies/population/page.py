"""Compute the template variables and figures of the page `docs/population-study.md`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.answers.population.figure import build_view
from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.reports.periods.picture import draw as draw_period
from iosig.reports.periods.view import PeriodView, build_view as build_period_view
from iosig.reports.population import draw as draw_population
from iosig.settings.model import Settings
from iosig.studies.drawing import add_legend_below, draw_panels
from iosig.studies.pages import Draw
from iosig.studies.population import year as years
from iosig.studies.population.running import Results
from iosig.studies.population.ways import WAYS
from iosig.studies.sites import DAYS, LEVELS
from iosig.transforms.periods import autoperiod, autoperiod_analysis
from iosig.transforms.periods.interface.even_signals import EvenSignals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TRUTH = "truth"
#: classes in the order of the tables of PEARC'18
_LABELS = ("UNIFORM", "OTHER", "HILL", "CANYON", "START", "END", "NO_USAGE")
#: maximum relative error of a right period
SAME_RATIO = 0.1
_BASIS = "traffic"
_OURS = "signature"
_COLORS = (style.INK, style.ORANGE, style.BLUE, style.GREEN)


def document(results: Results) -> dict[str, object]:
    """Return the results as the JSON document of `iosig study --json`."""
    tables: dict[str, object] = {}
    if not results.runs.is_empty():
        by = ("level", "direction", "family")
        tables |= {"classes": summarize_classes(results, *by), "periods": summarize_periods(results, *by)}
    return tables if results.year is None else tables | {"year": years.measure(results.year)}


def measures(results: Results) -> Mapping[str, Mapping[str, object]]:
    """Measure what the paper's section 6 states, for the page that compares the papers."""
    return {} if results.year is None else years.measure(results.year)


def values(results: Results) -> dict[str, object]:
    """Compute the variables of the template `page.md`."""
    shared = {"params": results.params, "has_sites": not results.runs.is_empty(), "year": results.year}
    sites = _summarize_sites(results) if shared["has_sites"] else {}
    return shared | sites | (_summarize_year(results.year) if results.year else {})


def _summarize_year(year: years.Year) -> dict[str, object]:
    """Compute the variables of the simulated year."""
    return {
        "cells": years.list_cells(year),
        "classes_of_year": years.list_shares(year),
        "periodic": years.list_periodic(year),
        "measured": years.measure(year),
        "LABELS": years.LABELS,
    }


def _summarize_sites(results: Results) -> dict[str, object]:
    """Compute the variables of the simulated sites."""
    families = summarize_classes(results, "level", "family")
    return {
        **{"WAYS": WAYS, "DAYS": DAYS, "SAME_RATIO": SAME_RATIO},
        "levels": summarize_classes(results, "level"),
        "classes": summarize_classes(results, "level", "direction"),
        "families": families.pivot("way", index=["level", "family"], values="signed_right"),
        "threshold": Settings().signatures.min_expected_correlation,
        "expected_correlation": calibrate(results),
        "periods": summarize_periods(results, "level", "direction"),
    }


def figures(results: Results) -> dict[str, Draw]:
    """Map each figure name in `page.md` to its drawing function."""
    drawings: dict[str, Draw] = {}
    if not results.runs.is_empty():
        drawings["shares"] = draw_shares(compute_class_shares(results)).write
    if results.year is not None:
        view = build_view(results.year.population, "simulated year with planted classes and periods")
        drawings["year"] = draw_population(view).write
        drawings["autoperiod"] = draw_period(_trace_example(results.year.example)).write
    return drawings


def _trace_example(signals: EvenSignals) -> PeriodView:
    """Search one job with the paper's method, for a picture like its Figure 1."""
    steps = autoperiod.trace_search(autoperiod_analysis.analyze_even(signals))
    detections = autoperiod.detect_even(signals)
    return build_period_view(
        signals, detections, title="a job of the simulated year", direction="write", method="autoperiod", steps=steps
    )


def summarize_classes(results: Results, *names: str) -> pl.DataFrame:
    """Compute the fraction of runs with the right class, by way and `names`.

    Columns: run_count; right; signed_count and signed_right: the same for runs of applications with a signature; off:
    total variation distance between the distributions of inferred and true classes.
    """
    is_right, has_signature = pl.col("label").eq_missing(pl.col("true_label")), pl.col("has_signature")
    distance = sum(
        (pl.col("label").eq_missing(label).mean() - (pl.col("true_label") == label).mean()).abs() for label in _LABELS
    )
    return results.runs.group_by(*names, "way", maintain_order=True).agg(
        run_count=pl.len(),
        right=is_right.mean(),
        signed_count=has_signature.sum(),
        signed_right=is_right.filter(has_signature).mean(),
        off=distance / 2,
    )


def summarize_periods(results: Results, *names: str) -> pl.DataFrame:
    """Compute the fractions of right periods, by way and `names`, for ways that report periods.

    Columns said, periodic: fraction of runs with a reported and with a true period; of_said, of_periodic: fraction of
    these runs with the right period (precision and recall).
    """
    is_said, is_periodic = pl.col("period_s").is_not_null(), pl.col("true_period_s").is_not_null()
    is_same = ((pl.col("period_s") / pl.col("true_period_s") - 1).abs() < SAME_RATIO).fill_null(value=False)
    rows = results.runs.filter(is_said.any().over("way"))
    return rows.group_by(*names, "way", maintain_order=True).agg(
        run_count=pl.len(),
        said=is_said.mean(),
        periodic=is_periodic.mean(),
        of_said=is_same.filter(is_said).mean(),
        of_periodic=is_same.filter(is_periodic).mean(),
    )


def compute_class_shares(results: Results) -> pl.DataFrame:
    """Compute the fraction of runs by level, way and class, for applications with a signature; the truth is first."""
    signed = results.runs.filter("has_signature")
    truth = signed.filter(way=_BASIS).with_columns(way=pl.lit(_TRUTH), label="true_label")
    counts = pl.concat([truth, signed]).group_by("level", "way", "label", maintain_order=True).len()
    return counts.with_columns(
        run_ratio=pl.col("len") / pl.col("len").sum().over("level", "way"),
        label=pl.col("label").cast(pl.Enum(_LABELS)),
    ).sort(pl.col("level").cast(pl.Enum(list(LEVELS))), pl.col("way").cast(pl.Enum([_TRUTH, *WAYS])), "label")


def calibrate(results: Results) -> pl.DataFrame:
    """Compute the fractions of right classes and periods as functions of the signature's expected correlation."""
    is_said = pl.col("period_s").is_not_null()
    is_same = ((pl.col("period_s") / pl.col("true_period_s") - 1).abs() < SAME_RATIO).fill_null(value=False)
    lower = (pl.col("expected_correlation") * 10).floor().clip(0, 9) / 10
    return (
        results.runs.filter(way=_OURS)
        .group_by(lower=lower)
        .agg(
            run_count=pl.len(),
            right=pl.col("label").eq_missing(pl.col("true_label")).mean(),
            said=is_said.mean(),
            of_said=is_same.filter(is_said).mean(),
        )
        .sort("lower")
        .with_columns(upper=pl.col("lower") + 0.1)
    )


# ---- the figure


@picture((11.0, 3.6))
def draw_shares(figure: Figure, shares: pl.DataFrame) -> None:
    """Draw a bar chart of the distribution of classes by way, one panel per level.

    shares: level, way, label, run_ratio; the truth is one of the ways.
    """
    ways, labels = (panels.in_order(shares, name) for name in ("way", "label"))
    width = 0.8 / len(ways)
    for axes, _, at_level in draw_panels(figure, shares, "level", is_x_shared=False):
        for number, way in enumerate(ways):
            ratios = dict(at_level.filter(way=way).select("label", "run_ratio").iter_rows())
            places = np.arange(len(labels)) + (number - (len(ways) - 1) / 2) * width
            axes.bar(places, [ratios.get(label, 0.0) for label in labels], width, color=_COLORS[number], label=way)
        axes.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=8)
    first = figure.axes[0]
    first.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    first.set_ylabel("runs", fontsize=9)
    add_legend_below(figure)
