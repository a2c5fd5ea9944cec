"""Test samples.sample_sets: the latest samples of each application, of one source and with equal step length."""

from __future__ import annotations

import pytest

from iosig.warehouse.contracts.samples import SAMPLE_SETS
from tests.sql.given import Select, expect

SAMPLES, JOBS, JOB_IO = "samples.samples", "stage.jobs", "samples.job_io_sources"
PARAMETERS: dict[str, object] = {"signature_window_days": 90, "max_sample_count": 20, "has_merged_sizes": False}


def given(runs: list[tuple[str, str, str, int]], **changed: dict[str, str]) -> dict[str, str]:
    """Return runs of (job_id, start, application_id, node count) that all wrote to a file system for 100 s."""
    samples = [
        f"{job} {at} 9 lake write {name} {changed.get(job, {}).get('interval_s', '2')}" for job, at, name, _ in runs
    ]
    jobs = [f"{job} {at} {size} {changed.get(job, {}).get('duration_s', '100')}" for job, at, _, size in runs]
    io = [
        f"{job} {at} lake write server {changed.get(job, {}).get('outcome', 'measured')} 5 0.25"
        for job, at, _, _ in runs
    ]
    return {
        SAMPLES: "\n".join(["job_id started_at ended_on filesystem direction application_id interval_s", *samples]),
        JOBS: "\n".join(["job_id started_at node_count duration_s", *jobs]),
        JOB_IO: "\n".join(
            ["job_id started_at filesystem direction source outcome filesystem_bytes missing_ratio", *io]
        ),
    }


def test_set_has_properties_of_its_runs(select: Select) -> None:
    found = select(
        SAMPLE_SETS,
        given([("2", "11:00:00", "ann/vasp/8", 8), ("1", "10:00:00", "ann/vasp/8", 8)]),
        **PARAMETERS,
    )
    expected = """
        application_id  filesystem  job_id  started_at  node_count  interval_s  duration_s  sample_bytes  missing_ratio
        ann/vasp/8      lake        1       10:00:00    8           2           100         5             0.25
        ann/vasp/8      lake        2       11:00:00    8           2           100         5             0.25
        """
    expect(found, expected)


def test_stopped_runs_are_truncated(select: Select) -> None:
    rows = given([(str(number), f"1{number}:00:00", "ann/vasp/8", 8) for number in range(5)])
    states = ["state", "COMPLETED", "TIMEOUT", "CANCELLED", "FAILED", "."]
    jobs = "\n".join(f"{row} {state}" for row, state in zip(rows[JOBS].splitlines(), states, strict=True))
    found = select(SAMPLE_SETS, rows | {JOBS: jobs}, **PARAMETERS)
    assert found["is_truncated"].to_list() == [False, True, True, False, False]


def test_unmeasured_or_zero_length_runs_are_in_no_set(select: Select) -> None:
    found = select(
        SAMPLE_SETS,
        given(
            [("1", "10:00:00", "ann/vasp/8", 8), ("2", "11:00:00", "ann/vasp/8", 8), ("3", "12:00:00", ".", 8)],
            **{"1": {"outcome": "no_polls"}, "2": {"duration_s": "0"}},
        ),
        **PARAMETERS,
    )
    expect(found, "application_id job_id")


def test_samples_must_have_step_length_of_latest_run(select: Select) -> None:
    runs = [(str(number), f"1{number}:00:00", "ann/vasp/8", 8) for number in range(4)]
    found = select(SAMPLE_SETS, given(runs, **{"1": {"interval_s": "5"}}), **PARAMETERS)
    assert found["job_id"].to_list() == ["0", "2", "3"]


def test_number_and_age_of_samples_are_limited(select: Select) -> None:
    runs = [(str(number), f"{10 + number}T00:00:00", "ann/vasp/8", 8) for number in range(6)]
    most = select(SAMPLE_SETS, given(runs), **(PARAMETERS | {"max_sample_count": 2}))
    assert most["job_id"].to_list() == ["4", "5"]
    window = select(SAMPLE_SETS, given(runs), **(PARAMETERS | {"signature_window_days": 3}))
    assert window["job_id"].to_list() == ["2", "3", "4", "5"]


def test_merged_sets_exist_only_for_several_node_counts(select: Select) -> None:
    runs = [
        ("1", "10:00:00", "ann/vasp/16", 16),
        ("2", "11:00:00", "ann/vasp/8", 8),
        ("3", "12:00:00", "bob/vasp/8", 8),
    ]
    found = select(SAMPLE_SETS, given(runs), **(PARAMETERS | {"has_merged_sizes": True}))
    expected = """
        application_id  job_id  node_count
        ann/vasp/*      2       8
        ann/vasp/*      1       16
        ann/vasp/16     1       16
        ann/vasp/8      2       8
        bob/vasp/8      3       8
        """
    expect(found, expected)


def test_runs_on_shared_nodes_are_left_out_if_set(select: Select) -> None:
    tables = given([(str(number), f"1{number}:00:00", "ann/vasp/8", 8) for number in range(3)])
    head, *jobs = tables[JOBS].splitlines()
    shared = [f"{line} {word}" for line, word in zip(jobs, ("yes", "no", "."), strict=True)]
    tables[JOBS] = "\n".join([f"{head} has_shared_nodes", *shared])
    for is_set, expected in ((False, ["0", "1", "2"]), (True, ["1", "2"])):
        found = select(SAMPLE_SETS, tables, **PARAMETERS, excludes_shared_nodes=is_set)
        assert found["job_id"].to_list() == expected


# ---- sources of samples

TRACED = "samples.trace_samples"
EXACT = "samples.exact_samples"


