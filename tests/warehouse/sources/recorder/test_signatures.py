from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder.signatures import SIGNATURE, SignedRank, open_signed_run, select_outer_calls
from tests.budget import examples, one_in
from tests.naive import recorder_traces as naive
from tests.naive.recorder_traces import USER, Call
from tests.naive.sources.recorder import signatures as twin
from tests.warehouse.sources.recorder.test_parquet import packed, table
from tests.warehouse.sources.recorder.test_source import COUNTS, TRACES
from tests.warehouse.sources.trace_landing import calls_of, expected, made_up, put, tarred

FORMS = {"separate": naive.separate, "merged": naive.merged}
RANKS = [
    [
        Call(0, 0, ("f", "66", "420"), 10, 20),
        Call(2, 0, ("f", "%p", "8"), 30, 31),
        Call(2, 0, ("f", "%p", "8"), 40, 41),
    ],
    [Call(5, 0, ("MPI_COMM_WORLD",), 5, 500), Call(2, 0, ("f", "%p", "8"), 501, 502)],
    [],
]


def texts(ranks: list[list[Call]]) -> dict[str, bytes | str]:
    return {f"{rank}.txt": naive.text(calls) for rank, calls in enumerate(ranks)}


def ranks_of(path: Path) -> list[SignedRank]:
    with open_signed_run(path) as run:
        return [run.decode(rank) for rank in run.ranks]


def rows_of(found: SignedRank) -> list[tuple[object, ...]]:
    """Return a rank's calls as landed, after checking their form."""
    assert found.order.dtype == np.int32
    assert found.signatures.schema == pl.Schema(
        {"level": pl.Int64, "module": pl.String, "function": pl.String, "arguments": pl.String}
    )
    assert found.signatures.n_unique() == found.signatures.height
    assert found.order[np.sort(np.unique(found.order, return_index=True)[1])].tolist() == list(
        range(found.signatures.height)
    )
    columns = [found.signatures[name].gather(found.order).to_list() for name in SIGNATURE]
    times = found.start_s.tolist(), found.end_s.tolist()
    return list(zip([found.rank] * found.order.size, range(found.order.size), *columns, *times, strict=True))


def same(one: SignedRank, other: SignedRank) -> bool:
    return (
        one.signatures.equals(other.signatures)
        and np.array_equal(one.order, other.order)
        and np.array_equal(one.start_s, other.start_s)
        and np.array_equal(one.end_s, other.end_s)
    )


def signed(calls: list[twin.Call]) -> SignedRank:
    known, order = twin.signed(calls)
    rows = pl.DataFrame(known, orient="row", schema=dict(zip(SIGNATURE, (pl.Int64, *3 * (pl.String,)), strict=True)))
    times = np.arange(len(order), dtype=np.float64)
    return SignedRank(0, rows, np.array(order, np.int32), times, times + 0.5)


# ---- intact traces


@pytest.mark.parametrize("form", FORMS)
def test_run_has_metadata_and_signed_ranks(tmp_path: Path, form: str) -> None:
    with open_signed_run(put(tmp_path / "raw", FORMS[form](RANKS))) as run:
        assert (run.version, run.process_count, run.ranks) == ("2.5.0", 3, range(3))
        assert run.started_at is not None
        first, second, empty = map(run.decode, run.ranks)
    assert first.signatures.rows() == [(0, "POSIX", "open", "f 66 420"), (0, "POSIX", "write", "f %p 8")]
    assert first.order.tolist() == [0, 1, 1]
    assert first.start_s.tolist() == [10e-7, 30e-7, 40e-7]
    assert first.end_s.tolist() == [20e-7, 31e-7, 41e-7]
    assert second.signatures["function"].to_list() == ["MPI_Barrier", "write"]
    assert (empty.signatures.height, empty.order.size, empty.start_s.size) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_all_forms_have_equal_signatures_and_calls(tmp_path: Path, seed: int) -> None:
    ranks = [calls for calls in made_up(5, seed) if calls]
    wanted = [expected(rank, calls) for rank, calls in enumerate(ranks)]
    raw = ranks_of(put(tmp_path / "raw", naive.separate(ranks)))
    assert [rows_of(found) for found in raw] == wanted
    merged = ranks_of(put(tmp_path / "merged", naive.merged(ranks)))
    text = ranks_of(put(tmp_path / "text", texts(ranks)))
    (tmp_path / "packed").write_bytes(tarred(texts(ranks)))
    for others in (merged, text, ranks_of(tmp_path / "packed")):
        assert all(same(one, other) for one, other in zip(raw, others, strict=True))
    files = {f"{rank}.parquet": packed(table(rank, calls)) for rank, calls in enumerate(ranks)}
    for one, other in zip(raw, ranks_of(put(tmp_path / "parquet", files)), strict=True):
        assert one.signatures.equals(other.signatures)
        assert np.array_equal(one.order, other.order)
        assert np.allclose(one.start_s, other.start_s, rtol=1e-7)


