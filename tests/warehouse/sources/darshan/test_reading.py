"""Test the reading child on logs with an intact structure but impossible content."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.darshan import library, reading as reading
from iosig.warehouse.sources.darshan.layout import examine
from iosig.warehouse.sources.files.child import Arrays, arrays_from_child
from tests.warehouse.sources.darshan.test_layout import ID, Log, heatmap, lustre_1, record

Head = dict[str, Any]
NUMBERS = {"POSIX": 1, "LUSTRE": 8, "STDIO": 9, "DXT_POSIX": 10, "DXT_MPIIO": 11, "APMPI": 14, "HEATMAP": 15}


def segments(count: int, first: float = 0.0) -> bytes:
    return b"".join(struct.pack("<qqdd", 10 * at, 10, first + at, first + at + 1) for at in range(count))


def dxt(writes: int, reads: int, rank: int = 0, host: bytes = b"node1", told: tuple[int, int] | None = None) -> bytes:
    counts = told or (writes, reads)
    return struct.pack("<Qqq64sqq", ID, rank, 0, host, *counts) + segments(writes + reads)


def write(path: Path, **modules: tuple[int, bytes]) -> Path:
    return Log(modules={NUMBERS[name]: content for name, content in modules.items()}).write(path / "a.darshan")


def parts_of(path: Path, **changed: int) -> str:
    regions = [region for region in examine(path).regions if region.version is not None and region.stored_bytes]
    return json.dumps([[r.name, r.version, changed.get(r.name, r.raw_bytes), r.is_partial] for r in regions])


def blocks(path: Path, parts: str | None = None, *, in_child: bool = True) -> list[tuple[Head, Arrays]]:
    """Return the blocks of a log; without a child, the library's output is not captured."""
    arguments = (str(path), parts or parts_of(path))
    found: Iterator[Arrays] = (
        arrays_from_child(reading.read_log_batched, *arguments) if in_child else reading.read_log(*arguments)
    )
    return [(json.loads(block["head"].tobytes()), block) for block in found]


def test_batched_blocks_equal_single_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, DXT_POSIX=(1, dxt(writes=40, reads=2)))
    one_by_one = list(reading.read_log(str(path), parts_of(path)))
    (together,) = reading.read_log_batched(str(path), parts_of(path))
    monkeypatch.setattr(reading, "_MAX_PENDING_BYTES", 1)
    each_alone = [block for (block,) in reading.read_log_batched(str(path), parts_of(path))]
    for found in (together, each_alone):
        assert [{name: array.tobytes() for name, array in block.items()} for block in found] == [
            {name: array.tobytes() for name, array in block.items()} for block in one_by_one
        ]


def outcomes(found: list[tuple[Head, Arrays]]) -> dict[str, tuple[str, str | None]]:
    return {head["module"]: (head["outcome"], head["reason"]) for head, _ in found if head["kind"] == "module"}


def kinds(found: list[tuple[Head, Arrays]]) -> list[tuple[str, str | None]]:
    return [(head["kind"], head.get("module")) for head, _ in found]


class OldLog(Log):
    """A log with a job record of today's length: the library reads no shorter record."""

    def job(self) -> bytes:
        return super().job() + b"\next4\t/home"


# ---- intact


def test_blocks_are_ordered_with_stripes_first(tmp_path: Path) -> None:
    path = write(tmp_path, POSIX=(4, record(88)), LUSTRE=(1, lustre_1(2)), DXT_POSIX=(1, dxt(1, 2)))
    found = blocks(path)
    assert kinds(found) == [
        ("job", None),
        ("names", None),
        ("stripes", "LUSTRE"),
        ("module", "LUSTRE"),
        ("records", "POSIX"),
        ("module", "POSIX"),
        ("segments", "DXT_POSIX"),
        ("module", "DXT_POSIX"),
    ]
    assert set(outcomes(found).values()) == {("sound", None)}
    assert found[0][0] | {"mounts": None} == {
        "kind": "job",
        "uid": 7,
        "started": [1_600_000_000, 5],
        "ended": [1_600_000_060, 6],
        "process_count": 4,
        "job_id": 99,
        "command": "./a",
        "mounts": None,
    }
    assert found[1][0]["names"][found[1][1]["ids"].tolist().index(ID)] == "/scratch/a"


