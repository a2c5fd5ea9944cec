"""Estimate the delay of each node's I/O within the cycle of a run, and how constant the delay is.

The bytes of each node are averaged into a mean resultant vector at the run's frequency. The direction of the vector is
the time within the cycle, and its length is the concentration. A node's delay is its direction relative to that of all
nodes of the run.

References
----------
K. V. Mardia and P. E. Jupp, "Directional Statistics", 2000, section 2.3
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals


@dataclass(frozen=True, slots=True)
class NodePhases:
    """Delays of n nodes.

    Attributes
    ----------
    lag_s : (n,)
        Delay of the node's bursts relative to the run's bursts, between minus and plus half a period. NaN if the run
        has no period or the node no bytes.
    concentration : (n,)
        Mean resultant length, from 0 (bytes at any time of the cycle) to 1 (all at one time); NaN as above.
    """

    lag_s: Reals
    concentration: Reals


def estimate_node_phases(
    samples: Ragged, sampling_hz: Reals, run: Ints, frequency_hz: Reals, window_s: Reals
) -> NodePhases:
    """Estimate the phases of nodes within the periods of their runs.

    Parameters
    ----------
    samples : Ragged
        Samples of n nodes, in bytes per second, from the start of the run.
    sampling_hz : (n,)
    run : (n,)
        Number of each node's run, from 0.
    frequency_hz : (runs,)
        Frequency of the run; NaN if it has no period.
    window_s : (runs, 2)
        Window in which the run's period holds, in seconds from its start.

    Returns
    -------
    NodePhases
    """
    owner, count = samples.owner, len(run)
    sample_run = run[owner]
    position = np.arange(len(samples.values)) - samples.offsets[owner]
    instant = (position + 0.5) / sampling_hz[owner]
    is_inside = np.isfinite(samples.values) & (instant >= window_s[sample_run, 0]) & (instant < window_s[sample_run, 1])
    rates = np.where(is_inside, samples.values, 0.0)
    turns = np.where(is_inside, instant * frequency_hz[sample_run], 0.0)
    vectors = rates * np.exp(-2j * np.pi * (turns - np.floor(turns)))
    sums = np.bincount(owner, vectors.real, count) + 1j * np.bincount(owner, vectors.imag, count)
    total = np.bincount(owner, rates, count)
    run_sums = np.bincount(run, sums.real / sampling_hz, len(frequency_hz)) + 1j * np.bincount(
        run, sums.imag / sampling_hz, len(frequency_hz)
    )
    is_defined = (total > 0) & np.isfinite(frequency_hz[run])
    with np.errstate(invalid="ignore", divide="ignore"):
        delay = -np.angle(sums * np.conj(run_sums[run])) / (2.0 * np.pi * frequency_hz[run])
        concentration = np.minimum(np.abs(sums) / total, 1.0)
    return NodePhases(np.where(is_defined, delay, np.nan), np.where(is_defined, concentration, np.nan))
