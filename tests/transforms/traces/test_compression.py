"""Compression of the calls of all ranks is lossless, of constant size, and keeps the original times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces import compression
from iosig.transforms.traces.checks import check
from iosig.transforms.traces.compression import (
    FoldedCall,
    FoldedLoop,
    FoldedNode,
    Folder,
    RankCalls,
    arithmetic_ranges,
    compress,
    compress_together,
)
from iosig.transforms.traces.expansion import rank_calls
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass
from iosig.warehouse.sources.recorder import signatures
from tests.budget import examples, one_in
from tests.call_texts import arguments
from tests.compressed import class_ranks, nodes
from tests.naive.traces import compression as naive
from tests.naive.traces.compression import Program
from tests.naive.traces.totals import Made
from tests.spmd_programs import Ranked, programs, ranked

COLUMNS = ["level", "module", "function", "arguments"]
PROGRAMS = (
    *("ior_mpiio_chunk", "ior_mpiio_inter_coll", "ior_mpiio_inter_coll_romio", "ior_posix_chunk", "ior_posix_fpp"),
    *("ior_posix_random", "ios_group4", "ios_mpiio_n1", "ios_mpiio_n1_romio", "ios_mpiio_nn", "ios_mpiio_nn_romio"),
    *("ios_posix_nn", "ios_sio", "ios_strong", "ios_strong_posix"),
)


def posix(rank: int, function: str, *given: object) -> Made:
    return rank, "POSIX", function, 0, " ".join(map(str, given))


def assert_valid(trace: CompressedTrace, ranks: Sequence[RankCalls]) -> CompressedTrace:
    """Return a trace after checking that it is valid and expands to every call of every rank."""
    check(trace)
    silent = set(range(trace.process_count)) - {calls.rank for calls in ranks}
    assert all(rank_calls(trace, rank).is_empty() for rank in silent)
    for calls in ranks:
        assert_restored(trace, calls)
    return trace


def assert_restored(trace: CompressedTrace, calls: RankCalls) -> None:
    expected = calls.signatures.select(COLUMNS)[calls.order]
    assert rank_calls(trace, calls.rank).select(COLUMNS).equals(expected)


def compress_calls(*calls_by_rank: Sequence[Made]) -> CompressedTrace:
    ranks = [ranked(rank, own) for rank, own in enumerate(calls_by_rank)]
    return assert_valid(compress(len(ranks), ranks), ranks)


def trace_ranks(trace: CompressedTrace) -> list[list[int]]:
    return [class_ranks(one) for one in trace.classes]


def count_shares(trace: CompressedTrace) -> list[tuple[int, int]]:
    """Number of shares, and of progressions in them, of each vector in order."""
    every = [node for rank_class in trace.classes for node in nodes(rank_class.body)]
    vectors = [node.counts for node in every if isinstance(node, Loop)]
    vectors += [slot.vector for node in every if isinstance(node, Call) for slot in node.slots]
    return [(len(vector), sum(len(share.values) + len(share.shifts) for share in vector)) for vector in vectors]


# ---- lossless


@st.composite
def streams(draw: st.DrawFn) -> list[Ranked]:
    """Draw the calls of ranks: few unusual texts in loops of different length; numbers may depend on the rank."""
    kinds = draw(
        st.lists(
            st.tuples(
                st.sampled_from([("POSIX", "write"), ("MPIIO", "MPI_File_read"), ("MPI", "MPI_Recv")]),
                st.sampled_from([0, 0, 1]),
                arguments(),
                st.sampled_from(["", " {i}", "_{rank}", ".{rank:03d}", "{i:02d}", " {odd}"]),
            ),
            min_size=1,
            max_size=5,
        )
    )
    phases = draw(
        st.lists(
            st.tuples(
                st.lists(st.integers(0, len(kinds) - 1), min_size=1, max_size=3),
                st.integers(0, 4),
                st.sampled_from([0, 0, 1]),
            ),
            max_size=4,
        )
    )
    odd = draw(st.lists(st.integers(0, 10**18 - 1), min_size=1, max_size=5))
    noise = st.lists(st.integers(0, len(kinds) - 1), max_size=12)
    found = []
    for rank in sorted(draw(st.sets(st.integers(0, 7)))):
        own = [place for body, times, more in phases for _ in range(times + more * rank) for place in body]
        if draw(st.integers(0, 3)) == 0:
            own = draw(noise)
        calls_by_rank: list[Made] = []
        for i, place in enumerate(own):
            (module, function), level, text, number = kinds[place]
            calls_by_rank.append(
                (rank, module, function, level, text + number.format(i=i, rank=rank, odd=odd[i % len(odd)]))
            )
        found.append(ranked(rank, calls_by_rank))
    return found


@settings(deadline=None, max_examples=examples(40))
@given(streams())
def test_compression_restores_any_calls(ranks: list[Ranked]) -> None:
    assert_valid(compress(8, ranks), ranks)


@settings(deadline=None, max_examples=examples(20))
@given(programs())
def test_compression_restores_programs_and_groups_equal_ranks(program: tuple[int, list[Made]]) -> None:
    process_count, calls_by_rank = program
    own = [[call for call in calls_by_rank if call[0] == rank] for rank in range(process_count)]
    trace = compress_calls(*own)
    alike = defaultdict(set)
    for number, ranks in enumerate(trace_ranks(trace)):
        for rank in ranks:
            alike[naive.kinds([call[1:] for call in own[rank]])].add(number)
    assert all(len(classes) == 1 for classes in alike.values())
    assert sorted(chain.from_iterable(trace_ranks(trace))) == [rank for rank in range(process_count) if own[rank]]


@settings(deadline=None, max_examples=examples(12))
@given(st.lists(streams(), min_size=2, max_size=3))
def test_compression_restores_several_traces(traces: list[list[Ranked]]) -> None:
    for ranks, trace in zip(traces, compress_together([(8, ranks) for ranks in traces]), strict=True):
        assert_valid(trace, ranks)


@pytest.mark.parametrize(
    "argument_texts", [["999999999999999999", "0"], ["[-999999999999999999_1]", "[999999999999999999_1]"]]
)
def test_numbers_at_the_limits_are_restored(argument_texts: list[str]) -> None:
    """Differences between numbers and between ranks exceed every number."""
    texts = argument_texts * 3
    calls_by_rank = [[(rank, "MPIIO", "f", 0, text) for text in texts[rank % 2 :]] for rank in range(6)]
    (one,) = trace_ranks(compress_calls(*[own[:4] for own in calls_by_rank]))
    assert one == list(range(6))


# ---- rank classes


def test_creating_rank_0_is_a_separate_class() -> None:
    calls_by_rank = [[posix(r, "open", "/a/f", 66, 420) if r == 0 else posix(r, "open", "/a/f", 2)] for r in range(8)]
    trace = compress_calls(*calls_by_rank)
    assert [one.ranks for one in trace.classes] == [(Progression(0),), (Progression(1, (1,), (7,)),)]


def test_group_roots_form_a_class() -> None:
    def program(rank: int) -> Iterator[Made]:
        yield posix(rank, "open", f"/a/f.{rank // 4}", 66)
        if rank % 4 == 0:
            yield posix(rank, "unlink", "/a/lock")

    trace = compress_calls(*(list(program(rank)) for rank in range(24)))
    assert [one.ranks for one in trace.classes] == [
        (Progression(0, (4,), (6,)),),
        (Progression(1, (4, 1), (6, 3)),),
    ]


def test_ranks_with_different_iterations_form_one_class() -> None:
    trace = compress_calls(*([posix(rank, "write", "/a/f", 8)] * (rank + 2) for rank in range(6)))
    (one,) = trace.classes
    (loop,) = one.body
    assert isinstance(loop, Loop)
    (share,) = loop.counts
    assert (share.ranks, share.values, share.shifts) == (
        Progression(0, (1,), (6,)),
        (Progression(2),),
        ((Progression(1),),),
    )


def test_ranks_with_alternating_iterations_share_values() -> None:
    """Even and odd ranks are folded separately; the values of both form one share again."""
    calls_by_rank = [[posix(rank, "open", "/a/f", rank), *[posix(rank, "sync")] * (2 + rank % 2)] for rank in range(6)]
    (one,) = compress_calls(*calls_by_rank).classes
    opened, loop = one.body
    assert isinstance(opened, Call)
    assert isinstance(loop, Loop)
    assert [share.ranks for share in opened.slots[0].vector] == [Progression(0, (1,), (6,))]
    assert [share.ranks for share in loop.counts] == [Progression(0, (2, 1), (3, 2))]


def test_signs_of_statuses_do_not_split_classes() -> None:
    texts = [f"0-0 %p 8 MPI_BYTE [{(-1) ** (rank // 2) * (9000 + rank)}_{(-1) ** rank * 7}]" for rank in range(8)]
    trace = compress_calls(*([(rank, "MPIIO", "MPI_File_write", 0, text)] for rank, text in enumerate(texts)))
    assert trace_ranks(trace) == [list(range(8))]


def test_classes_are_sorted_and_exclude_ranks_without_calls() -> None:
    trace = compress_calls([], [posix(1, "a")], [posix(2, "b")], [posix(3, "a")], [])
    assert trace_ranks(trace) == [[1, 3], [2]]
    assert compress_calls([], []).classes == ()
    assert compress(3, []) == CompressedTrace(3, ())
    assert compress_together([]) == ()


def test_ranks_are_accepted_in_any_order() -> None:
    ranks = [ranked(rank, [posix(rank, "write", "/a/f", rank * 8)]) for rank in range(6)]
    assert compress(6, iter(reversed(ranks))) == compress(6, ranks)


def test_widths_are_common_to_all_traces() -> None:
    """A number such as 12 shows no padding, but 07 in another trace does."""
    few, many = ([ranked(0, [posix(0, "open", text)])] for text in ("/a/f.07", "/a/f.12"))
    widths = [
        node.slots[0].width
        for trace in compress_together([(1, few), (1, many)])
        for node in trace.classes[0].body
        if isinstance(node, Call)
    ]
    assert widths == [2, 2]


@pytest.mark.parametrize("ranks", [[0, 0], [2], [-1], [0, 1, 5]])
def test_missing_or_duplicate_ranks_are_rejected(ranks: list[int]) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        compress(2, [ranked(rank, [posix(rank, "sync")]) for rank in ranks])


def test_nul_characters_are_rejected() -> None:
    with pytest.raises(ValueError, match="NUL"):
        compress(1, [ranked(0, [posix(0, "open", "a\0b")])])


# ---- constant size


def table_one(process_count: int, iterations: int) -> CompressedTrace:
    """Return the compressed trace of the paper's Table 1 with 24,000 bytes per row; rank 0 creates the file."""
    size = 24_000 // process_count

    def program(rank: int) -> list[Made]:
        calls_by_rank = [posix(rank, "open", "/a/f", *((66, 420) if rank == 0 else (2,)))]
        for i in range(iterations):
            calls_by_rank += [
                posix(rank, "lseek", "/a/f", rank * size + 24_000 * i, 0),
                posix(rank, "write", "/a/f", "%p", size),
            ]
        return [*calls_by_rank, posix(rank, "close", "/a/f")]

    ranks = [ranked(rank, program(rank)) for rank in range(process_count)]
    trace = compress(process_count, ranks)
    check(trace)
    for place in (0, 1, process_count // 3, process_count - 1):
        assert_restored(trace, ranks[place])
    return trace


@pytest.mark.parametrize(("process_count", "iterations"), [(1000, 3), (8, 300), (24, 40)])
def test_size_of_table_one_is_constant(process_count: int, iterations: int) -> None:
    one, other = table_one(8, 3), table_one(process_count, iterations)
    assert count_shares(other) == count_shares(one)
    assert {count for count, _ in count_shares(one)} == {1}
    assert [len(found.ranks) for found in other.classes] == [1, 1]
    assert [len(list(nodes(found.body))) for found in other.classes] == [5, 5]


# ---- times


@st.composite
def timed_streams(draw: st.DrawFn) -> list[Ranked]:
    """Draw streams of calls with random durations in whole ticks, which may exceed the enclosing call."""
    found = []
    for calls in draw(streams()):
        size = calls.order.size
        steps = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
        lasting = draw(st.lists(st.integers(-1, 9), min_size=size, max_size=size))
        began = np.cumsum(np.array(steps, np.float64)) / 8
        found.append(replace(calls, start_s=began, end_s=began + np.array(lasting, np.float64) / 8))
    return found


@settings(deadline=None, max_examples=examples(25))
@given(timed_streams())
def test_gaps_and_durations_match_naive_implementation(ranks: list[Ranked]) -> None:
    trace = compress(8, ranks)
    levels = {calls.rank: calls.signatures["level"].to_numpy()[calls.order] for calls in ranks}
    timed: list[naive.Timed] = [[] for _ in range(8)]
    for calls in ranks:
        columns = levels[calls.rank].tolist(), calls.start_s.tolist(), calls.end_s.tolist()
        timed[calls.rank] = list(zip(*columns, strict=True))
    expected = naive.times(trace, timed)
    found = {}
    for number, rank_class in enumerate(trace.classes):
        for place, node in enumerate(nodes(rank_class.body)):
            if isinstance(node, Call):
                found |= {(number, gap.previous, place): gap.histogram for gap in node.gaps}
                found[number, None, place] = node.durations
    assert found.keys() == expected.keys()
    for key, times in expected.items():
        histogram = found[key]
        assert (histogram.count, histogram.minimum_s, histogram.maximum_s) == (len(times), times[0], times[-1])
        assert histogram.mean_s == pytest.approx(sum(times) / len(times))


# ---- real traces


def identity(path: Path) -> None:
    with signatures.open_signed_run(path) as run:
        ranks = [run.decode(rank) for rank in run.ranks]
        assert_valid(compress(run.process_count, ranks), ranks)


@pytest.mark.parametrize("program", one_in(3, PROGRAMS, slow=2))
def test_real_traces_are_restored(shared_data: Path, program: str) -> None:
    """One of the four sizes of each program."""
    number = PROGRAMS.index(program) % 2
    size = (8, 12)[number] if program.startswith("ior") else (16, 24)[number]
    identity(shared_data / "recorder" / program / str(size) / "raw.tar.zst")


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ios_strong"])
def test_both_formats_of_a_real_trace_compress_equally(shared_data: Path, program: str) -> None:
    bodies = []
    for form in ("raw", "text"):
        with signatures.open_signed_run(shared_data / "recorder" / program / "8" / f"{form}.tar.zst") as run:
            trace = compress(run.process_count, [run.decode(rank) for rank in run.ranks])
        bodies.append([(one.ranks, remove_times(one)) for one in trace.classes])
    assert bodies[0] == bodies[1]


def remove_times(rank_class: RankClass) -> list[object]:
    """Return the calls of a class without times."""
    return [
        (node.module, node.function, node.level, node.texts, node.slots) if isinstance(node, Call) else node.counts
        for node in nodes(rank_class.body)
    ]


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ior_mpiio_chunk"])
def test_real_programs_have_few_more_classes_at_24_ranks(shared_data: Path, program: str) -> None:
    """Rank 0, the other ranks, and at 24 ranks two additional aggregators; uninitialized memory splits no class."""
    counts = []
    for size in (8, 24):
        with signatures.open_signed_run(shared_data / "recorder" / program / str(size) / "raw.tar.zst") as run:
            counts.append(len(compress(run.process_count, map(run.decode, run.ranks)).classes))
    assert counts == [2, 3 if program == "ior_mpiio_inter_coll" else 2]


Longs = npt.NDArray[np.int64]
A, B, C, D, E = range(5)


def fold_symbols(symbols: Sequence[int] | Longs, folder: Folder | None = None) -> tuple[tuple[int, ...], str]:
    """Return the structure of symbols and their loops, after checking that it expands to the symbols."""
    shape, nodes = (folder or Folder()).fold(np.array(symbols, np.int32))
    assert naive.executed(nodes) == list(zip(map(int, symbols), range(len(symbols)), strict=True))
    return shape, format_nodes(nodes)


def format_nodes(nodes: Sequence[FoldedNode]) -> str:
    parts = []
    for node in nodes:
        if isinstance(node, FoldedCall):
            parts.append("abcdefghijklmnopqrstuvwxyz"[node.symbol] if node.symbol < 26 else f"<{node.symbol}>")
        else:
            counts = node.counts.tolist()
            parts.append(f"{counts[0] if len(set(counts)) == 1 else counts}({format_nodes(node.body)})")
    return "".join(parts)


# ---- lossless


@settings(deadline=None)
@given(
    st.one_of(
        st.lists(st.integers(0, 1), max_size=80),
        st.lists(st.integers(0, 2), max_size=60),
        st.lists(st.integers(0, 6), max_size=40),
        st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), max_size=4).map(
            lambda parts: [symbol for part in parts for _ in range(len(part)) for symbol in part * 3]
        ),
    )
)
def test_folding_restores_any_symbols(symbols: list[int]) -> None:
    fold_symbols(symbols)


