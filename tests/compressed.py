"""Compressed traces to test with: programs made by hand, and a Hypothesis strategy for traces of any valid shape.

The strategy's traces are consistent in all that `CompressedTrace` says: shares tile their class, values are as many
as executions, each gap names a call node that really goes before, and the histograms count each call once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from operator import mul

from hypothesis import strategies as st

from iosig.transforms.traces.progressions import NumberList, Progression, Stretch, expand_values
from iosig.transforms.traces.trace import (
    START,
    Call,
    CompressedTrace,
    Gap,
    Loop,
    Node,
    RankClass,
    Share,
    Slot,
    TimeBin,
    TimeHistogram,
    Vector,
)

#: the bytes that all ranks write in one iteration of the paper's Table 1
ROW_BYTES = 960


# ---- parts of traces made by hand


def steady(count: int, time_s: float) -> TimeHistogram:
    """Return the histogram of one time, so many times."""
    return TimeHistogram(count, time_s, time_s, time_s, 0.0, (TimeBin(count, time_s, time_s, time_s),))


def span(first: int, count: int, stride: int = 1) -> Progression:
    """Return numbers in a row; a single one has no dimension."""
    return Progression(first, (stride,), (count,)) if count > 1 else Progression(first)


def share(ranks: Progression, *runs: Stretch, shift: int = 0) -> Share:
    """Return the values of some ranks in one row, larger by `shift` from each to the next."""
    size = sum(run.size for run in runs)
    return Share(ranks, tuple((same(shift, size),) for _ in ranks.counts), runs)


def same(number: int, size: int) -> Progression:
    """Return one number, so many times."""
    return Progression(number, (0,), (size,)) if size > 1 else Progression(number)


def call(
    function: str, texts: tuple[str, ...], slots: tuple[Slot, ...], previous: Mapping[int, int], *, module: str
) -> Call:
    """Return an outer call of 2 ms, 1 ms after each of the nodes `previous` (with how often it follows them)."""
    gaps = tuple(Gap(node, steady(count, 0.001)) for node, count in sorted(previous.items()))
    return Call(module, function, 0, texts, slots, gaps, steady(sum(previous.values()), 0.002))


# ---- programs made by hand


def table_one(process_count: int, row_bytes: int = ROW_BYTES, iterations: int = 3) -> CompressedTrace:
    """Return the paper's Table 1 as MPI-IO calls: offset = rank * (row_bytes / n) + row_bytes * i, of one shared file.

    Nodes: 0 open, 1 loop, 2 seek, 3 write, 4 close; the offset and the size are slots.
    """
    size, ranks, n = _piece(process_count, row_bytes), span(0, process_count), process_count
    offset = share(ranks, span(0, iterations, row_bytes), shift=size)
    written = share(ranks, same(size, iterations))
    again = {3: n * (iterations - 1)} if iterations > 1 else {}
    body: tuple[Node, ...] = (
        call("MPI_File_open", ("MPI_COMM_WORLD strong 9 %p 0-0",), (), {START: n}, module="MPIIO"),
        Loop(
            (share(ranks, Progression(iterations)),),
            (
                call("MPI_File_seek", ("0-0 ", " MPI_SEEK_SET"), (Slot(1, (offset,)),), {0: n} | again, module="MPIIO"),
                call(
                    "MPI_File_write",
                    ("0-0 %p ", " MPI_BYTE [?]"),
                    (Slot(1, (written,)),),
                    {2: n * iterations},
                    module="MPIIO",
                ),
            ),
        ),
        call("MPI_File_close", ("0-0",), (), {3: n}, module="MPIIO"),
    )
    return CompressedTrace(process_count, (RankClass((ranks,), body),))


def table_one_posix(process_count: int, row_bytes: int = ROW_BYTES, iterations: int = 3) -> CompressedTrace:
    """Return Table 1 as POSIX calls: rank 0 creates the file (a class of its own), the others open it.

    Nodes: 0 open, 1 loop, 2 lseek, 3 write, 4 close.
    """
    size = _piece(process_count, row_bytes)
    classes = [_posix_ranks(span(0, 1), "strong 66 420", 0, row_bytes, size, iterations)]
    if process_count > 1:
        others = span(1, process_count - 1)
        classes.append(_posix_ranks(others, "strong 2", size, row_bytes, size, iterations))
    return CompressedTrace(process_count, tuple(classes))


def _posix_ranks(ranks: Progression, opening: str, first: int, row_bytes: int, size: int, iterations: int) -> RankClass:
    offset = share(ranks, span(first, iterations, row_bytes), shift=size)
    written = share(ranks, same(size, iterations))
    n = ranks.size
    again = {3: n * (iterations - 1)} if iterations > 1 else {}
    seek = call("lseek", ("strong ", " 0"), (Slot(1, (offset,)),), {0: n} | again, module="POSIX")
    write = call("write", ("strong %p ", ""), (Slot(1, (written,)),), {2: n * iterations}, module="POSIX")
    return RankClass(
        (ranks,),
        (
            call("open", (opening,), (), {START: n}, module="POSIX"),
            Loop((share(ranks, Progression(iterations)),), (seek, write)),
            call("close", ("strong",), (), {3: n}, module="POSIX"),
        ),
    )


def file_per_process(process_count: int, writes: int = 4, size: int = 131072) -> CompressedTrace:
    """Return N-to-N: each rank writes to its own file `f.00000007`, as IOR does with `-F`.

    Nodes: 0 open, 1 loop, 2 write, 3 close.
    """
    ranks, n = span(0, process_count), process_count

    def name(count: int) -> Slot:
        return Slot(8, (share(ranks, same(0, count), shift=1),))

    written = Slot(1, (share(ranks, same(size, writes)),))
    again = {2: n * (writes - 1)} if writes > 1 else {}
    body: tuple[Node, ...] = (
        call("open", ("f.", " 66 420"), (name(1),), {START: n}, module="POSIX"),
        Loop(
            (share(ranks, Progression(writes)),),
            (call("write", ("f.", " %p ", ""), (name(writes), written), {0: n} | again, module="POSIX"),),
        ),
        call("close", ("f.", ""), (name(1),), {2: n}, module="POSIX"),
    )
    return CompressedTrace(process_count, (RankClass((ranks,), body),))


def _piece(process_count: int, row_bytes: int) -> int:
    if row_bytes % process_count:
        raise ValueError(f"{row_bytes} bytes are not to be shared out evenly among {process_count} ranks")
    return row_bytes // process_count


# ---- what a trace means, the slow way


def nodes(body: Sequence[Node]) -> Iterator[Node]:
    """Yield the nodes of a class in the order of their numbers."""
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from nodes(node.body)


def rank_values(vector: Vector) -> dict[int, list[int]]:
    """Return the values of each rank."""
    found: dict[int, list[int]] = {}
    for part in vector:
        shifts = [expand_values(row).tolist() for row in part.shifts]
        for index in product(*map(range, part.ranks.counts)):
            rank = part.ranks.start + sum(map(mul, part.ranks.strides, index))
            assert rank not in found
            found[rank] = [
                value + sum(row[place] * step for row, step in zip(shifts, index, strict=True))
                for place, value in enumerate(expand_values(part.values).tolist())
            ]
    return found


def class_ranks(rank_class: RankClass) -> list[int]:
    """Return the ranks of a class."""
    return [int(rank) for rank in expand_values(rank_class.ranks)]


def call_order(rank_class: RankClass, rank: int) -> list[int]:
    """Return the node numbers of a rank's calls, in order."""
    numbers = {id(node): number for number, node in enumerate(nodes(rank_class.body))}
    counts = {
        id(node): iter(rank_values(node.counts)[rank]) for node in nodes(rank_class.body) if isinstance(node, Loop)
    }

    def ordered(body: Sequence[Node]) -> Iterator[int]:
        for node in body:
            if isinstance(node, Call):
                yield numbers[id(node)]
            else:
                for _ in range(next(counts[id(node)])):
                    yield from ordered(node.body)

    return list(ordered(rank_class.body))


