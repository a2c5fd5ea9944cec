"""Define the rules that detect I/O problems of a run: conditions, evidence and remedies.

A rule's anchor is the trigger of Drishti 0.8 that the rule follows (`drishti/includes/module.py`: S01, P01 to P22, M01
to M10), or `ours`. Docstrings quote the trigger in brackets and explain deviations from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from iosig.transforms.findings.facts import DIRECTIONS
from iosig.transforms.findings.thresholds import Thresholds

Severity = Literal["critical", "warning", "note"]
#: layer, or other feature, that a run must use for a rule to be applicable
Layer = Literal["any", "POSIX", "MPIIO", "stripes", "processes"]
#: severities in descending order
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "note")
_NOUNS = {"read": "reads", "write": "writes"}
_SIMPLE_PAST = {"read": "read", "write": "wrote"}
_PARTICIPLE = {"read": "read", "write": "written"}


@dataclass(frozen=True, slots=True)
class Number:
    """Named value of evidence: name, expression, and unit (`1` for a ratio)."""

    name: str
    value: pl.Expr
    unit: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule that is tested on the facts of a run.

    Attributes
    ----------
    anchor
        Trigger that the rule follows.
    severity
        Maximum severity of a finding.
    layer
        Layer, or other feature, that a run must use for the rule to be applicable.
    needs
        Facts that the rule requires; if one is missing, the outcome is unknown.
    holds
        Condition under which the rule yields a finding.
    impact
        Fraction of the run that its busiest process spends in the affected operations; NULL if unknown.
    evidence
        Values that the finding reports.
    sentence
        Text of the finding, with the names of evidence in braces.
    remedy
        Recommendation.
    direction
        Read or write, or None if the rule concerns the whole run.
    """

    name: str
    anchor: str
    severity: Severity
    layer: Layer
    needs: tuple[str, ...]
    holds: pl.Expr
    impact: pl.Expr
    evidence: tuple[Number, ...]
    sentence: str
    remedy: str
    direction: str | None = None


def make_rules(thresholds: Thresholds) -> tuple[Rule, ...]:
    """Create all rules, one per direction where applicable.

    Parameters
    ----------
    thresholds
        Thresholds of the rules.

    Returns
    -------
    tuple[Rule, ...]
        Rules for reads, for writes, and for whole runs.
    """
    rules = [make(thresholds, direction) for direction in DIRECTIONS for make in _DIRECTION_RULES]
    return (*rules, *(make(thresholds) for make in _RUN_RULES))


def _divide(part: str, total: str) -> pl.Expr:
    return pl.col(part) / pl.when(pl.col(total) > 0).then(pl.col(total))


# ---- rules of a direction


