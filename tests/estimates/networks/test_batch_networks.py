"""Networks of many small runs built together equal the networks built separately."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from polars.testing import assert_frame_equal

from iosig.estimates.networks import batch_networks
from iosig.estimates.networks.batch_networks import COLUMNS, TooManyPiecesError, build_batch
from iosig.flows.steps import networks
from iosig.settings.model import NetworkSettings
from iosig.transforms.networks.network import NetworkParams
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.networks import NETWORK_RUNS
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_RECORDS, TRACE_REQUESTS
from tests.budget import examples

Landed = dict[Table, pl.DataFrame]


def table_of(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {"run": pl.Int64(), **{name: frames.schema(table)[name] for name in COLUMNS[table]}}
    return pl.DataFrame(rows, schema=schema, orient="row")


def requests_of(run: int, generator: np.random.Generator) -> list[dict[str, Any]]:
    rank_count = int(generator.choice([1, 3, 40]))
    has_hosts, is_reduced = generator.random(2) < (0.7, 0.1)
    start_s = generator.random() * 1e4
    found = []
    for number in range(int(generator.choice([0, 1, 5, 200]))):
        at_s = start_s + float(generator.random() ** 2) * 100.0
        rank = -1 if is_reduced and generator.random() < 0.5 else int(generator.integers(rank_count))
        known = generator.random(3) < 0.95
        time_s = float(np.exp(generator.normal(-3, 2))) * (generator.random() < 0.97)
        found.append(
            {
                "run": run,
                "request": number,
                "module": str(generator.choice(["POSIX", "MPIIO"])),
                "rank": rank,
                "host": f"n{rank // 4:02}" if has_hosts and known[0] else None,
                "file_number": int(generator.integers(4)) if known[1] else None,
                "direction": str(generator.choice(["read", "write"])),
                "offset_bytes": int(generator.integers(1 << 24)) if known[2] else None,
                "request_bytes": None
                if number % 50 == 7
                else float(generator.integers(1 << int(generator.choice([4, 23])))),
                "start_s": at_s,
                "end_s": at_s + time_s * (-1.0 if number % 90 == 8 else 1.0),
                "ost": None,
            }
        )
    return found


def files_of(run: int, generator: np.random.Generator) -> list[dict[str, Any]]:
    is_known = generator.random() < 0.7
    return [
        {
            "run": run,
            "file_number": number,
            "path": f"/scratch/{number}" if generator.random() < 0.8 else None,
            "mount": "/scratch" if is_known and generator.random() < 0.7 else None,
            "stripe_bytes": 1 << 20,
            "osts": generator.permutation(12)[:4].tolist() if is_known and number % 2 else None,
        }
        for number in range(int(generator.integers(4)))
    ]


def records_of(run: int, generator: np.random.Generator) -> list[dict[str, Any]]:
    found = []
    for module in ("MPIIO", "POSIX"):
        for file in range(int(generator.integers(3))):
            for rank in range(int(generator.choice([1, 40]))):
                moved = {"read_bytes": int(generator.integers(1 << 20)), "written_bytes": None}
                opened = {"collective_open_count": 1, "open_end_s": float(generator.random())}
                found.append({"run": run, "module": module, "file_number": file, "rank": rank} | moved | opened)
    return found


def landed_of(seed: int, count: int) -> tuple[Landed, list[int | None]]:
    generator = np.random.default_rng(seed)
    made: dict[Table, list[dict[str, Any]]] = {table: [] for table in COLUMNS}
    for run in range(count):
        made[TRACE_REQUESTS] += requests_of(run, generator)
        made[TRACE_FILES] += files_of(run, generator)
        made[TRACE_RECORDS] += records_of(run, generator)
    counts = [int(each) if each else None for each in generator.choice([0, 1, 40, 64], count)]
    return {table: table_of(table, rows) for table, rows in made.items()}, counts


def alone(landed: Landed, run: int, process_count: int | None) -> dict[Table, pl.DataFrame]:
    own = {table.name: [rows.filter(run=run).drop("run").lazy()] for table, rows in landed.items()}
    job = {"ended_on": None, "trace_id": "t", "source_file": "f", "process_count": process_count}
    return networks.build_network_rows(job, own, NetworkSettings(window_count=5))


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(15), deadline=None)
@pytest.mark.slow
def test_rows_equal_the_rows_of_each_run_built_alone(seed: int) -> None:
    landed, counts = landed_of(seed, 4)
    made = build_batch(landed, counts, NetworkParams(window_count=5))
    assert not made.left
    for run, count in enumerate(counts):
        for table, expected in alone(landed, run, count).items():
            names = [name for name in table.column_names if name not in networks._OWN]
            found = made.rows[table].filter(run=run).select(names)
            assert_frame_equal(found, expected.select(names), check_exact=True)


def test_runs_with_many_members_or_extreme_times_are_left_out() -> None:
    landed, _ = landed_of(1, 3)
    rows = {"request": 0, "module": "POSIX", "rank": 0, "direction": "read", "request_bytes": 1.0}
    odd = [
        rows | {"run": 0, "rank": 9, "start_s": 0.0, "end_s": 1.0},
        rows | {"run": 1, "start_s": -1e308, "end_s": 1e308},
        rows | {"run": 2, "start_s": 0.0, "end_s": 1.0},
    ]
    landed[TRACE_REQUESTS], landed[TRACE_RECORDS] = table_of(TRACE_REQUESTS, odd), table_of(TRACE_RECORDS, [])
    made = build_batch(landed, [None, None, 2], NetworkParams(max_node_count=9))
    assert made.left == [0, 1]
    assert made.rows[NETWORK_RUNS].select("run", "outcome").rows() == [(2, "built")]
    landed[TRACE_REQUESTS] = landed[TRACE_REQUESTS].clear()
    made = build_batch(landed, [None, 0, 2], NetworkParams())
    assert made.left == [1]
    assert made.rows[NETWORK_RUNS].select("run", "outcome").rows() == [(0, "no_requests"), (2, "no_requests")]


def test_too_many_stripe_pieces_raise_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    landed, counts = landed_of(2, 12)
    monkeypatch.setattr(batch_networks, "_MAX_PIECES", 10)
    with pytest.raises(TooManyPiecesError):
        build_batch(landed, counts, NetworkParams())