@st.composite
def programs(draw: st.DrawFn, min_count: int = 1) -> tuple[Program, Program]:
    """Draw two executions of a program with distinct calls, with different iteration counts above a minimum."""
    symbols = count()

    def counts() -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(min_count, 5), min_size=1, max_size=3)))

    def bodies(depth: int) -> tuple[tuple[Program, ...], tuple[Program, ...]]:
        pairs: list[tuple[Program, Program]] = []
        for is_loop in draw(st.lists(st.booleans(), min_size=1, max_size=3)):
            if is_loop and depth:
                one, other = bodies(depth - 1)
                pairs.append(((counts(), one), (counts(), other)))
            symbol = next(symbols)
            pairs.append((symbol, symbol))
        return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)

    one, other = bodies(3)
    return ((1,), one), ((1,), other)


@settings(deadline=None, max_examples=examples(50))
@given(programs())
def test_folding_restores_nested_loops_of_different_iterations(pair: tuple[Program, Program]) -> None:
    for program in pair:
        fold_symbols(naive.expanded(program)[:5000])


@settings(deadline=None, max_examples=examples(50))
@given(programs(min_count=2))
def test_shape_is_independent_of_iterations(pair: tuple[Program, Program]) -> None:
    folder = Folder()
    one, other = (naive.expanded(program) for program in pair)
    if max(len(one), len(other)) <= 5000:
        assert fold_symbols(one, folder)[0] == fold_symbols(other, folder)[0]


