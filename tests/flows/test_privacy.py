"""A pseudonymized warehouse holds no name in any byte after landing, following and a night."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.settings.model import Settings
from iosig.streams.landing import names_in
from iosig.warehouse.errors import UsageError
from iosig.warehouse.store.store import Store
from tests.dftracer_traces import Process, write_call
from tests.flows import growing_traces
from tests.nights import Cli, land_files, write_small_site

KEY = "0123456789abcdef0123456789abcdef"


def texts_of(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of every file of a warehouse, its bytes as text, and the cells of compressed files."""
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        yield name, name
        if not path.is_file():
            continue
        yield name, path.read_bytes().decode("latin-1")
        if path.suffix == ".parquet":
            yield name, pl.read_parquet(path).write_json()
        if path.suffix == ".sqlite":
            connection = sqlite3.connect(path)
            yield name, "\n".join(connection.iterdump())
            connection.close()


@dataclass(frozen=True)
class Person:
    """Names of one site; the names of its twin, with the same inputs otherwise, have the same roles."""

    user: str
    account: str
    job: str
    word: str
    node: str
    program: str
    folder: str
    file: str


TWINS = (
    Person("quillzoe", "grantxray", "jobsecret", "herwords", "nodezulu", "progwhisky", "foldertango", "filesierra"),
    Person("brixpaul", "fundyoke", "taskhidden", "hisphrase", "hostkilo", "exevictor", "dirlima", "docromeo"),
)


def write_twin(folder: Path, one: Person) -> list[Path]:
    """Write inputs of many formats that name users, accounts, jobs, files, programs and nodes wherever possible."""
    own = folder / one.folder
    write_small_site(own)
    (own / "jobs.sacct").unlink()
    head = "JobID|User|Account|JobName|Partition|NNodes|NodeList|Start|End|State|ExitCode|Comment"
    rows = [
        f"{number}|{one.user}|{one.account}|{one.job}|batch|2|{one.node}[01-02]|2026-03-0{day}T{hour:02}:05:00|"
        f"2026-03-0{day}T{hour:02}:35:00|{state}|0:0|by {one.word} fs=lake"
        for number, day, hour, state in (
            (100, 2, 22, "COMPLETED"),
            (101, 2, 23, f"CANCELLED by {one.user}"),
            (102, 3, 0, "COMPLETED"),
            (103, 3, 1, "FAILED"),
        )
    ]
    rows += [
        rows[0].replace("|2|", f"|{one.word}|").replace("100|", "104|"),
        rows[0].replace("100|", f"105.{one.node}|"),
    ]
    (own / f"{one.file}.sacct").write_text("\n".join([head, *rows]) + "\n")
    at = round(datetime(2026, 3, 3, 2, tzinfo=UTC).timestamp())
    queue = ["JOBID|USER|ACCOUNT|PARTITION|STATE|SUBMIT_TIME|START_TIME|TIME_LIMIT|NODES|REASON|COMMENT|NAME"]
    for number, reason in enumerate((f"ReqNodeNotAvail, UnavailableNodes:{one.node}[01-02]", f"wanted by {one.user}")):
        queue.append(
            f"{200 + number}|{one.user}|{one.account}|batch|PENDING|2026-03-03T01:00:00|N/A|30:00|1|{reason}|"
            f"{one.word}|{one.job}"
        )
    (own / f"squeue-{at}").write_text("\n".join(queue) + "\n")
    (own / "pbs").write_text(
        f"03/03/2026 01:30:00;E;77.{one.node}01;user={one.user} group=g account={one.account} jobname={one.job} "
        f"queue=workq ctime=1772496000 qtime=1772496000 etime=1772496000 start=1772496000 "
        f"exec_host={one.node}01/0*8+{one.node}02/0*8 Resource_List.nodect=2 session=9 end=1772499600 Exit_status=0\n"
    )
    for rank in range(2):
        process = Process(10 + rank, rank=rank, host=f"{one.node}0{rank + 1}")
        calls = [write_call(n * 1000, 4096, path=f"/scratch/{one.user}/{one.file}.{n % 3}") for n in range(40)]
        lines = [line.replace("prog -x", f"/sw/{one.program} --as {one.user}") for line in process.lines_of(calls)]
        (own / f"{one.program}-{rank}.pfw").write_text("\n".join(lines) + "\n")
    events = ["layer,node,rank,request_id,event,start_s,end_s,peer,bytes,direction,file"]
    for n in range(30):
        rank, began = n % 6, n * 0.01
        path, io_node = f"/scratch/{one.user}/{one.file}", f"{one.node}{n % 2:02}"
        events += [
            f"{layer},{node},{rank},{n}-{one.user},{kind},{began + early},{began + late},{peer},4096,write,{path}"
            for layer, node, kind, early, late, peer in (
                ("application", rank, "write", 0, 0.005, ""),
                ("io_node", io_node, "receive", 0.001, 0.004, rank),
                ("storage", f"{one.node}st{n % 2}", "write", 0.002, 0.003, io_node),
            )
        ]
    (own / "events.csv").write_text("\n".join(events) + "\n")
    series = [
        {
            "metric": {
                "__name__": "lustre_job_write_bytes_total", "component": component, "target": target, "fs": "lake",
                "instance": f"{one.node}99:9169", "jobid": f"{one.program}.{one.user}",
            },
            "values": [[1772496000 + 60 * n, str(n * 1000)] for n in range(10)],
        }
        for component, target in (("ost", "lake-OST0001"), ("client", f"{one.node}01"))
    ]  # fmt: skip
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    (own / f"{one.file}.json").write_text(json.dumps(answer))
    (own / f"{one.user}.csv").write_text("time_s,write_bytes\n" + "".join(f"{n},{n * 10}\n" for n in range(50)))
    (own / f"{one.file}.unknown").write_text(f"{one.user} has written nothing that is known\n")
    (own / f"{one.file}.dxt.darshan").write_bytes(b"no log of " + one.user.encode())
    trace = growing_traces.trace(own / f"{one.file}.jsonl", 4)
    return [own, trace]


