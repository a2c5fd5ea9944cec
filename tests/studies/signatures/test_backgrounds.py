"""Background traffic has the requested mean and the shape of its kind."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from iosig.studies.signatures.backgrounds import draw_traffic
from iosig.studies.signatures.families import Foreign

KINDS = [kind for kind in get_args(Foreign) if kind != "real"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [0.2, 1.0])
def test_traffic_has_the_requested_mean(kind: Foreign, level: float) -> None:
    rates = draw_traffic(kind, level, 200, 2000, np.random.default_rng(3))
    assert rates.shape == (200, 2000)
    assert rates.min() >= 0
    assert rates.mean() == pytest.approx(level, rel=0.12)


def test_permanent_traffic_has_the_documented_distribution() -> None:
    rates = 2.4 * draw_traffic("never_rests", 1.0, 100, 5000, np.random.default_rng(1))
    assert rates.min() >= 0.6 - 1e-9
    assert (rates > 5.0).mean() == pytest.approx(0.1, abs=0.01)


def test_only_some_kinds_of_traffic_have_pauses() -> None:
    rng = np.random.default_rng(2)
    share = {kind: float((draw_traffic(kind, 1.0, 50, 2000, rng) < 0.01).mean()) for kind in KINDS}
    assert share["never_rests"] == share["streams"] == 0
    assert min(share[kind] for kind in ("rests", "tails", "neighbour", "diurnal")) > 0.1


def test_neighbor_traffic_is_autocorrelated() -> None:
    (rates,) = draw_traffic("neighbour", 1.0, 1, 4000, np.random.default_rng(4))
    centerd = rates - rates.mean()
    products = np.correlate(centerd, centerd, "full")[len(rates) - 1 :] / (centerd @ centerd)
    assert products[120:520].max() > 0.4


def test_diurnal_traffic_varies_by_hour() -> None:
    rng = np.random.default_rng(5)
    spread = {kind: draw_traffic(kind, 1.0, 60, 4000, rng).mean(axis=1).std() for kind in ("rests", "diurnal")}
    assert spread["diurnal"] > 2 * spread["rests"]
