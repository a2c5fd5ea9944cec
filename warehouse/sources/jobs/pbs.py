"""Read PBS Professional, OpenPBS and Torque accounting records: `MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value …`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.jobs.records import settle
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source, build_near_miss
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.field_use import is_recording, note_fields
from iosig.warehouse.sources.rows.log_lines import blocks
from iosig.warehouse.sources.rows.rejects import build_refused_rows, reject_batches

#: record types that start a run: started, restarted from a checkpoint
STARTED = ("S", "T")
#: record types that end a run: ended, rerun, aborted by the server
ENDED = ("E", "R", "A")
DELETED = "D"
#: record types that add no information to a run's S, E, R, A or D record (OpenPBS acct.h, Torque manual 9.1):
#: queued, moved, altered, held, suspended, resumed, parts of phased jobs, reservations, provisioning, licenses
SKIPPED = tuple("QMaCzrsuceUYBFKkPpL")
_KINDS = (*STARTED, *ENDED, DELETED)
_RECORD = (
    r"^(?P<month>[0-9]{2})/(?P<day>[0-9]{2})/(?P<year>[0-9]{4}) (?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2});"
    r"(?P<kind>[A-Za-z]);(?P<job_id>[^;]*);(?P<message>.*)$"
)
# A quoted value is one token, so that its content is not mistaken for keys.
_TOKEN = r"""(?:^| )[A-Za-z_][A-Za-z0-9_.\-]*=(?:"[^"]*"|'[^']*'|\S*)"""
_KEYS = {
    "user": "user",
    "account": "account",
    "project": "project",
    "jobname": "job_name",
    "queue": "partition",
    "ctime": "ctime",
    "qtime": "qtime",
    "start": "start",
    "end": "end",
    "Exit_status": "exit_code",
    "exec_host": "exec_host",
    "exec_vnode": "exec_vnode",
    "array_indices": "array_indices",
    "requestor": "requestor",
    "unique_node_count": "unique_node_count",
    "total_execution_slots": "slots",
    "Resource_List.mpiprocs": "mpiprocs",
    "Resource_List.mppnodect": "mppnodect",
    "Resource_List.mppnppn": "mppnppn",
    "Resource_List.mppwidth": "mppwidth",
    "Resource_List.nodect": "nodect",
    "Resource_List.nodes": "nodes",
    "Resource_List.select": "select",
    "Resource_List.place": "place",
}
_MPP = ("mppwidth", "mppnppn", "mppnodect")
_NUMBER = r"^([0-9]{1,9})$"
_NO_PROJECT = "_pbs_project_default"
_ODD_REMEDY = "The record landed. Check the number of nodes of the run in the scheduler."
_SNIFFED_LINES = 20
#: id of a job array, which sums up its jobs: `12[].server`
_ARRAY = r"\[\]"
_FIRST_LINE = re.compile(r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2};[A-Za-z];[^;]+;")


def sniff(head: Head) -> bool:
    """Recognize an accounting record in the first lines."""
    return any(map(_FIRST_LINE.match, [line for line in head.lines if line.strip()][:_SNIFFED_LINES]))


def _fault(reason: pl.Expr, remedy: str) -> pl.Expr:
    return pl.struct(reason=reason, remedy=pl.lit(remedy))


def _head(lines: pl.DataFrame) -> pl.DataFrame:
    """Split each line into its head (time, type, id) and message."""
    return lines.with_columns(pl.col("raw").str.extract_groups(_RECORD).alias("head")).unnest("head")


def _faults(frame: pl.DataFrame) -> pl.DataFrame:
    """Find faults of lines: not a record, unknown type, truncated message, invalid exit status."""
    kind, status = pl.col("kind"), pl.col("exit_code")
    remainder = pl.col("message").str.replace_all(_TOKEN, "").str.strip_chars()
    # The server writes free text into A records.
    is_cut = kind.is_in([*STARTED, "E", "R", DELETED]) & (remainder != "")
    fault = (
        pl.when(kind.is_null())
        .then(_fault(pl.lit("The line is not an accounting record."), "Check for a truncated or foreign line."))
        .when(~kind.is_in([*_KINDS, *SKIPPED]))
        .then(_fault(pl.format("The record type {} does not exist.", kind), "Check for a damaged line."))
        .when(is_cut)
        .then(
            _fault(
                pl.format("The record has {}, which is not key=value.", remainder.str.slice(0, 60)),
                "Check for a truncated line, or for an unquoted value with blanks.",
            )
        )
        .when(~status.str.contains(r"^-?[0-9]{1,9}$"))
        .then(
            _fault(
                pl.format("The exit status {} is not a number.", status.str.slice(0, 60)), "Check for a damaged line."
            )
        )
    )
    return frame.with_columns(fault=fault).unnest("fault")


