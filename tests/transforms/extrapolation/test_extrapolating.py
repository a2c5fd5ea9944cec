"""Extrapolation of whole programs is exact or refused, and reports its models and refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from iosig.transforms.extrapolation.count_models import FAMILIES, CountFamily, Linear
from iosig.transforms.extrapolation.extrapolating import (
    MAX_REFUSALS,
    ExtrapolationParams,
    extrapolate,
    extrapolate_to,
    fit_trace,
)
from iosig.transforms.extrapolation.iteration_models import Families
from iosig.transforms.extrapolation.result import ExtrapolatedTrace, FittedTrace, Refusal
from iosig.transforms.traces.checks import check
from iosig.transforms.traces.trace import CompressedTrace
from tests.budget import examples
from tests.extrapolated_programs import (
    INPUTS,
    PROGRAMS,
    REFUSED,
    Drawn,
    Made,
    NotDefined,
    Program,
    first_difference,
    posix,
    programs,
    traces_of,
)

TARGETS = (1, 6, 20, 28, 48, 64)
#: Expected refusals by program and rank count; other programs are extrapolated wherever they are defined.
_NOT_GIVEN = {
    "neighbors": {1: "class 1, ranks: at 1 ranks, a class has -1 ranks"},
    "even_and_odd": {1: "class 0, ranks: at 1 ranks, the count of ranks n/2 is 1/2, not an integer"},
    "upper_half": {1: "class 0, ranks: at 1 ranks, the count of ranks n/2 is 1/2, not an integer"},
    "group_roots": dict.fromkeys((1, 6), "n/4 is"),
    "log_of_every_fourth": dict.fromkeys((1, 6), "n/4 is"),
    "first_four_write": {1: "class 0, ranks: at 1 ranks, a class has ranks 0 to 3, beyond 0 to 0"},
    "table_one": {28: "960/n is 240/7, not an integer: 28 does not divide 960"},
    # Below the known rank counts, a share plus a small constant cannot be distinguished from a rounded share.
    "header_and_parts": dict.fromkeys((1, 6), "ambiguous: 960/n - 512 is as good as floor"),
    "variables_of_unequal_sizes": dict.fromkeys((1, 6, 64), "ambiguous: "),
}
_REASONS = {
    "triangular": "the iterations differ by rank",
    "loop_by_rank": "the iterations differ by rank",
    "logarithm": "no model gives 3, 3, 3, 3, ... at 8 ranks; 3, 3, 3, 3, ... at 12 ranks; 4",
    "square": "no model gives 0, 64, 128, 192, ... at 8 ranks",
    "rounded_share": "ambiguous: 1008/n - 1 is as good as floor(1000/n), 166 at 6; both give the same at 8, 12, 16, 24",
    "rounded_elements": "ambiguous: 8064/n - 8 is as good as 8*floor(1000/n), 1328 at 6",
    "rounded_total": "ambiguous: -n + 1008 is as good as n*floor(1000/n), 996 at 6",
    "rounded_up": "ambiguous: 960/n + 1 is as good as ceil(968/n), 162 at 6",
    "what_is_left": "ambiguous: n - 8 is as good as (40 mod n), 4 at 6",
    "one_more_for_some": "the iterations differ by rank",
    "at_random": "no model gives",
    "every_third": "these ranks have no model, nor have those of another class",
    "aggregators": "these ranks have no model, nor have those of another class",
    "groups_of_eight_seen_by_fourths": "the count of ranks n/4 is 3/2",
    "half_of_even_ranks": "n/4 is 3/2, not an integer",
}


@cache
def known_of(program: Program, counts: tuple[int, ...] = INPUTS) -> FittedTrace:
    return fit_trace(traces_of(program, counts), ExtrapolationParams())


def said(found: ExtrapolatedTrace) -> str:
    return "; ".join(f"{refusal.field}: {refusal.reason}" for refusal in found.refusals)


# ---- exact or refused, never wrong


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_extrapolated_programs_are_exact(name: str) -> None:
    program = PROGRAMS[name]
    for n in TARGETS:
        found = extrapolate_to(known_of(program), n)
        try:
            [program(rank, n) for rank in range(n)]
        except (NotDefined, ZeroDivisionError):
            assert found.trace is None, n
            continue
        reason = _NOT_GIVEN.get(name, {}).get(n)
        if found.trace is None:
            assert reason is not None, (n, said(found))
            assert reason in said(found)
            continue
        assert reason is None, n
        check(found.trace)
        assert first_difference(found.trace, program) is None, n


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_programs_without_models_are_refused(name: str) -> None:
    found = extrapolate_to(known_of(REFUSED[name]), 6)
    assert found.trace is None
    assert _REASONS[name] in said(found)
    for n in TARGETS[1:]:
        trace = extrapolate_to(known_of(REFUSED[name]), n).trace
        assert trace is None or first_difference(trace, REFUSED[name]) is None, n


@settings(deadline=None, max_examples=examples(12), suppress_health_check=list(HealthCheck))
@given(programs())
def test_results_are_exact_for_random_programs(program: Drawn) -> None:
    try:
        traces = traces_of(program)
    except NotDefined:
        assume(False)
    known = fit_trace(traces, ExtrapolationParams())
    for n in (6, 20, 32):
        trace = extrapolate_to(known, n).trace
        # The remainders of the last rank are equal at all of these rank counts, but different at 6.
        if trace is None or (n == 6 and program.has_remainders_of_last):
            continue
        check(trace)
        try:
            assert first_difference(trace, program) is None, n
        except NotDefined:
            continue


@settings(deadline=None, max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(st.integers(50, 5000), st.integers(8, 100), st.sampled_from([(8, 12, 16, 24), (8, 16, 24, 32), (4, 6, 8, 12)]))
def test_rounded_divisions_are_never_wrong(k: int, n: int, counts: tuple[int, ...]) -> None:
    def program(r: int, n: int) -> list[Made]:
        return [posix("pwrite", "/a/f", "%p", k // n, r * (k // n) + i * k) for i in range(2)]

    trace = extrapolate_to(fit_trace(traces_of(program, counts), ExtrapolationParams()), n).trace
    assert trace is None or first_difference(trace, program) is None


# ---- loops of one iteration


def blocks(r: int, n: int) -> list[Made]:
    rows = [(posix("lseek", "/a/f", i * 8 * n + r * 8, 0), posix("write", "/a/f", "%p", 8)) for i in range(24 // n)]
    return [posix("open", "/a/f", 66), *(call for row in rows for call in row), posix("close", "/a/f")]


def more_blocks(r: int, n: int) -> list[Made]:
    rows = [(posix("lseek", "/a/f", i * 8 * n + r * 8, 0), posix("write", "/a/f", "%p", 8)) for i in range(n // 8)]
    steps = [
        [posix("open", f"/a/f{t}", 66), *(call for row in rows for call in row), posix("fsync", t)] for t in range(3)
    ]
    return [call for step in steps for call in step]


@pytest.mark.parametrize(
    ("program", "counts", "targets"),
    [(blocks, (6, 8, 12, 24), (1, 2, 3, 4, 24)), (more_blocks, (8, 16, 24, 32), (8, 40, 64))],
)
def test_loops_with_one_iteration_are_extrapolated(
    program: Program, counts: tuple[int, ...], targets: tuple[int, ...]
) -> None:
    for n in targets:
        found = extrapolate_to(known_of(program, counts), n)
        assert found.trace is not None, said(found)
        check(found.trace)
        assert first_difference(found.trace, program) is None, n


# ---- rank counts and traces


@pytest.mark.parametrize("counts", [(8, 12, 16), (8, 8, 12, 16), ()])
def test_too_few_rank_counts_are_refused(counts: tuple[int, ...]) -> None:
    found = extrapolate(traces_of(PROGRAMS["table_one"], counts) if counts else (), 20)
    reason = f"{len(set(counts))} different rank counts are known; 4 are needed"
    assert found.refusals == (Refusal("too_few_rank_counts", "rank counts", reason),)
    assert found.rank_counts == counts
    assert extrapolate(traces_of(PROGRAMS["table_one"], (8, 12, 16)), 20, ExtrapolationParams(3)).trace is not None


@pytest.mark.parametrize("counts", [(24, 8, 16, 12), (8, 12, 16, 24, 24), (4, 8, 12, 16, 20, 24, 32, 40)])
def test_additional_traces_are_accepted_in_any_order(counts: tuple[int, ...]) -> None:
    for name in ("table_one", "group_roots", "four_files"):
        program = PROGRAMS[name]
        found = extrapolate(traces_of(program, tuple(n for n in counts if name != "table_one" or 960 % n == 0)), 48)
        assert found.trace is not None, said(found)
        assert first_difference(found.trace, program) is None


def test_contradictory_traces_of_one_rank_count_are_refused() -> None:
    one, other = traces_of(PROGRAMS["padded_names"], INPUTS), traces_of(PROGRAMS["padded_names"], (8,))
    assert extrapolate((*one, *other), 20).outcome == "extrapolated"

    def open_with_padded_count(r: int, n: int) -> list[Made]:
        return [posix("open", f"/a/f.{r + 1:08d}.{n:03d}", 66, 420)]

    found = extrapolate((*one, *traces_of(open_with_padded_count, (8,))), 20)
    assert found.outcome == "no_exact_model"


def test_traces_of_different_programs_are_refused() -> None:
    found = extrapolate((*traces_of(PROGRAMS["table_one"], (8, 12, 16)), *traces_of(PROGRAMS["root_alone"], (24,))), 48)
    assert found.outcome == "structures_differ"
    assert "at 8 ranks" in found.refusals[0].reason
    assert "at 24 ranks" in found.refusals[0].reason
    assert found.models == ()


def test_rank_with_missing_calls_is_refused() -> None:
    def program(r: int, n: int) -> list[Made]:
        return [] if (r, n) == (5, 12) else [posix("write", "/a/f", "%p", 8)] * 3

    found = extrapolate(traces_of(program), 20)
    assert found.outcome == "no_exact_model"
    assert {refusal.field for refusal in found.refusals} == {"class 0, ranks", "class 1, ranks"}

    def cut(r: int, n: int) -> list[Made]:
        return [posix("write", "/a/f", "%p", 8)] * (2 if (r, n) == (5, 12) else 3)

    found = extrapolate(traces_of(cut), 20)
    assert (found.outcome, said(found)) == (
        "no_exact_model",
        "class 0, loop 0, iterations: the iterations differ by rank",
    )


def test_program_without_calls_is_extrapolated() -> None:
    found = extrapolate([CompressedTrace(n, ()) for n in INPUTS], 20)
    assert found.trace == CompressedTrace(20, ())
    assert [model.field for model in found.models] == ["ranks without calls"]


def test_iterations_that_vary_by_entry_and_rank_count_are_refused() -> None:
    def program(r: int, n: int, most: int = 5) -> list[Made]:
        steps = [[posix("open", "/a/f", 66), *([posix("write", "/a/f", "%p", 8)] * t)] for t in (2, 4, 3, most)]
        return [call for step in steps for call in step]

    found = extrapolate(traces_of(program), 20)
    assert found.trace is not None, said(found)
    assert first_difference(found.trace, program) is None

    def growing(r: int, n: int) -> list[Made]:
        return program(r, n, n)

    found = extrapolate(traces_of(growing), 20)
    assert found.trace is None
    assert "the iterations differ between entries, and between rank counts" in said(found)


# ---- reported results


def test_refusals_beyond_the_limit_are_counted() -> None:
    def program(r: int, n: int) -> list[Made]:
        return [posix("write", *(n * n + place for place in range(MAX_REFUSALS + 30)))]

    found = extrapolate(traces_of(program), 20)
    assert len(found.refusals) == MAX_REFUSALS + 1
    assert found.refusals[-1] == Refusal(
        "no_exact_model",
        "and 30 more",
        f"{MAX_REFUSALS + 30} fields are refused; the first {MAX_REFUSALS} are listed",
    )
    rounded = extrapolate(
        traces_of(lambda r, n: [posix("write", *(960 // n + place for place in range(MAX_REFUSALS + 5)))]), 28
    )
    assert (len(rounded.refusals), rounded.refusals[-1].field) == (MAX_REFUSALS + 1, "and 5 more")


def test_result_lists_models_that_are_not_constant() -> None:
    found = extrapolate(traces_of(PROGRAMS["group_roots"]), 20)
    assert {model.field: model.formula for model in found.models} == {
        "class 0, ranks": "from 0, n/4 of stride 4",
        "class 0, call 0 open, argument 1": "rank/4",
        "class 0, call 2 pwrite, argument 1": "rank/4",
        "class 0, call 2 pwrite, argument 4": "64*i",
        "class 0, call 3 close, argument 1": "rank/4",
        "class 1, ranks": "from 1, n/4 of stride 4, 3 of stride 1",
        "class 1, call 0 stat, argument 1": "floor(rank/4)",
    }


def test_user_families_extend_the_models() -> None:
    class Square:
        def at(self, process_count: int) -> int:
            return process_count**2

        def formula(self) -> str:
            return "n^2"

    families = Families(counts=(*FAMILIES, CountFamily("square", 1, lambda points: Square())))  # type: ignore[arg-type,return-value]
    params = ExtrapolationParams(families=families)
    found = extrapolate(traces_of(REFUSED["square"]), 20, params)
    assert found.trace is not None, said(found)
    assert first_difference(found.trace, REFUSED["square"]) is None
    assert {model.formula for model in found.models} == {"from 0, n of stride 1", "n^2*rank"}
    assert replace(params, min_rank_counts=5).families is families
    assert isinstance(FAMILIES[1].fit([(8, 8)]), Linear)  # type: ignore[list-item]
