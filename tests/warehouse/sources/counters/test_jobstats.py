from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import jobstats_text
from iosig.warehouse.sources.counters.jobstats import SOURCE
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from iosig.warehouse.store.landing import land
from iosig.warehouse.store.store import Store
from tests.naive.sources.counters import jobstats as naive
from tests.warehouse.sources.batch_reading import COUNTS, read_counters, read_written

T = 1723114647


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


_OLD = """\
- job_id:          {job}
  snapshot_time:   {whole}
  read_bytes:      {{ samples:           0, unit: bytes, min:       0, max:       0, sum:               0 }}
  write_bytes:     {{ samples: {count:11}, unit: bytes, min:    4096, max: 4194304, sum: {written:15} }}
  getattr:         {{ samples:           7, unit:  reqs }}
  quotactl:        {{ samples:           2, unit:  reqs }}
  get_info:        {{ samples:           1, unit:  reqs }}
"""
_NEW = """\
- job_id:          {job}
  snapshot_time:   {at:.9f} secs.nsecs
  start_time:      {start:.9f} secs.nsecs
  elapsed_time:    {elapsed:.9f} secs.nsecs
  read_bytes:      {{ samples:           0, unit: bytes, min:        0, max:        0, sum:       0, sumsq:       0, hist: {{  }} }}
  write_bytes:     {{ samples: {count:11}, unit: bytes, min:     4096, max:  4194304, sum: {written:16}, sumsq: 9, hist: {{ 4K: 1, 1M: 6 }} }}
  write:           {{ samples:          85, unit: usecs, min:       96, max:      354, sum:            16840, sumsq:      3813568 }}
  punch:           {{ samples:          85, unit: usecs, min:       96, max:      354, sum:            16840, sumsq:      3813568 }}
"""  # noqa: E501


def entry(job: str, second: float, written: int, *, since: float = -900, form: str = "new") -> str:
    """Return an entry of an OST: with nanosecond times and histograms (new form), or without (old form)."""
    return (_NEW if form == "new" else _OLD).format(
        job=job,
        whole=int(T + second),
        at=T + second,
        start=T + since,
        elapsed=second - since,
        count=written // 4096,
        written=written,
    )


def header(target: str = "fs1-OST0001", kind: str = "obdfilter") -> str:
    return f"{kind}.{target}.job_stats=\njob_stats:\n"


def read_text(folder: Path, text: str, name: str = "stats", reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / name, text, reading)


