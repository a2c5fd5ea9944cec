"""Build the page that describes all tables: the meaning of a row, the columns with their units, and example SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iosig.warehouse.contracts import Table

#: example queries for tables in which the first rows are not informative
EXAMPLES = {
    "attributed_io": "select application_id, sum(attributed_bytes) as bytes from attributed_io group by all order by "
    "bytes desc limit 10",
    "classes": "select direction, label, count(*) from classes where outcome = 'classified' "
    "and metric = 'bytes' group by all order by all",
    "attribution_daily": "select filesystem, direction, polled_on, attributed_bytes / measured_bytes as share from "
    "attribution_daily order by polled_on",
    "job_io": "select job_id, filesystem, direction, estimated_bytes, estimate_source from job_io "
    "order by estimated_bytes desc nulls last limit 10",
    "job_io_sources": "select source, direction, outcome, count(*), sum(own_bytes) from job_io_sources group by all",
    "jobs": "select state, count(*) from jobs where is_application_run group by all order by 2 desc",
    "periods": "select subject_kind, median(period_s), count(*) from periods where is_default and outcome = 'periodic' "
    "group by all",
    "polls_daily": "select filesystem, polled_on, missing_ratio from polls_daily order by missing_ratio desc limit 10",
    "quality": "select severity, table_name, expectation, observed from quality where not success",
    "rejects": "select reason, count(*) from rejects group by all order by 2 desc",
    "signatures": "select application_id, direction, volume_bytes, expected_correlation from signatures "
    "where is_default and "
    "outcome = 'extracted' order by volume_bytes desc limit 10",
    "filesystem_rates": "select time_bucket(interval 1 hour, polled_at) as hour_at, sum(read_bytes), "
    "sum(written_bytes) "
    "from filesystem_rates group by all order by all",
    "trace_counters": "select module, count(*), sum(read_bytes), sum(written_bytes) from trace_counters group by all",
}


def make_variables(tables: list[Table], row_counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the template variables of the tables page."""
    return {
        "tables": [
            {
                "name": table.name,
                "grain": table.grain,
                "row_count": row_counts[table.name],
                "key": table.key,
                "columns": table.columns,
                "example": EXAMPLES.get(table.name),
            }
            for table in tables
        ]
    }