# ---- examples


@pytest.mark.parametrize(
    ("symbols", "loops"),
    [
        ([], ""),
        ([A], "a"),
        ([A, B, C], "abc"),
        ([A, A], "2(a)"),
        ([A, B] * 7, "7(ab)"),
        ([A, B, B, C] * 3, "3(a2(b)c)"),
        ([A] + [B, C] * 4 + [A], "a4(bc)a"),
        (([A] + [B] * 3 + [C]) * 2 + ([A] + [B] * 2 + [C]), "3(a[3, 3, 2](b)c)"),
        (([A, B] * 2 + [C]) * 3 + [D], "3(2(ab)c)d"),
        # The shortest repeat first: in ABAAB ABAAB, AA.
        ([A, B, A, A, B] * 2, "2(ab2(a)b)"),
        # Repeats overlap: the first repeat is folded as far as possible.
        ([A, B, A, B, A, C, A, C], "2(ab)2(ac)"),
        # Equal bodies at two places are separate loops.
        ([A, A, B, A, A, A], "2(a)b3(a)"),
        # A loop longer than the maximum tested length is found after its inner loops are folded.
        (([A] * 50 + [B]) * 3, "3(50(a)b)"),
        # Four nested loops.
        (((([A] * 2 + [B]) * 2 + [C]) * 2 + [D]) * 2 + [E], "2(2(2(2(a)b)c)d)e"),
    ],
)
def test_example_symbols_have_the_expected_loops(symbols: list[int], loops: str) -> None:
    assert fold_symbols(symbols)[1] == loops


