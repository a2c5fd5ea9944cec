"""The picture of a period search: any signal is drawn, gaps are marked, and names are literal."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread

from iosig.reports.periods import picture
from iosig.reports.periods.picture import draw
from iosig.reports.periods.view import PeriodView, build_view
from iosig.reports.texts import RATES, TIMES, choose_unit, duration_text, exact_duration_text, plain, shorten
from iosig.transforms.periods import autoperiod, autoperiod_analysis, ftio
from iosig.transforms.periods.autoperiod import SearchSteps
from iosig.transforms.periods.interface.detections import OUTCOMES, Candidates, Detections, Segments
from iosig.transforms.periods.interface.even_signals import EvenSignals
from tests.budget import examples, one_in
from tests.drawn_figures import figure_of

pytestmark = pytest.mark.filterwarnings("error")


def square(count: int, period: int, burst: int, rate: float = 2e9) -> np.ndarray:
    return np.where(np.arange(count) % period < burst, rate, 0.0)


def answer(outcome: str, period_s: float = math.nan, window: tuple[float, float] = (0.0, math.inf)) -> Detections:
    """Return the detection of a single signal, without candidates."""
    one = [np.array([value]) for value in (1 / period_s, math.nan, window[0], window[1], math.nan)]
    return Detections(np.array([outcome]), *one, Candidates.empty(1))


def seen(values: np.ndarray, period_s: float = math.nan, hz: float = 1.0, **told: object) -> PeriodView:
    signals = EvenSignals.from_samples(values, hz)
    found = answer("periodic" if math.isfinite(period_s) else "aperiodic", period_s)
    return build_view(signals, found, title="a trace", **told)  # type: ignore[arg-type]


def composed(view: PeriodView) -> Figure:
    return figure_of(draw(view))


def labels(figure: Figure) -> list[str]:
    return [label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts] + [text.get_text() for axes in figure.axes for text in axes.texts]


# ---- the file


def test_picture_is_written_with_the_expected_size(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "a.png"
    draw(seen(square(300, 20, 2), 20.0)).write(target)
    assert imread(target).shape[:2] == (1200, 1320)
    assert [path.name for path in target.parent.iterdir()] == ["a.png"]


def test_view_requires_a_single_signal() -> None:
    two = EvenSignals(np.zeros((2, 5)), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="single signal"):
        PeriodView("", "", "", two, "no_io", math.nan, math.nan, math.nan, 0.0, 5.0)


# ---- any signal


@pytest.mark.parametrize(
    ("count", "kind"), one_in(3, product([0, 1, 5_000], ["constant", "missing", "nothing", "infinite"]))
)
def test_any_signal_is_drawn(count: int, kind: str) -> None:
    values = {
        "constant": np.full(count, 7e13),
        "missing": np.full(count, np.nan),
        "nothing": np.zeros(count),
        "infinite": np.where(np.arange(count) % 3, np.inf, -5.0),
    }[kind]
    signals = EvenSignals.from_samples(values, 10.0, 1.5e9)
    composed(build_view(signals, ftio.detect(signals), title="x"))


@pytest.mark.parametrize(
    ("rate", "hz", "start_s"),
    [(5e-323, 1e-307, 1e308), (1e307, 1e300, 0.0), (1e-200, 1e-307, -1e308), (1e20, 1e6, 1e308), (1e-3, 1e-12, 1e9)],
)
def test_extreme_rates_and_times_are_drawn(rate: float, hz: float, start_s: float) -> None:
    signals = EvenSignals.from_samples(square(100, 10, 2, rate), hz, start_s)
    view = build_view(signals, answer("periodic", 10 / hz, (start_s, math.inf)), title="x", has_utc_clock=True)
    composed(view)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_picture_explains_why_no_period_was_found(outcome: str) -> None:
    view = build_view(EvenSignals.from_samples(square(60, 7, 2), 1.0), answer(outcome, 7.0), title="x")
    figure = composed(view)
    assert view.finding in words(figure)
    assert ("found cosine" in labels(figure)) == (outcome == "periodic") == (not view.verdict.startswith("No period"))


@settings(max_examples=examples(8), deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40),
    st.floats(1e-3, 1e3),
    st.floats(-1e9, 1e9),
    st.one_of(st.just(math.nan), st.floats(1e-4, 1e4)),
)
@example([0.0, 1.3802093805217993e308], 2.0, 0.0, 4.0)
@example([0.0, 1.3661614495213004e308], 2.0, 0.0, 3.0)
def test_any_samples_are_drawn(values: list[float], hz: float, start_s: float, period_s: float) -> None:
    signals = EvenSignals.from_samples(np.array(values), hz, start_s)
    outcome = "periodic" if math.isfinite(period_s) else "aperiodic"
    composed(build_view(signals, answer(outcome, period_s, (start_s, start_s + 3 / hz)), title="x"))


# ---- time behavior


@pytest.mark.slow
def test_gaps_are_gray_and_labeled(tmp_path: Path) -> None:
    values = square(100, 10, 2)
    values[30:70] = np.nan
    assert "not measured" in labels(composed(seen(values, 10.0)))
    assert "not measured" not in labels(composed(seen(square(100, 10, 2), 10.0)))
    draw(seen(values, 10.0)).write(tmp_path / "a.png")
    middle = imread(tmp_path / "a.png")[200, 112 + 1175 // 2, :3]
    assert np.ptp(middle) < 0.02
    assert 0.5 < middle.mean() < 0.85


def test_signal_with_many_periods_has_an_excerpt_with_the_cosine() -> None:
    many, few = composed(seen(square(2000, 10, 2), 10.0)), composed(seen(square(200, 10, 2), 10.0))
    assert (len(many.axes), len(few.axes)) == (4, 3)
    assert "found cosine" in many.axes[1].get_legend_handles_labels()[1]
    assert "found cosine" not in many.axes[0].get_legend_handles_labels()[1]
    low, high = many.axes[1].get_xlim()
    assert high - low == pytest.approx(80 / 60 if "min" in many.axes[1].get_xlabel() else 80)


def test_excerpt_lies_within_the_periodic_part() -> None:
    values = np.random.default_rng(2).random(5000) * 1e8
    values[3000:3200] += square(200, 10, 2)
    values[1000] = 1e10
    first, last = picture._excerpt(seen(values, 10.0)) or (0, 0)
    assert 3000 - 10 <= first < last <= 3200 + 10


def test_excerpt_has_the_same_scale_as_the_whole_signal() -> None:
    values = square(5000, 10, 2)
    values[:3000] = np.random.default_rng(3).random(3000) * 9e9
    figure = composed(seen(values, 10.0))
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert figure.axes[0].get_ylim()[1] > 9


def test_only_the_periodic_part_is_shaded_and_analyzed() -> None:
    values = np.random.default_rng(4).random(4000) * 3e9
    values[1000:1600] = square(600, 40, 8)
    view = build_view(EvenSignals.from_samples(values, 2.0, 100.0), answer("periodic", 20.0, (600.0, 900.0)), title="x")
    assert view.window_samples == (1000, 1600)
    assert "in 300 s of 33.33 min" in view.verdict
    assert "periodic here" in labels(composed(view))
    assert view.spectrum.frequency_hz[np.argmax(view.spectrum.power)] == pytest.approx(0.05)
    assert view.autocorrelation.lag_s[view.autocorrelation.peaks[0]] == pytest.approx(20.0)


def test_each_of_several_segments_has_a_bar(tmp_path: Path) -> None:
    values = np.concatenate([square(800, 20, 3), square(1200, 110, 12)])
    columns = [np.array(each) for each in ([0.0, 800.0, 820.0], [790.0, 2000.0, 1990.0], [0.05, 1 / 110, 1 / 9])]
    rest = [np.ones(3) for _ in range(5)]
    found = Segments(*columns, *rest, np.array([False, True, False]), np.array([0, 3]))
    told = answer("periodic", 110.0, (800.0, 2000.0))
    view = build_view(EvenSignals.from_samples(values, 1.0), told, title="x", segments=found)
    figure = composed(view)
    assert [text for text in words(figure) if text in ("20 s", "110 s", "9 s")] == ["20 s", "110 s", "9 s"]
    bars = [text.get_position() for text in figure.axes[0].texts]
    assert bars[1][1] == bars[0][1] > bars[2][1]
    assert bars[0][0] < 800 / 60 < bars[1][0]
    draw(view).write(tmp_path / "a.png")
    alone = build_view(EvenSignals.from_samples(values, 1.0), told, title="x", segments=found.select_signal(0))
    assert len(composed(alone).axes[0].texts) == 3
    one = Segments(*(each[:1] for each in (*columns, *rest)), np.array([True]), np.array([0, 1]))
    assert not composed(build_view(EvenSignals.from_samples(values, 1.0), told, title="x", segments=one)).axes[0].texts


def test_times_are_relative_to_the_start_of_the_signal() -> None:
    signals = EvenSignals.from_samples(square(100, 10, 2), 0.1, 1518184380.0)
    found = ftio.detect(signals)
    utc = composed(build_view(signals, found, title="x", has_utc_clock=True)).axes[0]
    own = composed(build_view(signals, found, title="x")).axes[0]
    assert utc.get_xlabel() == "time after 2018-02-09 13:53:00 UTC [min]"
    assert own.get_xlabel() == "time after 1518184380 s [min]"
    assert utc.get_xlim() == (0.0, pytest.approx(1000 / 60))


# ---- results


@pytest.mark.parametrize(("first", "last"), [(0, 240), (60, 180)])
def test_cosine_fits_the_signal_despite_gaps(first: int, last: int) -> None:
    at = np.arange(240)
    values = 5e6 + 2e6 * np.cos(2 * np.pi * at / 24 + 0.7)
    values[[10, 70, 71, 200]] = np.nan
    signals = EvenSignals.from_samples(values, 1.0, 50.0)
    view = build_view(signals, answer("periodic", 24.0, (50.0 + first, 50.0 + last)), title="x")
    cosines = view.cosines
    assert cosines.amplitude_bytes_per_s.tolist() == pytest.approx([2e6])
    assert cosines.phase_rad.tolist() == pytest.approx([0.7])
    assert cosines.mean_bytes_per_s == pytest.approx(5e6)
    known = np.isfinite(values)
    assert cosines.at(at[known].astype(float), 1.0) == pytest.approx(values[known])


def test_cosine_equals_the_dft_if_no_sample_is_missing() -> None:
    signals = EvenSignals.from_samples(np.random.default_rng(5).random(100) + square(100, 10, 3, 5.0), 1.0)
    found = ftio.detect(signals)
    view = build_view(signals, found, title="x")
    assert view.cosines.amplitude_bytes_per_s[0] == pytest.approx(found.candidates.amplitude_bytes_per_s[0])
    assert view.cosines.phase_rad[0] == pytest.approx(found.candidates.phase_rad[0])


def test_two_candidates_are_drawn_as_their_sum() -> None:
    at = np.arange(400)
    values = 10 + 3 * np.cos(2 * np.pi * at / 40) + 2.9 * np.cos(2 * np.pi * at / 25 + 1)
    signals = EvenSignals.from_samples(values, 1.0)
    view = build_view(signals, ftio.detect(signals), title="x")
    assert "all 2 candidates" in labels(composed(view))
    assert view.cosines.at(at.astype(float), 1.0) == pytest.approx(values)


def test_spectrum_and_threshold_equal_the_search() -> None:
    signals = EvenSignals.from_samples(np.random.default_rng(6).random(200) + square(200, 20, 3, 5.0), 1.0)
    view = build_view(signals, ftio.detect(signals), title="x")
    power = np.abs(np.fft.rfft(signals.bytes_per_s[0])[1:]) ** 2
    share = power / power.sum()
    assert view.spectrum.power == pytest.approx(share)
    assert view.spectrum.threshold == pytest.approx(share.mean() + 3 * share.std())
    assert {"Z-score of 3", "candidate (1)", "found 20 s"} <= set(labels(composed(view)))


def test_candidate_is_marked_at_the_nearest_line() -> None:
    ascending = np.array([1.0, 2.0, 4.0, 8.0])
    assert picture._nearest(ascending, np.array([0.5, 1.4, 1.6, 3.1, 7.0, 99.0])).tolist() == [0, 0, 1, 2, 3, 3]
    assert picture._nearest(np.array([3.0]), np.array([1.0, 5.0])).tolist() == [0, 0]


def trace(values: np.ndarray) -> tuple[PeriodView, SearchSteps]:
    """Return the figure data of AUTOPERIOD's search in an even signal, and the search's steps."""
    signals = EvenSignals.from_samples(values, 1.0)
    steps = autoperiod.trace_search(autoperiod_analysis.analyze_even(signals))
    return build_view(signals, autoperiod.detect_even(signals), title="x", method="autoperiod", steps=steps), steps


def test_autoperiod_is_drawn_with_its_periodogram_threshold_and_hill() -> None:
    """Figure 1 of PEARC'18: periodogram with its threshold, autocorrelation with the two lines of the hill."""
    view, steps = trace(square(200, 20, 8, 5.0) + np.random.default_rng(1).random(200))
    drawn = composed(view)
    assert {"significance threshold, 90 %", "hill of two lines"} <= set(labels(drawn))
    spectrum, autocorrelation = drawn.axes[-2:]
    assert spectrum.get_title(loc="left") == "Lomb-Scargle periodogram"
    assert spectrum.get_ylabel() == "power [variance of noise]"
    curve, threshold = spectrum.get_lines()[:2]
    assert np.asarray(curve.get_ydata()) == pytest.approx(steps.power)
    assert threshold.get_ydata()[0] == pytest.approx(steps.threshold)
    lines = [line for line in autocorrelation.get_lines() if line.get_linewidth() == 3.0]
    assert [len(line.get_xdata()) for line in lines] == [2, 2]
    assert max(lines[0].get_xdata()) == min(lines[1].get_xdata()) == pytest.approx(20, abs=1)


