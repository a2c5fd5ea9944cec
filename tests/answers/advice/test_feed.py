"""The feed for schedulers agrees with its documentation in entries, validity and confidence, and the examples run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from iosig.answers.advice.feed import BURST_FIELDS, FIELDS, FORMAT, KINDS, VALID_DAYS, Feed, build_feed, export_feed
from iosig.settings.model import SignatureSettings
from iosig.warehouse.contracts import Column
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store
from tests.contract_pages import DOCS, code_of, needs_lua, run_hook, tables_of
from tests.flows.signature_releases import Made, publish as publish_signatures
from tests.nights import Cli
from tests.warehouse.releasing import publish

PAGE = DOCS / "scheduler-feed.md"
#: the fixtures ran on the ninth of February 2018
LONG = 36_500.0
NOON = datetime(2018, 2, 9, 12, tzinfo=UTC)
AHEAD = datetime(9999, 12, 31, tzinfo=UTC)
HOSTILE = "io\tr,\"'\n\\\u202e\x1b[31m"
MADE = (
    Made(outlier_job_ids=("7",)),
    Made(method="iosi", is_default=False, bursts=((0, 300, 9e9),)),
    Made(direction="read", outcome="no_io"),
    Made(application_id="a%2Fb/x/y/8", bursts=((10, 20, 5e8),), support_ratio=0.5),
    Made(application_id="ana/ior_a/*", support_ratio=None),
    Made(application_id=f"eve/{HOSTILE}/2", bursts=((0, 10, 3e9),)),
    Made(application_id="rare/app/4", outcome="too_few_samples", run_count=2),
    Made(application_id="zoe/ahead/1", bursts=((0, 10, 1e9),), run_count=8, told={"last_run_ended_at": AHEAD}),
)
PERIODS = """
subject_kind subject_id direction filesystem method is_default outcome period_s r_io confidence false_alarm_probability
application ana/ior_a/16 write scratch null_tested yes  periodic      120  0.25 0.9  0.001
application ana/ior_a/16 write scratch dft        no   periodic      60   0.25 0.9  0.5
application ana/ior_a/16 read  scratch null_tested yes  no_io         .    .    .    .
application gone/app/4   write scratch null_tested yes  periodic      90   0.25 0.9  0.001
job         100          write scratch null_tested yes  periodic      7    0.5  0.9  0.001
trace       old          write .       null_tested yes  periodic      55   0.5  0.9  0.002
trace       new          write .       null_tested yes  periodic      50   0.5  0.9  0.002
trace       newer        write .       null_tested yes  interval_only .    .    .    .
trace       lone         write .       null_tested yes  periodic      40   0.5  0.9  0.002
"""
TRACE_JOBS = """
    trace_id cluster job_id job_started_at started_at ended_at user application
    old      c       1      09:00:00       09:00:00   09:30:00 bob  bob.x
    new      c       2      10:00:00       10:00:00   10:30:00 bob  bob.x
    newer    c       3      11:00:00       11:00:00   11:30:00 bob  bob.x
    lone     .       .      .              11:00:00   11:30:00 bob  bob.x
"""
JOBS = """
    cluster job_id started_at ended_at user application node_count
    c       1      09:00:00   09:30:00 bob  bob_job     4
    c       2      10:00:00   10:30:00 bob  bob_job     4
    c       3      11:00:00   11:30:00 bob  bob_job     4
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("feed") / "warehouse")
    publish_signatures(
        store, "signatures", [replace(made, told={"last_run_ended_at": NOON} | made.told) for made in MADE]
    )
    checks = """
        application_id filesystem direction method trace_id is_training_run correlation
        ana/ior_a/16   scratch    write     robust t1       no              0.9
        ana/ior_a/16   scratch    write     robust t2       .               0.8
        ana/ior_a/16   scratch    write     robust t3       yes             1
        ana/ior_a/16   scratch    write     iosi   t1       no              0.1
    """
    counted = """
        cluster job_id started_at application_id filesystem direction method is_training_run correlation
        c       1      09:00:00   ana/ior_a/16   scratch    write     robust no              0.7
        c       2      10:00:00   ana/ior_a/16   scratch    write     robust no              0.9
        c       3      11:00:00   ana/ior_a/16   scratch    write     robust yes             1
        c       4      11:00:00   ana/ior_a/16   scratch    write     iosi   no              0.1
    """
    content = {"exact_checks": {9: counted}, "periods": {9: PERIODS}, "trace_jobs": {9: TRACE_JOBS}, "jobs": {9: JOBS}}
    publish(store, "periods", {**content, "signature_checks": {None: checks}})
    return store


