"""Kinds of bursts: more of one volume and width than chance brings together, told apart by their shapes."""

from __future__ import annotations

import numpy as np
import pytest

from iosig.transforms.arrays import Reals
from iosig.transforms.unnamed_patterns.alike import Plane, _sums, _sums_of_all, _totals
from iosig.transforms.unnamed_patterns.left_bursts import PROFILE_POINTS, LeftBursts

EVEN = np.arange(1, PROFILE_POINTS + 1) / (PROFILE_POINTS + 1)


def bursts(volume: Reals, width: Reals, profile: Reals | None = None) -> LeftBursts:
    first = np.arange(len(volume)) * 100
    shapes = np.tile(EVEN, (len(volume), 1)) if profile is None else profile
    return LeftBursts(first, first + 10, volume, 0 * volume, width, shapes)


def clutter(seed: int, count: int = 1000) -> tuple[Reals, Reals]:
    """Return volumes and whole widths as chance brings them."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(23.0, 1.2, count), np.ceil(rng.lognormal(1.0, 0.6, count))


def kinds(of: LeftBursts) -> list[tuple[list[int], bool]]:
    """Return all kinds that are taken out, and whether each is sure."""
    plane, found = Plane(of), []
    while kind := plane.take():
        found.append((kind.members.tolist(), kind.is_sure))
    return found


def test_many_of_one_volume_are_a_kind_and_the_surest_comes_first() -> None:
    rng = np.random.default_rng(5)
    volume, width = clutter(5)
    volume[100:120], width[100:120] = 9e11 * rng.normal(1.0, 0.005, 20), 12.0
    volume[300:360], width[300:360] = 2e9 * rng.normal(1.0, 0.005, 60), 30.0
    (first, is_sure), (second, _), *hints = kinds(bursts(volume, width))
    assert is_sure
    assert len(set(first) & set(range(300, 360))) > 55
    assert second == list(range(100, 120))
    assert not any(is_sure for _, is_sure in hints)


@pytest.mark.parametrize("seed", range(8))
def test_chance_makes_hints_at_most(seed: int) -> None:
    assert not any(is_sure for _, is_sure in kinds(bursts(*clutter(seed))))


def test_bursts_of_different_shapes_are_different_kinds() -> None:
    profile = np.tile(EVEN, (41, 1))
    profile[::2] = np.sqrt(EVEN) * 0.2 + 0.8
    found = kinds(bursts(np.full(41, 1e10), np.full(41, 5.0), profile))
    assert found == [(list(range(0, 41, 2)), True), (list(range(1, 41, 2)), True)]


def test_what_is_set_aside_is_in_no_kind() -> None:
    plane = Plane(bursts(np.full(40, 1e10), np.full(40, 5.0)))
    plane.set_aside(np.arange(30))
    plane.set_aside(np.arange(25, 31))
    kind = plane.take()
    assert kind is not None
    assert kind.members.tolist() == list(range(31, 40))
    assert plane.take() is None


def test_few_are_no_kind() -> None:
    assert kinds(bursts(np.full(4, 1e10), np.full(4, 5.0))) == []
    assert kinds(bursts(np.zeros(0), np.zeros(0))) == []


@pytest.mark.parametrize("half", [(0, 0), (1, 4), (3, 2), (9, 9)])
def test_sums_are_those_of_rectangles(half: tuple[int, int]) -> None:
    counts = np.random.default_rng(5).poisson(0.5, (7, 9)).astype(np.int64)
    row, column = np.indices(counts.shape).reshape(2, -1)
    expected = [
        counts[max(one - half[0], 0) : one + half[0] + 1, max(other - half[1], 0) : other + half[1] + 1].sum()
        for one, other in zip(row.tolist(), column.tolist(), strict=True)
    ]
    total = _totals(counts)
    assert _sums(total, row, column, half).tolist() == expected
    assert _sums_of_all(total, half).ravel().tolist() == expected
