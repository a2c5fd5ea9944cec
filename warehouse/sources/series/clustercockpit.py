"""Read `data.json` of ClusterCockpit's job archives: rates of a job's nodes, by the schema job-data of cc-lib.

A job is one subject: the rates of its nodes and file systems are summed. The start comes from `meta.json` in the same
folder, since `data.json` has no time. Value n of a metric is the rate of the step that ends n + 1 steps after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.series import SERIES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source, build_near_miss
from iosig.warehouse.sources.rows import json_items
from iosig.warehouse.sources.rows.documents import MalformedError, items, members, text
from iosig.warehouse.sources.rows.faults import validate_rows
from iosig.warehouse.sources.rows.field_use import note_fields
from iosig.warehouse.sources.rows.rejects import RefusedRow, build_reject_frame, reject_batches

#: names of rates of file systems; `file_bw` counts both directions
_RATE = re.compile(r"(?P<system>.+?)_(?:(?P<direction>read|write)_bw|bw_(?P<last>read|write))")
_FILE_RATE = "file_bw"
#: networks, whose rates have the same names
_NETWORKS = frozenset({"eth", "ic", "ib", "net", "opa", "mem"})
_OF_SYSTEM = {"read_bw": "read", "write_bw": "write"}
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1024.0, "Mi": 1024.0**2, "Gi": 1024.0**3}
_NODE = "node"
_SERIES = r'"timestep"\s*:\s*[0-9.]+\s*,\s*"(?:series|statisticsSeries|unit)"|"unit"\s*:\s*\{[^}]*\}\s*,\s*"timestep"'
_OWN = re.compile(rf'\s*\{{\s*"\w+"\s*:\s*[\[{{].*?(?:{_SERIES})', re.DOTALL)
_MAX_START_S = 1e10
_REMEDY = "Copy the job's folder of the archive again."
_NO_RATES = (
    "The job has no rates of file systems.",
    "Configure ClusterCockpit's metrics of file systems with the unit B/s, such as lustre_read_bw and lustre_write_bw.",
)


def sniff(head: Head) -> bool:
    """Recognize an object of metrics with their units and time steps."""
    return '"metricConfig"' not in head.text and _OWN.match(head.text) is not None


@dataclass(frozen=True, slots=True)
class _Job:
    """The job of an archive's folder."""

    subject_id: str
    start_s: float
    node_count: int


