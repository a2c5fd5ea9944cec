"""Define patterns, i.e. bursts that recur alone or in groups at fixed lags, and the parameters of their detection."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.unattributed_patterns.ambiguity import AmbiguityParams
from iosig.transforms.unattributed_patterns.burst_pairs import BurstPairParams
from iosig.transforms.unattributed_patterns.clustering import ClusterParams
from iosig.transforms.unattributed_patterns.cooccurrence import Cooccurrence, CooccurrenceParams
from iosig.transforms.unattributed_patterns.lagged_bursts import LagParams
from iosig.transforms.unattributed_patterns.residual_bursts import ResidualBurstParams
from iosig.transforms.unattributed_patterns.rhythms import RhythmParams
from iosig.transforms.unattributed_patterns.trains import TrainParams


@dataclass(frozen=True, slots=True)
class PatternParams:
    """Parameters of pattern detection and its stages. Chosen on simulated sites (seeds 1 to 3 and 11 to 13)."""

    bursts: ResidualBurstParams = field(default_factory=ResidualBurstParams)
    clusters: ClusterParams = field(default_factory=ClusterParams)
    cooccurrence: CooccurrenceParams = field(default_factory=CooccurrenceParams)
    lags: LagParams = field(default_factory=LagParams)
    pairs: BurstPairParams = field(default_factory=BurstPairParams)
    rhythms: RhythmParams = field(default_factory=RhythmParams)
    trains: TrainParams = field(default_factory=TrainParams)
    ambiguity: AmbiguityParams = field(default_factory=AmbiguityParams)
    #: number of rounds of searching for rhythms of logged applications and subtracting them
    rhythm_rounds: int = 2
    #: maximum bytes subtracted from a burst, as a fraction of its volume; above it, the burst is treated as an artifact
    max_subtracted_ratio: float = 0.1
    #: the same for bursts of a train (a periodic series of bursts); their regular times are independent evidence
    max_train_subtracted_ratio: float = 1.0
    #: maximum difference of log volume and log width between a cluster and contaminated bursts, i.e. bursts with bytes
    #: of other applications, in the runs of its owner (the application that causes the cluster)
    contamination_reach: tuple[float, float] = (0.7, 1.0)
    #: range of the log volume ratio of a burst that replaces a train's missing appearance (seeds 60 to 65)
    replacement_range: tuple[float, float] = (-0.25, 0.7)
    #: minimum fraction of two clusters' bursts that are one lag apart for the clusters to be one pattern
    min_joint_ratio: float = 0.6
    #: maximum gap within a train, in typical gaps
    max_gap_ratio: float = 3.5
    #: maximum phase error of a train that continues after a longer gap, in periods
    max_phase_error: float = 0.1
    #: minimum number of appearances for a period
    min_cycles: int = 6
    #: samples per cycle of the signal that the period detection receives
    samples_per_cycle: int = 12


@dataclass(frozen=True, slots=True)
class Pattern:
    """k appearances of recurring bursts, in chronological order.

    Attributes
    ----------
    started, ended : Reals, shape (k,)
        Start and end of each appearance, in steps.
    volume_bytes, error_bytes : Reals, shape (k,)
        Bytes of each appearance, and their standard error.
    signature_bytes : Reals, shape (steps,)
        Median bytes in each step of an appearance.
    burst_count : int
        Number of bursts per appearance.
    period, period_p_value : float
        Distance between appearances in steps, and its false-alarm probability; NaN if the pattern is not periodic.

    """

    started: Reals
    ended: Reals
    volume_bytes: Reals
    error_bytes: Reals
    signature_bytes: Reals
    burst_count: int
    period: float = math.nan
    period_p_value: float = math.nan

    @property
    def is_train(self) -> bool:
        """Whether the pattern is periodic."""
        return bool(np.isfinite(self.period))


@dataclass(frozen=True, slots=True)
class DetectedPattern:
    """A pattern, and the logged application with the runs that coincide best with it."""

    pattern: Pattern
    cooccurrence: Cooccurrence
