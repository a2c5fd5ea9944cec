"""Extract the signatures published by default, separately and jointly."""

from __future__ import annotations

from collections.abc import Sequence

from iosig.studies.sites import select_default
from iosig.transforms.arrays import Reals
from iosig.transforms.joint.extraction import JointResult, extract_jointly
from iosig.transforms.joint.shared_traffic import KnownSignatures, SharedTraffic
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.methods import MethodSignatures, SignatureParams
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: minimum number of runs in half of a sample set, the smallest number that a method accepts
_MIN_HALF = 3


def extract_both(
    shared: SharedTraffic, answers: Sequence[MethodSignatures]
) -> tuple[list[Signature], Reals, JointResult]:
    """Return the separate signatures, their expected correlations (m), and the joint signatures that start from them.

    answers: signatures by separate methods.
    """
    plain, expected_correlation = select_default(answers)
    known_signatures = KnownSignatures(
        tuple(signature if signature.outcome == "extracted" else None for signature in plain), expected_correlation
    )
    return plain, expected_correlation, extract_jointly(shared, known_signatures, _extract_from_halves)


def _extract_from_halves(sets: SampleSets) -> list[Signature]:
    """Extract the published signatures of half sample sets."""
    params = SignatureParams(min_run_count=_MIN_HALF)
    return select_default(methods.extract_signatures(sets, params, methods.DEFAULT_METHODS))[0]
