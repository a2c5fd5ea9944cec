from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import mmpmon
from iosig.warehouse.sources.counters.mmpmon import SOURCE
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.naive.sources.counters import mmpmon as naive
from tests.warehouse.sources.batch_reading import COUNTS, read_counters, read_written

T = 1579358234


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def line(written: int, second: int = 0, filesystem: str = "scratch", node: str = "rw02") -> str:
    return (
        f"_fs_io_s_ _n_ 10.22.0.106 _nn_ {node} _rc_ 0 _t_ {T + second} _tu_ 53212 _cl_ gpfs.domain _fs_ {filesystem} "
        f"_d_ 48 _br_ 205607400434 _bw_ {written} _oc_ 1 _cc_ 2 _rdc_ 3 _wc_ 4 _dir_ 5 _iu_ 6\n"
    )


def read_text(folder: Path, text: str, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "mmpmon", text, reading)


def test_real_counters_match_totals_of_independent_count(shared_data: Path) -> None:
    path = shared_data / "gpfs" / "mmpmon.txt"
    assert recognize(read_head(path)) == SOURCE
    rows, scrapes, refused = read_counters(SOURCE, path)
    expected = list(naive.rows(path.read_text()))
    assert refused.is_empty()
    assert rows.height == scrapes["entry_count"].sum() == len(expected) == 2
    for row, own in zip(rows.to_dicts(), expected, strict=True):
        assert {name: row[name] for name in ("target", "filesystem", *COUNTS)} == {
            name: own.get(name) for name in ("target", "filesystem", *COUNTS)
        }


def test_node_is_a_client_without_job(tmp_path: Path) -> None:
    rows, scrapes, refused = read_text(tmp_path, line(5) + line(5, 10) + line(7, 20) + line(1, 20, "home"))
    assert refused.is_empty()
    names = ["scraped_at", "filesystem", "component", "target", "job_key", "total_written_bytes", "total_readdir_count"]
    assert rows.select(names).rows() == [
        (at(0.053212), "scratch", "client", "rw02", None, 5, 5),
        (at(20.053212), "scratch", "client", "rw02", None, 7, 5),
        (at(20.053212), "home", "client", "rw02", None, 1, 5),
    ]
    assert scrapes.filter(filesystem="scratch").select("entry_count", "is_job_scrape").rows() == [(1, False)] * 3


def record(written: int, second: int = 0, status: str = "OK") -> str:
    """Return a record without -p."""
    return (
        f"mmpmon node 10.22.0.106 name rw02 fs_io_s {status}\ncluster:        gpfs.domain\nfilesystem:     scratch\n"
        f"disks:             48\ntimestamp:      {T + second}/053212\nbytes read:     205607400434\n"
        f"bytes written:  {written}\nopens:        1\ncloses:       2\nreads:       3\nwrites:      4\n"
        "readdir:      5\ninode updates:           6\n"
    )


@pytest.mark.parametrize("size", [1, 60, 1 << 20])
def test_records_without_p_equal_lines_with_p(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(mmpmon, "BLOCK_BYTES", size)
    expected = read_text(
        tmp_path, "".join(line(5 + second, second) for second in (0, 10, 20)).replace("53212", "053212")
    )
    failed = "mmpmon node 10.22.0.106 name rw02 fs_io_s status 1\nno file systems mounted\n"
    whole = "mmpmon node 10.22.0.106 name rw02 io_s OK\ntimestamp:      1579358234/053212\nbytes read:     9\n"
    text = failed + record(5) + whole + line(15, 10) + record(25, 20)
    rows, scrapes, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert rows.equals(expected[0])
    assert scrapes.equals(expected[1])


@pytest.mark.parametrize("lost", ["inode updates", "timestamp", "bytes written", "cluster"])
def test_incomplete_record_is_refused(tmp_path: Path, lost: str) -> None:
    broken = "".join(part for part in record(9, 20).splitlines(keepends=True) if not part.startswith(lost))
    for text in (record(5) + broken, record(5) + broken + record(7, 30)):
        rows, _, refused = read_text(tmp_path, text)
        assert 9 not in rows["total_written_bytes"]
        assert refused["line"].to_list() == [14]


def test_output_of_other_requests_is_skipped(tmp_path: Path) -> None:
    failed = f"_fs_io_s_ _n_ 10.22.0.106 _nn_ rw02 _rc_ 1 _t_ {T} _tu_ 407431 _cl_ - _fs_ -\n"
    whole = line(9).replace("_fs_io_s_", "_io_s_").replace(" _cl_ gpfs.domain _fs_ scratch _d_ 48", "")
    rows, _, refused = read_text(tmp_path, "_ver_ _n_ 10.22.0.106 _nn_ rw02 _v_ 3\n" + failed + whole + line(5) + "\n")
    assert refused.is_empty()
    assert rows["total_written_bytes"].to_list() == [5]
    with pytest.raises(InputRefused, match="no counters of a file system"):
        read_text(tmp_path, whole)
