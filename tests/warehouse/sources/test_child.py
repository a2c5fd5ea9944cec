from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.warehouse.sources import child_functions as run
from warehouse.errors import InputRefused
from warehouse.sources.child import Arrays, arrays_from_child


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
    with pytest.raises(InputRefused, match="did not come to an end"):
        list(arrays_from_child(run.hanging, patience_s=2.0))
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
