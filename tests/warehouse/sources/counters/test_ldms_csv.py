"""Test the source of LDMS' store_csv; no site's data were available.

The header follows store_csv.c; metrics follow the samplers lustre_ost (lustre_ost_general.c, lustre_ost_job_stats.c)
and lustre_client (lustre_client_general.c).
"""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters.ldms_csv import SOURCE
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from tests.warehouse.sources.batch_reading import read_counters, read_written

T = 1723114647
START = "#Time,Time_usec,ProducerName,"
OST = START + (
    "component_id,fs_name,ost,read_bytes.sum,write_bytes.sum,setattr,punch,sync,destroy,create,statfs,get_info,set_info,"
    "quotactl,connect,reconnect,disconnect,preprw,commitrw,ping,filesfree,filestotal,kbytesavail\n"
)
JOBS = START + (
    "fs_name,ost,job_id,snapshot_time,read_bytes_sum,write_bytes_sum,getattr,setattr,punch,sync,destroy,create,statfs,"
    "get_info,set_info,quotactl\n"
)
CLIENT = START + "job_id,fs_name,llite,read_bytes.sum,write_bytes.sum,brw_read.sum,open,close,fsync,truncate,mmap\n"


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def stamp(second: float, usec: int = 0) -> str:
    return f"{T + second}.{usec:06d},{usec}"


def ost(read: int, written: int, second: int = 0, usec: int = 3200, target: str = "fs1-OST0001") -> str:
    return f"{stamp(second, usec)},oss1,1,fs1,{target},{read},{written},1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18\n"


def job(key: str, written: int, second: int = 0, usec: int = 0, snapshot: int = 0, target: str = "fs1-OST0001") -> str:
    return f"{stamp(second, usec)},oss1,fs1,{target},{key},{T + snapshot},0,{written},1,2,3,4,5,6,7,8,9,10\n"


def read_text(
    folder: Path, text: str, name: str = "lustre_ost.1723114647", reading: Reading | None = None
) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / name, text, reading)


def test_set_without_counters_is_refused(shared_data: Path) -> None:
    path = shared_data / "ldms" / "test.csv"
    assert recognize(read_head(path)) == SOURCE
    with pytest.raises(InputRefused, match="None of the columns counts bytes or operations"):
        read_counters(SOURCE, path)


def test_targets_have_totals(tmp_path: Path) -> None:
    rows, scrapes, refused = read_text(tmp_path, OST + ost(4096, 8192) + ost(4096, 9000, 10))
    assert refused.is_empty()
    first, second = rows.to_dicts()
    assert (first["filesystem"], first["component"], first["target"], first["job_key"]) == (
        "fs1", "ost", "fs1-OST0001", None
    )  # fmt: skip
    assert (first["total_read_bytes"], first["total_written_bytes"], first["total_read_count"]) == (4096, 8192, None)
    assert (first["total_setattr_count"], first["total_statfs_count"], first["total_other_count"]) == (1, 6, 24)
    assert (second["sampled_at"], second["total_written_bytes"]) == (at(10.0032), 9000)
    assert scrapes.select("scraped_at", "entry_count", "is_job_scrape").rows() == [
        (at(0.0032), 1, False), (at(10.0032), 1, False)
    ]  # fmt: skip


def test_sets_of_jobs_sampled_together_share_a_scrape(tmp_path: Path) -> None:
    text = JOBS + job("43", 4096, 10, 120, 7) + job('"SLURM_JOB10:0:h"', 1, 10, 180, 9) + job("", 5, 10, 190, 9)
    text += job("43", 8192, 20, 130, 19)
    rows, scrapes, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert rows.select("job_key", "sampled_at", "scraped_at", "total_written_bytes").rows() == [
        ("43", at(7), at(10), 4096), ("SLURM_JOB10:0:h", at(9), at(10), 1), ("", at(9), at(10), 5),
        ("43", at(19), at(20), 8192),
    ]  # fmt: skip
    assert scrapes.select("scraped_at", "entry_count", "is_job_scrape").rows() == [(at(10), 3, True), (at(20), 1, True)]


