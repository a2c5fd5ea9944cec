"""Signatures of many sample sets: over processes, some sets at a time, with the same answers however many there are.

What sample sets have in common is nothing: each one's answer depends on itself alone. So they are cut into chunks, and
chunks go to processes; answers come back in order, and no more chunks are under way than the processes are busy with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, offsets_of
from iosig.transforms.signatures.methods import MethodSignatures, SignatureParams, extract
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.warehouse import processes

#: steps of a chunk's samples: 4 MB, and about as long at work as a process takes to start
CHUNK_STEPS = 500_000
#: sets of a chunk: short ones take time too
CHUNK_SETS = 100
#: told of each chunk that is finished: how many of its sets, since the last time
Told = Callable[[int], None]


def extract_in_chunks(
    sets: SampleSets,
    params: SignatureParams,
    methods: Sequence[str],
    worker_count: int | None = None,
    told: Told = lambda count: None,
) -> list[MethodSignatures]:
    """Return the signatures of sample sets by some methods, as `iosig.transforms.signatures.methods.extract` does.

    worker_count: processes, as many as there are cores if None; a single chunk is done in this process, since one
    takes about a second to start. Raises WorkerLost if one of them dies.
    """
    return next(extract_each([sets], params, methods, worker_count, told))


def extract_each(
    parts: Iterable[SampleSets],
    params: SignatureParams,
    methods: Sequence[str],
    worker_count: int | None = None,
    told: Told = lambda count: None,
) -> Iterator[list[MethodSignatures]]:
    """Yield the signatures of one part after the other; the next ones are read while the workers are at work.

    Parts are asked for as they are needed: of their samples no more are held than are under way. See
    `extract_in_chunks`.
    """
    answers: list[list[MethodSignatures]] = []
    for piece, answer in _answered(_pieces(parts), params, tuple(methods), processes.workers(worker_count)):
        told(piece.set_count)
        answers.append(answer)
        if piece.is_last:
            yield _joined(answers)
            answers = []


def chunks_of(step_counts: Ints, most_steps: int, most_sets: int | None = None) -> list[slice]:
    """Cut a list of sample sets (m), with so many steps each, into slices of a bounded number of steps and of sets.

    A set that exceeds the bound by itself is a chunk of its own. No sets make no chunks.
    """
    totals = offsets_of(step_counts)
    count = len(step_counts)
    chunks = []
    first = 0
    while first < count:
        last = int(np.searchsorted(totals, totals[first] + most_steps, side="right")) - 1
        last = min(max(last, first + 1), first + (most_sets or count))
        chunks.append(slice(first, last))
        first = last
    return chunks


def part_of(sets: SampleSets, chunk: slice) -> SampleSets:
    """Return some sets, one after the other: their samples are a view, not a copy."""
    offsets = sets.offsets[chunk.start : chunk.stop + 1]
    runs = slice(int(offsets[0]), int(offsets[-1]))
    edges = sets.samples.offsets[runs.start : runs.stop + 1]
    return SampleSets(
        samples=Ragged(sets.samples.values[edges[0] : edges[-1]], edges - edges[0]),
        started_s=sets.started_s[runs],
        duration_s=sets.duration_s[runs],
        interval_s=sets.interval_s[chunk],
        offsets=offsets - offsets[0],
        others=None if sets.others is None else sets.others[edges[0] : edges[-1]],
    )


# ---- chunks


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk of a part: how many sets it has, and whether it is the part's last one."""

    set_count: int
    is_last: bool


def _pieces(parts: Iterable[SampleSets]) -> Iterator[tuple[_Piece, SampleSets]]:
    for sets in parts:
        steps = np.diff(sets.samples.offsets[sets.offsets])
        chunks = chunks_of(steps, CHUNK_STEPS, CHUNK_SETS) or [slice(0, 0)]
        for chunk in chunks:
            yield _Piece(chunk.stop - chunk.start, chunk is chunks[-1]), part_of(sets, chunk)


def _joined(answers: Sequence[Sequence[MethodSignatures]]) -> list[MethodSignatures]:
    """Join the answers of chunks, method by method."""
    return [
        MethodSignatures(
            method=own[0].method,
            signatures=[one for answer in own for one in answer.signatures],
            is_outlier=np.concatenate([answer.is_outlier for answer in own]),
            trust=np.concatenate([answer.trust for answer in own]),
            lacked_burst_count=np.concatenate([answer.lacked_burst_count for answer in own]),
        )
        for own in zip(*answers, strict=True)
    ]


# ---- workers


def _answered(
    pieces: Iterator[tuple[_Piece, SampleSets]], params: SignatureParams, methods: tuple[str, ...], worker_count: int
) -> Iterator[tuple[_Piece, list[MethodSignatures]]]:
    """Yield each chunk with its answers, in order."""
    known = list(islice(pieces, 2))
    is_single, every = len(known) < 2, chain(known, pieces)
    del known  # what is done is not held
    if worker_count <= 1 or is_single:
        yield from ((piece, extract(sets, params, methods)) for piece, sets in every)
        return
    with processes.pool(worker_count) as pool:
        yield from processes.in_order(pool, extract, ((piece, (sets, params, methods)) for piece, sets in every))
