"""Test the source of Influx line protocol.

Telegraf's points are from its tests (plugins/inputs/lustre2/testcases); BeeGFS points follow its source (beegfs-mon,
TSDatabase.cpp).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters.influx_line import SOURCE
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.store.landing import land
from iosig.warehouse.store.store import Store
from tests.naive.sources.counters import influx_line as naive
from tests.warehouse.sources.batch_reading import COUNTS, read_counters, read_written

T = 1723114647
OST = (
    "jobstats_create={n}i,jobstats_get_info=1i,jobstats_ost_setattr=2i,jobstats_quotactl=3i,jobstats_read_bytes={r}i,"
    "jobstats_read_calls=1i,jobstats_read_max_size=4096i,jobstats_read_min_size=4096i,jobstats_write_bytes={w}i,"
    "jobstats_write_calls={n}i,jobstats_write_max_size=4096i,jobstats_write_min_size=4096i"
)


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def job(key: str, written: int, second: int = 0, target: str = "fs1-OST0001", fields: str = OST) -> str:
    told = fields.format(n=written // 4096, r=0, w=written)
    return f"lustre2,host=oss1,jobid={key},name={target} {told} {T + second}000000000\n"


def read_text(folder: Path, text: str, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "metrics.out", text, reading)


def test_real_points_match_totals_of_independent_count(shared_data: Path) -> None:
    path = shared_data / "telegraf" / "lustre2.influx"
    assert recognize(read_head(path)) == SOURCE
    rows, scrapes, refused = read_counters(SOURCE, path)
    expected = list(naive.points(path.read_text()))
    assert refused.is_empty()
    assert rows.height == scrapes["entry_count"].sum() == len(expected) == 2
    for row, own in zip(rows.to_dicts(), expected, strict=True):
        assert (row["target"], row["job_key"]) == (own["target"], own["job_key"])
        assert {column: row[column] for column in COUNTS} == {column: own.get(column) for column in COUNTS}


def test_point_has_bytes_and_operations(tmp_path: Path) -> None:
    text = job("43", 8192) + job("cp.0", 1, target="fs1-MDT0000", fields="jobstats_open=3u,jobstats_rename=2u,"
                                 "jobstats_samedir_rename=2u,jobstats_migrate=4u")  # fmt: skip
    rows, scrapes, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    ost, mdt = rows.to_dicts()
    assert (ost["filesystem"], ost["component"], ost["target"], ost["job_key"]) == ("fs1", "ost", "fs1-OST0001", "43")
    assert (ost["total_read_bytes"], ost["total_written_bytes"], ost["total_write_count"]) == (0, 8192, 2)
    assert (ost["total_create_count"], ost["total_setattr_count"], ost["total_other_count"]) == (2, 2, 4)
    assert (mdt["component"], mdt["total_open_count"], mdt["total_rename_count"]) == ("mdt", 3, 2)
    assert (mdt["total_other_count"], mdt["total_written_bytes"]) == (4, None)
    assert scrapes.select("target", "entry_count", "is_job_scrape").rows() == [
        ("fs1-MDT0000", 1, True), ("fs1-OST0001", 1, True)
    ]  # fmt: skip


def test_totals_of_targets_are_counted_without_breakdowns(tmp_path: Path) -> None:
    """Telegraf 1.3x writes totals with caches, by client and by size, and fields that are not counters."""
    total = "cache_hit=73u,close=8u,read_bytes=780u,read_calls=20u,samedir_rename=1u,write_bytes=152u,write_calls=7u"
    text = (
        f"lustre2,name=fs1-OST0001 {total} {T}250000000\n"
        f"lustre2,client=10.2.4.27@o2ib1,name=fs1-OST0001 {total} {T}250000000\n"
        f"lustre2,brw_section=disk_io_size,bucket=1K,name=fs1-OST0001 read_ios=1u,write_ios=2u {T}250000000\n"
        f"lustre2 health=1u {T}250000000\n"
        f"lustre2,name=MGS evictions=202u {T}250000000\n"
        f'system,host=oss1 uptime_format="1 day, 2:03",load1=0.5 {T}250000000\n'
    )
    rows, scrapes, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    names = ["target", "job_key", "total_read_bytes", "total_write_count", "total_close_count", "total_other_count"]
    assert rows.select(names).rows() == [("fs1-OST0001", None, 780, 7, 8, None)]
    assert scrapes.select("scraped_at", "is_job_scrape").rows() == [(at(0.25), False)]


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ('"SLURM_JOB10:0:host"', "SLURM_JOB10:0:host"),
        ("my\\ program.0", "my program.0"),
        ("a\\,b\\=c.0", "a,b=c.0"),
        (r'"\x41.0"', "A.0"),
    ],
)
def test_job_key_is_unquoted_and_unescaped(tmp_path: Path, written: str, key: str) -> None:
    rows, _, refused = read_text(tmp_path, job(written, 4096) + job("1", 4096))
    assert refused.is_empty()
    assert sorted(rows["job_key"]) == sorted([key, "1"])


@pytest.mark.parametrize("digits", ["", ".250", ".250000", ".250000123"])
def test_time_unit_is_inferred_from_number_of_digits(tmp_path: Path, digits: str) -> None:
    text = job("1", 4096).replace(f"{T}000000000", f"{T}{digits[1:]}")
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert rows["scraped_at"].to_list() == [at(0.25 if digits else 0)]


def test_only_changed_points_have_rows(tmp_path: Path) -> None:
    parts = [(0, (4096, 1)), (10, (4096, 1)), (20, (4096, 8192)), (30, (4096,)), (40, (4096, 8192))]
    text = "".join(job(f"j{n}", value, second) for second, values in parts for n, value in enumerate(values))
    rows, scrapes, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert scrapes["entry_count"].to_list() == [2, 2, 2, 1, 2]
    assert rows.select("job_key", "scraped_at").rows() == [
        ("j0", at(0)), ("j1", at(0)), ("j1", at(20)), ("j1", at(40))
    ]  # fmt: skip


def test_custom_tags_and_fields_are_mapped_by_settings(tmp_path: Path) -> None:
    text = f"ost_io,ost=w-OST0001,slurm=77 wr=5,rd=1.5e+3 {T}\nost_io,ost=w-OST0002 idle=5 {T}\n"
    with pytest.raises(InputRefused, match="None of the points"):
        read_text(tmp_path, text)
    columns = {"total_written_bytes": "wr", "total_read_bytes": "rd", "target": "ost", "job_key": "slurm"}
    rows, _, refused = read_text(tmp_path, text, Reading(columns=columns, filesystem="w"))
    assert refused.is_empty()
    names = ["filesystem", "component", "target", "job_key", "total_read_bytes", "total_written_bytes"]
    assert rows.select(names).rows() == [("w", "ost", "w-OST0001", "77", 1500, 5)]


def test_beegfs_server_points_become_polls(tmp_path: Path) -> None:
    text = "".join(
        f"highResStorage,nodeID=stor{n},nodeNumID={n} workRequests=9,queuedRequests=0,diskWriteBytes={n}000,"
        f"diskReadBytes=7,netSendBytes=1,netRecvBytes=2 {T}500000000\n"
        for n in (1, 2)
    )
    path = tmp_path / "beegfs"
    path.write_text(text + f"highResStorage,nodeID=stor3,nodeNumID=3 diskWriteBytes=x {T}500000000\n")
    assert recognize(read_head(path)) == SOURCE
    landed = land(Store(tmp_path / "warehouse"), path, lambda _: Reading(filesystem="bee")).landing
    assert {part.table: part.row_count for part in landed.parts} == {"polls": 3}
    (rows,) = (batch.rows for batch in SOURCE.read(path, Reading()) if batch.table == POLLS)
    names = ["polled_at", "controller", "interval_s", "read_bytes_per_s", "write_bytes_per_s", "flag"]
    assert rows.select(names).rows() == [
        (at(0.5), "stor1", 1.0, 7.0, 1000.0, None),
        (at(0.5), "stor2", 1.0, 7.0, 2000.0, None),
        (at(0.5), "stor3", 1.0, None, None, "missing"),
    ]


def test_exported_single_fields_are_refused_as_incomplete(tmp_path: Path) -> None:
    """`influx_inspect export` writes each field on a separate line; each would pass for a complete reading."""
    head, fields, at_ns = job("1", 4096).split(" ")
    text = "".join(f"{head} {field} {at_ns}" for field in fields.split(",") if "_size" not in field)
    rows, _, refused = read_text(tmp_path, text)
    assert rows.is_empty()
    assert refused["reason"].unique().to_list() == ["The job has fewer counters than others of its target."]


def test_slurm_profile_is_refused_as_ambiguous(tmp_path: Path) -> None:
    """Slurm's plugin (acct_gather_profile_influxdb.c) writes differences in some versions, totals in others."""
    text = "".join(
        f"{name},job=43,step=0,task=Lustre,host=node7 value={value} {T}\n"
        for name, value in (("Reads", 7), ("ReadMB", "12.30"), ("Writes", 0), ("WriteMB", "0.00"))
    )
    with pytest.raises(InputRefused, match=r"Slurm profile.*depends on Slurm's version"):
        read_text(tmp_path, text)


# ---- damaged input


def test_tag_on_single_line_is_refused_as_damaged(tmp_path: Path) -> None:
    client = "lustre2,client=10.2.4.{n}@o2ib,name=fs1-OST0001 write_bytes={n}i " + f"{T}000000000\n"
    text = "".join(client.format(n=n) for n in range(1, 13))
    rows, _, refused = read_text(tmp_path, text.replace("client=10.2.4.5@", "klient=10.2.4.5@") + job("1", 1))
    assert refused.select("line", "reason").rows() == [(5, "No other point has a tag or field `klient`.")]
    assert rows["job_key"].to_list() == ["1"]


def test_other_text_is_not_recognized_as_line_protocol() -> None:
    for text in (b"time,name\n1,2\n", b"lustre2,name=x write_bytes=1i\n", b"a b c\n", b""):
        assert not SOURCE.sniff(Head("x", text))
