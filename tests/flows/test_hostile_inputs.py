"""Inputs with names that are special to a glob, a URL or an encoding land as they do under plain names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.store.store import Store
from tests.nights import land_files

#: one input per kind of reader, by its path below the folder of real measurements
INPUTS = (
    *("lmt/lmtdb-reset.sqlite3", "lmt/snx11025_2018-01-28.h5lmt", "lmt/snx11025_2018-01-28.hdf5"),
    *("dftracer/test-trace.pfw.gz", "tmio/8.jsonl", "tmio/384.msgpack"),
    *(
        "darshan/mpi-io-test-x86_64-3.0.0.darshan",
        "recorder/ior_posix_chunk",
        "ccr-gpfs/chemistry-1455991-gpfs-writes.csv",
    ),
)
NAMES = ("w[1]*? #%41;\\$HOME'\"=~\n", "a[1]", "hive=1", "file:", "caf\udce9")


def landed(shared_data: Path, folder: Path, prefix: str) -> list[tuple[str, int]]:
    """Land inputs from a folder under names with a prefix; return the format and rows of each."""
    folder.mkdir(parents=True)
    paths = []
    for name in INPUTS:
        source = shared_data / name
        paths.append(folder / f"{prefix}{source.name}")
        (shutil.copytree if source.is_dir() else shutil.copy)(source, paths[-1])
    polls = folder / f"{prefix}polls.parquet"
    rows = {"polled_at": ["2026-03-03T00:00:00Z", "2026-03-03T00:00:05Z"], "controller": ["c1", "c1"]}
    rates = {"read_bytes_per_s": [1.0, 2.0], "write_bytes_per_s": [1.0, 2.0]}
    pl.DataFrame(rows | rates).with_columns(pl.col("polled_at").str.to_datetime(time_zone="UTC")).write_parquet(
        polls.open("wb")
    )
    found = []
    for path in (*paths, polls):
        store = Store(folder.parent / "warehouse" / str(len(found)))
        arrivals = land_files(store, path, time_zone="UTC", filesystem="lake")
        landings = [arrival.landed.landing for arrival in arrivals if arrival.landed is not None]
        # the folder of a recorded run also holds a page that is no input
        assert len(landings) >= 1, [arrival.refusal for arrival in arrivals]
        found.append((landings[0].format, sum(landing.row_count() for landing in landings)))
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if place else pytest.mark.slow) for place, name in enumerate(NAMES)],
)
def test_input_with_a_hostile_name_lands_as_under_a_plain_name(name: str, shared_data: Path, tmp_path: Path) -> None:
    expected = landed(shared_data, tmp_path / "plain" / "in", "")
    assert landed(shared_data, tmp_path / "other" / name, name) == expected
    assert sorted(os.listdir(tmp_path / "other")) == sorted([name, "warehouse"])
