"""The rules: each says when a run's I/O is at odds with what storage does well, by which numbers, and what helps.

A rule's anchor is the trigger of Drishti 0.8 that it follows (`drishti/includes/module.py`: S01, P01 to P22, M01 to
M10), or says that it is ours. Where it differs from its anchor, its docstring says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from iosig.transforms.findings.facts import DIRECTIONS
from iosig.transforms.findings.thresholds import Thresholds

Severity = Literal["critical", "warning", "note"]
#: what a run has to have used for a rule to be about it
Layer = Literal["any", "POSIX", "MPIIO", "stripes", "processes"]
#: the worst first
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "note")
_NOUNS = {"read": "reads", "write": "writes"}
_DID = {"read": "read", "write": "wrote"}
_PAST = {"read": "read", "write": "written"}


@dataclass(frozen=True, slots=True)
class Number:
    """A number of evidence: its name, which fact or expression it is, and its unit (`1` for a share)."""

    name: str
    value: pl.Expr
    unit: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule on a row of facts.

    anchor: what it follows. severity: at most. layer: what a run has to have used for the rule to be about it. needs:
    facts without which it has no answer. holds: whether it is found. impact: the share of the run that its busiest
    process spends in what the rule is about; NULL where that is not known. evidence: its numbers. sentence: what is
    found, with the evidence's names in braces. remedy: what helps.
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


def rules(thresholds: Thresholds) -> tuple[Rule, ...]:
    """Return every rule with these thresholds, those of a direction twice."""
    made: list[Rule] = []
    for way in DIRECTIONS:
        made += [each(thresholds, way) for each in _OF_DIRECTIONS]
    made += [each(thresholds) for each in _OF_RUNS]
    return tuple(made)


def _ratio(part: str, whole: str) -> pl.Expr:
    return pl.col(part) / pl.when(pl.col(whole) > 0).then(pl.col(whole))


# ---- of a direction


def _small_requests(most: Thresholds, way: str) -> Rule:
    """Tell of requests too small (Drishti P05, P06: more than 10 % and 1,000 of a direction's below 1 MB).

    Darshan's histogram counts a request of exactly 1 MiB among the small ones; where single requests are there, they
    are counted themselves, and it is not.
    """
    share = _ratio(f"{way}_small_count", f"{way}_count")
    return Rule(
        "small_requests", "Drishti P05" if way == "read" else "Drishti P06", "critical", "POSIX",
        (f"{way}_small_count", f"{way}_count"),
        (share > most.least_small_ratio) & (pl.col(f"{way}_small_count") > most.least_small_count),
        pl.col(f"{way}_time_ratio"),
        (
            Number("small_count", pl.col(f"{way}_small_count"), "requests"),
            Number("request_count", pl.col(f"{way}_count"), "requests"),
            Number("small_ratio", share, "1"),
        ),
        f"{{small_count}} of {{request_count}} {_NOUNS[way]} ({{small_ratio}}) are of 1 MiB or less.",
        f"Gather {_NOUNS[way]} into requests of several MiB: a larger buffer, or collective MPI-IO.",
        way,
    )  # fmt: skip


def _random_access(most: Thresholds, way: str) -> Rule:
    """Tell of requests that go back (Drishti P11, P13: above 20 % and 1,000 of a direction's are not sequential)."""
    random = pl.col(f"{way}_count") - pl.col(f"{way}_sequential_count")
    share = random / pl.when(pl.col(f"{way}_count") > 0).then(pl.col(f"{way}_count"))
    return Rule(
        "random_access", "Drishti P11" if way == "read" else "Drishti P13", "critical", "POSIX",
        (f"{way}_sequential_count", f"{way}_count"),
        (share > most.least_random_ratio) & (random > most.least_random_count),
        pl.col(f"{way}_time_ratio"),
        (
            Number("random_count", random, "requests"),
            Number("request_count", pl.col(f"{way}_count"), "requests"),
            Number("random_ratio", share, "1"),
        ),
        f"{{random_count}} of {{request_count}} {_NOUNS[way]} ({{random_ratio}}) do not go on upward in their file.",
        "Order requests by their offset, lay data out as it is used, or leave the order to collective MPI-IO.",
        way,
    )  # fmt: skip


def _unbalanced_ranks(most: Thresholds, way: str) -> Rule:
    """Tell of processes that move unlike amounts (Drishti P18, P21, P22: by file, (most - least) / most above 30 %).

    Ours takes all files of the layer nearest to the program together, by DeRose's measure: aggregators below MPI-IO
    move others' bytes, and each process with a file of its own is no imbalance. Not told where one does all.
    """
    top, share = pl.col(f"{way}_top_bytes"), _ratio(f"{way}_top_bytes", f"{way}_rank_bytes")
    return Rule(
        "unbalanced_ranks", "Drishti P18, P22" if way == "read" else "Drishti P18, P21", "critical", "processes",
        (f"{way}_bytes", "process_count"),
        (pl.col(f"{way}_imbalance_ratio") > most.least_imbalance_ratio)
        & (top >= most.least_bytes) & (share < most.least_top_ratio),
        pl.col("slowest_time_ratio"),
        (
            Number("imbalance_ratio", pl.col(f"{way}_imbalance_ratio"), "1"),
            Number("top_bytes", top, "B"),
            Number("mean_bytes", pl.col(f"{way}_rank_bytes") / pl.col("process_count"), "B"),
            Number("top_rank", pl.col(f"{way}_top_rank"), "rank"),
            Number("rank_count", pl.col(f"{way}_rank_count"), "processes"),
            Number("process_count", pl.col("process_count"), "processes"),
        ),
        f"Rank {{top_rank}} {_DID[way]} {{top_bytes}}, the mean process {{mean_bytes}}; {{rank_count}} of "
        "{process_count} processes took part.",
        "Give each process the same share, or let collective MPI-IO spread it.",
        way,
    )  # fmt: skip


def _one_rank(most: Thresholds, way: str) -> Rule:
    """Tell of one process that moves nearly all (ours; Drishti tells it as P21, P22 of single files)."""
    share = _ratio(f"{way}_top_bytes", f"{way}_rank_bytes")
    return Rule(
        "one_rank_does_all", "ours (cf. Drishti P21, P22)", "critical", "processes",
        (f"{way}_bytes", "process_count"),
        (pl.col("process_count") > 1)
        & (share >= most.least_top_ratio) & (pl.col(f"{way}_top_bytes") >= most.least_bytes),
        pl.col("slowest_time_ratio"),
        (
            Number("top_rank", pl.col(f"{way}_top_rank"), "rank"),
            Number("top_bytes", pl.col(f"{way}_top_bytes"), "B"),
            Number("top_ratio", share, "1"),
            Number("process_count", pl.col("process_count"), "processes"),
        ),
        f"Rank {{top_rank}} {_DID[way]} {{top_ratio}} of what {{process_count}} processes did: {{top_bytes}}.",
        "Let all processes take part, by collective MPI-IO or a file each for few of them; "
        "one process has one node's network.",
        way,
    )  # fmt: skip


def _moved_again(most: Thresholds, way: str) -> Rule:
    """Tell of the same bytes again (Drishti P09, P10: the highest offset of any file above the bytes of all).

    P09 and P10 say "more data than the highest offset" where there is less: the comparison is the wrong way round. Ours
    is by file: bytes beyond the file's own extent, or, where single requests are there, those that another covered.
    """
    again, moved = pl.col(f"{way}_again_bytes"), pl.col(f"posix_{way}_bytes")
    share = again / pl.when(moved > 0).then(moved)
    return Rule(
        "redundant_reads" if way == "read" else "redundant_writes",
        "Drishti P09" if way == "read" else "Drishti P10", "warning", "POSIX",
        (f"{way}_again_bytes", f"posix_{way}_bytes"),
        (share > most.least_again_ratio) & (again >= most.least_bytes),
        pl.col(f"{way}_time_ratio"),
        (Number("again_bytes", again, "B"), Number("moved_bytes", moved, "B"), Number("again_ratio", share, "1")),
        f"{{again_bytes}} of {{moved_bytes}} ({{again_ratio}}) were {_PAST[way]} before, by some process.",
        "Read it once, keep it, and hand it on (MPI_Bcast, a burst buffer)." if way == "read"
        else "Gather in memory what is written over and over, and write it once.",
        way,
    )  # fmt: skip


def _independent(most: Thresholds, way: str) -> Rule:
    """Tell of MPI-IO without collective calls (Drishti M02, M03: none, and more than 1,000 independent ones)."""
    name = "read" if way == "read" else "write"
    return Rule(
        "collective_not_used", "Drishti M02" if way == "read" else "Drishti M03", "critical", "MPIIO",
        (f"{way}_collective_count", f"{way}_independent_count"),
        (pl.col("process_count") > 1)
        & (pl.col(f"{way}_collective_count") == 0)
        & (pl.col(f"{way}_independent_count") > most.least_independent_count),
        pl.col(f"mpiio_{way}_time_ratio"),
        (
            Number("independent_count", pl.col(f"{way}_independent_count"), "requests"),
            Number("collective_count", pl.col(f"{way}_collective_count"), "requests"),
        ),
        f"All {{independent_count}} {_NOUNS[way]} by MPI-IO are independent, none is collective.",
        f"Use MPI_File_{name}_all or MPI_File_{name}_at_all, with an aggregator a node.",
        way,
    )  # fmt: skip


def _waiting(most: Thresholds, way: str) -> Rule:
    """Tell of time in MPI-IO that is not spent in the file system (ours): processes wait for a few that do the I/O."""
    return Rule(
        "waiting_in_collectives", "ours", "critical", "MPIIO",
        (f"{way}_waiting_ratio",),
        (pl.col(f"{way}_waiting_ratio") > most.least_waiting_ratio) & (pl.col(f"{way}_collective_count") > 0),
        pl.col(f"{way}_waiting_ratio"),
        (
            Number("waiting_ratio", pl.col(f"{way}_waiting_ratio"), "1"),
            Number("mpiio_time_s", pl.col(f"mpiio_{way}_time_s"), "s"),
            Number("posix_time_s", pl.col(f"posix_{way}_time_s"), "s"),
        ),
        f"Processes spent {{waiting_ratio}} of the run in collective {_NOUNS[way]} without touching the file system "
        "({mpiio_time_s} in MPI-IO, {posix_time_s} below it).",
        "Use more aggregators (cb_nodes: one a node at least), larger buffers (cb_buffer_size), and come to the call "
        "together.",
        way,
    )  # fmt: skip


def _amplified(most: Thresholds, way: str) -> Rule:
    """Tell of more bytes below MPI-IO than above it (ours): data sieving reads and writes what nobody asked for."""
    above, below = f"mpiio_{way}_bytes", f"posix_{way}_bytes"
    return Rule(
        "amplified_by_mpiio", "ours", "critical", "MPIIO",
        (above, below),
        (_ratio(below, above) > most.least_amplified_ratio) & (pl.col(below) - pl.col(above) >= most.least_bytes),
        pl.col(f"{way}_time_ratio"),
        (
            Number("above_bytes", pl.col(above), "B"),
            Number("below_bytes", pl.col(below), "B"),
            Number("times", _ratio(below, above), "times"),
        ),
        f"MPI-IO was asked for {{above_bytes}}, and {{below_bytes}} were {_PAST[way]} below it: {{times}} as much.",
        f"Data sieving does that: turn it off (romio_ds_{way} = disable), or make the pieces of a call contiguous.",
        way,
    )  # fmt: skip


def _blocking(most: Thresholds, way: str) -> Rule:
    """Tell of blocking MPI-IO (Drishti M06, M07, of every run without any other); ours where there is time to win."""
    calls = pl.col(f"{way}_independent_count") + pl.col(f"{way}_collective_count")
    return Rule(
        "blocking_io", "Drishti M06" if way == "read" else "Drishti M07", "note", "MPIIO",
        (f"{way}_nonblocking_count", f"mpiio_{way}_time_ratio"),
        (pl.col(f"{way}_nonblocking_count") == 0) & (calls > 0)
        & (pl.col(f"mpiio_{way}_time_ratio") >= most.blocking_impact_ratio),
        pl.col(f"mpiio_{way}_time_ratio"),
        (
            Number("blocking_count", calls, "requests"),
            Number("time_ratio", pl.col(f"mpiio_{way}_time_ratio"), "1"),
        ),
        f"Processes stood still for {{time_ratio}} of the run in {{blocking_count}} blocking {_NOUNS[way]} by MPI-IO.",
        f"Overlap them with computing: MPI_File_i{way}, or HDF5's asynchronous VOL connector.",
        way,
    )  # fmt: skip


_OF_DIRECTIONS = (
    _small_requests, _random_access, _unbalanced_ranks, _one_rank, _moved_again, _independent, _waiting, _amplified,
    _blocking,
)  # fmt: skip


# ---- of a run


def _misaligned_requests(most: Thresholds) -> Rule:
    """Tell of requests beside the file system's blocks (Drishti P08: more than 10 % of all)."""
    total = pl.col("read_count") + pl.col("write_count")
    share = pl.col("file_misaligned_count") / pl.when(total > 0).then(total)
    return Rule(
        "misaligned_requests", "Drishti P08", "critical", "POSIX",
        ("file_misaligned_count", "read_count", "write_count"),
        (share > most.least_misaligned_ratio) & (pl.col("file_misaligned_count") > most.least_small_count),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("misaligned_count", pl.col("file_misaligned_count"), "requests"),
            Number("request_count", total, "requests"),
            Number("misaligned_ratio", share, "1"),
        ),
        "{misaligned_count} of {request_count} requests ({misaligned_ratio}) begin beside the file system's blocks.",
        "Begin requests at multiples of the block or stripe; HDF5: H5Pset_alignment.",
    )  # fmt: skip


def _misaligned_memory(most: Thresholds) -> Rule:
    """Tell of buffers beside memory pages (Drishti P07: more than 10 % of requests, rated high).

    Only direct I/O cares: a note.
    """
    total = pl.col("read_count") + pl.col("write_count")
    share = pl.col("memory_misaligned_count") / pl.when(total > 0).then(total)
    return Rule(
        "misaligned_memory", "Drishti P07", "note", "POSIX",
        ("memory_misaligned_count", "read_count", "write_count"),
        (share > most.least_misaligned_ratio) & (pl.col("memory_misaligned_count") > most.least_small_count),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("misaligned_count", pl.col("memory_misaligned_count"), "requests"),
            Number("misaligned_ratio", share, "1"),
        ),
        "{misaligned_count} requests ({misaligned_ratio}) use buffers that are not aligned in memory.",
        "It matters for direct I/O alone: posix_memalign.",
    )  # fmt: skip


