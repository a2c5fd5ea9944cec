"""Test the ids of applications in converted files: a single cluster gives the id, several keep the former one."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.signatures import SIGNATURES
from iosig.warehouse.releases.conversion import convert_file, map_application_ids
from tests.sql.given import filled, rows

JOBS = """
    cluster user    application node_count is_application_run
    titan   ann     ior         8          yes
    titan   ann     ior         16         yes
    smoky   ann     ior         16         yes
    titan   site/bo a/b         4          yes
    titan   site/bo a/b         2          yes
    default eve     nyx         1          yes
    titan   eve     nyx         1          no
    default x@y     nyx         1          yes
    titan   .       nyx         1          yes
"""
NEW_IDS = {
    "ann/ior/8": "ann@titan/ior/8",
    "site%2Fbo/a/b/4": "site%2Fbo@titan/a/b/4",
    "site%2Fbo/a/b/2": "site%2Fbo@titan/a/b/2",
    "site%2Fbo/a/b/*": "site%2Fbo@titan/a/b/*",
    "x@y/nyx/1": "x%40y/nyx/1",
    "x@y/nyx/*": "x%40y/nyx/*",
}


def test_former_ids_map_to_ids_of_a_single_machine(tmp_path: Path) -> None:
    jobs = rows("stage.jobs", JOBS).drop("application_id")
    paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    jobs.head(2).write_parquet(paths[0])
    jobs.tail(-2).write_parquet(paths[1])
    assert map_application_ids(paths) == NEW_IDS
    assert map_application_ids([]) == {}


def test_converted_rows_keep_their_order_and_unmapped_ids(tmp_path: Path) -> None:
    ids = ["site%2Fbo/a/b/*", "ann/ior/16", "ann/ior/8", "gone/x/1", "ann/ior/8"]
    old = filled("transforms.signatures", pl.DataFrame({"application_id": ids}))
    old.write_parquet(tmp_path / "old.parquet")
    assert convert_file(SIGNATURES, tmp_path / "old.parquet", tmp_path / "new.parquet", NEW_IDS)
    converted = pl.read_parquet(tmp_path / "new.parquet")
    assert converted["application_id"].to_list() == [NEW_IDS.get(each, each) for each in ids]
    assert convert_file(SIGNATURES, tmp_path / "old.parquet", tmp_path / "same.parquet", {})
    assert pl.read_parquet(tmp_path / "same.parquet")["application_id"].to_list() == ids
