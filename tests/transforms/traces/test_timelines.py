"""Timelines of the reads and writes of all ranks."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings

from iosig.transforms.traces.expansion import rank_calls
from iosig.transforms.traces.progressions import Progression
from iosig.transforms.traces.timelines import SCHEMA, compute_timeline, group_ranks
from iosig.transforms.traces.totals import compute_totals
from iosig.transforms.traces.trace import Call, CompressedTrace, Loop, RankClass, Share
from tests import compressed, spmd_programs
from tests.budget import examples
from tests.naive.traces.totals import Made, asked_of
from tests.spmd_programs import FORMS

Sums = dict[tuple[str, str, float], tuple[int, float | None]]


def _sum_rows(rows: list[tuple[str, str, float, float | None, int]]) -> Sums:
    found: defaultdict[tuple[str, str, float], tuple[int, float | None]] = defaultdict(lambda: (0, 0.0))
    for module, direction, start_s, volume, count in rows:
        before, known = found[module, direction, round(start_s, 6)]
        total = None if known is None or volume is None else known + volume
        found[module, direction, round(start_s, 6)] = before + count, total
    return dict(found)


def _expected_sums(trace: CompressedTrace) -> Sums:
    """Return the sums of the requests of all ranks by start time, after expanding every rank."""
    rows = []
    for rank in range(trace.process_count):
        around: list[tuple[int, bool]] = []
        for row in rank_calls(trace, rank).iter_rows(named=True):
            around = [pair for pair in around if pair[0] < row["level"]]
            is_nested = any(touches for _, touches in around)
            around.append((row["level"], row["module"] != "MPI"))
            form = FORMS.by_function.get(row["function"])
            if form is None or form.operation not in ("read", "write") or is_nested:
                continue
            volume = asked_of(row["arguments"].split(" "), form, FORMS)
            rows.append((form.layer, form.operation, row["start_s"], volume, 1))
    return _sum_rows(rows)


@settings(deadline=None, max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(spmd_programs.programs())
def test_intervals_contain_the_requests_of_all_ranks(program: tuple[int, list[Made]]) -> None:
    trace = spmd_programs.compressed(*program)
    found, expected = compute_timeline(trace, FORMS), _expected_sums(trace)
    columns = found.intervals.select("module", "direction", "start_s", "bytes", "request_count")
    sums = _sum_rows(columns.rows())
    assert {key: count for key, (count, _) in sums.items()} == {key: count for key, (count, _) in expected.items()}
    for key, (_, volume) in sums.items():
        if volume is not None:
            assert volume == pytest.approx(expected[key][1])
    ends = [rank_calls(trace, rank)["end_s"].to_list() for rank in range(trace.process_count)]
    assert found.duration_s == pytest.approx(max((end for own in ends for end in own), default=0.0))


def test_timeline_size_does_not_grow_with_ranks() -> None:
    small, large = (compute_timeline(compressed.file_per_process(n), FORMS) for n in (10, 1_000_000))
    assert large.intervals.drop("bytes", "request_count").equals(small.intervals.drop("bytes", "request_count"))
    assert large.intervals["bytes"].to_list() == [131072e6] * 4
    assert large.intervals["request_count"].to_list() == [1_000_000] * 4
    assert large.intervals["start_s"].to_list() == pytest.approx([0.004, 0.007, 0.010, 0.013])
    assert large.duration_s == pytest.approx(0.018)


def test_timeline_bytes_equal_the_totals() -> None:
    trace = compressed.table_one_posix(48)
    (row,) = compute_totals(trace, FORMS).modules
    assert compute_timeline(trace, FORMS).intervals["bytes"].sum() == row.written_bytes


def test_ranks_with_growing_iterations_are_grouped() -> None:
    n = 1000
    ranks = Progression(0, (1,), (n,))
    counts = (Share(ranks, ((Progression(1),),), (Progression(1),)),)
    write = Call("POSIX", "write", 0, ("f %p 10",), (), (), compressed.steady(1, 1.0))
    rank_class = RankClass((ranks,), (Loop(counts, (write,)),))
    kinds = group_ranks(rank_class)
    assert len(kinds) == 16
    assert sum(kind.ranks.size * kind.weight for kind in kinds) == n
    found = compute_timeline(CompressedTrace(n, (rank_class,)), FORMS).intervals
    assert found["bytes"].sum() == pytest.approx(10 * n * (n + 1) / 2, rel=0.01)


def test_too_many_calls_are_rejected() -> None:
    with pytest.raises(ValueError, match="more than 5"):
        compute_timeline(compressed.file_per_process(10), FORMS, max_calls=5)


def test_trace_without_calls_has_an_empty_timeline() -> None:
    found = compute_timeline(CompressedTrace(3, ()), FORMS)
    assert (found.intervals.height, dict(found.intervals.schema), found.duration_s) == (0, SCHEMA, 0.0)
