"""The methods that are compared, by name, and the settings of `iosi` whose influence is studied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from iosig.transforms.signatures.bursts import detect_bursts
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.transforms.signatures.signature import Signature

#: what one method makes of sample sets: a signature for each, in order
Extraction = Callable[[SampleSets], Sequence[Signature]]


@dataclass(frozen=True, slots=True)
class Method:
    """One method; extract can be sent to another process.

    is_slow: it takes longer than all others together, and is not asked where runs are made to differ.
    """

    name: str
    doc: str
    extract: Extraction
    is_slow: bool = False


def _extracted(sets: SampleSets, name: str, changed: tuple[tuple[str, Any], ...] = ()) -> list[Signature]:
    """Return one method's signatures, some parameters of `iosi` changed."""
    from iosig.transforms.signatures.methods import SignatureParams, extract_signatures

    params = SignatureParams()
    if changed:
        params = replace(params, iosi=replace(params.iosi, **dict(changed)))
    (found,) = extract_signatures(sets, params, (name,))
    return found.signatures


def _lacking(sets: SampleSets, seed: int) -> list[Signature]:
    """Return signatures by `elastic` that lack a fifth, half or four fifths of their bursts, drawn for each set."""
    rng = np.random.default_rng(seed)
    found = []
    for one in _extracted(sets, WARPED):
        curve, share = one.bytes_per_s.copy(), rng.choice([0.2, 0.5, 0.8])
        for begin, end in zip(one.bursts.start_s.tolist(), one.bursts.end_s.tolist(), strict=True):
            if rng.random() < share:
                curve[max(0, int(begin) - 3) : int(end) + 3] = 0.0
        bursts = detect_bursts(curve)
        found.append(Signature.from_curve(curve, bursts) if len(bursts) else Signature.missing("no_common_bursts"))
    return found


#: what is held to the targets: of each set, the answer that is chosen by expected correlation
DEFAULT = "chosen"
_DOCS = {
    "elastic": "runs normalized to one duration and aligned elastically; a low quantile less its floor",
    "robust": "runs aligned at each burst by a volume-preserving warp; a robust lower envelope",
    "time_normalized": "runs normalized to one duration; a low quantile less its floor",
    "iosi": "IOSI as published (section 5)",
    "iosi_raw": "IOSI without outlier elimination and preprocessing (sections 6.1 and 6.2)",
    "dtw": "dynamic time warping, pair by pair (section 6.1)",
    "mean": "pointwise mean of the preprocessed samples",
    "median": "pointwise median",
    "quantile": "pointwise 35 % quantile",
}
METHODS: tuple[Method, ...] = tuple(
    Method(name, doc, partial(_extracted, name=name), is_slow=name == "dtw") for name, doc in _DOCS.items()
)
#: what two methods would say if they knew what others do: asked of samples without others' bytes
ORACLES: tuple[Method, ...] = tuple(
    Method(f"oracle {name}", f"{name} of the runs' own bytes, slowed as they are", partial(_extracted, name=name))
    for name in ("robust", "quantile")
)
#: what lacks bursts is made of this one's answers
WARPED = "elastic"
#: asked of families beside the others, for the judge to hear of signatures that lack bursts; no answer to be taken
LACKING = Method("lacking", f"{WARPED} without some of its bursts", partial(_lacking, seed=5))


@dataclass(frozen=True, slots=True)
class Sweep:
    """One parameter of `iosi`: its field, the values that are tried, and the one that the paper takes."""

    name: str
    field: str
    values: tuple[float, ...] | tuple[int, ...]
    usual: float

    def methods(self) -> Iterator[tuple[float, Method]]:
        """Yield each value, and `iosi` with it."""
        for value in self.values:
            yield float(value), Method("iosi", "", partial(_extracted, name="iosi", changed=((self.field, value),)))


#: IOSI's Figures 17, 18(a) and 18(b)
SWEEPS: tuple[Sweep, ...] = (
    Sweep("wavelet_level", "level", (1, 2, 3, 4), 2),
    Sweep("gamma", "gamma", (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 0.5),
    Sweep("kappa", "kappa", (0.5, 0.6, 0.7, 0.8, 0.9, 1.0), 0.9),
)
