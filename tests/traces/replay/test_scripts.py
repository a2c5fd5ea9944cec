"""A rank's calls become scripts: steps, their order among ranks, required files and waiting times."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.traces.replay.barriers import BrokenBarrierError, Gates, SharedCounters
from iosig.traces.replay.files import uses
from iosig.traces.replay.functions import VERBS, Verb
from iosig.traces.replay.ordering import WORLD, choose_order, visits
from iosig.traces.replay.pacing import quantiles, shuffle_places
from iosig.traces.replay.scripts import STEP, compile_script
from iosig.traces.replay.traces import parse_ranks
from iosig.transforms.traces.trace import TimeBin, TimeHistogram
from iosig.warehouse.errors import UsageError
from tests.budget import examples
from tests.flows.replayed_programs import Line, calls_of, executed, scripts_of, used_by

BARRIER = ("MPI_Barrier", WORLD)
WRITTEN = [("open", "f 577 420"), ("write", "f %p 10")]


def verbs(lines: list[Line], levels: dict[int, int] | None = None, **how: object) -> list[str]:
    made = compile_script(0, calls_of(lines, levels), np.zeros((len(lines), 3)), how.get("way", "posix"))  # type: ignore[arg-type]
    return [Verb(verb).name for verb in made.script.steps["verb"].tolist()][:-1]


# ---- selection of calls


NESTED = [("MPI_File_open", "MPI_COMM_SELF f 9 %p 0-0"), ("open", "f 66 420"), ("close", "f"), ("pwrite", "g %p 1 0")]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("posix", ["MPI_OPEN", "PWRITE"]),
        ("mpi", ["MPI_OPEN", "PWRITE"]),
        ("nested", ["OPEN", "CLOSE", "PWRITE"]),
    ],
)
def test_outer_calls_or_nested_posix_calls_are_replayed(way: str, expected: list[str]) -> None:
    assert verbs(NESTED, {1: 1, 2: 1}, way=way) == expected


def test_file_calls_nested_in_other_calls_count_as_outer() -> None:
    lines = [("H5Dwrite", "1 2"), ("MPI_File_sync", "0-0"), ("fsync", "f"), ("main", "x"), ("fsync", "f")]
    assert verbs(lines, {1: 1, 2: 2, 4: 1}) == ["MPI_SYNC", "FSYNC"]


def test_skipped_calls_are_counted_with_their_reason() -> None:
    lines = [
        ("MPI_Comm_rank", "MPI_COMM_WORLD 0"),
        ("mmap", "%p 1 2"),
        ("write", "??? %p 5"),
        ("write", "f %p x"),
        ("write", "f"),
        ("pwrite", "f %p 5 99999999999999999999"),
        ("MPI_File_open", f"{WORLD} f 9 %p 0-0"),
        ("MPI_File_write", "0-0 %p 4 my_type [0_0]"),
        ("MPI_File_write_shared", "0-0 %p 4 MPI_INT [0_0]"),
        ("open", "/ 0"),
        ("fopen", "f zz"),
    ]
    (made,) = scripts_of([lines])
    assert made.script.not_replayed == {
        ("MPI_Comm_rank", "no file call"): 1,
        ("mmap", "function not supported"): 1,
        ("write", "file not known"): 1,
        ("write", "malformed arguments"): 2,
        ("pwrite", "malformed arguments"): 1,
        ("MPI_File_write", "datatype not in the trace"): 1,
        ("MPI_File_write_shared", "shared file pointer, which needs --mpi"): 1,
        ("open", "path refused: not a path below the folder"): 1,
        ("fopen", "malformed arguments"): 1,
    }
    assert made.script.counts == {"MPI_File_open": 1}


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(VERBS)),
            st.lists(st.sampled_from(["f", "0-0", "-1", "3", "%p", "r", "", "MPI_BYTE", WORLD, "9" * 25]), max_size=6),
        ),
        max_size=30,
    )
)
def test_any_arguments_yield_a_script(calls: list[tuple[str, list[str]]]) -> None:
    (made,) = scripts_of([[(function, " ".join(arguments)) for function, arguments in calls]])
    assert made.script.counts.total() + made.script.not_replayed.total() == len(calls)
    assert uses(made).files is not None


def test_spilled_script_equals_the_script_in_memory(tmp_path: Path) -> None:
    (made,) = scripts_of([[("open", "f 66 420"), *[("write", "f %p 7")] * 5000]])
    spilled = made.script.spill(tmp_path)
    assert isinstance(spilled.steps, np.memmap)
    assert [row for rows in spilled.rows() for row in rows] == [row for rows in made.script.rows() for row in rows]
    assert made.script.steps.dtype == STEP


# ---- waiting times


def test_waits_cover_skipped_calls() -> None:
    lines = [("MPI_Comm_rank", f"{WORLD} 0"), ("open", "f 66 420"), ("mmap", "f"), ("umask", "1"), ("close", "f")]
    spent = np.array([[1, 10, 0], [2, 20, 0], [4, 40, 0], [8, 80, 0], [16, 160, 0]], np.float64)
    made = compile_script(0, calls_of(lines), spent, "posix")
    assert made.script.steps["wait_s"].tolist() == [1 + 10 + 2, 4 + 40 + 8 + 80 + 16, 0]


def test_barrier_waits_for_other_ranks_and_not_for_its_traced_time() -> None:
    made = compile_script(0, calls_of([BARRIER, ("fsync", "f")]), np.array([[1, 50, 0.5], [2, 20, 0]]), "posix")
    assert made.script.steps["wait_s"].tolist() == [1, 2, 0]
    assert made.script.steps["hold_s"].tolist() == [0.5, 0, 0]


def test_calls_nested_in_an_executed_call_take_no_time() -> None:
    made = compile_script(0, calls_of(NESTED, {1: 1, 2: 1}), np.full((4, 3), 1.0), "posix")
    assert made.script.steps["wait_s"].tolist() == [1, 1, 0]
    inner = compile_script(0, calls_of(NESTED, {1: 1, 2: 1}), np.full((4, 3), 1.0), "nested")
    assert inner.script.steps["wait_s"].tolist() == [2, 1, 1, 0]


def test_quantiles_reproduce_the_histogram() -> None:
    bins = (TimeBin(1, 1.0, 1.0, 1.0), TimeBin(2, 2.0, 2.5, 3.0), TimeBin(2, 4.0, 7.0, 10.0))
    times = TimeHistogram(5, 1.0, 4.0, 10.0, 0.0, bins)
    assert quantiles(times, np.arange(5)).tolist() == [1.0, 2.0, 3.0, 4.0, 10.0]


@pytest.mark.parametrize("count", [1, 2, 7, 1000, (1 << 20) + 6])
def test_shuffling_is_a_deterministic_injection(count: int) -> None:
    places = np.arange(0, count, max(1, count // 1000))
    moved = shuffle_places(places, count, (0, 1))
    assert len(set(moved.tolist())) == places.size
    assert moved.min() >= 0
    assert moved.max() < count
    assert shuffle_places(places, count, (0, 1)).tolist() == moved.tolist()


# ---- order among ranks


def test_equal_collective_sequences_are_synchronized() -> None:
    own = ("MPI_Bcast", "%p 1 MPI_INT 0 0-2")
    order = choose_order(visits(one.script for one in scripts_of([[BARRIER, own], [BARRIER, own], [BARRIER]])), 3)
    assert order.members == {WORLD: 3, "0-2": 2}
    assert order.leaders == {WORLD: 0, "0-2": 0}
    assert order.ignored == {}


@pytest.mark.parametrize(
    ("programs", "ignored"),
    [
        ([[BARRIER], [BARRIER, BARRIER]], {WORLD: "its ranks make different numbers of calls"}),
        ([[BARRIER], []], {WORLD: "some replayed ranks make none of these calls"}),
    ],
)
def test_unequal_collective_sequences_are_ignored(programs: list[list[Line]], ignored: dict[str, str]) -> None:
    order = choose_order(visits(one.script for one in scripts_of(programs)), 2)
    assert order.members == {}
    assert order.ignored == ignored


def test_deadlocking_collectives_are_ignored(tmp_path: Path) -> None:
    one, two = ("MPI_Barrier", "0-1"), ("MPI_Barrier", "0-2")
    tmp_path.joinpath("d").mkdir()
    done, order, _ = executed(tmp_path / "d", [[one, two, ("access", "f 0")], [two, one, ("access", "f 0")]])
    assert set(order.ignored) == {"0-1", "0-2"}
    assert [rank.counts["access"] for rank in done] == [1, 1]


def test_deadlock_leaves_other_communicators_synchronized() -> None:
    """The world waits for ranks in the deadlock, but does not cause it."""
    one, two, own = ("MPI_Barrier", "0-1"), ("MPI_Barrier", "0-2"), ("MPI_Barrier", "2-1")
    programs = [[one, two, BARRIER], [two, one, BARRIER], [own, BARRIER]]
    order = choose_order(visits(made.script for made in scripts_of(programs)), 3)
    assert order.ignored == dict.fromkeys(("0-1", "0-2"), "the ranks would deadlock")
    assert order.members == {WORLD: 3, "2-1": 1}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.permutations(["0-1", "0-2", "1-1", "2-1", WORLD]), min_size=2, max_size=5),
    st.lists(st.sets(st.sampled_from(["0-1", "0-2", "1-1", "2-1"])), min_size=5, max_size=5),
)
def test_remaining_communicators_never_deadlock(orders: list[list[str]], absent: list[set[str]]) -> None:
    programs = [
        [("MPI_Barrier", name) for name in order if name not in without]
        for order, without in zip(orders, absent, strict=False)
    ]
    order = choose_order(visits(made.script for made in scripts_of(programs)), len(programs))
    paths = [[name for _, name in program if name in order.members] for program in programs]
    while any(paths):
        heads = {path[0] for path in paths if path}
        free = {name for name in heads if all(path[:1] == [name] for path in paths if name in path)}
        assert free
        paths = [path[1:] if path and path[0] in free else path for path in paths]


def test_barrier_keeps_the_order_of_ranks(tmp_path: Path) -> None:
    first = [("open", "f 577 420"), *[("write", "f %p 10")] * 50, ("close", "f"), BARRIER]
    second = [BARRIER, ("open", "f 0"), *[("read", "f %p 10")] * 50]
    for turn, programs in enumerate(([first, second], [second, first])):
        folder = tmp_path / str(turn)
        folder.mkdir()
        done, _, used = executed(folder, programs)
        assert sum(rank.read_bytes for rank in done) == 500
        assert used.files["f",].prepared_bytes() is None


def test_waiting_process_is_released_when_another_dies(tmp_path: Path) -> None:
    board = SharedCounters(tmp_path / "board", 1, 1).make().open()
    gates = Gates(board, multiprocessing.Lock(), [multiprocessing.Semaphore(0)], 0, [2], [(0,)])
    assert not gates.is_open(0, gates.arrive(0))
    board.broken[0] = 1
    with pytest.raises(BrokenBarrierError):
        gates.wait(None)


# ---- files


@pytest.mark.parametrize(
    ("programs", "before", "after"),
    [
        ([[("open", "f 0"), ("read", "f %p 7"), ("pread", "f %p 10 90")]], 100, 100),
        ([[("open", "f 66 420"), ("pwrite", "f %p 10 90"), ("pread", "f %p 100 0")]], None, 100),
        ([[("open", "f 66 420"), ("pread", "f %p 100 0"), ("pwrite", "f %p 10 90")]], 100, 100),
        ([[("open", "f 2"), ("pwrite", "f %p 10 90")]], 0, 100),
        ([[("open", "f 2")]], None, 0),
        ([[("fopen", "f r"), ("fread", "%p 4 5 f")]], 20, 20),
        ([[("open", "f 1089 420"), ("write", "f %p 10")]], None, None),
        ([[("open", "f 577 420"), ("write", "f %p 10"), ("unlink", "f")]], None, None),
        ([[*WRITTEN, BARRIER], [BARRIER, ("open", "f 0"), ("read", "f %p 9")]], None, 10),
        ([WRITTEN, [("open", "f 0"), ("read", "f %p 9")]], 9, 10),
    ],
)  # fmt: skip
def test_initial_and_final_file_sizes_are_inferred(
    programs: list[list[Line]], before: int | None, after: int | None
) -> None:
    use = used_by(scripts_of(programs)).files["f",]
    assert use.prepared_bytes() == before
    assert use.final_bytes() == after


def test_disk_usage_counts_written_bytes_without_holes() -> None:
    (made,) = scripts_of([[("open", "f 66 420"), ("pwrite", "f %p 10 1000000000000")]])
    assert uses(made).files["f",].disk_bytes() == 10


def test_folders_created_by_ranks_are_not_prepared() -> None:
    used = used_by(scripts_of([[("mkdir", "/a/b 511"), ("open", "/a/b/c/f 66 420")]]))
    assert list(used.list_needed_folders()) == [("a", "b"), ("a", "b")]


# ---- selection of ranks


def test_ranks_are_numbers_and_spans() -> None:
    assert parse_ranks("0-2,7", 8) == (0, 1, 2, 7)
    assert parse_ranks(None, 3) == (0, 1, 2)


@pytest.mark.parametrize("text", ["", "x", "2-1", "0-8", "1,,2", "-1", "0-99999999999", "²"])
def test_invalid_ranks_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_ranks(text, 8)
