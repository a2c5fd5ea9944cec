from __future__ import annotations

import polars as pl
import pytest

from iosig.warehouse.sources.counters.line_protocol import (
    Lines,
    Points,
    find_lone_names,
    is_point,
    parse_points,
    select_measurements,
)
from tests.budget import one_in


def frame(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"line": range(1, len(texts) + 1), "text": texts}, schema={"line": pl.Int64, "text": pl.String})


def read(*texts: str, of: tuple[str, ...] | None = ("m",)) -> tuple[list[Points], pl.DataFrame]:
    own, strange = select_measurements(frame(*texts), of)
    lines, untimed = Lines.split_times(own)
    found, damaged = parse_points(lines.said)
    return found, pl.concat([strange, untimed, lines.expand_refused(damaged, own)])


def test_points_with_same_names_are_read_together() -> None:
    found, refused = read("m,a=1,b=x f=1i,g=2u 1700000000", "m,a=2,b=y f=3.0,g=4e2 1700000001", "m f=7i 1700000002")
    assert refused.is_empty()
    first, second = found
    assert (first.tags, first.fields, first.lines["line"].to_list()) == (("a", "b"), ("f", "g"), [1, 2])
    assert (first.tag("b").to_list(), first.tag("c").to_list()) == (["x", "y"], [None, None])
    assert first.counts(["g", "f", "h"]).rows() == [(2, 1, None), (400, 3, None)]
    assert (second.tags, second.counts(["h"]).rows()) == ((), [(None,)])


def test_lines_that_differ_only_in_time_are_parsed_once() -> None:
    texts = [f"m,a={name} f={value}i {at}" for at in ("1700000000", "1700000001000") for name, value in ("xx", "y1")]
    lines, refused = Lines.split_times(frame(*texts, "m f=1i", "m f=1i 170000000012"))
    assert (lines.said["line"].to_list(), refused["line"].to_list()) == ([1, 2], [5, 6])
    assert lines.said["text"].to_list() == ["m,a=x f=xi", "m,a=y f=1i"]
    rows = lines.expand(pl.DataFrame({"line": [2], "told": ["y"]}, schema={"line": pl.Int64, "told": pl.String}))
    assert rows.sort("line").select("line", "at_us", "told").rows() == [
        (2, 1_700_000_000_000_000, "y"), (4, 1_700_000_001_000_000, "y")
    ]  # fmt: skip
    found, refused = read(*texts)
    assert (found[0].lines["line"].to_list(), refused.height) == ([1, 2], 0)


def test_points_with_reordered_names_are_separate_groups() -> None:
    found, refused = read("m,a=1 f=1i,g=2i 1700000000", "m,a=1 g=2i,f=1i 1700000000", "m,b=1 f=1i,g=2i 1700000000")
    assert refused.is_empty()
    assert [each.counts(["f", "g"]).rows() for each in found] == [[(1, 2)]] * 3


@pytest.mark.parametrize(
    ("value", "count"),
    one_in(3, [("7", 7), ("7i", 7), ("7u", 7), ("7.0", 7), ("1.5e3", 1500), ("7.5", None), ("-7i", None), ("t", None),
     ('"7"', None), ("7iu", None), ("", None), ("9007199254740993i", 9007199254740993), ("1e300", None)]),
)  # fmt: skip
def test_count_must_be_a_non_negative_integer(value: str, count: int | None) -> None:
    found, _ = read(f"m f=1i,g={value},h=2i 1700000000")
    assert found[0].counts(["f", "g", "h"]).rows() == [(1, count, 2)]


def test_blanks_and_commas_may_be_escaped_or_quoted() -> None:
    found, refused = read('m,a=x\\ y\\,z\\=1 s="1 day, a=b \\"c\\"",f=1i 1700000000', 'm,a="q" s="",f=2i 1700000000')
    assert refused.is_empty()
    assert found[0].tag("a").to_list() == ["x y,z=1", '"q"']
    assert found[0].counts(["f"]).rows() == [(1,), (2,)]


@pytest.mark.parametrize(
    "text", one_in(3, ["m,a=1 f=1i", "m,a=1 f=1i 17", "m,a=1 1700000000", "m,a=1,a=2 f=1i 1700000000",
             "m,a=1,2 f=1i 1700000000",
             "m, f=1i 1700000000", "m,=1 f=1i 1700000000", "m f=1i,f=2i 1700000000", "m,a==1 f=1i 1700000000",
             "m f 1700000000"]),
)  # fmt: skip
def test_invalid_point_is_refused(text: str) -> None:
    found, refused = read(text)
    assert (found, refused.select("line", "raw").rows()) == ([], [(1, text)])


def test_points_of_other_measurements_are_skipped() -> None:
    found, refused = read('n,a=1 f=1i,s="x y" 1700000000', "# m", "", "n,a=1 what is this?", "mm f=1 1700000000")
    assert (found, refused["line"].to_list()) == ([], [4])
    assert len(read("n f=1 1700000000", "", of=None)[0]) == 1


def test_name_that_replaces_another_in_single_point_is_flagged() -> None:
    same = [f"m,a={number} f=1i,g=2i 1700000000" for number in range(10)]
    found, _ = read(*same, "m,a=1 f=1i,q=2i 1700000000", "m,a=1,b=2 x=1i 1700000000")
    assert {each.lines["line"][0]: name for each, name in zip(found, find_lone_names(found), strict=True)} == {
        1: None, 11: "q", 12: None
    }  # fmt: skip
    assert find_lone_names(read(*same[:5], "m,a=1 f=1i,q=2i 1700000000")[0]) == [None, None]


@pytest.mark.slow
def test_block_with_too_many_point_shapes_is_refused_beyond_limit() -> None:
    found, refused = read(*(f"m f{number}=1i 1700000000" for number in range(520)))
    assert (len(found), refused.height) == (500, 20)


@pytest.mark.slow
def test_many_damaged_lines_are_refused_quickly() -> None:
    found, refused = read("m f=1i 1700000000", *(f"m {number} 1700000000" for number in range(20_000)))
    assert (len(found), refused["line"].to_list()) == (1, list(range(2, 20_002)))


def test_point_requires_a_field_and_a_time() -> None:
    assert is_point('m,a=1 f=1i,s="x" 1700000000000000000')
    assert not any(map(is_point, ["", "# a", "m f=1i", "a b c", "m,a=1 f 1700000000"]))
