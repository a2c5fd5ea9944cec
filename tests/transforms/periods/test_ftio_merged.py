"""Refined confidence by the paper's own figures, what counts where one method has no answer, merged cosines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from transforms.periods.answers import Candidates, Detections
from transforms.periods.ftio_merged import refine, similarities

NAN = float("nan")


def candidates(*periods_s: list[float]) -> Candidates:
    """Candidates of several signals, by their periods."""
    flat = np.array([period for row in periods_s for period in row])
    none = np.full(len(flat), NAN)
    return Candidates(1.0 / flat, none, none, none, np.cumsum([0, *(len(row) for row in periods_s)]))


def detected(period_s: list[float], confidence: list[float], found: Candidates | None = None) -> Detections:
    """Answers of a method; NaN where there is none."""
    period, none = np.array(period_s), np.full(len(period_s), NAN)
    outcome = np.where(np.isnan(period), "aperiodic", "periodic")
    return Detections(
        outcome, 1.0 / period, np.array(confidence), none, none, none, found or Candidates.none(len(period_s))
    )


def test_the_practical_example() -> None:
    """Section II-C: 111.67 s at 62.5 %, five candidates of 104.8 s at 99.58 %, give 97.6 % and 86.5 %."""
    deviation = (1 - 0.9958) * 104.8
    five = 104.8 + deviation * np.sqrt(5 / 4) * np.array([1, 1, -1, -1, 0])
    found = refine(detected([111.67], [0.625]), detected([104.8], [0.9958], candidates(five.tolist())))
    assert found.similarity[0] == pytest.approx(0.976, abs=0.0005)
    assert found.refined_confidence[0] == pytest.approx(0.865, abs=0.0005)
    assert found.detections.period_s[0] == pytest.approx(111.67)


def test_a_single_candidate_as_in_lammps() -> None:
    """Section III-B a: 25.73 s at 55 % with a single peak at 25.6 s gives 84.9 %."""
    found = refine(detected([25.73], [0.55]), detected([25.6], [1.0], candidates([25.6])))
    assert found.refined_confidence[0] == pytest.approx(0.849, abs=0.0005)


def test_where_one_method_has_no_answer() -> None:
    transform = detected([10.0, NAN, NAN, 10.0], [0.6, NAN, NAN, 0.9])
    other = detected([NAN, 10.0, NAN, 10.0], [NAN, 1.0, NAN, 0.6], candidates([], [10.0], [], [10.0, 10.0]))
    found = refine(transform, other)
    np.testing.assert_allclose(found.refined_confidence, [0.2, NAN, NAN, 2.5 / 3])
    np.testing.assert_allclose(found.similarity, [NAN, NAN, NAN, 1.0])
    assert found.detections.outcome.tolist() == ["periodic", "aperiodic", "aperiodic", "periodic"]


def test_other_signals_are_refused() -> None:
    with pytest.raises(ValueError, match="same signals"):
        refine(detected([1.0], [1.0]), detected([1.0, 2.0], [1.0, 1.0]))


@given(st.floats(1e-300, 1e300), st.lists(st.floats(1e-300, 1e300), max_size=6))
def test_similarity_is_a_share(period: float, others: list[float]) -> None:
    (found,) = similarities(np.array([period]), candidates(others))
    assert np.isnan(found) if not others else 0 <= found <= 1


@given(st.lists(st.floats(1, 100), min_size=1, max_size=6), st.floats(1, 100), st.integers(-900, 900))
def test_similarity_is_one_less_the_coefficient_of_variation(others: list[float], period: float, exponent: int) -> None:
    (found,) = similarities(np.array([period]), candidates(others))
    both = np.array([*others, period])
    assert found == pytest.approx(np.clip(1 - both.std() / both.mean(), 0, 1), abs=1e-9)
    unit = 2.0**exponent
    (scaled,) = similarities(np.array([period * unit]), candidates([other * unit for other in others]))
    assert scaled == pytest.approx(found, abs=1e-12)