def test_folding_keeps_positions_and_counts_of_each_entry() -> None:
    _, nodes = Folder().fold(np.array([A, B, B, C, A, B, B, B, C]))
    (outer,) = nodes
    assert isinstance(outer, FoldedLoop)
    assert outer.counts.tolist() == [2]
    first, inner, last = outer.body
    assert isinstance(first, FoldedCall)
    assert isinstance(inner, FoldedLoop)
    assert isinstance(last, FoldedCall)
    assert (first.positions.tolist(), last.positions.tolist()) == ([0, 4], [3, 8])
    assert inner.counts.tolist() == [2, 3]
    (again,) = inner.body
    assert isinstance(again, FoldedCall)
    assert again.positions.tolist() == [1, 2, 5, 6, 7]


def test_shapes_identify_equal_ranks() -> None:
    folder = Folder()
    shapes = [fold_symbols([A, *[B, C] * n, D], folder)[0] for n in (2, 3, 300)]
    assert len(set(shapes)) == 1
    assert fold_symbols([A, *[C, B] * 3, D], folder)[0] != shapes[0]
    # One iteration is not a loop, so the two ranks are in different classes.
    assert fold_symbols([A, B, C, D], folder)[0] != shapes[0]


def test_equal_bodies_have_equal_symbols() -> None:
    folder = Folder()
    loop = folder.loop_symbol((A, B))
    assert loop < 0
    assert folder.loop_symbol((A, B)) == loop != folder.loop_symbol((B, A))
    assert folder.loop_body(loop) == (A, B)


