"""Naive implementation of `iosig.transforms.extrapolation.evaluation`: the calls of a rank one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from iosig.transforms.traces.trace import START, RankClass
from tests.compressed import call_order


def count_transitions(rank_class: RankClass, rank: int) -> Counter[tuple[int, int]]:
    return Counter(pairwise([START, *call_order(rank_class, rank)]))
