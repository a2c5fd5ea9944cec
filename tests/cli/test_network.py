"""`iosig network`: its output, its files and its exit codes."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import iosig.cli.network
from iosig.answers.single import networks
from iosig.answers.single.networks import NetworkInput
from iosig.estimates.networks.builder import Query
from iosig.settings.model import Settings
from iosig.transforms.networks.network import NetworkParams
from iosig.warehouse.placing import atomic_write
from tests.nights import Cli
from tests.request_event_files import Plan, planted, write

#: few windows make the search for patterns quick
FEW = ("--windows", 8)
PLAN = Plan(rank_count=16, io_node_count=4, storage_node_count=4, requests_per_rank=8, slow_storage_node=2)
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J",
    "\u202ertl\u2066\nand\rlines\x00\x9b",
    "long" * 2500,
)
#: control characters that a terminal interprets
STEERING = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066)}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    write(path, PLAN)
    return path


@pytest.fixture(scope="module")
def known() -> dict[tuple[object, ...], NetworkInput]:
    """Cache of networks."""
    return {}


@pytest.fixture(autouse=True)
def made_once(known: dict[tuple[object, ...], NetworkInput], monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the network of a trace and query only once, since these tests are about its use."""
    make = networks.read_network

    def made(path: Path, settings: Settings, asked: Query, params: NetworkParams) -> NetworkInput:
        key = (path, path.stat().st_mtime_ns if path.exists() else 0, asked, params)
        if key not in known:
            known[key] = make(path, settings, asked, params)
        return known[key]

    monkeypatch.setattr(networks, "read_network", made)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for figures, without a warehouse."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def strict(text: str) -> Any:
    """Parse JSON strictly: without NaN and infinities."""

    def refuse(name: str) -> float:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def renamed(path: Path, layer: str, names: dict[str, str]) -> Path:
    """Write events with other node names in a layer."""
    is_it = pl.col("layer") == layer
    events = planted(PLAN).events
    events.with_columns(
        pl.when(is_it).then(pl.col("node").replace(names)).otherwise("node").alias("node")
    ).write_parquet(path)
    return path


# ---- output


def test_slow_node_is_named_with_its_ratio_to_the_median(cli: Cli, trace: Path) -> None:
    code, out, err = cli("network", trace, *FEW)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == ["events.parquet", "128 requests of the program."]
    assert any(line.startswith("16 active ranks, all similar: median ") for line in lines)
    assert (
        "4 active devices, median 4 ms a transfer; slowest: device 2, x 10.00; 1 at twice the median or more." in lines
    )
    at = next(number for number, line in enumerate(lines) if line.startswith("4 active devices"))
    first = next(line.split() for line in lines[at + 1 :] if line.split()[:1] == ["2"])
    assert first[1] == "64"
    assert "x 1.07" in out
    assert re.search(r"storage, device +any +too few nodes", out)
    assert "too few nodes" in out


def test_slow_nodes_come_first_and_are_excluded_from_patterns(cli: Cli, trace: Path) -> None:
    out = cli("network", trace, *FEW)[1]
    lead = next(line for line in out.splitlines() if line.startswith("Slow, compared with the median of the layer: "))
    assert "device 2, x 10.00" in lead
    assert out.index(lead) < out.index("4 active devices") < out.index("Patterns of") < out.index("Layers, outermost")
    slow = {"rank": 0, "device": 1}
    row = {
        "pattern": "circular",
        "outcome": "matched",
        "metric": "time",
        "source_layer": "rank",
        "target_layer": "device",
    }
    assert iosig.cli.network._pattern_text(row, slow) == "circular but 1"
    assert iosig.cli.network._pattern_text(row | {"metric": "size"}, slow) == "circular"
    assert iosig.cli.network._pattern_text(row | {"pattern": None, "outcome": "no_match"}, slow) == "no match"


