"""A signature is a curve with its bursts, or an outcome without content."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.signature import Outcome, Signature
from tests.transforms.run_sets import find_faults


def test_curve_has_one_point_per_second() -> None:
    bursts = Bursts(np.array([1.0]), np.array([1.5]), np.array([3.0]), np.array([5.0]), np.array([np.nan]))
    result = Signature.from_curve(np.array([0.0, 3.0, 2.0, 1.0]), bursts, 7.0)
    assert result.outcome == "extracted"
    assert (result.duration_s, result.volume_bytes, result.background_bytes_per_s) == (4.0, 6.0, 7.0)
    assert np.isnan(result.low_bytes_per_s).tolist() == np.isnan(result.high_bytes_per_s).tolist() == [True] * 4
    assert len(result.bursts) == 1
    assert find_faults(result) == []


@pytest.mark.parametrize("outcome", [outcome for outcome in get_args(Outcome) if outcome != "extracted"])
def test_missing_signature_is_empty(outcome: Outcome) -> None:
    result = Signature.missing(outcome)
    assert (result.outcome, result.duration_s, result.volume_bytes, len(result.bursts)) == (outcome, 0.0, 0.0, 0)
    assert np.isnan(result.background_bytes_per_s)
    assert Signature.missing(outcome, 3.0).background_bytes_per_s == 3.0
    assert find_faults(result) == []


def test_empty_bursts_have_empty_columns() -> None:
    none = Bursts.empty()
    columns = (none.start_s, none.peak_s, none.end_s, none.volume_bytes, none.support_ratio)
    assert [len(column) for column in columns] == [0] * 5 == [len(none)] * 5


@pytest.mark.filterwarnings("error")
def test_overflowing_volume_is_infinite() -> None:
    assert Signature.from_curve(np.full(9, 1e308), Bursts.empty()).volume_bytes == np.inf


def test_find_faults_lists_violated_invariants() -> None:
    curve = np.array([0.0, 3.0, 2.0, 1.0])

    def bursts(*rows: tuple[float, float, float, float, float]) -> Bursts:
        return Bursts(*np.array(rows).T)

    def check(result: Signature) -> list[str]:
        return find_faults(result)

    assert check(Signature.from_curve(curve, bursts((1, 1.5, 3, 5, 0.5)))) == []
    assert check(Signature.from_curve(-curve, Bursts.empty())) == ["curve", "no rate"]
    assert check(Signature.from_curve(curve, bursts((1, 1.5, 3, 5, 0.5), (2, 2.5, 4, 0.1, 0.5)))) == ["overlap"]
    assert check(Signature.from_curve(curve, bursts((1, 1.5, 5, 5, 0.5)))) == ["outside"]
    assert check(Signature.from_curve(curve, bursts((1, 4.5, 3, 5, 0.5)))) == ["peak"]
    assert check(Signature.from_curve(curve, bursts((1, 1.5, 3, 7, 0.5)))) == ["more in bursts than in all"]
    assert check(Signature.from_curve(curve, bursts((1, 1.5, 3, 5, 1.5)))) == ["support"]
    assert check(Signature.from_curve(curve, bursts((1, 1.0, 1, 5, 0.5)))) == ["burst without length"]
    band = Signature("extracted", curve, curve, curve * 0.5, Bursts.empty(), np.nan)
    assert check(band) == ["band"]
    assert check(Signature("no_io", curve, curve, curve, Bursts.empty(), -1.0)) == [
        "background",
        "points without an answer",
    ]
