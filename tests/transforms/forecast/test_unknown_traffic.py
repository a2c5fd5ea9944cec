"""Unknown traffic: jobs not yet submitted, mean levels, and analogues of the present."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.forecast.unknown_traffic import AnalogueParams, TrafficHistory, draw_unknown_traffic


def make_history(
    rates: list[float], horizon: int = 2, submitted: dict[tuple[int, int], float] | None = None
) -> TrafficHistory:
    late = np.zeros((len(rates), horizon))
    for index, value in (submitted or {}).items():
        late[index] = value
    return TrafficHistory(np.array(rates), late, 600.0, 0.0)


def test_jobs_are_unknown_until_submitted() -> None:
    # step 2 has bytes of jobs submitted in it, and of jobs submitted one step earlier
    history = make_history([1.0, 1.0, 1.0, 1.0], submitted={(2, 0): 5.0, (2, 1): 7.0})
    assert history.compute_unknown_rates().tolist() == [[1.0, 1.0], [1.0, 13.0], [6.0, 1.0]]


def test_levels_average_measured_steps() -> None:
    history = make_history([1.0, np.nan, 3.0, 5.0])
    assert history.mean_levels(1200.0)[1:].tolist() == [1.0, 1.0, 3.0, 4.0]
    assert np.isnan(history.mean_levels(1200.0)[0])


def test_analogues_have_similar_levels() -> None:
    rates = [10.0] * 100 + [1000.0] * 100
    params = AnalogueParams(min_analogues=4.0)
    for level in (10.0, 1000.0):
        drawn = draw_unknown_traffic(make_history(rates), level, 0.0, 100, 0, params)
        assert np.median(drawn) == level
        assert drawn.shape == (100, 2)


def test_analogues_match_the_hour_after_several_days() -> None:
    day = np.where(np.arange(144) < 72, 1.0, 9.0)
    history = make_history(np.tile(day, 8).tolist(), horizon=3)
    for hour, rate in ((4.0, 1.0), (18.0, 9.0)):
        assert np.median(draw_unknown_traffic(history, np.nan, hour, 100, 0)) == rate


def test_unmeasured_steps_are_drawn_as_the_mean() -> None:
    rates = [2.0, np.nan] * 20
    drawn = draw_unknown_traffic(make_history(rates, horizon=3), np.nan, 0.0, 50, 0)
    assert drawn == pytest.approx(2.0)


@pytest.mark.parametrize("rates", [[1.0], [np.nan, np.nan, np.nan]])
def test_too_short_or_unmeasured_history_raises(rates: list[float]) -> None:
    with pytest.raises(ValueError, match="past"):
        draw_unknown_traffic(make_history(rates), 1.0, 0.0, 10, 0)