def test_output_fits_100_columns(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = renamed(tmp_path / "events.parquet", "io_node", {str(node): HOSTILE[3] + str(node) for node in range(4)})
    _, out, _ = cli("network", path, *FEW)
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 100


@pytest.mark.parametrize("layer", ["nodes", "layers"])
def test_control_characters_in_names_are_removed(layer: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "events\x1b[31m.parquet"
    if layer == "nodes":
        renamed(path, "io_node", dict(zip("0123", HOSTILE, strict=True)))
    else:
        names = dict(zip(("application", "io_node", "storage"), HOSTILE[1:], strict=True))
        planted(PLAN).events.with_columns(pl.col("layer").replace(names)).write_parquet(path)
    code, out, _ = cli("network", path, *FEW)
    assert code == 0
    assert not STEERING & set(out)
    code, out, _ = cli("network", path, "--json", *FEW)
    assert code == 0
    assert not STEERING & set(out)
    told = strict(out)
    shown = told["nodes"]["io_node"] if layer == "nodes" else told["layers"]
    key = "node" if layer == "nodes" else "name"
    # the outermost layer is always named `rank`
    assert {row[key] for row in shown} >= set(HOSTILE if layer == "nodes" else HOSTILE[2:])


def test_window_limits_the_reported_transfers(cli: Cli, trace: Path) -> None:
    _, out, _ = cli("network", trace, "--json", *FEW)
    whole = strict(out)
    code, out, _ = cli("network", trace, "--json", "--window", "3.3:", *FEW)
    assert code == 0
    told = strict(out)
    assert told["window_s"][0] <= 3.3 < told["window_s"][1] == whole["window_s"][1]
    assert whole["window_s"][0] == 0
    events = planted(PLAN).events.filter(pl.col("event") == "request")
    counts = {name: sum(row["transfer_count"] for row in found["nodes"]["rank"])
              for name, found in (("whole", whole), ("told", told))}  # fmt: skip
    assert counts["whole"] == events.height
    after = events.filter(pl.col("start_s") >= told["window_s"][0] + 0.003).height
    assert after <= counts["told"] < events.height
    assert len(told["patterns"]) == 3 * 3
    assert {(row["window_start_s"], row["window_end_s"]) for row in told["patterns"]} == {tuple(told["window_s"])}
    assert [row["transfer_count"] for row in told["patterns"] if row["hop"] == 0 and row["metric"] == "size"] == [
        counts["told"]
    ]
    _, out, _ = cli("network", trace, "--window", "3.3:", *FEW)
    assert "Patterns of this time" in out


def test_unbounded_window_equals_no_window(cli: Cli, trace: Path) -> None:
    documents = [strict(cli("network", trace, "--json", *window, *FEW)[1]) for window in ((), ("--window", ":"))]
    for document in documents:
        document["patterns"] = [row for row in document["patterns"] if row["is_whole_run"]]
    assert documents[0] == documents[1]


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ("5:1", "ends before it begins"),
        ("-5:-1", "outside of the run"),
        ("100:200", "outside of the run"),
        ("2018-01-01/2019-01-01", "seconds from the start of the run"),
    ],
)
def test_invalid_window_is_refused(window: str, said: str, cli: Cli, trace: Path) -> None:
    code, out, err = cli("network", trace, f"--window={window}", *FEW)
    assert (code, out) == (2, "")
    assert said in err


def test_json_is_finite_for_instant_negative_and_unsized_transfers(cli: Cli, tmp_path: Path) -> None:
    events = planted(PLAN).events.filter(pl.col("event") != "open")
    instant = events.with_columns(start_s=pl.lit(1.0), end_s=pl.lit(1.0))
    is_outer = pl.col("layer") == "application"
    late = [pl.when(is_outer).then(pl.col(name) + 5).otherwise(name).alias(name) for name in ("start_s", "end_s")]
    for name, frame in (("instant", instant), ("negative", events.with_columns(late)), ("plain", events.drop("bytes"))):
        frame.write_parquet(tmp_path / name)
        code, out, _ = cli("network", tmp_path / name, "--json", *FEW)
        assert code == 0
        told = strict(out)
        assert sum(row["transfer_count"] for row in told["nodes"]["rank"]) == 128
        ranks = told["nodes"]["rank"]
        if name == "negative":
            assert {(row["mean_s"], row["median_ratio"]) for row in ranks} == {(None, None)}
            assert told["negative_time_count"] == 128
        elif name == "instant":
            assert {(row["mean_s"], row["time_ratio"]) for row in ranks} == {(0, None)}


def test_means_ignore_negative_latencies(cli: Cli, tmp_path: Path) -> None:
    """One of two requests of a rank has a negative latency: the other one is the mean."""
    rows = [
        ("application", 0, "0", "a", "request", 1.0, 2.0),
        ("io_node", 1, "x", "a", "receive", 0.5, 1.6),
        ("application", 0, "0", "b", "request", 3.0, 4.0),
        ("io_node", 1, "x", "b", "receive", 3.25, 3.5),
    ]
    names = ["layer", "layer_number", "node", "request_id", "event", "start_s", "end_s"]
    pl.DataFrame(rows, schema=names, orient="row").with_columns(rank=pl.lit(0)).write_csv(tmp_path / "e.csv")
    told = strict(cli("network", tmp_path / "e.csv", "--json", *FEW)[1])
    (row,) = told["nodes"]["io_node"]
    assert (row["transfer_count"], row["mean_s"], row["max_transfer_time_s"]) == (2, 0.25, 0.25)


