"""Networks of landed requests: nodes, edges, stripes and clocks, with golden numbers of real logs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.answers.single.networks import NetworkInput, read_network
from iosig.estimates.networks import builder
from iosig.estimates.networks.builder import NetworkResult, Query, build_network
from iosig.settings.model import Settings
from iosig.transforms.networks.network import Network, NetworkParams
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.traces import TRACE_FILES, TRACE_RECORDS, TRACE_REQUESTS
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.rows.traced import build_batch
from iosig.warehouse.store.store import write_parquet

MB = 1_000_000.0
PARAMS = NetworkParams(window_count=4)
FILES = build_batch(
    TRACE_FILES,
    {
        "file_number": [1, 2],
        "path": ["/striped", "/plain"],
        "mount": [None, "/home"],
        "filesystem_kind": ["lustre", "nfs"],
        "stripe_bytes": [1_000_000, None],
        "osts": pl.Series([[7, 9, 30], None], dtype=pl.List(pl.Int64)),
    },
).rows
RECORDS = frames.empty(TRACE_RECORDS)
#: the first request crosses stripes, from OST 7 to OST 9; the last is of an unknown file
REQUESTS: list[dict[str, Any]] = [
    {"rank": 0, "host": "n2", "file_number": 1, "offset_bytes": 500_000, "request_bytes": MB, "start_s": 0.0},
    {"rank": 1, "host": "n10", "file_number": 1, "offset_bytes": 2_000_000, "request_bytes": MB / 2, "start_s": 2.0},
    {"rank": 1, "host": "n10", "file_number": 2, "offset_bytes": 0, "request_bytes": 3 * MB, "start_s": 4.0},
    {"rank": 5, "host": "n2", "file_number": None, "request_bytes": None, "start_s": 6.0, "direction": "read"},
]


def landed(folder: Path, requests: list[dict[str, Any]], **known: Any) -> list[pl.LazyFrame]:
    """Land requests in two files; each request takes two seconds."""
    usual = {"module": "POSIX", "direction": "write", "is_nested": False, "is_async": False, "host": None} | known
    whole = [
        usual | {"request": number, "end_s": request["start_s"] + 2.0, "offset_bytes": None} | request
        for number, request in enumerate(requests)
    ]
    paths = []
    for number, part in enumerate(part for part in (whole[:1], whole[1:]) if part):
        frame = pl.DataFrame(part, infer_schema_length=None)
        paths.append(folder / f"{number}.parquet")
        write_parquet(
            build_batch(TRACE_REQUESTS, {name: frame[name] for name in frame.columns}).rows,
            TRACE_REQUESTS,
            paths[-1],
        )
    return [pl.scan_parquet(path) for path in paths]


def made_of(folder: Path, requests: list[dict[str, Any]], asked: Query | None = None, **known: Any) -> NetworkResult:
    return build_network(landed(folder, requests, **known), FILES, RECORDS, asked or Query(), PARAMS)


def network_in(made: NetworkResult) -> Network:
    assert made.network is not None
    return made.network


def edges_of(network: Network) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Return transfers, bytes read and bytes written by the labels of each edge."""
    labels = [layer.labels.to_list() for layer in network.layers]
    totals = network.totals.group_by("edge").agg(pl.col("transfer_count", "read_bytes", "written_bytes").sum())
    by_edge = {row[0]: row[1:] for row in totals.iter_rows()}
    return {
        (labels[hop][source], labels[hop + 1][target]): by_edge[number]
        for number, (hop, source, target) in enumerate(network.edges.iter_rows())
    }


def test_requests_pass_from_ranks_and_hosts_to_stripe_targets(tmp_path: Path) -> None:
    made = made_of(tmp_path, REQUESTS)
    assert made.outcome == "built"
    assert made.request_count == 4
    assert edges_of(network_in(made)) == {
        ("0", "n2"): (1, 0.0, MB),
        ("1", "n10"): (2, 0.0, 3.5 * MB),
        ("5", "n2"): (1, 0.0, 0.0),
        ("n2", "OST 7"): (1, 0.0, MB / 2),
        ("n2", "OST 9"): (1, 0.0, MB / 2),
        ("n10", "OST 30"): (1, 0.0, MB / 2),
        ("n10", "/home"): (1, 0.0, 3 * MB),
        ("n2", "unknown storage"): (1, 0.0, 0.0),
    }


def test_labels_are_in_numeric_order_and_idle_ranks_are_kept(tmp_path: Path) -> None:
    ranks, hosts, targets = (layer.labels.to_list() for layer in network_in(made_of(tmp_path, REQUESTS)).layers)
    assert ranks == ["0", "1", "2", "3", "4", "5"]
    assert hosts == ["n2", "n10"]
    assert targets == ["/home", "OST 7", "OST 9", "OST 30", "unknown storage"]


def test_stripes_take_their_share_of_the_time(tmp_path: Path) -> None:
    network = network_in(made_of(tmp_path, REQUESTS[:1]))
    by_hop = network.totals.join(network.edges.with_row_index("edge").cast({"edge": pl.Int32}), on="edge")
    assert sorted(by_hop.select("hop", "transfer_time_s").iter_rows()) == [(0, 2.0), (1, 1.0), (1, 1.0)]


