"""The methods that are compared, by name, and the settings of `iosi` whose influence is studied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from transforms.signatures.sample_sets import SampleSets
from transforms.signatures.signature import Signature

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
    from transforms.signatures.methods import SignatureParams, extract

    params = SignatureParams()
    if changed:
        params = replace(params, iosi=replace(params.iosi, **dict(changed)))
    (found,) = extract(sets, params, (name,))
    return found.signatures


#: the one that is shown first, and held to the targets
DEFAULT = "robust"
_DOCS = {
    "robust": "our default: runs aligned by a warp that preserves volume, and a low robust envelope across them",
    "iosi": "IOSI as section 5 states it",
    "iosi_raw": "IOSI without outlier elimination and preprocessing (sections 6.1 and 6.2)",
    "dtw": "dynamic time warping, pair after pair (section 6.1)",
    "mean": "mean of the preprocessed samples, second by second",
    "median": "their median",
    "quantile": "their 35 % quantile",
}
METHODS: tuple[Method, ...] = tuple(
    Method(name, doc, partial(_extracted, name=name), is_slow=name == "dtw") for name, doc in _DOCS.items()
)
#: what two methods would say if they knew what others do: asked of samples without others' bytes
ORACLES: tuple[Method, ...] = tuple(
    Method(f"oracle {name}", f"{name} of the runs' own bytes, slowed as they are", partial(_extracted, name=name))
    for name in ("robust", "quantile")
)


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
