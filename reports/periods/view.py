"""Prepare the data behind the figure of one signal's period search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from iosig.reports.texts import duration_text, exact_duration_text, plain, ratio_text
from iosig.transforms.arrays import Bools, Ints, Reals
from iosig.transforms.periods import autocorrelation as autocorrelations
from iosig.transforms.periods.autocorrelation import AutocorrelationParams
from iosig.transforms.periods.autoperiod import SearchSteps
from iosig.transforms.periods.ftio_outliers import OutlierParams
from iosig.transforms.periods.ftio_spectra import compute_spectra
from iosig.transforms.periods.interface.detections import Detections, Segments
from iosig.transforms.periods.interface.even_signals import EvenSignals
from iosig.warehouse.contracts.metrics import Metric

#: minimum number of samples for an autocorrelation
_MIN_LAGS = 3
_NO_PERIOD = {
    "aperiodic": "No period: the signal is aperiodic",
    "too_short": "No period: the signal is too short",
    "no_io": "No period: no I/O",
    "no_data": "No period: no data",
    "too_many_gaps": "No period: too many gaps",
}

_nothing: Callable[[], Reals] = partial(np.zeros, 0)


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines (n) detected in a signal, the best first: amplitude * cos(2 pi frequency t + phase) around a mean.

    frequency_hz, amplitude_bytes_per_s, phase_rad (n): t starts at the signal's start.
    """

    frequency_hz: Reals = field(default_factory=_nothing)
    amplitude_bytes_per_s: Reals = field(default_factory=_nothing)
    phase_rad: Reals = field(default_factory=_nothing)
    mean_bytes_per_s: float = math.nan

    def select(self, rows: Bools | slice) -> Cosines:
        """Select cosines by a mask or slice."""
        return Cosines(
            self.frequency_hz[rows], self.amplitude_bytes_per_s[rows], self.phase_rad[rows], self.mean_bytes_per_s
        )

    def select_drawable(self) -> Cosines:
        """Select the drawable cosines: amplitude, phase and frequency are known and finite."""
        is_known = np.isfinite(self.frequency_hz) & (self.frequency_hz > 0) & np.isfinite(self.phase_rad)
        highest = [abs(a) * len(is_known) + abs(self.mean_bytes_per_s) for a in self.amplitude_bytes_per_s.tolist()]
        return self.select(is_known & np.isfinite(highest))

    def at(self, samples: Reals, sampling_hz: float) -> Reals:
        """Evaluate the sum of all cosines and their mean at sample offsets (k) from the start."""
        values = np.full(len(samples), self.mean_bytes_per_s)
        for frequency, amplitude, phase in zip(
            self.frequency_hz, self.amplitude_bytes_per_s, self.phase_rad, strict=True
        ):
            values += amplitude * np.cos(_angles(samples, frequency, sampling_hz) + phase)
        return values


