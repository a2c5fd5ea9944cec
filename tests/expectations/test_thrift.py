"""What Great Expectations makes once in a block, and as often as it likes after it; `test_gate` holds what it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pytest

from iosig.expectations import gate, thrift

ROWS = pd.DataFrame({"a": [1, 2, 3], "b": [3, 2, 1]})


class Engine:
    """Filters rows, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def _apply_row_condition_filter(self, data: pd.DataFrame, row_condition: str, _: dict[str, Any]) -> pd.DataFrame:
        self.count += 1
        return data.query(row_condition)


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Note each configuration that is made."""
    gate._frames()
    from great_expectations.expectations.expectation import Expectation

    made: list[Any] = []
    make = Expectation.configuration.fget
    monkeypatch.setattr(Expectation, "configuration", property(lambda one: made.append(one) or make(one)))
    yield made


def test_each_condition_filters_once_and_anew_afterwards() -> None:
    engine = Engine()
    with thrift.made_once(engine):
        found = [engine._apply_row_condition_filter(ROWS, condition, {}) for condition in ("a > b", "a < b", "a > b")]
    assert [frame["a"].to_list() for frame in found] == [[3], [1], [3]]
    assert engine.count == 2
    assert engine._apply_row_condition_filter(ROWS, "a > b", {})["a"].to_list() == [3]
    assert engine.count == 3
    with thrift.made_once(engine):
        other = engine._apply_row_condition_filter(ROWS.head(2), "a < b", {})
        assert (len(other), len(engine._apply_row_condition_filter(ROWS, "a < b", {}))) == (1, 1)
    assert engine.count == 5


def test_each_expectation_is_configured_once_and_anew_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    with counting(monkeypatch) as made:
        from great_expectations.expectations import ExpectColumnValuesToBeNull, ExpectColumnValuesToNotBeNull

        one, other = ExpectColumnValuesToBeNull(column="a"), ExpectColumnValuesToNotBeNull(column="b")
        with thrift.made_once(Engine()):
            assert [each.configuration.kwargs["column"] for each in (one, other, one, one)] == ["a", "b", "a", "a"]
            assert made == [one, other]
        assert one.configuration.kwargs == {"column": "a"}
        assert made == [one, other, one]


def test_an_engine_that_filters_otherwise_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with counting(monkeypatch) as made:
        from great_expectations.expectations import ExpectColumnValuesToBeNull

        one = ExpectColumnValuesToBeNull(column="a")
        with thrift.made_once(object()):
            assert [one.configuration.kwargs, one.configuration.kwargs] == [{"column": "a"}] * 2
            assert made == [one, one]
