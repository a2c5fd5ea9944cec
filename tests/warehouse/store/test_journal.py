"""Test the journal: atomic commits of rows and states that survive kills, and a single follower per input."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.predictions import PREDICTIONS
from iosig.warehouse.errors import ContractError, InputRefused, UsageError
from iosig.warehouse.store import journal as journal_module
from iosig.warehouse.store.journal import VERSION, Journal, Range, State
from iosig.warehouse.store.store import Store
from tests.prediction_rows import NOON, job_prediction, prediction

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
A, B = "/a", "/b"


def rows_of(journal: Journal, sequence: int = 0, most: int = 1000) -> list[dict[str, Any]]:
    return journal.rows_after(sequence, most)[0].to_dicts()


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncs: these tests need safety from killed processes, not from power failures."""
    monkeypatch.setattr(journal_module, "SYNCHRONOUS", "off")
    monkeypatch.setattr(os, "fsync", os.fstat)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "warehouse" / "predictions.sqlite"


def filled(path: Path, count: int, followed_id: str = A) -> Journal:
    """Return a journal with `count` rows, each in a separate commit."""
    journal = Journal(path)
    journal.follow(followed_id)
    for number in range(1, count + 1):
        journal.commit([prediction(number, followed_id)], [])
    return journal


# ---- rows and states


def test_later_evaluations_include_directions_without_earlier_ones(path: Path) -> None:
    rows = [prediction(number, A, direction=direction) for number in (1, 2, 3) for direction in ("read", "write")]
    with Journal(path) as journal:
        journal.follow(A)
        journal.commit(rows, [])
        later = journal.evaluations_after(A, {"write": 2})
        assert [(row["direction"], row["evaluation"]) for row in later] == [
            ("read", 1), ("read", 2), ("read", 3), ("write", 3)
        ]  # fmt: skip
        assert journal.evaluations_after(A, {}) == rows


def test_rows_and_states_are_read_in_order_of_commits(path: Path) -> None:
    rows = [prediction(1, A), job_prediction(1, events="gap,resumed"), prediction(2, A, is_final=True, period_s=None)]
    with Journal(path) as journal:
        for row in rows:
            journal.follow(row["followed_id"])
        assert journal.commit(rows[:2], [State(A, {"byte": 5}, b"\x00one"), State(rows[1]["followed_id"])]) == 2
        assert journal.commit(rows[2:], [State(A, {"byte": 9}, b"two")]) == 3
    with Journal(path) as journal:
        found, last = journal.rows_after(0, 10)
        assert frames.require(found, PREDICTIONS).to_dicts() == rows
        assert last == journal.last_sequence() == 3
        assert journal.state(A) == State(A, {"byte": 9}, b"two")
        assert [state.followed_id for state in journal.states()] == [A, rows[1]["followed_id"]]
        assert journal.state("another") is None


def test_rows_are_read_in_batches(path: Path) -> None:
    with filled(path, 5) as journal:
        first, last = journal.rows_after(0, 2)
        assert (first["evaluation"].to_list(), last) == ([1, 2], 2)
        rest, last = journal.rows_after(2, 10, until=4)
        assert (rest["evaluation"].to_list(), last) == ([3, 4], 4)
        none, last = journal.rows_after(5, 10)
        assert (none.equals(frames.empty(PREDICTIONS)), last) == (True, 5)


def test_rows_and_states_may_be_committed_separately(path: Path) -> None:
    with Journal(path) as journal:
        journal.follow(A)
        assert journal.commit([], [State(A, {"polled_at": None, "list": [1, "two"]})]) == 0
        assert journal.commit([prediction(1, A)], []) == 1
        assert journal.state(A) == State(A, {"polled_at": None, "list": [1, "two"]})


@pytest.mark.parametrize(
    "rows",
    [
        [prediction(2, A), prediction(1, A)],
        [prediction(2, A), prediction(2, A)],
        [prediction(3, A), prediction(2, A)],
        [prediction(2, A), prediction(3, A, outcome="perhaps")],
        [prediction(2, A, volume_bytes=float("nan"))],
        [prediction(2, A) | {"evaluation": 2.0}],
        [prediction(2, A) | {"evaluation": True}],
        [prediction(2, A, request_count=2**63)],
        [prediction(2, A, subject_id="half a character: \udc80")],
        [prediction(2, A, predicted_at=datetime(2026, 2, 9))],
        [prediction(2, A, predicted_on=NOON.date() + timedelta(1))],
        [prediction(2, A, intervals="{}")],
        [prediction(2, A) | {"more": 1}],
        [{name: value for name, value in prediction(2, A).items() if name != "outcome"}],
    ],
)
def test_commit_with_invalid_or_duplicate_row_changes_nothing(rows: list[dict[str, Any]], path: Path) -> None:
    with filled(path, 1) as journal:
        journal.commit([], [State(A, {"at": 1})])
        with pytest.raises(ContractError):
            journal.commit(rows, [State(A, {"at": 2})])
        assert rows_of(journal) == [prediction(1, A)]
        assert journal.state(A) == State(A, {"at": 1})
        assert journal.commit([prediction(2, A)], []) == 2


