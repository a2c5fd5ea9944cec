"""Naive implementation of `iosig.warehouse.sources.counters.ldms_csv`: row by row, for the schemas of Lustre."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

COLUMNS = {
    "read_bytes_sum": "total_read_bytes",
    "write_bytes_sum": "total_written_bytes",
    "read": "total_read_count",
    "write": "total_write_count",
    "fsync": "total_sync_count",
    "truncate": "total_punch_count",
    "get_info": "total_other_count",
    "set_info": "total_other_count",
    "quotactl": "total_other_count",
}
OPERATIONS = {
    *("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "readdir", "getattr", "setattr"),
    *("getxattr", "setxattr", "statfs", "sync", "punch", "create", "destroy"),
}


def rows(text: str, header: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield target, job_key, at_us (whole seconds for jobs) and the columns of each row."""
    names = _names(header) if header else None
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith(("#", "Time", "\ufeff")):
            names = _names(line) or names
            continue
        try:
            found = _row(dict(zip(names or [], line.split(","), strict=True)))
        except (ValueError, LookupError):
            continue
        yield found


def _names(line: str) -> list[str]:
    names = [name.strip() for name in line.removeprefix("\ufeff").removeprefix("#").split(",")]
    return names if "ProducerName" in names else []


def _row(cells: dict[str, str]) -> dict[str, Any]:
    plain = {name.removeprefix("stats.").replace(".", "_"): cell for name, cell in cells.items()}
    at_us = int(plain["Time_msec"]) * 1000 if "Time_msec" in plain else round(float(plain["Time"]) * 1e6)
    if "llite" in plain:
        target = f"{plain['ProducerName']}:{plain['llite']}"
        job = None
    else:
        target = plain["ost"] if "ost" in plain else plain["mdt"]
        job = plain["job_id"].strip('"') if "snapshot_time" in plain else None
    found: dict[str, Any] = {"target": target, "job_key": job, "at_us": at_us if job is None else at_us - at_us % 10**6}
    for name, cell in plain.items():
        column = COLUMNS.get(name) or (f"total_{name}_count" if name in OPERATIONS else None)
        if column:
            found[column] = found.get(column, 0) + int(cell)
    return found
