"""Test small inputs that public sources and bug reports describe: how each is recognized, and what lands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.store.landing import find_source
from tests.warehouse.sources.batch_reading import UTC_ZONE, tables_of

#: file, format, table, columns, rows and the reason of the reject, if there is one
LANDED: list[tuple[str, str, str, str, list[tuple[Any, ...]], str]] = [
    ("bom-text-formats/sacct.txt", "sacct", "job_records", "job_id user", [("1", "u1")], ""),
    ("bom-text-formats/pbs.txt", "pbs", "job_records", "job_id user", [("7.srv", "u1")], ""),
    (
        "jobstats-padded-colon/a.txt",
        "jobstats",
        "counter_samples",
        "job_key total_read_bytes total_read_count total_written_bytes total_write_count",
        [("542307", 3072, 3, 0, 0), ("prog.0", 0, 0, 40960, 10)],
        "",
    ),
    (
        "jobstats-raw-utf8-id/a.txt",
        "jobstats",
        "counter_samples",
        "job_key total_read_bytes",
        [("\u65e5\u672c.0", 4096)],
        "",
    ),
    (
        "mmpmon-human/a.txt",
        "mmpmon",
        "counter_samples",
        "target filesystem total_read_bytes total_written_bytes total_other_count",
        [("n1", "gpfs2", 0, 0, 3)],
        "",
    ),
    ("pbs-array-parent/a.txt", "pbs", "job_records", "job_id", [("1[1].srv",), ("1[2].srv",)], ""),
    (
        "pbs-cray-mppwidth/a.txt",
        "pbs",
        "job_records",
        "job_id node_count node_list",
        [("1.sdb", 32, None), ("2.sdb", 128, None)],
        "",
    ),
    (
        "polls-comment-head/a.csv",
        "polls-csv",
        "polls",
        "read_bytes_per_s write_bytes_per_s",
        [(1.0, 0.0), (1001.0, 2000.0)],
        "",
    ),
    (
        "polls-nan/a.csv",
        "polls-csv",
        "polls",
        "write_bytes_per_s read_bytes_per_s flag",
        [(0.0, 1.0, None), (2000.0, None, "missing"), (4000.0, 2001.0, None)],
        "",
    ),
    (
        "polls-quote-in-note/a.csv",
        "polls-csv",
        "polls",
        "read_bytes_per_s write_bytes_per_s",
        [(1.0, 0.0), (1001.0, 2000.0), (2001.0, 4000.0), (3001.0, 6000.0)],
        "",
    ),
    (
        "prom-go-exponents/oss1-1723117060.prom",
        "prometheus",
        "counter_samples",
        "job_key total_written_bytes",
        [("24", 78026117632000), ("bash.0", 4096)],
        "",
    ),
    ("prom-range-empty/a.json", "prometheus", "counter_samples", "", [], ""),
    (
        "prom-range-nan/a.json",
        "prometheus",
        "counter_samples",
        "job_key total_written_bytes",
        [("24", 215147593728), ("24", 215147593728), ("24", 78026117733000)],
        "",
    ),
    *((f"sacct-other-delimiter/{name}", "sacct", "job_records", "job_id job_name", rows, "")
      for name, rows in (("caret.txt", [("30", "ok")]), ("tab.txt", [("30", "ok")]),
                         ("comma.csv", [("30", "ok"), ("31", "ok")]))),
    (
        "sacct-pipe-message/a.txt",
        "sacct",
        "job_records",
        "job_id job_name",
        [("1", "sim"), ("3", "sim")],
        "17 fields; the header has 16",
    ),
    (
        "sacct-pipe-shift/a.txt",
        "sacct",
        "job_records",
        "job_id user account partition",
        [("1", "u1", "a1", "p1")],
        "11 fields; the header has 10",
    ),
    ("squeue-json-last-update/a.json", "squeue-json", "queue_records", "observed_at", [(1762942546,)], ""),
]  # fmt: skip

#: file, and what its refusal says
REFUSED = {
    "polls-thousands/a.csv": "`1,001.0` is not a number",
    "prom-range-error/a.json": "query timed out",
    "sacct-fixed-width/a.txt": "sacct --parsable2",
    "sacct-json-two-documents/a.json": "another document follows its end",
    "sacct-no-header/a.txt": "Export without --noheader",
    "slurm-json-errors/a.json": "Connection refused",
}


def read(path: Path) -> dict[str, pl.DataFrame]:
    return tables_of(find_source(path, None, None).read(path, UTC_ZONE))


@pytest.mark.parametrize(("name", "format_name", "table", "columns", "rows", "reason"), LANDED)
def test_case_lands_as_stated(
    shared_data: Path, name: str, format_name: str, table: str, columns: str, rows: list[tuple[Any, ...]], reason: str
) -> None:
    path = shared_data / "cases" / name
    assert find_source(path, None, None).name == format_name
    tables = read(path)
    found = tables.get(table, pl.DataFrame())
    instants = [pl.col(column).dt.epoch("s") for column in columns.split() if column.endswith("_at")]
    assert sorted(found.with_columns(instants).select(columns.split()).rows(), key=repr) == sorted(rows, key=repr)
    rejects = tables.get(REJECTS.name, pl.DataFrame({"reason": []}, schema={"reason": pl.String}))["reason"]
    assert [reason in text for text in rejects] == [True] * bool(reason)


@pytest.mark.parametrize("name", REFUSED)
def test_case_is_refused_with_its_cause(shared_data: Path, name: str) -> None:
    path = shared_data / "cases" / name
    with pytest.raises(InputRefused) as refusal:
        read(path)
    assert REFUSED[name] in str(refusal.value)
