"""The night publishes a row per traced run and its network, conserves bytes, and re-runs change nothing."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.estimates.networks import builder as networks_flow
from iosig.expectations.gate import check
from iosig.flows.schedule import Schedule
from iosig.flows.steps import networks
from iosig.flows.steps.plan import make_plan
from iosig.flows.steps.run import Run
from iosig.settings.model import NetworkSettings, Settings
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.networks import NETWORK_EDGES, NETWORK_RUNS
from iosig.warehouse.contracts.traces import TRACE_FILES
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows.traced import build_batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.manifests import scans
from iosig.warehouse.store.store import Store, write_parquet
from tests.flows.traced_runs import land, trace
from tests.nights import Cli, land_files, query_release, run_night

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_checks_throughout")]

PAGE = Path(__file__).parents[2] / "docs" / "networks-sql.md"
MB = 1_000_000.0
NAMES = tuple(table.name for table in networks.TABLES)
SHARED_LOG = "hdf5_diagonal_write_bytes_range_dxt.darshan"
#: a file on four targets, and a file without layout
STRIPED = build_batch(
    TRACE_FILES,
    {
        "file_number": [1],
        "path": ["/scratch/striped"],
        "mount": ["/scratch"],
        "stripe_bytes": [1_000_000],
        "osts": pl.Series([[3, 5, 7, 9]], dtype=pl.List(pl.Int64)),
    },
)


def ask(store: Store, release: Release, query: str) -> list[dict[str, Any]]:
    return query_release(store, release, query).to_dicts()


def striped_run() -> list[Batch]:
    """Sixteen ranks on four hosts use four targets, across stripes; target 5 is slow, and one request is very long."""
    requests = []
    for number in range(480):
        rank, stripe = number % 16, number // 16 % 4
        time_s = 0.03 if stripe == 1 else 0.005
        requests.append(
            {
                "rank": rank,
                "host": f"n{rank // 4}",
                "file_number": 1,
                "direction": "write" if number % 2 else "read",
                "offset_bytes": stripe * 1_000_000 + (500_000 if stripe == 2 else 0),
                "request_bytes": MB,
                "start_s": 0.3 * (number // 16),
                "end_s": 0.3 * (number // 16) + time_s * (1 + 0.01 * rank),
            }
        )
    requests.append({"rank": 0, "host": "n0", "file_number": None, "direction": "write", "start_s": 3.0, "end_s": 5.0})
    batches = trace(started_min=30, duration_s=10.0, modules={"POSIX": {}}, requests=requests, process_count=16)
    return [*batches, STRIPED]


def shipped_log() -> Path:
    """Return the log with individual requests that ships with the Darshan wheel."""
    found = find_spec("darshan")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "examples" / "example_logs" / "ior_hdf5_example.darshan"


@dataclass(frozen=True)
class Night:
    """A warehouse after its night, and its traces' ids by name."""

    store: Store
    release: Release
    ids: dict[str, str]

    def ask(self, query: str) -> list[dict[str, Any]]:
        return ask(self.store, self.release, query)


def real_logs(request: pytest.FixtureRequest) -> list[Path]:
    """Return a real log of writing ranks, if the machine has it."""
    try:
        return [Path(request.getfixturevalue("shared_data")) / "darshan" / SHARED_LOG]
    except pytest.skip.Exception:
        return []


def events_table(path: Path) -> Path:
    """Write requests of eight ranks that pass through two I/O nodes to a storage node, which writes them."""
    lines = ["layer,node,rank,request_id,event,peer,start_s,end_s,bytes,direction"]
    for number in range(64):
        rank, at_s = number % 8, 0.1 * number
        ion, own = f"ion{rank // 4}", f"{rank},{number}"
        lines += [
            f"application,{rank},{own},request,,{at_s:.6f},{at_s + 0.09:.6f},4096,write",
            f"io_node,{ion},{own},send,fs1,{at_s + 0.01:.6f},{at_s + 0.02:.6f},4096,write",
            f"storage,fs1,{own},receive,{ion},{at_s + 0.015:.6f},{at_s + 0.03:.6f},4096,write",
            f"storage,fs1,{own},write,sd{number % 2},{at_s + 0.03:.6f},{at_s + 0.08:.6f},4096,write",
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def made_up_traces(store: Store) -> dict[str, str]:
    """Land a trace with a network and a trace without; return their ids by name."""
    return {
        "striped": land(store, "striped", striped_run()),
        "counters only": land(store, "counters only", trace(started_min=40, modules={"POSIX": {}})),
    }


def landed_traces(store: Store, logs: list[Path]) -> dict[str, str]:
    """Land synthetic traces, the wheel's log, and the real logs if present; return their ids by name."""
    ids = made_up_traces(store)
    for arrival in land_files(store, shipped_log(), *logs):
        assert arrival.landed is not None
        ids[Path(arrival.name).name] = arrival.landed.landing.trace_id
    return ids


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, quick_checks_throughout: None
) -> Night:
    """A night of traces with and without networks; must not be changed."""
    store = Store(tmp_path_factory.mktemp("networks") / "warehouse")
    events = events_table(tmp_path_factory.mktemp("events") / "events.csv")
    ids = landed_traces(store, [events, *real_logs(request)])
    return Night(store, run_night(store), ids)