# ---- any valid trace

_LARGE = 1 << 40
_FUNCTIONS = (("POSIX", "write"), ("POSIX", "lseek"), ("MPIIO", "MPI_File_seek"), ("MPI", "MPI_Barrier"))


@st.composite
def compressed_traces(draw: st.DrawFn, most_processes: int = 12, most_depth: int = 2) -> CompressedTrace:
    """Draw a valid compressed trace: ranks in any classes, or silent; loops in loops; values by rule and without."""
    process_count = draw(st.integers(1, most_processes))
    owners = draw(st.lists(st.integers(-1, 2), min_size=process_count, max_size=process_count))
    classes = []
    for owner in range(3):
        if ranks := [rank for rank, mine in enumerate(owners) if mine == owner]:
            body = _body(draw, dict.fromkeys(ranks, 1), most_depth)
            classes.append(_timed(draw, RankClass(_ranks(draw, ranks), body)))
    return CompressedTrace(process_count, tuple(classes))


def _body(draw: st.DrawFn, executions: dict[int, int], depth: int) -> tuple[Node, ...]:
    kinds = draw(st.lists(st.booleans(), min_size=1, max_size=3))
    return tuple(_loop(draw, executions, depth) if kind and depth else _call(draw, executions) for kind in kinds)


def _loop(draw: st.DrawFn, executions: dict[int, int], depth: int) -> Loop:
    counts = _vector(draw, executions, st.integers(1, 3), st.integers(0, 1))
    inner = {rank: sum(own) for rank, own in rank_values(counts).items()}
    return Loop(counts, _body(draw, inner, depth - 1))


def _call(draw: st.DrawFn, executions: dict[int, int]) -> Call:
    module, function = draw(st.sampled_from(_FUNCTIONS))
    numbers = st.one_of(st.integers(0, 9), st.integers(0, _LARGE))
    slots = tuple(
        Slot(draw(st.sampled_from([1, 1, 8])), _vector(draw, executions, numbers, numbers))
        for _ in range(draw(st.integers(0, 2)))
    )
    words = st.sampled_from(["f.", " ", "%p ", "-", "é_", ""])
    texts = tuple(draw(words) for _ in range(len(slots) + 1))
    return Call(module, function, draw(st.integers(0, 2)), texts, slots, (), steady(1, 0.0))


