"""Compress Recorder traces: one complete trace, or several of one program as input for extrapolation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from iosig.transforms.traces.compression import compress, compress_together
from iosig.transforms.traces.expansion import number_nodes
from iosig.transforms.traces.templates import mask_addresses
from iosig.transforms.traces.trace import Call, CompressedTrace
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.recorder import signatures
from iosig.warehouse.sources.recorder.calls import Run
from iosig.warehouse.sources.recorder.signatures import SignedRank

#: called with a trace's name; its context yields callback(ranks_read, rank_count)
Progress = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]

_REMEDY = "Trace the program again: the trace is invalid."


def keep_apart(into: Path, traces: Iterable[Path]) -> None:
    """Raise UsageError if the output path is an input trace, or is inside one."""
    target = into.resolve()
    if any(trace.resolve() in (target, *target.parents) for trace in traces):
        raise UsageError(f"{into} is a trace, or inside one, and is never overwritten. Choose another path.")


def _ignore_progress(name: str) -> AbstractContextManager[Callable[[int, int], None]]:
    return nullcontext(lambda completed_count, count: None)


def compress_trace(
    path: Path, progress: Progress = _ignore_progress, of_rank: Callable[[SignedRank], SignedRank] = lambda rank: rank
) -> CompressedTrace:
    """Compress the calls of a Recorder trace: all calls of each rank, or those that `of_rank` keeps.

    Raises InputRefused if the trace cannot be read completely.
    """
    with signatures.open_signed_run(path) as run:
        try:
            return compress(run.process_count, map(of_rank, _decode_ranks(run, path, progress)))
        except ValueError as error:
            raise InputRefused(f"{path.name} cannot be compressed: {error}.", _REMEDY) from error


def call_total(trace: CompressedTrace) -> int:
    """Return the number of calls on all ranks; each call has one duration in a histogram."""
    nodes = (node for rank_class in trace.classes for node in number_nodes(rank_class.body)[0])
    return sum(node.durations.count for node in nodes if isinstance(node, Call))


def comparable(paths: Sequence[Path], *, has_nested: bool, progress: Progress) -> tuple[CompressedTrace, ...]:
    """Compress the calls of several Recorder traces for comparison, in the order of the paths.

    Without nested calls, only the calls that each program made itself remain. Addresses and statuses are not parameters
    and become %p. Raises InputRefused if a trace cannot be read completely.
    """
    traces = []
    for path in paths:
        with signatures.open_signed_run(path) as run:
            ranks = _decode_ranks(run, path, progress)
            traces.append((run.process_count, [_comparable(rank, has_nested) for rank in ranks]))
    try:
        return compress_together(traces)
    except ValueError as error:
        raise InputRefused(f"The traces cannot be compressed: {error}.", _REMEDY) from error


def _comparable(rank: SignedRank, has_nested: bool) -> SignedRank:
    compared = rank if has_nested else signatures.select_outer_calls(rank)
    return replace(compared, signatures=mask_addresses(compared.signatures))


def _decode_ranks(run: Run[SignedRank], path: Path, progress: Progress) -> Iterator[SignedRank]:
    # archives of several runs may have the same name, and differ by their folders
    with progress("/".join(path.parts[-2:])) as report:
        for completed_count, rank in enumerate(run.ranks, start=1):
            yield run.decode(rank)
            report(completed_count, len(run.ranks))