# ---- published rows


def test_every_trace_has_one_row_in_network_runs(made: Night) -> None:
    found = {row["trace_id"]: row for row in made.ask("from network_runs")}
    assert set(found) == set(made.ids.values())
    assert found[made.ids["counters only"]]["outcome"] == "no_requests"
    assert {row["outcome"] for row in found.values()} == {"built", "no_requests"}
    striped = found[made.ids["striped"]]
    assert json.loads(striped["layers"]) == ["rank", "host", "target"]
    assert striped["node_counts"] == [16, 4, 5], "four targets, and what is not known"
    assert (striped["network_modules"], striped["request_count"], striped["window_count"]) == ("POSIX", 481, 64)
    assert striped["ended_on"].isoformat() == "2026-03-03"


def test_trace_without_network_is_in_no_other_table(made: Night) -> None:
    for name in NAMES[1:]:
        (row,) = made.ask(f"select count(*) as n from {name} where trace_id = '{made.ids['counters only']}'")
        assert row["n"] == 0, name


@pytest.mark.parametrize("table", networks.TABLES, ids=NAMES)
def test_network_tables_pass_their_checks(made: Night, table: Table) -> None:
    found = pl.DataFrame(made.ask(f"from {table.name}"), schema=frames.schema(table), infer_schema_length=None)
    assert frames.require(found, table).select(table.key).is_unique().all()
    # the real check, which the night's fixture replaces
    failed = check(table, found, {}).verdicts.filter(~pl.col("success") & (pl.col("severity") != "info"))
    assert failed["expectation"].to_list() == []


def test_bytes_over_edges_equal_requested_bytes(made: Night) -> None:
    over_edges = made.ask(
        "select trace_id, hop, sum(read_bytes) as read_bytes, sum(written_bytes) as written_bytes, "
        "sum(transfer_count) as transfers from network_edges where time_kind = 'service_time' group by all order by all"
    )
    of_events = {made.ids["events.csv"], made.ids["counters only"]}
    assert {row["trace_id"] for row in over_edges} == set(made.ids.values()) - of_events
    requested = {
        row["trace_id"]: row
        for row in made.ask(
            "select r.trace_id, count(*) as requests, "
            "coalesce(sum(request_bytes) filter (where direction = 'read'), 0)::bigint as read_bytes, "
            "coalesce(sum(request_bytes) filter (where direction = 'write'), 0)::bigint as written_bytes "
            "from trace_requests as r inner join network_runs as n "
            "on r.trace_id = n.trace_id and r.module = n.network_modules group by all"
        )
    }
    for row in over_edges:
        expected = requested[row["trace_id"]]
        assert (row["read_bytes"], row["written_bytes"]) == (expected["read_bytes"], expected["written_bytes"])
        assert row["transfers"] >= expected["requests"]


def test_histograms_count_each_transfer_once(made: Night) -> None:
    (row,) = made.ask(
        "select sum(transfer_count) as transfers, sum(list_sum(time_counts)) as timed, "
        "sum(list_sum(size_counts)) as sized from network_edges "
        f"where trace_id = '{made.ids['striped']}' and hop = 0"
    )
    assert row == {"transfers": 481, "timed": 481, "sized": 480}


def test_event_trace_has_latencies(made: Night) -> None:
    found = made.ask(
        "select hop, source_layer, target_layer, time_kind, sum(transfer_count) as transfers, "
        "sum(transfer_time_s) as time_s, sum(written_bytes) as written_bytes from network_edges "
        f"where trace_id = '{made.ids['events.csv']}' group by all order by hop"
    )
    assert [(row["time_kind"], row["transfers"], row["written_bytes"]) for row in found] == [
        ("latency", 64, 64 * 4096),
        ("latency", 64, 64 * 4096),
        ("write_time", 64, 64 * 4096),
    ]
    # until the first event of the I/O node; from the start of its send to the end of the receive; duration of a write
    assert [row["time_s"] for row in found] == pytest.approx([64 * 0.01, 64 * 0.02, 64 * 0.05])


