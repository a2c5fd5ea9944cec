"""List the compared methods by name, and the swept parameters of `iosi_filtered`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: function that returns a method's signatures of sample sets, in order
Extraction = Callable[[SampleSets], Sequence[Signature]]


@dataclass(frozen=True, slots=True)
class Method:
    """An extraction method; `extract` must be picklable.

    is_slow: whether it takes longer than all others together, and is left out of the drift experiment.
    """

    name: str
    doc: str
    extract: Extraction
    is_slow: bool = False


def _extract(sets: SampleSets, name: str, changed: tuple[tuple[str, Any], ...] = ()) -> list[Signature]:
    """Extract one method's signatures, with some parameters of IOSI changed."""
    from iosig.transforms.signatures.methods import SignatureParams, extract_signatures

    params = SignatureParams()
    if changed:
        params = replace(params, iosi=replace(params.iosi, **dict(changed)))
    (answer,) = extract_signatures(sets, params, (name,))
    return answer.signatures


def _remove_bursts(sets: SampleSets, seed: int) -> list[Signature]:
    """Return signatures of `elastic` without a fifth, half or four fifths of their bursts; the fraction is random."""
    rng = np.random.default_rng(seed)
    signatures = []
    for signature in _extract(sets, ELASTIC):
        curve, share = signature.bytes_per_s.copy(), rng.choice([0.2, 0.5, 0.8])
        for begin, end in zip(signature.bursts.start_s.tolist(), signature.bursts.end_s.tolist(), strict=True):
            if rng.random() < share:
                curve[max(0, int(begin) - 3) : int(end) + 3] = 0.0
        bursts = detect_bursts(curve)
        signatures.append(Signature.from_curve(curve, bursts) if len(bursts) else Signature.missing("no_common_bursts"))
    return signatures


#: the method compared with the targets: the signature with the best expected correlation
DEFAULT = "chosen"
_DOCS = {
    "elastic": "runs normalized to one duration and aligned elastically; a low quantile less its floor",
    "robust": "runs aligned at each burst by a volume-preserving warp; a robust lower envelope",
    "time_normalized": "runs normalized to one duration; a low quantile less its floor",
    "iosi": "IOSI as published (section 5)",
    "iosi_filtered": "IOSI with a duration filter, a smallest outlier factor, and a rule for crests",
    "iosi_raw": "IOSI without outlier elimination and preprocessing (sections 6.1 and 6.2)",
    "dtw": "dynamic time warping, pair by pair (section 6.1)",
    "mean": "pointwise mean of the preprocessed samples",
    "median": "pointwise median",
    "quantile": "pointwise 35 % quantile",
}
METHODS: tuple[Method, ...] = tuple(
    Method(name, doc, partial(_extract, name=name), is_slow=name == "dtw") for name, doc in _DOCS.items()
)
#: two methods applied to samples without background bytes
ORACLES: tuple[Method, ...] = tuple(
    Method(f"oracle {name}", f"{name} of the runs' own bytes, including slowdowns", partial(_extract, name=name))
    for name in ("robust", "quantile")
)
#: name of the method with signatures that lose bursts in `LACKING`
ELASTIC = "elastic"
#: signatures with missing bursts, as training data of the expected correlation; never selected
LACKING = Method("lacking", f"{ELASTIC} without some of its bursts", partial(_remove_bursts, seed=5))


#: the method whose parameters are swept
_SWEPT = "iosi_filtered"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A swept parameter of IOSI: its field, its values, and the paper's value."""

    name: str
    field: str
    values: tuple[float, ...] | tuple[int, ...]
    usual: float

    def methods(self, name: str = _SWEPT) -> Iterator[tuple[float, Method]]:
        """Yield each value with the method that uses it."""
        for value in self.values:
            extract = partial(_extract, name=name, changed=((self.field, value),))
            yield float(value), Method(name, "", extract)


#: IOSI's Figures 17, 18(a) and 18(b)
SWEEPS: tuple[Sweep, ...] = (
    Sweep("wavelet_level", "level", (1, 2, 3, 4), 2),
    Sweep("gamma", "gamma", (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 0.5),
    Sweep("kappa", "kappa", (0.5, 0.6, 0.7, 0.8, 0.9, 1.0), 0.9),
)


def sweep_methods(name: str) -> Iterator[tuple[str, float, Method]]:
    """Yield each swept parameter and value with the method of this name that uses it."""
    for sweep in SWEEPS:
        for value, method in sweep.methods(name):
            yield sweep.name, value, method