def told(rows: pl.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return rows.select(names).rows()


# ---- the three forms and unsupported files


@pytest.mark.parametrize("form", ["old", "new"])
def test_entry_has_its_time_bytes_and_operations(tmp_path: Path, form: str) -> None:
    rows, scrapes, refused = read_text(tmp_path, f"{T + 9}\n" + header() + entry("43", 5, 8192, form=form))
    assert refused.is_empty()
    (row,) = rows.to_dicts()
    assert (row["sampled_at"], row["scraped_at"]) == (at(5), at(9))
    assert (row["filesystem"], row["component"], row["target"]) == ("fs1", "ost", "fs1-OST0001")
    assert (row["job_key"], row["collector"]) == ("43", None)
    assert (row["total_read_bytes"], row["total_written_bytes"]) == (0, 8192)
    assert (row["total_read_count"], row["total_write_count"]) == (0, 2)
    if form == "new":
        assert (row["counter_started_at"], row["total_punch_count"], row["total_other_count"]) == (at(-900), 85, None)
    else:
        assert (row["counter_started_at"], row["total_getattr_count"], row["total_other_count"]) == (None, 7, 3)
    assert told(scrapes, "scraped_at", "target", "entry_count", "is_job_scrape") == [(at(9), "fs1-OST0001", 1, True)]


def test_parts_of_renames_are_not_counted_twice(tmp_path: Path) -> None:
    counted = "".join(
        f"  {name}: {{ samples: {count}, unit: usecs, min: 1, max: 9, sum: 9, sumsq: 9 }}\n"
        for name, count in [
            ("rename", 9), ("samedir_rename", 4), ("crossdir_rename", 5), ("parallel_rename_file", 3), ("migrate", 2)
        ]
    )  # fmt: skip
    text = header("fs1-MDT0000", "mdt") + f"- job_id:          cp.0\n  snapshot_time:   {T}\n" + counted
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert told(rows, "component", "job_key", "total_rename_count", "total_other_count") == [("mdt", "cp.0", 9, 2)]


REAL = ("lctl-jobstats_metrics_cmd_with_mock-0.txt", "old-OST0000.job_stats", "old-MDT0000.job_stats")


@pytest.mark.parametrize("name", REAL)
def test_real_statistics_match_totals_of_independent_count(shared_data: Path, name: str) -> None:
    path = shared_data / "jobstats" / name
    rows, scrapes, refused = read_counters(SOURCE, path)
    expected = list(naive.entries(path.read_text(), path.stem))
    assert refused.is_empty()
    assert scrapes["entry_count"].sum() == rows.height == len(expected) > 14
    assert rows["job_key"].to_list() == [found["job_key"] for found in expected]
    for column in COUNTS:
        given = [found[column] for found in expected if column in found]
        assert (rows[column].sum(), rows[column].count()) == (sum(given), len(given)), column
    assert rows["sampled_at"].max() == scrapes["scraped_at"][0]


@pytest.mark.parametrize("name", ["ex8761-lctl.txt", "params-6.2.0-r9.txt"])
def test_parameters_without_job_statistics_are_refused(shared_data: Path, name: str) -> None:
    path = shared_data / "jobstats" / name
    # they have statistics of targets, too
    assert recognize(read_head(path)).name == "lustre-stats"
    with pytest.raises(InputRefused, match="but no job statistics"):
        read_counters(SOURCE, path)


def test_parameters_between_job_statistics_are_skipped(tmp_path: Path) -> None:
    others = "obdfilter.fs1-OST0001.num_exports=9\nldlm.namespaces.stats=\nsnapshot_time 12\n  - { id: 3 }\n"
    text = others + header() + entry("1", 1, 4096) + others + header("fs1-OST0002") + entry("1", 2, 4096) + others
    rows, scrapes, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert told(rows, "target", "sampled_at") == [("fs1-OST0001", at(1)), ("fs1-OST0002", at(2))]
    assert scrapes["scraped_at"].unique().to_list() == [at(2)]


# ---- target and file system


def test_target_of_file_without_headers_is_taken_from_its_name(tmp_path: Path) -> None:
    text = "job_stats:\n" + entry("1", 1, 4096)
    rows, _, _ = read_text(tmp_path, text, "scratch-MDT000a.job_stats")
    assert told(rows, "filesystem", "component", "target") == [("scratch", "mdt", "scratch-MDT000a")]
    with pytest.raises(InputRefused, match="the target of the job"):
        read_text(tmp_path, text, "stats")
    with pytest.raises(InputRefused, match="without a header or time"):
        read_text(tmp_path, text + text, "scratch-MDT000a.job_stats")
    rows, scrapes, _ = read_text(tmp_path, f"{T + 2}\n{text}{T + 4}\n{text}", "scratch-MDT000a.job_stats")
    assert (rows.height, scrapes["scraped_at"].to_list()) == (1, [at(2), at(4)])


def test_filesystem_is_taken_from_settings_or_target_pattern(tmp_path: Path) -> None:
    text = header("s1-work-OST0001") + entry("1", 1, 4096)
    for reading, found in [
        (Reading(), "s1-work"),
        (Reading(filesystem="home"), "home"),
        (Reading(target_pattern="^s1-(.+)-OST"), "work"),
        (Reading(target_pattern="^(nothing)"), "default"),
    ]:
        rows, scrapes, _ = read_text(tmp_path, text, reading=reading)
        assert rows["filesystem"].to_list() == scrapes["filesystem"].to_list() == [found]


# ---- several snapshots: changed entries and times of reading


def rounds(*written: int | None, before: bool = True, form: str = "new") -> str:
    """Return a snapshot of a target every 10 s: a job that never changes, and a job with these bytes or absent."""
    text = ""
    for number, value in enumerate(written):
        text += f"{T + 10 * number}\n" * before + header() + entry("still", -5, 4096, form=form)
        text += "" if value is None else entry("7", 10 * number - 2 if value else -3, value, form=form)
    return text


@pytest.mark.parametrize("form", ["old", "new"])
def test_unchanged_entries_are_counted_but_have_no_rows(tmp_path: Path, form: str) -> None:
    rows, scrapes, refused = read_text(tmp_path, rounds(0, 0, 4096, 4096, None, 4096, form=form))
    assert refused.is_empty()
    assert scrapes["entry_count"].to_list() == [2, 2, 2, 2, 1, 2]
    assert scrapes["scraped_at"].to_list() == [at(10 * number) for number in range(6)]
    own = rows.filter(pl.col("job_key") == "7")
    # the fourth snapshot has another time of change, the sixth has the job again
    assert own["scraped_at"].to_list() == [at(0), at(20), at(30), at(50)]
    assert rows.filter(pl.col("job_key") == "still")["scraped_at"].to_list() == [at(0)]


def test_time_since_start_of_server_is_replaced_by_time_of_reading(tmp_path: Path) -> None:
    since_start = entry("7", 0, 4096).replace(str(T)[:4], "")
    text = f"{T + 5}\n{header()}{since_start}{T + 15}\n{header()}{since_start.replace('4096', '8192')}"
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert rows.select("sampled_at", "scraped_at", "counter_started_at").rows() == [
        (at(5), at(5), None),
        (at(15), at(15), None),
    ]
    rows, scrapes, refused = read_text(tmp_path, text.replace(f"{T + 5}\n", "").replace(f"{T + 15}\n", ""))
    assert rows.is_empty()
    assert scrapes.is_empty()
    assert refused["reason"].str.contains("The time of the reading is unknown").all()


def test_growing_elapsed_time_is_not_a_change(tmp_path: Path) -> None:
    """Servers count elapsed_time up to the time of the query (lctl by netlink, Lustre 2.16)."""
    old = f"{T + 5 + 900:.0f}"
    asked = [
        entry("1", 5, 4096).replace("elapsed_time:    905.", f"elapsed_time:    {900 + second}.") for second in (7, 17)
    ]
    rows, scrapes, _ = read_text(tmp_path, "".join(header() + text for text in asked))
    assert old.isdigit()
    assert told(rows, "sampled_at", "scraped_at") == [(at(5), at(7))]
    assert scrapes["scraped_at"].to_list() == [at(7), at(17)]


def test_every_entry_has_a_row_on_a_new_day(tmp_path: Path) -> None:
    midnight = 46953
    text = f"{T + midnight - 10}\n{header()}{entry('1', 5, 4096)}{T + midnight}\n{header()}{entry('1', 5, 4096)}"
    rows, _, _ = read_text(tmp_path, text)
    assert rows["scraped_at"].to_list() == [at(midnight - 10), at(midnight)]
    untimed = header() + entry("1", 5, 4096) + entry("2", midnight - 1, 4096)
    rows, _, _ = read_text(tmp_path, untimed + header() + entry("1", 5, 4096) + entry("2", midnight, 8192))
    assert told(rows, "job_key", "scraped_at") == [
        ("1", at(midnight - 1)), ("2", at(midnight - 1)), ("1", at(midnight)), ("2", at(midnight))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "zone", "second"),
    [
        (f"{T + 3}", None, 3),
        (f"{T + 3}.25", None, 3.25),
        (f"# {T + 3}", None, 3),
        ("2024-08-08T10:57:30Z", None, 3),
        ("2024-08-08T12:57:30+02:00", None, 3),
        ("2024-08-08 12:57:30", "Europe/Berlin", 3),
    ],
)
def test_line_before_snapshot_sets_time_of_reading(tmp_path: Path, line: str, zone: str | None, second: float) -> None:
    text = line + "\n" + header() + entry("1", 1, 4096) + header("fs1-OST0002") + entry("1", 2, 4096)
    _, scrapes, refused = read_text(tmp_path, text, reading=Reading(time_zone=zone))
    assert refused.is_empty()
    assert scrapes["scraped_at"].to_list() == [at(second)] * 2


