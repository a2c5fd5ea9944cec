from __future__ import annotations

import polars as pl
import pytest

from iosig.warehouse.sources.counters.jobstats_entries import LINE, PLACE, Entries

ENTRY = b"""          %s
  snapshot_time:   1723114652.123456789 secs.nsecs
  start_time:      1723114000
  open:            { samples:           3, unit: usecs, min:  1, max:  9, sum:  9, sumsq:  9 }
  parallel_rename_file: { samples:           3, unit: usecs, min:  1, max:  9, sum:  9, sumsq:  9 }
  write_bytes:     { samples:           3, unit: bytes, min:  1, max:  9, sum:  12 }"""


def read(*entries: bytes) -> tuple[pl.DataFrame, pl.DataFrame]:
    found = Entries().read(entries, [10 * number for number in range(len(entries))], ["fs1-MDT0000"] * len(entries))
    return found.rows, found.refused


@pytest.mark.parametrize(
    ("written", "key"),
    [
        (b"43", "43"),
        (b"", ""),
        (b"cp.0", "cp.0"),
        (b'"SLURM_JOB10:0:host"', "SLURM_JOB10:0:host"),
        (rb'"my\x20job\x3B1"', "my job;1"),
        (rb'"caf\xC3\xA9"', "café"),
        (rb'"bell\x07"', r"bell\x07"),
        (rb'"half\xFF"', r"half\xFF"),
        (rb"bare\x20text", r"bare\x20text"),
        (b"two words?", "two words?"),
    ],
)
def test_job_key_is_decoded_only_if_printable_and_quoted(written: bytes, key: str) -> None:
    rows, refused = read(ENTRY % written, ENTRY % b"other")
    assert refused.is_empty()
    assert rows["job_key"].to_list() == [key, "other"]


def test_entry_has_times_and_counts() -> None:
    rows, _ = read(ENTRY % b"1")
    (row,) = rows.to_dicts()
    assert (row[PLACE], row[LINE]) == (0, 0)
    assert row["sampled_at"].timestamp() == 1723114652.123456
    assert row["counter_started_at"].timestamp() == 1723114000
    counts = {name: value for name, value in row.items() if name.startswith("total_")}
    assert counts == {"total_open_count": 3, "total_written_bytes": 12, "total_write_count": 3}


@pytest.mark.parametrize("key", ["\u65e5\u672c.0", '"\u65e5 x"', "caf\u00e9.1001"])
def test_job_id_may_have_any_printable_text(key: str) -> None:
    rows, refused = read(ENTRY % key.encode())
    assert refused.is_empty() == ("x" not in key)
    assert rows["job_key"].to_list() == [key] * refused.is_empty()


def test_job_id_that_is_not_text_or_too_long_is_refused() -> None:
    rows, refused = read(ENTRY % b"a\xff.0", ENTRY % (b"b" * (2 << 20)), ENTRY % b"c")
    assert rows["job_key"].to_list() == ["c"]
    assert refused["reason"].str.contains("not in Lustre's format|limits.max_line_bytes").to_list() == [True, True]


def test_names_may_be_padded_before_the_colon() -> None:
    padded = (ENTRY % b"1").replace(b"snapshot_time:", b"snapshot_time   :").replace(b"open: ", b"open : ")
    (row,), (expected,) = (read(entry)[0].to_dicts() for entry in (padded, ENTRY % b"1"))
    assert row == expected


def test_refused_entry_does_not_affect_others() -> None:
    rows, refused = read(ENTRY % b"1", (ENTRY % b"2").replace(b"open: ", b"open; "), ENTRY % b"3")
    assert rows[PLACE].to_list() == [0, 2]
    assert refused["line"].to_list() == [13]
    assert refused["raw"][0].startswith("  open; ")