def _small_requests(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for small requests (Drishti P05, P06: more than 10 % and 1,000 of a direction's requests below 1 MB).

    Darshan's histogram counts a request of exactly 1 MiB as small. Where individual requests are known, the count is
    exact.
    """
    share = _divide(f"{direction}_small_count", f"{direction}_count")
    return Rule(
        "small_requests", "Drishti P05" if direction == "read" else "Drishti P06", "critical", "POSIX",
        (f"{direction}_small_count", f"{direction}_count"),
        (share > thresholds.min_small_ratio) & (pl.col(f"{direction}_small_count") > thresholds.min_small_count),
        pl.col(f"{direction}_time_ratio"),
        (
            Number("small_count", pl.col(f"{direction}_small_count"), "requests"),
            Number("request_count", pl.col(f"{direction}_count"), "requests"),
            Number("small_ratio", share, "1"),
        ),
        f"{{small_count}} of {{request_count}} {_NOUNS[direction]} ({{small_ratio}}) are 1 MiB or smaller.",
        f"Combine {_NOUNS[direction]} into requests of several MiB: use a larger buffer, or collective MPI-IO.",
        direction,
    )  # fmt: skip


def _random_access(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for random access (Drishti P11, P13: over 20 % and 1,000 of a direction's requests are not sequential)."""
    random = pl.col(f"{direction}_count") - pl.col(f"{direction}_sequential_count")
    share = random / pl.when(pl.col(f"{direction}_count") > 0).then(pl.col(f"{direction}_count"))
    return Rule(
        "random_access", "Drishti P11" if direction == "read" else "Drishti P13", "critical", "POSIX",
        (f"{direction}_sequential_count", f"{direction}_count"),
        (share > thresholds.min_random_ratio) & (random > thresholds.min_random_count),
        pl.col(f"{direction}_time_ratio"),
        (
            Number("random_count", random, "requests"),
            Number("request_count", pl.col(f"{direction}_count"), "requests"),
            Number("random_ratio", share, "1"),
        ),
        f"{{random_count}} of {{request_count}} {_NOUNS[direction]} ({{random_ratio}}) are not sequential.",
        "Sort requests by offset, store data in the order of use, or use collective MPI-IO, which sorts them.",
        direction,
    )  # fmt: skip


def _rank_imbalance(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for unbalanced processes (Drishti P18, P21, P22: by file, (max - min) / max above 30 %).

    Here, all files of the layer nearest to the program are combined, since one file per process is not an imbalance.
    Aggregators below MPI-IO do not count, since they move bytes of other processes. The measure is DeRose's. Runs in
    which one process moves nearly all bytes have a rule of their own.
    """
    top, share = pl.col(f"{direction}_top_bytes"), _divide(f"{direction}_top_bytes", f"{direction}_rank_bytes")
    return Rule(
        "unbalanced_ranks", "Drishti P18, P22" if direction == "read" else "Drishti P18, P21", "critical", "processes",
        (f"{direction}_bytes", "process_count"),
        (pl.col(f"{direction}_imbalance_ratio") > thresholds.min_imbalance_ratio)
        & (top >= thresholds.min_bytes) & (share < thresholds.min_top_share_ratio),
        pl.col("slowest_time_ratio"),
        (
            Number("imbalance_ratio", pl.col(f"{direction}_imbalance_ratio"), "1"),
            Number("top_bytes", top, "B"),
            Number("mean_bytes", pl.col(f"{direction}_rank_bytes") / pl.col("process_count"), "B"),
            Number("top_rank", pl.col(f"{direction}_top_rank"), "rank"),
            Number("rank_count", pl.col(f"{direction}_rank_count"), "processes"),
            Number("process_count", pl.col("process_count"), "processes"),
        ),
        f"Rank {{top_rank}} {_SIMPLE_PAST[direction]} {{top_bytes}}, the mean process {{mean_bytes}}; "
        "{rank_count} of {process_count} processes took part.",
        "Assign equal shares to the processes, or let collective MPI-IO distribute the data.",
        direction,
    )  # fmt: skip


def _single_rank(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for a single process that moves nearly all bytes (ours; Drishti reports it as P21, P22, by file)."""
    share = _divide(f"{direction}_top_bytes", f"{direction}_rank_bytes")
    return Rule(
        "one_rank_does_all", "ours (cf. Drishti P21, P22)", "critical", "processes",
        (f"{direction}_bytes", "process_count"),
        (pl.col("process_count") > 1)
        & (share >= thresholds.min_top_share_ratio) & (pl.col(f"{direction}_top_bytes") >= thresholds.min_bytes),
        pl.col("slowest_time_ratio"),
        (
            Number("top_rank", pl.col(f"{direction}_top_rank"), "rank"),
            Number("top_bytes", pl.col(f"{direction}_top_bytes"), "B"),
            Number("top_ratio", share, "1"),
            Number("process_count", pl.col("process_count"), "processes"),
        ),
        f"Rank {{top_rank}} {_SIMPLE_PAST[direction]} {{top_ratio}} of the bytes of {{process_count}} processes: "
        "{top_bytes}.",
        "Let all processes take part, through collective MPI-IO or one file per process; "
        "a single process has the network bandwidth of one node only.",
        direction,
    )  # fmt: skip


def _redundant(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for redundant bytes (Drishti P09, P10: highest offset of any file above the bytes of all files).

    P09 and P10 report "more data than the highest offset" if fewer bytes were moved: their comparison is reversed.
    Here, the bytes moved in excess of each file's extent count. Where individual requests are known, the bytes that
    another request covers count.
    """
    repeated_bytes, moved_bytes = pl.col(f"{direction}_again_bytes"), pl.col(f"posix_{direction}_bytes")
    share = repeated_bytes / pl.when(moved_bytes > 0).then(moved_bytes)
    return Rule(
        "redundant_reads" if direction == "read" else "redundant_writes",
        "Drishti P09" if direction == "read" else "Drishti P10", "warning", "POSIX",
        (f"{direction}_again_bytes", f"posix_{direction}_bytes"),
        (share > thresholds.min_repeat_ratio) & (repeated_bytes >= thresholds.min_bytes),
        pl.col(f"{direction}_time_ratio"),
        (
            Number("again_bytes", repeated_bytes, "B"), Number("moved_bytes", moved_bytes, "B"),
            Number("again_ratio", share, "1"),
        ),
        f"{{again_bytes}} of {{moved_bytes}} ({{again_ratio}}) had already been {_PARTICIPLE[direction]}.",
        "Read the data once, and share it (MPI_Bcast, a burst buffer)." if direction == "read"
        else "Collect data that is overwritten in memory, and write it once.",
        direction,
    )  # fmt: skip


def _independent(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for MPI-IO without collective calls (Drishti M02, M03: none, and more than 1,000 independent calls)."""
    name = "read" if direction == "read" else "write"
    return Rule(
        "collective_not_used", "Drishti M02" if direction == "read" else "Drishti M03", "critical", "MPIIO",
        (f"{direction}_collective_count", f"{direction}_independent_count"),
        (pl.col("process_count") > 1)
        & (pl.col(f"{direction}_collective_count") == 0)
        & (pl.col(f"{direction}_independent_count") > thresholds.min_independent_count),
        pl.col(f"mpiio_{direction}_time_ratio"),
        (
            Number("independent_count", pl.col(f"{direction}_independent_count"), "requests"),
            Number("collective_count", pl.col(f"{direction}_collective_count"), "requests"),
        ),
        f"All {{independent_count}} MPI-IO {_NOUNS[direction]} are independent; none is collective.",
        f"Use MPI_File_{name}_all or MPI_File_{name}_at_all, with one aggregator per node.",
        direction,
    )  # fmt: skip


def _waiting(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for time in MPI-IO outside of the file system (ours), in which processes wait for a few aggregators."""
    return Rule(
        "waiting_in_collectives", "ours", "critical", "MPIIO",
        (f"{direction}_waiting_ratio",),
        (pl.col(f"{direction}_waiting_ratio") > thresholds.min_waiting_ratio)
        & (pl.col(f"{direction}_collective_count") > 0),
        pl.col(f"{direction}_waiting_ratio"),
        (
            Number("waiting_ratio", pl.col(f"{direction}_waiting_ratio"), "1"),
            Number("mpiio_time_s", pl.col(f"mpiio_{direction}_time_s"), "s"),
            Number("posix_time_s", pl.col(f"posix_{direction}_time_s"), "s"),
        ),
        f"Processes spent {{waiting_ratio}} of the run in collective {_NOUNS[direction]} outside of the file system "
        "({mpiio_time_s} in MPI-IO, {posix_time_s} below it).",
        "Use more aggregators (cb_nodes: one or more per node), larger buffers (cb_buffer_size), and let all processes "
        "enter the call at the same time.",
        direction,
    )  # fmt: skip


def _amplification(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for more bytes below MPI-IO than above it (ours), usually caused by data sieving."""
    above, below = f"mpiio_{direction}_bytes", f"posix_{direction}_bytes"
    return Rule(
        "amplified_by_mpiio", "ours", "critical", "MPIIO",
        (above, below),
        (_divide(below, above) > thresholds.min_amplified_ratio)
        & (pl.col(below) - pl.col(above) >= thresholds.min_bytes),
        pl.col(f"{direction}_time_ratio"),
        (
            Number("above_bytes", pl.col(above), "B"),
            Number("below_bytes", pl.col(below), "B"),
            Number("times", _divide(below, above), "times"),
        ),
        f"For MPI-IO requests of {{above_bytes}}, {{below_bytes}} were {_PARTICIPLE[direction]} below MPI-IO: "
        "{times} as much.",
        f"The usual cause is data sieving: disable it (romio_ds_{direction} = disable), or make the parts of a call "
        "contiguous.",
        direction,
    )  # fmt: skip


def _blocking(thresholds: Thresholds, direction: str) -> Rule:
    """Rule for blocking MPI-IO (Drishti M06, M07: no nonblocking calls); here, it must also take much time."""
    calls = pl.col(f"{direction}_independent_count") + pl.col(f"{direction}_collective_count")
    return Rule(
        "blocking_io", "Drishti M06" if direction == "read" else "Drishti M07", "note", "MPIIO",
        (f"{direction}_nonblocking_count", f"mpiio_{direction}_time_ratio"),
        (pl.col(f"{direction}_nonblocking_count") == 0) & (calls > 0)
        & (pl.col(f"mpiio_{direction}_time_ratio") >= thresholds.min_blocking_impact_ratio),
        pl.col(f"mpiio_{direction}_time_ratio"),
        (
            Number("blocking_count", calls, "requests"),
            Number("time_ratio", pl.col(f"mpiio_{direction}_time_ratio"), "1"),
        ),
        f"Processes waited for {{time_ratio}} of the run in {{blocking_count}} blocking MPI-IO {_NOUNS[direction]}.",
        f"Overlap I/O with computation: MPI_File_i{direction}, or HDF5's asynchronous VOL connector.",
        direction,
    )  # fmt: skip


_DIRECTION_RULES = (
    _small_requests, _random_access, _rank_imbalance, _single_rank, _redundant, _independent, _waiting, _amplification,
    _blocking,
)  # fmt: skip


# ---- rules of a run


def _request_alignment(thresholds: Thresholds) -> Rule:
    """Rule for requests that are not aligned to file system blocks (Drishti P08: more than 10 % of all requests)."""
    total = pl.col("read_count") + pl.col("write_count")
    share = pl.col("file_misaligned_count") / pl.when(total > 0).then(total)
    return Rule(
        "misaligned_requests", "Drishti P08", "critical", "POSIX",
        ("file_misaligned_count", "read_count", "write_count"),
        (share > thresholds.min_misaligned_ratio) & (pl.col("file_misaligned_count") > thresholds.min_small_count),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("misaligned_count", pl.col("file_misaligned_count"), "requests"),
            Number("request_count", total, "requests"),
            Number("misaligned_ratio", share, "1"),
        ),
        "{misaligned_count} of {request_count} requests ({misaligned_ratio}) are not aligned to file system blocks.",
        "Align requests to multiples of the block or stripe size; HDF5: H5Pset_alignment.",
    )  # fmt: skip


def _memory_alignment(thresholds: Thresholds) -> Rule:
    """Rule for buffers that are not aligned to memory pages (Drishti P07: more than 10 % of requests, rated high).

    The severity is only a note, since only direct I/O requires alignment.
    """
    total = pl.col("read_count") + pl.col("write_count")
    share = pl.col("memory_misaligned_count") / pl.when(total > 0).then(total)
    return Rule(
        "misaligned_memory", "Drishti P07", "note", "POSIX",
        ("memory_misaligned_count", "read_count", "write_count"),
        (share > thresholds.min_misaligned_ratio) & (pl.col("memory_misaligned_count") > thresholds.min_small_count),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("misaligned_count", pl.col("memory_misaligned_count"), "requests"),
            Number("misaligned_ratio", share, "1"),
        ),
        "{misaligned_count} requests ({misaligned_ratio}) use buffers that are not aligned in memory.",
        "Relevant for direct I/O only: allocate buffers with posix_memalign.",
    )  # fmt: skip


def _stdio(thresholds: Thresholds) -> Rule:
    """Rule for bytes through STDIO (Drishti S01: more than 10 % of all bytes, even if a run only prints a line).

    Here, all counted layers, including DAOS, contribute to the total. A minimum of 1 MiB is required.
    """
    total = pl.col("read_bytes") + pl.col("write_bytes")
    share = pl.col("stdio_bytes") / pl.when(total > 0).then(total)
    return Rule(
        "stdio_used", "Drishti S01", "critical", "any",
        ("stdio_bytes", "read_bytes", "write_bytes"),
        (share > thresholds.min_stdio_ratio) & (pl.col("stdio_bytes") >= thresholds.min_bytes),
        pl.col("stdio_time_ratio"),
        (Number("stdio_bytes", pl.col("stdio_bytes"), "B"), Number("stdio_ratio", share, "1")),
        "{stdio_bytes} ({stdio_ratio} of all) go through STDIO and its small buffers.",
        "Use POSIX or MPI-IO for data, or set a large STDIO buffer (setvbuf).",
    )  # fmt: skip


def _stragglers(thresholds: Thresholds) -> Rule:
    """Rule for stragglers (Drishti P19: (slowest - fastest) / total time of all processes above 15 %).

    Drishti's ratio decreases with the number of processes. If one of a hundred processes takes ten times as long as the
    others, it is 8 %. Here, DeRose's measure is used, with a minimum of one second and of 1 % of the run.
    """
    return Rule(
        "stragglers", "Drishti P19", "critical", "processes",
        ("process_count", "slowest_s", "mean_s"),
        (pl.col("straggling_ratio") > thresholds.min_straggling_ratio)
        & (pl.col("slowest_s") - pl.col("mean_s") >= thresholds.min_lost_s)
        & (pl.col("straggling_time_ratio") >= thresholds.min_impact_ratio),
        pl.col("straggling_time_ratio"),
        (
            Number("slowest_s", pl.col("slowest_s"), "s"),
            Number("mean_s", pl.col("mean_s"), "s"),
            Number("lost_s", pl.col("slowest_s") - pl.col("mean_s"), "s"),
            Number("straggling_ratio", pl.col("straggling_ratio"), "1"),
        ),
        "The slowest process spent {slowest_s} in I/O, the mean process {mean_s}: if all wait for it, {lost_s} are "
        "lost.",
        "Check that process in the heat map: does it move more bytes, or is its storage target slow (iosig network)?",
    )  # fmt: skip


def _metadata_time(thresholds: Thresholds) -> Rule:
    """Rule for time in opens, stats and similar operations (Drishti P17: over 30 s in a record, which it calls a rank).

    A record of a shared file contains the time of all its processes. Here, the time of the mean process counts.
    """
    mean_s = pl.col("all_metadata_time_s") / pl.col("process_count")
    return Rule(
        "metadata_time", "Drishti P17", "critical", "any",
        ("all_metadata_time_s", "process_count"),
        mean_s > thresholds.min_metadata_s,
        pl.col("metadata_time_ratio"),
        (
            Number("metadata_time_s", mean_s, "s"),
            Number("metadata_time_ratio", pl.col("metadata_time_ratio"), "1"),
            Number("metadata_count", pl.col("metadata_count"), "operations"),
        ),
        "Each process spent {metadata_time_s} ({metadata_time_ratio} of the run) in opens, stats and seeks.",
        "Use fewer, larger files, and open each file once; HDF5: use collective metadata.",
    )  # fmt: skip


def _metadata_storm(thresholds: Thresholds) -> Rule:
    """Rule for more opens and stats than reads and writes (ours)."""
    share = _divide("metadata_count", "data_count")
    return Rule(
        "metadata_storm", "ours", "warning", "any",
        ("metadata_count", "data_count"),
        (pl.col("metadata_count") > thresholds.min_metadata_count)
        & (share.fill_null(float("inf")) > thresholds.min_metadata_ratio),
        pl.col("metadata_time_ratio"),
        (
            Number("metadata_count", pl.col("metadata_count"), "operations"),
            Number("data_count", pl.col("data_count"), "requests"),
            Number("per_s", pl.col("metadata_count") / pl.col("duration_s"), "operations/s"),
        ),
        "{metadata_count} opens and stats for {data_count} reads and writes: {per_s}.",
        "Combine small files (an archive, HDF5), open each file once, and cache the results of stat.",
    )  # fmt: skip


def _bare_shared_io(thresholds: Thresholds) -> Rule:
    """Rule for shared files accessed without MPI-IO (Drishti M01: no MPI-IO at all, even for a single process)."""
    return Rule(
        "shared_file_without_mpiio", "Drishti M01", "warning", "processes",
        ("bare_shared_bytes", "process_count"),
        (pl.col("process_count") > 1)
        & (pl.col("bare_shared_bytes") >= thresholds.min_bytes)
        & (pl.col("bare_shared_bytes") > thresholds.min_stdio_ratio * (pl.col("read_bytes") + pl.col("write_bytes"))),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("shared_bytes", pl.col("bare_shared_bytes"), "B"),
            Number("shared_count", pl.col("bare_shared_count"), "files"),
        ),
        "{shared_bytes} of shared files ({shared_count}) go through POSIX without MPI-IO.",
        "Use MPI-IO, or HDF5 on top of it, which combines the requests of many processes.",
    )  # fmt: skip


def _few_targets(thresholds: Thresholds) -> Rule:
    """Rule for a large shared file on less than half of the storage targets that NERSC's table recommends (ours)."""
    return Rule(
        "stripes_too_few", "ours (NERSC's striping table)", "critical", "stripes",
        ("wanted_count", "target_count"),
        pl.col("wanted_count") > 2 * pl.col("target_count"),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("file_bytes", pl.col("striped_bytes"), "B"),
            Number("target_count", pl.col("target_count"), "targets"),
            Number("wanted_count", pl.col("wanted_count"), "targets"),
        ),
        "A shared file of {file_bytes} uses {target_count} of {wanted_count} recommended storage targets.",
        "Increase its stripe count before it is written: lfs setstripe -c.",
    )  # fmt: skip


def _many_targets(thresholds: Thresholds) -> Rule:
    """Rule for files that fit into one stripe but have several targets (ours), which each open and stat contacts."""
    share = _divide("wide_file_count", "striped_file_count")
    return Rule(
        "stripes_too_many", "ours", "note", "stripes",
        ("wide_file_count", "striped_file_count"),
        (share > thresholds.min_misaligned_ratio) & (pl.col("wide_file_count") > 1),
        pl.col("metadata_time_ratio"),
        (
            Number("wide_count", pl.col("wide_file_count"), "files"),
            Number("striped_count", pl.col("striped_file_count"), "files"),
        ),
        "{wide_count} of {striped_count} striped files fit into one stripe, but have several storage targets.",
        "Use one stripe for folders of small files: lfs setstripe -c 1.",
    )  # fmt: skip


def _stripe_crossings(thresholds: Thresholds) -> Rule:
    """Rule for requests that cross a stripe boundary (ours; Drishti P08 mentions it for misaligned files on Lustre)."""
    share = _divide("crossing_count", "striped_count")
    return Rule(
        "stripes_crossed", "ours (cf. Drishti P08)", "warning", "stripes",
        ("crossing_count", "striped_count"),
        (share > thresholds.min_misaligned_ratio) & (pl.col("crossing_count") > thresholds.min_small_count),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("crossing_count", pl.col("crossing_count"), "requests"),
            Number("striped_count", pl.col("striped_count"), "requests"),
            Number("crossing_ratio", share, "1"),
        ),
        "{crossing_count} of {striped_count} requests to striped files ({crossing_ratio}) access an extra stripe.",
        "Align requests to multiples of the stripe size, or make the stripe size a multiple of the request size.",
    )  # fmt: skip


