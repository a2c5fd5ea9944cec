from __future__ import annotations

import polars as pl
import pytest

from iosig.warehouse.contracts.counters import COUNTER_SAMPLES
from iosig.warehouse.sources.counters import samples
from iosig.warehouse.sources.protocol import Reading

T = 1723114650


@pytest.mark.parametrize(
    ("name", "zone", "second"),
    [
        (f"oss1-{T}.txt", "UTC", T),
        (f"{T}.5", "UTC", T + 0.5),
        ("oss1_2024-08-08T10:57:30Z.txt", "UTC", T),
        ("20240808T125730+0200", "UTC", T),
        ("20240808-125730.log", "Europe/Berlin", T),
        ("2024-08-08_10-57", "UTC", T - 30),
        ("oss12-OST0001.job_stats", "UTC", None),
        (f"{T}-{T + 60}.txt", "UTC", None),
        ("20249908-105730", "UTC", None),
        ("17231146501", "UTC", None),
    ],
)
def test_time_in_file_name_is_parsed_only_if_unambiguous(name: str, zone: str, second: float | None) -> None:
    assert samples.parse_time_in_name(name, zone) == (None if second is None else round(second * 1e6))


def test_every_operation_has_a_column_of_the_contract() -> None:
    assert samples.operation_column("mkdir") == "total_mkdir_count"
    assert samples.operation_column("read") == "total_read_count"
    assert samples.operation_column("quotactl") == "total_other_count"
    assert samples.operation_column("crossdir_rename") is None
    for name in ("open", "create_file", "fsync", "truncate", "migrate", "write"):
        assert samples.operation_column(name) in COUNTER_SAMPLES.column_names


def test_filesystem_is_derived_from_target_name() -> None:
    targets = pl.Series(["a-b-OST000c", "a-MDT0000", "gs02"])
    assert samples.find_filesystems(targets, Reading()).to_list() == ["a-b", "a", "default"]
    assert samples.find_filesystems(targets, Reading(filesystem="home")).to_list() == ["home"] * 3


def test_component_is_derived_from_target_name() -> None:
    targets = pl.Series(["fs1-OST0001", "MDT000a", "node7", "HOST1", None])
    assert samples.find_components(targets).to_list()[:4] == ["ost", "mdt", "server", "server"]


def test_job_ids_are_unquoted_and_unescaped() -> None:
    keys = pl.Series(["43", '"SLURM_JOB10:0:h"', r'"\x41.0"', r"\x41.0", r'"\x1b.0"', None, '"'])
    assert samples.unquote_job_ids(keys).to_list() == ["43", "SLURM_JOB10:0:h", "A.0", r"\x41.0", r"\x1b.0", "", '"']