@cache
def feed(store: Store, kind: str, valid_days: float = LONG) -> Feed:
    return build_feed(store, releases.find(store, None), kind, valid_days)


def entries(store: Store, kind: str, valid_days: float = LONG) -> dict[tuple[str, str], dict[str, Any]]:
    return {(entry["application_id"], entry["direction"]): entry for entry in feed(store, kind, valid_days).entries}


# ---- signatures


@pytest.mark.slow
def test_only_default_signatures_are_entries(store: Store) -> None:
    found = feed(store, "signatures")
    assert [(entry["user"], entry["application"], entry["node_count"]) for entry in found.entries] == [
        ("a/b", "x/y", 8),
        ("ana", "ior_a", None),
        ("ana", "ior_a", 16),
        ("eve", HOSTILE, 2),
        ("zoe", "ahead", 1),
    ]
    assert {entry["method"] for entry in found.entries} == {"robust"}
    assert found.header["outcome_counts"] == {"extracted": 5, "no_io": 1, "too_few_samples": 1}


def test_entry_lists_bursts_with_volumes_and_validation(store: Store) -> None:
    entry = entries(store, "signatures")["ana/ior_a/16", "write"]
    assert [(burst["start_s"], burst["duration_s"], burst["volume_bytes"]) for burst in entry["bursts"]] == [
        (60.0, 30.0, 6e10),
        (180.0, 40.0, 4e10),
    ]
    assert (entry["traced_run_count"], entry["traced_correlation"]) == (2, pytest.approx(0.85))
    assert (entry["counted_run_count"], entry["counted_correlation"]) == (2, pytest.approx(0.8))
    assert entry["peak_bytes_per_s"] == 2e9


@pytest.mark.parametrize(
    ("application_id", "confidence"),
    # (runs with the burst + 1) / (runs + 2)
    [("ana/ior_a/16", (5 + 1) / (6 + 2)), ("a%2Fb/x/y/8", (3 + 1) / (6 + 2)), ("ana/ior_a/*", None)],
)
def test_confidence_is_the_probability_that_the_next_run_has_the_burst(
    application_id: str, confidence: float | None, store: Store
) -> None:
    entry = entries(store, "signatures")[application_id, "write"]
    assert entry["confidence"] == (None if confidence is None else pytest.approx(confidence, rel=1e-12))
    assert [burst["confidence"] for burst in entry["bursts"]] == [entry["confidence"]] * len(entry["bursts"])