def _aggregators(thresholds: Thresholds) -> Rule:
    """Rule for more aggregators than nodes (Drishti M09, from the hint cb_nodes; here, from processes that did I/O)."""
    collective = pl.col("read_collective_count") + pl.col("write_collective_count")
    return Rule(
        "aggregators_share_nodes", "Drishti M09", "note", "MPIIO",
        ("mover_count", "host_count", "read_collective_count"),
        (collective > 0) & (pl.col("mover_count") > pl.col("host_count")) & (pl.col("host_count") > 0)
        & (pl.col("mover_count") < pl.col("process_count")),
        pl.col("mpiio_read_time_ratio") + pl.col("mpiio_write_time_ratio"),
        (
            Number("aggregator_count", pl.col("mover_count"), "processes"),
            Number("host_count", pl.col("host_count"), "nodes"),
        ),
        "{aggregator_count} processes performed the I/O of all, on {host_count} nodes.",
        "Use one aggregator per node: cb_nodes, or cb_config_list = *:1.",
    )  # fmt: skip


def _incomplete_trace(thresholds: Thresholds) -> Rule:
    """Rule for a trace that is incomplete according to its tracer (ours; PyDarshan's summary has the same warning)."""
    return Rule(
        "trace_not_whole", "ours (cf. PyDarshan's summary)", "warning", "any",
        ("doubtful_module_count",),
        pl.col("doubtful_module_count") > 0,
        pl.lit(None, pl.Float64),
        (
            Number("doubtful_count", pl.col("doubtful_module_count"), "modules"),
            Number("module_count", pl.col("module_count"), "modules"),
        ),
        "{doubtful_count} of {module_count} modules of the trace are incomplete. Other findings may be missing or "
        "imprecise.",
        "Let the run complete its trace, or increase the tracer's memory or exclude files (Darshan: DARSHAN_MODMEM, "
        "DARSHAN_NAME_EXCLUDE).",
    )  # fmt: skip


_RUN_RULES = (
    _request_alignment, _memory_alignment, _stdio, _stragglers, _metadata_time, _metadata_storm,
    _bare_shared_io, _few_targets, _many_targets, _stripe_crossings, _aggregators, _incomplete_trace,
)  # fmt: skip
