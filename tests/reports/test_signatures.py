"""The picture of a signature: a row per run, the signature below, and the reason if it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread

from iosig.reports import signatures, style
from iosig.reports.signatures import DrawnSample, DrawnSignature, SignatureView, draw
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.signature import Signature
from tests.budget import examples, one_in
from tests.drawn_figures import assert_drawn_alike, figure_of

pytestmark = pytest.mark.filterwarnings("error")

ROOT = Path(__file__).resolve().parents[2]


def bursts(count: int, every: int = 10, support: float = 0.8) -> Bursts:
    started = np.arange(count, dtype=np.float64) * every
    one = np.ones(count)
    return Bursts(started, started + 1, started + every / 2, 5e9 * one, support * one)


def found(count: int, every: int = 10, support: float = 0.8, band: float = 0.2) -> Signature:
    rates = np.where(np.arange(count * every) % every < every / 2, 1e9, 0.0)
    return Signature("extracted", rates, rates * (1 - band), rates * (1 + band), bursts(count, every, support), 1e8)


def sample(number: int, rates: Sequence[float] | np.ndarray = (1e9, 0.0, 2e9), *, out: bool = False) -> DrawnSample:
    return DrawnSample(f"job{number}", np.asarray(rates, dtype=np.float64), 2.0, -0.5, out)


def seen(
    one: Signature, runs: int = 6, out: int = 0, others: Sequence[tuple[str, Signature]] = (), rates: object = None
) -> SignatureView:
    values = (1e9, 0.0, 2e9) * 5 if rates is None else rates
    samples = tuple(sample(number, values, out=number < out) for number in range(runs))  # type: ignore[arg-type]
    told = [("robust", one), *others]
    drawn = tuple(DrawnSignature(method, answer, runs, runs - out) for method, answer in told)
    return SignatureView("ana/ior_a/16", "scratch", "write", samples, drawn)


def composed(view: SignatureView) -> Figure:
    return figure_of(draw(view))


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def legend(axes: Axes) -> list[str]:
    return axes.get_legend_handles_labels()[1]


def rows(axes: Axes) -> list[str]:
    """Labels of the rows of samples, from the top."""
    return [label.get_text() for label in axes.get_yticklabels()][::-1]


def headings(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


# ---- texts


def test_heading_has_the_result_and_its_basis() -> None:
    told = headings(composed(seen(found(5, every=100), runs=7, out=1)))
    assert told[0] == "A run of 500 s writes 250 GB in 5 bursts; 5 bursts of the samples are not in the signature"
    used = "ana/ior_a/16  ·  write  ·  scratch  ·  robust  ·  6 of 7 runs used  ·  up to 1 GB/s"
    assert told[1] == used
    trusted = seen(found(5, every=100), runs=7, out=1, rates=found(5, every=100).bytes_per_s[::2])
    main = replace(trusted.main, expected_correlation=0.876)
    found_told, about = headings(composed(replace(trusted, signatures=(main,))))[:2]
    assert (found_told, about) == (
        "A run of 500 s writes 250 GB in 5 bursts",
        f"{used}  ·  expected correlation 0.88 of 1",
    )


def reddened(axes: Axes) -> list[float]:
    """Midpoints in time of all red areas."""
    red = [found for found in axes.collections if found.get_facecolor().size and found.get_zorder() == 2.5]
    return [float(np.mean(path.vertices[:, 0])) for one in red for path in one.get_paths()]


def test_missing_bursts_are_red_in_every_row() -> None:
    whole = found(5, every=100)
    rates = whole.bytes_per_s.copy()
    rates[200:250] = 0.0
    lacking = replace(whole, bytes_per_s=rates, bursts=whole.bursts.select(np.arange(5) != 2))
    view = seen(lacking, runs=6, out=1, rates=whole.bytes_per_s[::2])
    assert len(view.missing_bursts) == 1
    figure = composed(view)
    assert headings(figure)[0].endswith("1 burst of the samples is not in the signature")
    assert reddened(figure.axes[0]) == pytest.approx([225.0] * 5, abs=15.0)
    assert reddened(composed(seen(whole, runs=6, rates=whole.bytes_per_s[::2])).axes[0]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("too_few_samples", "No signature: too few samples (3)"),
        ("no_io", "No signature: no bytes were moved"),
        (
            "no_common_bursts",
            "No signature: the samples have no common bursts; 5 bursts of the samples are not in the signature",
        ),
    ],
)
def test_missing_signature_shows_samples_and_reason(outcome: str, told: str) -> None:
    figure = composed(seen(Signature.missing(outcome), runs=3))  # type: ignore[arg-type]
    assert headings(figure)[0] == told
    (axes,) = figure.axes
    assert rows(axes) == ["job0", "job1", "job2"]
    assert axes.get_xlabel() == "time since the run's start [s]"


def test_outliers_are_last_dashed_and_labeled() -> None:
    axes = composed(seen(found(3), runs=6, out=2)).axes[0]
    assert axes.get_title(loc="left") == "Samples: 4 used, 2 excluded as outliers (dashed), each row up to 2 GB/s"
    assert rows(axes) == ["job2", "job3", "job4", "job5", "job0", "job1"]
    dashed = [line for line in axes.lines if line.is_dashed()]
    assert [line.get_color() for line in dashed] == [style.SOFT] * 2
    assert max(float(np.max(line.get_ydata())) for line in dashed) < 2.0  # type: ignore[arg-type]


def test_samples_start_where_their_runs_start() -> None:
    axes = composed(seen(found(1), runs=1, rates=(1e9, 2e9, 4e9))).axes[0]
    (line,) = [line for line in axes.lines if len(line.get_xdata()) == 3]  # type: ignore[arg-type]
    assert np.asarray(line.get_xdata()).tolist() == [0.5, 2.5, 4.5]
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([0.23, 0.46, 0.92])


@pytest.mark.parametrize("count", [1, 5, 10, 200])
def test_burst_numbers_do_not_touch(count: int) -> None:
    figure = composed(seen(found(count)))
    axes = figure.axes[1]
    numbers = [text for text in axes.texts if text.get_text().isdigit()]
    assert numbers[0].get_text() == "1"
    if count <= 10:
        assert [int(text.get_text()) for text in numbers] == list(range(1, count + 1))
    else:
        assert 10 <= len(numbers) < count
    boxes = [text.get_window_extent() for text in numbers]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_support_is_drawn_for_each_burst_if_known() -> None:
    figure = composed(seen(found(4, support=0.75)))
    (bars,) = figure.axes[2].collections
    tops = [path.vertices[:, 1].max() for path in bars.get_paths()]  # type: ignore[union-attr]
    assert tops == pytest.approx([75.0] * 4)
    assert len(composed(seen(found(4, support=np.nan))).axes) == 2


def test_background_and_band_are_labeled_if_known() -> None:
    assert legend(composed(seen(found(3))).axes[1]) == [
        "bursts", "its band", "robust", "background, excluded: 100 MB/s",
    ]  # fmt: skip
    plain = Signature.from_curve(found(3).bytes_per_s, bursts(3))
    assert legend(composed(seen(plain)).axes[1]) == ["bursts", "robust"]


def test_other_methods_are_drawn_or_their_outcome_is_listed() -> None:
    others = [("iosi", found(3)), ("dtw", Signature.missing("no_common_bursts"))]
    axes = composed(seen(found(3), others=others)).axes[1]
    assert legend(axes)[3:5] == ["iosi", "dtw: no_common_bursts"]
    only = composed(seen(Signature.missing("no_common_bursts"), others=[("iosi", found(3))]))
    assert "iosi" in legend(only.axes[1])
    assert headings(only)[0].startswith("No signature: the samples have no common bursts")


# ---- layout


def test_rows_of_many_samples_are_lower_and_only_the_last_are_shown() -> None:
    few, many = (signatures._size(seen(found(3), runs=runs))[1] for runs in (5, 20))
    most = seen(found(3), runs=500, out=40)
    assert few < many < signatures._size(most)[1] < 16
    axes = composed(most).axes[0]
    title = axes.get_title(loc="left")
    assert title.startswith("Samples: 460 used, 40 excluded as outliers (dashed), last 120 shown")
    assert len(axes.get_yticks()) == 120


def test_title_distinguishes_counted_and_traced_samples() -> None:
    view = seen(found(3), runs=3)
    counted, traced = (tuple(replace(one, source=source) for one in view.samples) for source in ("jobstats", "client"))
    titles = [
        composed(replace(view, samples=samples)).axes[0].get_title(loc="left")
        for samples in (view.samples, counted, (counted[0], *view.samples[1:]), traced)
    ]
    assert ["counted for" in title for title in titles] == [False, True, True, False]
    assert titles[1].startswith("3 samples, counted for each run alone, each row")
    assert titles[2].startswith("3 samples, 1 counted for the run alone, each row")
    assert titles[3].startswith("3 samples, traced for each run alone, each row")


def test_long_outlier_does_not_compress_the_time_axis() -> None:
    view = seen(found(3), runs=6)
    long = replace(view, samples=(*view.samples, sample(7, np.ones(5000), out=True)))
    low, high = composed(long).axes[0].get_xlim()
    assert (low, high) == (0.0, pytest.approx(1.15 * 30.0))


def test_high_outlier_is_clipped() -> None:
    view = seen(found(3), runs=6)
    stormy = replace(view, samples=(*view.samples, sample(7, [9e10] * 5, out=True)))
    assert composed(stormy).axes[0].get_title(loc="left").endswith("each row up to 2.5 GB/s")


def test_all_panels_share_the_time_axis() -> None:
    figure = composed(seen(found(90, every=20)))
    assert {axes.get_xlim() for axes in figure.axes} == {figure.axes[0].get_xlim()}
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "time since the run's start [min]"]


def test_unmeasured_time_is_gray() -> None:
    axes = composed(seen(found(1), runs=1, rates=(1e9, np.nan, np.nan, 1e9))).axes[0]
    gray = [patch for patch in axes.patches if to_hex(patch.get_facecolor()).upper() == style.LIGHT.gray]
    assert len(gray) == 1
    assert axes.get_title(loc="left") == "1 sample, each row up to 1 GB/s"


def test_names_from_the_input_are_literal() -> None:
    view = replace(
        seen(found(1), runs=1),
        application_id="a\n$\\frac{1}{0}$\x1b/" + "n" * 400 + "/16",
        filesystem="$x$",
        samples=(DrawnSample("$\\bad{" + "7" * 90, np.ones(3), 2.0, 0.0, True),),
    )
    figure = composed(view)
    assert "\n" not in headings(figure)[1]
    assert "$x$" in headings(figure)[1]
    assert len(rows(figure.axes[0])[0]) <= 14


# ---- any values


EXTREMES = [0.0, 5e-324, 1e-300, 1.0, 1e300, 1.7e308, np.nan, np.inf]


@given(
    st.lists(st.sampled_from(EXTREMES), max_size=6),
    st.lists(st.sampled_from(EXTREMES[:6]), max_size=6),
    st.booleans(),
    st.sampled_from([np.nan, 0.0, 1e8, 1e300]),
)
@settings(max_examples=examples(8), deadline=None)
def test_any_values_are_drawn(rates: list[float], curve: list[float], out: bool, background: float) -> None:
    answer = Signature.from_curve(np.array(curve, dtype=np.float64), bursts(min(len(curve), 1), every=2), background)
    with np.errstate(all="raise", under="ignore"):
        figure = composed(seen(answer, runs=2, out=int(out), rates=rates))
    assert figure.axes


def test_view_without_samples_has_a_message() -> None:
    axes = composed(seen(Signature.missing("no_io"), runs=0)).axes[0]
    assert texts(axes) == ["no samples in the release"]


@pytest.mark.parametrize(("rates", "told"), [((0.0, 0.0), "no bytes were moved"), ((np.nan,), "no data")])
def test_samples_without_io_have_a_message(rates: tuple[float, ...], told: str) -> None:
    assert told in texts(composed(seen(Signature.missing("no_io"), rates=rates)).axes[0])


def test_narrow_burst_of_a_day_long_signature_is_visible() -> None:
    rates = np.zeros(86_400)
    rates[40_000:40_003] = 3e9
    one = Bursts(*(np.array([value]) for value in (40_000.0, 40_001.0, 40_003.0, 9e9, 1.0)))
    view = seen(Signature.from_curve(rates, one), runs=2, rates=np.append(np.zeros(43_199), 3e9))
    figure = composed(view)
    heights = [np.max(np.asarray(line.get_ydata())) for line in figure.axes[1].lines]
    assert max(heights) == pytest.approx(3.0)
    assert max(len(line.get_xdata()) for axes in figure.axes for line in axes.lines) < 5_000  # type: ignore[arg-type]


# ---- the file


@pytest.mark.parametrize("kind", one_in(2, ["png", "svg"]))
def test_picture_is_deterministic(kind: str, tmp_path: Path) -> None:
    assert_drawn_alike(draw(seen(found(5), others=[("iosi", found(5))])), tmp_path, kind)


def test_picture_has_its_declared_size(tmp_path: Path) -> None:
    view = seen(found(5))
    draw(view).write(tmp_path / "a.png")
    width, height = signatures._size(view)
    assert imread(tmp_path / "a.png").shape[:2] == (int(height * 120), int(width * 120))
