"""Naive implementation of `iosig.warehouse.sources.counters.jobstats`: line by line, every entry of every snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

HEADER = re.compile(r"(obdfilter|mdt)\.([!-<>-~]+)\.job_stats=(job_stats:)?[ \t]*")
COUNTER = re.compile(r"  ([a-z][a-z0-9_]{0,19}): *\{ (.*) \}")
VALUE = r"([a-z]+): *(\{[^{}]*\}|[A-Za-z0-9]+)"
ORDER = ("samples", "unit", "min", "max", "sum", "sumsq", "hist")
TIME = re.compile(r"  (snapshot_time|start_time|elapsed_time): *([0-9]+)(?:\.([0-9]{1,9}))?(?: secs\.[num]?secs)?")
JOB = re.compile(r'- job_id:(?: +(".*"|[^" ](?:.*[^ ])?)?)? *')
AGAIN = ("samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir", "read", "write")
KNOWN = {
    *("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "readdir", "getattr", "setattr"),
    *("getxattr", "setxattr", "statfs", "sync", "punch", "create", "destroy"),
}


def entries(text: str, target: str = "") -> Iterator[dict[str, Any]]:
    """Yield target, first line, job, times [us] and counts of every valid entry."""
    lines = text.split("\n")
    component = "mdt" if "MDT" in target else "ost"
    number = 0
    while number < len(lines):
        line = lines[number]
        if header := HEADER.fullmatch(line):
            component, target = {"obdfilter": "ost", "mdt": "mdt"}[header[1]], header[2]
        if not line.startswith("- job_id:"):
            number += 1
            continue
        end = number + 1
        while end < len(lines) and lines[end].startswith(" "):
            end += 1
        found = _entry(lines[number:end])
        if found is not None:
            yield {"target": target, "component": component, "line": number + 1, **found}
        number = end


def _entry(lines: list[str]) -> dict[str, Any] | None:
    job = JOB.fullmatch(lines[0])
    if job is None:
        return None
    found: dict[str, Any] = {"job_key": _job(job[1] or ""), "names": set()}
    for line in lines[1:]:
        if time := TIME.fullmatch(line):
            if time[1] in found:
                return None
            found[time[1]] = int(time[2]) * 10**6 + int((time[3] or "0").ljust(6, "0")[:6])
        elif counter := COUNTER.fullmatch(line):
            if counter[1] in found["names"]:
                return None
            found["names"].add(counter[1])
            fields = _fields(counter[2])
            if fields is None:
                return None
            for column, value in _counts(counter[1], fields):
                found[column] = found.get(column, 0) + value
        else:
            return None
    return found if "snapshot_time" in found and found["names"] else None


def _fields(text: str) -> dict[str, str] | None:
    """Fields of a counter, each once and in the order of Lustre, with valid numbers."""
    parts = [re.fullmatch(VALUE, part) for part in re.split(r", (?![^{]*\})", text)]
    if not all(parts):
        return None
    fields = {part[1]: part[2] for part in parts if part}
    is_whole = len(fields) == len(parts) and [name for name in ORDER if name in fields] == list(fields)
    numbers = [value for name, value in fields.items() if name not in ("unit", "hist")]
    if not is_whole or not {"samples", "unit"} <= set(fields) or not all(map(str.isdigit, numbers)):
        return None
    if fields["unit"] not in ("bytes", "reqs", "usecs", "usec", "pages", "locks"):
        return None
    return None if fields["unit"] == "bytes" and "sum" not in fields else fields


def _counts(name: str, fields: dict[str, str]) -> Iterator[tuple[str, int]]:
    if fields["unit"] == "bytes":
        way = {"read": "read", "write": "written"}.get(name.removesuffix("_bytes"))
        if way is None:
            return
        yield f"total_{way}_bytes", int(fields["sum"])
        yield f"total_{name.split('_')[0]}_count", int(fields["samples"])
    elif name not in AGAIN:
        yield f"total_{name if name in KNOWN else 'other'}_count", int(fields["samples"])


def _job(text: str) -> str:
    if not text.startswith('"'):
        return text
    return re.sub(r"\\x([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text[1:-1])
