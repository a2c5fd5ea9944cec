"""Map metrics and labels, as in Prometheus, to iosig's columns and roles.

Supported are lustre_exporter (HPE, GSI; also behind lustre_exporter_slurm), lustrefs-exporter (DDN), gpfs_exporter, and
the metrics of clients that DAOS' daos_agent exports; the settings can add a site's own metrics.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from iosig.warehouse.sources.counters.samples import find_components, operation_column
from iosig.warehouse.sources.protocol import Reading

#: labels of each role; the first one that a series has is used
ROLES: Final = {
    "component": ("component",),
    "target": ("target", "nodename", "instance"),
    "job_key": ("jobid",),
    "filesystem": ("fs", "pool"),
    "collector": ("instance",),
    "operation": ("operation",),
    "process": ("pid",),
}
#: column of each metric, or None if it depends on the label `operation`
COLUMNS: Final[dict[str, str | None]] = {
    f"{start}{rest}": column
    for start in ("lustre_", "lustre_job_")
    for rest, column in {
        "read_bytes_total": "total_read_bytes",
        "write_bytes_total": "total_written_bytes",
        "read_samples_total": "total_read_count",
        "write_samples_total": "total_write_count",
        "stats_total": None,
    }.items()
} | {
    "gpfs_perf_read_bytes_total": "total_read_bytes",
    "gpfs_perf_write_bytes_total": "total_written_bytes",
    "gpfs_perf_operations_total": None,
    "client_pool_xferred_fetch": "total_read_bytes",
    "client_pool_xferred_update": "total_written_bytes",
    "client_pool_ops_fetch": "total_read_count",
    "client_pool_ops_update": "total_write_count",
}
#: metric that names the node, which a file system's other metrics lack
GPFS_NODE = "gpfs_perf_info"
#: start of the metrics of DAOS' clients, which each process counts from 0
_DAOS = "client_pool_"
_GPFS_OPERATIONS = {
    **{"opens": "open", "closes": "close", "reads": "read", "writes": "write"},
    **{"read_dir": "readdir", "inode_updates": "other"},
}


def map_metrics(reading: Reading) -> dict[str, str | None]:
    """Map each metric, known or of the site, to its column."""
    site_columns = {metric: column for column, metric in reading.columns.items() if column.startswith("total_")}
    return COLUMNS | site_columns | {GPFS_NODE: None}


def map_labels(reading: Reading) -> dict[str, tuple[str, ...]]:
    """Map each role to its labels, with the site's own labels first."""
    site_labels = {role: label for role, label in reading.columns.items() if role in ROLES}
    return {role: (*((site_labels[role],) if role in site_labels else ()), *names) for role, names in ROLES.items()}


def is_of_client() -> pl.Expr:
    """Test whether the metric `name` is of a node that mounts a file system, which may not be a label."""
    return pl.col("name").str.starts_with("gpfs_") | pl.col("name").str.starts_with(_DAOS)


def find_column(name: str, operation: str | None, component: str | None, columns: dict[str, str | None]) -> str | None:
    """Look up the column of a series; None if another series counts the same."""
    if (column := columns.get(name)) is not None or operation is None:
        return column
    if name.startswith("gpfs_"):
        return operation_column(_GPFS_OPERATIONS.get(operation, operation))
    if operation in ("read_bytes", "write_bytes"):
        # OSTs have separate metrics for bytes
        return operation_column(operation.removesuffix("_bytes")) if component == "mdt" else None
    return None if operation in ("read", "write") else operation_column(operation)


def select_counted_series(series: pl.DataFrame, columns: dict[str, str | None]) -> pl.DataFrame:
    """Add the column of each series, and drop series that repeat the counts of others.

    series: `name`, and the roles as string columns, NULL for an absent label. The result has KEYS and `column` instead.
    A missing component is inferred from the target's name; if this fails, it is a server.
    """
    return assign_columns(series, columns).filter(pl.col("column").is_not_null())


def assign_columns(series: pl.DataFrame, columns: dict[str, str | None]) -> pl.DataFrame:
    """Add the column of each series like `select_counted_series`, but as NULL if another series counts the same."""
    distinct = series.select("name", "operation", "component").unique()
    assigned = [find_column(name, operation, component, columns) for name, operation, component in distinct.iter_rows()]
    distinct = distinct.with_columns(pl.Series("column", assigned, pl.String))
    client = pl.when(is_of_client()).then(pl.lit("client"))
    component = pl.coalesce("component", client, find_components(series["target"]))
    is_process = pl.col("name").str.starts_with(_DAOS) & pl.col("process").is_not_null()
    target = pl.when(is_process).then(pl.format("{}:{}", "target", "process")).otherwise("target")
    result = series.join(
        distinct, on=["name", "operation", "component"], how="left", nulls_equal=True, maintain_order="left"
    )
    return result.with_columns(component=component, target=target).drop("name", "operation", "process")
