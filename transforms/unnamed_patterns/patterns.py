"""Patterns: kinds of bursts that come again, alone or together.

Kinds whose bursts follow one another at one distance are one pattern of several bursts. A pattern is a train where its
appearances come at even distances; else they are alike only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.unnamed_patterns.alike import AlikeParams
from iosig.transforms.unnamed_patterns.beside import Beside, BesideParams
from iosig.transforms.unnamed_patterns.companions import CompanionParams
from iosig.transforms.unnamed_patterns.constellations import ConstellationParams
from iosig.transforms.unnamed_patterns.doubts import DoubtParams
from iosig.transforms.unnamed_patterns.left_bursts import LeftBurstParams
from iosig.transforms.unnamed_patterns.rhythms import RhythmParams
from iosig.transforms.unnamed_patterns.trains import TrainParams


@dataclass(frozen=True, slots=True)
class PatternParams:
    """What makes a pattern; the values are ours, chosen on simulated sites (seeds 11 to 13, and 1 to 3).

    together_ratio: of two trains such a share follows one another at one distance. most_gap: a train is cut where
    nothing comes for so many typical distances. off_beat: after a longer pause it goes on if it is off by less of a
    period. least_cycles: a train has so many appearances. samples_a_cycle: of a train's signal. flank: bursts of an
    application that makes a kind differ from it by less, in logarithms of volume and width, where others were in their
    way. spoilt: what lies where a train's appearance is missing is one if the logarithm of how many times its volume it
    moves is between these (seeds 60 to 65). rounds: so often rhythms of logged applications
    are sought and taken off, before all else is. most_taken, most_train_taken: of a burst so much was taken off, in
    shares of what it is, or it is what that left; of a train's, which is borne out by its beat, it may be more.
    """

    bursts: LeftBurstParams = field(default_factory=LeftBurstParams)
    alike: AlikeParams = field(default_factory=AlikeParams)
    beside: BesideParams = field(default_factory=BesideParams)
    companions: CompanionParams = field(default_factory=CompanionParams)
    constellations: ConstellationParams = field(default_factory=ConstellationParams)
    rhythms: RhythmParams = field(default_factory=RhythmParams)
    trains: TrainParams = field(default_factory=TrainParams)
    doubts: DoubtParams = field(default_factory=DoubtParams)
    rounds: int = 2
    most_taken: float = 0.1
    most_train_taken: float = 1.0
    flank: tuple[float, float] = (0.7, 1.0)
    spoilt: tuple[float, float] = (-0.25, 0.7)
    together_ratio: float = 0.6
    most_gap: float = 3.5
    off_beat: float = 0.1
    least_cycles: int = 6
    samples_a_cycle: int = 12


@dataclass(frozen=True, slots=True)
class Pattern:
    """What comes again: its appearances (k) in order of time, in steps, and the bytes of each.

    inexact_bytes (k): by how much these are inexact: one standard deviation. signature_bytes (steps): what it moves in
    each step of an appearance, the median of them. burst_count: of an appearance. period: how many steps lie between
    appearances, and period_chance how probable it is that chance makes them so even; NaN where they come as they like.
    """

    started: Reals
    ended: Reals
    volume_bytes: Reals
    inexact_bytes: Reals
    signature_bytes: Reals
    burst_count: int
    period: float = math.nan
    period_chance: float = math.nan

    @property
    def is_train(self) -> bool:
        """Whether its appearances come at even distances."""
        return bool(np.isfinite(self.period))


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern, and whose it may be."""

    pattern: Pattern
    whose: Beside
