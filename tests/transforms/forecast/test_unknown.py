"""What nobody can know beforehand: what came after instants that were like now."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.forecast.unknown import Past, UnknownParams, drawn_unknown


def past(rates: list[float], horizon: int = 2, submitted: dict[tuple[int, int], float] | None = None) -> Past:
    late = np.zeros((len(rates), horizon))
    for place, value in (submitted or {}).items():
        late[place] = value
    return Past(np.array(rates), late, 600.0, 0.0)


def test_jobs_that_were_submitted_later_were_not_known_and_others_were() -> None:
    # in step 2 there are bytes of jobs that were submitted in it, and of some that were a step before it
    one = past([1.0, 1.0, 1.0, 1.0], submitted={(2, 0): 5.0, (2, 1): 7.0})
    assert one.after().tolist() == [[1.0, 1.0], [1.0, 13.0], [6.0, 1.0]]


def test_levels_are_of_what_was_measured_before() -> None:
    one = past([1.0, np.nan, 3.0, 5.0])
    assert one.levels(1200.0)[1:].tolist() == [1.0, 1.0, 3.0, 4.0]
    assert np.isnan(one.levels(1200.0)[0])


def test_instants_of_the_same_level_are_the_likely_ones() -> None:
    rates = [10.0] * 100 + [1000.0] * 100
    alike = UnknownParams(least_analogues=4.0)
    for level in (10.0, 1000.0):
        found = drawn_unknown(past(rates), level, 0.0, 100, 0, alike)
        assert np.median(found) == level
        assert found.shape == (100, 2)


def test_after_days_the_hour_counts() -> None:
    day = np.where(np.arange(144) < 72, 1.0, 9.0)
    one = past(np.tile(day, 8).tolist(), horizon=3)
    for hour, rate in ((4.0, 1.0), (18.0, 9.0)):
        assert np.median(drawn_unknown(one, np.nan, hour, 100, 0)) == rate


def test_what_was_not_measured_is_taken_as_in_the_mean() -> None:
    rates = [2.0, np.nan] * 20
    found = drawn_unknown(past(rates, horizon=3), np.nan, 0.0, 50, 0)
    assert found == pytest.approx(2.0)


@pytest.mark.parametrize("rates", [[1.0], [np.nan, np.nan, np.nan]])
def test_a_past_that_tells_nothing_is_refused(rates: list[float]) -> None:
    with pytest.raises(ValueError, match="past"):
        drawn_unknown(past(rates), 1.0, 0.0, 10, 0)
