from __future__ import annotations

import numpy as np
import pytest

from iosig.warehouse.sources.darshan import library
from iosig.warehouse.sources.darshan.counters import COUNTS, Records, Totals, is_additive


def records(module: str, count: int = 2, **values: list[float]) -> Records:
    """Return records of all counters of a module, zero except for the given ones."""
    name = next(name for name in library.COUNTERS if name.replace("-", "") == module)
    integers, reals = library.counter_names(name)
    given = {f"{module}_{suffix}": value for suffix, value in values.items()}
    return Records(
        module,
        tuple(integers),
        np.array([given.get(name, [0] * count) for name in integers], np.int64).T,
        tuple(reals),
        np.array([given.get(name, [0.0] * count) for name in reals], np.float64).T,
    )


@pytest.mark.parametrize("module", COUNTS)
def test_columns_are_made_of_existing_additive_counters(module: str) -> None:
    columns = records(module).columns()
    assert set(COUNTS[module]) <= set(columns)
    assert all(is_additive(f"{module}_{suffix}") for suffixes in COUNTS[module].values() for suffix in suffixes)


@pytest.mark.parametrize(
    "counter",
    [
        "POSIX_BYTES_READ",
        "POSIX_FILE_NOT_ALIGNED",
        "POSIX_MEM_NOT_ALIGNED",
        "POSIX_SIZE_READ_0_100",
        "POSIX_F_META_TIME",
        "MPIIO_SIZE_WRITE_AGG_1G_PLUS",
        "PNETCDF_FILE_WAIT_FAILURES",
        "PNETCDF_FILE_F_WAIT_TIME",
        "H5D_POINT_SELECTS",
        "DAOS_NB_OPS",
        "STDIO_FDOPENS",
    ],
)
def test_sums_and_times_are_additive(counter: str) -> None:
    assert is_additive(counter)


@pytest.mark.parametrize(
    "counter",
    [
        "POSIX_MAX_BYTE_READ",
        "POSIX_F_MAX_READ_TIME",
        "POSIX_MAX_READ_TIME_SIZE",
        "POSIX_MODE",
        "POSIX_FILE_ALIGNMENT",
        "POSIX_MEM_ALIGNMENT",
        "POSIX_RENAMED_FROM",
        "POSIX_STRIDE1_STRIDE",
        "POSIX_STRIDE1_COUNT",
        "POSIX_ACCESS4_COUNT",
        "POSIX_FASTEST_RANK",
        "POSIX_SLOWEST_RANK_BYTES",
        "POSIX_F_SLOWEST_RANK_TIME",
        "POSIX_F_VARIANCE_RANK_BYTES",
        "POSIX_F_OPEN_START_TIMESTAMP",
        "H5D_ACCESS1_LENGTH_D3",
        "H5D_DATASPACE_NPOINTS",
        "H5D_DATATYPE_SIZE",
        "H5D_CHUNK_SIZE_D5",
        "H5F_USE_MPIIO",
        "PNETCDF_VAR_IS_RECORD_VAR",
        "PNETCDF_VAR_NDIMS",
        "DFS_CHUNK_SIZE",
        "DAOS_OBJ_OTYPE",
        "DAOS_ARRAY_CELL_SIZE",
        "BGQ_NNODES",
    ],
)
def test_properties_instants_and_extremes_are_not_additive(counter: str) -> None:
    assert not is_additive(counter)


def test_columns_are_sums_of_counters() -> None:
    found = records("MPIIO", INDEP_READS=[1, 2], COLL_READS=[10, 20], SPLIT_READS=[3, 0], NB_READS=[4, 0]).columns()
    assert found["read_count"][0].tolist() == [18, 22]
    assert found["write_count"][0].tolist() == [0, 0]


def test_missing_counter_makes_column_unknown() -> None:
    found = records("POSIX", FSYNCS=[-1, 2], FDSYNCS=[5, 1]).columns()
    assert found["sync_count"][0][1] == 3
    assert found["sync_count"][1].tolist() == [False, True]


def test_zero_timestamp_is_unknown_but_zero_duration_is_known() -> None:
    found = records("POSIX", count=4, F_READ_START_TIMESTAMP=[0, 0.5, -1, np.nan], F_READ_TIME=[0, 0.5, -1, np.inf])
    columns = found.columns()
    assert columns["read_start_s"][1].tolist() == [False, True, False, False]
    assert columns["read_time_s"][1].tolist() == [True, True, False, False]


def test_negative_or_huge_counts_are_not_sound() -> None:
    found = records("POSIX", count=4, READS=[0, -1, -2, 1 << 62], MAX_BYTE_READ=[-9, -9, 0, 0])
    assert found.is_sound().tolist() == [True, True, False, False]


def test_totals_cover_all_blocks_and_omit_incomplete_counters() -> None:
    totals = Totals()
    totals.add(records("STDIO", READS=[1, 2], WRITES=[5, 5], F_READ_TIME=[0.5, 0.25]))
    totals.add(records("STDIO", READS=[3, 4], WRITES=[-1, 5], F_WRITE_TIME=[np.nan, 1.0]))
    known = totals.complete_sums()
    assert (known["STDIO_READS"], known["STDIO_F_READ_TIME"]) == (10, 0.75)
    assert not {"STDIO_WRITES", "STDIO_F_WRITE_TIME", "STDIO_MAX_BYTE_READ"} & set(known)


def test_totals_do_not_overflow() -> None:
    totals = Totals()
    totals.add(records("STDIO", count=4, READS=[(1 << 62) - 1] * 4))
    assert totals.complete_sums()["STDIO_READS"] == 4 * ((1 << 62) - 1)
