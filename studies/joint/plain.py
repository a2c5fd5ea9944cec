"""What is published of sample sets if nothing is said: of each application the usual method that is trusted most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.signatures import methods
from iosig.transforms.signatures.methods import MethodSignatures, SignatureParams, select_methods
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: of half of a set's runs fewer are enough: the smallest of what a method takes
_LEAST_HALF = 3


def usual(answers: Sequence[MethodSignatures]) -> tuple[list[Signature], Reals]:
    """Return what is published of what methods found, with its expected correlation (m)."""
    asked = [answer for answer in answers if answer.method in methods.DEFAULT_METHODS]
    by_method = {answer.method: answer for answer in asked}
    taken = select_methods(asked)
    expected_correlation: Reals = np.array(
        [by_method[name].expected_correlation[place] for place, name in enumerate(taken)]
    )
    return [by_method[name].signatures[place] for place, name in enumerate(taken)], expected_correlation


def plainly(sets: SampleSets) -> list[Signature]:
    """Return what is published of halves of sample sets."""
    return usual(methods.extract_signatures(sets, SignatureParams(min_run_count=_LEAST_HALF), methods.DEFAULT_METHODS))[
        0
    ]
