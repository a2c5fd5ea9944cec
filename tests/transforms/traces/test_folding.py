"""A rank's calls folded into loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from tests.budget import examples
from tests.naive.traces import folding as naive
from tests.naive.traces.folding import Program
from transforms.traces import folding
from transforms.traces.folding import FoldedCall, FoldedLoop, FoldedNode, Folder, spread

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
    work = folding._Folding(Folder(), symbols, np.arange(6), 0)
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
    assert sum(looked) <= folding._MOST_LOOKS * symbols.size + folding._FREE_LOOKS


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets how many symbols are looked at, each time that a length is tried."""
    looked: list[int] = []

    def told(real: Callable[[Longs, int], tuple[Longs, Longs]]) -> Callable[[Longs, int], tuple[Longs, Longs]]:
        def look(symbols: Longs, length: int) -> tuple[Longs, Longs]:
            looked.append(symbols.size)
            return real(symbols, length)

        return look

    monkeypatch.setattr(folding, "_repeats", told(folding._repeats))
    return looked


def test_where_looks_end_what_is_folded_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_FREE_LOOKS", 0)
    monkeypatch.setattr(folding, "_MOST_LOOKS", 12)
    looked = counted(monkeypatch)
    symbols = [*[A, A] * 20, *squares(400).tolist()]
    assert folded(symbols)[1].startswith("40(a)")
    assert sum(looked) <= 12 * len(symbols)


def test_long_regular_programs_are_one_loop() -> None:
    body = [A, *[B, C] * 3, D]
    shape, loops = folded(body * 12_500)
    assert (len(shape), loops) == (1, "12500(a3(bc)d)")