@pytest.mark.parametrize("name", [SHARED_LOG])
def test_real_logs_have_networks(made: Night, shared_data: Path, name: str) -> None:
    assert (shared_data / "darshan" / name).is_file()
    (row,) = made.ask(f"from network_runs where trace_id = '{made.ids[name]}'")
    assert row["outcome"] == "built"
    assert row["request_count"] > 0


def test_patterns_cover_single_windows_and_the_whole_run(made: Night) -> None:
    found = made.ask(f"from network_patterns where trace_id = '{made.ids['striped']}' and metric = 'time'")
    assert {(row["source_layer"], row["target_layer"]) for row in found} == {("rank", "host"), ("host", "target")}
    assert [row["hop"] for row in found if row["is_whole_run"]] in ([0, 1], [1, 0])
    assert all(row["window_end_s"] > row["window_start_s"] for row in found)


def test_bottlenecks_name_their_nodes(made: Night) -> None:
    first = made.ask(
        f"from network_bottlenecks where trace_id = '{made.ids['striped']}' and metric = 'time' order by bottleneck"
    )[0]
    assert (first["source_layer"], first["source_node"], first["target_layer"]) == ("rank", "0", "target")
    assert (first["start_s"], first["value"]) == (3.0, 2.0)


# ---- repeated nights and other settings


@pytest.mark.long
def test_disabled_networks_are_built_later_with_equal_results(
    made: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "warehouse")
    ids = made_up_traces(store)
    off = run_night(store, Settings.model_validate({"networks": {"is_nightly": False}}))
    for name in NAMES:
        assert ask(store, off, f"select count(*) as n from {name}") == [{"n": 0}], name
    assert ask(store, off, "select count(*) as n from trace_jobs") == [{"n": len(ids)}]
    # Each run is a chunk.
    monkeypatch.setattr(networks, "_CHUNK_RUNS", 1)
    later = run_night(store)
    assert later.dates == off.dates
    for name in NAMES:
        query = f"from {name} where trace_id in {tuple(ids.values())} order by all"
        assert ask(store, later, query) == made.ask(query), name


def test_night_without_traces_skips_the_network_step(landed_site: Store, made: Night) -> None:
    run = Run(landed_site, Settings(), make_plan(landed_site, Settings()))
    assert run.plan.job_days
    assert Schedule(run, [networks.STEP]).pop() is None
    assert networks.STEP.writes == networks.TABLES
    assert not set(NAMES) - made.release.snapshots.keys()


def landed_of(made: Night, name: str) -> dict[str, list[pl.LazyFrame]]:
    """Return the landed rows of a trace, by table."""
    lots = [lot for lot in landing.ledger(made.store) if lot.trace_id == made.ids[name]]
    return {
        table.name: scans(
            made.store, table, [(lot, part) for lot in lots for part in lot.parts if part.table == table.name]
        )
        for table in networks.LANDED
    }


def test_settings_limit_windows_and_nodes_of_a_network(made: Night) -> None:
    settings = NetworkSettings(window_count=4, max_node_count=2)
    found = networks.build_network_rows(JOB | {"process_count": 16}, landed_of(made, "striped"), settings)
    (row,) = found[NETWORK_RUNS].to_dicts()
    assert (row["window_count"], row["group_sizes"], row["node_counts"]) == (4, [8, 2, 4], [2, 2, 2])
    (fine,) = made.ask(f"select sum(written_bytes) as n from network_edges where trace_id = '{made.ids['striped']}'")
    assert found[NETWORK_EDGES]["written_bytes"].sum() == fine["n"]


# ---- failures


