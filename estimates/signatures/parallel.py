"""Extract signatures from sample sets in batches.

The signature of a set depends on its own samples alone, so results do not depend on the division into batches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosig.transforms.arrays import Ragged, split_into_chunks
from iosig.transforms.signatures.methods import MethodSignatures, SignatureParams, extract_signatures
from iosig.transforms.signatures.sample_sets import SampleSets

#: maximum number of sample steps (4 MB) and of sample sets in a batch
BATCH_STEPS, BATCH_SETS = 500_000, 100


def extract_in_batches(sets: SampleSets, params: SignatureParams, methods: Sequence[str]) -> list[MethodSignatures]:
    """Extract signatures of sample sets with some methods; memory is bounded by a batch.

    The result is that of `iosig.transforms.signatures.methods.extract_signatures`.
    """
    steps = np.diff(sets.samples.offsets[sets.offsets])
    batches = split_into_chunks(steps, BATCH_STEPS, BATCH_SETS) or [slice(0, 0)]
    return _concat([extract_signatures(select_chunk(sets, batch), params, tuple(methods)) for batch in batches])


def select_chunk(sets: SampleSets, chunk: slice) -> SampleSets:
    """Return consecutive sets; their samples are a view, not a copy."""
    offsets = sets.offsets[chunk.start : chunk.stop + 1]
    runs = slice(int(offsets[0]), int(offsets[-1]))
    edges = sets.samples.offsets[runs.start : runs.stop + 1]
    return SampleSets(
        samples=Ragged(sets.samples.values[edges[0] : edges[-1]], edges - edges[0]),
        start_s=sets.start_s[runs],
        duration_s=sets.duration_s[runs],
        interval_s=sets.interval_s[chunk],
        offsets=offsets - offsets[0],
        interference=None if sets.interference is None else sets.interference[edges[0] : edges[-1]],
        is_truncated=None if sets.is_truncated is None else sets.is_truncated[runs],
    )


def _concat(results: Sequence[Sequence[MethodSignatures]]) -> list[MethodSignatures]:
    """Join the results of batches, method by method."""
    return [
        MethodSignatures(
            method=parts[0].method,
            signatures=[signature for answer in parts for signature in answer.signatures],
            is_outlier=np.concatenate([answer.is_outlier for answer in parts]),
            expected_correlation=np.concatenate([answer.expected_correlation for answer in parts]),
            missing_burst_count=np.concatenate([answer.missing_burst_count for answer in parts]),
        )
        for parts in zip(*results, strict=True)
    ]