def _stdio(most: Thresholds) -> Rule:
    """Tell of bytes by STDIO (Drishti S01: more than 10 % of all bytes, of runs that print a line, too).

    Ours counts every layer whose bytes count, DAOS among them, and asks for a MiB.
    """
    total = pl.col("read_bytes") + pl.col("write_bytes")
    share = pl.col("stdio_bytes") / pl.when(total > 0).then(total)
    return Rule(
        "stdio_used", "Drishti S01", "critical", "any",
        ("stdio_bytes", "read_bytes", "write_bytes"),
        (share > most.least_stdio_ratio) & (pl.col("stdio_bytes") >= most.least_bytes),
        pl.col("stdio_time_ratio"),
        (Number("stdio_bytes", pl.col("stdio_bytes"), "B"), Number("stdio_ratio", share, "1")),
        "{stdio_bytes} ({stdio_ratio} of all) go through STDIO, in its small buffers.",
        "Use POSIX or MPI-IO for data, or give STDIO a large buffer (setvbuf).",
    )  # fmt: skip


def _stragglers(most: Thresholds) -> Rule:
    """Tell of processes that keep the others waiting (Drishti P19: slowest - fastest over the time of all > 15 %).

    That quotient shrinks with the number of processes: of a hundred alike and one that takes ten times as long it is
    8 %. Ours is DeRose's measure of the time of each, of a second and 1 % of the run at least.
    """
    return Rule(
        "stragglers", "Drishti P19", "critical", "processes",
        ("process_count", "slowest_s", "mean_s"),
        (pl.col("straggling_ratio") > most.least_straggling_ratio)
        & (pl.col("slowest_s") - pl.col("mean_s") >= most.least_lost_s)
        & (pl.col("straggling_time_ratio") >= most.small_impact_ratio),
        pl.col("straggling_time_ratio"),
        (
            Number("slowest_s", pl.col("slowest_s"), "s"),
            Number("mean_s", pl.col("mean_s"), "s"),
            Number("lost_s", pl.col("slowest_s") - pl.col("mean_s"), "s"),
            Number("straggling_ratio", pl.col("straggling_ratio"), "1"),
        ),
        "The slowest process spent {slowest_s} in I/O, the mean one {mean_s}: where all wait for it, {lost_s} are "
        "lost.",
        "Look at that process in the heat map: does it move more, or is its storage target slow (iosig network)?",
    )  # fmt: skip


