"""Unfold Recorder's grammars (`.cfg`), which encode a rank's calls as Sequitur rules with exponents.

A grammar starts with the number of rules. For each rule follow its negative number, its number of symbols, and a pair
(symbol, exponent) per symbol. A non-negative symbol is a call signature, a negative one a rule; rule -1 is the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from iosig.warehouse.errors import InputRefused

Ints = npt.NDArray[np.int32]

_START_RULE = -1
_REMEDY = "Fetch the trace again, with all of its files."


def unfold(content: bytes, call_count: int, signature_count: int) -> Ints:
    """Return the signature of each call of a rank, in order.

    call_count: the number of time stamps, which bounds the number of calls, so exponents cannot cause a larger memory
    use. Each rule is unfolded once and then copied, so the run time is linear in symbols and calls for any nesting.
    """
    grammar = _parse(content)
    _check(grammar, call_count, signature_count)
    return _UnfoldingState(grammar, call_count).run()


@dataclass(frozen=True, slots=True)
class _Grammar:
    """The bodies of all rules, concatenated; `first` and `last` delimit each rule's symbols."""

    symbols: Ints
    exponents: Ints
    first: dict[int, int]
    last: dict[int, int]


def _parse(content: bytes) -> _Grammar:
    if len(content) < 4 or len(content) % 4:
        raise InputRefused("The grammar is truncated.", _REMEDY)
    numbers = np.frombuffer(content, "<i4")
    if not 1 <= int(numbers[0]) <= numbers.size:
        raise InputRefused(f"The grammar claims {numbers[0]} rules.", _REMEDY)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    is_body = np.ones(numbers.size, np.bool_)
    is_body[0] = False
    place = 1
    for count in range(int(numbers[0])):
        if place + 2 > numbers.size:
            raise InputRefused("The grammar is truncated.", _REMEDY)
        rule, symbol_count = int(numbers[place]), int(numbers[place + 1])
        if rule >= 0 or rule in first or not 0 <= symbol_count <= (numbers.size - place - 2) // 2:
            raise InputRefused(f"The grammar's rule {rule} is repeated, truncated or invalid.", _REMEDY)
        is_body[place : place + 2] = False
        first[rule] = (place - 1) // 2 - count
        last[rule] = first[rule] + symbol_count
        place += 2 + 2 * symbol_count
    if place != numbers.size:
        raise InputRefused("The grammar has extra content after its rules.", _REMEDY)
    bodies = numbers[is_body].reshape(-1, 2)
    return _Grammar(bodies[:, 0].copy(), bodies[:, 1].copy(), first, last)


def _check(grammar: _Grammar, call_count: int, signature_count: int) -> None:
    if _START_RULE not in grammar.first:
        raise InputRefused("The grammar has no start rule -1.", _REMEDY)
    if any(grammar.first[rule] == grammar.last[rule] for rule in grammar.first if rule != _START_RULE):
        raise InputRefused("The grammar has an empty rule.", _REMEDY)
    is_call = grammar.symbols >= 0
    if grammar.symbols.size and (int(grammar.symbols.max()) >= signature_count or int(grammar.exponents.min()) < 1):
        raise InputRefused("The grammar has an unknown symbol or an exponent below 1.", _REMEDY)
    if not set(np.unique(grammar.symbols[~is_call]).tolist()) <= set(grammar.first):
        raise InputRefused("The grammar refers to a missing rule.", _REMEDY)
    # Every rule is used, so the number of calls in the bodies is a lower bound for the total.
    if int(grammar.exponents[is_call].sum(dtype=np.int64)) > call_count:
        raise _refuse_too_many(call_count)


def _refuse_too_many(call_count: int) -> InputRefused:
    return InputRefused(f"The grammar has more calls than the {call_count} that have time stamps.", _REMEDY)


@dataclass(slots=True)
class _OpenRule:
    """State of a rule that is being unfolded: next and last inner rule, position in `calls`, start of the output."""

    rule: int
    inner: int
    inner_end: int
    written: int
    start: int


@dataclass(slots=True)
class _UnfoldingState:
    """State of unfolding a grammar.

    `calls` contains the calls of all bodies, with exponents expanded; `inner` contains the inner rules of all bodies.
    The slices of `calls` between a body's inner rules form the body.
    """

    grammar: _Grammar
    call_count: int
    out: Ints = field(init=False)
    position: int = 0
    calls: Ints = field(init=False)
    inner: list[int] = field(init=False)
    times: list[int] = field(init=False)
    before: list[int] = field(init=False)
    places: npt.NDArray[np.intp] = field(init=False)
    call_places: npt.NDArray[np.int64] = field(init=False)
    finished: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        symbols, exponents = self.grammar.symbols, self.grammar.exponents
        is_call = symbols >= 0
        self.out = np.empty(self.call_count, np.int32)
        self.calls = np.repeat(symbols[is_call], exponents[is_call])
        self.call_places = np.concatenate(([0], np.cumsum(np.where(is_call, exponents, 0), dtype=np.int64)))
        self.places = np.flatnonzero(~is_call)
        self.inner, self.times = symbols[self.places].tolist(), exponents[self.places].tolist()
        self.before = self.call_places[self.places].tolist()

    def run(self) -> Ints:
        """Unfold the start rule with an explicit stack."""
        stack = [self._open(_START_RULE)]
        active = {_START_RULE}
        while stack:
            top = stack[-1]
            if top.inner == top.inner_end:
                self._close(top)
                active.remove(stack.pop().rule)
                if stack:
                    self._repeat(stack[-1], self.times[stack[-1].inner] - 1)
                continue
            self._write(top, self.before[top.inner])
            symbol = self.inner[top.inner]
            if symbol in self.finished:
                self._repeat(top, self.times[top.inner])
            elif symbol in active:
                raise InputRefused(f"The grammar's rule {symbol} contains itself.", _REMEDY)
            else:
                active.add(symbol)
                stack.append(self._open(symbol))
        if self.position != self.call_count:
            raise InputRefused(
                f"The grammar has {self.position} calls, but {self.call_count} have time stamps.", _REMEDY
            )
        return self.out

    def _open(self, rule: int) -> _OpenRule:
        first = self.grammar.first[rule]
        inner, inner_end = np.searchsorted(self.places, (first, self.grammar.last[rule])).tolist()
        return _OpenRule(rule, inner, inner_end, int(self.call_places[first]), self.position)

    def _close(self, top: _OpenRule) -> None:
        self._write(top, int(self.call_places[self.grammar.last[top.rule]]))
        self.finished[top.rule] = (top.start, self.position - top.start)

    def _write(self, top: _OpenRule, end: int) -> None:
        """Write the calls in a body up to the next inner rule."""
        after = self.position + end - top.written
        if after > self.call_count:
            raise _refuse_too_many(self.call_count)
        self.out[self.position : after] = self.calls[top.written : end]
        self.position, top.written = after, end

    def _repeat(self, top: _OpenRule, times: int) -> None:
        """Copy the output of a body's next inner rule `times` times, and advance past the rule."""
        start, length = self.finished[self.inner[top.inner]]
        after = self.position + length * times
        if after > self.call_count:
            raise _refuse_too_many(self.call_count)
        self.out[self.position : after].reshape(times, length)[:] = self.out[start : start + length]
        self.position = after
        top.inner += 1
