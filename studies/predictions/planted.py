"""Draw synthetic runs with known I/O phases, to evaluate predictions of periods.

Each run alternates computing and I/O, as in FTIO (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques",
DOI 10.1109/IPDPS57955.2024.00048): a run like its HACC-IO (section III-B, Figure 15), runs with changing periods, and
runs without a period. All ranks take part in a phase, not quite in step (section III-A, "process desynchronization");
between phases there may be small requests outside any phase.

A run is reported row by row, as a tracing library would after each phase: the requests completed since the row before.
A random gap shifts everything after it, so delays accumulate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from iosig.transforms.arrays import Reals
from iosig.transforms.throughput.requests import Requests

#: bytes that a rank moves in a phase [B]
REQUEST_BYTES = 1e7
#: HACC-IO in the paper: number of phases; mean distance of their starts; start and end of the first phase; mean
#: distance of the phases from the second on [s]
HACC_PHASES, HACC_PERIOD_S, HACC_FIRST_S, HACC_LATER_PERIOD_S = 10, 8.7, (4.1, 15.3), 7.7
#: our assumptions, since the paper only plots these: duration of a phase [s], and its relative variation; relative
#: variation of the distances
_HACC_PHASE_S, _HACC_PHASE_JITTER, _HACC_JITTER = 3.0, 0.1, 0.03
#: duration of a phase relative to the period; relative variation of this duration; start of the first phase relative to
#: the period
_PHASE_RATIO, _PHASE_JITTER, _LEAD_RATIO = 0.15, 0.1, 0.3
#: minimum gap relative to its period, so that phases never overlap
_MIN_GAP_RATIO = 0.4


def _make_no_requests() -> Requests:
    return Requests.from_arrays([], [], [])


@dataclass(frozen=True, slots=True)
class PlantedRun:
    """A run in rows (p), mostly one per phase.

    onset_s (p): start of each row's first request. start_s, end_s, volume_bytes (p, requests): its requests. period_s
    (p): planted period at each row, the gap to the next one without jitter; NaN if none. background: requests outside
    any phase, in any order.
    """

    onset_s: Reals
    start_s: Reals
    end_s: Reals
    volume_bytes: Reals
    period_s: Reals
    background: Requests = field(default_factory=_make_no_requests)

    @property
    def phase_count(self) -> int:
        """Number of rows, which is the number of phases for most runs."""
        return len(self.onset_s)

    @property
    def gaps_s(self) -> Reals:
        """Distance from each onset to the next (p - 1) [s]."""
        return np.diff(self.onset_s)

    @property
    def phase_end_s(self) -> Reals:
        """End of the last request in each row (p)."""
        end_s: Reals = self.end_s.max(axis=1)
        return end_s

    def requests(self, phase: int) -> Requests:
        """Return the requests reported after a phase: its own, and the background completed since the last one."""
        ended, background = self.phase_end_s, self.background
        before_s = ended[phase - 1] if phase else -np.inf
        is_new = (background.end_s > before_s) & (background.end_s <= ended[phase])
        return Requests.from_arrays(
            np.concatenate([self.start_s[phase], background.start_s[is_new]]),
            np.concatenate([self.end_s[phase], background.end_s[is_new]]),
            np.concatenate([self.volume_bytes[phase], background.volume_bytes[is_new]]),
        )


def plant_phases(
    onset_s: Reals,
    length_s: Reals,
    generator: np.random.Generator,
    ranks: int = 16,
    desync_ratio: float = 0.15,
    period_s: Reals | None = None,
) -> PlantedRun:
    """Plant phases (p) with given onsets and lengths.

    Each rank starts late and ends early by up to desync_ratio of the phase (uniform); the first rank is in step.
    period_s (p): see `PlantedRun`.
    """
    late = generator.uniform(0.0, desync_ratio, (2, len(onset_s), ranks)) * length_s[:, None]
    late[:, :, 0] = 0.0
    start_s, end_s = onset_s[:, None] + late[0], (onset_s + length_s)[:, None] - late[1]
    # the duration of a rank that starts late and ends early is not negative
    end_s = np.maximum(start_s, end_s)
    periods = np.full(len(onset_s), np.nan) if period_s is None else period_s
    return PlantedRun(onset_s, start_s, end_s, np.full_like(start_s, REQUEST_BYTES), periods)


def draw_hacc_run(generator: np.random.Generator) -> PlantedRun:
    """Draw ten phases like HACC-IO's (section III-B, Figure 15); the first one is long, from 4.1 to 15.3 s.

    Phases start 8.7 s apart on average, those after the first 7.7 s, so the second starts 16.7 s after it.
    """
    first_s, until_s = HACC_FIRST_S
    count = HACC_PHASES - 2
    whole_s = (HACC_PHASES - 1) * HACC_PERIOD_S
    second_s = whole_s - count * HACC_LATER_PERIOD_S
    gaps = 1 + _HACC_JITTER * generator.standard_normal(count)
    onsets = first_s + np.cumsum(np.concatenate([[0.0, second_s], gaps * (whole_s - second_s) / gaps.sum()]))
    lengths = _HACC_PHASE_S * (1 + _HACC_PHASE_JITTER * generator.standard_normal(HACC_PHASES - 1))
    periods = np.concatenate([[second_s], np.full(HACC_PHASES - 1, HACC_LATER_PERIOD_S)])
    return plant_phases(onsets, np.concatenate([[until_s - first_s], lengths]), generator, period_s=periods)


def draw_changing_run(
    generator: np.random.Generator,
    period_s: float,
    ratio: float,
    counts: tuple[int, int] = (20, 20),
    jitter: float = 0.05,
    ranks: int = 4,
    desync_ratio: float = 0.15,
) -> PlantedRun:
    """Draw phases at one period, then at `ratio` times the period; a phase lasts 15 % of the first period.

    counts: gaps before and after the change, which is at the onset of phase counts[0]. jitter: relative standard
    deviation of gaps. Runs drawn from the same generator state that differ only in ratio share all phases up to that
    one.
    """
    periods = np.repeat([period_s, period_s * ratio], counts)
    gaps = periods * np.maximum(1 + jitter * generator.standard_normal(sum(counts)), _MIN_GAP_RATIO)
    onsets = _LEAD_RATIO * period_s + np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    lengths = _PHASE_RATIO * period_s * (1 + _PHASE_JITTER * generator.standard_normal(len(onsets)))
    return plant_phases(onsets, lengths, generator, ranks, desync_ratio, periods)


def draw_moving_run(
    generator: np.random.Generator, period_s: float, count: int, jitter: float, growth: float = 0.0, swing: float = 0.0
) -> PlantedRun:
    """Draw phases with a period that grows by a ratio per phase, or oscillates with a cycle of 16 phases."""
    place = np.arange(count)
    periods = period_s * (1 + growth) ** place * (1 + swing * np.sin(2 * np.pi * place / 16))
    gaps = periods * np.maximum(1 + jitter * generator.standard_normal(count), _MIN_GAP_RATIO)
    onsets = _LEAD_RATIO * period_s + np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    lengths = _PHASE_RATIO * period_s * (1 + _PHASE_JITTER * generator.standard_normal(count))
    return plant_phases(onsets, lengths, generator, period_s=periods)


def draw_ending_run(
    generator: np.random.Generator, period_s: float, counts: tuple[int, int], jitter: float, kind: str
) -> PlantedRun:
    """Draw periodic phases followed by random gaps with about the same mean.

    counts: gaps before and after the end of the rhythm. kind: distribution of the later gaps, measured from the end of
    the previous phase: `exponential`, `log-normal` or `uniform`.
    """
    gap_count_before, gap_count_after = counts
    steady = period_s * np.maximum(1 + jitter * generator.standard_normal(gap_count_before), _MIN_GAP_RATIO)
    pause = (1 - _PHASE_RATIO) * period_s
    draw_by_kind = {
        "exponential": lambda: generator.exponential(pause, gap_count_after),
        "log-normal": lambda: pause * np.exp(generator.standard_normal(gap_count_after) - 0.5),
        "uniform": lambda: generator.uniform(0, 2 * pause, gap_count_after),
    }
    gaps = np.concatenate([steady, 1.1 * _PHASE_RATIO * period_s + draw_by_kind[kind]()])
    onsets = _LEAD_RATIO * period_s + np.concatenate([[0.0], np.cumsum(gaps)[:-1]])
    lengths = np.full(len(onsets), _PHASE_RATIO * period_s)
    periods = np.repeat([period_s, np.nan], counts)
    return plant_phases(onsets, lengths, generator, period_s=periods)


def add_background(
    run: PlantedRun, generator: np.random.Generator, volume_ratio: float, request_bytes: float = 64 * 1024.0
) -> PlantedRun:
    """Add small requests at random times, from 0 to the end of the run.

    volume_ratio: their bytes relative to the phases. request_bytes: mean size (exponential); they move at the mean
    speed of the phases' requests.
    """
    volume = float(run.volume_bytes.sum()) * volume_ratio
    count = int(generator.poisson(volume / request_bytes))
    sizes = generator.exponential(request_bytes, count)
    start_s = generator.uniform(0.0, float(run.phase_end_s[-1]), count)
    speed = float(run.volume_bytes.sum() / (run.end_s - run.start_s).sum())
    return replace(run, background=Requests.from_arrays(start_s, start_s + sizes / speed, sizes))


# ---- runs without a period


def draw_irregular_run(generator: np.random.Generator, mean_gap_s: float, count: int, ranks: int = 4) -> PlantedRun:
    """Draw phases at random times: each lasts 15 % of the mean gap and is followed by an exponential pause."""
    lengths = _PHASE_RATIO * mean_gap_s * (1 + _PHASE_JITTER * generator.standard_normal(count))
    pauses = generator.exponential((1 - _PHASE_RATIO) * mean_gap_s, count)
    onsets = _LEAD_RATIO * mean_gap_s + np.concatenate([[0.0], np.cumsum(lengths + pauses)[:-1]])
    return plant_phases(onsets, lengths, generator, ranks)


def draw_constant_run(
    generator: np.random.Generator, row_s: float, count: int, ranks: int = 4, per_row: int = 8, start_s: float = 0.0
) -> PlantedRun:
    """Draw I/O without pauses: every rank's requests follow one another with random lengths.

    row_s: approximate interval of rows, each with per_row requests of every rank. Requests have equal sizes and take
    0.5 to 1.5 times the mean time (uniform).
    """
    lengths = generator.uniform(0.5, 1.5, (ranks, count * per_row)) * row_s / per_row
    end_s = start_s + np.cumsum(lengths, axis=1)
    rows = [_split_into_rows(values, count) for values in (end_s - lengths, end_s)]
    volumes = np.full_like(rows[0], REQUEST_BYTES / per_row)
    return PlantedRun(rows[0].min(axis=1), rows[0], rows[1], volumes, np.full(count, np.nan))


def _split_into_rows(values: Reals, count: int) -> Reals:
    """Reshape values (ranks, count * k) to rows (count, ranks * k)."""
    ranks = len(values)
    rows: Reals = values.reshape(ranks, count, -1).transpose(1, 0, 2).reshape(count, -1)
    return rows


def draw_single_phase(generator: np.random.Generator, phase_s: float, count: int = 8, ranks: int = 4) -> PlantedRun:
    """Draw one phase, reported in `count` rows, with quiet time before it and twice as long after it.

    A final row of one-byte requests marks the end of the quiet time.
    """
    rows = draw_constant_run(generator, phase_s / count, count, ranks, start_s=phase_s)
    last = np.full((1, rows.start_s.shape[1]), 4 * phase_s)
    return PlantedRun(
        np.append(rows.onset_s, 4 * phase_s),
        np.concatenate([rows.start_s, last]),
        np.concatenate([rows.end_s, last]),
        np.concatenate([rows.volume_bytes, np.ones_like(last)]),
        np.full(count + 1, np.nan),
    )