#: a traced run as the step sees it
JOB: dict[str, Any] = {"ended_on": None, "trace_id": "t", "source_file": "f", "process_count": 2}
NOTHING: dict[str, list[Path]] = {table.name: [] for table in networks.LANDED}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (InputRefused("It is damaged.", "Mend it."), "It is damaged."),
        (ValueError("Two nodes have the same label."), "Two nodes have the same label."),
        (KeyError("x"), "x"),
        (pl.exceptions.InvalidOperationError("conversion failed"), "conversion failed"),
        (OverflowError("too large"), "too large"),
    ],
)
def test_failing_trace_has_a_row_with_the_reason(
    fault: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(networks_flow, "build_trace_network", fail)
    ((table, found),) = networks.build_network_rows(JOB, NOTHING, NetworkSettings()).items()
    (row,) = found.to_dicts()
    assert (table, row["outcome"], row["request_count"]) == (NETWORK_RUNS, "refused", 0)
    assert reason in row["reason"]


def test_full_disk_is_not_blamed_on_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(networks_flow, "build_trace_network", fail)
    with pytest.raises(OSError, match="No space"):
        networks.build_network_rows(JOB, NOTHING, NetworkSettings())


@pytest.mark.parametrize(
    ("strange", "outcomes"),
    [
        ({"request_bytes": 1e300, "end_s": 1e300}, {"built", "refused"}),
        ({"request_bytes": 1.0, "start_s": -1e300, "end_s": 1e300}, {"built", "refused"}),
        ({"request_bytes": 1.0, "rank": 2**62}, {"built", "refused"}),
        ({"request_bytes": 1.0, "start_s": 5.0, "end_s": 1.0}, {"built"}),
        ({"request_bytes": 0.0, "end_s": 0.0}, {"built"}),
        ({"request_bytes": None, "offset_bytes": None, "file_number": None, "host": None}, {"built"}),
        ({"request_bytes": 1.0, "host": "'); drop table x; --<img src=x onerror=alert(1)>\n"}, {"built"}),
        ({"request_bytes": 1.0, "rank": -1}, {"built"}),
        ({"request_bytes": 1.0, "start_s": 1e15, "end_s": 1e15 + 0.125}, {"built"}),
    ],
    ids=["huge", "endless", "far", "backwards", "empty", "unknown", "matched", "all-ranks", "late"],
)
def test_malformed_requests_still_yield_a_row(strange: dict[str, Any], outcomes: set[str], tmp_path: Path) -> None:
    usual = {"host": "n1", "file_number": 1, "offset_bytes": 0, "direction": "write", "start_s": 0.0, "end_s": 1.0}
    batches = [*trace(started_min=5, requests=[usual | strange] * 2), STRIPED]
    landed = NOTHING | {
        batch.table.name: [
            pl.scan_parquet(write_parquet(batch.rows, batch.table, tmp_path / f"{batch.table.name}.parquet"))
        ]
        for batch in batches
    }
    found = networks.build_network_rows(JOB, landed, NetworkSettings())
    (row,) = found[NETWORK_RUNS].to_dicts()
    assert row["outcome"] in outcomes, row["reason"]
    assert (row["outcome"] == "refused") == (row["reason"] is not None)
    if row["outcome"] == "built":
        assert found[NETWORK_EDGES].filter(hop=0)["transfer_count"].sum() == 2


# ---- queries of the documentation page


def queries() -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each query of the page."""
    title = ""
    for block in re.split(r"\n\n", PAGE.read_text(encoding="utf-8")):
        if block.startswith("## "):
            title = block[3:]
        elif block.startswith("```sh"):
            words = shlex.split(block.removeprefix("```sh").removesuffix("```"))
            assert words[:2] == ["iosig", "sql"]
            yield title, words[2]


QUERIES = list(queries())


@pytest.mark.parametrize("place", range(len(QUERIES)), ids=[title.replace(" ", "-") for title, _ in QUERIES])
def test_documented_query_returns_rows(made: Night, place: int) -> None:
    title, query = QUERIES[place]
    assert query == query.lower()
    found = made.ask(query)
    if title != "Runs" and "outlier" not in query:
        assert found, "the night has what it asks for"


def answers(made: Night, title: str) -> list[list[dict[str, Any]]]:
    return [made.ask(query) for known, query in QUERIES if known == title]


def test_documented_query_finds_the_slowest_target(made: Night) -> None:
    slowest = [row for row in answers(made, "Storage targets")[0] if row["target_node"].startswith("OST")]
    assert slowest[0]["target_node"] == "OST 5"
    assert sum(row["transfers"] for row in slowest if row["runs"] == 1) >= 480


def test_documented_quantile_is_within_a_bin_of_the_exact_quantile(made: Night) -> None:
    told = {row["target_node"]: row["p95_s"] for row in answers(made, "Histograms")[0]}
    (row,) = made.ask(
        "select quantile_disc(end_s - start_s, 0.95) as p95_s from trace_requests "
        f"where trace_id = '{made.ids['striped']}' and offset_bytes = 1000000"
    )
    assert 2 ** (-1 / 4) <= told["OST 5"] / row["p95_s"] <= 2 ** (1 / 4)


def test_documented_query_runs_through_the_command(made: Night, cli: Cli) -> None:
    code, out, _ = cli("--warehouse", made.store.root, "sql", QUERIES[0][1], "--format", "jsonl")
    assert code == 0
    assert json.loads(out.splitlines()[0])["target_node"]