def with_sources(counts: dict[str, int], traced: str = "measured") -> dict[str, str]:
    """Return 8 runs; the last ones have samples of each source, as many as stated."""
    runs = [(str(number), f"1{number}:00:00", "ann/vasp/8", 8) for number in range(8)]
    tables = given(runs)
    head = "job_id started_at ended_on filesystem direction application_id interval_s"
    for source, name, more, values in (
        ("server", SAMPLES, "", ""),
        ("jobstats", EXACT, "", ""),
        ("client", TRACED, " outcome traced_bytes", f" {traced} 7"),
    ):
        chosen = runs[len(runs) - counts.get(source, 0) :]
        interval_s = 1 if source == "client" else 2
        rows = [f"{job} {at} 9 lake write {application} {interval_s}{values}" for job, at, application, _ in chosen]
        tables[name] = "\n".join([head + more, *rows])
    sources = [
        f"{job} {at} lake write {source} measured {5 if source == 'server' else '.'} "
        f"{'.' if source == 'server' else 6} 0.25"
        for job, at, *_ in runs
        for source in ("server", "jobstats", "client", "client")
    ]
    # several traces of a run have a row each
    heads = "job_id started_at filesystem direction source outcome filesystem_bytes own_bytes missing_ratio"
    return tables | {JOB_IO: "\n".join([heads, *sources])}


@pytest.mark.parametrize(
    ("counts", "source", "sample_count"),
    [
        ({"server": 8, "jobstats": 5, "client": 8}, "jobstats", 5),
        ({"server": 8, "jobstats": 4, "client": 8}, "client", 8),
        ({"server": 8, "jobstats": 4, "client": 4}, "server", 8),
        # no source has enough: the set with the most samples, and of equal counts, the run's own bytes
        ({"server": 2, "jobstats": 3, "client": 4}, "client", 4),
        ({"server": 4, "client": 3}, "server", 4),
        ({"server": 3, "jobstats": 3, "client": 3}, "jobstats", 3),
        ({"server": 3, "client": 3}, "client", 3),
    ],
)
def test_set_has_samples_of_one_source(select: Select, counts: dict[str, int], source: str, sample_count: int) -> None:
    found = select(SAMPLE_SETS, with_sources(counts), **PARAMETERS)
    assert found["source"].to_list() == [source] * sample_count
    expected_bytes = {"server": 5, "jobstats": 6, "client": 7}
    assert set(found["sample_bytes"]) == {expected_bytes[source]}
    assert set(found["missing_ratio"]) == {0.0 if source == "client" else 0.25}


@pytest.mark.parametrize(
    ("samples_from", "traced", "source"),
    [
        ("shared", "measured", "server"),
        ("exact", "measured", "jobstats"),
        ("traced", "measured", "client"),
        ("best", "differs", "server"),
        ("best", "no_polls", "server"),
        ("traced", "no_polls", "client"),
        ("traced", "differs", None),
        ("traced", "incomplete", None),
    ],
)
def test_setting_selects_sources_and_only_confirmed_traces_by_default(
    select: Select, samples_from: str, traced: str, source: str | None
) -> None:
    tables = with_sources({"server": 8, "jobstats": 5 if samples_from == "exact" else 0, "client": 8}, traced)
    found = select(SAMPLE_SETS, tables, **(PARAMETERS | {"samples_from": samples_from}))
    assert set(found["source"]) == ({source} if source else set())


def test_old_samples_of_a_better_source_give_way(select: Select) -> None:
    runs = [(f"{number}", f"{day}T1{number}:00:00", "ann/vasp/8", 8) for day in ("01", "09") for number in range(5)]
    tables = given(runs)
    head, *rows = tables[SAMPLES].splitlines()
    tables[SAMPLES] = "\n".join([head, *rows[5:]])
    tables[TRACED] = "\n".join([f"{head} outcome", *(f"{row} measured" for row in rows[:5])])
    assert set(select(SAMPLE_SETS, tables, **PARAMETERS)["source"]) == {"client"}
    window = PARAMETERS | {"signature_window_days": 3}
    assert set(select(SAMPLE_SETS, tables, **window)["source"]) == {"server"}


def test_operations_have_sets_of_their_own_from_polls(select: Select) -> None:
    inputs = given([("1", "10:00:00", "ann/vasp/8", 8), ("2", "11:00:00", "ann/vasp/8", 8)])
    header, first, second = inputs[SAMPLES].splitlines()
    samples = "\n".join([f"{header} volume_operations", f"{first} 40", f"{second} ."])
    exact = "job_id started_at ended_on filesystem direction application_id interval_s \n"
    exact += " 1 10:00:00 9 lake write ann/vasp/8 2"
    io = inputs[JOB_IO] + "\n1 10:00:00 lake write jobstats measured 5 0.25"
    found = select(
        SAMPLE_SETS,
        inputs | {SAMPLES: samples, "samples.exact_samples": exact, JOB_IO: io},
        **(PARAMETERS | {"min_sample_count": 1}),
    )
    expected = """
        application_id  metric      job_id  source    sample_bytes  volume_operations
        ann/vasp/8      bytes       1       jobstats  5             .
        ann/vasp/8      operations  1       server    .             40
        """
    expect(found, expected)


def test_sets_of_exact_samples_only_have_no_operations(select: Select) -> None:
    inputs = given([("1", "10:00:00", "ann/vasp/8", 8)])
    header, first = inputs[SAMPLES].splitlines()
    inputs[SAMPLES] = f"{header} volume_operations \n {first} 40"
    assert select(SAMPLE_SETS, inputs, **(PARAMETERS | {"samples_from": "exact"})).is_empty()
