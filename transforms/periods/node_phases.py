"""When in a run's cycles each of its nodes moves its bytes: by how much it is late, and how well it keeps to that.

Bytes are turned with the run's period, and their mean is a vector: where it points tells when in the cycle the bytes
are moved, its length how alike the cycles are (the mean resultant of directional statistics: Mardia and Jupp,
"Directional Statistics", 2000, section 2.3). A node's mean against that of all nodes of the run tells how late it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Ints, Ragged, Reals


@dataclass(frozen=True, slots=True)
class NodePhases:
    """Of nodes (n): by how much their bursts come later than those of their run, and how well they keep to it.

    delay_s (n): between minus and plus half of the run's period; NaN where the run has no period or the node no bytes.
    concentration (n): from 0, bytes at any time of the cycle, to 1, all at one; NaN likewise.
    """

    delay_s: Reals
    concentration: Reals


def node_phases(samples: Ragged, sampling_hz: Reals, run: Ints, frequency_hz: Reals, window_s: Reals) -> NodePhases:
    """Return the phases of nodes (n) in the periods of their runs.

    samples: of the nodes, from their runs' zero on, in bytes per second. sampling_hz (n). run (n): the number of each
    node's run, from 0. frequency_hz (runs), window_s (runs, 2): of the run's period, NaN where it has none.
    """
    owner, count = samples.owner, len(run)
    whose = run[owner]
    place = np.arange(len(samples.values)) - samples.offsets[owner]
    instant = (place + 0.5) / sampling_hz[owner]
    is_in = np.isfinite(samples.values) & (instant >= window_s[whose, 0]) & (instant < window_s[whose, 1])
    rates = np.where(is_in, samples.values, 0.0)
    turns = np.where(is_in, instant * frequency_hz[whose], 0.0)
    waves = rates * np.exp(-2j * np.pi * (turns - np.floor(turns)))
    sums = np.bincount(owner, waves.real, count) + 1j * np.bincount(owner, waves.imag, count)
    total = np.bincount(owner, rates, count)
    of_run = np.bincount(run, sums.real / sampling_hz, len(frequency_hz)) + 1j * np.bincount(
        run, sums.imag / sampling_hz, len(frequency_hz)
    )
    is_told = (total > 0) & np.isfinite(frequency_hz[run])
    with np.errstate(invalid="ignore", divide="ignore"):
        delay = -np.angle(sums * np.conj(of_run[run])) / (2.0 * np.pi * frequency_hz[run])
        concentration = np.minimum(np.abs(sums) / total, 1.0)
    return NodePhases(np.where(is_told, delay, np.nan), np.where(is_told, concentration, np.nan))