def _metadata_time(most: Thresholds) -> Rule:
    """Tell of time in opens, stats and the like (Drishti P17: records with more than 30 s, called ranks).

    A record of a shared file holds the time of all its processes; ours is the time of the mean process.
    """
    mean_s = pl.col("all_metadata_time_s") / pl.col("process_count")
    return Rule(
        "metadata_time", "Drishti P17", "critical", "any",
        ("all_metadata_time_s", "process_count"),
        mean_s > most.least_metadata_s,
        pl.col("metadata_time_ratio"),
        (
            Number("metadata_time_s", mean_s, "s"),
            Number("metadata_time_ratio", pl.col("metadata_time_ratio"), "1"),
            Number("metadata_count", pl.col("metadata_count"), "operations"),
        ),
        "Each process spent {metadata_time_s} ({metadata_time_ratio} of the run) in opens, stats and seeks.",
        "Use fewer and larger files, open them once and keep them open; HDF5: collective metadata.",
    )  # fmt: skip


def _metadata_storm(most: Thresholds) -> Rule:
    """Tell of more opens and stats than reads and writes (ours)."""
    share = _ratio("metadata_count", "data_count")
    return Rule(
        "metadata_storm", "ours", "warning", "any",
        ("metadata_count", "data_count"),
        (pl.col("metadata_count") > most.least_metadata_count)
        & (share.fill_null(float("inf")) > most.least_metadata_ratio),
        pl.col("metadata_time_ratio"),
        (
            Number("metadata_count", pl.col("metadata_count"), "operations"),
            Number("data_count", pl.col("data_count"), "requests"),
            Number("per_s", pl.col("metadata_count") / pl.col("duration_s"), "operations/s"),
        ),
        "{metadata_count} opens and stats stand beside {data_count} reads and writes: {per_s}.",
        "Put small files together (an archive, HDF5), open once, and do not ask for states that are known.",
    )  # fmt: skip


