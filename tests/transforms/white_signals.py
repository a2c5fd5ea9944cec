"""Prewhitened signals for tests of combs."""

from __future__ import annotations

import numpy as np

from iosig.transforms.periods.null_model.comb import WhitenedSignals, choose_fft_sizes, prewhiten


def centerd(rates: np.ndarray, known: np.ndarray | None = None) -> WhitenedSignals:
    count, length = rates.shape
    size = int(choose_fft_sizes(np.array([length]))[0])
    padded = np.zeros((count, size), dtype=np.float32)
    padded[:, :length] = rates
    is_known = np.zeros(padded.shape, dtype=bool)
    is_known[:, :length] = True if known is None else known
    padded *= is_known
    # white noise has about one phase per four samples
    return WhitenedSignals(
        prewhiten(padded, is_known), np.full(count, length), np.ones(count), np.full(count, length / 4)
    )


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)
