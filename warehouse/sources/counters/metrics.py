"""Metrics by name and labels, as Prometheus has them: what they count, of what, for whom.

Known are lustre_exporter (HPE, GSI; also behind lustre_exporter_slurm), lustrefs-exporter (DDN) and gpfs_exporter; a
site's own are named in the settings.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from iosig.warehouse.sources.counters.samples import components, operation_column
from iosig.warehouse.sources.protocol import Reading

#: a label's role; the first one that a series has counts
ROLES: Final = {
    "component": ("component",),
    "target": ("target", "nodename", "instance"),
    "job_key": ("jobid",),
    "filesystem": ("fs",),
    "collector": ("instance",),
    "operation": ("operation",),
}
#: metric to column; None: the label `operation` says it
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
}
#: says on which node the metrics of a file system are counted, which do not say it themselves
GPFS_NODE = "gpfs_perf_info"
_GPFS_OPERATIONS = {
    **{"opens": "open", "closes": "close", "reads": "read", "writes": "write"},
    **{"read_dir": "readdir", "inode_updates": "other"},
}


def columns_of(reading: Reading) -> dict[str, str | None]:
    """Return the metrics there are, and the column of each: those known, and the site's own."""
    own = {theirs: ours for ours, theirs in reading.columns.items() if ours.startswith("total_")}
    return COLUMNS | own | {GPFS_NODE: None}


def roles_of(reading: Reading) -> dict[str, tuple[str, ...]]:
    """Return which labels say what, the site's own first."""
    own = {ours: theirs for ours, theirs in reading.columns.items() if ours in ROLES}
    return {role: (*((own[role],) if role in own else ()), *names) for role, names in ROLES.items()}


def column_of(name: str, operation: str | None, component: str | None, columns: dict[str, str | None]) -> str | None:
    """Return the column that a series counts into; None where it is counted elsewhere."""
    if (column := columns.get(name)) is not None or operation is None:
        return column
    if name.startswith("gpfs_"):
        return operation_column(_GPFS_OPERATIONS.get(operation, operation))
    if operation in ("read_bytes", "write_bytes"):
        # of an OST these are metrics of their own
        return operation_column(operation.removesuffix("_bytes")) if component == "mdt" else None
    return None if operation in ("read", "write") else operation_column(operation)


def meant(series: pl.DataFrame, columns: dict[str, str | None]) -> pl.DataFrame:
    """Return series with the column that each counts into; those that count elsewhere are left out.

    series: `name`, the roles as columns of text, NULL where a label is absent. The result has KEYS and `column` in
    their place; a component that is not told is that of the target's name, else a server.
    """
    return with_columns_of(series, columns).filter(pl.col("column").is_not_null())


def with_columns_of(series: pl.DataFrame, columns: dict[str, str | None]) -> pl.DataFrame:
    """Return all series as `meant` does, NULL in `column` where they count elsewhere."""
    told = series.select("name", "operation", "component").unique()
    known = [column_of(name, operation, component, columns) for name, operation, component in told.iter_rows()]
    told = told.with_columns(pl.Series("column", known, pl.String))
    is_gpfs = pl.col("name").str.starts_with("gpfs_")
    component = pl.coalesce("component", pl.when(is_gpfs).then(pl.lit("client")), components(series["target"]))
    found = series.join(
        told, on=["name", "operation", "component"], how="left", nulls_equal=True, maintain_order="left"
    )
    return found.with_columns(component=component).drop("name", "operation")
