"""Test stage.trace_counters: counts by module, the counted modules, and the coverage of requests and heat maps."""

from __future__ import annotations

import polars as pl

from iosig.warehouse.contracts.traces import TRACE_COUNTERS
from tests.sql.given import Select, expect

MODULES = "landed.trace_modules"
RECORDS = "landed.trace_records"
REQUESTS = "landed.trace_requests"
HEATMAPS = "landed.trace_heatmaps"
JOBS = "stage.trace_jobs"
ONE_DARSHAN = "trace_id tracer cluster job_id \n t darshan edison 7"


def counted(select: Select, modules: str, *, jobs: str = ONE_DARSHAN, **given: str) -> pl.DataFrame:
    places = {"records": RECORDS, "requests": REQUESTS, "heatmaps": HEATMAPS}
    return select(TRACE_COUNTERS, {MODULES: modules, JOBS: jobs} | {places[k]: v for k, v in given.items()})


def test_counts_are_summed_over_files_and_ranks(select: Select) -> None:
    found = counted(
        select,
        "trace_id module outcome record_count \n t POSIX sound 3",
        records="""
        trace_id  module  file_number  rank  read_bytes  written_bytes  open_count  read_start_s  read_end_s
        t         POSIX   1            0     10          .              1           5             7
        t         POSIX   1            1     20          .              2           3             6
        t         POSIX   -2           -1    .           5              4           .             .
        other     POSIX   1            0     1000        .              .           .             .
        """,
    )
    expected = """
        trace_id  cluster  job_id  module  file_count  read_bytes  written_bytes  open_count  seek_count  read_start_s
        t         edison   7       POSIX   2           30          5              7           .           3
        """
    expect(found, expected)
    expect(found, "read_end_s record_count is_counted covered_ratio \n 7 3 yes .")


def test_lowest_layer_with_same_bytes_is_counted(select: Select) -> None:
    modules = """
        trace_id  module       outcome
        plain     MPIIO        sound
        plain     POSIX        sound
        plain     STDIO        sound
        plain     H5D          sound
        plain     PNETCDF_VAR  sound
        objects   DAOS         sound
        objects   DFS          sound
        objects   MPIIO        sound
        files     DFS          sound
        files     MPIIO        sound
        alone     MPIIO        sound
        damaged   MPIIO        sound
        damaged   POSIX        unreadable
        """
    jobs = "trace_id tracer" + "".join(
        f"\n {name} darshan" for name in ("plain", "objects", "files", "alone", "damaged")
    )
    found = counted(select, modules, jobs=jobs).filter("is_counted").sort("trace_id", "module")
    expected = """
        trace_id  module
        alone     MPIIO
        damaged   MPIIO
        files     DFS
        objects   DAOS
        plain     POSIX
        plain     STDIO
        """
    expect(found, expected)


def test_upper_layer_is_counted_if_partial_lower_layer_has_less(select: Select) -> None:
    modules = """
        trace_id  module  outcome  is_partial
        less      POSIX   partial  yes
        less      MPIIO   sound    no
        more      POSIX   partial  yes
        more      MPIIO   sound    no
        """
    records = """
        trace_id  module  written_bytes  read_bytes
        less      POSIX   53             0
        less      MPIIO   100            0
        more      POSIX   101            0
        more      MPIIO   100            0
        """
    found = counted(select, modules, jobs="trace_id tracer \n less darshan \n more darshan", records=records)
    expected = """
        trace_id  module  is_counted  covered_ratio
        less      MPIIO   yes         .
        less      POSIX   no          0.53
        more      MPIIO   no          .
        more      POSIX   yes         .
        """
    expect(found, expected)


def test_coverage_of_requests_and_heatmaps_is_computed(select: Select) -> None:
    found = counted(
        select,
        """
        trace_id  module     outcome  is_partial
        t         DXT_POSIX  partial  yes
        t         HEATMAP    sound    no
        t         POSIX      sound    no
        t         STDIO      sound    no
        """,
        records="""
        trace_id  module  read_bytes  written_bytes
        t         POSIX   100         100
        t         STDIO   0           300
        """,
        requests="""
        trace_id  module  direction  request_bytes  start_s  end_s  is_nested
        t         POSIX   read       3              1        2         no
        t         POSIX   write      10             5        6         no
        """,
        heatmaps="""
        trace_id  module  rank  direction  bin_bytes
        t         POSIX   0     read       50,50
        t         POSIX   0     write      100
        t         STDIO   0     write      100,99
        """,
    )
    expected = """
        module     covered_ratio  read_bytes  written_bytes  read_count  write_start_s  is_counted
        DXT_POSIX  0.065          3           10             1           5              no
        HEATMAP    0.798          .           .              .           .              no
        POSIX      .              100         100            .           .              yes
        STDIO      .              0           300            .           .              yes
        """
    expect(found, expected)


def test_traces_of_requests_are_counted_without_nested_requests(select: Select) -> None:
    found = counted(
        select,
        "trace_id module outcome \n t MPIIO sound \n t POSIX sound",
        jobs="trace_id tracer \n t recorder",
        requests="""
        trace_id  module  direction  request_bytes  is_nested
        t         MPIIO   write      10             no
        t         POSIX   write      10             yes
        t         POSIX   write      7              no
        t         POSIX   write      .              no
        """,
    )
    expected = """
        module  written_bytes  write_count  read_bytes  is_counted
        MPIIO   10             1            .           yes
        POSIX   .              2            .           yes
        """
    expect(found, expected)


def test_unread_module_counts_nothing_and_has_a_reason(select: Select) -> None:
    found = counted(
        select, "trace_id module outcome reason \n t DXT_POSIX unsupported version_2 \n t POSIX unreadable damaged"
    )
    expected = """
        module     outcome      reason     is_counted  read_bytes  covered_ratio
        DXT_POSIX  unsupported  version_2  no          .           .
        POSIX      unreadable   damaged    no          .           .
        """
    expect(found, expected)