def test_signatures_do_not_depend_on_threads_and_addresses(tmp_path: Path) -> None:
    calls = [Call(2, 0, ("f", "%p", "1"), tick, tick, thread=tick % 2) for tick in range(4)]
    calls += [Call(USER, 0, (address, "solve"), tick, tick) for tick, address in enumerate(("0x1", "0x2"), 4)]
    (found,) = ranks_of(put(tmp_path, naive.separate([calls])))
    assert found.signatures["function"].to_list() == ["write", "solve"]
    assert found.order.tolist() == [0, 0, 0, 0, 1, 1]


def distinct(count: int) -> list[Call]:
    """Return distinct calls: first with varying lengths, then many of equal length."""
    sizes = [*(10 ** (place % 7) for place in range(count // 3)), *range(10**6, 10**6 + count - count // 3)]
    return [Call(3, 0, ("f", "%p", str(size), str(place)), place, place) for place, size in enumerate(sizes)]


def test_many_signatures_of_equal_and_varying_length_are_read(tmp_path: Path) -> None:
    calls = distinct(9000)
    (found,) = ranks_of(put(tmp_path, naive.separate([calls])))
    assert found.order.tolist() == list(range(9000))
    assert found.signatures["arguments"].to_list() == [" ".join(call.arguments) for call in calls]


@pytest.fixture(scope="module")
def many_signatures() -> dict[str, bytes]:
    return naive.separate([distinct(9000)])


@pytest.mark.parametrize("place", [400, 2000, 5000, 8999])
@pytest.mark.parametrize("length", [-(1 << 31), -16, 0, 14, 30, (1 << 31) - 1])
def test_wrong_length_among_many_signatures_is_refused(
    many_signatures: dict[str, bytes], tmp_path: Path, place: int, length: int
) -> None:
    files = many_signatures
    content = files["0.cst"]
    at = 4
    for _ in range(place):
        at += 16 + struct.unpack_from("<i", content, at + 8)[0]
    damaged_ = content[: at + 8] + struct.pack("<i", length) + content[at + 12 :]
    with pytest.raises(InputRefused, match=r"Rank 0 .*signature"):
        ranks_of(put(tmp_path, files | {"0.cst": damaged_}))


def test_single_text_is_a_run_with_a_single_rank(tmp_path: Path) -> None:
    (found,) = ranks_of(put(tmp_path, {"0.txt": texts(RANKS)["0.txt"]}) / "0.txt")
    assert rows_of(found) == expected(0, RANKS[0])
    with pytest.raises(InputRefused, match="no file of rank 0 of 2"):
        ranks_of(put(tmp_path, {"1.txt": texts(RANKS)["1.txt"]}) / "1.txt")


# ---- damage


def damaged(name: str, content: bytes | str | None) -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = dict(naive.separate(RANKS[:2] + RANKS[:1]))
    if content is None:
        del files[name]
        return files
    return files | {name: content}


RAW = naive.separate(RANKS[:2] + RANKS[:1])


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("1.cst", None, "Rank 1 .*1.cst is missing"),
        ("2.cfg", b"", "Rank 2 .*grammar is truncated"),
        ("1.ts", RAW["1.ts"][:-8], "Rank 1 "),
        ("0.ts", RAW["0.ts"] + b"x", "Rank 0 .*truncated"),
        ("2.cst", RAW["0.cst"], "Rank 2 .*differs from the file"),
        ("3.ts", b"", "3 ranks, and files of rank 3"),
        ("recorder.mt", naive.metadata(5), "no file of rank 3 of 5"),
        ("recorder.mt", naive.metadata(1 << 30), "no file of rank 3 of 1073741824"),
        ("VERSION", b"3.0.0", "has version"),
    ],
)
def test_incomplete_raw_trace_is_refused(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    with pytest.raises(InputRefused, match=reason):
        ranks_of(put(tmp_path, damaged(name, content)))


def test_missing_rank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no file of rank 1 of 3"):
        ranks_of(put(tmp_path, {name: text for name, text in texts(RANKS).items() if name != "1.txt"}))


def test_refused_line_refuses_its_rank(tmp_path: Path) -> None:
    files = texts(RANKS)
    with pytest.raises(InputRefused, match=r"Rank 1 cannot be read completely\. Call 3: The line is not"):
        ranks_of(put(tmp_path, files | {"1.txt": f"{files['1.txt']!s}damage\n"}))


@pytest.mark.parametrize(
    ("form", "began", "ceased", "reason"),
    [
        ("raw", 50, 40, "ends before it starts"),
        ("text", 50, 40, "ends before it starts"),
        ("text", 9, 50, "starts before the previous call"),
        ("text", 10**16, 10**16 + 1, "ten years"),
    ],
)
def test_impossible_times_refuse_the_rank(tmp_path: Path, form: str, began: int, ceased: int, reason: str) -> None:
    calls = [*RANKS[0], Call(1, 0, ("f",), began, ceased)]
    files = naive.separate([calls]) if form == "raw" else texts([calls])
    with pytest.raises(InputRefused, match=f"Rank 0 .*Call 4: .*{reason}"):
        ranks_of(put(tmp_path, files))


def test_export_without_all_arguments_is_refused(tmp_path: Path) -> None:
    calls = [Call(2, 0, tuple("abcdefghijk"), 0, 1)]
    with pytest.raises(InputRefused, match=r"Rank 0 .*first ten arguments"):
        ranks_of(put(tmp_path, {"0.parquet": packed(table(0, calls))}))


# ---- outer calls

OPEN, WRITE, BARRIER = (0, "MPIIO", "MPI_File_open", "f"), (1, "POSIX", "write", "f 1"), (0, "MPI", "MPI_Barrier", "")
SOLVE = (0, "FTRACE", "solve", "")


def test_nested_calls_are_dropped() -> None:
    found = select_outer_calls(signed([(1, *WRITE[1:]), OPEN, WRITE, WRITE, BARRIER, (2, "POSIX", "read", "f"), OPEN]))
    assert found.signatures["function"].to_list() == ["write", "MPI_File_open", "MPI_Barrier"]
    assert found.signatures["level"].to_list() == [0, 0, 0]
    assert found.order.tolist() == [0, 1, 2, 1]
    assert found.start_s.tolist() == [0.0, 1.0, 4.0, 6.0]


def test_calls_of_functions_of_the_program_are_outer() -> None:
    found = select_outer_calls(signed([SOLVE, WRITE, (1, *OPEN[1:]), (2, *WRITE[1:]), (0, *WRITE[1:])]))
    assert found.signatures.rows() == [(0, *WRITE[1:]), OPEN]
    assert found.order.tolist() == [0, 1, 0]
    assert found.end_s.tolist() == [1.5, 2.5, 4.5]


def test_trace_of_outer_calls_is_returned_unchanged() -> None:
    plain = signed([OPEN, BARRIER, OPEN])
    assert select_outer_calls(plain) is plain
    assert select_outer_calls(signed([])).order.size == 0
    assert select_outer_calls(signed([SOLVE])).signatures.height == 0


calls_within = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["POSIX", "MPIIO", "MPI", "HDF5", "FTRACE"]),
        st.just("f"),
        st.sampled_from("ab"),
    ),
    max_size=60,
)


@settings(max_examples=examples(200), deadline=None)
@given(calls_within)
def test_outer_calls_match_naive_selection(calls: list[twin.Call]) -> None:
    found, kept = select_outer_calls(signed(calls)), twin.outer(calls)
    flat, order = twin.signed([(0, *calls[place][1:]) for place in kept])
    assert found.signatures.rows() == flat
    assert found.order.tolist() == order
    assert found.start_s.tolist() == kept


# ---- real traces


@pytest.mark.parametrize("application", one_in(4, TRACES))
def test_signed_real_traces_equal_landed_calls(shared_data: Path, application: str) -> None:
    for count in COUNTS:
        path = shared_data / "recorder" / application / str(count) / "raw.tar.zst"
        with open_signed_run(path) as run:
            assert (run.process_count, run.ranks) == (count, range(count))
            found = [run.decode(rank) for rank in run.ranks]
        assert [row for each in found for row in rows_of(each)] == calls_of(path)
        if count == COUNTS[0]:
            text = ranks_of(path.with_name("text.tar.zst"))
            assert all(same(one, other) for one, other in zip(found, text, strict=True))
