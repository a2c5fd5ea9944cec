from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files import child
from iosig.warehouse.sources.files.child import Arrays, arrays_from_child
from tests.warehouse.sources import child_functions as run


def test_arrays_come_back_as_they_were_whatever_is_printed() -> None:
    found = list(arrays_from_child(run.squares, 3))
    assert [block["square"].shape for block in found] == [(2, 0), (2, 1), (2, 2)]
    assert found[2]["square"].tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert found[0]["name"].tolist() == ["ä", "b"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_refuses_the_input_and_says_how(how: signal.Signals) -> None:
    with pytest.raises(InputRefused, match=how.name):
        list(arrays_from_child(run.dying, int(how)))


def test_what_came_before_a_crash_was_received() -> None:
    arrays = arrays_from_child(run.dying, int(signal.SIGKILL))
    assert next(arrays)["value"].tolist() == [1]
    with pytest.raises(InputRefused):
        next(arrays)


def test_a_library_that_leaves_the_process_refuses_the_input() -> None:
    with pytest.raises(InputRefused, match="exit code 3"):
        list(arrays_from_child(run.leaving))


def test_a_refusal_passes_through() -> None:
    with pytest.raises(InputRefused) as refusal:
        list(arrays_from_child(run.refusing))
    assert (refusal.value.reason, refusal.value.remedy) == ("The reason.", "The remedy.")


def test_a_reader_that_hangs_is_ended() -> None:
    started = time.monotonic()
    with pytest.raises(InputRefused, match="timed out"):
        list(arrays_from_child(run.hanging, timeout_s=2.0))
    assert time.monotonic() - started < 30


def test_a_claim_of_more_memory_than_there_is_refuses_the_input() -> None:
    with pytest.raises(InputRefused, match="memory"):
        list(arrays_from_child(run.starving))


def test_a_bug_of_ours_stays_a_bug() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError: ours"):
        list(arrays_from_child(run.faulty))


def test_objects_are_never_received() -> None:
    with pytest.raises(InputRefused):
        list(arrays_from_child(run.cunning))


def test_a_function_that_is_not_there_is_a_bug() -> None:
    def gone() -> Iterator[Arrays]:
        yield from ()

    with pytest.raises(RuntimeError, match="did not start"):
        list(arrays_from_child(gone))


def test_the_child_ends_with_its_reader() -> None:
    arrays = arrays_from_child(run.pid)
    process = int(next(arrays)["pid"][0])
    started = time.monotonic()
    arrays.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_the_child_imports_nothing_heavy() -> None:
    assert not next(arrays_from_child(run.imports))["heavy"].any()


# ---- one child for many requests


def process_of(arrays: Iterator[Arrays]) -> int:
    return int(next(iter([block["pid"][0] for block in arrays])))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(autouse=True)
def no_children_wait() -> Iterator[None]:
    child._POOL.end()
    yield
    child._POOL.end()


def test_a_child_serves_one_request_after_another() -> None:
    assert len({process_of(arrays_from_child(run.quiet)) for _ in range(5)}) == 1


def test_large_arrays_come_back_whole_from_a_child_that_waits() -> None:
    for _ in range(2):
        first, second = arrays_from_child(run.large, 1_000_000)
        assert np.array_equal(first["value"], np.arange(1_000_000))
        assert first["text"].tolist() == ["ä" * 50] * 1000
        assert np.array_equal(second["value"], np.arange(0, 1_000_000, 2))
        assert second["none"].shape == (0, 3)


@pytest.mark.parametrize("function", [run.refusing, run.faulty, run.leaving])
def test_a_child_that_came_to_a_bad_end_is_not_used_again(function: child.Callable[..., Iterator[Arrays]]) -> None:
    before = process_of(arrays_from_child(run.quiet))
    with pytest.raises((InputRefused, RuntimeError)):
        list(arrays_from_child(function))
    assert not is_alive(before)
    assert process_of(arrays_from_child(run.quiet)) != before


def test_a_child_whose_library_printed_is_not_used_again() -> None:
    before = process_of(arrays_from_child(run.quiet))
    list(arrays_from_child(run.squares, 2))
    assert not is_alive(before)


def test_a_child_whose_consumer_stops_early_is_ended() -> None:
    arrays = arrays_from_child(run.large, 1_000_000)
    process = int(next(arrays)["pid"][0])
    arrays.close()  # type: ignore[attr-defined]
    assert not is_alive(process)
    assert process_of(arrays_from_child(run.quiet)) != process


def test_a_child_is_ended_after_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MAX_REQUESTS", 3)
    served = [process_of(arrays_from_child(run.quiet)) for _ in range(7)]
    assert [served.count(process) for process in dict.fromkeys(served)] == [3, 3, 1]
    assert not is_alive(served[0])


def test_a_child_that_died_while_it_waited_is_replaced() -> None:
    before = process_of(arrays_from_child(run.quiet))
    os.kill(before, signal.SIGKILL)
    assert process_of(arrays_from_child(run.quiet)) != before


def test_threads_have_children_of_their_own() -> None:
    with ThreadPoolExecutor(4) as threads:
        sums = list(threads.map(lambda count: sum(_values(count)), range(1000, 1040)))
    assert sums == [(count - 1) * count // 2 for count in range(1000, 1040)]
    assert sum(len(waiting) for waiting in child._POOL._idle.values()) <= child.MAX_IDLE_CHILDREN


def _values(count: int) -> list[int]:
    return [int(value) for block in list(arrays_from_child(run.large, count))[:1] for value in block["value"]]


def test_requests_that_overlap_have_children_of_their_own() -> None:
    one, other = arrays_from_child(run.quiet), arrays_from_child(run.quiet)
    assert next(one)["pid"][0] != next(other)["pid"][0]
    assert list(one) == list(other) == []


def test_a_process_that_is_forked_off_leaves_the_children_alone() -> None:
    before = process_of(arrays_from_child(run.quiet))
    forked = os.fork()
    if not forked:
        os._exit(0 if child._POOL.take((run.__name__, tuple(child.sys.path))) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert process_of(arrays_from_child(run.quiet)) == before


def test_what_is_printed_is_told_by_request() -> None:
    for words in ("one", "another"):
        block = next(iter(list(arrays_from_child(run.speaking, words))))
        assert sorted(block["said"].tobytes().decode().split("\n")) == sorted([words, "to 2", "from C", ""])
    assert child.read_printed_text() == ""


def test_a_flood_of_words_is_cut() -> None:
    block = next(iter(list(arrays_from_child(run.flooding))))
    assert block["length"].tolist() == [child.MAX_PRINTED_BYTES] * 2


def test_a_child_that_cannot_answer_any_more_is_ended() -> None:
    started = time.monotonic()
    with pytest.raises(InputRefused, match="timed out"):
        list(arrays_from_child(run.silenced, timeout_s=2.0))
    assert time.monotonic() - started < 30
