"""Naive implementation of `iosig.warehouse.sources.counters.influx_line`: Telegraf's lustre2, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

NAMED = {
    "read_bytes": "total_read_bytes",
    "write_bytes": "total_written_bytes",
    "read_calls": "total_read_count",
    "write_calls": "total_write_count",
}
OPERATIONS = {
    *("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "readdir", "getattr", "setattr"),
    *("getxattr", "setxattr", "statfs", "sync", "punch", "create", "destroy"),
}
AGAIN = {"samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir"}
UNITS = {10: 10**6, 13: 10**3, 16: 1}


def points(text: str) -> Iterator[dict[str, Any]]:
    """Yield target, job_key, at_us and the columns of each line of lustre2."""
    for line in re.split("\r?\n", text):
        try:
            found = _point(line)
        except (ValueError, LookupError):
            continue
        if found:
            yield found


def _point(line: str) -> dict[str, Any] | None:
    head, body, at = line.rstrip().split(" ")
    measurement, *tags = head.split(",")
    if measurement != "lustre2":
        return None
    told = dict(tag.split("=") for tag in tags)
    if {"client", "brw_section"} & set(told):
        return None
    at_us = int(at) * UNITS[len(at)] if len(at) in UNITS else int(at) // 1000
    found: dict[str, Any] = {"target": told["name"], "job_key": told.get("jobid"), "at_us": at_us}
    for field in body.split(","):
        name, value = field.split("=")
        column = _column(name, is_job="jobid" in told)
        if column:
            found[column] = found.get(column, 0) + int(value.rstrip("iu"))
    return found


def _column(name: str, *, is_job: bool) -> str | None:
    if is_job and not name.startswith("jobstats_"):
        raise ValueError(name)
    plain = name.removeprefix("jobstats_") if is_job else name
    if plain in NAMED:
        return NAMED[plain]
    operation = plain.removeprefix("ost_")
    if operation in OPERATIONS:
        return f"total_{operation}_count"
    is_other = is_job and operation not in AGAIN and not plain.endswith(("_min_size", "_max_size"))
    return "total_other_count" if is_other else None
