"""The section on servers that count by job: each family is evaluated in three ways, and reported."""

from __future__ import annotations

import polars as pl
import pytest

from iosig.studies.signatures.families import ALONE, FAMILIES
from iosig.studies.signatures.job_counter_page import build_job_counter_table, summarize_job_counters
from iosig.studies.signatures.methods import METHODS, ORACLES
from iosig.studies.signatures.running import COUNTED, OWN, OWN_AND_OTHERS, SHARED, Results, StudyParams, build_items
from iosig.studies.signatures.scores import CHOSEN
from iosig.transforms.signatures.methods import DEFAULT_METHODS

FIRST, SECOND = ALONE.name, FAMILIES[0].name


@pytest.fixture
def results() -> Results:
    told = {
        (FIRST, "calm"): (0.9, 0.99, 0.995, 0.99),
        (SECOND, "calm"): (0.8, 0.7, 0.9, 0.95),
        (SECOND, "busy"): (0.6, 0.7, 0.5, 0.85),
    }
    rows = []
    for (family, level), values in told.items():
        for value, correlation in zip((SHARED, OWN, OWN_AND_OTHERS), values, strict=False):
            # One of two signatures is missing, which counts as 0.
            rows += [(f"{COUNTED}{family}", value, level, CHOSEN, each) for each in (2 * correlation, None)]
            rows += [(f"{COUNTED}{family}", value, level, "elastic", 0.0), ("levels", 0.0, level, CHOSEN, 0.1)]
        rows += [(f"{COUNTED}{family}", OWN, level, one.name, values[3] - 0.1 * k) for k, one in enumerate(ORACLES)]
    schema = {"experiment": pl.String, "value": pl.Float64, "level": pl.String, "method": pl.String}
    answers = pl.DataFrame(rows, schema | {"correlation": pl.Float64}, orient="row")
    return Results(StudyParams(), (), answers, pl.DataFrame(), pl.DataFrame())


def test_table_compares_sources_with_the_bound(results: Results) -> None:
    found = summarize_job_counters(results)
    assert found.row(0) == (FIRST, "calm", *(pytest.approx(value) for value in (0.9, 0.99, 0.995, 0.99)))
    table = build_job_counter_table(results)
    assert table is not None
    assert [row[0] for row in table.rows] == [FIRST, SECOND, "all but the first"]
    assert table.rows[1] == (SECOND, "0.700", "0.700", "0.700", "0.900", "1 of 2", "0.100")
    assert table.rows[2][1:5] == ("0.700", "0.700", "0.700", "0.900")
    widths = [max(map(len, cells)) for cells in zip(table.columns, *table.rows, strict=True)]
    assert sum(widths) + 3 * len(widths) <= 103


def test_table_is_missing_without_evaluations(results: Results) -> None:
    without = Results(results.params, (), results.select("levels"), results.times, results.bounds)
    assert build_job_counter_table(without) is None


def test_each_family_is_evaluated_in_three_ways() -> None:
    work = list(build_items(StudyParams(2, 1, 1, parts=("counted",)), METHODS))
    assert len(work) == 2 * 3 * (1 + 3 * len(FAMILIES))
    ways = {(piece.queries[0][1], piece.setting.is_alone_seen, piece.setting.is_counted) for piece in work}
    assert ways == {(SHARED, False, False), (OWN, True, False), (OWN_AND_OTHERS, False, True)}
    asked = {tuple(method.name for *_, method in piece.queries) for piece in work}
    usual = tuple(method.name for method in METHODS if method.name in DEFAULT_METHODS)
    assert asked == {usual, (*usual, *(one.name for one in ORACLES))}