def _night_of(cli: Cli, folder: Path, one: Person) -> tuple[Any, ...]:
    """Land, follow and run the inputs of a pseudonymized site; return the global options of its commands."""
    paths = write_twin(folder / "site", one)
    (folder / "iosig.toml").write_text("[privacy]\nis_pseudonymized = true\n[series]\ntime_zone = 'UTC'\n")
    ours = ("--settings", folder / "iosig.toml", "--warehouse", folder / "warehouse")
    printed = []

    def run(*words: object, code: int | None = 0) -> None:
        found, out, err = cli(*ours, *words)
        assert code is None or found == code, err
        printed.append(out + err)

    run("land", "--time-zone", "UTC", *paths, code=None)
    run("land", "--time-zone", "UTC", "--json", *paths, code=None)
    run("land", folder / "site" / one.folder / f"{one.file}.sact", code=2)
    # it names the followed path, which is not recorded
    assert cli(*ours, "predict", "--follow", "--idle-timeout", "0.1", "--interval", "0.05", paths[-1])[0] == 0
    run("run", "--inline", code=None)
    run("status", code=None)
    run("settings")
    run("report", "--output", folder / "warehouse" / "pages", code=None)
    for table in ("rejects", "jobs", "network_edges", "queued_jobs"):
        run("sql", "--format", "csv", f"from {table}")
    (folder / "warehouse" / "printed").write_text("\n".join(printed).replace(str(folder), ""))
    return ours


def _words_in(root: Path, one: Person) -> set[str]:
    """Return the names, and the key, in any byte of a warehouse or in the output of its commands."""
    texts = [text.replace(str(root.parent), "") for _, text in texts_of(root)]
    return {word for word in (*astuple(one), KEY) if any(word in text for text in texts)}