def test_loops_of_one_body_found_separately_are_in_order() -> None:
    symbols = np.array([A, A, A, B, A, A])
    work = compression._Folding(Folder(), symbols, np.arange(6), 0)
    loop = work.folder.loop_symbol((A,))
    work._add_entries(loop, np.array([4]), np.array([2]), 1)
    work._add_entries(loop, np.array([0]), np.array([3]), 1)
    nodes = work.nodes((loop, B, loop), np.array([[0, 3, 4]]))
    assert naive.executed(nodes) == list(zip(symbols.tolist(), range(6), strict=True))
    assert format_nodes(nodes) == "3(a)b2(a)"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), max_size=6), st.integers(-3, 3))
def test_arithmetic_ranges_are_concatenated(rows: list[tuple[int, int]], stride: int) -> None:
    firsts, counts = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    expected = [first + stride * index for first, count in rows for index in range(count)]
    assert arithmetic_ranges(firsts, counts, stride).tolist() == expected


# ---- irregular calls


def fibonacci(size: int) -> Longs:
    """Return the Fibonacci word, in which repeats are frequent but have few iterations."""
    words = [[B], [A]]
    while len(words[-1]) < size:
        words.append(words[-1] + words[-2])
    return np.array(words[-1][:size])


def squares(size: int) -> Longs:
    """Return bodies of all lengths, each twice, so that every length is folded."""
    parts = [np.tile(np.arange(length) % 97 + length, 2) for length in range(2, 2000)]
    return np.concatenate(parts)[:size]


