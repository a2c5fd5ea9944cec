"""The study of periods: settings, results by trace and method, summaries, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import iosig.studies.periods.running
from iosig.studies.periods import STUDY, page
from iosig.studies.periods.methods import METHODS, Method
from iosig.studies.periods.running import Results, StudyParams, compute_rate_interval, search_signals, study
from iosig.studies.periods.scenarios import COMPUTE_S, NULL_SAMPLE_COUNT, Null, Setting, list_nulls, list_settings
from iosig.studies.periods.semi_synthetic import ApplicationParams
from iosig.studies.periods.summary import STATEMENTS, alarm_summary, error_summary, evaluate_statements
from iosig.studies.periods.unseen import add_rates, sum_counts
from iosig.transforms.arrays import Ragged
from iosig.transforms.periods.interface.detections import Candidates, Detections
from iosig.transforms.periods.interface.even_signals import EvenSignals
from tests.study_pages import page_of


def answer(signals: EvenSignals, frequency_hz: np.ndarray, is_periodic: np.ndarray) -> Detections:
    none = np.full(signals.signal_count, np.nan)
    return Detections(
        np.where(is_periodic, "periodic", "aperiodic"),
        np.where(is_periodic, frequency_hz, np.nan),
        np.where(is_periodic, 0.5, np.nan),
        signals.start_s,
        signals.end_s,
        none,
        Candidates.empty(signals.signal_count),
    )


def strongest(signals: EvenSignals) -> Detections:
    """Return the period of the strongest frequency for every signal."""
    power = np.abs(np.fft.rfft(signals.bytes_per_s - signals.bytes_per_s.mean(axis=1, keepdims=True)))
    frequency = power.argmax(axis=1) * signals.sampling_hz / signals.sample_count
    return answer(signals, frequency, np.ones(signals.signal_count, dtype=bool))


def never(signals: EvenSignals) -> Detections:
    return answer(signals, np.ones(signals.signal_count), np.zeros(signals.signal_count, dtype=bool))


def when_high(signals: EvenSignals) -> Detections:
    """Report signals as periodic if their first sample is above 0."""
    return answer(signals, np.ones(signals.signal_count), signals.bytes_per_s[:, 0] > 0)


STRONGEST = Method("strongest", "the strongest frequency", "instants", strongest)
NEVER = Method("never", "never a period", "bins", never)
SOME = (
    list_settings()[6],
    list_settings()[15],
    list_settings()[24],
    list_settings()[29],
    list_settings()[49],
    list_settings()[-1],
)
#: The parts under test here; `test_unseen` tests the other parts.
TRACES = ("traces",)
ALTERNATING = Null("white", "every fourth", lambda rng, count: np.tile((np.arange(count) % 4 == 0)[:, None], 8) + 0.0)


@pytest.fixture(scope="module")
def results() -> Results:
    return study(StudyParams(4, 8, 1, 1, parts=TRACES), (STRONGEST, NEVER), SOME, [ALTERNATING])


# ---- settings


def test_settings_equal_the_paper() -> None:
    found = list_settings()
    by_experiment = {name: [line for line in found if line.experiment == name] for name in page.EXPERIMENTS}
    assert sum(map(len, by_experiment.values())) == len(found) == 55
    for line in by_experiment["compute_time"]:
        assert (line.params.compute_mean_s, line.params.compute_deviation_s) == (line.value, 0.0)
        assert line.params.delay_mean_s == 0
    assert {line.params.noise_level for line in by_experiment["compute_time"]} == {"none", "low", "high"}
    for line in by_experiment["desynchronization"]:
        assert line.params == ApplicationParams(compute_mean_s=11.0, delay_mean_s=line.value)
    for line in by_experiment["variability"]:
        assert line.params.compute_deviation_s == pytest.approx(line.value * COMPUTE_S)
        assert line.params.delay_mean_s == 0
    assert by_experiment["desynchronization"][-1].value == 22.0
    assert [line.value for line in by_experiment["variability"]] == pytest.approx(list(np.linspace(0, 2, 21)))
    for line in by_experiment["cut"]:
        assert line.params == ApplicationParams(compute_mean_s=line.value)
    assert by_experiment["io_time"] == [
        Setting("io_time", line.value, line.params, "io_time") for line in by_experiment["cut"]
    ]
    windows = [line.window if line.window != "whole" else None for line in found]
    assert windows == [name if name in ("cut", "io_time") else None for name in (line.experiment for line in found)]
    assert windows.count("cut") == windows.count("io_time") == 5
    assert {line.params.iteration_count for line in found} == {20}


def test_null_signals_cover_all_kinds_of_noise() -> None:
    kinds = {null.kind for null in list_nulls()}
    assert kinds == {"white", "red", "bursts"}
    assert len({null.label for null in list_nulls()}) == len(list_nulls()) == 10
    for null in list_nulls():
        drawn = null.draw(np.random.default_rng(0), 3)
        assert drawn.shape == (3, NULL_SAMPLE_COUNT)
        assert np.isfinite(drawn).all()
        assert (drawn >= 0).all()


def test_method_names_are_unique() -> None:
    assert len({method.name for method in METHODS}) == len(METHODS) == 5
    assert all(method.doc and method.sampling in ("bins", "instants") for method in METHODS)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_finds_an_exact_period(method: Method) -> None:
    square = np.where(np.arange(400) % 20 < 6, 1e9, 0.0)
    samples = Ragged(np.concatenate([square, square[:200], np.zeros(30)]), np.array([0, 400, 600, 630]))
    found = search_signals(method, samples)
    assert found.outcome[:2].tolist() == ["periodic", "periodic"]
    assert found.period_s[:2] == pytest.approx([20.0, 20.0], rel=0.01)
    assert not found.is_periodic[2]


# ---- results


def test_results_have_a_row_per_trace_and_method(results: Results) -> None:
    assert results.answers.height == len(SOME) * 4 * 2
    rows = results.answers.group_by("experiment", "value", "method").len()
    assert (rows["len"] == 4).all()
    never_rows = results.answers.filter(method="never")
    assert never_rows["error_ratio"].null_count() == never_rows["period_s"].null_count() == never_rows.height
    assert (never_rows["outcome"] == "aperiodic").all()
    assert results.answers["true_period_s"].null_count() == 0


def test_errors_are_relative_to_the_true_period(results: Results) -> None:
    rows = results.answers.filter(method="strongest")
    wanted = (rows["period_s"] - rows["true_period_s"]).abs() / rows["true_period_s"]
    assert rows["error_ratio"].to_list() == pytest.approx(wanted.to_list())
    # Figure 8a: without any deviation the strongest frequency is the period.
    assert rows.filter(experiment="compute_time")["error_ratio"].to_numpy().max() < 0.01


def test_false_alarms_are_counted(results: Results) -> None:
    some = Method("some", "", "bins", when_high)
    found = study(StudyParams(1, 8, 0, 1, parts=TRACES), (some, STRONGEST, NEVER), [], [ALTERNATING]).alarms
    assert found["draw_count"].to_list() == [8, 8, 8]
    assert found["alarm_count"].to_list() == [2, 8, 0]
    assert found["alarm_ratio"].to_list() == [0.25, 1.0, 0.0]
    for low, high, count in found.select("low_ratio", "high_ratio", "alarm_count").rows():
        assert (low, high) == compute_rate_interval(count, 8)


def test_rate_intervals_are_exact() -> None:
    # For 0 of n, the upper end is 1 - 0.025 ** (1 / n).
    assert compute_rate_interval(0, 1000) == pytest.approx((0.0, 1 - 0.025**0.001))
    assert compute_rate_interval(1000, 1000) == pytest.approx((0.025**0.001, 1.0))
    low, high = compute_rate_interval(10, 1000)
    assert low < 0.01 < high


def test_seeds_and_chunks_have_separate_random_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    def periods(seed: int, count: int = 6) -> list[float]:
        answers = study(StudyParams(count, 1, seed, 1, parts=TRACES), [STRONGEST], SOME[2:3], []).answers
        return answers["true_period_s"].to_list()

    assert periods(1) == periods(1)
    assert periods(1) != periods(2)
    monkeypatch.setattr(iosig.studies.periods.running, "TRACE_CHUNK", 2)
    found = periods(1)
    assert len(set(found)) == 6
    # Additional draws do not change earlier draws.
    assert periods(1, count=4) == found[:4]


@pytest.mark.slow
@pytest.mark.long
def test_results_are_independent_of_the_number_of_processes() -> None:
    paper = [method for method in METHODS if method.name == "dft"]
    one, two = (
        study(StudyParams(2, 5, 3, workers, parts=TRACES), paper, SOME[:2], list_nulls()[:2]) for workers in (1, 2)
    )
    assert one.answers.equals(two.answers)
    assert one.alarms.equals(two.alarms)


def test_progress_is_reported() -> None:
    told: list[tuple[int, int]] = []
    study(
        StudyParams(1, 1, 0, 1, parts=TRACES),
        [NEVER],
        SOME[:2],
        [ALTERNATING],
        lambda done, count: told.append((done, count)),
    )
    assert told == [(1, 3), (2, 3), (3, 3)]


# ---- summaries


def made(errors: dict[tuple[str, float], list[float | None]]) -> Results:
    """Results of a method with these errors, by experiment and value."""
    rows = [
        {
            "experiment": experiment,
            "value": value,
            "noise_level": "none",
            "method": "never",
            "error_ratio": error,
            "confidence": 0.25,
            "periodicity_score": 0.5,
            "r_io": 0.55,
            "true_io_ratio": 0.5,
        }
        for (experiment, value), found in errors.items()
        for error in found
    ]
    alarms = pl.DataFrame(
        [("white", "a", "never", 0.5), ("white", "b", "never", 0.25), ("red", "c", "never", 0.125)],
        ["kind", "noise", "method", "alarm_ratio"],
        orient="row",
    )
    return Results(
        StudyParams(), (NEVER,), pl.DataFrame(rows, infer_schema_length=None), alarms, add_rates(sum_counts([]))
    )


@pytest.fixture(scope="module")
def handmade() -> Results:
    return made(
        {
            ("compute_time", 11.0): [0.01, 0.03, None, None],
            ("desynchronization", 0.0): [9.0],
            ("desynchronization", 2.0): [0.1, 0.2],
            ("desynchronization", 4.0): [0.3, 0.5],
            ("variability", 0.0): [0.001],
            ("variability", 0.5): [0.02, 0.04, 0.09],
            ("variability", 2.0): [0.1, 0.4, 3.0, None],
        }
    )


def test_error_summary_has_means_and_medians_per_group(handmade: Results) -> None:
    found = {row["group"]: row for row in error_summary(handmade).to_dicts()}
    assert found["sigma_0"]["found_ratio"] == 0.5
    assert found["sigma_0"]["mean_error"] == pytest.approx(0.02)
    assert found["desynchronization"]["mean_error"] == pytest.approx(0.275)
    assert found["desynchronization"]["median_error"] == pytest.approx(0.25)
    assert found["variability"]["mean_error"] == pytest.approx(0.05)
    assert found["variability"]["median_error"] == pytest.approx(0.04)


def test_alarm_summary_has_a_rate_per_kind_of_noise(handmade: Results) -> None:
    assert alarm_summary(handmade).to_dicts() == [{"method": "never", "white": 0.5, "red": 0.125, "bursts": None}]


def test_statements_of_the_paper_are_evaluated(handmade: Results) -> None:
    found = {words: values[0] for words, _, values in evaluate_statements(handmade)}
    assert list(found) == [line.text for line in STATEMENTS]
    assert found["highest error, sigma = 0"] == pytest.approx(0.03)
    assert found["highest mean error of any delay"] == pytest.approx(9.0)
    assert found["highest median error, sigma/mu up to 0.5"] == pytest.approx(0.04)
    assert found["highest median error of any sigma/mu"] == pytest.approx(0.4)
    assert found["traces with an error above 200 %, any sigma/mu"] == pytest.approx(1 / 8)
    assert found["highest median error of R_IO, any sigma/mu"] == pytest.approx(0.1)
    assert found["median confidence, sigma/mu = 2"] == 0.25


def test_method_without_answers_has_no_errors() -> None:
    found = made({("compute_time", 11.0): [None, None]})
    rows = error_summary(found).filter(group="sigma_0").to_dicts()
    assert rows == [
        {"method": "never", "group": "sigma_0", "found_ratio": 0.0, "mean_error": None, "median_error": None}
    ]
    assert evaluate_statements(found)[0][2] == [None]


# ---- page and document


@pytest.mark.usefixtures("undrawn")
def test_page_has_its_figures_and_tables(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, results.params, results, tmp_path)
    assert text.count("](figures/") == 8
    assert "--traces 4 --draws 8 --unseen-draws 100 --seed 1" in text
    assert "| strongest | 100 %" in text
    assert page_of(STUDY, results.params, results, tmp_path) == text


def test_document_has_parameters_methods_and_alarms(results: Results) -> None:
    document: Any = json.loads(json.dumps(STUDY.document(results)))
    assert (document["trace_count"], document["draw_count"], document["seed"]) == (4, 8, 1)
    assert document["methods"]["never"] == "never a period"
    assert document["alarms"][1]["alarm_count"] == 0
    titles = " ".join(title for title, _ in STUDY.tables(results))
    assert "False alarms" in titles
    assert "Detection errors" in titles


def test_settings_are_picklable() -> None:
    import pickle

    sent: Setting = pickle.loads(pickle.dumps(list_settings()[0]))
    assert sent == list_settings()[0]
    drawn = pickle.loads(pickle.dumps(list_nulls()[-1])).draw(np.random.default_rng(0), 2)
    assert np.array_equal(drawn, list_nulls()[-1].draw(np.random.default_rng(0), 2))
