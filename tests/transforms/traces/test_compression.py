"""Compression of the calls of all ranks: lossless, of constant size, and with the times that there were."""

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
    compress,
    compress_together,
    spread,
)
from iosig.transforms.traces.expansion import rank_calls
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass
from iosig.warehouse.sources.recorder import signatures
from tests.budget import examples
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


def sound(trace: CompressedTrace, ranks: Sequence[RankCalls]) -> CompressedTrace:
    """Return a trace after checking that it is valid and gives back each call of each rank."""
    check(trace)
    silent = set(range(trace.process_count)) - {calls.rank for calls in ranks}
    assert all(rank_calls(trace, rank).is_empty() for rank in silent)
    for calls in ranks:
        comes_back(trace, calls)
    return trace


def comes_back(trace: CompressedTrace, calls: RankCalls) -> None:
    expected = calls.signatures.select(COLUMNS)[calls.order]
    assert rank_calls(trace, calls.rank).select(COLUMNS).equals(expected)


def compressed(*made: Sequence[Made]) -> CompressedTrace:
    ranks = [ranked(rank, own) for rank, own in enumerate(made)]
    return sound(compress(len(ranks), ranks), ranks)


def ranks_of(trace: CompressedTrace) -> list[list[int]]:
    return [class_ranks(one) for one in trace.classes]


def shares(trace: CompressedTrace) -> list[tuple[int, int]]:
    """Return how many shares, and runs in them, each vector has, in order."""
    every = [node for rank_class in trace.classes for node in nodes(rank_class.body)]
    vectors = [node.counts for node in every if isinstance(node, Loop)]
    vectors += [slot.vector for node in every if isinstance(node, Call) for slot in node.slots]
    return [(len(vector), sum(len(share.values) + len(share.shifts) for share in vector)) for vector in vectors]


# ---- lossless


@st.composite
def streams(draw: st.DrawFn) -> list[Ranked]:
    """Draw the calls of ranks: few kinds of odd texts in loops that iterate unequally often; numbers by rank or not."""
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
        made: list[Made] = []
        for i, place in enumerate(own):
            (module, function), level, text, number = kinds[place]
            made.append((rank, module, function, level, text + number.format(i=i, rank=rank, odd=odd[i % len(odd)])))
        found.append(ranked(rank, made))
    return found


@settings(deadline=None, max_examples=examples(40))
@given(streams())
def test_any_calls_come_back(ranks: list[Ranked]) -> None:
    sound(compress(8, ranks), ranks)


@settings(deadline=None, max_examples=examples(20))
@given(programs())
def test_programs_come_back_and_ranks_that_call_the_same_are_of_one_class(drawn: tuple[int, list[Made]]) -> None:
    process_count, made = drawn
    own = [[call for call in made if call[0] == rank] for rank in range(process_count)]
    trace = compressed(*own)
    alike = defaultdict(set)
    for number, ranks in enumerate(ranks_of(trace)):
        for rank in ranks:
            alike[naive.kinds([call[1:] for call in own[rank]])].add(number)
    assert all(len(classes) == 1 for classes in alike.values())
    assert sorted(chain.from_iterable(ranks_of(trace))) == [rank for rank in range(process_count) if own[rank]]


@settings(deadline=None, max_examples=examples(12))
@given(st.lists(streams(), min_size=2, max_size=3))
def test_traces_together_come_back_each(traces: list[list[Ranked]]) -> None:
    for ranks, trace in zip(traces, compress_together([(8, ranks) for ranks in traces]), strict=True):
        sound(trace, ranks)


@pytest.mark.parametrize(
    "given_texts", [["999999999999999999", "0"], ["[-999999999999999999_1]", "[999999999999999999_1]"]]
)
def test_numbers_at_the_limits(given_texts: list[str]) -> None:
    """Their differences, and those of ranks, are larger than any of them."""
    texts = given_texts * 3
    made = [[(rank, "MPIIO", "f", 0, text) for text in texts[rank % 2 :]] for rank in range(6)]
    (one,) = ranks_of(compressed(*[own[:4] for own in made]))
    assert one == list(range(6))


# ---- rank classes


def test_rank_0_that_creates_is_a_class_of_its_own() -> None:
    made = [[posix(r, "open", "/a/f", 66, 420) if r == 0 else posix(r, "open", "/a/f", 2)] for r in range(8)]
    trace = compressed(*made)
    assert [one.ranks for one in trace.classes] == [(Progression(0),), (Progression(1, (1,), (7,)),)]