def _shared_without_mpiio(most: Thresholds) -> Rule:
    """Tell of a shared file without MPI-IO (Drishti M01: no MPI-IO at all, of every run, also of one process)."""
    return Rule(
        "shared_file_without_mpiio", "Drishti M01", "warning", "processes",
        ("bare_shared_bytes", "process_count"),
        (pl.col("process_count") > 1)
        & (pl.col("bare_shared_bytes") >= most.least_bytes)
        & (pl.col("bare_shared_bytes") > most.least_stdio_ratio * (pl.col("read_bytes") + pl.col("write_bytes"))),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("shared_bytes", pl.col("bare_shared_bytes"), "B"),
            Number("shared_count", pl.col("bare_shared_count"), "files"),
        ),
        "{shared_bytes} of files that processes share ({shared_count}) go through POSIX alone.",
        "MPI-IO, or HDF5 upon it, puts the requests of many processes together.",
    )  # fmt: skip


def _few_targets(most: Thresholds) -> Rule:
    """Tell of a large shared file on less than half of the storage targets that NERSC's table gives it (ours)."""
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
        "A shared file of {file_bytes} has {target_count} of the {wanted_count} storage targets that would carry it.",
        "Stripe it wider before it is written: lfs setstripe -c.",
    )  # fmt: skip


