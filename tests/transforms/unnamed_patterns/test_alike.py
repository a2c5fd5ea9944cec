"""Kinds of bursts: more of one volume and width than chance brings together, told apart by their shapes."""

from __future__ import annotations

import numpy as np
import pytest

from transforms.arrays import Reals
from transforms.unnamed_patterns.alike import alike
from transforms.unnamed_patterns.left_bursts import PROFILE_POINTS, LeftBursts

EVEN = np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1)


def bursts(volume: Reals, width: Reals, profile: Reals | None = None) -> LeftBursts:
    first = np.arange(len(volume)) * 100
    shapes = np.tile(EVEN, (len(volume), 1)) if profile is None else profile
    return LeftBursts(first, first + 10, volume, width, shapes)


def clutter(seed: int, count: int = 1000) -> tuple[Reals, Reals]:
    """Return volumes and whole widths as chance brings them."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(23.0, 1.2, count), np.ceil(rng.lognormal(1.0, 0.6, count))


def test_many_of_one_volume_are_a_kind_and_the_surest_comes_first() -> None:
    rng = np.random.default_rng(5)
    volume, width = clutter(5)
    volume[100:120], width[100:120] = 9e11 * rng.normal(1.0, 0.01, 20), 12.0
    volume[300:360], width[300:360] = 2e9 * rng.normal(1.0, 0.01, 60), 30.0
    found = alike(bursts(volume, width))
    assert len(found) == 2
    assert len(set(found[0].tolist()) & set(range(300, 360))) > 55
    assert found[1].tolist() == list(range(100, 120))


@pytest.mark.parametrize("seed", range(8))
def test_chance_makes_no_kind(seed: int) -> None:
    assert alike(bursts(*clutter(seed))) == []


def test_bursts_of_different_shapes_are_different_kinds() -> None:
    profile = np.tile(EVEN, (40, 1))
    profile[::2] = np.sqrt(EVEN) * 0.2 + 0.8
    found = alike(bursts(np.full(40, 1e10), np.full(40, 5.0), profile))
    assert sorted(kind.tolist() for kind in found) == [list(range(0, 40, 2)), list(range(1, 40, 2))]


def test_few_are_no_kind() -> None:
    assert alike(bursts(np.full(4, 1e10), np.full(4, 5.0))) == []
    assert alike(bursts(np.zeros(0), np.zeros(0))) == []