@pytest.mark.usefixtures("checks_here")
@pytest.mark.slow
def test_pseudonymized_warehouse_contains_no_name(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, root = TWINS[0], tmp_path / "warehouse"
    monkeypatch.setenv("IOSIG_PRIVACY_KEY", KEY)
    ours = _night_of(cli, tmp_path, one)
    assert _words_in(root, one) == set()
    names = names_in(Store(root), Settings.model_validate({"privacy": {"is_pseudonymized": True}}))
    assert names

    def query(text: str) -> list[str]:
        return cli(*ours, "sql", "--format", "csv", text)[1].split()[1:]

    assert query(f"select count(*) as n from jobs where user = '{names.name(one.user)}'") == ["6"]
    assert query("select distinct filesystem from jobs where filesystem is not null") == ['"lake"']
    assert query("select count(*) > 0 as has_rows from predictions") == ["true"]


def test_clear_warehouse_contains_every_name(tmp_path: Path) -> None:
    paths = write_twin(tmp_path / "site", TWINS[0])
    land_files(Store(tmp_path / "warehouse"), *paths, time_zone="UTC", allows_refusals=True)
    assert _words_in(tmp_path / "warehouse", TWINS[0]) == set(astuple(TWINS[0]))


@pytest.mark.usefixtures("checks_here")
@pytest.mark.long
def test_twin_warehouses_differ_only_in_pseudonyms(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOSIG_PRIVACY_KEY", KEY)
    roots = [tmp_path / str(place) / "warehouse" for place in range(2)]
    for root, one in zip(roots, TWINS, strict=True):
        _night_of(cli, root.parent, one)
        assert _words_in(root, one) == set()
    first, second = map(_landed_of, roots)
    assert first.keys() == second.keys() >= {"job_records", "queue_records", "request_events", "counter_samples"}
    for name, rows in first.items():
        assert rows.height == second[name].height, name
    for table, column in (
        ("job_records", "user"), ("job_records", "node_list"), ("trace_requests", "host"), ("request_events", "node"),
        ("counter_samples", "target"), ("counter_samples", "collector"), ("trace_files", "path"), ("traces", "command"),
    ):  # fmt: skip
        values = [set(of[table][column].drop_nulls()) for of in (first, second)]
        assert values[0] != values[1], (table, column)
        assert all(values), (table, column)
    # joins by node still work; codes of the scheduler and storage targets stay
    for of in (first, second):
        nodes = {node for nodes in of["job_records"]["node_list"].drop_nulls() for node in nodes.split(",")}
        assert set(of["trace_requests"]["host"].drop_nulls()) == nodes
        assert set(of["queue_records"]["wait_reason"]) == {"ReqNodeNotAvail", None}
        assert "lake-OST0001" in of["counter_samples"]["target"].to_list()


def _landed_of(root: Path) -> dict[str, pl.DataFrame]:
    """Return the landed rows by table."""
    found: dict[str, list[pl.DataFrame]] = {}
    for path in sorted((root / "landed").rglob("*.parquet")):
        found.setdefault(path.name.partition("-")[0], []).append(pl.read_parquet(path))
    return {name: pl.concat(frames) for name, frames in found.items()}


def test_privacy_key_is_required_and_must_be_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key_of(**said: object) -> bytes | None:
        return Settings.model_validate({"privacy": {"is_pseudonymized": True} | said}).privacy.key()

    monkeypatch.delenv("IOSIG_PRIVACY_KEY", raising=False)
    with pytest.raises(UsageError, match="IOSIG_PRIVACY_KEY"):
        key_of()
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    file.chmod(0o640)
    with pytest.raises(UsageError, match="only by its owner"):
        key_of(key_file=str(file))
    file.chmod(0o600)
    assert key_of(key_file=str(file)) == KEY.encode()
    with pytest.raises(UsageError, match="cannot be read"):
        key_of(key_file=str(tmp_path / "none"))