@dataclass(frozen=True, slots=True)
class _Rates:
    """Rates of a direction [B/s]: one list per node, None for a missing value."""

    direction: str
    step_s: float
    nodes: list[list[float | None]]


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read the job's own rates; a malformed metric is refused, and its direction is omitted.

    Only metrics of the unit B/s count: some sites give counts of operations (`nfs4_read`) another unit than B/s, or the
    wrong one, so metrics are taken by name as well. `file_bw` counts only without metrics of single directions.
    """
    del reading
    job = _find_job(path)
    rates: list[_Rates] = []
    refused: list[RefusedRow] = []
    spoilt: set[str] = set()
    for number, (name, value) in enumerate(json_items.members(path, _REMEDY), start=1):
        for metric, direction, scopes in _select_metrics(name, value):
            try:
                rates.append(_parse_metric(metric, direction, scopes))
            except MalformedError as error:
                refused.append((number, f"The metric {metric[:60]} is not readable: {error}.", _REMEDY, None))
                spoilt.add(direction)
    yield from reject_batches(build_reject_frame(refused))
    directions = sorted({each.direction for each in rates} - spoilt)
    has_own = bool({"read", "write"} & ({each.direction for each in rates} | spoilt))
    used = [direction for direction in directions if direction != "unstated" or not has_own]
    if not used:
        raise InputRefused(*_NO_RATES)
    for direction in used:
        rows = _sum_nodes([each for each in rates if each.direction == direction], direction, job)
        yield from validate_rows(SERIES, rows).batches(SERIES)


def _find_job(path: Path) -> _Job:
    """Read the job of the same folder; raise InputRefused without one."""
    job: Mapping[str, object] = {}
    place = next((place for end in ("", ".gz", ".zst") if (place := path.with_name(f"meta.json{end}")).is_file()), None)
    if place is not None:
        with suppress(InputRefused):
            job = dict(json_items.members(place, _REMEDY))
    start, number, cluster = (job.get(name) for name in ("startTime", "jobId", "cluster"))
    is_start = isinstance(start, int | float) and not isinstance(start, bool) and 0 < start < _MAX_START_S
    if not is_start or not isinstance(number, int) or not isinstance(cluster, str):
        raise InputRefused(
            "The job and its start are unknown: no readable meta.json is in the folder of data.json.",
            "Land the archive with its folders.",
        )
    nodes = job.get("numNodes")
    return _Job(f"{cluster}-{number}", float(str(start)), nodes if isinstance(nodes, int) and nodes > 0 else 1)


def _select_metrics(name: str, value: object) -> Iterator[tuple[str, str, object]]:
    """Yield the name, direction and scopes of each rate of a file system in a member of the document."""
    if name == "filesystems":
        for system in value if isinstance(value, list) else []:
            for metric, own_direction in _OF_SYSTEM.items():
                if isinstance(system, dict) and metric in system:
                    yield f"filesystems.{metric}", own_direction, system[metric]
            note_fields(_OF_SYSTEM, system if isinstance(system, dict) else ())
        return
    match = _RATE.fullmatch(name)
    direction: str | None = "unstated" if name == _FILE_RATE else None
    if match and match["system"] not in _NETWORKS:
        direction = match["direction"] or match["last"]
    note_fields({name: f"bytes_per_s ({direction})"} if direction else {}, [name])
    if direction:
        yield name, direction, value


def _parse_metric(name: str, direction: str, value: object) -> _Rates:
    metric = members(members(value, name).get(_NODE), f"{name}.{_NODE}")
    unit = members(metric.get("unit"), "unit")
    base, prefix = (text(unit.get(part) or "", f"unit.{part}") for part in ("base", "prefix"))
    if base != "B/s" or prefix not in _PREFIXES:
        raise MalformedError(f"its unit is {prefix}{base or 'not stated'}, not B/s"[:60])
    step = metric.get("timestep")
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < _MAX_START_S:
        raise MalformedError("its timestep is not a number of seconds")
    nodes = [_parse_node(node, _PREFIXES[prefix]) for node in items(metric.get("series"), "series")]
    if not nodes:
        raise MalformedError("it has no series")
    return _Rates(direction, float(step), nodes)


def _parse_node(node: object, factor: float) -> list[float | None]:
    values = items(members(node, "series").get("data"), "data")
    numbers = [value if isinstance(value, int | float) and not isinstance(value, bool) else None for value in values]
    if any(value is not None and number is None for value, number in zip(values, numbers, strict=True)):
        raise MalformedError("a value is not a number")
    if any(number is not None and (number < 0 or number == float("inf")) for number in numbers):
        raise MalformedError("a value is not a non-negative number")
    # a value that is not a number in JSON, which some writers use for a missing one
    return [None if number is None or number != number else factor * number for number in numbers]


def _sum_nodes(rates: list[_Rates], direction: str, job: _Job) -> pl.DataFrame:
    """Sum the rates of all nodes and file systems in each step; a missing one makes the sum missing."""
    step_s = rates[0].step_s
    nodes = [node for each in rates for node in each.nodes]
    if any(each.step_s != step_s for each in rates):
        raise InputRefused(f"The rates of {direction} have different time steps.", "Configure one time step for them.")
    sums = [None if None in step else sum(filter(None, step)) for step in zip_longest(*nodes)]
    rows = pl.DataFrame({"bytes_per_s": sums}, schema={"bytes_per_s": pl.Float64}).with_row_index("line", 1)
    return rows.with_columns(
        pl.col("line").cast(pl.Int64),
        subject_id=pl.lit(job.subject_id),
        direction=pl.lit(direction),
        time_s=job.start_s + step_s * pl.col("line"),
        interval_s=pl.lit(step_s),
        flag=pl.when(pl.col("bytes_per_s").is_null()).then(pl.lit("missing")),
        node_count=pl.lit(job.node_count, pl.Int64),
    )


SOURCE = Source(
    name="clustercockpit-data",
    doc="Rates of a job of ClusterCockpit's archive: data.json, beside its meta.json.",
    kind="series",
    sniff=sniff,
    read=read,
    precedence=5,
    find_near_miss=build_near_miss(
        r'\A\s*\{(?=[\s\S]*"metricConfig"\s*:)',
        "This is cluster.json of ClusterCockpit, which describes a cluster and has no jobs.",
        "Land the folders of its jobs.",
    ),
)
