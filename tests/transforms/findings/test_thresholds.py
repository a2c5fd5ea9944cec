"""Thresholds: those that follow Drishti are Drishti's."""

from __future__ import annotations

from iosig.transforms.findings.thresholds import Thresholds

#: `thresholds` of Drishti 0.8 (`drishti/includes/config.py`), by our names
_DRISHTI = {
    "small_bytes": 1_048_576,
    "least_small_ratio": 0.1,
    "least_small_count": 1000,
    "least_misaligned_ratio": 0.1,
    "least_metadata_s": 30,
    "least_random_ratio": 0.2,
    "least_random_count": 1000,
    "least_straggling_ratio": 0.15,
    "least_imbalance_ratio": 0.3,
    "least_stdio_ratio": 0.1,
    "least_independent_count": 1000,
}


def test_thresholds_with_an_anchor_are_the_anchors() -> None:
    most = Thresholds()
    assert {name: getattr(most, name) for name in _DRISHTI} == _DRISHTI


def test_larger_files_want_more_targets() -> None:
    sizes, counts = zip(*Thresholds().few_targets, strict=True)
    assert list(sizes) == sorted(sizes)
    assert list(counts) == sorted(counts)