@pytest.mark.slow
def test_confidence_is_weighted_by_volume(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    release = publish_signatures(store, "one", [Made(run_count=8)])
    shares = pl.DataFrame({"burst": [0, 1], "support_ratio": [1.0, 0.25]})
    for path in releases.files_of(store, release)["signature_bursts"]:
        changed = pl.read_parquet(path).drop("support_ratio").join(shares, on="burst")
        path.unlink()
        changed.write_parquet(path)
    # a file that differs from its checksum is refused
    shutil.rmtree(store.root / "seals")
    (entry,) = build_feed(store, release, "signatures", LONG).entries
    assert [burst["confidence"] for burst in entry["bursts"]] == pytest.approx([0.9, 0.3], rel=1e-12)
    assert entry["confidence"] == pytest.approx((60 * 0.9 + 40 * 0.3) / 100, rel=1e-12)


# ---- periods


def test_periods_are_of_signatures_and_latest_traces(store: Store) -> None:
    found = feed(store, "periods")
    assert [(entry["application_id"], entry["subject_kind"], entry["period_s"]) for entry in found.entries] == [
        ("ana/ior_a/16", "application", 120.0),
        ("bob/bob_job/4", "trace", 50.0),
    ]
    assert found.header["outcome_counts"] == {"no_io": 1, "periodic": 4}
    assert found.header["undated_count"] == 1, "its signature is not there"
    assert found.header["unnamed_count"] == 1, "a trace without a job has no name that a scheduler knows"


def test_period_confidence_is_the_complement_of_the_false_alarm_rate(store: Store) -> None:
    found = entries(store, "periods")
    signature, trace = found["ana/ior_a/16", "write"], found["bob/bob_job/4", "write"]
    assert (signature["confidence"], signature["false_alarm_probability"]) == (0.999, 0.001)
    assert (signature["run_count"], signature["filesystem"], signature["trace_id"]) == (5, "scratch", None)
    assert (trace["run_count"], trace["filesystem"], trace["trace_id"]) == (1, None, "new")
    assert (trace["io_per_period_s"], trace["cycle_evenness"]) == (25.0, 0.9)
    assert trace["last_run_ended_at"] == NOON.replace(hour=10, minute=30)


# ---- validity


@pytest.mark.parametrize("kind", KINDS)
def test_every_found_answer_is_an_entry_or_counted_as_omitted(kind: str, store: Store) -> None:
    found = "extracted" if kind == "signatures" else "periodic"
    for days in (VALID_DAYS, LONG):
        header = feed(store, kind, days).header
        counts = [header[f"{name}_count"] for name in ("entry", "unnamed", "undated", "expired")]
        assert sum(counts) == header["outcome_counts"][found]
        assert (header["expired_count"] > 0) == (days != LONG)


def test_entry_is_valid_for_a_fixed_time_after_the_last_run(store: Store) -> None:
    release = releases.find(store, None)
    made_at = datetime.fromisoformat(release.created_at).replace(microsecond=0)
    for entry in feed(store, "signatures").entries[:4]:
        assert entry["valid_from"] == made_at
        assert entry["valid_until"] == NOON + timedelta(days=LONG)


def test_clock_ahead_of_time_does_not_extend_validity(store: Store) -> None:
    entry = entries(store, "signatures", 2.0)["zoe/ahead/1", "write"]
    assert entry["valid_until"] == entry["valid_from"] + timedelta(days=2)


def test_validity_equals_the_window_of_samples() -> None:
    assert SignatureSettings().window_days == VALID_DAYS


# ---- files


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["json", "PARQUET"])
def test_same_release_gives_the_same_bytes(kind: str, ending: str, store: Store, tmp_path: Path) -> None:
    release, paths = releases.find(store, None), [tmp_path / f"{name}.{ending}" for name in "ab"]
    for path in paths:
        export_feed(store, release, kind, path, LONG)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [path.name for path in paths]


@pytest.mark.parametrize("kind", KINDS)
def test_json_and_parquet_have_equal_content(kind: str, store: Store, tmp_path: Path) -> None:
    release = releases.find(store, None)
    for ending in ("json", "parquet"):
        export_feed(store, release, kind, tmp_path / f"feed.{ending}", LONG)
    document = json.loads((tmp_path / "feed.json").read_text("ascii"))
    rows = pq.read_table(tmp_path / "feed.parquet")
    stamped = [
        {name: f"{value:%FT%TZ}" if isinstance(value, datetime) else value for name, value in row.items()}
        for row in rows.to_pylist()
    ]
    assert stamped == document.pop("entries")
    assert json.loads(rows.schema.metadata[b"iosig_feed"]) == document
    for column in FIELDS[kind]:
        metadata = rows.schema.field(column.name).metadata
        assert (metadata[b"doc"].decode(), metadata.get(b"unit", b"").decode()) == (column.doc, column.unit or "")


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_feed_without_entries_is_valid(ending: str, store: Store, tmp_path: Path) -> None:
    first, path = releases.find(store, "2018-02-09-signatures"), tmp_path / f"feed.{ending}"
    assert export_feed(store, first, "periods", path).entries == []
    if ending == "json":
        assert json.loads(path.read_text())["entries"] == []
    else:
        assert (pl.read_parquet(path).height, pl.read_parquet(path).width) == (0, len(FIELDS["periods"]))


