"""A population is formatted as tables and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl

from iosig.answers.population.format import (
    LABELS,
    build_document,
    format_labels,
    format_shares,
    measure_agreement,
    summarize_repeats,
)
from iosig.answers.population.query import Query, query_population
from tests.flows.populated_releases import opened


def test_tables_have_the_layout_of_the_paper() -> None:
    with opened() as site:
        told = query_population(site, Query())
    rows = {row[0]: dict(zip((*LABELS, "none"), row[1:], strict=True)) for row in format_labels(told)}
    assert list(rows) == ["START", "UNIFORM", "OTHER", "none"], "classes that nobody has are left out"
    assert {name: count for name, count in rows["UNIFORM"].items() if count} == {"none": 1, "NO_USAGE": 1}
    (read, write) = format_shares(told, "run_ratio")
    assert read == ("read", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 0.0)
    assert write == ("write", 0.0, 25.0, 0.0, 50.0, 25.0, 0.0, 0.0, 25.0)
    assert format_shares(told, "bytes_ratio")[1][-1] is None, "there are no periodic bytes"


def test_agreement_compares_inferred_with_exact_classes() -> None:
    with opened() as site:
        told = query_population(site, Query())
        assert measure_agreement(told) == (2, 0.5)
    empty = told.agreement.clear()
    assert measure_agreement(replace(told, agreement=empty)) is None


def test_repeated_runs_are_summarized_by_user() -> None:
    with opened() as site:
        told = query_population(site, Query())
    rows = [("bob", "s3d", 16, 3), ("bob", None, 4, 2), ("ann", "ior", 8, 1)]
    repeats = pl.DataFrame(rows, ["user", "application", "node_count", "run_count"], orient="row")
    assert summarize_repeats(replace(told, repeats=repeats)) == [
        ("bob", 16, 5, 2, "s3d/16", 3),
        ("ann", 8, 1, 1, "ior/8", 1),
    ]


def test_document_contains_all_tables() -> None:
    with opened() as site:
        told = build_document(query_population(site, Query()), 2, "r")
    plain = json.loads(told.json_text())
    assert (plain["format"], plain["run_count"], plain["group_count"], len(plain["groups"])) == (
        "iosig-population/1", 6, 3, 2,
    )  # fmt: skip
    assert plain["periods_s"] == {"read": [], "write": [60.0]}
    assert (plain["compared_count"], plain["agreement_ratio"]) == (2, 0.5)
    assert {row["basis"]: row["run_count"] for row in plain["bases"]}["inferred"] == 1
    assert sum(row["run_count"] for row in plain["unclassified"]) == 3
