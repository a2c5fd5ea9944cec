"""Node phases: delays and concentrations."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from iosig.transforms.arrays import Ragged, offsets_of
from iosig.transforms.periods.node_phases import NodePhases, estimate_node_phases
from tests.budget import examples

ALWAYS = np.array([[-np.inf, np.inf]])


def phases(*nodes: np.ndarray, period: float, hz: float = 1.0, window: np.ndarray = ALWAYS) -> NodePhases:
    samples = Ragged(np.concatenate(nodes), offsets_of([len(values) for values in nodes]))
    count = len(nodes)
    run = np.zeros(count, dtype=np.int64)
    return estimate_node_phases(samples, np.full(count, hz), run, np.array([1 / period]), window)


def bursts(delay: int, count: int = 600, period: int = 40, width: int = 6) -> np.ndarray:
    result: np.ndarray = ((np.arange(count) - delay) % period < width) * 1e9
    return result


def test_node_delay_is_the_delay_of_its_bursts() -> None:
    result = phases(bursts(0), bursts(5), bursts(10), period=40)
    np.testing.assert_allclose(result.lag_s, [-5, 0, 5], atol=1e-9)
    assert (result.concentration > 0.9).all()
    np.testing.assert_allclose(phases(bursts(0), bursts(8), period=80, hz=0.5).lag_s, [-8, 8], atol=1e-9)


def test_uniform_io_has_no_concentration() -> None:
    result = phases(bursts(0), np.full(600, 1e9), np.zeros(600), period=40)
    assert result.concentration[0] > 0.9
    assert result.concentration[1] == pytest.approx(0, abs=1e-9)
    assert np.isnan([result.lag_s[2], result.concentration[2]]).all()


def test_phases_ignore_samples_outside_the_window_and_aperiodic_runs() -> None:
    changing = np.concatenate([bursts(0, 400), bursts(17, 200)])
    result = phases(bursts(0), changing, period=40, window=np.array([[0.0, 400.0]]))
    np.testing.assert_allclose(result.lag_s, 0, atol=1e-9)
    assert np.isnan(phases(bursts(0), bursts(3), period=float("nan")).lag_s).all()


def test_results_are_independent_of_other_runs() -> None:
    samples = Ragged(np.concatenate([bursts(0), bursts(4), bursts(0), bursts(0)]), offsets_of([600] * 4))
    run, window = np.array([0, 0, 1, 1]), np.repeat(ALWAYS, 2, axis=0)
    result = estimate_node_phases(samples, np.ones(4), run, np.array([1 / 40, 1 / 40]), window)
    np.testing.assert_allclose(result.lag_s, [-2, 2, 0, 0], atol=1e-9)


def test_phases_match_a_loop_over_nodes() -> None:
    generator = np.random.default_rng(0)
    for _ in range(examples(20)):
        nodes = [generator.random(int(generator.integers(100, 300))) ** 4 for _ in range(3)]
        period = float(generator.uniform(5, 60))
        result = phases(*nodes, period=period, hz=2.0)
        sums = [
            sum(rate * cmath.exp(-2j * math.pi * (place + 0.5) / 2 / period) for place, rate in enumerate(values))
            for values in nodes
        ]
        for place, (selected, values) in enumerate(zip(sums, nodes, strict=True)):
            late = -cmath.phase(selected * sum(sums).conjugate()) / (2 * math.pi) * period
            assert result.lag_s[place] == pytest.approx(late, abs=1e-6)
            assert result.concentration[place] == pytest.approx(abs(selected) / values.sum(), rel=1e-9)
