"""Outcomes of extrapolations, and the models of a fitted trace."""

from __future__ import annotations

from iosig.transforms.extrapolation.extrapolating import ExtrapolationParams, extrapolate, fit_trace
from iosig.transforms.extrapolation.result import OUTCOMES, FittedCall, FittedLoop
from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from tests.extrapolated_programs import INPUTS, PROGRAMS, REFUSED, traces_of


def test_outcomes_equal_the_choices_of_the_table() -> None:
    (column,) = [column for column in EXTRAPOLATION_RECORDS.columns if column.name == "outcome"]
    assert tuple(column.choices or ()) == OUTCOMES


def test_outcome_is_the_outcome_of_the_first_refusal() -> None:
    for program in (PROGRAMS["table_one"], REFUSED["at_random"], REFUSED["rounded_share"]):
        for n in (28, 6, 48):
            found = extrapolate(traces_of(program), n)
            expected = found.refusals[0].outcome if found.refusals else "extrapolated"
            assert (found.outcome, found.trace is None) == (expected, bool(found.refusals))
            assert {refusal.outcome for refusal in found.refusals} <= set(OUTCOMES[1:])
            assert found.process_count == n


def test_fitted_trace_lists_classes_and_models() -> None:
    known = fit_trace(traces_of(PROGRAMS["table_one"]), ExtrapolationParams())
    assert (known.rank_counts, known.refusals) == (INPUTS, ())
    (one,) = known.classes
    assert one.ranks is not None
    opened, loop, closed = one.body
    assert isinstance(opened, FittedCall)
    assert isinstance(closed, FittedCall)
    assert isinstance(loop, FittedLoop)
    assert loop.is_even
    seek, write = loop.body
    assert isinstance(seek, FittedCall)
    assert isinstance(write, FittedCall)
    assert (len(seek.slots), len(seek.min_values), len(seek.durations), len(seek.gaps)) == (2, 2, 4, 4)
    assert {model.field: model.formula for model in known.models} == {
        "class 0, ranks": "from 0, n of stride 1",
        "class 0, call 2 lseek, argument 2": "960/n*rank + 960*i",
        "class 0, call 3 write, argument 3": "960/n",
    }


def test_numbers_in_names_have_a_minimum_if_padding_is_unknown() -> None:
    """Offsets are written without padding; the padding of names is unknown."""
    (one,) = fit_trace(traces_of(PROGRAMS["files_for_each_rank_of_each_step"]), ExtrapolationParams()).classes
    (loop,) = one.body
    assert isinstance(loop, FittedLoop)
    (call,) = loop.body
    assert isinstance(call, FittedCall)
    assert [slot.width for slot in call.call.slots] == [3, 1, 1, 1, 1]
    assert call.min_values == (0, 0, 0, 0, 0)
    (other,) = fit_trace(
        traces_of(PROGRAMS["files_for_each_rank_of_each_step"], (12, 16, 24, 32)), ExtrapolationParams()
    ).classes
    (loop,) = other.body
    assert isinstance(loop, FittedLoop)
    assert isinstance(loop.body[0], FittedCall)
    assert loop.body[0].min_values == (0, 0, 10, 0, 0)


def test_refused_trace_keeps_its_matched_classes() -> None:
    known = fit_trace(traces_of(REFUSED["at_random"]), ExtrapolationParams())
    assert known.refusals
    assert len(known.classes) == 1
