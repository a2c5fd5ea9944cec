"""Test application ids: equal from values, in the models of jobs and in SQL on releases; one id per application."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import duckdb
import polars as pl
import pytest
from hypothesis import given, strategies as st

from iosig.warehouse.contracts.application_ids import (
    ID_PARTS_SQL,
    UNKNOWN_CLUSTER,
    all_node_counts,
    get_machine,
    get_user,
    make_application_id,
    replace_user,
    without_machine,
    without_node_count,
)
from iosig.warehouse.contracts.jobs import JOBS, QUEUED_JOBS
from tests.sql.given import filled, select_alone

PARTS = [
    ("default", "ann", "ior", 4),
    ("titan", "ann", "ior", 4),
    ("titan", "site/bob", "a/b", 1),
    ("ti/tan@x", "ann@lab", "ior", 4),
    ("default", "50%", "ior", 4),
    ("titan", None, "ior", 4),
    ("titan", "ann", None, 4),
    ("titan", "ann", "ior", None),
]
IDS = [
    "ann/ior/4",
    "ann@titan/ior/4",
    "site%2Fbob@titan/a/b/1",
    "ann%40lab@ti%2Ftan%40x/ior/4",
    "50%25/ior/4",
    None,
    None,
    None,
]

# `|` delimits fields of job logs
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=5)
APPLICATIONS = st.tuples(st.sampled_from([UNKNOWN_CLUSTER, "titan", "a/b@c%"]) | NAMES, NAMES, NAMES, st.integers(1, 9))


def test_models_of_jobs_and_queue_make_the_same_ids() -> None:
    assert [make_application_id(*parts) for parts in PARTS] == IDS
    log = pl.DataFrame(PARTS, schema=["cluster", "user", "job_name", "node_count"], orient="row")
    log = log.with_columns(job_id=pl.int_range(pl.len()).cast(pl.String))
    jobs = select_alone(JOBS, {"landed.job_records": filled("landed.job_records", log)})
    queue = select_alone(QUEUED_JOBS, {"landed.queue_records": filled("landed.queue_records", log)})
    for rows in (jobs, queue):
        assert rows["machine"].equals(rows["cluster"])
        assert rows.sort(pl.col("job_id").cast(pl.Int64))["application_id"].to_list() == IDS


def test_log_without_a_cluster_has_ids_without_a_machine() -> None:
    log = "job_id user job_name node_count \n 1 ann ior 4"
    jobs = select_alone(JOBS, {"landed.job_records": log})
    assert jobs.select("cluster", "application_id").rows() == [("default", "ann/ior/4")]


@given(APPLICATIONS, APPLICATIONS)
def test_id_is_a_one_to_one_function_of_machine_user_program_and_size(
    one: tuple[str, str, str, int], other: tuple[str, str, str, int]
) -> None:
    ids = make_application_id(*one), make_application_id(*other)
    assert (ids[0] == ids[1]) == (one == other)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


@given(parts=APPLICATIONS)
def test_parts_of_an_id_are_extracted(connection: duckdb.DuckDBPyConnection, parts: tuple[str, str, str, int]) -> None:
    machine, user, application, node_count = parts
    name = make_application_id(*parts)
    assert name is not None
    assert (get_machine(name), get_user(name)) == (machine, user)
    assert replace_user(name, "b/o") == make_application_id(machine, "b/o", application, node_count)
    assert without_machine(name) == make_application_id(UNKNOWN_CLUSTER, user, application, node_count)
    assert name == f"{without_node_count(name)}/{node_count}"
    assert all_node_counts(name) == all_node_counts(all_node_counts(name)) == f"{without_node_count(name)}/*"
    for application_id, size in ((name, node_count), (all_node_counts(name), None)):
        query = f"select {ID_PARTS_SQL} from (select $id as application_id)"
        found = connection.execute(query, {"id": application_id}).fetchone()
        assert found == (user, machine, application, size)


def test_clusters_of_a_machine_share_ids() -> None:
    log = pl.DataFrame(
        [(cluster, user, "ior", 4) for cluster, user in product(["titan", "titan-dtn", "smoky", None], ["ann", "bob"])],
        schema=["cluster", "user", "job_name", "node_count"],
        orient="row",
    ).with_columns(job_id=pl.int_range(pl.len()).cast(pl.String))
    machines = "cluster machine \n titan-dtn titan \n default smoky"
    for table, records in ((JOBS, "landed.job_records"), (QUEUED_JOBS, "landed.queue_records")):
        given = {records: filled(records, log), "settings.cluster_machines": machines}
        rows = select_alone(table, given).sort("job_id")
        assert rows["application_id"].to_list() == [
            "ann@titan/ior/4", "bob@titan/ior/4", "ann@titan/ior/4", "bob@titan/ior/4",
            "ann@smoky/ior/4", "bob@smoky/ior/4", "ann@smoky/ior/4", "bob@smoky/ior/4",
        ]  # fmt: skip
        # the scheduler's job ids are unique per cluster
        assert rows["cluster"].unique().sort().to_list() == ["default", "smoky", "titan", "titan-dtn"]
        assert rows["machine"].unique().sort().to_list() == ["smoky", "titan"]
