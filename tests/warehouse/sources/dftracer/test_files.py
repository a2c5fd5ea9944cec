"""What one of DFTracer's files says of its processes: whether they came to an end, and when."""

from __future__ import annotations

from iosig.warehouse.sources.dftracer.files import SLACK_US, FileRead
from iosig.warehouse.sources.dftracer.lines import Ending


def of(*, is_closed: bool = False, is_truncated: bool = False, ended: dict[int, int] | None = None) -> FileRead:
    started = {0: 100, 1: 200}
    return FileRead(
        "f", 0, ending=Ending(is_closed, is_truncated), processes={0, 1}, started=started, ended=ended or {}
    )


def test_a_bracket_or_the_ends_of_all_processes_make_a_file_whole() -> None:
    assert of(is_closed=True).is_complete
    assert of(ended={0: 5, 1: 6}).is_complete
    assert not of(ended={0: 5}).is_complete
    assert not of(is_closed=True, is_truncated=True).is_complete


def test_missing_events_are_those_that_the_tracer_counted() -> None:
    found = FileRead("f", 0, processes={0}, event_count=9, numbered_count=8, ending=Ending(is_closed=True))
    assert (found.missing_count, found.is_complete) == (2, False)
    found.are_all_numbered = False
    assert (found.missing_count, found.is_complete) == (0, True)


def test_what_lies_far_outside_of_start_and_end_says_nothing() -> None:
    found = of(ended={0: 5_000, 1: 6_000})
    found.first_us, found.last_us = 50, 7_000
    assert found.edges_us == (50, 7_000)
    found.first_us, found.last_us = 100 - SLACK_US - 1, 6_001 + SLACK_US
    assert found.edges_us == (100, 6_000)
    found.ended = {}
    assert found.edges_us == (99 - SLACK_US, 6_001 + SLACK_US)
    assert FileRead("f", 0).edges_us is None


def test_calls_are_put_in_order_only_where_layers_overlap() -> None:
    found = FileRead("f", 0, has_overlaps=True, layers={2})
    assert not found.needs_order
    found.layers.add(1)
    assert found.needs_order
