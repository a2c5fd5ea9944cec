"""Extract the signatures published by default: for each application, the one with the best expected correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.methods import MethodSignatures, SignatureParams, select_methods
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: minimum number of runs in half of a sample set, the smallest number that a method accepts
_MIN_HALF = 3


def select_default(answers: Sequence[MethodSignatures]) -> tuple[list[Signature], Reals]:
    """Select the published signature of each application, and its expected correlation (m)."""
    defaults = [answer for answer in answers if answer.method in methods.DEFAULT_METHODS]
    by_method = {answer.method: answer for answer in defaults}
    selected = select_methods(defaults)
    expected_correlation: Reals = np.array(
        [by_method[name].expected_correlation[place] for place, name in enumerate(selected)]
    )
    return [by_method[name].signatures[place] for place, name in enumerate(selected)], expected_correlation


def extract_default(sets: SampleSets) -> list[Signature]:
    """Extract the published signatures of half sample sets."""
    return select_default(
        methods.extract_signatures(sets, SignatureParams(min_run_count=_MIN_HALF), methods.DEFAULT_METHODS)
    )[0]