@pytest.mark.parametrize("name", [f"oss1-{T + 3}.txt", "oss1.2024-08-08T10:57:30Z", "20240808-105730.txt", "stats"])
def test_time_of_single_snapshot_is_taken_from_name_or_newest_entry(tmp_path: Path, name: str) -> None:
    text = header() + entry("1", 1, 4096) + header("fs1-OST0002") + entry("1", 3 if name == "stats" else 2, 4096)
    _, scrapes, _ = read_text(tmp_path, text, name, reading=Reading(time_zone="UTC"))
    assert scrapes["scraped_at"].to_list() == [at(3)] * 2


def test_target_without_jobs_is_a_scrape_without_entries(tmp_path: Path) -> None:
    empty = "obdfilter.fs1-OST0003.job_stats=job_stats:\n"
    rows, scrapes, refused = read_text(tmp_path, empty + header() + entry("1", 1, 4096) + empty)
    assert (rows.height, refused.height) == (1, 1)
    assert told(scrapes, "target", "entry_count") == [("fs1-OST0003", 0), ("fs1-OST0001", 1)]
    assert "The time of the reading is unknown" in refused["reason"][0]


# ---- damaged input


@pytest.mark.parametrize("lines", range(1, 9))
def test_truncated_entry_is_refused(tmp_path: Path, lines: int) -> None:
    cut = "".join(entry("44", 5, 8192).splitlines(keepends=True)[:lines])
    rows, _, refused = read_text(tmp_path, header() + entry("43", 5, 8192) + cut)
    expected = ["43"] if lines < 8 else ["43", "44"]
    assert rows["job_key"].to_list() == expected
    assert refused.height == 2 - len(expected)


