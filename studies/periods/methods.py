"""List the compared period detectors by name, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from iosig.transforms.periods import autocorrelation, autoperiod, ftio, ftio_0_0_9
from iosig.transforms.periods.interface.detections import Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.periods.null_model import detection

#: samples that a method takes: mean rates over intervals, or rates at instants
Sampling = Literal["bins", "instants"]


@dataclass(frozen=True, slots=True)
class Method:
    """A period detector; `detect` must be a module-level function, so that it can be pickled."""

    name: str
    doc: str
    sampling: Sampling
    detect: Callable[[EvenSignals], Detections]


def _compatible(signals: EvenSignals) -> Detections:
    return ftio_0_0_9.detect_in_samples(signals)


#: the merger of the paper's method with autocorrelation is left out: it refines the confidence, but does not change the
#: periods (`iosig.transforms.periods.search`), so its errors and false alarms are those of `dft`
METHODS: tuple[Method, ...] = (
    Method(
        "null_tested",
        "iosig's default: reports a period only if noise is unlikely to show it",
        "bins",
        detection.detect,
    ),
    Method("dft", "FTIO as published (section II)", "instants", ftio.detect),
    Method("autocorrelation", "FTIO's second method alone (section II-C)", "instants", autocorrelation.detect),
    Method("ftio", "FTIO as implemented in version 0.0.9", "instants", _compatible),
    Method("autoperiod", "AUTOPERIOD (PEARC'18)", "bins", autoperiod.detect_even),
)
