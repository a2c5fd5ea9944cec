from __future__ import annotations

from tests.extrapolated_programs import PROGRAMS, REFUSED, traces_of
from transforms.extrapolation.extrapolating import extrapolate
from transforms.extrapolation.result import OUTCOMES
from warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS


def test_outcomes_are_those_of_the_table() -> None:
    (column,) = [column for column in EXTRAPOLATION_RECORDS.columns if column.name == "outcome"]
    assert tuple(column.choices or ()) == OUTCOMES


def test_the_outcome_is_that_of_the_first_refusal() -> None:
    for program in (PROGRAMS["table_one"], REFUSED["at_random"], REFUSED["rounded_share"]):
        for n in (28, 6, 48):
            found = extrapolate(traces_of(program), n)
            expected = found.refusals[0].outcome if found.refusals else "extrapolated"
            assert (found.outcome, found.trace is None) == (expected, bool(found.refusals))
            assert {refusal.outcome for refusal in found.refusals} <= set(OUTCOMES[1:])
            assert found.process_count == n
