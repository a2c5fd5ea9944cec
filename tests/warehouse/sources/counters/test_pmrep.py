"""Test the source of pmrep's CSV.

The texts are the output of pcp 6.0.3. The disk is a real one, logged by pmlogger; GPFS and Lustre archives have the
names, types, semantics and units of pmdagpfs and pmdalustre, and values that are easy to check.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.counters.pmrep import SOURCE
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.budget import examples
from tests.warehouse.sources.batch_reading import UTC_ZONE, read_input, read_written

#: pmrep -a gpfs -o csv -k -r -t 30s -Z UTC gpfs.fsios.read_bytes gpfs.fsios.write_bytes gpfs.fsios.reads …
GPFS_COUNTERS = """\
Host,Interval,Time,"gpfs.fsios.read_bytes-scratch","gpfs.fsios.read_bytes-home","gpfs.fsios.write_bytes-scratch","gpfs.fsios.write_bytes-home","gpfs.fsios.reads-scratch","gpfs.fsios.reads-home","gpfs.fsios.writes-scratch","gpfs.fsios.writes-home"
cn01,0,2026-03-02 10:00:00 UTC+0,5000000000,10000000000,0,0,10,10,0,0
cn01,30,2026-03-02 10:00:30 UTC+0,5000000000,10000000000,0,0,10,10,0,0
cn01,30,2026-03-02 10:01:00 UTC+0,5300000000,10600000000,60000000,120000000,310,310,60,60
cn01,30,2026-03-02 10:01:30 UTC+0,5900000000,11800000000,60000000,120000000,910,910,60,60
cn01,30,2026-03-02 10:02:00 UTC+0,5900000000,11800000000,960000000,1920000000,910,910,960,960
cn01,30,2026-03-02 10:02:30 UTC+0,6000000000,12000000000,960000000,1920000000,1010,1010,960,960
"""
#: the same archive without -r, in the zone CET-1CEST
GPFS_RATES = """\
Host,Interval,Time,"gpfs.fsios.read_bytes-scratch","gpfs.fsios.read_bytes-home","gpfs.fsios.write_bytes-scratch","gpfs.fsios.write_bytes-home","gpfs.fsios.reads-scratch","gpfs.fsios.reads-home","gpfs.fsios.writes-scratch","gpfs.fsios.writes-home"
cn01,0,2026-03-02 11:00:00 UTC+1,,,,,,,,
cn01,30,2026-03-02 11:00:30 UTC+1,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000
cn01,30,2026-03-02 11:01:00 UTC+1,10000000.000,20000000.000,2000000.000,4000000.000,10.000,10.000,2.000,2.000
cn01,30,2026-03-02 11:01:30 UTC+1,20000000.000,40000000.000,0.000,0.000,20.000,20.000,0.000,0.000
cn01,30,2026-03-02 11:02:00 UTC+1,0.000,0.000,30000000.000,60000000.000,0.000,0.000,30.000,30.000
cn01,30,2026-03-02 11:02:30 UTC+1,3333333.333,6666666.667,0.000,0.000,3.333,3.333,0.000,0.000
"""
#: pmrep -a lustre -o csv -x -r -t 30s -Z CET-1CEST lustre.llite
LUSTRE_COUNTERS = """\
#
#  archive: lustre
#     host: cn01
# timezone: UTC+1 (reporting, current is UTC+0)
#    start: Mon Mar  2 11:00:00 2026
#      end: Mon Mar  2 11:02:30 2026
#  metrics: 4 (4 instances)
#  samples: 6
# interval: 30.0 sec
# duration: 00:02:30
#
Time,"lustre.llite.write_bytes.count-work","lustre.llite.write_bytes.total-work","lustre.llite.read_bytes.count-work","lustre.llite.read_bytes.total-work"
2026-03-02 11:00:00,0,0,1,5000000000
2026-03-02 11:00:30,0,0,1,5000000000
2026-03-02 11:01:00,6,60000000,4,5300000000
2026-03-02 11:01:30,6,60000000,9,5900000000
2026-03-02 11:02:00,15,960000000,9,5900000000
2026-03-02 11:02:30,15,960000000,10,6000000000
"""
#: pmrep -a node7 -o csv -k -r -t 2s -Z UTC disk.dev.read_bytes disk.dev.write_bytes disk.dev.read disk.dev.write
DISK_COUNTERS = """\
Host,Interval,Time,"disk.dev.read_bytes-vda","disk.dev.write_bytes-vda","disk.dev.read-vda","disk.dev.write-vda"
node7,0,2026-11-29 01:57:27 UTC+0,,,,
node7,2,2026-11-29 01:57:29 UTC+0,49390781,105529970,5451386,4068752
node7,2,2026-11-29 01:57:31 UTC+0,49390917,105532509,5451401,4069332
node7,2,2026-11-29 01:57:33 UTC+0,49391529,105537207,5451493,4069557
node7,2,2026-11-29 01:57:35 UTC+0,49393598,105539339,5451727,4069723
"""
#: the same archive without -k and -r
DISK_RATES = """\
Time,"disk.dev.read_bytes-vda","disk.dev.write_bytes-vda","disk.dev.read-vda","disk.dev.write-vda"
2026-11-29 01:57:27,,,,
2026-11-29 01:57:29,,,,
2026-11-29 01:57:31,68.000,1269.500,7.500,290.000
2026-11-29 01:57:33,306.000,2349.000,46.000,112.500
2026-11-29 01:57:35,1034.500,1066.000,117.000,83.000
2026-11-29 01:57:37,718.000,2141.500,52.000,42.500
"""
HEADER = 'Host,Interval,Time,"gpfs.fsios.read_bytes-lake","gpfs.fsios.write_bytes-lake"\n'
KEYS = ["filesystem", "component", "target"]
BYTES = ["total_read_bytes", "total_written_bytes"]


def line(read: int | str, written: int | str = 8192, second: int = 2, host: str = "cn1") -> str:
    return f"{host},30,2026-03-01 12:00:{second:02} UTC+0,{read},{written}\n"


def at(clock: str, day: str = "2026-03-02") -> datetime:
    return datetime.fromisoformat(f"{day}T{clock}+00:00").astimezone(UTC)


def read_text(folder: Path, text: str, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "pcp.csv", text, reading)


def read_polls(
    folder: Path, text: str, reading: Reading | None = None, name: str = "pcp.csv"
) -> tuple[pl.DataFrame, ...]:
    path = folder / name
    path.write_text(text)
    assert recognize(read_head(path)) == SOURCE
    return read_input(SOURCE, path, reading or Reading(), POLLS)


def test_counters_of_a_node_are_those_of_its_filesystems(tmp_path: Path) -> None:
    rows, scrapes, refused = read_text(tmp_path, GPFS_COUNTERS)
    assert refused.is_empty()
    scratch = rows.filter(filesystem="scratch")
    assert scratch.select(KEYS).unique().rows() == [("scratch", "client", "cn01")]
    # nothing changed at 10:00:30
    assert scratch.select("scraped_at", *BYTES, "total_read_count", "total_write_count").rows() == [
        (at("10:00:00"), 5_000_000_000, 0, 10, 0),
        (at("10:01:00"), 5_300_000_000, 60_000_000, 310, 60),
        (at("10:01:30"), 5_900_000_000, 60_000_000, 910, 60),
        (at("10:02:00"), 5_900_000_000, 960_000_000, 910, 960),
        (at("10:02:30"), 6_000_000_000, 960_000_000, 1010, 960),
    ]
    assert scrapes.filter(filesystem="scratch")["scraped_at"].to_list() == [
        at("10:00:00") + timedelta(seconds=30 * number) for number in range(6)
    ]


def test_rates_are_polls_at_right_edges_in_the_stated_zone(tmp_path: Path) -> None:
    rows, refused = read_polls(tmp_path, GPFS_RATES)
    assert refused.is_empty()
    scratch = rows.filter(filesystem="scratch")
    assert scratch.select("controller", "interval_s", "flag").unique().rows() == [("cn01", 30.0, None)]
    names = ["polled_at", "read_bytes_per_s", "write_bytes_per_s", "read_iops", "write_iops"]
    # 300 MB and 60 MB in the 30 s before 10:01; there is no rate at the first time
    assert scratch.select(names).rows() == [
        (at("10:00:30"), 0.0, 0.0, 0.0, 0.0),
        (at("10:01:00"), 1e7, 2e6, 10.0, 2.0),
        (at("10:01:30"), 2e7, 0.0, 20.0, 0.0),
        (at("10:02:00"), 0.0, 3e7, 0.0, 30.0),
        (at("10:02:30"), 3333333.333, 0.0, 3.333, 0.0),
    ]
    assert rows.filter(filesystem="home")["read_bytes_per_s"].to_list() == [0.0, 2e7, 4e7, 0.0, 6666666.667]


def test_rates_and_counters_of_an_archive_have_the_same_volume(tmp_path: Path) -> None:
    counters, *_ = read_text(tmp_path, GPFS_COUNTERS)
    rates, _ = read_polls(tmp_path, GPFS_RATES)
    for name, rate in zip(BYTES, ("read_bytes_per_s", "write_bytes_per_s"), strict=True):
        ends = counters.group_by("filesystem").agg(pl.col(name).max() - pl.col(name).min()).sort("filesystem")
        volumes = rates.group_by("filesystem").agg((pl.col(rate) * pl.col("interval_s")).sum()).sort("filesystem")
        assert volumes[rate].to_list() == pytest.approx(ends[name].to_list(), rel=1e-9)


def test_comments_state_host_and_zone(tmp_path: Path) -> None:
    rows, _, refused = read_text(tmp_path, LUSTRE_COUNTERS)
    assert refused.is_empty()
    assert rows.select(KEYS).unique().rows() == [("work", "client", "cn01")]
    assert rows.select("scraped_at", *BYTES, "total_write_count").row(1) == (
        at("10:01:00"), 5_300_000_000, 60_000_000, 6
    )  # fmt: skip


def test_disks_count_in_kibibytes(tmp_path: Path) -> None:
    rows, _, refused = read_text(tmp_path, DISK_COUNTERS, Reading(filesystem="nvme"))
    assert refused.is_empty()
    assert rows.select(KEYS).unique().rows() == [("nvme", "server", "node7:vda")]
    first, second = rows.select(*BYTES, "total_read_count", "total_write_count").rows()[:2]
    assert first == (49390781 * 1024, 105529970 * 1024, 5451386, 4068752)
    rates, _ = read_polls(tmp_path, DISK_RATES, UTC_ZONE, "node7.csv")
    assert rates["controller"].unique().to_list() == ["node7:vda"]
    # the interval is the most frequent distance between times
    assert rates["interval_s"].unique().to_list() == [2.0]
    names = ["read_bytes_per_s", "write_bytes_per_s", "read_iops", "write_iops"]
    moved = [2.0 * rate for rate in rates.filter(polled_at=at("01:57:31", "2026-11-29")).select(names).row(0)]
    assert moved == [after - before for after, before in zip(second, first, strict=True)]


def test_interval_of_rates_is_inferred_for_each_host(tmp_path: Path) -> None:
    text = DISK_RATES + HEADER + "".join(line("1.0", "2.0", second, "cn9").replace(",30,", ",0,") for second in (1, 8))
    rows, refused = read_polls(tmp_path, text + line("1.0", "2.0", host="lone").replace(",30,", ",0,"), UTC_ZONE)
    assert dict(rows.select("controller", "interval_s").unique().iter_rows()) == {"pcp:vda": 2.0, "cn9": 7.0}
    assert refused["reason"].str.contains("of one time only").to_list() == [True]


def test_local_times_need_a_zone(tmp_path: Path) -> None:
    with pytest.raises((InputRefused, UsageError), match="zone"):
        read_polls(tmp_path, DISK_RATES)
    rows, _ = read_polls(tmp_path, DISK_RATES, Reading(time_zone="Asia/Kolkata"))
    assert rows["polled_at"].min() == at("01:57:31", "2026-11-29") - timedelta(hours=5, minutes=30)


@pytest.mark.parametrize(
    ("stamp", "hours"),
    [("UTC+0", 0), ("UTC+1", -1), ("UTC-8", 8), ("UTC+5:30", -5.5), ("UTC+5:45", -5.75), ("UTC-3:30", 3.5)],
)
def test_offset_is_that_of_pmrep(tmp_path: Path, stamp: str, hours: float) -> None:
    rows, _, refused = read_text(tmp_path, HEADER + line(1).replace("UTC+0", stamp))
    assert refused.is_empty()
    assert rows["scraped_at"].to_list() == [at("12:00:02", "2026-03-01") + timedelta(hours=hours)]


def test_epoch_seconds_need_no_zone(tmp_path: Path) -> None:
    text = 'Time,"gpfs.fsios.read_bytes-lake"\n1772366402,5\n'
    rows, _, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    assert rows.select("scraped_at", "target", *BYTES).rows() == [(at("12:00:02", "2026-03-01"), "pcp", 5, None)]


def test_rates_without_decimals_are_refused(tmp_path: Path) -> None:
    rounded = GPFS_RATES.replace(".000", "").replace(".333", "").replace(".667", "")
    with pytest.raises(InputRefused, match="fall in 3 of 5 lines"):
        read_text(tmp_path, rounded)
    restarted = HEADER + "".join(line(value, second=number) for number, value in enumerate((5, 9, 1, 4)))
    rows, _, refused = read_text(tmp_path, restarted)
    assert refused.is_empty()
    assert rows["total_read_bytes"].to_list() == [5, 9, 1, 4]


def test_new_header_changes_columns_and_a_missing_direction_is_flagged(tmp_path: Path) -> None:
    later = (
        'Host,Interval,Time,"disk.all.aveq","gpfs.fsios.read_bytes-pond"\ncn2,30,2026-03-01 12:01:00 UTC+0,1.0,5.0\n'
    )
    rows, refused = read_polls(tmp_path, HEADER + line("1.0", "2.0") + later)
    assert refused.is_empty()
    names = ["controller", "filesystem", "read_bytes_per_s", "write_bytes_per_s", "flag"]
    assert rows.select(names).rows() == [("cn1", "lake", 1.0, 2.0, None), ("cn2", "pond", 5.0, None, "missing")]


def test_lines_of_one_second_are_readings_of_their_own(tmp_path: Path) -> None:
    rows, scrapes, refused = read_text(tmp_path, HEADER + line(3) + line(4))
    assert refused.is_empty()
    assert rows["total_read_bytes"].to_list() == [3, 4]
    assert scrapes["entry_count"].to_list() == [1]


def test_site_may_name_a_metric(tmp_path: Path) -> None:
    reading = Reading(columns={"total_read_bytes": "cifs.bytes.read"})
    text = HEADER.replace("gpfs.fsios.write_bytes", "cifs.bytes.read").replace("gpfs.fsios.read_bytes-lake", "mem.free")
    rows, _, _ = read_text(tmp_path, text + line(3, 4), reading)
    assert rows.select("filesystem", *BYTES).rows() == [("lake", 4, None)]
    with pytest.raises(InputRefused, match="None of the columns"):
        read_text(tmp_path, text + line(3, 4))


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), min_size=1, max_size=8), st.booleans())
def test_values_round_trip(tmp_path: Path, steps: list[tuple[int, int]], is_disk: bool) -> None:
    values = [(sorted(each[0] for each in steps)[n], sorted(each[1] for each in steps)[n]) for n in range(len(steps))]
    header, factor = (HEADER, 1)
    if is_disk:
        header, factor = header.replace("gpfs.fsios", "disk.dev"), 1024
    text = header + "".join(line(*each, second=number) for number, each in enumerate(values))
    rows, scrapes, refused = read_text(tmp_path, text)
    fits = [all(value * factor < 2**63 for value in each) for each in values]
    assert refused["line"].to_list() == [number + 2 for number, is_read in enumerate(fits) if not is_read]
    assert scrapes.height == sum(fits)
    expected = [tuple(value * factor for value in each) for each, is_read in zip(values, fits, strict=True) if is_read]
    assert rows.select(BYTES).rows() == [each for n, each in enumerate(expected) if n == 0 or each != expected[n - 1]]
