"""Test the source of `lctl get_param *.stats`; texts follow lprocfs_stats_seq_show in Lustre's sources."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.polls.lustre_stats import SOURCE
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.rows.field_use import record_fields
from tests.budget import examples
from tests.warehouse.sources.batch_reading import read_input, read_written

T = 1723117000
OST = "obdfilter.scratch-OST0000.stats"
RATES = ["polled_at", "controller", "read_bytes_per_s", "write_bytes_per_s", "flag"]


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T + second, UTC)


def reading(
    second: int, read: int | None, written: int | None, name: str = OST, fraction: str = "100000000", unit: str = "n"
) -> str:
    """Return a reading; a counter that is None has no line."""
    counters = "".join(
        f"{label:<25} {value // 4096} samples [bytes] 4096 1048576 {value} {value * 4096}\n"
        for label, value in (("read_bytes", read), ("write_bytes", written))
        if value is not None
    )
    return (
        f"{name}=\nsnapshot_time             {T + second}.{fraction} secs.{unit}secs\n{counters}"
        "statfs                    7 samples [usecs] 1 9 20 80\nping                      3 samples [reqs]\n"
    )


def read_text(
    folder: Path, text: str, options: Reading | None = None, name: str = "oss1.stats"
) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / name, text, options, read=read_input)


def test_published_case_has_the_rise_between_readings(shared_data: Path) -> None:
    rows, refused = read_input(SOURCE, shared_data / "cases" / "ost-stats" / "a.txt")
    assert refused.is_empty()
    assert rows.height == 5
    assert set(
        rows.select("filesystem", "controller", "interval_s", "read_bytes_per_s", "write_bytes_per_s").rows()
    ) == {("scratch", "scratch-OST0000", 10.0, 0.0, 10485760.0)}
    assert rows["write_iops"].to_list() == [10.0] * 5


def test_targets_of_a_round_share_its_time(tmp_path: Path) -> None:
    other = "obdfilter.scratch-OST0001.stats"
    rounds = [
        f"{T + second}\n" + reading(second, second * 4096, 0) + reading(second, 0, second * 8192, other, "150000000")
        for second in (0, 10, 20)
    ]
    # the second target is missing in the last round
    last = reading(30, 40 * 4096, 0)
    rows, refused = read_text(tmp_path, "".join(rounds) + last)
    assert refused.is_empty()
    assert rows.select(RATES).rows() == [
        *(
            (at(second + 0.1), "scratch-OST0000", 4096.0 * (second < 25) + 8192.0 * (second > 25), 0.0, None)
            for second in (10, 20, 30)
        ),
        *((at(second + 0.1), "scratch-OST0001", 0.0, 8192.0, None) for second in (10, 20)),
    ]


def test_absent_counter_is_zero_and_a_restart_a_gap(tmp_path: Path) -> None:
    steps = [(0, None, 8192), (10, 40960, 8192), (20, 81920, None), (30, 81920, 4096)]
    rows, _ = read_text(tmp_path, "".join(reading(*step) for step in steps))
    assert rows.select(RATES[2:]).rows() == [(4096.0, 0.0, None), (None, None, "reset"), (0.0, 409.6, None)]
    assert rows["read_iops"].to_list() == [1.0, None, 0.0]


def test_mount_is_named_after_the_file(tmp_path: Path) -> None:
    mount = "llite.lake-ffff88103a5b9000.stats"
    text = reading(0, 0, 0, mount) + reading(10, 4096, 0, mount)
    rows, _ = read_text(tmp_path, text, name="node17.2024-08-08.txt")
    assert rows.select("filesystem", "controller").rows() == [("lake", "node17:lake-ffff88103a5b9000")]
    rows, _ = read_text(tmp_path, text, Reading(filesystem="mine"))
    assert rows["filesystem"].to_list() == ["mine"]


def test_microseconds_of_old_versions_are_not_padded(tmp_path: Path) -> None:
    text = reading(0, 0, 0, fraction="5", unit="u") + reading(10, 4096, 0, fraction="500000", unit="u")
    rows, _ = read_text(tmp_path, text)
    assert rows.select("polled_at", "interval_s").rows() == [(at(10.5), 10.499995)]


def test_time_line_replaces_times_since_the_start_of_the_server(tmp_path: Path) -> None:
    text = "".join(f"{T + s}\n" + reading(s, s, 0).replace(f"{T + s}.1", f"{40 + s}.1") for s in (0, 10))
    rows, _ = read_text(tmp_path, text)
    assert rows.select("polled_at", "read_bytes_per_s").rows() == [(at(10), 1.0)]
    untimed = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("1723"))
    with pytest.raises(InputRefused, match="two readings"):
        read_text(tmp_path, untimed)


@pytest.mark.parametrize("value", ["9" * 20, ""])
def test_interval_spans_a_damaged_reading(tmp_path: Path, value: str) -> None:
    damaged = reading(10, 0, 81920).replace("1048576 81920 ", f"1048576 {value} ")
    rows, refused = read_text(tmp_path, reading(0, 0, 0) + damaged + reading(20, 0, 163840) + reading(30, 0, 245760))
    assert rows.select("polled_at", "interval_s", "write_bytes_per_s").rows() == [
        (at(20.1), 20.0, 8192.0),
        (at(30.1), 10.0, 8192.0),
    ]
    assert refused["line"].to_list() == [7]


def test_lines_before_a_header_are_refused_and_other_parameters_skipped(tmp_path: Path) -> None:
    others = "obdfilter.scratch-OST0000.brw_stats=\nanything at all\nosd-ldiskfs.x.filesfree=5\n"
    text = "write_bytes 5 samples [bytes] 1 1 x\n" + others + "".join(reading(s, s, s) + others for s in (0, 10))
    rows, refused = read_text(tmp_path, text)
    assert rows.height == 1
    assert refused.select("line", "reason").rows() == [(1, "The line belongs to no target.")]


@pytest.mark.parametrize(
    "others",
    [
        "version=2.15.5\n",
        "version=\nlustre: 2.7.0\nkernel: patchless_client\nbuild:  2.7.0\n",
        "timeout=100\njobid_var=disable\nhealth_check=healthy\n",
        "obdfilter.scratch-OST0000.brw_stats=\nsnapshot_time:         1723117000.5 secs.nsecs\nread      |     write\n",
        "osd-ldiskfs.scratch-OST0000.filesfree=12345678\nost.OSS.ost.stats=\nreq_waittime 5 samples [usecs] x\n",
        "error: get_param: param_path 'ost/x': No such file or directory\n",
    ],
)
def test_other_parameters_are_ignored(tmp_path: Path, others: str) -> None:
    rounds = [others + reading(second, second * 4096, 0) + others for second in (0, 10)]
    rows, refused = read_text(tmp_path, "".join(rounds))
    assert refused.is_empty()
    assert rows.select(RATES).rows() == [(at(10.1), "scratch-OST0000", 4096.0, 0.0, None)]


def test_statistics_by_client_are_ignored_because_those_of_the_target_include_them(tmp_path: Path) -> None:
    export = OST.replace(".stats", ".exports.10.0.0.1@o2ib.stats")
    rounds = [reading(second, second * 4096, 0) + reading(second, second * 4096, 0, export) for second in (0, 10)]
    rows, refused = read_text(tmp_path, "".join(rounds))
    assert refused.is_empty()
    assert rows["controller"].to_list() == ["scratch-OST0000"]


def test_fields_that_are_not_taken_are_noted_without_targets(tmp_path: Path) -> None:
    others = "version=2.15.5\n" + "".join(f"obdfilter.scratch-OST000{n}.brw_stats=\nread | write\n" for n in (0, 1))
    with record_fields() as use:
        read_text(tmp_path, others + reading(0, 0, 0) + reading(10, 4096, 0))
    assert list(use.taken) == ["snapshot_time", "read_bytes", "write_bytes"]
    assert list(use.ignored) == ["statfs", "ping", "version", "obdfilter.*.brw_stats"]


def test_contradicting_readings_of_one_instant_are_refused(tmp_path: Path) -> None:
    rows, refused = read_text(
        tmp_path, reading(0, 0, 0) + reading(10, 4096, 0) + reading(10, 4096, 0) + reading(10, 5, 0)
    )
    assert rows.height == 1
    assert "another reading with other counters" in refused["reason"][0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (reading(0, 5, 5), "two readings"),
        ((reading(0, 5, 5) + reading(10, 5, 5)).replace(f"{OST}=\n", ""), "No header"),
    ],
)
def test_near_misses_are_refused_with_a_remedy(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InputRefused, match=reason) as refused:
        read_text(tmp_path, text)
    assert "lctl get_param" in refused.value.remedy


@settings(max_examples=examples(16), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(*[st.integers(0, 10**12)] * 4), min_size=2, max_size=8))
def test_rates_sum_to_the_last_minus_the_first_reading(tmp_path: Path, rises: list[tuple[int, ...]]) -> None:
    totals = [tuple(sum(step[place] for step in rises[: n + 1]) for place in range(4)) for n in range(len(rises))]
    text = "".join(
        reading(10 * n, *total[2 * ost : 2 * ost + 2], name=OST.replace("0000", f"000{ost}"))
        for n, total in enumerate(totals)
        for ost in range(2)
    )
    rows, refused = read_text(tmp_path, text)
    assert refused.is_empty()
    sums = rows.group_by("controller", maintain_order=True).agg(
        (pl.col(name) * pl.col("interval_s")).sum() for name in RATES[2:4]
    )
    expected = [last - first for first, last in zip(totals[0], totals[-1], strict=True)]
    assert [value for row in sums.sort("controller").rows() for value in row[1:]] == pytest.approx(expected)