def _vector(
    draw: st.DrawFn, executions: dict[int, int], numbers: st.SearchStrategy[int], steps: st.SearchStrategy[int]
) -> Vector:
    """Draw values for each rank, as many as it executes the node; all numbers and steps are at least 0."""
    shares = []
    for count in sorted(set(executions.values())):
        for ranks in _ranks(draw, sorted(rank for rank, own in executions.items() if own == count)):
            shifts = tuple(_runs(draw, count, steps, steps) for _ in ranks.counts)
            shares.append(Share(ranks, shifts, _runs(draw, count, numbers, steps)))
    return tuple(draw(st.permutations(shares)))


def _runs(
    draw: st.DrawFn, count: int, numbers: st.SearchStrategy[int], steps: st.SearchStrategy[int]
) -> tuple[Stretch, ...]:
    runs: list[Stretch] = []
    while count:
        size = draw(st.integers(1, count))
        count -= size
        outer = draw(st.sampled_from([part for part in range(1, size + 1) if size % part == 0]))
        if size // outer <= 8 and draw(st.booleans()):
            listed = tuple(draw(numbers) for _ in range(size // outer))
            runs.append(NumberList(listed, (draw(steps),), (outer,)) if outer > 1 else NumberList(listed))
            continue
        counts = tuple(part for part in (outer, size // outer) if part > 1)
        runs.append(Progression(draw(numbers), tuple(draw(steps) for _ in counts), counts))
    return tuple(runs)


def _ranks(draw: st.DrawFn, ranks: list[int]) -> tuple[Progression, ...]:
    """Draw a way to write down rising ranks as progressions that rise, one behind the other."""
    rows: list[Progression] = []
    while ranks:
        length = 1
        while length < len(ranks) and ranks[length] - ranks[length - 1] == ranks[1] - ranks[0]:
            length += 1
        length = draw(st.integers(1, length))
        rows.append(span(ranks[0], length, ranks[1] - ranks[0] if length > 1 else 1))
        ranks = ranks[length:]
    return _nested(rows) if draw(st.booleans()) else tuple(rows)


def _nested(rows: list[Progression]) -> tuple[Progression, ...]:
    """Put rows of the same shape at equal distances into one another."""
    nested: list[Progression] = []
    while rows:
        alike = 1
        while (
            alike < len(rows)
            and (rows[alike].strides, rows[alike].counts) == (rows[0].strides, rows[0].counts)
            and rows[alike].start - rows[alike - 1].start == rows[1].start - rows[0].start
        ):
            alike += 1
        if alike == 1:
            nested.append(rows[0])
        else:
            distance = rows[1].start - rows[0].start
            nested.append(Progression(rows[0].start, (distance, *rows[0].strides), (alike, *rows[0].counts)))
        rows = rows[alike:]
    return tuple(nested)


def _timed(draw: st.DrawFn, rank_class: RankClass) -> RankClass:
    """Give each call the gaps and durations that its executions ask for."""
    pairs: Counter[tuple[int, int]] = Counter()
    for rank in class_ranks(rank_class):
        pairs.update(pairwise([START, *call_order(rank_class, rank)]))
    numbers = iter(range(len(list(nodes(rank_class.body)))))

    def timed(body: Sequence[Node]) -> tuple[Node, ...]:
        done: list[Node] = []
        for node in body:
            number = next(numbers)
            if isinstance(node, Loop):
                done.append(replace(node, body=timed(node.body)))
                continue
            before = sorted((first, count) for (first, second), count in pairs.items() if second == number)
            gaps = tuple(Gap(first, _histogram(draw, count)) for first, count in before)
            durations = _histogram(draw, sum(count for _, count in before))
            done.append(replace(node, gaps=gaps, durations=durations))
        return tuple(done)

    return replace(rank_class, body=timed(rank_class.body))


def _histogram(draw: st.DrawFn, count: int) -> TimeHistogram:
    """Draw a histogram of so many times, which lie at equal distances."""
    least_s, step_s = (draw(st.sampled_from([0.0, 1e-7, 0.001, 2.5])) for _ in range(2))
    times_s = [least_s + step_s * place for place in range(count)]
    mean_s = min(max(sum(times_s) / count, times_s[0]), times_s[-1])
    variance_s2 = sum((time_s - mean_s) ** 2 for time_s in times_s) / count
    edges = [count * part // min(count, 3) for part in range(min(count, 3) + 1)]
    bins = []
    for first, last in pairwise(edges):
        part = times_s[first:last]
        bins.append(TimeBin(len(part), part[0], min(max(sum(part) / len(part), part[0]), part[-1]), part[-1]))
    return TimeHistogram(count, times_s[0], mean_s, times_s[-1], variance_s2, tuple(bins))
