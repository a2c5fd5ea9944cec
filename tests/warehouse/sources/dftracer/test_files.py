"""Test the process ends in DFTracer files: whether and when each process ended."""

from __future__ import annotations

from iosig.warehouse.sources.dftracer.files import SLACK_US, FileState
from iosig.warehouse.sources.dftracer.lines import FileEnd


def of(*, is_closed: bool = False, is_truncated: bool = False, ended: dict[int, int] | None = None) -> FileState:
    started = {0: 100, 1: 200}
    return FileState(
        "f", 0, ending=FileEnd(is_closed, is_truncated), processes={0, 1}, started=started, ended=ended or {}
    )


def test_file_is_complete_with_closing_bracket_or_all_process_ends() -> None:
    assert of(is_closed=True).is_complete
    assert of(ended={0: 5, 1: 6}).is_complete
    assert not of(ended={0: 5}).is_complete
    assert not of(is_closed=True, is_truncated=True).is_complete


def test_missing_events_follow_from_count_of_tracer() -> None:
    found = FileState("f", 0, processes={0}, event_count=9, numbered_count=8, ending=FileEnd(is_closed=True))
    assert (found.missing_count, found.is_complete) == (2, False)
    found.are_all_numbered = False
    assert (found.missing_count, found.is_complete) == (0, True)


def test_events_far_outside_start_and_end_are_ignored() -> None:
    found = of(ended={0: 5_000, 1: 6_000})
    found.first_us, found.last_us = 50, 7_000
    assert found.edges_us == (50, 7_000)
    found.first_us, found.last_us = 100 - SLACK_US - 1, 6_001 + SLACK_US
    assert found.edges_us == (100, 6_000)
    found.ended = {}
    assert found.edges_us == (99 - SLACK_US, 6_001 + SLACK_US)
    assert FileState("f", 0).edges_us is None


def test_calls_are_sorted_only_if_layers_overlap() -> None:
    found = FileState("f", 0, has_overlaps=True, layers={2})
    assert not found.needs_order
    found.layers.add(1)
    assert found.needs_order