def test_group_roots_are_a_class() -> None:
    def program(rank: int) -> Iterator[Made]:
        yield posix(rank, "open", f"/a/f.{rank // 4}", 66)
        if rank % 4 == 0:
            yield posix(rank, "unlink", "/a/lock")

    trace = compressed(*(list(program(rank)) for rank in range(24)))
    assert [one.ranks for one in trace.classes] == [
        (Progression(0, (4,), (6,)),),
        (Progression(1, (4, 1), (6, 3)),),
    ]


def test_ranks_that_iterate_unequally_often_are_of_one_class() -> None:
    trace = compressed(*([posix(rank, "write", "/a/f", 8)] * (rank + 2) for rank in range(6)))
    (one,) = trace.classes
    (loop,) = one.body
    assert isinstance(loop, Loop)
    (share,) = loop.counts
    assert (share.ranks, share.values, share.shifts) == (
        Progression(0, (1,), (6,)),
        (Progression(2),),
        ((Progression(1),),),
    )


def test_ranks_that_iterate_unequally_often_in_turn_share_what_they_have_in_common() -> None:
    """Even ranks fold by themselves, and odd ones: the values of both are one share again."""
    made = [[posix(rank, "open", "/a/f", rank), *[posix(rank, "sync")] * (2 + rank % 2)] for rank in range(6)]
    (one,) = compressed(*made).classes
    opened, loop = one.body
    assert isinstance(opened, Call)
    assert isinstance(loop, Loop)
    assert [share.ranks for share in opened.slots[0].vector] == [Progression(0, (1,), (6,))]
    assert [share.ranks for share in loop.counts] == [Progression(0, (2, 1), (3, 2))]


def test_signs_of_statuses_divide_no_ranks() -> None:
    texts = [f"0-0 %p 8 MPI_BYTE [{(-1) ** (rank // 2) * (9000 + rank)}_{(-1) ** rank * 7}]" for rank in range(8)]
    trace = compressed(*([(rank, "MPIIO", "MPI_File_write", 0, text)] for rank, text in enumerate(texts)))
    assert ranks_of(trace) == [list(range(8))]


def test_classes_are_in_the_order_of_their_first_ranks_and_silent_ranks_are_of_none() -> None:
    trace = compressed([], [posix(1, "a")], [posix(2, "b")], [posix(3, "a")], [])
    assert ranks_of(trace) == [[1, 3], [2]]
    assert compressed([], []).classes == ()
    assert compress(3, []) == CompressedTrace(3, ())
    assert compress_together([]) == ()


def test_ranks_may_come_in_any_order() -> None:
    ranks = [ranked(rank, [posix(rank, "write", "/a/f", rank * 8)]) for rank in range(6)]
    assert compress(6, iter(reversed(ranks))) == compress(6, ranks)


def test_widths_are_those_of_all_traces_together() -> None:
    """The 12 of a run of many ranks shows no zeros, the 7 of a small one does."""
    few, many = ([ranked(0, [posix(0, "open", text)])] for text in ("/a/f.07", "/a/f.12"))
    widths = [
        node.slots[0].width
        for trace in compress_together([(1, few), (1, many)])
        for node in trace.classes[0].body
        if isinstance(node, Call)
    ]
    assert widths == [2, 2]


@pytest.mark.parametrize("ranks", [[0, 0], [2], [-1], [0, 1, 5]])
def test_ranks_that_are_not_there_or_twice_are_refused(ranks: list[int]) -> None:
    with pytest.raises(ValueError, match="not those of 2 processes"):
        compress(2, [ranked(rank, [posix(rank, "sync")]) for rank in ranks])


def test_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        compress(1, [ranked(0, [posix(0, "open", "a\0b")])])


# ---- constant size


