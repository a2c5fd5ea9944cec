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


def test_arrays_are_received_unchanged_despite_printed_output() -> None:
    found = list(arrays_from_child(run.squares, 3))
    assert [block["square"].shape for block in found] == [(2, 0), (2, 1), (2, 2)]
    assert found[2]["square"].tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert found[0]["name"].tolist() == ["ä", "b"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_crash_is_refused_with_signal_name(how: signal.Signals) -> None:
    with pytest.raises(InputRefused, match=how.name):
        list(arrays_from_child(run.dying, int(how)))


def test_arrays_sent_before_crash_are_received() -> None:
    arrays = arrays_from_child(run.dying, int(signal.SIGKILL))
    assert next(arrays)["value"].tolist() == [1]
    with pytest.raises(InputRefused):
        next(arrays)


def test_library_that_exits_is_refused() -> None:
    with pytest.raises(InputRefused, match="exit code 3"):
        list(arrays_from_child(run.leaving))


def test_refusal_is_passed_to_parent() -> None:
    with pytest.raises(InputRefused) as refusal:
        list(arrays_from_child(run.refusing))
    assert (refusal.value.reason, refusal.value.remedy) == ("The reason.", "The remedy.")


def test_hanging_reader_is_killed_after_timeout() -> None:
    started = time.monotonic()
    with pytest.raises(InputRefused, match="timed out"):
        list(arrays_from_child(run.hanging, timeout_s=2.0))
    assert time.monotonic() - started < 30


def test_excessive_memory_allocation_is_refused() -> None:
    with pytest.raises(InputRefused, match="memory"):
        list(arrays_from_child(run.starving))


def test_bug_in_reader_raises_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError: ours"):
        list(arrays_from_child(run.faulty))


def test_pickled_objects_are_never_received() -> None:
    with pytest.raises(InputRefused):
        list(arrays_from_child(run.cunning))


def test_missing_function_raises_runtime_error() -> None:
    def gone() -> Iterator[Arrays]:
        yield from ()

    with pytest.raises(RuntimeError, match="did not start"):
        list(arrays_from_child(gone))


def test_child_exits_when_reader_is_closed() -> None:
    arrays = arrays_from_child(run.pid)
    process = int(next(arrays)["pid"][0])
    started = time.monotonic()
    arrays.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_child_imports_no_heavy_modules() -> None:
    assert not next(arrays_from_child(run.imports))["heavy"].any()


# ---- a child for several requests


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


def test_child_serves_consecutive_requests() -> None:
    assert len({process_of(arrays_from_child(run.quiet)) for _ in range(5)}) == 1


def test_large_arrays_are_received_from_reused_child() -> None:
    for _ in range(2):
        first, second = arrays_from_child(run.large, 1_000_000)
        assert np.array_equal(first["value"], np.arange(1_000_000))
        assert first["text"].tolist() == ["ä" * 50] * 1000
        assert np.array_equal(second["value"], np.arange(0, 1_000_000, 2))
        assert second["none"].shape == (0, 3)


@pytest.mark.parametrize("function", [run.refusing, run.faulty, run.leaving])
def test_crashed_or_failed_child_is_replaced(function: child.Callable[..., Iterator[Arrays]]) -> None:
    before = process_of(arrays_from_child(run.quiet))
    with pytest.raises((InputRefused, RuntimeError)):
        list(arrays_from_child(function))
    assert not is_alive(before)
    assert process_of(arrays_from_child(run.quiet)) != before


def test_child_is_not_reused_after_library_printed() -> None:
    before = process_of(arrays_from_child(run.quiet))
    list(arrays_from_child(run.squares, 2))
    assert not is_alive(before)


def test_child_is_killed_if_consumer_stops_early() -> None:
    arrays = arrays_from_child(run.large, 1_000_000)
    process = int(next(arrays)["pid"][0])
    arrays.close()  # type: ignore[attr-defined]
    assert not is_alive(process)
    assert process_of(arrays_from_child(run.quiet)) != process


def test_child_is_replaced_after_maximum_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MAX_REQUESTS", 3)
    served = [process_of(arrays_from_child(run.quiet)) for _ in range(7)]
    assert [served.count(process) for process in dict.fromkeys(served)] == [3, 3, 1]
    assert not is_alive(served[0])


def test_child_that_died_while_idle_is_replaced() -> None:
    before = process_of(arrays_from_child(run.quiet))
    os.kill(before, signal.SIGKILL)
    assert process_of(arrays_from_child(run.quiet)) != before


def test_threads_use_separate_children() -> None:
    with ThreadPoolExecutor(4) as threads:
        sums = list(threads.map(lambda count: sum(_values(count)), range(1000, 1040)))
    assert sums == [(count - 1) * count // 2 for count in range(1000, 1040)]
    assert sum(len(waiting) for waiting in child._POOL._idle.values()) <= child.MAX_IDLE_CHILDREN


def _values(count: int) -> list[int]:
    return [int(value) for block in list(arrays_from_child(run.large, count))[:1] for value in block["value"]]


def test_overlapping_requests_use_separate_children() -> None:
    one, other = arrays_from_child(run.quiet), arrays_from_child(run.quiet)
    assert next(one)["pid"][0] != next(other)["pid"][0]
    assert list(one) == list(other) == []


def test_forked_process_does_not_reuse_children() -> None:
    before = process_of(arrays_from_child(run.quiet))
    forked = os.fork()
    if not forked:
        os._exit(0 if child._POOL.take((run.__name__, tuple(child.sys.path))) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert process_of(arrays_from_child(run.quiet)) == before


def test_printed_output_is_separated_by_request() -> None:
    for words in ("one", "another"):
        block = next(iter(list(arrays_from_child(run.speaking, words))))
        assert sorted(block["said"].tobytes().decode().split("\n")) == sorted([words, "to 2", "from C", ""])
    assert child.read_printed_text() == ""


def test_printed_output_is_truncated() -> None:
    block = next(iter(list(arrays_from_child(run.flooding))))
    assert block["length"].tolist() == [child.MAX_PRINTED_BYTES] * 2


def test_child_that_cannot_reply_is_killed_after_timeout() -> None:
    started = time.monotonic()
    with pytest.raises(InputRefused, match="timed out"):
        list(arrays_from_child(run.silenced, timeout_s=2.0))
    assert time.monotonic() - started < 30