def _angles(samples: npt.ArrayLike, frequency_hz: float, sampling_hz: float) -> Reals:
    """Return the phase angle of a frequency at samples, modulo full turns to preserve precision."""
    turns = np.asarray(samples, dtype=np.float64) * (frequency_hz / sampling_hz)
    return 2 * np.pi * (turns - np.rint(turns))


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Power spectrum of one signal at each frequency (n), without the mean.

    frequency_hz (n): ascending, above 0. power (n): fraction of the total power; of a periodogram, in units of the
    variance of white noise. threshold: the power at which a line becomes a candidate; NaN without a threshold.
    threshold_name: its criterion. candidates_hz (k): frequencies of the candidates, the best first. is_periodogram:
    whether it is a Lomb-Scargle periodogram, whose frequencies are closer than its peaks are wide.
    """

    frequency_hz: Reals = field(default_factory=_nothing)
    power: Reals = field(default_factory=_nothing)
    threshold: float = math.nan
    threshold_name: str = ""
    candidates_hz: Reals = field(default_factory=_nothing)
    is_periodogram: bool = False


@dataclass(frozen=True, slots=True)
class Autocorrelation:
    """Autocorrelation of one signal by ascending lag_s (n): coefficient (n), and the indices of peaks (k).

    hill_lag_s, hill_coefficient (lines, 2): ends of the lines fitted to the hill of the period, if the method does so.
    """

    lag_s: Reals = field(default_factory=_nothing)
    coefficient: Reals = field(default_factory=_nothing)
    peaks: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    hill_lag_s: Reals = field(default_factory=lambda: np.zeros((0, 2)))
    hill_coefficient: Reals = field(default_factory=lambda: np.zeros((0, 2)))


@dataclass(frozen=True, slots=True)
class PeriodView:
    """All data shown in the figure of one signal.

    title, direction, method: display names, shown verbatim. signals: the signal, as a batch of one. outcome: one of
    `iosig.transforms.periods.interface.detections.OUTCOMES`. frequency_hz, confidence, false_alarm_probability: NaN if
    absent. window_start_s, window_end_s: the time with the period if the method locates it, else the analyzed
    time. has_utc_clock: whether timestamps are seconds since 1970-01-01 UTC rather than the run's clock. segments: all
    periods, if the method searches for several. metric: what the signal counts.
    """

    title: str
    direction: str
    method: str
    signals: EvenSignals
    outcome: str
    frequency_hz: float
    confidence: float
    false_alarm_probability: float
    window_start_s: float
    window_end_s: float
    cosines: Cosines = field(default_factory=Cosines)
    spectrum: Spectrum = field(default_factory=Spectrum)
    autocorrelation: Autocorrelation = field(default_factory=Autocorrelation)
    has_utc_clock: bool = False
    segments: Segments | None = None
    metric: Metric = "bytes"

    def __post_init__(self) -> None:
        if self.signals.signal_count != 1:
            raise ValueError("a picture shows a single signal")

    @property
    def is_periodic(self) -> bool:
        """Whether the search detected a period that the figure can show."""
        return self.outcome == "periodic" and math.isfinite(self.frequency_hz) and self.frequency_hz > 0

    @property
    def window_samples(self) -> tuple[int, int]:
        """Range of analyzed samples, end excluded; the whole signal if unknown."""
        return self.samples_between(self.window_start_s, self.window_end_s)

    def samples_between(self, start_s: float, end_s: float) -> tuple[int, int]:
        """Return the range of samples between two times, end excluded; the whole signal if unknown."""
        count, hertz = self.signals.sample_count, float(self.signals.sampling_hz[0])
        started = float(self.signals.start_s[0])
        places = [(instant - started) * hertz for instant in (start_s, end_s)]
        if not all(map(math.isfinite, places)):
            return 0, count
        first, last = (round(min(max(place, 0.0), float(count))) for place in places)
        return first, last

    @property
    def is_whole(self) -> bool:
        """Whether the whole signal was analyzed."""
        return self.window_samples == (0, self.signals.sample_count)

    @property
    def verdict(self) -> str:
        """One-line summary of the search result."""
        return "  ·  ".join([self.finding, *self.details])

    @property
    def finding(self) -> str:
        """The period and the fraction of time in which it occurs, or the reason why no period was detected."""
        text = _NO_PERIOD.get(self.outcome, f"No period: {plain(self.outcome, 40)}")
        if self.is_periodic:
            text = f"Period {exact_duration_text(1.0 / self.frequency_hz)}"
        if self.is_whole:
            return text
        hertz, (first, last) = float(self.signals.sampling_hz[0]), self.window_samples
        part_s, total_s = ((last - first) / hertz, self.signals.sample_count / hertz)
        return (
            f"{text}, {'in' if self.is_periodic else 'analyzed:'} {duration_text(part_s)} of {duration_text(total_s)}"
        )

    @property
    def details(self) -> list[str]:
        """Confidence measures of the detection, as far as the method provides them."""
        numbers = (("confidence", self.confidence), ("false-alarm probability", self.false_alarm_probability))
        return [f"{name} {ratio_text(value)}" for name, value in numbers if math.isfinite(value)]


# ---- from detection results


def build_view(
    signals: EvenSignals,
    detections: Detections,
    *,
    title: str,
    direction: str = "",
    method: str = "",
    signal: int = 0,
    has_utc_clock: bool = False,
    steps: SearchSteps | None = None,
    has_z_score: bool = True,
    segments: Segments | None = None,
    metric: Metric = "bytes",
) -> PeriodView:
    """Prepare one of several signals and its detection result for the figure.

    signal: its index in both inputs. Spectrum and autocorrelation cover the analyzed time; steps: those of AUTOPERIOD,
    which replace them. has_z_score: whether the method's threshold is a Z-score; other outlier criteria have no
    threshold line. segments: all periods of that signal alone.
    """
    selected = signals.select(slice(signal, signal + 1))
    first, last = (int(place) for place in detections.candidates.offsets[signal : signal + 2])
    view = PeriodView(
        title,
        direction,
        method,
        selected,
        str(detections.outcome[signal]),
        float(detections.frequency_hz[signal]),
        float(detections.confidence[signal]),
        float(detections.false_alarm_probability[signal]),
        float(detections.window_start_s[signal]),
        float(detections.window_end_s[signal]),
        has_utc_clock=has_utc_clock,
        segments=segments,
        metric=metric,
    )
    analyzed = selected.slice_samples(*view.window_samples)
    candidates_hz = detections.candidates.frequency_hz[first:last]
    if steps is None:
        spectrum = _spectrum(analyzed, candidates_hz, has_z_score=has_z_score)
        autocorrelation = _autocorrelation(analyzed)
    else:
        spectrum, autocorrelation = _spectrum_of_steps(steps, candidates_hz), _autocorrelation_of_steps(steps)
    cosines = _cosines(view, analyzed, detections, slice(first, last))
    return replace(view, cosines=cosines, spectrum=spectrum, autocorrelation=autocorrelation)


def _spectrum_of_steps(steps: SearchSteps, candidates_hz: Reals) -> Spectrum:
    name = f"significance threshold, {100 * steps.confidence:g} %"
    return Spectrum(steps.frequency_hz, steps.power, steps.threshold, name, candidates_hz, is_periodogram=True)


def _autocorrelation_of_steps(steps: SearchSteps) -> Autocorrelation:
    return Autocorrelation(
        steps.lag_s, steps.correlation, hill_lag_s=steps.hill_lag_s, hill_coefficient=steps.hill_correlation
    )


def _cosines(view: PeriodView, analyzed: EvenSignals, detections: Detections, rows: slice) -> Cosines:
    """Return the detected cosine fitted to the analyzed time; other candidates only if all samples were analyzed."""
    if not view.is_periodic:
        return Cosines()
    amplitude, phase, mean = _fit_cosine(analyzed, view.frequency_hz, view.window_samples[0])
    # Candidate phases refer to the analyzed time, so they do not fit the whole signal.
    other_rows = rows if view.is_whole else slice(0)
    candidates = detections.candidates
    is_other = ~np.isclose(candidates.frequency_hz[other_rows], view.frequency_hz, rtol=1e-6, atol=0.0)
    return Cosines(
        np.append(view.frequency_hz, candidates.frequency_hz[other_rows][is_other]),
        np.append(amplitude, candidates.amplitude_bytes_per_s[other_rows][is_other]),
        np.append(phase, candidates.phase_rad[other_rows][is_other]),
        mean,
    )


def _fit_cosine(analyzed: EvenSignals, frequency_hz: float, first: int) -> tuple[float, float, float]:
    """Return amplitude, phase and mean of the least-squares cosine; NaN where no data were measured.

    first: offset of the analyzed samples from the signal's start, which is the origin of phases.
    """
    values, is_known = analyzed.bytes_per_s[0], analyzed.is_known[0]
    size = float(np.max(np.abs(values), initial=0.0, where=is_known))
    if not is_known.any() or size == 0:
        return math.nan, math.nan, math.nan
    scaled = values[is_known] / size
    angle = _angles(np.flatnonzero(is_known) + first, frequency_hz, float(analyzed.sampling_hz[0]))
    columns = np.stack([np.ones(len(scaled)), np.cos(angle), np.sin(angle)])
    mean, even, odd = (size * part for part in np.linalg.lstsq(columns @ columns.T, columns @ scaled)[0].tolist())
    return math.hypot(even, odd), math.atan2(-odd, even), float(mean)


def _spectrum(analyzed: EvenSignals, candidates_hz: Reals, *, has_z_score: bool) -> Spectrum:
    spectra, threshold_z = compute_spectra(analyzed), OutlierParams().z_threshold
    if not spectra.bin_count or spectra.is_constant[0]:
        return Spectrum()
    shares = spectra.shares[0]
    threshold = float(shares.mean() + threshold_z * shares.std()) if has_z_score else math.nan
    return Spectrum(spectra.frequencies_hz[0], shares, threshold, f"Z-score of {threshold_z:g}", candidates_hz)


def _autocorrelation(analyzed: EvenSignals) -> Autocorrelation:
    if analyzed.sample_count < _MIN_LAGS:
        return Autocorrelation()
    if analyzed.is_known.all():
        values = autocorrelations.correlate_linear(analyzed.bytes_per_s)
    else:
        values = autocorrelations.correlate_with_gaps(analyzed.bytes_per_s)
    peaks = autocorrelations.find_row_peaks(np.nan_to_num(values), AutocorrelationParams().min_height)
    with np.errstate(over="ignore"):
        lag_s = np.arange(values.shape[1]) / analyzed.sampling_hz[0]
    return Autocorrelation(lag_s, values[0], peaks.place)