def test_network_without_hosts_has_two_layers(tmp_path: Path) -> None:
    made = made_of(tmp_path, [request | {"host": None} for request in REQUESTS])
    assert [layer.name for layer in network_in(made).layers] == ["rank", "target"]
    assert "The trace names no hosts." in made.notes


def test_files_replace_unknown_storage(tmp_path: Path) -> None:
    files = FILES.with_columns(
        pl.lit(None, dtype).alias(name)
        for name, dtype in FILES.schema.items()
        if name in ("mount", "filesystem_kind", "osts")
    )
    made = build_network(landed(tmp_path, REQUESTS), files, RECORDS, Query(), PARAMS)
    assert [layer.name for layer in network_in(made).layers] == ["rank", "host", "file"]


def test_unknown_host_is_a_node(tmp_path: Path) -> None:
    made = made_of(tmp_path, [REQUESTS[0], REQUESTS[1] | {"host": None}])
    assert network_in(made).layers[1].labels.to_list() == ["n2", "unknown host"]


@pytest.mark.parametrize(
    ("layers", "labels"),
    [
        (("rank", "file"), ["/plain", "/striped", "unknown file"]),
        (("host", "filesystem"), ["/home", "lustre", "unknown storage"]),
        (("rank", "module", "file"), ["/plain", "/striped", "unknown file"]),
        (("host", "rank"), ["0", "1", "2", "3", "4", "5"]),
    ],
    ids=str,
)
def test_layers_can_be_chosen(tmp_path: Path, layers: Any, labels: list[str]) -> None:
    network = network_in(made_of(tmp_path, REQUESTS, Query(layers)))
    assert tuple(layer.name for layer in network.layers) == layers
    assert network.layers[-1].labels.to_list() == labels


@pytest.mark.parametrize("layers", [("rank",), ("rank", "rank"), ("rank", "ion")], ids=str)
def test_invalid_layers_are_refused(tmp_path: Path, layers: Any) -> None:
    with pytest.raises(UsageError, match="two or more different layers"):
        made_of(tmp_path, REQUESTS, Query(layers))


def test_modules_are_alternatives_and_never_summed(tmp_path: Path) -> None:
    both = [*REQUESTS, {"rank": 0, "request_bytes": 9 * MB, "start_s": 0.0, "module": "MPIIO"}]
    assert made_of(tmp_path, both).module == "POSIX"
    assert made_of(tmp_path, both, Query(module="MPIIO")).request_count == 1
    assert made_of(tmp_path, both, Query(("rank", "module"))).module == "MPIIO, POSIX"
    assert made_of(tmp_path, [both[-1], both[-1] | {"module": "HDF5", "request_bytes": 1.0}]).module == "MPIIO"
    with pytest.raises(UsageError, match="no requests of STDIO, only of MPIIO, POSIX"):
        made_of(tmp_path, both, Query(module="STDIO"))


def test_missing_requests_are_an_outcome() -> None:
    made = build_network([], FILES, RECORDS, Query(), PARAMS)
    assert (made.outcome, made.network, made.notes) == ("no_requests", None, ("The trace has no single requests.",))


def test_members_are_grouped_into_a_maximum_of_nodes(tmp_path: Path) -> None:
    requests = [{"rank": rank, "host": f"n{rank}", "start_s": 0.0, "request_bytes": MB} for rank in range(10)]
    made = build_network(landed(tmp_path, requests), FILES, RECORDS, Query(), NetworkParams(4, 4), process_count=12)
    ranks, hosts, _ = network_in(made).layers
    assert ranks.labels.to_list() == ["0-3", "4-7", "8-11"]
    assert (ranks.group_size, ranks.member_count) == (4, 12)
    assert hosts.labels.to_list() == ["n0 to n3", "n4 to n7", "n8 to n9"]
    assert [
        note for note in made.notes if "drawn as one" in note
    ] == ["4 consecutive ranks are drawn as one.", "4 consecutive hosts are drawn as one."]  # fmt: skip


def test_huge_rank_number_needs_little_memory(tmp_path: Path) -> None:
    requests = [{"rank": rank, "start_s": 0.0, "request_bytes": MB} for rank in (0, 1_000_000_000)]
    network = network_in(made_of(tmp_path, requests))
    assert network.layers[0].node_count <= PARAMS.max_node_count
    assert network.edges.filter(pl.col("hop") == 0).height == 2


def test_requests_of_all_ranks_are_one_node(tmp_path: Path) -> None:
    paths = landed(tmp_path, [{"rank": -1, "start_s": 0.0, "request_bytes": MB}])
    network = network_in(build_network(paths, FILES, RECORDS, Query(), PARAMS, process_count=8))
    assert network.layers[0].labels.to_list() == ["all ranks"]


