"""Predict periods online from completed I/O phases, as FTIO does for a scheduler.

Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques" (IPDPS'24, DOI 10.1109/IPDPS57955.2024.00048),
section II-D: each evaluation transforms a moving window; section IV: the scheduler "uses the most recent prediction".
The window reaches from the first retained phase to now.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from iosig.transforms.periods.ftio import detect
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.transforms.throughput import even_values
from iosig.transforms.throughput.requests import Requests

#: maximum number of phases in the window; the paper's window has k = 3 periods, once three were found; our eight
#: average out the effects of jitter and contention on single phases
PHASE_COUNT = 8
#: samples of a window
_STEP_COUNT = 256
#: minimum new phases before a known period is predicted again
_MIN_NEW_COUNT = 2


class ObservedPeriods:
    """Predicts each job's period from its completed I/O phases; a `PeriodSource`.

    The cost of a prediction depends on the window, not on the duration of the job.
    """

    def __init__(self) -> None:
        self._phases: dict[int, deque[tuple[float, float, float]]] = {}
        self._latest: dict[int, float] = {}
        #: number of phases since the latest prediction, by job
        self._new_count: dict[int, int] = {}

    def record_phase(self, job: int, start_s: float, end_s: float, volume_bytes: float) -> None:
        """Add a completed I/O phase to the job's window."""
        phases = self._phases.setdefault(job, deque(maxlen=PHASE_COUNT))
        phases.append((start_s, end_s, volume_bytes))
        self._new_count[job] = self._new_count.get(job, 0) + 1

    def period_s(self, job: int, now_s: float) -> float | None:
        """Return the most recent prediction for a job, updated if due; None until one was periodic."""
        phases = list(self._phases.get(job, ()))
        is_due = job not in self._latest or self._new_count[job] >= _MIN_NEW_COUNT
        if is_due and len(phases) >= 2 and now_s > phases[0][0]:
            self._new_count[job] = 0
            period_s = self._predict(phases, now_s)
            if period_s is not None:
                self._latest[job] = period_s
        return self._latest.get(job)

    def _predict(self, phases: list[tuple[float, float, float]], now_s: float) -> float | None:
        table = np.array(phases)
        start_s, end_s, volume_bytes = table[:, 0], table[:, 1], table[:, 2]
        grid = even_values.Grid.from_range(start_s[0], now_s, _STEP_COUNT)
        # each phase ends before the next one starts, so none extends beyond the present time
        rates = even_values.bin_requests(Requests.from_arrays(start_s, end_s, volume_bytes), grid).bytes_per_s
        answer = detect(EvenSignals.from_samples(rates, 1.0 / float(grid.interval_s[0]), float(start_s[0])))
        period_s = float(answer.period_s[0])
        return period_s if np.isfinite(period_s) else None
