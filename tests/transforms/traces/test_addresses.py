"""What is no parameter of a call is masked, and nothing else."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from transforms.traces.addresses import without_addresses
from warehouse.sources.recorder import signatures as recorder_signatures

ADDRESS = "94033035442912"


def masked(module: str, function: str, arguments: str) -> str:
    row = {"level": [0], "module": [module], "function": [function], "arguments": [arguments]}
    found = without_addresses(pl.DataFrame(row))
    assert found.drop("arguments").rows() == [(0, module, function)]
    text = found["arguments"][0]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("module", "function", "arguments", "expected"),
    [
        ("MPI", "MPI_Allreduce", f"%p %p 1 MPI_INT {ADDRESS} MPI_COMM_WORLD", "%p %p 1 MPI_INT %p MPI_COMM_WORLD"),
        ("MPI", "MPI_Comm_create", f"MPI_COMM_WORLD {ADDRESS} 0-2 0", "MPI_COMM_WORLD %p 0-2 0"),
        ("MPI", "MPI_Recv", "%p 8 MPI_BYTE 3 0 MPI_COMM_WORLD [3_0]", "%p 8 MPI_BYTE 3 0 MPI_COMM_WORLD %p"),
        ("MPIIO", "MPI_File_write", "0-0 %p 120 MPI_BYTE [33808_0]", "0-0 %p 120 MPI_BYTE %p"),
        ("MPIIO", "MPI_File_read_at", "0-0 0 %p 8 MPI_BYTE [-33808_-21]", "0-0 0 %p 8 MPI_BYTE %p"),
        # No 64-bit number holds it, and no C int either.
        ("MPI", "MPI_Op_free", "123456789012345678901234567890", "%p"),
        ("MPI", "MPI_Op_free", str(1 << 31), "%p"),
    ],
)
def test_addresses_and_statuses_are_masked(module: str, function: str, arguments: str, expected: str) -> None:
    assert masked(module, function, arguments) == expected


@pytest.mark.parametrize(
    ("module", "function", "arguments"),
    [
        ("MPIIO", "MPI_File_write_at", f"0-0 {1 << 40} %p 120 MPI_BYTE %p"),
        ("MPIIO", "MPI_File_seek", f"0-0 {ADDRESS} MPI_SEEK_SET"),
        ("MPIIO", "MPI_File_set_size", f"0-1 {10**18}"),
        ("POSIX", "lseek", f"/a/f {ADDRESS} 0"),
        ("POSIX", "pwrite", f"/a/f %p {1 << 32} {1 << 50}"),
        ("POSIX", "open", "[33808_0] 66 420"),
        ("HDF5", "H5Fopen", ADDRESS),
        ("MPI", "MPI_Bcast", f"%p {(1 << 31) - 1} MPI_BYTE 0 MPI_COMM_WORLD"),
        ("MPI", "MPI_Send", "%p 8 MPI_BYTE -2 0 3-1"),
        ("MPI", "MPI_Comm_rank", f"{ADDRESS}-0 7"),
        ("MPI", "MPI_Get_processor_name", f"node{ADDRESS} 8"),
        ("MPI", "MPI_Barrier", ""),
        ("MPI", "MPI_Barrier", " "),
        ("MPIIO", "MPI_File_open", "MPI_COMM_WORLD [1_2 9 %p 0-0"),
        ("MPIIO", "MPI_File_open", "MPI_COMM_WORLD f[1_2] 9 %p 0-0"),
    ],
)
def test_all_else_stays(module: str, function: str, arguments: str) -> None:
    assert masked(module, function, arguments) == arguments


def test_rows_stay_in_place_and_can_become_equal() -> None:
    rows = pl.DataFrame(
        {
            "level": [0, 1, 0],
            "module": ["MPI"] * 3,
            "function": ["MPI_Op_free"] * 3,
            "arguments": [ADDRESS, "7", str(int(ADDRESS) + 64)],
        }
    )
    assert without_addresses(rows)["arguments"].to_list() == ["%p", "7", "%p"]
    assert without_addresses(rows.clear()).rows() == []


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ior_mpiio_chunk"])
def test_ranks_of_real_traces_differ_no_more_by_their_addresses(shared_data: Path, program: str) -> None:
    """What is masked in one rank's calls is masked in all, and only arguments that differ by chance are."""
    seen = defaultdict(set)
    with recorder_signatures.opened(shared_data / "recorder" / program / "8" / "raw.tar.zst") as run:
        for rank in run.ranks:
            signatures = run.decode(rank).signatures
            pairs = zip(signatures.rows(), without_addresses(signatures)["arguments"], strict=True)
            for (_, module, function, before), after in pairs:
                for place, (given, kept) in enumerate(zip(before.split(" "), after.split(" "), strict=True)):
                    if given != kept:
                        seen[module, function, place].add(given)
    assert {module for module, _, _ in seen} == {"MPI", "MPIIO"}
    for (module, _, _), given in seen.items():
        assert all(text.startswith("[") if module == "MPIIO" else text.isdigit() for text in given)
        assert len(given) > 1
