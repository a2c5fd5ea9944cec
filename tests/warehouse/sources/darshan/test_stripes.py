from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from iosig.warehouse.sources.darshan.stripes import Stripes
from tests.budget import examples

#: (size, count, pattern, flags, start, end, mirror)
Component = tuple[int, int, int, int, int, int, int]


def stripes(files: list[tuple[int, list[tuple[Component, list[int]]]]]) -> Stripes:
    """Lay out files (id, [(component, targets)]) as records do."""
    components = [component for _, parts in files for component, _ in parts]
    osts = [ost for _, parts in files for _, targets in parts for ost in targets]
    return Stripes.from_records(
        np.array([file for file, _ in files], np.uint64),
        np.array([len(parts) for _, parts in files], np.int64),
        np.array(components, np.int64).reshape(-1, 7),
        np.array(osts, np.int64),
    )


def plain(size: int, osts: list[int]) -> tuple[Component, list[int]]:
    return (size, len(osts), 0, 0, 0, -1, 0), osts


def targets(found: Stripes, requests: list[tuple[int, int]]) -> list[int] | None:
    ids, offsets = (np.array(values, dtype) for values, dtype in zip(zip(*requests), (np.uint64, np.int64)))  # noqa: B905
    result = found.targets(ids, np.ones(len(ids), np.int64), offsets)
    return None if result is None else result.tolist()


def naive(files: list[tuple[int, list[tuple[Component, list[int]]]]], file: int, offset: int) -> int:
    for component, osts in dict(reversed(files)).get(file, []):
        size, count, _, _, start, end, _ = component
        if count and start <= offset and (end == -1 or offset < end):
            return osts[(offset // size) % count]
    return -1


def test_stripes_are_distributed_round_robin() -> None:
    found = stripes([(7, [plain(10, [3, 1, 2])])])
    assert targets(found, [(7, 0), (7, 9), (7, 10), (7, 29), (7, 30), (8, 0)]) == [3, 3, 1, 2, 3, -1]
    assert found.describe_files() == {7: (10, [3, 1, 2])}


def test_files_without_stripes_have_no_targets() -> None:
    assert targets(Stripes.empty(), [(7, 0)]) is None
    assert targets(stripes([(7, [plain(10, [1])])]), [(8, 0)]) is None
    found = stripes([(7, [plain(10, [])])])
    assert targets(found, [(7, 0)]) == [-1]
    assert found.describe_files() == {7: (None, None)}


def test_each_extent_has_a_separate_layout() -> None:
    first, second = (4, 1, 0, 0, 0, 8, 0), (8, 2, 0, 0, 8, -1, 0)
    found = stripes([(1, [plain(5, [9])]), (2, [(first, [5]), (second, [6, 7])])])
    assert targets(found, [(2, 0), (2, 7), (2, 8), (2, 16), (2, 24), (1, 99)]) == [5, 5, 7, 6, 7, 9]
    assert found.describe_files()[2] == (None, [5, 6, 7])


def test_first_mirror_is_used() -> None:
    found = stripes([(1, [((4, 1, 0, 0, 0, -1, 1), [5]), ((4, 1, 0, 0, 0, -1, 2), [6])])])
    assert targets(found, [(1, 0), (1, 100)]) == [5, 5]


def test_impossible_stripes_are_unknown() -> None:
    found = stripes([(1, [((0, 1, 0, 0, 0, -1, 0), [5])]), (2, [((8, 1, 0, 0, 0, -1, 0), [-1])])])
    assert targets(found, [(1, 0), (2, 0), (2, -1)]) == [-1, -1, -1]
    assert found.describe_files() == {1: (None, [5]), 2: (8, None)}


def test_first_of_duplicate_records_is_used() -> None:
    found = stripes([(2, [plain(8, [4])]), (1, [plain(8, [3])]), (2, [plain(16, [5])])])
    assert targets(found, [(2, 0), (1, 0)]) == [4, 3]


@st.composite
def layouts(draw: st.DrawFn) -> list[tuple[int, list[tuple[Component, list[int]]]]]:
    files = []
    for file in range(draw(st.integers(1, 4))):
        edges = sorted(draw(st.sets(st.integers(1, 50), max_size=3)))
        parts = []
        for start, end in zip([0, *edges], [*edges, -1], strict=True):
            osts = draw(st.lists(st.integers(0, 9), max_size=4))
            parts.append(((draw(st.integers(1, 9)), len(osts), 0, 0, start, end, 0), osts))
        files.append((file, parts))
    return files


@settings(max_examples=examples(60), deadline=None)
@given(layouts(), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), min_size=1, max_size=20))
def test_targets_match_naive_computation(
    files: list[tuple[int, list[tuple[Component, list[int]]]]], requests: list[tuple[int, int]]
) -> None:
    wanted = [naive(files, file, offset) for file, offset in requests]
    assert (targets(stripes(files), requests) or [-1] * len(requests)) == wanted