@pytest.mark.parametrize("stray", ["obdfilter.fs1-OST0007.jobs_tats=\nob_stats:\n", "1723114652\n", "x"])
def test_entries_after_damaged_line_are_refused_until_next_header(tmp_path: Path, stray: str) -> None:
    damaged = entry("44", 5, 8192).replace("  punch", stray + "  punch") + entry("45", 5, 8192) + entry("46", 5, 8192)
    text = header() + entry("43", 5, 8192) + damaged + header("fs1-OST0002") + entry("43", 5, 8192)
    rows, _, refused = read_text(tmp_path, text)
    assert told(rows, "target", "job_key") == [("fs1-OST0001", "43"), ("fs1-OST0002", "43")]
    assert refused["reason"].str.contains("^The line is not in|^2 entries from here on").all()


def test_counter_with_an_overlong_name_refuses_its_entry(tmp_path: Path) -> None:
    merged = entry("44", 5, 8192).replace("  read_bytes: ", "  elapsed_timead_bytes: ")
    rows, _, refused = read_text(tmp_path, header() + entry("43", 5, 8192) + merged)
    assert rows["job_key"].to_list() == ["43"]
    assert refused["reason"].to_list() == ["The line is not in Lustre's format; its entry is refused."]


def test_unparsable_lines_are_refused_individually(tmp_path: Path) -> None:
    rows, _, refused = read_text(tmp_path, "what is this?\n" + header() + entry("1", 1, 4096) + "\n")
    assert (rows.height, refused["line"].to_list()) == (1, [1])
    _, _, refused = read_text(tmp_path, "mgs.fs1-OST0001.job_stats=\njob_stats:\n" + entry("1", 1, 4096) + header())
    assert refused["line"].to_list() == [1, 11]


def test_entry_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobstats_text, "BLOCK_BYTES", 1000)
    with apply_limits(Limits(max_line_bytes=100)), pytest.raises(InputRefused, match="longer than 100 bytes"):
        read_text(tmp_path, header() + entry("1", 1, 4096) + "  x\n" * 100)


def test_entries_without_known_time_are_counted_by_round(tmp_path: Path) -> None:
    untimed = rounds(0, 0, 4096, None, 4096, 8192, before=False)
    assert read_text(tmp_path, untimed)[1]["entry_count"].to_list() == [2, 2, 2, 1, 2, 2]


def good_text() -> str:
    return (
        rounds(0, 0, 4096, None, 4096, 8192)
        + header("fs1-OST0002")
        + "".join(entry(f"{number}", 60 + number, 4096 * number) for number in range(9))
    )


# ---- landing


def test_landed_parts_are_partitioned_by_day_of_reading(tmp_path: Path) -> None:
    midnight = 46953
    path = tmp_path / "stats"
    path.write_text("".join(f"{T + midnight + 10 * n}\n{header()}{entry('1', 5, 4096)}" for n in range(-2, 2)))
    landed = land(Store(tmp_path / "warehouse"), path, lambda _: Reading()).landing
    parts = sorted((part.table, part.day, part.row_count) for part in landed.parts)
    assert parts == [
        ("counter_samples", "2024-08-08", 1),
        ("counter_samples", "2024-08-09", 1),
        ("scrapes", "2024-08-08", 2),
        ("scrapes", "2024-08-09", 2),
    ]


def test_table_is_not_recognized_as_job_statistics() -> None:
    assert not SOURCE.sniff(Head("x", b"time,job_stats\n1,2\n"))