def test_segments_are_split_into_bounded_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK_SEGMENTS", 10)
    records = [(3, 4, 0, b"n1"), (0, 25, 1, b"n2"), (12, 0, 2, b"n1"), (0, 0, 3, b"n3"), (1, 1, 3, b"n3")]
    path = write(tmp_path, DXT_POSIX=(1, b"".join(dxt(*one) for one in records)))
    found = [(head, block) for head, block in blocks(path, in_child=False) if head["kind"] == "segments"]
    assert [len(block["segments"]) for _, block in found] == [10, 10, 10, 10, 6]
    rows = []
    for head, block in found:
        pieces = zip(*(block[n].tolist() for n in ("ranks", "host_codes", "write_counts", "read_counts")), strict=True)
        at = 0
        for rank, code, writes, reads in pieces:
            for kind, count in (("w", writes), ("r", reads)):
                rows += [(rank, head["hosts"][code], kind, int(s[0])) for s in block["segments"][at : at + count]]
                at += count
        assert at == len(block["segments"])
    wanted = [
        (rank, host.decode(), kind, 10 * number)
        for writes, reads, rank, host in records
        for kind, numbers in (("w", range(writes)), ("r", range(writes, writes + reads)))
        for number in numbers
    ]
    assert rows == wanted


def test_counters_are_split_into_bounded_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 2000)
    path = write(tmp_path, POSIX=(4, b"".join(record(88, rank=rank % 4) for rank in range(8))))
    found = [block for head, block in blocks(path, in_child=False) if head["kind"] == "records"]
    assert [len(block["ids"]) for block in found] == [3, 3, 2]
    assert np.concatenate([block["ranks"] for block in found]).tolist() == [0, 1, 2, 3] * 2


def test_heatmaps_have_bin_count_of_first_record(tmp_path: Path) -> None:
    path = write(tmp_path, HEATMAP=(1, heatmap(5) + heatmap(6) + heatmap(4)))
    found = blocks(path)
    (block,) = (block for head, block in found if head["kind"] == "heatmaps")
    assert block["bin_counts"].tolist() == [5, 5, 5]
    assert outcomes(found)["HEATMAP"] == ("sound", None)


def test_log_without_modules_has_job_and_names(tmp_path: Path) -> None:
    assert kinds(blocks(Log(modules={}).write(tmp_path / "a.darshan"))) == [("job", None), ("names", None)]


# ---- flagged


@pytest.mark.parametrize(
    ("module", "version", "content"),
    [("DXT_POSIX", 2, dxt(0, 0)), ("DXT_MPIIO", 3, dxt(0, 0)), ("HEATMAP", 9, heatmap(1)), ("APMPI", 1, bytes(64))],
)
def test_module_unknown_to_library_is_unsupported(tmp_path: Path, module: str, version: int, content: bytes) -> None:
    path = write(tmp_path, POSIX=(4, record(88)))
    parts = [["POSIX", 4, 704, False], [module, version, len(content), False]]
    found = outcomes(blocks(path, json.dumps(parts)))
    assert found["POSIX"] == ("sound", None)
    assert found[module][0] == "unsupported"
    assert str(version) in str(found[module][1]) or module == "APMPI"


def test_module_without_records_is_unreadable(tmp_path: Path) -> None:
    path = write(tmp_path, POSIX=(4, record(88)))
    found = outcomes(blocks(path, json.dumps([["STDIO", 2, 248, False]])))
    assert found["STDIO"] == ("unreadable", "The library found no record in its 248 bytes.")


