from __future__ import annotations

import pytest

from iosig.warehouse.sources.counters import metrics
from iosig.warehouse.sources.protocol import Reading


@pytest.mark.parametrize(
    ("name", "operation", "component", "column"),
    [
        ("lustre_job_read_bytes_total", "read_bytes", "ost", "total_read_bytes"),
        ("lustre_write_samples_total", "write", "ost", "total_write_count"),
        ("lustre_stats_total", "mkdir", "mdt", "total_mkdir_count"),
        ("lustre_job_stats_total", "read_bytes", "mdt", "total_read_count"),
        ("lustre_job_stats_total", "read_bytes", "ost", None),
        ("lustre_job_stats_total", "read", "mdt", None),
        ("lustre_job_stats_total", "quotactl", "ost", "total_other_count"),
        ("gpfs_perf_operations_total", "inode_updates", None, "total_other_count"),
        ("gpfs_perf_operations_total", "closes", None, "total_close_count"),
        ("site_wr", None, None, "total_written_bytes"),
    ],
)
def test_metric_is_mapped_to_its_column(name: str, operation: str | None, component: str | None, column: str) -> None:
    columns = metrics.map_metrics(Reading(columns={"total_written_bytes": "site_wr", "target": "ost"}))
    assert metrics.find_column(name, operation, component, columns) == column
