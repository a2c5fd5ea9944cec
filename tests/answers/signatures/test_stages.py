"""IOSI is repeated on the samples of a release: same signature, chosen run, and JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from iosig.answers.signatures.stages import IosiAnswer, build_document, trace_application
from iosig.answers.signatures.view import Query
from iosig.transforms.signatures.iosi import IosiParams, extract_iosi
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.documents import require_schema
from tests.flows.signature_releases import Made, publish

#: triangular bursts at two steps, later in each run, and a shorter seventh run
RATES = tuple(
    1e8 + 2e9 * sum(np.clip(1 - np.abs(np.arange(150) - middle - run) / 6, 0, None) for middle in (40, 100))
    for run in range(6)
)
RUNS = (*RATES, RATES[0][:60])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("traced") / "warehouse")
    publish(made, "only", [Made(run_count=7, samples=RUNS), Made("ben/few/2", run_count=3)])
    return made


@pytest.fixture(scope="module")
def release(store: Store) -> Release:
    from iosig.warehouse.releases.releases import find

    return find(store, None)


def test_stages_are_those_of_the_published_samples(store: Store, release: Release) -> None:
    answer = trace_application(store, release, Query("ior_a"))
    view, stages = answer.view, answer.view.stages
    assert (view.application_id, view.filesystem, view.direction, view.method) == (
        "ana/ior_a/16", "scratch", "write", "iosi",
    )  # fmt: skip
    assert [rates.tolist() for rates in view.sample_set.rates] == [rates.tolist() for rates in RUNS]
    used = view.sample_set.select_runs(~stages.scores.is_outlier)
    (expected,) = extract_iosi([used], IosiParams())
    np.testing.assert_array_equal(stages.signature.bytes_per_s, expected.bytes_per_s)
    assert view.run in stages.samples.run


def test_settings_are_those_of_the_release(store: Store, release: Release) -> None:
    parameters = json.dumps({"signatures": {"wavelet_level": 3, "gamma": 0.6, "min_sample_count": 9, "later": 1}})
    answer = trace_application(store, replace(release, parameters=parameters), Query("ior_a", method="iosi_filtered"))
    assert answer.view.params == IosiParams(level=3, gamma=0.6).add_filters()
    assert answer.view.stages.signature.outcome == "too_few_samples"
    assert answer.view.finding == "No signature: too few samples (7 of 9 required)"


def test_run_can_be_chosen_if_it_is_used(store: Store, release: Release) -> None:
    def trace(job_id: str | None) -> IosiAnswer:
        return trace_application(store, release, Query("ior_a", method="iosi_filtered"), job_id)

    jobs = trace(None).view.job_ids
    assert [trace(job_id).view.run for job_id in jobs[:6]] == [0, 1, 2, 3, 4, 5]
    with pytest.raises(UsageError, match=f"Job {jobs[6]} is excluded. Choose a used run: {jobs[0]}, "):
        trace(jobs[6])
    with pytest.raises(UsageError, match=f"no run of job 7. Its jobs: {jobs[0]}, "):
        trace("7")


def test_document_has_the_numbers_of_every_figure(store: Store, release: Release) -> None:
    answer = trace_application(store, release, Query("ior_a", method="iosi_filtered"))
    text = build_document(answer).json_text()
    assert require_schema(text) == ["iosig-iosi/1"]
    document = json.loads(text)
    assert document["outcome"] == "extracted"
    assert document["parameters"]["iosi"]["min_outlier_factor"] == 1.5
    assert document["outlier_threshold"] >= 1.5
    assert [run["is_excluded"] for run in document["runs"]] == [False] * 6 + [True]
    assert [run["preprocessed_bytes"] is None for run in document["runs"]] == [False] * 6 + [True]
    factors = [run["outlier_factor"] for run in document["runs"]]
    assert max(factors[:6]) <= document["outlier_threshold"] < factors[6]
    shown = document["shown_run"]
    assert len(shown["sample_bytes_per_s"]) == 150
    assert [len(shown["preprocessed_bytes_per_s"])] * 3 == [len(level["bytes_per_s"]) for level in shown["levels"]]
    assert [level["is_used"] for level in shown["levels"]] == [False, True, False]
    peaks = [point["peak_s"] for point in document["bursts"] if point["common_burst"] == 0]
    assert peaks == pytest.approx([80, 82, 84, 86, 88, 90], abs=2)
    assert sum(grid["is_best"] for grid in document["grids"]) == 1
    assert len(document["grids"]) == 20
    assert max(grid["explained_count"] for grid in document["grids"]) == 12
    assert all(unit["run_count"] >= 3 for unit in document["dense_units"])
    assert [burst["support_ratio"] for burst in document["common_bursts"]] == [1.0, 1.0]


def test_too_few_runs_are_an_outcome(store: Store, release: Release) -> None:
    answer = trace_application(store, release, Query("few"))
    document = json.loads(build_document(answer).json_text())
    assert (document["outcome"], document["outlier_threshold"]) == ("too_few_samples", None)
    assert [run["outlier_factor"] for run in document["runs"]] == [None] * 3
    assert document["bursts"] == document["grids"] == document["dense_units"] == document["common_bursts"] == []