def test_evaluations_are_counted_by_direction(path: Path) -> None:
    with filled(path, 2) as journal:
        journal.commit([prediction(1, A, direction="read"), prediction(3, A)], [])
        assert journal.last_sequence() == 4


def test_position_that_is_not_json_is_refused(path: Path) -> None:
    with Journal(path) as journal:
        journal.follow(A)
        for position in ({"at": float("nan")}, {"at": NOON}):
            with pytest.raises((TypeError, ValueError)):
                journal.commit([prediction(1, A)], [State(A, position)])
        assert journal.last_sequence() == 0


# ---- followers


def test_commit_requires_a_claim(path: Path) -> None:
    with Journal(path) as journal:
        journal.follow(A)
        for rows, states in (([prediction(1, B)], []), ([], [State(B)])):
            with pytest.raises(ValueError, match=r"not claimed: \['/b'\]"):
                journal.commit(rows, states)


def test_second_follower_of_same_input_is_refused(path: Path) -> None:
    with Journal(path) as first, Journal(path) as second:
        first.follow(A)
        first.follow(A)
        with pytest.raises(UsageError, match="Another process follows /a"):
            second.follow(A)
        second.follow(B)
        first.commit([prediction(1, A)], [])
        second.commit([prediction(1, B)], [])
        assert [row["followed_id"] for row in rows_of(first)] == [A, B]
        first.leave(A)
        first.leave("never followed")
        second.follow(A)
        with pytest.raises(ValueError, match="not claimed"):
            first.commit([prediction(2, A)], [])


def test_closing_releases_all_claims(path: Path) -> None:
    with filled(path, 1):
        pass
    with Journal(path) as journal:
        journal.follow(A)


def test_any_number_of_claims_takes_no_more_file_descriptors(path: Path) -> None:
    with Journal(path) as journal:
        before = len(os.listdir("/proc/self/fd"))
        for number in range(2000):
            journal.follow(str(number))
        assert len(os.listdir("/proc/self/fd")) == before


def test_commit_waits_for_lock_until_timeout(path: Path) -> None:
    with filled(path, 1), closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with Journal(path, patience_s=0.05) as journal:
            journal.follow(B)
            with pytest.raises(UsageError, match=r"busy for too long. Try again"):
                journal.commit([prediction(1, B)], [])
            other.execute("rollback")
            assert journal.commit([prediction(1, B)], []) == 2


# ---- killed processes

FOLLOWER = """
import sys
from pathlib import Path
from tests.prediction_rows import prediction
from iosig.warehouse.store import journal
from iosig.warehouse.store.journal import Journal, State

journal.SYNCHRONOUS = "off"
path, name = Path(sys.argv[1]), sys.argv[2]
ids = [f"{name}{number}" for number in range(3)]
with Journal(path) as journal:
    for followed_id in ids:
        journal.follow(followed_id)
    state = journal.state(ids[0])
    begun = state.position["evaluation"] if state else 0
    journal.rows_after(0, 1)
    print("follows", flush=True)
    for evaluation in range(begun + 1, 10_000):
        rows = [prediction(evaluation, each, direction=way) for each in ids for way in ("read", "write")]
        states = [State(each, {"evaluation": evaluation}, bytes([evaluation % 256]) * 20_000) for each in ids]
        journal.commit(rows, states)
"""


def follower(path: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FOLLOWER, str(path), name]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def require_whole(journal: Journal, names: tuple[str, ...]) -> int:
    """Assert that every commit is atomic; return the number of rows."""
    rows, _ = journal.rows_after(0, 1_000_000)
    assert rows.select(PREDICTIONS.key).is_unique().all()
    done = {state.followed_id: state for state in journal.states()}
    told = rows.group_by("followed_id", "direction").agg(pl.len(), pl.col("evaluation").max().alias("last"))
    for followed_id, _, count, last in told.iter_rows():
        assert count == last == done[followed_id].position["evaluation"]
        assert done[followed_id].content == bytes([last % 256]) * 20_000
    assert told.height == 6 * len({name for name in names if f"{name}0" in done})
    return rows.height


