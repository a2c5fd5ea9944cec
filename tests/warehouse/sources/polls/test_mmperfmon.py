from __future__ import annotations

import tarfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import open_decompressed, read_head
from iosig.warehouse.sources.polls import mmperfmon
from iosig.warehouse.sources.polls.mmperfmon import SOURCE
from iosig.warehouse.sources.protocol import Head, Reading, recognize
from tests.budget import one_in
from tests.naive.sources.polls import mmperfmon as naive
from tests.warehouse.sources.batch_reading import read_input, read_written

DISK = "nsd1|GPFSNSDDisk|{}|gpfs_nsdds_{}"
FS = "node1|GPFSFilesystem|cluster|{}|gpfs_fs_{}"


def query(keys: list[str], cells: list[list[Any]], *, width: int = 3, begin: str = "2019-05-15-12:01:00") -> str:
    """Return a query as mmperfmon prints it, with at most `width` columns per block."""
    first = datetime.strptime(begin, "%Y-%m-%d-%H:%M:%S").replace(tzinfo=UTC)
    text = "\nLegend:\n" + "".join(f" {number}:\t{key}\n" for number, key in enumerate(keys, start=1))
    for start in range(0, len(keys), width):
        names = [key.rpartition("|")[2] for key in keys[start : start + width]]
        text += f" \nRow           Timestamp {' '.join(names)} \n"
        for number, row in enumerate(cells):
            stamp = (first + timedelta(minutes=number)).strftime("%Y-%m-%d-%H:%M:%S")
            text += f"{number + 1:3} {stamp} {' '.join(f'{cell!s:>9}' for cell in row[start : start + width])} \n"
    return text


def read_text(folder: Path, text: str, reading: Reading | None = None) -> tuple[pl.DataFrame, ...]:
    return read_written(SOURCE, folder / "mmperfmon.out", text, reading, read=read_input)


def totals(text: str) -> Counter[tuple[str, str]]:
    """Return the bytes of each node and disk or file system, in each direction."""
    found: Counter[tuple[str, str]] = Counter()
    for whose, direction, _, value in naive.moved(text):
        node, _, *names = whose.split("|")
        found[f"{node}:{names[-1]}", direction] += int(value or 0)
    return found


def landed(polls: pl.DataFrame) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for row in polls.to_dicts():
        for direction in ("read", "write"):
            if (rate := row[f"{direction}_bytes_per_s"]) is not None:
                named = row["controller"].removesuffix(":read").removesuffix(":write")
                whose = named if ":" in named else f"{named}:{row['filesystem']}"
                found[whose, direction] += round(rate * row["interval_s"])
    return found


@pytest.mark.parametrize("name", ["mmperfmon-nsdds.txt.gz", "mmperfmon-gpfsNumberOperations.txt.gz"])
def test_real_queries_match_totals_of_independent_count(shared_data: Path, name: str) -> None:
    path = shared_data / "gpfs" / name
    assert recognize(read_head(path)) == SOURCE
    polls, refused = read_input(SOURCE, path)
    with open_decompressed(path) as file:
        text = file.read().decode()
    assert refused.is_empty()
    assert landed(polls) == totals(text)
    assert sum(totals(text).values()) > 10**9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["micro", "mini"])
def test_real_archives_match_totals_of_independent_count(shared_data: Path, name: str) -> None:
    path = shared_data / "gpfs" / f"mmperfmon.2019-05-15-{name}.tgz"
    assert recognize(read_head(path)) == SOURCE
    polls, refused = read_input(SOURCE, path)
    expected: Counter[tuple[str, str]] = Counter()
    with tarfile.open(path) as packed:
        for member in packed:
            if (file := packed.extractfile(member)) is not None:
                expected += totals(file.read().decode())
    assert refused.is_empty()
    assert +landed(polls) == +expected
    assert len(+expected) > 50


def test_archive_is_read_entry_by_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "all.tgz"
    with tarfile.open(path, "w:gz") as packed:
        for number, text in enumerate((good_text(1), good_text(2).rstrip(), good_text(1).replace("d0|", "d9|"))):
            (tmp_path / f"{number}.out").write_text(text)
            packed.add(tmp_path / f"{number}.out", f"read/{number}.out")
    assert recognize(read_head(path)) == SOURCE
    polls, refused = read_input(SOURCE, path)
    assert (polls.height, refused["line"].to_list()) == (5 + 8 + 5, [21])
    assert sorted(polls["controller"].unique()) == ["nsd1:d0:read", "nsd1:d1:read", "nsd1:d9:read"]
    monkeypatch.setattr(mmperfmon, "MAX_BYTES", 300)
    with pytest.raises(InputRefused, match="entry of the archive is longer"):
        read_input(SOURCE, path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputRefused):
        read_input(SOURCE, path)


