from __future__ import annotations

import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.recorder import raw
from iosig.warehouse.sources.recorder.raw import read_metadata, read_signatures, read_times
from tests.naive import recorder_traces as naive
from tests.naive.recorder_traces import Call
from tests.warehouse.sources.trace_landing import calls_of, expected, made_up, put, tables_of

RANKS = [
    [Call(0, 0, ("f", "66", "420"), 10, 20), Call(2, 0, ("f", "%p", "8"), 30, 31), Call(1, 0, ("f",), 31, 31)],
    [Call(5, 0, ("MPI_COMM_WORLD",), 5, 500), Call(5, 0, ("MPI_COMM_WORLD",), 501, 502)],
    [],
]
FORMS = {"separate": naive.separate, "merged": naive.merged}
every_form = pytest.mark.parametrize("form", FORMS)


def reasons(found: dict[str, object]) -> str:
    return " ".join(found["rejects"]["reason"].to_list())  # type: ignore[index]


# ---- intact traces


@every_form
def test_calls_have_all_recorded_properties(tmp_path: Path, form: str) -> None:
    found = tables_of(put(tmp_path / "raw", FORMS[form](RANKS)))
    assert found["trace_calls"].drop("trace_id").rows() == [
        row for rank, calls in enumerate(RANKS) for row in expected(rank, calls)
    ]
    trace = found["traces"].row(0, named=True)
    assert (trace["tracer"], trace["tracer_version"], trace["process_count"]) == ("recorder", "2.5.0", 3)
    assert trace["started_at"] == datetime.fromtimestamp(1.7e9, UTC)
    assert (trace["duration_s"], trace["time_resolution_s"]) == (502e-7, 1e-7)
    assert trace["ended_on"] == trace["ended_at"].date() == datetime(2023, 11, 14).date()
    modules = found["trace_modules"].select("module", "outcome", "reason", "record_count").rows()
    assert modules == [("POSIX", "sound", None, 3), ("MPI", "sound", None, 2)]
    assert "rejects" not in found
    assert found["trace_requests"].select("rank", "direction", "request_bytes").rows() == [(0, "write", 8.0)]
    assert found["trace_records"]["ended_on"].unique().to_list() == [trace["ended_on"]]


@every_form
@pytest.mark.parametrize("seed", range(8))
def test_synthetic_traces_round_trip(tmp_path: Path, form: str, seed: int) -> None:
    ranks = made_up(5, seed)
    found = calls_of(put(tmp_path / "raw", FORMS[form](ranks)))
    assert found == [row for rank, calls in enumerate(ranks) for row in expected(rank, calls)]


def test_calls_match_naive_decoder(tmp_path: Path) -> None:
    ranks = [
        [replace(call, function=5) if call.function == naive.USER else call for call in calls]
        for calls in made_up(4, seed=3)
    ]
    folder = put(tmp_path / "raw", naive.separate(ranks))
    found = calls_of(folder)
    for rank in range(4):
        rows = [(name, level, text) for name, level, text, _, _ in naive.decoded(folder, rank)]
        assert [(row[4], row[2], row[5]) for row in found if row[0] == rank] == rows


def test_ranks_of_merged_trace_have_separate_times(tmp_path: Path) -> None:
    calls = [[Call(5, 0, (), 100 * rank, 100 * rank + 1)] for rank in range(4)]
    files = naive.merged(calls)
    assert [name for name in files if name.endswith(".cfg")] == ["0.cfg"]
    assert [row[6] for row in calls_of(put(tmp_path, files))] == [0.0, 1e-5, 2e-5, 3e-5]


def test_calls_do_not_depend_on_threads(tmp_path: Path) -> None:
    calls = [Call(2, 0, ("f", "%p", "1"), tick, tick, thread=tick % 2) for tick in range(6)]
    assert calls_of(put(tmp_path, naive.separate([calls]))) == expected(0, calls)


def test_undecodable_bytes_are_escaped(tmp_path: Path) -> None:
    files = naive.separate([[Call(0, 0, ("aÿb", "é"), 0, 1)]])
    files["0.cst"] = files["0.cst"].replace("ÿ".encode(), b"\xff\xfe")
    assert calls_of(put(tmp_path, files))[0][5] == "a\\xff\\xfeb é"


# ---- times


def test_times_are_relative_to_start_of_previous_call() -> None:
    began, ceased = read_times(struct.pack("<6I", 10, 30, 5, 6, 0, 4_294_967_295), 1e-7)
    assert began.tolist() == [10e-7, 15e-7, 15e-7]
    assert ceased.tolist() == [30e-7, 16e-7, (15 + 4_294_967_295) / 1e7]