def test_layers_with_reserved_names_are_numbered(cli: Cli, tmp_path: Path) -> None:
    names = {"io_node": "rank", "storage": "device"}
    planted(PLAN).events.with_columns(pl.col("layer").replace(names)).write_parquet(tmp_path / "e")
    told = strict(cli("network", tmp_path / "e", "--json", *FEW)[1])
    assert [layer["name"] for layer in told["layers"]] == ["rank", "rank 2", "device", "device 2"]
    assert [len(rows) for rows in told["nodes"].values()] == [16, 4, 4, 4]


# ---- refusals


def test_trace_without_network_is_refused_in_one_sentence(cli: Cli, tmp_path: Path) -> None:
    events = planted(PLAN).events
    events.filter(pl.col("layer") == "application").write_parquet(tmp_path / "one_layer")
    other = pl.when(pl.col("layer") == "application").then(pl.lit("0")).otherwise(pl.lit("1")).alias("request_id")
    apart = events.filter(pl.col("event") != "write", pl.col("event") != "send").with_columns(other)
    apart.with_columns(rank=pl.int_range(pl.len())).write_parquet(tmp_path / "apart")
    (tmp_path / "series.csv").write_text("0,10\n10,20\n20,30\n")
    (tmp_path / "folder").mkdir()
    for name, said in (
        ("one_layer", "only one layer. Trace each request in two layers"),
        ("apart", "No event has a counterpart"),
        ("series.csv", "series.csv is not a trace"),
        ("folder", "folder is a folder, but not a trace"),
    ):
        code, out, err = cli("network", tmp_path / name)
        assert (code, out) == (3, ""), name
        assert said in err
    assert cli("network", tmp_path / "absent")[0] == 2


def test_strict_exits_with_3_on_refused_rows(cli: Cli, trace: Path, tmp_path: Path) -> None:
    events = pl.read_parquet(trace)
    torn = events.head(1).with_columns(end_s=pl.col("start_s") - 1)
    pl.concat([events, torn]).write_parquet(tmp_path / "e")
    assert cli("network", tmp_path / "e", *FEW)[0] == 0
    code, out, err = cli("network", tmp_path / "e", *FEW, "--strict")
    assert code == 3
    assert "16 active ranks" in out
    assert "Refused: 1 row. " in err


def test_options_that_do_not_fit_the_trace_are_refused(cli: Cli, trace: Path) -> None:
    for options in (("--layers", ""), ("--module", "POSIX")):
        code, _, err = cli("network", trace, *options)
        assert code == 2, options
        assert "its own layers" in err
    for option, value in (("--windows", 0), ("--windows", 4097), ("--max-nodes", 1), ("--metric", "speed")):
        assert cli("network", trace, option, value)[0] == 2, (option, value)


@pytest.mark.slow
def test_layers_and_modules_are_validated_against_the_trace(cli: Cli, shared_data: Path) -> None:
    log = shared_data / "dxt" / "ior_posix_fpp_n8_i12_d3.darshan"
    for layers in ("", "rank,rank", "rank,,nonsense"):
        code, _, err = cli("network", log, "--layers", layers)
        assert code == 2, layers
        assert "two or more different layers" in err
    assert "no requests of MPIIO, only of POSIX" in cli("network", log, "--module", "MPIIO")[2]
    told = strict(cli("network", log, "--layers", " target ,rank", "--module", "POSIX", "--json", "--windows", 1)[1])
    assert [(layer["name"], layer["nodes"]) for layer in told["layers"]] == [("target", 1), ("rank", 8)]
    assert told["window_count"] == 1


def test_lost_requests_are_distinguished_from_disabled_tracing(cli: Cli, shared_data: Path) -> None:
    code, _, err = cli("network", shared_data / "darshan" / "bad" / "trunc_half.darshan")
    assert code == 3
    assert "its single requests cannot be read (DXT_" in err
    assert "DXT_ENABLE_IO_TRACE" not in err
    code, _, err = cli("network", shared_data / "darshan" / "mpi-io-test-x86_64-3.0.0.darshan")
    assert code == 3
    assert "DXT_ENABLE_IO_TRACE=1" in err


def test_excess_nodes_are_grouped(cli: Cli, trace: Path) -> None:
    told = strict(cli("network", trace, "--max-nodes", 4, "--json", *FEW)[1])
    assert [(layer["name"], layer["nodes"], layer["group_size"]) for layer in told["layers"]] == [
        ("rank", 4, 4), ("io_node", 4, 1), ("storage", 4, 1), ("device", 4, 1),
    ]  # fmt: skip
    _, out, _ = cli("network", trace, "--max-nodes", 4, *FEW)
    assert "4 consecutive ranks are drawn as one." in out
    assert "4 active rank groups" in out


