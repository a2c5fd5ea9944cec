"""Runs whose I/O phases are known, phase by phase: what predictions of periods are tried on.

Each is a program that computes and does I/O in turns, as FTIO has it (Tarraf et al., "Capturing Periodic I/O Using
Frequency Techniques", DOI 10.1109/IPDPS57955.2024.00048): a run like its HACC-IO (section III-B, Figure 15), runs
whose period changes, and runs that have none. All ranks take part in a phase, not quite in step (section III-A,
"process desynchronization"); between phases there may be small I/O that belongs to none.

A run is handed over row by row, as a tracing library would after each phase: the requests that are over since the row
before. Where a gap is drawn, what follows moves with it: a delay is not made up for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.throughput.requests import Requests

#: what a rank moves in a phase [bytes]
REQUEST_BYTES = 1e7
#: HACC-IO in the paper: phases; their mean distance; when the first one begins and is over [s]; mean distance of the
#: others, from the second on
HACC_PHASES, HACC_PERIOD_S, HACC_FIRST_S, HACC_LATER_PERIOD_S = 10, 8.7, (4.1, 15.3), 7.7
#: and ours, for the paper shows it only: how long a phase lasts, how much this and the distances vary
_HACC_PHASE_S, _HACC_PHASE_JITTER, _HACC_JITTER = 3.0, 0.1, 0.03
#: a phase lasts this share of a period, varies by this share of itself, and the first one begins after this share
_PHASE_RATIO, _PHASE_JITTER, _LEAD_RATIO = 0.15, 0.1, 0.3
#: no gap is a smaller share of its period: phases never run into one another
_LEAST_GAP_RATIO = 0.4


def _nothing() -> Requests:
    return Requests.from_arrays([], [], [])


@dataclass(frozen=True, slots=True)
class PlantedRun:
    """A run, in rows (p): mostly one for each phase, else what was handed over at a time.

    onset_s (p): when each row's first request begins. start_s, end_s, volume_bytes (p, requests): its requests.
    period_s (p): the period that is planted when a phase begins, the gap to the next one but for its jitter; NaN where
    there is none. background: requests that are of no phase, in any order.
    """

    onset_s: Reals
    start_s: Reals
    end_s: Reals
    volume_bytes: Reals
    period_s: Reals
    background: Requests = field(default_factory=_nothing)

    @property
    def phase_count(self) -> int:
        """The number of rows."""
        return len(self.onset_s)

    @property
    def gaps_s(self) -> Reals:
        """From each onset but the last to the next one (p - 1) [s]."""
        return np.diff(self.onset_s)

    @property
    def phase_end_s(self) -> Reals:
        """When the last request of each row is over (p)."""
        found: Reals = self.end_s.max(axis=1)
        return found

    def requests(self, phase: int) -> Requests:
        """Return what is handed over after a phase: its requests, and what background is over since the last one."""
        ended, other = self.phase_end_s, self.background
        before_s = ended[phase - 1] if phase else -np.inf
        is_new = (other.end_s > before_s) & (other.end_s <= ended[phase])
        return Requests.from_arrays(
            np.concatenate([self.start_s[phase], other.start_s[is_new]]),
            np.concatenate([self.end_s[phase], other.end_s[is_new]]),
            np.concatenate([self.volume_bytes[phase], other.volume_bytes[is_new]]),
        )


def planted(
    onset_s: Reals,
    length_s: Reals,
    generator: np.random.Generator,
    ranks: int = 16,
    desync_ratio: float = 0.15,
    period_s: Reals | None = None,
) -> PlantedRun:
    """Plant phases (p) that begin and last as given.

    Each rank begins late, and is over early, by up to desync_ratio of the phase (evenly); the first rank is in step.
    period_s (p): as of `PlantedRun`; none if not given.
    """
    late = generator.uniform(0.0, desync_ratio, (2, len(onset_s), ranks)) * length_s[:, None]
    late[:, :, 0] = 0.0
    began, ceased = onset_s[:, None] + late[0], (onset_s + length_s)[:, None] - late[1]
    # who begins late and is over early takes no time at least
    ceased = np.maximum(began, ceased)
    periods = np.full(len(onset_s), np.nan) if period_s is None else period_s
    return PlantedRun(onset_s, began, ceased, np.full_like(began, REQUEST_BYTES), periods)


def hacc_like(generator: np.random.Generator) -> PlantedRun:
    """Return ten phases as of HACC-IO (section III-B, Figure 15): the first one is late, and lasts from 4.1 to 15.3 s.

    Phases begin 8.7 s apart on average, and those after the first 7.7 s, so that the second begins 16.7 s after it.
    """
    first_s, until_s = HACC_FIRST_S
    count = HACC_PHASES - 2
    whole_s = (HACC_PHASES - 1) * HACC_PERIOD_S
    second_s = whole_s - count * HACC_LATER_PERIOD_S
    gaps = 1 + _HACC_JITTER * generator.standard_normal(count)
    onsets = first_s + np.cumsum(np.concatenate([[0.0, second_s], gaps * (whole_s - second_s) / gaps.sum()]))
    lengths = _HACC_PHASE_S * (1 + _HACC_PHASE_JITTER * generator.standard_normal(HACC_PHASES - 1))
    periods = np.concatenate([[second_s], np.full(HACC_PHASES - 1, HACC_LATER_PERIOD_S)])
    return planted(onsets, np.concatenate([[until_s - first_s], lengths]), generator, period_s=periods)


def changing(
    generator: np.random.Generator,
    period_s: float,
    ratio: float,
    counts: tuple[int, int] = (20, 20),
    jitter: float = 0.05,
    ranks: int = 4,
    desync_ratio: float = 0.15,
) -> PlantedRun:
    """Return phases a period apart, then `ratio` times as far; a phase lasts 15 % of the first period.

    counts: gaps before and since the change, which is at the onset of phase counts[0]. jitter: the standard deviation
    of gaps, as a share of the period. Runs of one state of the generator that differ in nothing but the ratio have all
    phases in common up to that one, itself included.
    """
    periods = np.repeat([period_s, period_s * ratio], counts)
    gaps = periods * np.maximum(1 + jitter * generator.standard_normal(sum(counts)), _LEAST_GAP_RATIO)
    onsets = _LEAD_RATIO * period_s + np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    lengths = _PHASE_RATIO * period_s * (1 + _PHASE_JITTER * generator.standard_normal(len(onsets)))
    return planted(onsets, lengths, generator, ranks, desync_ratio, periods)


def moving(
    generator: np.random.Generator, period_s: float, count: int, jitter: float, growth: float = 0.0, swing: float = 0.0
) -> PlantedRun:
    """Return phases whose period grows by a share of itself from each to the next, or swings by one, a turn in 16."""
    place = np.arange(count)
    periods = period_s * (1 + growth) ** place * (1 + swing * np.sin(2 * np.pi * place / 16))
    gaps = periods * np.maximum(1 + jitter * generator.standard_normal(count), _LEAST_GAP_RATIO)
    onsets = _LEAD_RATIO * period_s + np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    lengths = _PHASE_RATIO * period_s * (1 + _PHASE_JITTER * generator.standard_normal(count))
    return planted(onsets, lengths, generator, period_s=periods)


def ending(
    generator: np.random.Generator, period_s: float, counts: tuple[int, int], jitter: float, kind: str
) -> PlantedRun:
    """Return phases a period apart whose rhythm ends: later gaps are random, about a period in the mean.

    counts: gaps before the end of the rhythm and since. kind: how later gaps are distributed: `exponential`,
    `log-normal` (by an octave and a half) or `uniform`, each after the phase before is over.
    """
    before, since = counts
    steady = period_s * np.maximum(1 + jitter * generator.standard_normal(before), _LEAST_GAP_RATIO)
    pause = (1 - _PHASE_RATIO) * period_s
    drawn = {
        "exponential": lambda: generator.exponential(pause, since),
        "log-normal": lambda: pause * np.exp(generator.standard_normal(since) - 0.5),
        "uniform": lambda: generator.uniform(0, 2 * pause, since),
    }
    gaps = np.concatenate([steady, 1.1 * _PHASE_RATIO * period_s + drawn[kind]()])
    onsets = _LEAD_RATIO * period_s + np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    lengths = np.full(len(onsets), _PHASE_RATIO * period_s)
    periods = np.repeat([period_s, np.nan], counts)
    return planted(onsets, lengths, generator, period_s=periods)


def with_background(
    run: PlantedRun, generator: np.random.Generator, volume_ratio: float, request_bytes: float = 64 * 1024.0
) -> PlantedRun:
    """Return a run with small I/O that belongs to no phase, at random times from its zero until its end.

    volume_ratio: its bytes over those of the phases. request_bytes: the mean size of its requests, whose sizes vary
    exponentially; a request goes at the mean speed of those of the phases.
    """
    volume = float(run.volume_bytes.sum()) * volume_ratio
    count = int(generator.poisson(volume / request_bytes))
    sizes = generator.exponential(request_bytes, count)
    began = generator.uniform(0.0, float(run.phase_end_s[-1]), count)
    speed = float(run.volume_bytes.sum() / (run.end_s - run.start_s).sum())
    return replace(run, background=Requests.from_arrays(began, began + sizes / speed, sizes))


# ---- runs without a period


def irregular(generator: np.random.Generator, mean_gap_s: float, count: int, ranks: int = 4) -> PlantedRun:
    """Return phases at random times: each lasts 15 % of the mean gap, and the pause after it is exponential."""
    lengths = _PHASE_RATIO * mean_gap_s * (1 + _PHASE_JITTER * generator.standard_normal(count))
    pauses = generator.exponential((1 - _PHASE_RATIO) * mean_gap_s, count)
    onsets = _LEAD_RATIO * mean_gap_s + np.concatenate([[0.0], np.cumsum(lengths + pauses)[:-1]])
    return planted(onsets, lengths, generator, ranks)


def constant(
    generator: np.random.Generator, row_s: float, count: int, ranks: int = 4, per_row: int = 8, start_s: float = 0.0
) -> PlantedRun:
    """Return I/O without a pause: every rank's requests follow one another, each of a length of its own.

    row_s: after about that time all is handed over, per_row requests of every rank. All requests move the same, and
    take from a half to one and a half of the mean time (evenly).
    """
    lengths = generator.uniform(0.5, 1.5, (ranks, count * per_row)) * row_s / per_row
    ceased = start_s + np.cumsum(lengths, axis=1)
    rows = [_in_rows(values, count) for values in (ceased - lengths, ceased)]
    volumes = np.full_like(rows[0], REQUEST_BYTES / per_row)
    return PlantedRun(rows[0].min(axis=1), rows[0], rows[1], volumes, np.full(count, np.nan))


def _in_rows(values: Reals, count: int) -> Reals:
    """Return values (ranks, count * k) as rows (count, ranks * k)."""
    ranks = len(values)
    found: Reals = values.reshape(ranks, count, -1).transpose(1, 0, 2).reshape(count, -1)
    return found


def single(generator: np.random.Generator, phase_s: float, count: int = 8, ranks: int = 4) -> PlantedRun:
    """Return one phase, handed over in so many rows, with quiet for as long before it and twice as long after it.

    The last row is what ends the quiet: a byte of each request.
    """
    rows = constant(generator, phase_s / count, count, ranks, start_s=phase_s)
    last = np.full((1, rows.start_s.shape[1]), 4 * phase_s)
    return PlantedRun(
        np.append(rows.onset_s, 4 * phase_s),
        np.concatenate([rows.start_s, last]),
        np.concatenate([rows.end_s, last]),
        np.concatenate([rows.volume_bytes, np.ones_like(last)]),
        np.full(count + 1, np.nan),
    )