def test_tick_that_is_not_a_power_of_ten_is_multiplied() -> None:
    assert read_times(struct.pack("<2I", 10, 30), 0.3)[1].tolist() == [30 * 0.3]


def test_call_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    files = naive.separate([[Call(2, 0, ("f", "%p", "1"), tick, tick) for tick in range(3)]])
    files["0.ts"] = struct.pack("<6I", 0, 0, 4_000_000_000, 5, 1, 1)
    found = tables_of(put(tmp_path, files))
    assert found["trace_calls"]["call"].to_list() == [0, 2]
    assert found["rejects"]["line"].to_list() == [2]
    assert "wrapped" in reasons(found)
    assert found["trace_modules"]["outcome"].to_list() == ["partial"]


# ---- damage that affects a rank


def damaged(files: dict[str, bytes], name: str, content: bytes | None) -> dict[str, bytes]:
    return {key: value for key, value in (files | {name: content or b""}).items() if key != name or content is not None}


WHOLE = naive.separate(RANKS)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("1.ts", None, "1.ts is missing"),
        ("1.cst", None, "1.cst is missing"),
        ("1.cfg", None, "1.cfg is missing"),
        ("1.ts", WHOLE["1.ts"][:-1], "truncated"),
        ("1.ts", WHOLE["1.ts"][:-8], "more calls"),
        ("1.ts", WHOLE["1.ts"] + bytes(8), "time stamps"),
        ("1.ts", b"", "more calls"),
        ("1.cst", WHOLE["0.cst"], "differs from the file"),
        ("1.cst", b"", "truncated"),
        ("1.cst", WHOLE["1.cst"][:-1], "truncated"),
        ("1.cst", WHOLE["1.cst"] + b"\x00", "extra content"),
        ("1.cst", struct.pack("<i", 2**31 - 1) + WHOLE["1.cst"][4:], "truncated"),
        ("1.cst", WHOLE["1.cst"][:4] + struct.pack("<i", 7) + WHOLE["1.cst"][8:], "one by one"),
        ("1.cst", WHOLE["1.cst"].replace(b"\x05\x00\x01", b"\x63\x00\x01"), "does not name"),
        ("1.cst", WHOLE["1.cst"].replace(b"\x05\x00\x01", b"\x05\x00\x02"), "number of a call signature's arguments"),
        ("1.cst", WHOLE["1.cst"].replace(b"\x05\x00\x01", b"\xff\x00\x01"), "does not name"),
        ("1.cst", WHOLE["1.cst"].replace(b"WORLD ", b"WORLD_"), "number of a call signature's arguments"),
        ("1.cst", WHOLE["1.cst"].replace(b"WORLD", b"WOR\x00D"), "number of a call signature's arguments"),
        ("1.cst", WHOLE["1.cst"].replace(struct.pack("<I", 15), struct.pack("<I", 14)), "length of a call signature"),
        ("1.cfg", naive.grammar_file({-1: [(0, 1), (-1, 1)]}), "contains itself"),
        ("1.cfg", naive.grammar_file({-1: [(1, 2)]}), "unknown symbol"),
    ],
)
def test_damaged_rank_is_skipped_and_reported(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    found = tables_of(put(tmp_path, damaged(WHOLE, name, content)))
    assert found["trace_calls"]["rank"].unique().to_list() == [0]
    assert found["traces"]["process_count"].item() == 3
    assert said in reasons(found)
    assert found["trace_modules"]["outcome"].to_list() == ["partial"]
    assert "ranks 1." in found["trace_modules"]["reason"].item()


def test_signature_counts_must_match_the_calls(tmp_path: Path) -> None:
    files = naive.separate([[Call(0, 0, ("f",), 0, 0), Call(1, 0, ("f",), 0, 0)], RANKS[0]])
    files["0.cfg"] = naive.grammar_file({-1: [(0, 2)]})
    assert "do not match the counts" in reasons(tables_of(put(tmp_path, files)))


def test_ranks_without_files_are_reported(tmp_path: Path) -> None:
    files = naive.separate(made_up(6, seed=1, most=20))
    kept = {name: content for name, content in files.items() if name.split(".")[0] not in ("1", "2", "5")}
    found = tables_of(put(tmp_path, kept))
    assert "Ranks 1 to 2, 5 of 6 without a file." in found["rejects"]["reason"].to_list()
    assert found["trace_modules"]["outcome"].unique().to_list() == ["partial"]
    assert found["traces"]["process_count"].item() == 6


@pytest.mark.parametrize("claimed", [2, 2**31 - 1])
def test_wrong_number_of_ranks_makes_trace_partial(tmp_path: Path, claimed: int) -> None:
    found = tables_of(put(tmp_path, naive.separate(made_up(4, seed=2)) | {"recorder.mt": naive.metadata(claimed)}))
    assert found["trace_modules"]["outcome"].unique().to_list() == ["partial"]
    assert found["trace_calls"]["rank"].max() < claimed  # type: ignore[operator]


def test_rank_without_times_in_merged_trace_is_skipped(tmp_path: Path) -> None:
    files = naive.merged(RANKS)
    del files["1.ts"]
    found = tables_of(put(tmp_path, files))
    assert found["trace_calls"]["rank"].unique().to_list() == [0]
    assert "Ranks 1 of 3" in reasons(found)


# ---- damage that affects the trace


@pytest.mark.parametrize("version", [b"2.4.0", b"3.0.1", b"2.50.0", b"", b"\xff\xff", b"2.5", b"2.5.x"])
def test_unsupported_version_is_refused(tmp_path: Path, version: bytes) -> None:
    with pytest.raises(InputRefused, match=r"only 2\.5 is supported"):
        tables_of(put(tmp_path, WHOLE | {"VERSION": version}))


def test_trace_without_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no file VERSION"):
        tables_of(put(tmp_path, damaged(WHOLE, "VERSION", None)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        WHOLE["recorder.mt"][:39],
        WHOLE["recorder.mt"][:40],
        naive.metadata(0),
        naive.metadata(-5),
        naive.metadata(3, start_s=float("nan")),
        naive.metadata(3, start_s=1e300),
        naive.metadata(3, start_s=-1.0),
        naive.metadata(3, tick_s=0.0),
        naive.metadata(3, tick_s=float("inf")),
        naive.metadata(3, tick_s=-1e-7),
        naive.metadata(3)[:40] + b"no name\n",
        naive.metadata(3)[:40] + b"f\n" * 256,
        naive.metadata(3)[:28] + struct.pack("<i", 1) + naive.metadata(3)[32:],
    ],
)
def test_invalid_metadata_are_refused(content: bytes) -> None:
    with pytest.raises(InputRefused):
        read_metadata(content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ug.mt", None),
        ("ug.mt", b""),
        ("ug.mt", struct.pack("<3i", 0, 0, 1)),
        ("ug.mt", struct.pack("<4i", 0, 3, 0, 1)),
        ("ug.mt", struct.pack("<4i", 0, -1, 0, 1)),
        ("ug.mt", b"abc"),
        ("0.cst", b""),
    ],
)
def test_merged_trace_without_shared_files_is_refused(tmp_path: Path, name: str, content: bytes | None) -> None:
    with pytest.raises(InputRefused):
        tables_of(put(tmp_path, damaged(naive.merged(RANKS), name, content)))