def test_autoperiod_without_a_period_has_no_hill() -> None:
    view, _ = trace(np.random.default_rng(2).random(300))
    drawn = labels(composed(view))
    assert "significance threshold, 90 %" in drawn
    assert "hill of two lines" not in drawn


def test_circular_autocorrelation_ends_at_half_its_length() -> None:
    view, _ = trace(square(101, 10, 2))
    assert view.autocorrelation.lag_s[-1] == 50
    assert view.autocorrelation.coefficient[10] == pytest.approx(1.0, abs=0.1)


def test_aperiodic_signal_has_no_cosine() -> None:
    view = seen(np.random.default_rng(7).random(500))
    assert len(view.cosines.frequency_hz) == 0
    assert not {"found cosine", "one period apart"} & set(labels(composed(view)))


def test_real_trace_is_drawn(shared_data: Path) -> None:
    lines = (shared_data / "tmio" / "8.jsonl").read_text().splitlines()
    bands = [row["write_sync"]["bandwidth"] for row in map(json.loads, lines) if "write_sync" in row]
    began, ceased, rate = (
        np.concatenate([band[name] for band in bands]) for name in ("t_rank_s", "t_rank_e", "b_rank_avr")
    )
    signals = EvenSignals.from_samples(np.histogram(began, 290, weights=rate * (ceased - began))[0] * 10.0, 10.0)
    composed(build_view(signals, ftio.detect(signals), title="8.jsonl", direction="write"))