@pytest.mark.parametrize(
    "symbols",
    [
        np.random.default_rng(1).integers(0, 50, 40_000),
        np.random.default_rng(2).integers(0, 2, 10_000),
        np.arange(40_000),
        fibonacci(10_000),
        squares(10_000),
    ],
    ids=["fifty", "two", "all-different", "fibonacci", "squares"],
)
def test_irregular_symbols_need_bounded_comparisons(symbols: Longs, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = count_comparisons(monkeypatch)
    fold_symbols(symbols.tolist())
    assert sum(sizes) <= compression._COMPARISONS_PER_CALL * symbols.size + compression._BASE_COMPARISONS


def count_comparisons(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the number of compared symbols is appended for each tested length."""
    sizes: list[int] = []

    def wrap(real: Callable[[Longs, int], tuple[Longs, Longs]]) -> Callable[[Longs, int], tuple[Longs, Longs]]:
        def compare(symbols: Longs, length: int) -> tuple[Longs, Longs]:
            sizes.append(symbols.size)
            return real(symbols, length)

        return compare

    monkeypatch.setattr(compression, "_find_repeats", wrap(compression._find_repeats))
    return sizes


def test_exhausted_budget_keeps_folded_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_BASE_COMPARISONS", 0)
    monkeypatch.setattr(compression, "_COMPARISONS_PER_CALL", 12)
    sizes = count_comparisons(monkeypatch)
    symbols = [*[A, A] * 20, *squares(400).tolist()]
    assert fold_symbols(symbols)[1].startswith("40(a)")
    assert sum(sizes) <= 12 * len(symbols)


def test_long_regular_programs_are_a_single_loop() -> None:
    body = [A, *[B, C] * 3, D]
    shape, loops = fold_symbols(body * 12_500)
    assert (len(shape), loops) == (1, "12500(a3(bc)d)")
