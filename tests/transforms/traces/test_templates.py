"""Templates of calls, and the numbers in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces.templates import Template, find_templates, mask_addresses
from iosig.warehouse.sources.recorder import signatures as recorder_signatures
from tests.budget import examples
from tests.call_texts import arguments
from tests.naive.traces import templates as naive
from tests.naive.traces.templates import Signature

SCHEMA = {"level": pl.Int64, "module": pl.String, "function": pl.String, "arguments": pl.String}


def frame(signatures: Sequence[Signature]) -> pl.DataFrame:
    return pl.DataFrame(signatures, schema=SCHEMA, orient="row")


def templates_with_rows(signatures: Sequence[Signature], cut: int = 0) -> list[tuple[Template, list[int]]]:
    """Return the template and numbers of each signature, after checking that they reproduce the text."""
    known = find_templates([frame(signatures[:cut]), frame(signatures[cut:])])
    rows = []
    for number, first, (level, module, function, text) in zip(
        known.number.tolist(), known.first.tolist(), signatures, strict=True
    ):
        template = known.templates[number]
        numbers = known.numbers[first : first + len(template.widths)].tolist()
        shown = template.texts[0]
        for value, width, after in zip(numbers, template.widths, template.texts[1:], strict=True):
            shown += str(value).zfill(width) + after
        assert (template.level, template.module, template.function, shown) == (level, module, function, text)
        rows.append((template, numbers))
    return rows


def templates_of_texts(*texts: str, module: str = "POSIX") -> list[tuple[tuple[str, ...], tuple[int, ...], list[int]]]:
    """Return texts, widths and numbers of the arguments of one function."""
    rows = templates_with_rows([(0, module, "f", text) for text in texts])
    return [(template.texts, template.widths, numbers) for template, numbers in rows]


@settings(deadline=None, max_examples=examples(50))
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from(["POSIX", "MPI", "MPIIO"]),
            st.sampled_from(["read", "f"]),
            arguments(),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_templates_match_naive_implementation(signatures: list[Signature], cut: int) -> None:
    rows, expected = templates_with_rows(signatures, cut), naive.keys(signatures)
    assert [numbers for _, numbers in rows] == [numbers for _, numbers in expected]
    own = [(one.module, one.function, one.level, one.texts, one.widths) for one, _ in rows]
    assert own == [key for key, _ in expected]
    # Templates are unique and in the order of their first calls.
    known = find_templates([frame(signatures)]).templates
    assert [(one.module, one.function, one.level, one.texts, one.widths) for one in known] == list(dict.fromkeys(own))


# ---- numbers


@pytest.mark.parametrize(
    ("text", "texts", "widths", "numbers"),
    [
        ("", ("",), (), []),
        (" ", (" ",), (), []),
        ("/a/f %p 8", ("/a/f %p ", ""), (1,), [8]),
        ("0-3", ("", "-", ""), (1, 1), [0, 3]),
        ("/f -8 1", ("/f -", " ", ""), (1, 1), [8, 1]),
        ("f.00000012", ("f.", ""), (8,), [12]),
        ("0", ("", ""), (1,), [0]),
        ("000", ("", ""), (3,), [0]),
        ("9" * 18, ("", ""), (1,), [10**18 - 1]),
        ("1" + "0" * 18, ("", "", ""), (1, 1), [10**17, 0]),
        ("9" * 20, ("", "", ""), (1, 1), [10**18 - 1, 99]),
        ("0" * 19, ("", "", ""), (18, 1), [0, 0]),
        ("é7_日本3", ("é", "_日本", ""), (1, 1), [7, 3]),
        # Digits of other scripts are treated as letters.
        ("٣²x", ("٣²x",), (), []),
        ("1.5e-3", ("", ".", "e-", ""), (1, 1, 1), [1, 5, 3]),
    ],
)
def test_texts_are_split_at_numbers(
    text: str, texts: tuple[str, ...], widths: tuple[int, ...], numbers: list[int]
) -> None:
    assert templates_of_texts(text) == [(texts, widths, numbers)]


# ---- padded numbers


def test_names_of_equal_width_share_a_template() -> None:
    rows = templates_of_texts("f.00000007", "f.00000123", "f.12345678", "f.123456789")
    assert {(texts, widths) for texts, widths, _ in rows} == {(("f.", ""), (8,))}


def test_single_zero_has_width_one() -> None:
    assert {widths for _, widths, _ in templates_of_texts("f 0", "f 7", "f 123")} == {(1,)}
    assert [widths for _, widths, _ in templates_of_texts("f 0", "f 07")] == [(1,), (2,)]


@pytest.mark.parametrize(
    ("texts", "widths"),
    [
        (("f7", "f07"), [(1,), (2,)]),
        (("f007", "f07"), [(3,), (2,)]),
        (("f10", "f007"), [(1,), (3,)]),
        (("f100", "f007"), [(3,), (3,)]),
        # A slot has inconsistent widths, so each call keeps separate widths in all slots.
        (("f7 01", "f07 10"), [(1, 2), (2, 1)]),
        (("f7 01", "f8 10"), [(1, 2), (1, 2)]),
    ],
)
def test_inconsistent_widths_split_templates(texts: tuple[str, ...], widths: list[tuple[int, ...]]) -> None:
    assert [own for _, own, _ in templates_of_texts(*texts)] == widths


def test_widths_are_per_function_and_level() -> None:
    rows = templates_with_rows(
        [(0, "POSIX", "f", "7"), (1, "POSIX", "f", "07"), (0, "POSIX", "g", "007"), (0, "MPI", "f", "0007")]
    )
    assert [template.widths for template, _ in rows] == [(1,), (2,), (3,), (4,)]


# ---- statuses


@pytest.mark.parametrize("module", ["MPI", "MPIIO"])
def test_statuses_differ_in_numbers_only(module: str) -> None:
    rows = templates_of_texts("%p [5_3]", "%p [-5_3]", "%p [5_-3]", "%p [-5_-3]", "%p [0_0]", module=module)
    assert {(texts, widths) for texts, widths, _ in rows} == {(("%p [", "_", "]"), (1, 1))}
    assert [numbers for _, _, numbers in rows] == [[5, 3], [-5, 3], [5, -3], [-5, -3], [0, 0]]


@pytest.mark.parametrize(
    ("module", "text", "numbers"),
    [
        ("POSIX", "[-5_-3]", [5, 3]),
        ("MPIIO", "f[-5_3]", [5, 3]),
        ("MPIIO", "[-5_3", [5, 3]),
        ("MPIIO", "[-5]", [5]),
        ("MPIIO", "-5_-3]", [5, 3]),
        ("MPIIO", "%p -8 0-3", [8, 0, 3]),
        # A sign before a 0 would be lost.
        ("MPIIO", "[-0_-3]", [0, 3]),
        ("MPIIO", "[-5_-03]", [5, 3]),
        ("MPIIO", "[-5_3] [-0_3]", [5, 3, 0, 3]),
        ("MPIIO", "[-1234567890123456789_-3]", [123456789012345678, 9, 3]),
        ("MPIIO", "[--5_3]", [5, 3]),
    ],
)
def test_other_signs_belong_to_the_text(module: str, text: str, numbers: list[int]) -> None:
    ((_, _, slot_numbers),) = templates_of_texts(text, module=module)
    assert slot_numbers == numbers


def test_signs_do_not_count_in_widths() -> None:
    rows = templates_of_texts("[007_3]", "[-12_3]", "[-123_3]", module="MPI")
    assert [(widths, numbers) for _, widths, numbers in rows] == [
        ((3, 1), [7, 3]),
        ((1, 1), [-12, 3]),
        ((1, 1), [-123, 3]),
    ]


# ---- invalid input


def test_nul_characters_are_rejected() -> None:
    with pytest.raises(ValueError, match="NUL"):
        find_templates([frame([(0, "POSIX", "f", "a\0b")])])


def test_signatures_are_numbered_across_frames() -> None:
    known = find_templates(
        [frame([(0, "P", "f", "1 2")]), frame([]), frame([(0, "P", "f", "x"), (0, "P", "f", "3 4")])]
    )
    assert known.number.tolist() == [0, 1, 0]
    assert known.first.tolist() == [0, 2, 2]
    assert known.numbers.tolist() == [1, 2, 3, 4]


# ---- arguments that are not parameters

ADDRESS = "94033035442912"


def mask_arguments(module: str, function: str, arguments: str) -> str:
    row = {"level": [0], "module": [module], "function": [function], "arguments": [arguments]}
    found = mask_addresses(pl.DataFrame(row))
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
        # Exceeds a 64-bit integer and a C int.
        ("MPI", "MPI_Op_free", "123456789012345678901234567890", "%p"),
        ("MPI", "MPI_Op_free", str(1 << 31), "%p"),
    ],
)
def test_addresses_and_statuses_are_masked(module: str, function: str, arguments: str, expected: str) -> None:
    assert mask_arguments(module, function, arguments) == expected


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
def test_other_arguments_are_kept(module: str, function: str, arguments: str) -> None:
    assert mask_arguments(module, function, arguments) == arguments


def test_masking_keeps_rows_in_order() -> None:
    rows = pl.DataFrame(
        {
            "level": [0, 1, 0],
            "module": ["MPI"] * 3,
            "function": ["MPI_Op_free"] * 3,
            "arguments": [ADDRESS, "7", str(int(ADDRESS) + 64)],
        }
    )
    assert mask_addresses(rows)["arguments"].to_list() == ["%p", "7", "%p"]
    assert mask_addresses(rows.clear()).rows() == []


@pytest.mark.parametrize("program", ["ior_mpiio_inter_coll", "ior_mpiio_chunk"])
def test_masked_ranks_of_real_traces_are_equal(shared_data: Path, program: str) -> None:
    """Masking hides the same arguments on all ranks, and only arguments that differ randomly."""
    seen = defaultdict(set)
    with recorder_signatures.open_signed_run(shared_data / "recorder" / program / "8" / "raw.tar.zst") as run:
        for rank in run.ranks:
            signatures = run.decode(rank).signatures
            pairs = zip(signatures.rows(), mask_addresses(signatures)["arguments"], strict=True)
            for (_, module, function, before), after in pairs:
                for place, (given, kept) in enumerate(zip(before.split(" "), after.split(" "), strict=True)):
                    if given != kept:
                        seen[module, function, place].add(given)
    assert {module for module, _, _ in seen} == {"MPI", "MPIIO"}
    for (module, _, _), given in seen.items():
        assert all(text.startswith("[") if module == "MPIIO" else text.isdigit() for text in given)
        assert len(given) > 1
