"""Give the scheduler the periods of iosig's predictor, which follows the requests of every job.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (IPDPS'24, DOI 10.1109/IPDPS57955.2024.00048),
section II-D: a prediction is made whenever requests are appended; section IV: the scheduler "uses the most recent
prediction". The predictor is that of `iosig predict`, with its parameters. It receives requests, not phases.
"""

from __future__ import annotations

from iosig.transforms.predictions.predictor import Due, OnlineParams, Predictor, evaluate
from iosig.transforms.throughput.requests import Requests


class PredictedPeriods:
    """Predicts the period of each job from its completed requests; a `PeriodSource`.

    Each phase of a job is one collective request: from the call, which may wait for other jobs, until the last byte.
    """

    def __init__(self, params: OnlineParams | None = None) -> None:
        self._params = params or OnlineParams()
        self._predictors: dict[int, Predictor] = {}

    def record_phase(self, job: int, io_start_s: float, io_end_s: float, volume_bytes: float) -> None:
        """Add the request of a job's completed phase, and predict."""
        predictor = self._predictors.setdefault(job, Predictor(self._params))
        predictor.add(Requests.from_arrays([io_start_s], [io_end_s], [volume_bytes]))
        predictor.pyramid.advance(io_end_s)
        evaluate([Due(predictor, io_end_s)])

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the most recent period of a job; None until one was found."""
        predictor = self._predictors.get(job)
        return None if predictor is None else predictor.period_s