def test_trace_without_readable_ranks_is_refused_with_first_reason(tmp_path: Path) -> None:
    files = {name: content for name, content in WHOLE.items() if not name.endswith(".cfg")}
    with pytest.raises(InputRefused, match=r"Rank 0 is skipped\. 0\.cfg is missing"):
        tables_of(put(tmp_path, files))


@pytest.mark.slow
def test_damage_raises_only_input_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for form in FORMS.values():
        files = form(made_up(2, seed=5, most=25))
        for _ in range(25):
            name = sorted(files)[rng.integers(len(files))]
            content = bytearray(files[name])
            if rng.random() < 0.3:
                content = content[: rng.integers(len(content) + 1)]
            elif content:
                content[rng.integers(len(content))] ^= 1 << rng.integers(8)
            try:
                tables_of(put(tmp_path, files | {name: bytes(content)}))
            except InputRefused:
                continue
        for path in tmp_path.iterdir():
            path.unlink()


def test_modules_are_derived_from_order_of_functions() -> None:
    listed = read_signatures(naive.signatures({Call(7, 0, (), 0, 0).key(): 0}, 0, {0: 1}), naive.FUNCTIONS, 0)
    assert listed.rows.select("function", "module").rows() == [("H5Fopen", "HDF5")]
    without = tuple(name for name in naive.FUNCTIONS if not name.startswith("H5"))
    assert raw._modules(without).to_list() == ["POSIX"] * 4 + ["MPIIO", "MPI", "MPIIO"]
    assert raw._modules(("open", "close")).to_list() == ["POSIX"] * 2