@pytest.mark.slow
def test_commits_of_killed_followers_are_atomic(path: Path) -> None:
    """Both start concurrently without a journal, and again after each kill, which releases their inputs."""
    chance = random.Random(8)
    counts = [0]
    for _ in range(2):
        children = [follower(path, name) for name in ("a", "b")]
        assert [child.stdout and child.stdout.readline() for child in children] == ["follows\n"] * 2
        with Journal(path) as journal, pytest.raises(UsageError, match="Another process follows a0"):
            journal.follow("a0")
        for child in children:
            time.sleep(chance.uniform(0, 0.1))
            child.send_signal(signal.SIGKILL)
            child.communicate()
        with Journal(path) as journal:
            counts.append(require_whole(journal, ("a", "b")))
            journal.follow("a0")
    assert sorted(counts) == counts
    assert counts[-1] > 0
    assert not list(path.parent.glob(".*.tmp"))


def test_interrupted_transaction_is_rolled_back(path: Path) -> None:
    """A kill within a commit leaves a hot rollback journal: the pages are written, the commit is not."""
    filled(path, 3).close()
    script = f"""
import os, sqlite3
connection = sqlite3.connect({str(path)!r}, isolation_level=None)
connection.execute("pragma journal_mode = truncate")
connection.execute("pragma cache_size = 1")
connection.execute("begin immediate")
connection.execute("update predictions set subject_id = subject_id || hex(zeroblob(50000))")
connection.execute("delete from states")
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    assert path.with_name(f"{path.name}-journal").stat().st_size > 0
    with Journal(path) as journal:
        assert rows_of(journal) == [prediction(number, A) for number in (1, 2, 3)]


# ---- damaged files


def of_another_version(path: Path) -> None:
    filled(path, 1).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma user_version = {VERSION + 1}")


def of_other_columns(path: Path) -> None:
    filled(path, 1).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("alter table predictions drop column is_final")


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table predictions (sequence integer primary key)")


def cut(path: Path) -> None:
    filled(path, 20).close()
    path.write_bytes(path.read_bytes()[:9000])


def overwritten(path: Path) -> None:
    filled(path, 20).close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + os.urandom(len(content) - 100))


def use(path: Path) -> None:
    with Journal(path) as journal:
        journal.follow(A)
        journal.commit([prediction(21, A)], [State(A)])


@pytest.mark.parametrize(
    "make",
    [
        of_another_version,
        of_other_columns,
        foreign,
        cut,
        overwritten,
        lambda path: path.write_bytes(b"{}"),
        lambda path: path.write_bytes(os.urandom(5000)),
        lambda path: path.mkdir(),
    ],
    ids=["version", "columns", "foreign", "cut", "overwritten", "short", "noise", "folder"],
)
def test_damaged_or_foreign_file_is_refused_and_unchanged(make: Callable[[Path], object], path: Path) -> None:
    path.parent.mkdir()
    make(path)
    before = path.is_file() and path.read_bytes()
    with pytest.raises(InputRefused) as refused:
        use(path)
    assert refused.value.remedy.endswith(".")
    assert (path.is_file() and path.read_bytes()) == before


def test_empty_file_becomes_a_journal(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    filled(path, 1).close()


def test_row_that_violates_contract_is_reported_as_damage(path: Path) -> None:
    filled(path, 1).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update predictions set outcome = 'perhaps'")
    with Journal(path) as journal, pytest.raises(InputRefused, match="damaged"):
        journal.rows_after(0, 10)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("position = replace(position, '17', '18')", "it is damaged"),
        ("content = zeroblob(length(content))", "it is damaged"),
        ("content = substr(content, 1, 3)", "it is damaged"),
        ("position = json_set(position, '$.digest', 'x')", "it is damaged"),
        ("position = json_set(position, '$.version', 1)", "it has another version"),
        ("position = json_set(position, '$.version', 99)", "it has another version"),
        # the format before checksums were added
        ("position = json_extract(position, '$.position')", "it has another version"),
    ],
)
def test_damaged_or_outdated_state_has_a_fault(path: Path, change: str, fault: str) -> None:
    state = State(A, {"at": 17, "predictors": {"write": {"evaluation_count": 3}}}, b"cells")
    with filled(path, 1) as journal:
        journal.commit([], [state])
        assert journal.state(A) == state
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"update states set {change}")
        found = journal.state(A)
        assert found is not None
        assert found.fault == fault


@pytest.mark.parametrize("stored", ["{", "7", "null", "[]", '{"version": 2}', '{"version": 2, "position": "{"}'])
def test_invalid_state_is_reported_as_damage(path: Path, stored: str) -> None:
    filled(path, 1).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("insert into states values ('x', ?, x'00')", (stored,))
    with Journal(path) as journal, pytest.raises(InputRefused, match="damaged"):
        journal.state("x")


def test_unwritable_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputRefused, match="cannot be used"):
        Journal(tmp_path / "file" / "predictions.sqlite")


def test_full_disk_refuses_the_commit_atomically(path: Path) -> None:
    with filled(path, 1) as journal:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50_000, limits[1]))
        try:
            with pytest.raises(InputRefused, match="cannot be used"):
                journal.commit([prediction(2, A)], [State(A, {}, b"x" * 1_000_000)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert [row["evaluation"] for row in rows_of(journal)] == [1]
        assert journal.state(A) is None
        journal.commit([prediction(2, A)], [State(A)])
    with Journal(path) as journal:
        assert [row["evaluation"] for row in rows_of(journal)] == [1, 2]


# ---- landing and pruning


def test_interrupted_landing_resumes_with_same_rows(path: Path) -> None:
    with filled(path, 3) as journal:
        rows = journal.begin_landing()
        assert rows == Range(1, 3)
        told = journal.fingerprint(rows)
        journal.commit([prediction(4, A)], [])
        assert journal.begin_landing() == rows
        assert journal.fingerprint(rows) == told
        journal.end_landing(rows, NOW)
        assert journal.begin_landing() == Range(4, 4)
        journal.end_landing(Range(4, 4), NOW)
        assert journal.begin_landing() is None


def test_fingerprints_distinguish_rows(path: Path, tmp_path: Path) -> None:
    other = Journal(tmp_path / "other.sqlite")
    other.follow(A)
    other.commit([prediction(1, A), prediction(2, A, period_s=8.76)], [])
    with filled(path, 2) as journal, other:
        assert journal.fingerprint(Range(1, 1)) == other.fingerprint(Range(1, 1))
        assert journal.fingerprint(Range(2, 2)) != other.fingerprint(Range(2, 2))
        assert journal.fingerprint(Range(1, 2)) != other.fingerprint(Range(1, 2))


def test_pruning_removes_only_rows_landed_long_ago(path: Path) -> None:
    with filled(path, 2) as journal:
        assert journal.prune(NOW) == 0
        for landed_at in (NOW, NOW + timedelta(days=1)):
            rows = journal.begin_landing()
            assert rows is not None
            assert journal.prune(NOW + timedelta(days=9)) == (2 if landed_at > NOW else 0)
            journal.end_landing(rows, landed_at)
            journal.commit([prediction(rows.last + 1, A)], [State(A)])
        assert journal.prune(NOW + timedelta(days=1)) == 0
        assert [row["evaluation"] for row in rows_of(journal)] == [3, 4]
        assert journal.prune(NOW + timedelta(days=2)) == 1
        assert [row["evaluation"] for row in rows_of(journal)] == [4]
        assert journal.begin_landing() == Range(4, 4)
        assert journal.state(A) is not None


def test_pruned_row_cannot_be_committed_again(path: Path) -> None:
    with filled(path, 2) as journal:
        rows = journal.begin_landing()
        assert rows is not None
        journal.end_landing(rows, NOW)
        assert journal.prune(NOW + timedelta(days=1)) == 2
        with pytest.raises(ContractError, match="an evaluation is repeated"):
            journal.commit([prediction(2, A)], [])
        assert journal.commit([prediction(3, A)], []) == 3
        assert journal.begin_landing() == Range(3, 3)


def test_commits_are_synced_to_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **named)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    Journal(path).close()
    assert {"pragma synchronous = full", "pragma journal_mode = truncate"} <= set(statements)


def test_journal_of_warehouse_has_a_fixed_path(tmp_path: Path) -> None:
    assert Store(tmp_path).journal == tmp_path / "predictions.sqlite"


def test_journal_is_a_single_sqlite_file(path: Path) -> None:
    filled(path, 1).close()
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        (text,) = connection.execute("select intervals from predictions").fetchone()
    assert json.loads(text)[0]["evaluation_count"] == 3
    assert {each.name for each in path.parent.iterdir()} == {path.name, f"{path.name}.lock", f"{path.name}-journal"}
