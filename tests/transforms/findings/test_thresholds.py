"""Thresholds that follow Drishti have the values of Drishti."""

from __future__ import annotations

from iosig.transforms.findings.thresholds import Thresholds

#: `thresholds` of Drishti 0.8 (`drishti/includes/config.py`), by our names
_DRISHTI = {
    "small_bytes": 1_048_576,
    "min_small_ratio": 0.1,
    "min_small_count": 1000,
    "min_misaligned_ratio": 0.1,
    "min_metadata_s": 30,
    "min_random_ratio": 0.2,
    "min_random_count": 1000,
    "min_straggling_ratio": 0.15,
    "min_imbalance_ratio": 0.3,
    "min_stdio_ratio": 0.1,
    "min_independent_count": 1000,
}


def test_thresholds_equal_the_values_of_drishti() -> None:
    thresholds = Thresholds()
    assert {name: getattr(thresholds, name) for name in _DRISHTI} == _DRISHTI


def test_larger_files_need_more_targets() -> None:
    sizes, counts = zip(*Thresholds().min_target_counts, strict=True)
    assert list(sizes) == sorted(sizes)
    assert list(counts) == sorted(counts)