def _many_targets(most: Thresholds) -> Rule:
    """Tell of files that fit one stripe, on several targets (ours): each open and stat asks all of them."""
    share = _ratio("wide_file_count", "striped_file_count")
    return Rule(
        "stripes_too_many", "ours", "note", "stripes",
        ("wide_file_count", "striped_file_count"),
        (share > most.least_misaligned_ratio) & (pl.col("wide_file_count") > 1),
        pl.col("metadata_time_ratio"),
        (
            Number("wide_count", pl.col("wide_file_count"), "files"),
            Number("striped_count", pl.col("striped_file_count"), "files"),
        ),
        "{wide_count} of {striped_count} striped files lie within one stripe and still have several storage targets.",
        "Give folders of small files one stripe: lfs setstripe -c 1.",
    )  # fmt: skip


def _crossed_stripes(most: Thresholds) -> Rule:
    """Tell of requests over a stripe's end (ours; Drishti says so beside P08, for any misaligned file on Lustre)."""
    share = _ratio("crossing_count", "striped_count")
    return Rule(
        "stripes_crossed", "ours (cf. Drishti P08)", "warning", "stripes",
        ("crossing_count", "striped_count"),
        (share > most.least_misaligned_ratio) & (pl.col("crossing_count") > most.least_small_count),
        pl.col("read_time_ratio") + pl.col("write_time_ratio"),
        (
            Number("crossing_count", pl.col("crossing_count"), "requests"),
            Number("striped_count", pl.col("striped_count"), "requests"),
            Number("crossing_ratio", share, "1"),
        ),
        "{crossing_count} of {striped_count} requests to striped files ({crossing_ratio}) touch a stripe too many.",
        "Let requests begin at multiples of the stripe, or make the stripe a multiple of the request.",
    )  # fmt: skip