def _values(frame: pl.DataFrame) -> pl.DataFrame:
    """Extract the values of the keys that are used, one row per `line`."""
    token = pl.col("token")
    pairs = (
        frame.select("line", token=pl.col("message").str.extract_all(_TOKEN))
        .explode("token", empty_as_null=True, keep_nulls=True)
        .select(
            "line",
            key=token.str.extract(r"^ ?([^=]+)=", 1),
            value=token.str.extract(r"^[^=]+=(.*)$", 1).str.strip_chars("\"'"),
        )
    )
    if is_recording():
        note_fields(_KEYS, pairs["key"].drop_nulls().unique(maintain_order=True))
    pairs = pairs.filter(pl.col("key").is_in(list(_KEYS)))
    firsts = [pl.col("value").filter(pl.col("key") == key).first().alias(name) for key, name in _KEYS.items()]
    return frame.select("line").join(pairs.group_by("line").agg(firsts), on="line", how="left", maintain_order="left")


def _chunk_count(name: str) -> pl.Expr:
    """Sum the counts in a request such as `4:ppn=8+2:ppn=4` or `cn01+cn02`; a chunk without a count counts as one."""
    count = pl.element().str.extract(r"^([0-9]{1,9})(?::|$)", 1).cast(pl.Int64).fill_null(1)
    total = pl.col(name).str.split("+").list.eval(count).list.sum()
    return pl.when(~pl.col(name).str.contains(r"(?:^|\+)[0-9]{10}")).then(total)


def _host_count(name: str) -> pl.Expr:
    """Count the distinct hosts in a list such as `cn01/0*8+cn01/1+cn02/0-7`; NULL if a range hides their number."""
    hosts = pl.col(name).str.split("+").list.eval(pl.element().str.extract(r"^([^/]+)", 1))
    return pl.when(~pl.col(name).str.contains(r"[\[,]")).then(hosts.list.drop_nulls().list.n_unique())


def _vnode_hosts() -> pl.Expr:
    """List the distinct hosts in `exec_vnode`, such as `(cn01:ncpus=8)+(cn02[0]:ncpus=4+cn02[1]:ncpus=4)`."""
    host = pl.element().str.extract(r"^\(?([^:\[()]+)", 1)
    return pl.col("exec_vnode").str.split("+").list.eval(host).list.drop_nulls().list.unique(maintain_order=True)