def test_clients_have_totals_without_job(tmp_path: Path) -> None:
    text = CLIENT + f"{stamp(0)},node7,42,fs1,fs1-ffff8,1,2,3,4,5,6,7,8\n"
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    names = ["component", "target", "job_key", "total_read_bytes", "total_open_count", "total_sync_count"]
    assert rows.select(*names, "total_punch_count", "total_other_count").rows() == [
        ("client", "node7:fs1-ffff8", None, 1, 4, 6, 7, None)
    ]


def test_metadata_targets_are_read(tmp_path: Path) -> None:
    text = START + "fs_name,mdt,job_id,snapshot_time,open,close,samedir_rename,rename\n"
    rows, _, _ = read_text(tmp_path, text + f"{stamp(3)},mds1,fs1,fs1-MDT0000,cp.0,{T},1,2,3,4\n")
    assert rows.select("component", "job_key", "total_open_count", "total_rename_count").rows() == [
        ("mdt", "cp.0", 1, 4)
    ]


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        ("#Time,Time_usec,ProducerName,", f"{T}.250000,250000"),
        ("#Time, Time_usec, ProducerName, ", f"{T}.250000,250000"),
        ("Time,ProducerName,", f"{T}.25"),
        ("#Time_msec,ProducerName,", f"{T}250"),
    ],
)
def test_all_forms_of_time_are_read(tmp_path: Path, header: str, cell: str) -> None:
    text = f"{header}ost,stats.write_bytes.sum\n{cell},oss1,fs1-OST0001,5\n"
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert rows.select("filesystem", "scraped_at", "total_written_bytes").rows() == [("fs1", at(0.25), 5)]


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("lustre_ost.1723114647", "lustre_ost.HEADER.1723114647"),
        ("lustre_ost", "lustre_ost.HEADER"),
        ("lustre_ost.1723114647.gz", "lustre_ost.HEADER.1723114647"),
    ],
)
def test_header_may_be_in_a_separate_file(tmp_path: Path, name: str, beside: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(ost(1, 2).encode()) if name.endswith("gz") else ost(1, 2).encode())
    assert not SOURCE.sniff(read_head(path))
    with pytest.raises(InputRefused, match="The file has no header"):
        read_counters(SOURCE, path)
    (tmp_path / beside).write_text(OST)
    assert recognize(read_head(path)) == SOURCE
    rows, _, refused = read_counters(SOURCE, path)
    assert refused.is_empty()
    assert rows["total_written_bytes"].to_list() == [2]
    assert recognize(read_head(tmp_path / beside)) == SOURCE
    assert [frame.height for frame in read_counters(SOURCE, tmp_path / beside)] == [0, 0, 0]


def test_header_within_file_applies_to_following_lines(tmp_path: Path) -> None:
    """ldmsd writes the header again after a restart."""
    text = OST + ost(1, 2) + OST + ost(1, 3, 10) + "#Time,ProducerName,idle\n1,2,3\n" + JOBS + job("1", 4, 20)
    rows, _, refused = read_text(tmp_path, text)
    assert rows["total_written_bytes"].to_list() == [2, 3, 4]
    assert refused.select("line", "reason").rows() == [
        (6, "None of the columns counts bytes or operations of storage.")
    ]


def test_custom_columns_are_mapped_by_settings(tmp_path: Path) -> None:
    text = f"#Time,Time_usec,ProducerName,dev,slurm,wr\n{stamp(0)},oss1,w-OST0001,77,5\n"
    columns = {"target": "dev", "job_key": "slurm", "total_written_bytes": "wr"}
    rows, _, refused = read_text(tmp_path, text, reading=Reading(columns=columns))
    assert refused.is_empty()
    assert rows.select("component", "target", "job_key", "total_written_bytes").rows() == [
        ("ost", "w-OST0001", "77", 5)
    ]


# ---- damaged input


def test_other_tables_are_not_recognized_as_store_csv() -> None:
    for text in (b"Time,a\n1,2\n", b"polled_at,controller\n", f"{T}.003200,3200,a,b,c\n".encode(), b""):
        assert not SOURCE.sniff(Head("x", text))