def _aggregators(most: Thresholds) -> Rule:
    """Tell of more aggregators than nodes (Drishti M09, by the hint cb_nodes); ours counts who did the I/O."""
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
        "{aggregator_count} processes did the I/O of all, on {host_count} nodes.",
        "One aggregator a node is usual: cb_nodes, or cb_config_list = *:1.",
    )  # fmt: skip


def _doubtful(most: Thresholds) -> Rule:
    """Tell of the tracer's own doubts (ours; PyDarshan's summary warns of the same): what follows rests on a part."""
    return Rule(
        "trace_not_whole", "ours (cf. PyDarshan's summary)", "warning", "any",
        ("doubtful_module_count",),
        pl.col("doubtful_module_count") > 0,
        pl.lit(None, pl.Float64),
        (
            Number("doubtful_count", pl.col("doubtful_module_count"), "modules"),
            Number("module_count", pl.col("module_count"), "modules"),
        ),
        "Modules of the trace that are not whole: {doubtful_count} of {module_count}. What is said here may lack "
        "something.",
        "Let the run end its trace, or give the tracer more memory or fewer files (Darshan: DARSHAN_MODMEM, "
        "DARSHAN_NAME_EXCLUDE).",
    )  # fmt: skip


_OF_RUNS = (
    _misaligned_requests, _misaligned_memory, _stdio, _stragglers, _metadata_time, _metadata_storm,
    _shared_without_mpiio, _few_targets, _many_targets, _crossed_stripes, _aggregators, _doubtful,
)  # fmt: skip