# ---- output files


@pytest.mark.slow
def test_figures_and_page_are_written(cli: Cli, trace: Path, folder: Path) -> None:
    names = ("a.png", "a.svg", "a.html")
    options = [item for name in names for item in (f"--{name[2:]}", folder / name)]
    code, out, err = cli("network", trace, *options, "--metric", "size", "--window", "3:3.5", *FEW)
    assert code == 0
    assert "active ranks" in out
    assert [line.split(": ")[0] for line in err.splitlines()] == ["Drawn", "Drawn", "Written"]
    assert [(folder / name).read_bytes()[:5] for name in names] == [b"\x89PNG\r", b"<?xml", b"<!DOC"]
    assert sorted(os.listdir(folder)) == sorted(names)


@pytest.mark.parametrize("kind", ["png", "svg", "html"])
def test_trace_is_never_overwritten(kind: str, cli: Cli, trace: Path, tmp_path: Path) -> None:
    before = trace.read_bytes()
    link = tmp_path / "link.parquet"
    link.symlink_to(trace)
    for given, target in ((trace, trace), (link, trace), (trace, link), (trace, trace.parent / "." / trace.name)):
        code, _, err = cli("network", given, f"--{kind}", target)
        assert code == 2
        assert "is never overwritten" in err
    assert trace.read_bytes() == before
    assert link.is_symlink()


def test_invalid_output_paths_are_refused_before_any_work(
    cli: Cli, trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "file").write_text("kept")
    for target, said in (
        (folder / "pipe", "is not a regular file"),
        (Path(os.devnull), "is not a regular file"),
        (folder / "file" / "a.png", "is not a writable folder"),
        (folder, "is a directory"),
    ):
        code, out, err = cli("network", trace, "--png", target)
        assert (code, out) == (2, ""), target
        assert said in err
    code, _, err = cli("network", trace, "--png", folder / "a", "--html", folder / "." / "a")
    assert code == 2
    assert "need different files" in err
    assert sorted(os.listdir(folder)) == ["file", "pipe"]
    assert (folder / "file").read_text() == "kept"
    assert Path(os.devnull).is_char_device()


def test_failed_write_keeps_the_existing_file(
    cli: Cli, trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulates a full disk."""
    import iosig.reports.networks.page

    def full(_: object, path: Path) -> None:
        with atomic_write(path) as temporary:
            temporary.write_bytes(b"half")
            raise OSError(28, "No space left on device")

    (folder / "a.html").write_text("kept")
    monkeypatch.setattr(iosig.reports.networks.page, "write_page", full)
    code, _, err = cli("network", trace, "--html", folder / "a.html", *FEW)
    assert code == 2
    assert "cannot be written: No space left on device." in err
    assert os.listdir(folder) == ["a.html"]
    assert (folder / "a.html").read_text() == "kept"


def test_window_outside_the_run_draws_nothing(cli: Cli, trace: Path, folder: Path) -> None:
    assert cli("network", trace, "--png", folder / "a.png", "--window", "100:", *FEW)[0] == 2
    assert os.listdir(folder) == []


def test_ratios_are_formatted_briefly() -> None:
    shown = [iosig.cli.network._ratio(value) for value in (None, 1.0, 9.999, 123.4, 1e9)]
    assert shown == [None, "1.00", "10.00", "123", "1,000,000,000"]
    assert iosig.cli.network._factor(0.0) == "x 1"
    assert iosig.cli.network._factor(math.log2(3)) == "x 3"


# ---- comparison


def test_two_traces_are_drawn_on_one_scale(cli: Cli, trace: Path, folder: Path) -> None:
    other = folder / "other.parquet"
    write(other, PLAN)
    targets = folder / "runs.png", folder / "runs.html"
    code, out, err = cli("network", trace, other, *FEW, "--compare", "--png", targets[0], "--html", targets[1])
    assert code == 0, err
    assert [line for line in out.splitlines() if line.endswith(".parquet")] == ["events.parquet", "other.parquet"]
    assert all(target.stat().st_size > 10_000 for target in targets)


@pytest.mark.parametrize(
    ("count", "options", "reason"),
    [
        (1, ("--compare",), "--compare needs two traces"),
        (2, (), "Pass one trace, or two with --compare"),
        (3, ("--compare",), "--compare needs two traces"),
        (2, ("--compare", "--json"), "--json describes one trace"),
    ],
)
def test_traces_that_cannot_be_compared_are_refused(
    count: int, options: tuple[str, ...], reason: str, cli: Cli, trace: Path
) -> None:
    code, out, err = cli("network", *[trace] * count, *options, *FEW)
    assert (code, out) == (2, "")
    assert reason in err
