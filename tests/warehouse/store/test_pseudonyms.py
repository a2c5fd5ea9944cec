"""Test pseudonyms: equal for equal names, not reversible without the key, and applied to every column with names."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.contracts import TABLES, frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.contracts.traces import TRACES
from iosig.warehouse.errors import UsageError
from iosig.warehouse.store import pseudonyms
from iosig.warehouse.store.pseudonyms import Names
from iosig.warehouse.store.store import Store
from tests.budget import examples

KEY = b"a key of the site's own, long enough"
#: text columns of landed tables without names: storage and queues of the site, formats, terms of tracers, hashes
_NOBODY = {
    *("cluster", "partition", "filesystem", "controller", "layer", "function", "intervals", "phase_state", "events"),
    *("event_kind", "trace_id", "trace_ids", "trace_set_id", "landing_id", "tracer_version", "module", "counters"),
    *("filesystem_kind", "method_parameters"),
}


@dataclass(frozen=True)
class Rules:
    application_pattern: str = "^(.*)$"
    filesystem_pattern: str = r"\bfs=(\w+)"
    mounts: frozenset[str] = frozenset({"/gpfs/alpine"})


NAMES = Names(Rules(), KEY)
#: texts that no message of iosig contains
_CLEAR = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=3, max_size=12).map("qx{}ł".format)


def test_every_text_column_of_landed_tables_hides_names_or_has_none() -> None:
    landed = [table for table in TABLES if table.layer == "landed"]
    texts = {
        (table.name, column.name)
        for table in landed
        for column in table.columns
        if column.dtype == "text" and not column.choices and column.hides is None
    }
    # reviews name runs as a release does, which has pseudonyms already
    assert {name for _, name in texts - {("review_records", "subject_id")}} == _NOBODY


def _clear_texts(how: str, name: str) -> str:
    forms = {
        "id": f"4711_[1-3].{name}.batch",
        "path": f"/scratch/{name}/out.{name}.0001",
        "mount": f"/home/{name}",
        "words": f"/home/{name}/bin/{name} -o {name}=3 4096",
        "said": f"`{name}` is not a number; the column is node_count, says {name}.",
        "listed": json.dumps([f"{name}.darshan", name]),
        "node": f"{name}:9169",
        "nodes": f"{name}[01-03],login-{name}",
        "reason": f"ReqNodeNotAvail, UnavailableNodes:{name}[01-03]",
        "comment": f"for {name} fs=scratch by {name}",
        "raw": f"12|{name}|x",
    }
    return forms.get(how, name)


@given(name=_CLEAR, other=_CLEAR)
@settings(max_examples=examples(100), deadline=None)
def test_no_name_remains_and_equal_names_have_equal_pseudonyms(name: str, other: str) -> None:
    for table in (table for table in TABLES if table.layer == "landed"):
        hidden = {column.name: column.hides for column in table.columns if column.hides}
        texts = {column: how for column, how in hidden.items() if how != "uid"}
        given_rows = pl.DataFrame(
            {column: [_clear_texts(how, each) for each in (name, other, name)] for column, how in texts.items()}
            | ({"uid": [1001, 1002, 1001]} if "uid" in hidden.values() else {})
        )
        found = NAMES.hide(table, given_rows)
        said = found.cast(pl.String).write_json()
        assert name not in said
        assert json.dumps(name)[1:-1] not in said
        for column, how in texts.items():
            first, second, third = found[column].to_list()
            assert first == third
            assert (first == second) == (name == other or how in ("raw", "comment", "reason"))


def test_pseudonymized_columns_can_still_be_joined() -> None:
    jobs = NAMES.hide(JOB_RECORDS, _rows(JOB_RECORDS, user=["ann", "1001"], job_id=["12.batch", "12[4].pbs01"]))
    traces = NAMES.hide(TRACES, _rows(TRACES, user=["ann", None], uid=[7, 1001], job_id=["12", "12"]))
    assert jobs["user"].to_list() == traces["user"].to_list()
    assert traces["uid"].to_list() == [None, None]
    assert jobs["job_id"][0] == "12.batch"
    assert re.fullmatch(r"12\[4\]\.[a-z2-7]{16}", jobs["job_id"][1])
    assert NAMES.path("/scratch/ann/x").split("/")[2] == jobs["user"][0]


def _rows(table: object, **values: list[object]) -> pl.DataFrame:
    schema = frames.schema(table)  # type: ignore[arg-type]
    return pl.DataFrame({name: values.get(name, [None, None]) for name in schema}, schema=schema)


def test_rules_of_settings_are_applied_before_hiding_names() -> None:
    names = Names(Rules(application_pattern=r"^(\w+)-\d+$"), KEY)
    found = names.hide(
        JOB_RECORDS,
        _rows(JOB_RECORDS, job_name=["ior-1", "ior-2"], comment=["ann's fs=lake", "no system"]),
    )
    assert found["job_name"].to_list() == [names.name("ior")] * 2
    assert found["comment"].to_list() == ["lake", None]
    assert names.mount("/gpfs/alpine") == "/gpfs/alpine"
    assert names.mount("/lustre") == "/lustre"


def test_messages_remain_readable() -> None:
    said = NAMES.said("`nine` is not a number; the column is node_count.")
    assert re.fullmatch(r"`[a-z2-7]{16}` is not a number; the column is node_count\.", said)
    found = NAMES.hide(
        REJECTS,
        pl.DataFrame({"reason": ["There is no end."], "remedy": ["Fill it."], "raw": ["12|ann"]}),
    )
    assert found.row(0) == ("There is no end.", NAMES.said("Fill it."), None)


def test_nodes_have_equal_pseudonyms_in_every_notation() -> None:
    listed = NAMES.nodes("cn[01-02],login")
    assert listed == ",".join(map(NAMES.node, ("cn01", "cn02", "login")))
    assert NAMES.nodes("cn01/0*8+cn02/0-7") == ",".join(map(NAMES.node, ("cn01", "cn02")))
    assert NAMES.nodes("cn[1-999999999]") is None
    assert NAMES.node("oss1:9169") == f"{NAMES.node('oss1')}:9169"
    assert NAMES.node("17") == "17"
    assert NAMES.node("10.1.2.3") != "10.1.2.3"


def test_storage_targets_and_scheduler_codes_are_kept() -> None:
    assert [NAMES.target(name) for name in ("lake-OST0001", "fs1-MDT0000", "OST001f_UUID")] == [
        "lake-OST0001",
        "fs1-MDT0000",
        "OST001f_UUID",
    ]
    assert NAMES.target("cn01") == NAMES.node("cn01") != "cn01"
    assert NAMES.reason("ReqNodeNotAvail, UnavailableNodes:cn[01-04]") == "ReqNodeNotAvail"
    assert NAMES.reason("ann's turn") is None


def test_pseudonyms_depend_on_key_and_key_is_not_shown() -> None:
    other = Names(Rules(), KEY[::-1])
    assert NAMES.name("ann") == NAMES.name("ann") != other.name("ann")
    assert KEY.decode() not in f"{NAMES!r} {NAMES}"
    assert NAMES.name("") == ""


def test_warehouse_has_clear_names_or_pseudonyms_of_a_single_key(tmp_path: Path) -> None:
    def told(folder: str, key: bytes | None) -> Names | None:
        return pseudonyms.open_names(Store(tmp_path / folder), Rules(), key)

    assert told("clear", None) is None
    (tmp_path / "clear/landed").mkdir(parents=True)
    with pytest.raises(UsageError, match="in clear text"):
        told("clear", KEY)
    assert told("private", KEY) == NAMES == told("private", KEY)
    with pytest.raises(UsageError, match="with another key"):
        told("private", KEY[::-1])
    with pytest.raises(UsageError, match="is_pseudonymized"):
        told("private", None)
    with pytest.raises(UsageError, match="shorter than 32 bytes"):
        told("new", b"short")
    assert KEY not in (tmp_path / "private" / pseudonyms.MARK).read_bytes()
