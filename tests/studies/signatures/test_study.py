"""The study of signatures: drawn samples, scores, work items, summaries, bounds, times, and the page."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import iosig.studies.signatures.running
from iosig.studies.command import study_command
from iosig.studies.pages import Table
from iosig.studies.signatures import PARTS, STUDY, bounds, timing
from iosig.studies.signatures.edison import EdisonSetting, Traffic
from iosig.studies.signatures.families import FAMILIES
from iosig.studies.signatures.methods import METHODS, SWEEPS, Method
from iosig.studies.signatures.running import DRIFTS, Results, StudyParams, build_items, study
from iosig.studies.signatures.scores import SCHEMA, score_signatures
from iosig.studies.signatures.sites import (
    IOR,
    LEVELS,
    S3D,
    STUDIED,
    LabeledSamples,
    SiteSetting,
    Truth,
    compute_poll_rates,
    derive_seed,
    extract_samples,
)
from iosig.studies.signatures.summary import average_applications, evaluate_targets, summarize
from iosig.studies.signatures.timing import fit_growth, measure_times
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.sample_sets import SampleSet, SampleSets
from iosig.transforms.signatures.signature import Signature
from iosig.transforms.synthetic.site import SiteParams, simulate
from iosig.transforms.synthetic.workload import Application, Burst
from iosig.warehouse.errors import InputRefused
from tests.study_pages import page_of

#: Enough for ten short runs.
SHORT = (
    Application("first", "ana", "prj101", 16, 400.0, (Burst(50, 50e9, 2.5e9), Burst(200, 100e9, 2.5e9))),
    Application("second", "ben", "prj102", 16, 300.0, (Burst(10, 1e9, 1e9, "read"), Burst(100, 75e9, 2.5e9))),
)
SETTING = SiteSetting(days=0.2, applications=SHORT)


def longest(sets: SampleSets) -> list[Signature]:
    """Return the sample of the longest run unchanged."""
    found = []
    for place in range(sets.set_count):
        one = sets.get_set(place)
        rates = np.nan_to_num(one.rates[int(one.duration_s.argmax())])
        found.append(Signature.from_curve(np.repeat(rates, round(one.interval_s)), Bursts.empty()))
    return found


def silent(sets: SampleSets) -> list[Signature]:
    return [Signature.missing("no_common_bursts")] * sets.set_count


LONGEST = Method("longest", "the longest sample", longest)
SILENT = Method("silent", "never a signature", silent)


def told_the_truth(drawn: LabeledSamples) -> list[Signature]:
    return [Signature.from_curve(truth.bytes_per_s, truth.bursts) for truth in drawn.truths]


@pytest.fixture(scope="module")
def results() -> Results:
    parts = tuple(part for part in PARTS if part not in ("families", "counted", "sweeps", "times", "published"))
    with pytest.MonkeyPatch.context() as patch:
        few = partial(bounds.compute_bounds, draws=2)
        patch.setattr(iosig.studies.signatures.running, "compute_bounds", few)
        return study(StudyParams(1, 1, 1, parts=parts, days=1.0), (LONGEST, SILENT))


# ---- drawn samples


def test_applications_equal_the_paper() -> None:
    assert [one.name for one in STUDIED] == [*IOR, "s3d", "flash"]
    assert [burst.volume_bytes for burst in STUDIED[0].bursts] == [128e9] * 5
    # Section 6.2: 3.4 MB of each of 18,000 processes.
    assert [burst.volume_bytes for burst in S3D.bursts] == pytest.approx([61.2e9] * 8)
    assert {burst.peak_bytes_per_s for burst in S3D.bursts} == {5.5e9, 4.2e9, 6e9, 4.8e9}
    assert S3D.bursts[-1].end_s < S3D.duration_s == 3600.0


def test_truth_contains_only_written_bytes() -> None:
    truth = Truth.from_application(SHORT[1])
    assert len(truth.bytes_per_s) == 300
    assert truth.bytes_per_s.sum() == pytest.approx(75e9)
    # The reading burst is not included.
    assert truth.bursts.start_s.tolist() == [100.0]
    assert truth.bursts.end_s[0] == pytest.approx(SHORT[1].bursts[1].end_s)
    seconds = np.flatnonzero(truth.bytes_per_s)
    assert (seconds[0], seconds[-1] + 1) == (100, np.ceil(truth.bursts.end_s[0]))


def test_steps_belong_to_runs_by_their_right_edges() -> None:
    # Right edges are 0, 2, 4, ...; a run has the edges in [started, ended + 2).
    found = extract_samples(np.arange(20.0), 2.0, np.array([3.0, 4.0]), np.array([8.0, 9.0]))
    assert [rates.tolist() for rates in found.rates] == [[2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]]
    assert found.start_s.tolist() == [-1.0, -2.0]
    assert found.duration_s.tolist() == [5.0, 5.0]


def test_samples_start_within_a_step_before_the_run_and_cover_the_run() -> None:
    sets = SETTING.draw(4).sets
    assert sets.set_count == 2
    assert ((sets.start_s <= 0) & (sets.start_s > -4.0)).all()
    ends = sets.start_s + 2.0 * np.diff(sets.samples.offsets)
    assert (ends >= sets.duration_s).all()
    assert (ends < sets.duration_s + 2.0).all()


def test_samples_have_the_total_traffic_of_the_site() -> None:
    params = SiteParams(seed=4, days=0.2, drift_ratio=SETTING.drift_ratio, fault_level=0)
    site = simulate(params, SHORT)
    rates = site.traffic["write_bytes"].to_numpy() / 2.0
    ours = SETTING.draw(4).sets.samples.values
    assert np.isin(ours, rates).all()


def test_lost_polls_are_missing() -> None:
    site = simulate(SETTING._params(4), SHORT)
    some = site.polls.filter(pl.col("polled_at") != site.polls["polled_at"][7])
    rates = compute_poll_rates(replace(site, polls=pl.concat([some, some.head(50)])))
    wanted = site.traffic["write_bytes"].to_numpy() / 2.0
    assert np.flatnonzero(np.isnan(rates)).tolist() == [7]
    # Repeated polls count once; bytes are integers.
    assert np.nanmax(np.abs(rates - wanted)) < 1.0
    # The share of a silent controller is missing.
    faulty, sound = replace(SETTING, fault_level=1.0).draw(4).sets, SETTING.draw(4).sets
    assert faulty.samples.offsets.tolist() == sound.samples.offsets.tolist()
    lost = sound.samples.values.sum() - np.nansum(faulty.samples.values)
    # More than rounding to whole bytes, which is at most a byte per controller and step.
    assert lost > 8 * len(sound.samples.values)


def test_derived_seeds_are_distinct() -> None:
    assert derive_seed(0, 1) == derive_seed(0, 1)
    assert len({derive_seed(seed, number) for seed in range(3) for number in range(20)}) == 60


def test_every_method_gives_a_signature_for_each_set() -> None:
    drawn = SETTING.draw(4)
    swept = [method for sweep in SWEEPS for value, method in sweep.methods() if value != sweep.usual]
    assert len({method.name for method in METHODS}) == len(METHODS) == 10
    for method in (*METHODS, *swept[::4]):
        found = method.extract(drawn.sets)
        assert len(found) == drawn.sets.set_count
        assert found[0].outcome == "extracted", method.name
        assert found[0].bytes_per_s.sum() > 0


def test_timed_methods_are_methods_of_the_study() -> None:
    one = SETTING.draw(4).sets.get_set(0)
    for name, extract in timing.get_methods().items():
        assert name in {known.name for known in METHODS}
        assert extract(one).outcome == "extracted"


# ---- real traffic


def traffic(rates: np.ndarray, interval_s: float = 5.0) -> Traffic:
    return Traffic(np.asarray(rates, dtype=np.float64), interval_s)


def test_runs_without_background_are_unchanged() -> None:
    still = EdisonSetting(traffic(np.zeros(4000)), drift_ratio=0.0, stop_ratio=0.0, applications=SHORT)
    drawn = still.draw(1)
    for place, truth in enumerate(drawn.truths):
        one = drawn.sets.get_set(place)
        assert one.run_count == 10
        # Times in a job log are whole seconds, and reads take time, too.
        assert np.abs(one.duration_s - len(truth.bytes_per_s)).max() <= 1.0
        volumes = [5.0 * rates.sum() for rates in one.rates]
        assert volumes == pytest.approx([truth.bytes_per_s.sum()] * 10, rel=1e-9)


def test_background_adds_bytes_and_slows_runs() -> None:
    others = 2.5e9
    busy = EdisonSetting(traffic(np.full(4000, others)), drift_ratio=0.0, stop_ratio=0.0, applications=SHORT[:1])
    one = busy.draw(1).sets.get_set(0)
    alone_s = SHORT[0].duration_s
    # Background as high as the plateau of a run slows it to 1 / 1.25; parts below the background are slowed more.
    burst_s = sum(burst.duration_s for burst in SHORT[0].bursts)
    assert (one.duration_s > alone_s + 0.25 * burst_s - 1).all()
    assert (one.duration_s < alone_s + 0.5 * burst_s).all()
    for rates in one.rates:
        assert (rates >= others).all()
        assert 5.0 * (rates - others).sum() == pytest.approx(150e9, rel=1e-9)


def test_gaps_in_real_traffic_remain_gaps() -> None:
    rates = np.full(4000, 1e8)
    rates[1000:1500] = np.nan
    sets = EdisonSetting(traffic(rates), applications=SHORT).draw(2).sets
    assert np.isnan(sets.samples.values).any()
    assert np.nanmin(sets.samples.values) >= 1e8


def test_real_traffic_is_read(shared_data: Path) -> None:
    found = Traffic.read(shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt")
    # 17 hours from 08:00:05.
    assert (found.interval_s, len(found.bytes_per_s)) == (5.0, 12240)
    assert 2.5e8 < np.nanmean(found.bytes_per_s) < 3.5e8
    assert EdisonSetting(found, applications=SHORT[:1]).draw(0).sets.get_set(0).run_count >= 9


def test_input_without_polls_is_refused(tmp_path: Path, shared_data: Path) -> None:
    series = tmp_path / "series.csv"
    series.write_text("time_s,write_bytes_per_s\n0,1\n1,2\n2,3\n")
    with pytest.raises(InputRefused, match="no polls"):
        Traffic.read(series)


# ---- results


def test_scores_equal_the_similarity_measures() -> None:
    drawn = SETTING.draw(1)
    rows = score_signatures(drawn, "truth", told_the_truth(drawn))
    assert rows.schema == SCHEMA
    assert rows["cross_correlation"].to_list() == pytest.approx([1.0, 1.0])
    assert rows["volume_ratio"].to_list() == pytest.approx([1.0, 1.0])
    assert rows["duration_ratio"].to_list() == [1.0, 1.0]
    assert rows.select("burst_count", "missed_count", "false_count").rows() == [(2, 0, 0), (1, 0, 0)]
    none = score_signatures(drawn, "silent", silent(drawn.sets))
    assert none["cross_correlation"].null_count() == none["volume_ratio"].null_count() == 2
    assert none.select("outcome", "missed_count", "false_count").rows() == [
        ("no_common_bursts", 2, 0),
        ("no_common_bursts", 1, 0),
    ]


def test_results_have_a_row_per_signature(results: Results) -> None:
    counts = dict(results.answers.group_by("experiment").len().rows())
    of_a_site = len(STUDIED) * 2
    assert counts == {"levels": len(LEVELS) * of_a_site, "drift": len(DRIFTS) * of_a_site, "faults": of_a_site}
    keys = ["experiment", "value", "level", "seed", "application", "method"]
    assert results.answers.select(keys).is_duplicated().sum() == 0
    same = results.answers.filter(level="calm", method="longest")
    usual = same.filter(experiment="drift", value=0.003).drop("experiment", "value")
    assert usual.equals(same.filter(experiment="levels").drop("experiment", "value"))


def test_each_site_is_drawn_once() -> None:
    work = list(build_items(StudyParams(2), METHODS))
    sites = [(piece.setting, piece.seed) for piece in work]
    # the published evaluation uses a drift that is also varied at one level
    published_count = 3 - 1 + 3
    family_count = 3 * 3 * len(FAMILIES) + 3
    assert len(set(sites)) == len(sites) == 2 * (3 + len(DRIFTS) - 1 + 1 + family_count + published_count)
    swept = {(experiment, value) for piece in work for experiment, value, _ in piece.queries if piece.level == "busy"}
    assert {(sweep.name, float(value)) for sweep in SWEEPS for value in sweep.values} <= swept
    assert all(sweep.usual in sweep.values for sweep in SWEEPS)
    assert pickle.loads(pickle.dumps(work[0])).setting == work[0].setting


def test_slow_methods_are_not_evaluated_on_drift() -> None:
    asked = {
        (experiment, method.name)
        for piece in build_items(StudyParams(1), METHODS)
        for experiment, _, method in piece.queries
    }
    assert {name for experiment, name in asked if experiment == "drift"} == {m.name for m in METHODS} - {"dtw"}
    assert {name for experiment, name in asked if experiment == "levels"} == {m.name for m in METHODS}


def test_only_selected_parts_are_evaluated() -> None:
    work = list(build_items(StudyParams(1, parts=("faults",)), METHODS))
    assert [(piece.level, len(piece.queries)) for piece in work] == [("busy", len(METHODS))]


@pytest.mark.slow
def test_results_are_independent_of_the_number_of_processes() -> None:
    one, two = (
        study(StudyParams(2, 3, workers, parts=("faults",), days=0.25), (LONGEST, SILENT)) for workers in (1, 2)
    )
    assert one.answers.equals(two.answers)
    assert one.answers["seed"].unique().to_list() == [0, 1]


def test_progress_is_reported() -> None:
    told: list[tuple[int, int]] = []
    params = StudyParams(2, 0, 1, parts=("faults",), days=0.5)
    study(params, [SILENT], lambda done, count: told.append((done, count)))
    assert told == [(1, 2), (2, 2)]


# ---- summaries


def made(rows: list[tuple[str, str, str, float | None, float | None, float | None, int, int]]) -> Results:
    """Results of `levels`: level, application, method, similarity measures, missed and false bursts."""
    names = ["level", "application", "method", "cross_correlation", "correlation", "volume_ratio"]
    frame = pl.DataFrame(rows, [*names, "missed_count", "false_count"], orient="row", infer_schema_length=None)
    answers = frame.with_columns(
        pl.lit("levels").alias("experiment"),
        pl.lit(0.0).alias("value"),
        pl.lit(1.0).alias("duration_ratio"),
        outcome=pl.when(pl.col("volume_ratio").is_null()).then(pl.lit("no_io")).otherwise(pl.lit("extracted")),
    )
    methods = [Method(name, "", silent) for name in answers["method"].unique(maintain_order=True)]
    none = pl.DataFrame(schema=timing.SCHEMA), pl.DataFrame(schema=bounds.SCHEMA)
    return Results(StudyParams(), tuple(methods), answers, *none)


def test_missing_signature_counts_as_zero() -> None:
    (row,) = summarize(
        made([("calm", "s3d", "iosi", 0.9, 0.8, 1.2, 0, 0), ("calm", "s3d", "iosi", None, None, None, 8, 0)]).answers
    ).to_dicts()
    assert (row["mean_cross_correlation"], row["mean_correlation"], row["mean_volume_ratio"]) == pytest.approx(
        (0.45, 0.4, 0.6)
    )
    assert (row["seed_count"], row["answered_ratio"], row["clean_ratio"]) == (2, 0.5, 0.5)
    assert (row["mean_missed_count"], row["mean_false_count"]) == (4.0, 0.0)
    assert (row["low_volume_ratio"], row["high_volume_ratio"]) == pytest.approx((0.3, 0.9))


def test_overall_mean_averages_over_applications() -> None:
    rows = [("calm", "s3d", "iosi", 0.9, 0.8, 1.0, 0, 0)] * 3 + [("calm", "flash", "iosi", 0.5, 0.2, 2.0, 1, 0)]
    (row,) = average_applications(summarize(made(rows).answers)).to_dicts()
    assert (row["mean_cross_correlation"], row["mean_correlation"], row["clean_ratio"]) == pytest.approx(
        (0.7, 0.5, 0.5)
    )


def reached(results: Results) -> dict[str, tuple[str, bool | None]]:
    return {target.text: (target.found, target.is_reached) for target in evaluate_targets(results)}


def test_targets_use_the_worst_application() -> None:
    rows = [
        (level, name, method, similarity, similarity, volume, missed, 0)
        for level, similarity in (("calm", 0.99), ("busy", 0.95), ("stormy", 0.85))
        for name, volume in zip([one.name for one in STUDIED], (1.0, 1.05, 0.95, 1.0, 1.2), strict=True)
        for method, missed in (("chosen", int(level == "busy")),)
    ]
    rows += [(level, name, "iosi", 0.9, 0.7, 1.0, 0, 0) for level in LEVELS for name in IOR]
    rows += [(level, name, "dtw", 0.4, 0.75, 1.0, 0, 0) for level in LEVELS for name in IOR]
    found = reached(made(rows))
    assert found["chosen, IOR_A to C, calm: lowest mean"] == (".99/.99", True)
    assert found["chosen, IOR_A to C, busy: lowest mean"] == (".95/.95", False)
    assert found["chosen, S3D-like, irregular, busy: lowest mean"] == (".95/.95", True)
    assert found["chosen, ior_a, calm: seeds with exactly the true bursts"] == ("100 %", True)
    assert found["chosen, ior_c, busy: seeds with exactly the true bursts"] == ("0 %", False)
    assert found["chosen, calm: mean volume / true volume"] == ("0.95 to 1.20", False)
    assert found["chosen, busy: means within .01 of the best method's or above"] == ("6 of 6", True)
    assert found["chosen, stormy: means within .01 of the best method's or above"][1] is False
    assert found["iosi, IOR_A to C, calm, busy: means of correlation"] == (".70 to .70", True)
    assert found["dtw, IOR_A to C, all levels: means below iosi's"] == ("9 of 18", False)


def test_targets_that_were_not_studied_are_unknown() -> None:
    found = reached(made([("calm", "s3d", "mean", 0.9, 0.8, 1.0, 0, 0)]))
    assert {is_reached for _, is_reached in found.values()} == {None}


def test_table_cells_are_pivoted_by_application() -> None:
    summed = summarize(made([("calm", name, "iosi", 0.9, 0.8, 1.0, 0, 0) for name in ("one", "two")]).answers)
    table = Table.pivot(summed, {"value": "value", "": "method"}, "application", "{mean_correlation:.}")
    assert table == Table(("value", "", "one", "two"), [("0", "iosi", ".80", ".80")])


# ---- bounds


def test_bounds_of_equal_runs_are_one() -> None:
    found = bounds.compute_bounds([0.0], 0, draws=1)
    assert found.height == len(STUDIED) * len(bounds.KNOWN)
    assert found["mean_correlation"].to_list() == pytest.approx([1.0] * found.height, abs=1e-6)


def test_mean_of_runs_is_closer_than_the_shortest_run() -> None:
    found = bounds.compute_bounds([0.006], 0, draws=5)
    mean, shortest = (found.filter(method=name) for name in bounds.KNOWN)
    assert (mean["mean_correlation"] > shortest["mean_correlation"]).all()
    assert (mean["mean_cross_correlation"] < 1.0).all()


def test_waits_without_drift_equal_the_waits_of_the_application() -> None:
    waits = bounds.draw_waits(SHORT[0], 0.0, 3)
    assert waits.shape == (10, 3)
    assert waits == pytest.approx(np.tile(SHORT[0].waits_s, (10, 1)))
    longer = bounds.replace_waits(SHORT[0], 2.0 * waits[0])
    assert longer.bursts[0].offset_s == pytest.approx(100.0)
    assert longer.duration_s == pytest.approx(2 * 400.0 - sum(burst.duration_s for burst in SHORT[0].bursts))


# ---- times


def test_times_are_measured_for_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, int]] = []

    def kept(one: SampleSet) -> Signature:
        sizes.append((one.run_count, max(map(len, one.rates))))
        return Signature.missing("no_io")

    def made_of_nothing(duration_s: int, seed: int) -> SampleSet:
        count = 14
        return SampleSets.concatenate(
            [extract_samples(np.zeros(duration_s), 2.0, np.zeros(count), np.full(count, duration_s - 2.0))]
        ).get_set(0)

    monkeypatch.setattr(timing, "draw_samples", made_of_nothing)
    monkeypatch.setattr(timing, "TURN_S", 0.0)
    found = measure_times(0, {"one": kept, "two": kept}, rounds=1)
    assert found.filter(by="samples", method="one")["value"].to_list() == list(timing.SAMPLE_COUNTS)
    assert found.filter(by="points", method="two")["value"].to_list() == list(timing.POINT_COUNTS)
    assert (found["seconds"] > 0).all()
    assert {count for count, _ in sizes} == {*timing.SAMPLE_COUNTS, 8}
    assert {length for _, length in sizes} == {count // 2 for count in timing.POINT_COUNTS}


def test_timed_runs_are_complete() -> None:
    one = timing.draw_samples(500, 0)
    assert one.run_count >= max(timing.SAMPLE_COUNTS)
    assert (one.duration_s > 475).all()


def test_growth_is_the_exponent_of_the_length() -> None:
    rows = [("points", count, "square", 1e-9 * count**2) for count in timing.POINT_COUNTS]
    assert fit_growth(pl.DataFrame(rows, timing.SCHEMA, orient="row")) == {"square": pytest.approx(2.0)}


# ---- page and document


@pytest.fixture(scope="module")
def whole(results: Results) -> Results:
    """Results with every part; parts that are slow to compute are artificial."""
    swept = [
        results.select("faults").with_columns(
            pl.lit(sweep.name).alias("experiment"), pl.lit(float(value)).alias("value"), pl.lit("iosi").alias("method")
        )
        for sweep in SWEEPS
        for value in sweep.values
    ]
    edison = results.select("faults").with_columns(
        pl.lit("edison").alias("experiment"), pl.lit("edison").alias("level")
    )
    rows = [
        (by, count, name, 1e-3 * count)
        for by, counts in (("samples", timing.SAMPLE_COUNTS), ("points", timing.POINT_COUNTS))
        for count in counts
        for name in ("longest", "silent")
    ]
    times = pl.DataFrame(rows, timing.SCHEMA, orient="row")
    params = replace(results.params, polls=Path("polls"))
    return replace(results, params=params, answers=pl.concat([results.answers, *swept, edison]), times=times)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_page_has_its_figures_and_tables(whole: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, whole.params, whole, tmp_path)
    assert text.count("](figures/") == 6
    assert "--seeds 1 --seed 1 --edison POLLS" in text
    assert "not reached" in text or "not studied" in text
    assert page_of(STUDY, whole.params, whole, tmp_path) == text


@pytest.mark.usefixtures("undrawn")
def test_page_without_real_traffic_omits_its_sections(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, results.params, results, tmp_path)
    assert "Edison" not in text
    assert "## Lost polls\n" in text
    assert "## Time" not in text


def test_tables_fit_a_terminal(whole: Results) -> None:
    titles = []
    for title, shown in STUDY.tables(whole):
        titles.append(title)
        columns, rows = shown.columns, shown.rows
        assert {len(row) for row in rows} == {len(columns)}
        widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
        assert sum(widths) + 3 * len(widths) <= 103, title
        assert len(title) <= 100
    assert len(titles) == len(set(titles)) == 8


@pytest.fixture
def small_study(monkeypatch: pytest.MonkeyPatch, results: Results) -> None:
    def small(params: StudyParams, **_: object) -> Results:
        return replace(results, params=params)

    monkeypatch.setattr(iosig.studies.signatures.running, "study", small)


@pytest.mark.usefixtures("small_study")
def test_part_of_the_study_writes_its_measures_only(tmp_path: Path) -> None:
    arguments = ["signatures", "--part", "published", "--part", "times", "--output", str(tmp_path)]
    result = CliRunner().invoke(study_command, arguments)
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "measures" / "signatures.json").read_text(encoding="utf-8"))
    assert written["command"].endswith("--part published --part times --output DIR")
    assert not (tmp_path / "signatures-study.md").exists()


def test_document_has_parameters_methods_and_targets(results: Results) -> None:
    document: Any = json.loads(json.dumps(STUDY.document(results)))
    assert (document["seed_count"], document["seed"]) == (1, 1)
    assert document["methods"] == {"longest": "the longest sample", "silent": "never a signature"}
    assert {row["experiment"] for row in document["summary"]} == {"levels", "drift", "faults"}
    assert document["targets"][0]["is_reached"] is None
