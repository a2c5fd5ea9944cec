"""A population is formatted as tables and as JSON."""

from __future__ import annotations

import json

from iosig.answers.population.format import LABELS, build_document, format_labels, format_shares, measure_agreement
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
    assert measure_agreement(type(told)(told.query, told.runs, empty, 0.0)) is None


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