def test_failed_export_keeps_the_previous_feed(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "feed.json"
    path.write_text("old")
    release = releases.find(store, None)
    with monkeypatch.context() as patch:
        patch.setattr("iosig.answers.advice.feed._instant", lambda _: float("nan"))
        with pytest.raises(ValueError, match="JSON"):
            export_feed(store, release, "signatures", path, LONG)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("feed.json", "old")]


# ---- the command


def test_command_reports_exported_and_omitted_entries(store: Store, tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "signatures.json"
    code, out, err = cli("--warehouse", store.root, "export", "signatures", "--feed", "--output", path)
    assert (code, len(json.loads(path.read_text())["entries"])) == (0, 1)
    assert "1 applications' signatures" in out
    assert "4 without a run in the last 90 days before the release" in err
    code, out, err = cli(
        "--warehouse", store.root, "export", "periods", "--feed", "--output", path, "--valid-days", 36500
    )
    assert (code, json.loads(path.read_text())["kind"]) == (0, "periods")
    assert "2 applications' periods" in out
    assert err.splitlines() == [
        "excluded: 1 because the last run has no time",
        "excluded: 1 traced runs without a job",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["jobs", "--feed", "--output", "x.json"], "only of signatures and periods"),
        (["signatures", "--feed", "--output", "x.csv"], "ends in .json or .parquet"),
        (["signatures", "--output", "x.json"], "--feed"),
        (["signatures", "--output", "x.parquet", "--valid-days", "3"], "--feed"),
        (["signatures", "--feed", "--output", "x.json", "--valid-days", "0"], "0<x<=36525"),
        (["signatures", "--feed", "--output", "x.json", "--valid-days", "nan"], "nan"),
    ],
)
def test_invalid_feed_arguments_are_refused(
    arguments: list[str], told: str, store: Store, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("--warehouse", store.root, "export", *arguments)
    assert (code, told in err) == (2, True), err
    assert list(tmp_path.iterdir()) == []


def test_unknown_kind_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="signatures and periods"):
        feed(store, "networks")


# ---- the documentation page

_JSON_TYPES = {"text": "string", "instant": "string", "int": "integer", "real": "number", "bool": "boolean"}


def described(columns: tuple[Column, ...]) -> list[list[str]]:
    return [
        [f"`{column.name}`", _JSON_TYPES[column.dtype], column.unit or "", "yes" if column.nullable else ""]
        for column in columns
    ]


def test_documentation_lists_every_field(store: Store) -> None:
    told = {heading: [row[:4] for row in rows] for heading, rows in tables_of(PAGE).items()}
    shared = FIELDS["signatures"][: len(told["Every entry"])]
    assert FIELDS["periods"][: len(shared)] == shared
    assert told["Every entry"] == described(shared)
    assert told["Signatures"] == [
        *described(FIELDS["signatures"][len(shared) :]),
        ["`bursts`", "array", "", ""],
    ]
    assert told["Bursts"] == described(BURST_FIELDS)
    assert told["Periods"] == described(FIELDS["periods"][len(shared) :])
    assert [row[0] for row in told["The document"]] == [
        *(f"`{name}`" for name in feed(store, "periods").header),
        "`entries`",
    ]


def test_documented_examples_have_the_fields_of_feeds(store: Store) -> None:
    for text, kind in zip(code_of(PAGE, "json"), KINDS, strict=True):
        example, made = json.loads(text), feed(store, kind)
        assert [*example] == [*made.header, "entries"]
        assert (example["format"], example["kind"]) == (FORMAT, kind)
        assert example["entry_count"] == len(example["entries"])
        for entry in example["entries"]:
            assert [*entry] == [*made.entries[0]]
            assert all([*burst] == [column.name for column in BURST_FIELDS] for burst in entry.get("bursts", []))


