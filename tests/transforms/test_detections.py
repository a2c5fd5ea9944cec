"""Detections: the period is the frequency's inverse, and none where there is none."""

import numpy as np

from transforms.detections import Candidates, Detections


def test_only_what_is_periodic_has_a_period() -> None:
    none = np.full(2, np.nan)
    found = Detections(
        np.array(["periodic", "aperiodic"]), np.array([0.05, np.nan]), none, none, none, none, Candidates.none(2)
    )
    assert found.signal_count == 2
    assert found.is_periodic.tolist() == [True, False]
    assert found.period_s[0] == 20.0
    assert np.isnan(found.period_s[1])
    assert found.candidates.offsets.tolist() == [0, 0, 0]
