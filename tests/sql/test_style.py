"""Test the style of SQL files: a single documented SELECT that uses only provided tables and parameters."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from iosig.flows.steps.items import StepContext, WorkItem
from iosig.settings.model import Settings
from iosig.warehouse.contracts import TABLES, Table, table
from iosig.warehouse.contracts.attribution import (
    ATTRIBUTED_IO,
    ATTRIBUTION_DAILY,
    EXPLAINED_MINUTES,
    POLLED_MINUTES,
)
from iosig.warehouse.contracts.classes import CLASSES, KEPT_CLASSES
from iosig.warehouse.contracts.counters import (
    COUNTER_DELTAS,
    COUNTER_GAPS,
    COUNTER_LAST_VALUES,
    COUNTER_TARGETS,
    JOB_KEYS,
    TIMED_SCRAPES,
)
from iosig.warehouse.contracts.inference import COVERING_TRACES, INFERENCE_CHECKS
from iosig.warehouse.contracts.job_io import JOB_IO
from iosig.warehouse.contracts.periods import (
    INFERENCE_RUNS,
    KEPT_NODES,
    KEPT_PERIODS,
    KEPT_SEGMENTS,
    METADATA_GRIDS,
    PERIODS,
)
from iosig.warehouse.contracts.polls import POLLED_TRAFFIC
from iosig.warehouse.contracts.quality import QUARANTINE, REJECTS
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, SAMPLE_CHECKS, SAMPLES, TRACE_SAMPLES
from iosig.warehouse.contracts.signatures import EXACT_PAIRS, INFERENCE_BURSTS, SIGNATURE_CURVES, TRACED_PAIRS
from iosig.warehouse.contracts.traces import TRACE_HEATMAPS, TRACE_SIGNALS
from iosig.warehouse.store import models
from tests.sql import given

#: views and example queries, which read published tables by their names
OF_RELEASES = ("views", "examples")
FILES = sorted(path for path in models.SQL_ROOT.rglob("*.sql") if path.parent.name not in OF_RELEASES)
#: tables that code computes, in layers of SQL models
NOT_OF_SQL = {METADATA_GRIDS, SAMPLES, TRACE_SIGNALS, TRACE_SAMPLES, EXACT_SAMPLES, SAMPLE_CHECKS}
NOT_OF_SQL |= {COUNTER_LAST_VALUES, COUNTER_DELTAS, COUNTER_GAPS, TIMED_SCRAPES, COUNTER_TARGETS, JOB_KEYS}
#: tables of transforms that SQL joins
OF_TRANSFORMS = {ATTRIBUTION_DAILY, ATTRIBUTED_IO, POLLED_MINUTES, JOB_IO, CLASSES, PERIODS}
OF_TRANSFORMS |= {EXACT_PAIRS, TRACED_PAIRS, INFERENCE_RUNS, INFERENCE_BURSTS, COVERING_TRACES, INFERENCE_CHECKS}
OF_TRANSFORMS |= {EXPLAINED_MINUTES, POLLED_TRAFFIC, SIGNATURE_CURVES}
OF_TRANSFORMS |= {KEPT_CLASSES, KEPT_PERIODS, KEPT_SEGMENTS, KEPT_NODES}
#: parameters that `iosig.flows.steps.plan` passes to the model of stale days
OF_PLANNING = {"landings", "poll_days", "longest_interval_s", "counter_days", "counter_reaches_s"}
#: landed tables that are published unchanged
LANDED_AND_PUBLISHED = {REJECTS, TRACE_HEATMAPS}
#: tables of checks that SQL joins
OF_QUALITY = {QUARANTINE}
KEYWORDS = (
    "select|from|where|with|as|join|inner|left|right|full|cross|asof|semi|anti|on|using|and|or|not|is|null|in|case|when|"
    "then|else|end|group|by|order|having|qualify|window|partition|over|union|all|distinct|between|filter|exclude|desc|asc"
)


def statement(path: Path) -> str:
    """Return a file's SQL without comments and string literals."""
    return re.sub(r"'[^']*'", "''", re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")))


def declared(path: Path) -> Table:
    return table(path.stem)


def test_first_line_matches_contract() -> None:
    for path in FILES:
        made = declared(path)
        assert path.parent.name == made.layer
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        assert first == f"-- {made.layer}.{made.name}: {made.grain}"


def test_files_are_a_single_select() -> None:
    for path in FILES:
        statements = duckdb.extract_statements(path.read_text(encoding="utf-8"))
        assert [found.type for found in statements] == [duckdb.StatementType.SELECT], path
        assert ";" not in statement(path), path


def test_keywords_are_lower_case() -> None:
    for path in FILES:
        found = re.findall(rf"\b(?:{KEYWORDS})\b", statement(path), re.IGNORECASE)
        assert found, path
        assert [word for word in found if word != word.lower()] == [], path


def test_files_are_no_templates_and_are_formatted() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\{\{|\}\}|\{%|%\(|%s|\$\{", text), path
        assert "\t" not in text, path
        assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines()), path
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path


def test_files_use_only_provided_parameters(tmp_path: Path) -> None:
    item = WorkItem("", "", "", (), (), (), Settings(), "", "")
    given_ones = set(StepContext(tmp_path, item).parameters()) | OF_PLANNING
    for path in FILES:
        asked = set(re.findall(r"\$(\w+)", statement(path)))
        assert asked <= given_ones, path
        # `models.select` passes a parameter wherever its name occurs, even in a comment.
        text = path.read_text(encoding="utf-8")
        assert not [name for name in given_ones - asked if f"${name}" in text], path


def test_files_read_only_existing_tables() -> None:
    for path in FILES:
        own = f"{path.parent.name}.{path.stem}"
        for name in set(given.inputs(declared(path))) - set(given.FRAMES):
            layer, _, short = name.partition(".")
            if layer == "released":
                assert table(short).is_published, path
            else:
                assert table(short).layer == layer, path
                assert name != own or layer == "landed", path


def test_every_sql_table_has_a_file_and_vice_versa() -> None:
    of_sql = {made for made in TABLES if made.layer in ("stage", "samples")} - NOT_OF_SQL
    of_sql |= LANDED_AND_PUBLISHED | OF_TRANSFORMS | OF_QUALITY
    assert {models.model_path(made) for made in of_sql} == set(FILES)
