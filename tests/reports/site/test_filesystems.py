"""File systems as data: rates to 5 %, gaps apart from silence, each day its own file."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, strategies as st

from reports.site import filesystems
from reports.site.filesystems import CODES_PER_OCTAVE, FIRST, GAP, LEAST_BYTES_PER_S, NOTHING, FilesystemFrames, coded
from reports.site.packing import file_hash
from tests.reports.site.test_packing import unpacked


@given(st.floats(LEAST_BYTES_PER_S, 1e13))
def test_a_code_tells_a_rate_to_5_percent(rate: float) -> None:
    (code,) = coded(np.array([rate]))
    assert abs(LEAST_BYTES_PER_S * 2 ** ((int(code) - FIRST) / CODES_PER_OCTAVE) / rate - 1) < 0.05


def test_what_is_not_known_is_not_nothing() -> None:
    assert coded(np.array([np.nan, 0.0, 1.0, 1e30])).tolist() == [GAP, NOTHING, FIRST, 255]


def frames_of(minutes: list[tuple[str, int, int, float, float]]) -> FilesystemFrames:
    schema = ["filesystem", "day", "minute", "read_bytes_per_s", "written_bytes_per_s"]
    part = [("lake", 3, "ann/ior/8", 0, 5e9), ("lake", 3, None, 287, 1e9)]
    run = ("lake", 3, "c", "7", datetime(1970, 1, 4, tzinfo=UTC), None, "ann", "ior", 8, None, 1.0, None)
    names = "filesystem day cluster job_id started_at ended_at user application node_count application_id"
    return FilesystemFrames(
        pl.DataFrame(minutes, schema=schema, orient="row"),
        pl.DataFrame(part, schema=["filesystem", "day", "application_id", "step", "explained_bytes"], orient="row"),
        pl.DataFrame([run], schema=[*names.split(), "explained_bytes", "own_bytes"], orient="row"),
    )


def test_every_day_with_polls_has_a_file_and_gaps_are_gaps() -> None:
    told = frames_of([("lake", 1, 0, 1e6, 2e6), ("lake", 3, 1439, 0.0, 1e9), ("pond", 1, 5, 1.0, 1.0)])
    found = {content.path: content for content in filesystems.contents(told)}
    lake = f"data/filesystem/{file_hash('lake')}"
    assert sorted(path for path in found if path.startswith(lake)) == [
        f"{lake}-1970-01-02.js", f"{lake}-1970-01-04.js", f"{lake}.js",
    ]  # fmt: skip
    whole: Any = unpacked(found[f"{lake}.js"])
    assert whole["days"] == ["1970-01-02", "1970-01-03", "1970-01-04"]
    codes = np.frombuffer(base64.b64decode(whole["written"]), np.uint8).reshape(3, 1440)
    assert [np.flatnonzero(row).tolist() for row in codes] == [[0], [], [1439]]
    day: Any = unpacked(found[f"{lake}-1970-01-04.js"])
    assert [(part["application_id"], sum(part["bytes"])) for part in day["parts"]] == [("ann/ior/8", 5e9), (None, 1e9)]
    assert day["runs"]["job_id"] == ["7"]
