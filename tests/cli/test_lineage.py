"""`iosig lineage` shows tables, their columns and their dependencies."""

from __future__ import annotations

import json

from tests.nights import Cli


def test_lineage_lists_tables_columns_and_dependencies(cli: Cli) -> None:
    code, out, _ = cli("lineage")
    assert code == 0
    assert "transforms.job_io" in out
    code, out, _ = cli("lineage", "applications", "--columns")
    assert code == 0
    assert "samples.job_io_sources" in out
    assert "stage.jobs.started_at" in out
    assert "transforms.periods" not in out.partition("Tables that depend on it")[0]
    document = json.loads(cli("lineage", "applications", "--json")[1])
    assert document["tables"][0] == {
        "table": "samples.applications", "step": "applications", "is_sql": True,
        "tables": ["stage.jobs", "samples.job_io_sources", "samples.trace_samples"],
    }  # fmt: skip
    assert "transforms.classes" in document["downstream"]
