"""Naive implementation of `iosig.warehouse.sources.counters.prometheus`: metrics as text, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LINE = re.compile(r"([a-zA-Z_:][\w:]*)\{(.*)\} +([0-9][0-9.eE+-]*)(?: +([0-9.]+))?\s*")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
BYTES = {
    "read_bytes_total": "total_read_bytes",
    "write_bytes_total": "total_written_bytes",
    "read_samples_total": "total_read_count",
    "write_samples_total": "total_write_count",
}
KNOWN = {
    *("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "readdir", "getattr", "setattr"),
    *("getxattr", "setxattr", "statfs", "sync", "punch", "create", "destroy"),
}
AGAIN = {"samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir", "read", "write"}


def values(text: str) -> Iterator[tuple[str, str | None, str, int]]:
    """Yield target, job, column and value of each line of Lustre metrics."""
    for _, target, job, column, value in _lines(text):
        yield target, job, column, value


def counters(text: str) -> dict[tuple[str, str, str | None], dict[str, Any]]:
    """Map (component, target, job) of each Lustre counter to its values by column."""
    found: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    for component, target, job, column, value in _lines(text):
        own = found.setdefault((component, target, job), {})
        own[column] = own.get(column, 0) + value
    return found


def _lines(text: str) -> Iterator[tuple[str, str, str | None, str, int]]:
    for line in text.split("\n"):
        match = LINE.fullmatch(line)
        if match is None or not (name := re.fullmatch(r"lustre_(?:job_)?(\w+)", match[1])):
            continue
        labels = dict(LABEL.findall(match[2]))
        column = BYTES.get(name[1]) or _column(name[1], labels)
        if column is not None and "target" in labels:
            value = int(float(match[3])) if "e" in match[3] else int(match[3].partition(".")[0])
            yield labels.get("component", ""), labels["target"], labels.get("jobid"), column, value


def _column(name: str, labels: dict[str, str]) -> str | None:
    operation = labels.get("operation", "")
    if name != "stats_total" or operation in AGAIN:
        return None
    if operation in ("read_bytes", "write_bytes"):
        return f"total_{operation.removesuffix('_bytes')}_count" if labels.get("component") == "mdt" else None
    return f"total_{operation if operation in KNOWN else 'other'}_count"