# ---- texts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$x_1^2$ \\frac{a}{b} %s {0} <b>", "$x_1^2$ \\frac{a}{b} %s {0} <b>"),
        ("a\x1b[31m\n\tb", "a\ufffd[31m\ufffd\ufffdb"),
        ("\u202eevil\u200b", "\ufffdevil\ufffd"),
        ("\ud800", "\ufffd"),
        ("a\u0301e\u0323\u0301", "áẹ́"[:2] + "\ufffd"),
        ("\U0001f4a9", "\ufffd"),
    ],
)
def test_control_characters_are_replaced_in_names(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_hostile_names_are_drawn(tmp_path: Path) -> None:
    name = "$x_1$ \\undefined{ \x1b[31m\n\u202e\ud800 漢字 " + "W_" * 100_000 + ".csv"
    view = build_view(
        EvenSignals.from_samples(square(60, 7, 2), 1.0),
        answer("periodic", 7.0),
        title=name,
        direction="$\\a$",
        method="%",
    )
    figure = composed(view)
    for text in figure.texts:
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert figure.texts[1].get_text().startswith("$x_1$")
    draw(view).write(tmp_path / "a.png")


@pytest.mark.parametrize("view", [seen(square(2000, 10, 2), 10.0), seen(np.random.default_rng(8).random(50))])
def test_texts_do_not_overlap(view: PeriodView) -> None:
    figure = composed(view)
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [text.get_window_extent(renderer) for text in figure.texts]
    for axes in figure.axes:
        parts = [axes.title, axes.xaxis.label, axes.yaxis.label, axes._left_title, axes.get_legend()]  # type: ignore[attr-defined]
        boxes += [part.get_window_extent(renderer) for part in parts if part is not None]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            boxes += [tick.get_window_extent(renderer) for tick in ticks if tick.get_text()]
    boxes = [box for box in boxes if box.width > 1 and figure.bbox.overlaps(box)]
    for place, box in enumerate(boxes):
        assert not [other for other in boxes[place + 1 :] if box.shrunk(0.9, 0.9).overlaps(other)]


@pytest.mark.parametrize(
    ("text", "most", "shown"), [("abcdef", 6, "abcdef"), ("abcdefg", 6, "ab…efg"), ("abcdefgh", 5, "ab…gh")]
)
def test_long_names_keep_both_ends(text: str, most: int, shown: str) -> None:
    assert shorten(text, most) == shown


@pytest.mark.parametrize(
    ("size", "units", "name"),
    [
        (0.0, RATES, "B/s"),
        (0.5, RATES, "B/s"),
        (999.0, RATES, "B/s"),
        (1e3, RATES, "kB/s"),
        (2.5e9, RATES, "GB/s"),
        (9e15, RATES, "TB/s"),
        (1e-9, RATES, "1e-9 B/s"),
        (1e20, RATES, "1e+20 B/s"),
        (math.nan, RATES, "B/s"),
        (math.inf, RATES, "B/s"),
        (1e-5, TIMES, "µs"),
        (599.0, TIMES, "s"),
        (600.0, TIMES, "min"),
        (20_000.0, TIMES, "h"),
        (1e6, TIMES, "d"),
    ],
)
def test_unit_fits_the_magnitude(size: float, units: tuple[object, ...], name: str) -> None:
    assert choose_unit(size, units, "B/s" if units is RATES else "s").name == name  # type: ignore[arg-type]


def test_durations_are_exact() -> None:
    assert (duration_text(0.0123), duration_text(780.0)) == ("12.3 ms", "13 min")
    assert (exact_duration_text(20.0), exact_duration_text(3677.5)) == ("20 s", "61.29 min = 3677.5 s")


def test_each_method_has_a_lane_with_its_verdict() -> None:
    values = square(400, 20, 3)
    views = [seen(values, 20.0), seen(values, 40.0), seen(values, 20.2), seen(values)]
    figure = figure_of(picture.draw_all([replace(one, method=f"m{place}") for place, one in enumerate(views)]))
    assert figure.texts[0].get_text() == "2 of 4 methods find 20 s, 1 another period, 1 none"
    lanes = figure.axes[1]
    assert [text.get_text() for text in lanes.texts] == [one.verdict for one in views]
    assert [len(line.get_xdata()) for line in lanes.lines] == [20, 10, 19], "a mark a period"  # type: ignore[arg-type]
    assert lanes.get_xlim() == figure.axes[0].get_xlim()
    assert [tick.get_text() for tick in lanes.get_yticklabels()] == ["m0", "m1", "m2", "m3"]


def test_cosine_is_not_negative_and_spectrum_axis_has_periods() -> None:
    axes = composed(seen(square(400, 20, 3), 20.0)).axes
    cosine = next(line for line in axes[0].lines if line.get_label() == "found cosine")
    assert np.nanmin(cosine.get_ydata()) >= 0  # type: ignore[arg-type]
    spectrum = next(each for each in axes if each.get_title(loc="left").startswith("Power spectrum"))
    assert spectrum.get_xlabel() == "period"
    assert {"10 s", "20 s"} <= {tick.get_text() for tick in spectrum.get_xticklabels()}