def table_one(process_count: int, iterations: int) -> CompressedTrace:
    """Return the compressed trace of the paper's Table 1, of 24,000 bytes a row; rank 0 creates the file."""
    size = 24_000 // process_count

    def program(rank: int) -> list[Made]:
        made = [posix(rank, "open", "/a/f", *((66, 420) if rank == 0 else (2,)))]
        for i in range(iterations):
            made += [
                posix(rank, "lseek", "/a/f", rank * size + 24_000 * i, 0),
                posix(rank, "write", "/a/f", "%p", size),
            ]
        return [*made, posix(rank, "close", "/a/f")]

    ranks = [ranked(rank, program(rank)) for rank in range(process_count)]
    trace = compress(process_count, ranks)
    check(trace)
    for place in (0, 1, process_count // 3, process_count - 1):
        comes_back(trace, ranks[place])
    return trace


@pytest.mark.parametrize(("process_count", "iterations"), [(1000, 3), (8, 300), (24, 40)])
def test_the_size_of_table_one_does_not_grow_with_ranks_and_iterations(process_count: int, iterations: int) -> None:
    one, other = table_one(8, 3), table_one(process_count, iterations)
    assert shares(other) == shares(one)
    assert {count for count, _ in shares(one)} == {1}
    assert [len(found.ranks) for found in other.classes] == [1, 1]
    assert [len(list(nodes(found.body))) for found in other.classes] == [5, 5]


# ---- times


@st.composite
def timed_streams(draw: st.DrawFn) -> list[Ranked]:
    """Draw streams whose calls last as long as chance will have it, in whole ticks, past what they were made in."""
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
def test_gaps_and_durations_are_those_of_each_call_after_each_other(ranks: list[Ranked]) -> None:
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
    with signatures.opened(path) as run:
        ranks = [run.decode(rank) for rank in run.ranks]
        sound(compress(run.process_count, ranks), ranks)


@pytest.mark.parametrize("program", PROGRAMS)
def test_real_traces_come_back(shared_data: Path, program: str) -> None:
    """One of the four sizes of each program."""
    number = PROGRAMS.index(program) % 2
    size = (8, 12)[number] if program.startswith("ior") else (16, 24)[number]
    identity(shared_data / "recorder" / program / str(size) / "raw.tar.zst")


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ios_strong"])
def test_both_forms_of_a_real_trace_compress_to_the_same(shared_data: Path, program: str) -> None:
    bodies = []
    for form in ("raw", "text"):
        with signatures.opened(shared_data / "recorder" / program / "8" / f"{form}.tar.zst") as run:
            trace = compress(run.process_count, [run.decode(rank) for rank in run.ranks])
        bodies.append([(one.ranks, timeless(one)) for one in trace.classes])
    assert bodies[0] == bodies[1]


def timeless(rank_class: RankClass) -> list[object]:
    """Return what a class calls, without when."""
    return [
        (node.module, node.function, node.level, node.texts, node.slots) if isinstance(node, Call) else node.counts
        for node in nodes(rank_class.body)
    ]


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ior_mpiio_chunk"])
def test_real_programs_have_few_more_classes_at_24_ranks(shared_data: Path, program: str) -> None:
    """Rank 0, the others, and at 24 ranks two more aggregators; the signs of what memory held divide nobody."""
    counts = []
    for size in (8, 24):
        with signatures.opened(shared_data / "recorder" / program / str(size) / "raw.tar.zst") as run:
            counts.append(len(compress(run.process_count, map(run.decode, run.ranks)).classes))
    assert counts == [2, 3 if program == "ior_mpiio_inter_coll" else 2]


Longs = npt.NDArray[np.int64]
A, B, C, D, E = range(5)


def folded(symbols: Sequence[int] | Longs, folder: Folder | None = None) -> tuple[tuple[int, ...], str]:
    """Return the shape of symbols and how their loops stand, after checking that these are the symbols."""
    shape, nodes = (folder or Folder()).fold(np.array(symbols, np.int32))
    assert naive.executed(nodes) == list(zip(map(int, symbols), range(len(symbols)), strict=True))
    return shape, shown(nodes)


def shown(nodes: Sequence[FoldedNode]) -> str:
    parts = []
    for node in nodes:
        if isinstance(node, FoldedCall):
            parts.append("abcdefghijklmnopqrstuvwxyz"[node.symbol] if node.symbol < 26 else f"<{node.symbol}>")
        else:
            counts = node.counts.tolist()
            parts.append(f"{counts[0] if len(set(counts)) == 1 else counts}({shown(node.body)})")
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
def test_any_symbols_come_back(symbols: list[int]) -> None:
    folded(symbols)


@st.composite
def programs(draw: st.DrawFn, least: int = 1) -> tuple[Program, Program]:
    """Draw a program whose calls are all different, twice: its loops iterate unequally often, at least so often."""
    symbols = count()

    def counts() -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(least, 5), min_size=1, max_size=3)))

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
def test_calls_of_loops_in_loops_that_iterate_unequally_often_come_back(pair: tuple[Program, Program]) -> None:
    for program in pair:
        folded(naive.expanded(program)[:5000])


@settings(deadline=None, max_examples=examples(50))
@given(programs(least=2))
def test_a_program_has_one_shape_however_often_its_loops_iterate(pair: tuple[Program, Program]) -> None:
    folder = Folder()
    one, other = (naive.expanded(program) for program in pair)
    if max(len(one), len(other)) <= 5000:
        assert folded(one, folder)[0] == folded(other, folder)[0]