def make_lookup(folder: Path, document: str) -> subprocess.CompletedProcess[str]:
    """Run the page's Python on a feed."""
    (script,) = code_of(PAGE, "python")
    (folder / "make_lookup.py").write_text(script)
    (folder / "signatures.json").write_text(document)
    command = [sys.executable, "-I", "make_lookup.py", "signatures.json", "default", "io_lookup.tsv"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_documented_python_creates_a_lookup_table(store: Store, tmp_path: Path) -> None:
    export_feed(store, releases.find(store, None), "signatures", tmp_path / "feed.json", LONG)
    ran = make_lookup(tmp_path, (tmp_path / "feed.json").read_text())
    assert (ran.returncode, ran.stderr) == (0, "")
    made_at = datetime.fromisoformat(releases.find(store, None).created_at)
    ahead = int((made_at + timedelta(days=LONG)).timestamp())
    until = str(int((NOON + timedelta(days=LONG)).timestamp()))
    found = [line.split("\t") for line in (tmp_path / "io_lookup.tsv").read_text().splitlines()]
    # an entry without confidence is omitted; a name cannot create further lines
    assert found == [
        ["a%2Fb", "x%2Fy", "8", "scratch", until, "0.500", "500000000", "10"],
        ["ana", "ior_a", "16", "scratch", until, "0.750", "2000000000", "60"],
        ["eve", "io%09r%2C%22%27%0A%5C%E2%80%AE%1B%5B31m", "2", "scratch", until, "0.875", "3000000000", "0"],
        ["zoe", "ahead", "1", "scratch", str(ahead), "0.900", "1000000000", "0"],
    ]


def test_documented_python_refuses_another_format(tmp_path: Path) -> None:
    ran = make_lookup(tmp_path, json.dumps({"format": "iosig-feed/2", "kind": "signatures", "entries": []}))
    assert ran.returncode == 1
    assert "iosig-feed/2" in ran.stderr
    assert not (tmp_path / "io_lookup.tsv").exists()


# ---- the documented hook

#: the part of slurmctld's API that the hook uses
_SLURM = """
slurm = {SUCCESS = 0, ERROR = -1, NO_VAL = 4294967294, log_info = function() end, log_error = function() end}
dofile("job_submit.lua")
local function submit(name, nodes, licenses, user)
    local job = {user_name = user or "ana", name = name, min_nodes = nodes, licenses = licenses}
    local code = slurm_job_submit(job, {}, 1000)
    print(code, job.licenses, job.admin_comment)
end
"""


@needs_lua
def test_documented_hook_requests_licenses(tmp_path: Path) -> None:
    lookup = [
        ["ana", "ior_a", "16", "scratch", "4000000000", "0.9", "2500000000", "60"],
        ["ana", "old", "16", "scratch", "1000000000", "0.9", "2500000000", "60"],
        ["ana", "unsure", "16", "scratch", "4000000000", "0.5", "2500000000", "60"],
        ["ana", "any", "*", "scratch", "4000000000", "0.9", "9e15", "60"],
        ["ana", "else", "*", "elsewhere", "4000000000", "0.9", "1e9", "60"],
        ["eve", "io%09r", "2", "scratch", "4000000000", "0.9", "1e9", "0"],
        ["broken"],
    ]
    calls = [
        'submit("ior_a", 16.0)', 'submit("ior_a", 16, "matlab:1")', 'submit("ior_a", 16, "io_scratch:1")',
        'submit("ior_a", slurm.NO_VAL)', 'submit("old", 16)', 'submit("unsure", 16)', 'submit("any", 3)',
        'submit("else", 3)', 'submit("io\\tr", 2, nil, "eve")', "submit(nil, nil)",
    ]  # fmt: skip
    printed = run_hook(PAGE, ("/etc/slurm/io_lookup.tsv", lookup), _SLURM, calls, tmp_path)
    said = "iosig: first burst after 60 s"
    assert printed == [
        f"0\tio_scratch:3\t{said}", f"0\tmatlab:1,io_scratch:3\t{said}", "0\tio_scratch:1\tnil",
        *["0\tnil\tnil"] * 3, f"0\tio_scratch:100\t{said}",
        "0\tnil\tnil", f"0\tio_scratch:1\t{said.replace('60', '0')}", "0\tnil\tnil",
    ]  # fmt: skip