def _with_nodes(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `node_count`, `node_list`, and `contradiction`: a sentence, if `exec_host` contradicts the count.

    On a Cray under ALPS, `exec_host` is a login node, and the request states the width of the job; its nodes are
    unknown. Elsewhere, `exec_vnode` is the allocation. Without it, `exec_host` may still be a login node. So the
    stated number of nodes precedes the number of its hosts, unless these are more.
    """
    numbers = {name: pl.col(name).str.extract(_NUMBER, 1).cast(pl.Int64) for name in _MPP}
    width, per_node = numbers["mppwidth"], numbers["mppnppn"]
    alps_count = pl.coalesce(numbers["mppnodect"], pl.when(per_node > 0).then((width + per_node - 1) // per_node))
    is_alps = (width > 0).fill_null(False)
    vnode_hosts = pl.when(_vnode_hosts().list.len() > 0).then(_vnode_hosts())
    host_count = _host_count("exec_host")
    stated = _first_text("unique_node_count", "nodect", _chunk_count("nodes"), _chunk_count("select"))
    stated_count = stated.str.extract(_NUMBER, 1).cast(pl.Int64)
    counted = pl.coalesce(vnode_hosts.list.len().cast(pl.Int64), pl.max_horizontal(stated_count, host_count))
    is_odd = ~is_alps & vnode_hosts.is_null() & (host_count != stated_count)
    is_listed = (host_count >= counted).fill_null(True)
    return frame.with_columns(
        # a stated text that is no number is refused with the record
        node_count=pl.when(is_alps).then(alps_count.cast(pl.String)).otherwise(_first_text(counted, stated)),
        node_list=pl.when(~is_alps).then(pl.coalesce(pl.when(is_listed).then("exec_host"), vnode_hosts.list.join("+"))),
        contradiction=pl.when(is_odd).then(
            pl.format(
                "exec_host names {} hosts, but the record states {} nodes; {} are used.",
                host_count,
                stated_count,
                counted,
            )
        ),
    )


def _first_text(*counts: pl.Expr | str) -> pl.Expr:
    return pl.coalesce((pl.col(count) if isinstance(count, str) else count).cast(pl.String) for count in counts)


def _epoch(name: str) -> pl.Expr:
    """Parse epoch seconds; 0, which PBS writes for events that have not happened, becomes NULL."""
    return pl.when(pl.col(name) != "0").then(pl.col(name))


def _states(kind: pl.Expr) -> pl.Expr:
    status = pl.col("exit_code")
    ended = pl.when(status == "0").then(pl.lit("COMPLETED")).when(status.is_not_null()).then(pl.lit("FAILED"))
    return (
        pl.when(kind.is_in(STARTED))
        .then(pl.lit("RUNNING"))
        .when(kind == "E")
        .then(ended)
        .when(kind == "R")
        .then(pl.lit("REQUEUED"))
        .otherwise(pl.lit("CANCELLED"))
    )


def _cells(frame: pl.DataFrame) -> pl.DataFrame:
    kind = pl.col("kind")
    stamp = pl.format("{}-{}-{}T{}", "year", "month", "day", "clock")
    return frame.select(
        "line",
        "raw",
        "reason",
        "remedy",
        "job_id",
        "user",
        "job_name",
        "partition",
        "exit_code",
        "node_count",
        "node_list",
        account=pl.coalesce("account", pl.when(pl.col("project") != _NO_PROJECT).then("project")),
        task_count=_first_text("mpiprocs", "slots"),
        submitted_at=pl.coalesce(_epoch("ctime"), _epoch("qtime")),
        started_at=_epoch("start"),
        # The time stamp of a record that ends a run is its end; a D record only requests the end.
        ended_at=pl.when(kind.is_in(ENDED)).then(pl.coalesce(_epoch("end"), stamp)),
        state=_states(kind),
        sharing=pl.col("place").str.extract(r"(?:^|:)(excl|exclhost|shared)(?::|$)"),
        cancelled_by=pl.when(kind == DELETED).then("requestor"),
    )


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    """Read accounting records: one row per start (S, T), end (E, R, A) or deletion (D) of a job.

    Nodes are counted from `exec_vnode` (the allocation), else from the stated number; on a Cray under ALPS, from
    `mppwidth` and `mppnppn`. A record whose `exec_host` contradicts the number is also a reject. The records of a job
    array as a whole are skipped, since its jobs have their own. Tasks are PBS's `mpiprocs` or Torque's execution slots,
    never processors. Sharing of nodes is known if the request's `place` states it. Record time stamps are local and
    used only if a record that ends a run has no `end`. `resources_used.walltime` is not used: it excludes suspension
    and start-up. Exit status 0 becomes COMPLETED, and any other FAILED, since it reveals neither who ended the job nor
    why.
    """
    time_zone = times.require_zone(reading.time_zone)
    for block in blocks(path):
        yield from reject_batches(block.refused)
        frame = _head(block.rows.filter(~pl.col("raw").str.starts_with("#")))
        frame = _faults(frame.join(_values(frame), on="line", how="left", maintain_order="left"))
        is_array = pl.col("job_id").str.contains(_ARRAY) | pl.col("array_indices").is_not_null()
        is_run = pl.col("kind").is_in(_KINDS) & ~is_array
        relevant = frame.filter(pl.col("reason").is_not_null() | is_run)
        counted = _with_nodes(relevant)
        yield from settle(_cells(counted), time_zone).batches(JOB_RECORDS)
        odd = counted.filter(pl.col("contradiction").is_not_null() & pl.col("reason").is_null())
        yield from reject_batches(build_refused_rows(odd, pl.col("contradiction"), _ODD_REMEDY))


SOURCE = Source(
    name="pbs",
    doc="PBS or Torque accounting log: MM/DD/YYYY HH:MM:SS;TYPE;ID;key=value ...",
    kind="jobs",
    sniff=sniff,
    read=read,
    precedence=10,
    find_near_miss=build_near_miss(
        r"^Job Id: \S+\r?$\s+Job_Name = |^Job: \S+\r?$\s+[0-9]{2}/[0-9]{2}/[0-9]{4} ",
        "This is output of qstat or tracejob, not an accounting file.",
        "Land the files in server_priv/accounting.",
    ),
)
