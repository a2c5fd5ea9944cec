from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder.grammar import unfold
from tests.naive.recorder_traces import Grammar, folded, grammar_file, sequence


def unfold_rules(grammar: Grammar, call_count: int, signature_count: int = 3) -> list[int]:
    return unfold(grammar_file(grammar), call_count, signature_count).tolist()


@pytest.mark.parametrize(
    ("grammar", "expected"),
    [
        ({-1: []}, []),
        ({-1: [(2, 1)]}, [2]),
        ({-1: [(0, 3), (1, 1)]}, [0, 0, 0, 1]),
        ({-1: [(-2, 2), (2, 1)], -2: [(0, 1), (1, 2)]}, [0, 1, 1, 0, 1, 1, 2]),
        ({-2: [(0, 1)], -1: [(1, 1), (-2, 3), (1, 1)]}, [1, 0, 0, 0, 1]),
        ({-1: [(-7, 2), (-3, 1)], -3: [(0, 1), (1, 1)], -7: [(-3, 2), (2, 1)]}, [0, 1, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1]),
    ],
)
def test_rules_are_expanded_where_referenced(grammar: Grammar, expected: list[int]) -> None:
    assert unfold_rules(grammar, len(expected)) == expected


@given(st.lists(st.integers(0, 3), max_size=120))
def test_sequence_round_trips_through_grammar(symbols: list[int]) -> None:
    assert unfold_rules(folded(symbols), len(symbols), 4) == symbols


@st.composite
def grammars(draw: st.DrawFn) -> Grammar:
    """Draw rules that reference only later rules, each of them, with deep nesting."""
    count = draw(st.integers(1, 6))
    rules: Grammar = {}
    for rule in range(count):
        known = list(range(3)) + [-1 - later for later in range(rule + 1, count)]
        body = draw(st.lists(st.tuples(st.sampled_from(known), st.integers(1, 4)), min_size=1, max_size=5))
        rules[-1 - rule] = body + ([(-2 - rule, 1)] if rule + 1 < count else [])
    return rules


@given(grammars())
def test_unfolding_matches_naive_expansion(grammar: Grammar) -> None:
    expected = sequence(grammar, -1)
    assert unfold_rules(grammar, len(expected)) == expected
    for wrong in (len(expected) - 1, len(expected) + 1):
        with pytest.raises(InputRefused, match="time stamps"):
            unfold_rules(grammar, wrong)


def test_deeply_nested_rules_need_no_recursion() -> None:
    depth = 20_000
    chain: Grammar = {-1 - number: [(-2 - number, 1)] for number in range(depth)}
    assert unfold_rules(chain | {-1 - depth: [(1, 5)]}, 5) == [1] * 5


def test_exponents_are_limited_by_number_of_time_stamps() -> None:
    bomb: Grammar = {-1 - number: [(-2 - number, 2**31 - 1)] for number in range(30)}
    with pytest.raises(InputRefused, match="more calls than the 1000"):
        unfold_rules(bomb | {-31: [(0, 1)]}, 1000)
    with pytest.raises(InputRefused, match="more calls than the 10"):
        unfold_rules({-1: [(0, 2**31 - 1)] * 50}, 10)


@pytest.mark.parametrize(
    ("grammar", "said"),
    [
        ({-1: [(3, 1)]}, "unknown symbol"),
        ({-1: [(0, 0)]}, "exponent below 1"),
        ({-1: [(0, -1)]}, "exponent below 1"),
        ({-1: [(-2, 1)]}, "a missing rule"),
        ({-2: [(0, 1)]}, "no start rule -1"),
        ({-1: [(0, 1), (-2, 1)], -2: []}, "empty"),
        ({-1: [(0, 1), (-1, 1)]}, "contains itself"),
        ({-1: [(0, 1), (-2, 1)], -2: [(-3, 1)], -3: [(1, 1), (-2, 1)]}, "contains itself"),
        ({-1: [(0, 1)], 4: [(0, 1)]}, "rule 4"),
    ],
)
def test_invalid_grammar_is_refused(grammar: Grammar, said: str) -> None:
    with pytest.raises(InputRefused, match=said):
        unfold_rules(grammar, 4)


def test_damaged_grammar_raises_only_input_refused() -> None:
    content = grammar_file(folded([0, 1, 2, 0, 1, 2, 0, 1, 1, 1, 2]))
    for size in range(len(content)):
        with pytest.raises(InputRefused):
            unfold(content[:size], 11, 3)
    with pytest.raises(InputRefused, match="extra content"):
        unfold(content + struct.pack("<i", 0), 11, 3)
    rng = np.random.default_rng(1)
    for _ in range(400):
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        try:
            assert unfold(bytes(damaged), 11, 3).size == 11
        except InputRefused:
            continue


def test_excessive_declared_counts_allocate_no_memory() -> None:
    for numbers in ([2**31 - 1], [-1], [1, -1, 2**31 - 1], [1, -1, -1], [2, -1, 0, -1, 0]):
        with pytest.raises(InputRefused):
            unfold(struct.pack(f"<{len(numbers)}i", *numbers), 5, 3)