def test_clocks_are_corrected_by_collective_opens(tmp_path: Path) -> None:
    offsets_s = np.array([-0.04, 0.0, 0.05])
    records = build_batch(
        TRACE_RECORDS,
        {
            "module": "MPIIO",
            "file_number": 1,
            "rank": [0, 1, 2],
            "collective_open_count": [1, 1, 1],
            "open_end_s": 10.0 + offsets_s,
        },
    ).rows
    requests = [{"rank": r, "start_s": 16.0 + o, "request_bytes": MB} for r, o in enumerate(offsets_s.tolist())]
    made = build_network(landed(tmp_path, requests), FILES, records, Query(), NetworkParams(8), process_count=3)
    assert made.skew is not None
    assert made.skew.outcome == "corrected"
    # 16 s is the edge of two windows: with corrected clocks, all three are on one side of it
    assert network_in(made).totals["window"].n_unique() == 1
    assert any("up to 90 ms" in note for note in made.notes)


def test_partial_trace_reports_its_covered_share(tmp_path: Path) -> None:
    records = build_batch(
        TRACE_RECORDS,
        {"module": "POSIX", "file_number": [1], "rank": 0, "read_bytes": 0, "written_bytes": 45_000_000},
    ).rows
    made = build_network(landed(tmp_path, REQUESTS), FILES, records, Query(), PARAMS)
    assert made.covered_ratio == pytest.approx(0.1)
    assert any("10.00% of the counted bytes" in note for note in made.notes)


def test_chunk_size_does_not_change_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = landed(tmp_path, REQUESTS)
    whole = network_in(build_network(paths, FILES, RECORDS, Query(), PARAMS))
    monkeypatch.setattr(builder, "_CHUNK_ROWS", 1)
    parts = network_in(build_network(paths, FILES, RECORDS, Query(), PARAMS))
    for name in ("edges", "counts", "totals", "timeline"):
        assert getattr(whole, name).equals(getattr(parts, name)), name


# ---- real logs


def golden(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "darshan" / "golden.csv").open() as file:
        return [row for row in csv.DictReader(file) if (shared_data / "darshan" / row["log"]).is_file()]


def network_of_log(path: Path, asked: Query | None = None) -> NetworkInput:
    return read_network(path, Settings.model_construct(), asked or Query(), NetworkParams())


@pytest.mark.long
def test_bytes_over_edges_equal_the_golden_numbers(shared_data: Path) -> None:
    compared = 0
    for row in golden(shared_data):
        counted = [float(row[f"DXTP_{way}_bytes"] or 0) for way in ("read", "write")]
        if not any(counted):
            continue
        network = network_of_log(shared_data / "darshan" / row["log"]).network
        totals = network.totals.join(network.edges.with_row_index("edge").cast({"edge": pl.Int32}), on="edge")
        for hop in range(network.hop_count):
            found = totals.filter(pl.col("hop") == hop).select(pl.col("read_bytes", "written_bytes").sum())
            assert list(found.row(0)) == counted, row["log"]
            compared += 1
    assert compared >= 14


@pytest.mark.slow
def test_jeanbez_log_has_the_expected_edges(shared_data: Path) -> None:
    (path,) = (shared_data / "darshan").glob("jeanbez_8_*")
    found = network_of_log(path)
    network = found.network
    assert [layer.node_count for layer in network.layers] == [1024, 64, 41]
    assert network.edges.group_by("hop").len().sort("hop").rows() == [(0, 1024), (1, 734)]
    assert network.totals["transfer_count"].sum() == 2 * 123_166
    assert found.made.skew is not None
    assert found.made.skew.outcome == "corrected"


@pytest.mark.slow
def test_jlbez_log_leads_to_its_file_system(shared_data: Path) -> None:
    (path,) = (shared_data / "darshan").glob("jlbez_IO_test5*")
    network = network_of_log(path).network
    assert [layer.node_count for layer in network.layers[:2]] == [192, 32]
    assert network.layers[2].labels.to_list() == ["/gpfs/alpine"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("e3sm_io_heatmap_only.darshan", "needs single requests"),
        ("empty_log.darshan", "has no records"),
    ],
)
def test_logs_without_requests_are_refused_with_a_remedy(shared_data: Path, name: str, reason: str) -> None:
    with pytest.raises(InputRefused, match=reason) as told:
        network_of_log(shared_data / "darshan" / name)
    assert "DXT_ENABLE_IO_TRACE" in told.value.remedy


def test_partial_log_reports_its_covered_share(shared_data: Path) -> None:
    found = network_of_log(shared_data / "darshan" / "partial_data_dxt.darshan")
    assert found.made.covered_ratio == pytest.approx(0.0655, abs=1e-4)
    assert any("6.55% of the counted bytes" in note for note in found.made.notes)


def test_recorder_traces_lead_from_ranks_to_files(shared_data: Path) -> None:
    network = network_of_log(shared_data / "recorder" / "ior_posix_fpp" / "8" / "raw.tar.zst").network
    ranks, files = network.layers
    assert (ranks.node_count, files.name) == (8, "file")
    # each rank has a file
    assert files.node_count >= 8
    assert network.edges["source"].n_unique() == 8