# ---- plain answers


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
        # The shortest first: of ABAAB ABAAB, first AA.
        ([A, B, A, A, B] * 2, "2(ab2(a)b)"),
        # Repeats overlap: the first takes what it can.
        ([A, B, A, B, A, C, A, C], "2(ab)2(ac)"),
        # Equal bodies at two places are loops of their own.
        ([A, A, B, A, A, A], "2(a)b3(a)"),
        # A loop in which each call comes more often than is looked for is found once what is in it is folded.
        (([A] * 50 + [B]) * 3, "3(50(a)b)"),
        # Four deep.
        (((([A] * 2 + [B]) * 2 + [C]) * 2 + [D]) * 2 + [E], "2(2(2(2(a)b)c)d)e"),
    ],
)
def test_plain_loops(symbols: list[int], loops: str) -> None:
    assert folded(symbols)[1] == loops


def test_positions_and_counts_are_those_of_each_time() -> None:
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


def test_ranks_compare_by_their_shapes() -> None:
    folder = Folder()
    shapes = [folded([A, *[B, C] * n, D], folder)[0] for n in (2, 3, 300)]
    assert len(set(shapes)) == 1
    assert folded([A, *[C, B] * 3, D], folder)[0] != shapes[0]
    # One iteration is no loop, and two ranks that differ so are not alike.
    assert folded([A, B, C, D], folder)[0] != shapes[0]


def test_loops_have_the_same_symbol_for_the_same_body() -> None:
    folder = Folder()
    loop = folder.around((A, B))
    assert loop < 0
    assert folder.around((A, B)) == loop != folder.around((B, A))
    assert folder.body_of(loop) == (A, B)


def test_loops_of_one_body_that_are_found_one_by_one_are_executed_in_order() -> None:
    symbols = np.array([A, A, A, B, A, A])
    work = compression._Folding(Folder(), symbols, np.arange(6), 0)
    loop = work.folder.around((A,))
    work._keep(loop, np.array([4]), np.array([2]), 1)
    work._keep(loop, np.array([0]), np.array([3]), 1)
    nodes = work.nodes((loop, B, loop), np.array([[0, 3, 4]]))
    assert naive.executed(nodes) == list(zip(symbols.tolist(), range(6), strict=True))
    assert shown(nodes) == "3(a)b2(a)"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), max_size=6), st.integers(-3, 3))
def test_spread_goes_on_from_each_first(rows: list[tuple[int, int]], stride: int) -> None:
    firsts, counts = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    expected = [first + stride * index for first, count in rows for index in range(count)]
    assert spread(firsts, counts, stride).tolist() == expected


# ---- what follows no rule


def fibonacci(size: int) -> Longs:
    """Return the word in which repeats are everywhere, and none goes on."""
    words = [[B], [A]]
    while len(words[-1]) < size:
        words.append(words[-1] + words[-2])
    return np.array(words[-1][:size])


def squares(size: int) -> Longs:
    """Return bodies of all lengths, each of them twice: there is always one more length to fold."""
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
def test_what_follows_no_rule_comes_back_after_bounded_looks(symbols: Longs, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = counted(monkeypatch)
    folded(symbols.tolist())
    assert sum(looked) <= compression._MOST_LOOKS * symbols.size + compression._FREE_LOOKS


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets how many symbols are looked at, each time that a length is tried."""
    looked: list[int] = []

    def told(real: Callable[[Longs, int], tuple[Longs, Longs]]) -> Callable[[Longs, int], tuple[Longs, Longs]]:
        def look(symbols: Longs, length: int) -> tuple[Longs, Longs]:
            looked.append(symbols.size)
            return real(symbols, length)

        return look

    monkeypatch.setattr(compression, "_repeats", told(compression._repeats))
    return looked


def test_where_looks_end_what_is_folded_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_FREE_LOOKS", 0)
    monkeypatch.setattr(compression, "_MOST_LOOKS", 12)
    looked = counted(monkeypatch)
    symbols = [*[A, A] * 20, *squares(400).tolist()]
    assert folded(symbols)[1].startswith("40(a)")
    assert sum(looked) <= 12 * len(symbols)


def test_long_regular_programs_are_one_loop() -> None:
    body = [A, *[B, C] * 3, D]
    shape, loops = folded(body * 12_500)
    assert (len(shape), loops) == (1, "12500(a3(bc)d)")
