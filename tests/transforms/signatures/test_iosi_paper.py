"""`iosi` gives the same result as an independent, literal implementation of the paper on drawn sample sets.

That implementation was written from the paper alone. Where the paper leaves a choice open, both make the same here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest

from iosig.transforms.signatures import outliers
from iosig.transforms.signatures.iosi import IosiParams, extract_iosi, low_frequency_component
from iosig.transforms.signatures.iosi_crests import segment_bursts
from iosig.transforms.signatures.preprocessing import preprocess
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from tests.naive import iosi_paper
from tests.naive.iosi_paper import Cluster, Extraction, Grid, OpenChoices
from tests.transforms.run_sets import Burst, make_sample_set, simulate_polls

PAPER = IosiParams()
#: our choices for what the paper leaves open
CHOICES = OpenChoices(
    tolerance=0.0,
    keeps_low_waves=True,
    keeps_idle_waves=False,
    includes_right_trough=True,
    is_reference_partial=True,
    is_distance_between_ends=True,
    discards_rejected=True,
    is_vote_in_units=True,
)


def draw_set(seed: int) -> SampleSet:
    """Draw 5 to 12 runs of up to 8 periodic bursts, with drift, stopped runs, background and bursts of others."""
    rng = np.random.default_rng(seed)
    run_count, burst_count = int(rng.integers(5, 13)), int(rng.integers(1, 9))
    gap_s, width_s, rate = rng.uniform(40, 200), rng.uniform(4, 30), rng.uniform(0.5e9, 3e9)
    drift_s, noise = float(rng.choice([0.0, 0.2, 2.0])), float(rng.choice([0.0, 2e7, 1e8]))
    phases = rng.uniform(0, 2, run_count)
    rows, durations = [], []
    for phase_s in phases:
        late = np.cumsum(rng.exponential(drift_s, burst_count))
        starts = 10 + gap_s * np.arange(burst_count) + late
        own: list[Burst] = [(start, start + width_s * rng.uniform(1, 1.3), rate) for start in starts.tolist()]
        duration_s = (burst_count * gap_s + late[-1] + 40) * float(rng.choice([1.0, 1.0, 1.0, 1.15, 0.9]))
        others: list[Burst] = [
            (start, start + rng.uniform(3, 40), rng.uniform(1e8, 3e9))
            for start in rng.uniform(0, duration_s - 5, rng.poisson(2)).tolist()
        ]
        polls = simulate_polls([*own, *others], duration_s, 2.0, phase_s)
        rows.append(polls + rng.exponential(1.0, len(polls)) * noise)
        durations.append(duration_s)
    return make_sample_set(rows, 2.0, (-phases).tolist(), durations)


def extract_literally(one: SampleSet) -> Extraction:
    """Extract by the literal implementation, without its outlier elimination."""
    return iosi_paper.extract(
        one.rates,
        one.interval_s,
        gamma=PAPER.gamma,
        kappa=PAPER.kappa,
        wavelet_level=PAPER.level,
        outlier_threshold=math.inf,
        width_count=PAPER.width_count,
        height_count=PAPER.height_count,
        choices=CHOICES,
    )


def assert_equal_outliers(one: SampleSet) -> None:
    """Compare factors and outliers in the same units and with the same number of neighbors."""
    volume_bytes, offsets = outliers.run_volumes(SampleSets.concatenate([one])), np.array([0, one.run_count])
    factors = outliers.local_outlier_factors(one.duration_s, volume_bytes, offsets)
    is_out = outliers.detect_outliers(one.duration_s, volume_bytes, offsets, min_factor=0.0, max_outlier_ratio=1.0)
    scaled = np.stack([outliers.scale_by_mad(column[None])[0] for column in (one.duration_s, volume_bytes)], axis=1)
    expected = iosi_paper.compute_outlier_factors(scaled, outliers.neighbor_count(one.run_count))
    np.testing.assert_allclose(factors, expected, rtol=1e-6)
    assert np.flatnonzero(is_out).tolist() == iosi_paper.select_outliers(expected, None)


def assert_equal_steps(one: SampleSet, literal: Extraction) -> None:
    """Compare preprocessing, smoothing and waves."""
    samples = preprocess(one, PAPER.max_excess_ratio)
    peak = samples.values.max()
    np.testing.assert_allclose(samples.values, literal.denoised, rtol=1e-9, atol=1e-9 * peak)
    assert samples.background_bytes_per_s == pytest.approx(literal.background_level, rel=1e-9)
    np.testing.assert_allclose(low_frequency_component(samples.values), literal.transformed, atol=1e-9 * peak)
    found = segment_bursts(low_frequency_component(samples.values / peak), PAPER.wave_rules)
    columns = (found.run.tolist(), found.first.tolist(), found.peak.tolist(), found.last.tolist())
    waves = {(run, wave.start, wave.peak, wave.stop) for run, own in enumerate(literal.waves) for wave in own}
    idle = set(zip(*columns, strict=True)) - waves
    assert len(waves) + len(idle) == len(found)
    assert not any(samples.values[run, first : last + 1].any() for run, first, _, last in idle)


def has_tied_vote(cluster: Cluster, grid: Grid) -> bool:
    """Check whether two points of one sample differ in their total distances by rounding alone."""
    totals: dict[int, list[float]] = {}
    for point in cluster.candidates:
        peers = [peer for peer in cluster.candidates if peer.sample_index != point.sample_index]
        total = sum(iosi_paper.measure_distance(point, peer, grid) for peer in peers)
        totals.setdefault(point.sample_index, []).append(total)
    return any(np.diff(sorted(own)[:2]).min(initial=1.0) < 1e-9 for own in totals.values())


def assert_equal_signatures(result: Signature, literal: Extraction) -> int:
    """Compare common bursts; returns the number of those whose rates were compared, too.

    Overlapping bursts are divided by ours, and added by the literal implementation. Ties of votes are left to rounding.
    """
    clusters = sorted(literal.clusters, key=lambda cluster: np.mean([point.time_s for point in cluster.selected]))
    shares = [len(cluster.selected) / len(literal.kept_indices) for cluster in clusters]
    assert result.bursts.support_ratio.tolist() == pytest.approx(shares)
    edges_s = [edge for burst in literal.bursts for edge in (burst.start_s, burst.end_s)]
    gaps_s = np.diff([0.0, *edges_s, float(len(literal.signature))])[::2]
    is_apart = np.minimum(gaps_s[:-1], gaps_s[1:]) >= 1
    if literal.grid is not None:
        is_apart &= np.array([not has_tied_vote(cluster, literal.grid) for cluster in clusters], dtype=np.bool_)
    for place in np.flatnonzero(is_apart).tolist():
        burst, start_s, end_s = literal.bursts[place], result.bursts.start_s[place], result.bursts.end_s[place]
        assert start_s == pytest.approx(burst.start_s, abs=0.5)
        np.testing.assert_allclose(result.bytes_per_s[int(start_s) : int(end_s)], burst.values, rtol=1e-9, atol=1.0)
        assert result.bursts.volume_bytes[place] == pytest.approx(burst.volume, rel=1e-9)
    return int(is_apart.sum())


def compare(seeds: Iterable[int]) -> tuple[int, int]:
    """Compare all steps on drawn sets; returns the numbers of signatures, and of bursts whose rates were compared."""
    extracted = compared = 0
    for seed in seeds:
        one = draw_set(seed)
        assert_equal_outliers(one)
        literal = extract_literally(one)
        assert_equal_steps(one, literal)
        (result,) = extract_iosi([one], PAPER)
        extracted += result.outcome == "extracted"
        compared += assert_equal_signatures(result, literal)
    return extracted, compared


@pytest.mark.parametrize(
    ("seeds", "min_extracted", "min_compared"),
    [
        (range(8), 7, 17),
        pytest.param(range(8, 24), 13, 33, marks=pytest.mark.slow),
        pytest.param(range(24, 200), 150, 400, marks=pytest.mark.long),
    ],
    ids=["few", "some", "many"],
)
def test_signatures_match_the_literal_implementation(seeds: range, min_extracted: int, min_compared: int) -> None:
    extracted, compared = compare(seeds)
    assert extracted >= min_extracted
    assert compared >= min_compared
