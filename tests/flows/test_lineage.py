"""Lineage agrees with the declarations of steps and the tables that their SQL reads."""

from __future__ import annotations

import pytest

from iosig.flows.lineage import downstream, get_column_lineage, get_lineage, lineage, upstream
from iosig.flows.steps.order import STEPS
from iosig.warehouse.contracts import TABLES
from iosig.warehouse.contracts.samples import APPLICATIONS
from iosig.warehouse.contracts.series import SERIES_INTERVALS
from iosig.warehouse.contracts.signatures import SIGNATURES
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.releases import list_published_tables
from iosig.warehouse.store.models import model_path


def test_every_published_table_has_a_lineage() -> None:
    assert {table.name for table in list_published_tables()} <= {found.table.name for found in lineage()}


def test_models_read_only_tables_that_their_steps_declare() -> None:
    declared = {
        step.name: {f"{table.layer}.{table.name}" for source in step.reads for table in source.tables}
        | {f"{table.layer}.{table.name}" for table in step.writes}
        for step in STEPS
    }
    within_queries = {found.name for found in lineage()} - {name for names in declared.values() for name in names}
    for found in lineage():
        undeclared = set(found.tables) - declared[found.step] - within_queries
        assert not undeclared, (found.name, undeclared)


def test_lineage_connects_landed_tables_and_estimates_both_ways() -> None:
    before, after = upstream("transforms.job_io"), downstream("stage.filesystem_rates")
    assert before[:2] == ["samples.job_io_sources", "transforms.attributed_io"]
    assert {"landed.polls", "landed.job_records", "transforms.polled_minutes", "stage.filesystem_rates"} <= set(before)
    assert "transforms.job_io" in after
    assert "transforms.job_io" not in before


def test_column_lineage_is_derived_from_sql() -> None:
    columns = {column.column: column.sources for column in get_column_lineage(APPLICATIONS)}
    assert columns["application_id"] == ("stage.jobs.application_id",)
    assert columns["first_run_started_at"] == ("stage.jobs.started_at",)
    assert get_column_lineage(SIGNATURES) == [], "Python computes it"
    # landed tables have additional columns with the order of landing
    assert tuple(column.column for column in get_column_lineage(SERIES_INTERVALS)) == SERIES_INTERVALS.column_names


@pytest.mark.long
def test_columns_of_every_model_match_its_schema() -> None:
    for table in TABLES:
        if model_path(table).is_file():
            assert tuple(column.column for column in get_column_lineage(table)) == table.column_names, table.name


def test_unknown_table_is_refused_with_similar_names() -> None:
    assert get_lineage("job_io").step == "job i/o"
    with pytest.raises(UsageError, match=r"No step writes a table job_oi\. Similar: job_io"):
        get_lineage("job_oi")
    with pytest.raises(UsageError, match="`iosig lineage` lists the tables"):
        get_lineage("zzzzzz")