def test_records_of_wrong_total_size_are_unreadable(tmp_path: Path) -> None:
    path = write(tmp_path, POSIX=(4, record(88) * 2), DXT_POSIX=(1, dxt(2, 2)))
    found = blocks(path, parts_of(path, POSIX=704 * 3, DXT_POSIX=104 + 32 * 5))
    assert {reason for _, reason in outcomes(found).values()} == {
        "Its records take 1408 bytes, but it has 2112.",
        "Its records take 232 bytes, but it has 264.",
    }
    assert {kind for kind, _ in kinds(found)} == {"job", "names", "module"}


def test_module_flagged_as_partial_is_partial(tmp_path: Path) -> None:
    path = Log(modules={1: (4, record(88))}, partial=1 << 1).write(tmp_path / "a.darshan")
    assert outcomes(blocks(path))["POSIX"][0] == "partial"


def test_records_skipped_by_library_make_module_partial(tmp_path: Path) -> None:
    """In the first version: records with counts of stdio, the 7th to 10th counter."""
    mixed = struct.pack("<Qq", ID, 1) + struct.pack("<10q", *[0] * 6, 1, 0, 0, 0) + bytes(680 - 96)
    told: dict[str, Any] = {"version": "3.00", "metadata": b"lib_ver=3.0.0\n", "names": ((ID, b"/scratch/a"),)}
    path = OldLog(modules={1: (1, record(85) + mixed)}, **told).write(tmp_path / "a.darshan")
    found = blocks(path)
    assert outcomes(found)["POSIX"] == ("partial", "The library skips 1 records that count stdio as well.")
    assert [len(block["ids"]) for head, block in found if head["kind"] == "records"] == [1]


def test_old_log_with_unnamed_file_aborts_library_and_is_refused(tmp_path: Path) -> None:
    names = ((ID, b"/scratch/a"), (1, b""))
    path = OldLog(version="3.00", modules={}, metadata=b"lib_ver=3.0.0\n", names=names).write(tmp_path / "a.darshan")
    with pytest.raises(InputRefused, match="SIGABRT"):
        blocks(path)


@pytest.mark.parametrize("told", [(1 << 59, 0), (0, 1 << 40), (-1, 3), (3, 2)])
def test_impossible_counts_never_pass_as_sound(tmp_path: Path, told: tuple[int, int]) -> None:
    path = write(tmp_path, POSIX=(4, record(88)), DXT_POSIX=(1, dxt(2, 2, told=told)))
    parts = json.dumps([["POSIX", 4, 704, False], ["DXT_POSIX", 1, 232, False]])
    try:
        found = blocks(path, parts)
    except InputRefused:
        return
    assert outcomes(found)["DXT_POSIX"][0] == "unreadable"
    assert not [head for head, _ in found if head["kind"] == "segments"]
    assert outcomes(found)["POSIX"][0] == "sound"


def test_impossible_stripes_are_unreadable(tmp_path: Path) -> None:
    path = write(tmp_path, LUSTRE=(2, struct.pack("<Qqqq7q16sq", ID, 0, 1, 1, 8, 3, 0, 0, 0, -1, 0, b"", 5)))
    try:
        found = blocks(path, json.dumps([["LUSTRE", 2, 112, False]]))
    except InputRefused:
        return
    assert outcomes(found)["LUSTRE"][0] == "unreadable"


def test_damage_after_first_rows_refuses_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK_SEGMENTS", 10)
    path = write(tmp_path, DXT_POSIX=(1, dxt(30, 0) + dxt(5, 0, told=(5, 1 << 40))))
    found = reading.read_log(str(path), json.dumps([["DXT_POSIX", 1, 104 * 2 + 32 * 35, False]]))
    with pytest.raises(InputRefused, match="DXT_POSIX is damaged"):
        list(found)


def test_stored_sizes_match_records_of_library() -> None:
    for module, sizes in reading.STORED_BYTES.items():
        _, integer_count, real_count = library.COUNTERS[module]
        extra = {"H5D": 8, "PNETCDF_VAR": 8, "DFS": 32, "DAOS": 48}.get(module, 0)
        assert sizes[max(sizes)] == 16 + extra + 8 * (integer_count + real_count)