def test_query_without_storage_metrics_is_refused(shared_data: Path) -> None:
    path = shared_data / "gpfs" / "mmperfmon-usage.txt.gz"
    assert recognize(read_head(path)) == SOURCE
    with pytest.raises(InputRefused, match="None of the columns counts bytes"):
        read_input(SOURCE, path)


def test_bucket_is_a_poll_at_its_right_edge(tmp_path: Path) -> None:
    keys = [FS.format("home", name) for name in ("read_ops", "write_ops", "bytes_read", "bytes_written")]
    polls, refused = read_text(
        tmp_path, query([*keys, FS.format("home", "oc")], [[60, 120, 6000, 600, 1], ["null", 0, 0, "null", 2]]),
        Reading(time_zone="America/Los_Angeles"),
    )  # fmt: skip
    assert refused.is_empty()
    at = datetime(2019, 5, 15, 19, 1, tzinfo=UTC)
    names = [
        "polled_at", "filesystem", "controller", "interval_s", "read_bytes_per_s", "write_bytes_per_s", "read_iops",
        "write_iops", "flag",
    ]  # fmt: skip
    assert polls.select(names).rows() == [
        (at, "home", "node1", 60.0, 100.0, 10.0, 1.0, 2.0, None),
        (at + timedelta(minutes=1), "home", "node1", 60.0, 0.0, None, None, 0.0, "missing"),
    ]


def test_separate_read_and_write_queries_are_separate_controllers(tmp_path: Path) -> None:
    both = [
        query([DISK.format(disk, metric) for disk in ("d1", "d2")], [[60, 120], [180, 240]])
        for metric in ("bytes_read", "bytes_written")
    ]
    polls, refused = read_text(tmp_path, "".join(both), Reading(time_zone="UTC", filesystem="scratch"))
    assert refused.is_empty()
    assert polls["filesystem"].unique().to_list() == ["scratch"]
    assert sorted(polls["controller"].unique()) == ["nsd1:d1:read", "nsd1:d1:write", "nsd1:d2:read", "nsd1:d2:write"]
    assert polls["read_bytes_per_s"].sum() == polls["write_bytes_per_s"].sum() == 10
    together = query([DISK.format("d1", name) for name in ("bytes_read", "bytes_written")], [[60, 120], [180, 240]])
    assert read_text(tmp_path, together)[0]["controller"].unique().to_list() == ["nsd1:d1"]


def good_text(disks: int = 7) -> str:
    keys = [DISK.format(f"d{number}", "bytes_read") for number in range(disks)]
    return query(keys, [[600 * (row + disk) for disk in range(disks)] for row in range(5)])


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    one_in(
        3,
        [
            (" 3:\tnsd1", " 4:\tnsd1", 2, "legend is damaged"),
            (" 3:\tnsd1", " x:\tnsd1", 2, "legend is damaged"),
            ("d1|gpfs_nsdds_bytes_read", "d1|gpfs_nsdds_bytes_reed", 2, "do not match the legend"),
            ("Timestamp gpfs_nsdds_bytes_read", "Timestamp", 2, "do not match the legend"),
            ("\nRow ", "\nRaw ", 2, "do not match the legend"),
        ],
    ),
)
def test_query_with_ambiguous_columns_is_refused_completely(
    tmp_path: Path, old: str, new: str, line: int, reason: str
) -> None:
    text = good_text()
    assert old in text
    polls, refused = read_text(tmp_path, text.replace(old, new, 1) + good_text(1))
    assert refused.select("line").rows() == [(line,)]
    assert reason in refused["reason"][0]
    assert polls["controller"].unique().to_list() == ["nsd1:d0:read"]


def test_ambiguous_local_times_are_refused(tmp_path: Path) -> None:
    text = query([DISK.format("d", "bytes_read")], [[n] for n in range(4)], begin="2019-10-27-02:58:00")
    polls, refused = read_text(tmp_path, text, Reading(time_zone="Europe/Berlin"))
    assert (polls.height, refused["line"].to_list()) == (2, [6, 7])


def test_single_bucket_is_refused_because_its_length_is_unknown(tmp_path: Path) -> None:
    polls, refused = read_text(tmp_path, query([DISK.format("d", "bytes_read")], [[5]]))
    assert (polls.height, refused.height) == (0, 1)
    assert "one bucket only" in refused["reason"][0]


def test_key_with_two_values_for_a_bucket_is_refused(tmp_path: Path) -> None:
    polls, refused = read_text(tmp_path, query([DISK.format("d", "bytes_read")] * 2, [[5, 6], [7, 8]]))
    assert (polls.height, refused["reason"].to_list()) == (0, ["A key has two values for one bucket."] * 2)


def test_overlong_query_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmperfmon, "MAX_BYTES", 500)
    with pytest.raises(InputRefused, match="longer than 500 bytes"):
        read_text(tmp_path, good_text())


def test_other_text_is_not_recognized_as_query() -> None:
    for text in (b"Legend:\nred: 1\n", b"a,b\n1,2\n", b""):
        assert not SOURCE.sniff(Head("x", text))
