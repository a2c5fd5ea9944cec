"""Convert files of commit 18b5d00 to the columns and values of this version.

Names follow `iosig.warehouse.renames`. Four tables also changed their shape: `job_io` had one row per source of
measurement, and `classes`, `periods` and `period_segments` had rows for the traffic of whole file systems.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from iosig.warehouse import renames
from iosig.warehouse.contracts import Table, arrow
from iosig.warehouse.contracts.application_ids import all_node_counts, get_machine, make_application_id
from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO
from iosig.warehouse.contracts.classes import CLASSES
from iosig.warehouse.contracts.files import quote_identifier
from iosig.warehouse.contracts.job_io import JOB_IO, JOB_IO_SOURCES
from iosig.warehouse.contracts.jobs import JOBS, QUEUED_JOBS
from iosig.warehouse.contracts.periods import PERIOD_SEGMENTS, PERIODS
from iosig.warehouse.contracts.samples import APPLICATIONS
from iosig.warehouse.engine_paths import duckdb_path, duckdb_paths, utf8_path
from iosig.warehouse.placing import atomic_write, make_read_only
from iosig.warehouse.store import models
from iosig.warehouse.store.store import ROW_GROUP_ROWS, parquet_writer

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

#: tables that are derived from a differently named table of commit 18b5d00
SOURCES = {JOB_IO_SOURCES: "job_io"}
_FILE = "read_parquet($path, hive_partitioning = false)"
_BASIS = """case
    when subject_kind = 'application' then 'signature'
    when source = 'jobstats' then 'counted'
    when source = 'client' then 'traced'
    when source = 'series' then 'series'
end"""
#: application id of commit 18b5d00, which merged the runs of all clusters
_FORMER_ID = """replace("user", '/', '%2F') || '/' || application || '/' || node_count"""
#: columns with application ids
_ID_COLUMNS = ("application_id", "top_interferer_application_id")
#: table -> column -> SQL expression over the columns of the old file
_COMPUTED: Mapping[Table, Mapping[str, str]] = {
    ATTRIBUTED_IO: {"estimate_source": "if(certainty = 1, 'counted', 'attributed')"},
    CLASSES: {"basis": _BASIS},
    JOBS: {"application_id": _FORMER_ID, "machine": "cluster"},
    JOB_IO_SOURCES: {
        "filesystem_bytes": "case when source = 'server' then volume_bytes end",
        "own_bytes": "case when source <> 'server' then volume_bytes end",
    },
    PERIODS: {"basis": _BASIS},
    PERIOD_SEGMENTS: {"basis": _BASIS},
    QUEUED_JOBS: {"machine": "cluster"},
}
#: table -> condition on old rows to keep; rows of shared traffic have no equivalent
_KEPT_ROWS_CONDITION = dict.fromkeys(
    (CLASSES, PERIODS, PERIOD_SEGMENTS), f"not is_shared_traffic and {_BASIS} is not null"
)


def is_affected(table: Table) -> bool:
    """Return whether files of a landed table differ between commit 18b5d00 and this version."""
    names = renames.get_renamed_columns(table.name).values()
    return any(column.name in names or column.name in renames.VALUES for column in table.columns)


def map_application_ids(jobs: Iterable[Path]) -> dict[str, str]:
    """Map former application ids to different present ids, from all files of the former table `jobs`.

    An application that ran on several clusters keeps its former id, because its signature belongs to all of them.
    """
    import duckdb

    found: defaultdict[str, set[str]] = defaultdict(set)
    query = f"""
        select distinct {_FORMER_ID} as application_id, cluster, "user", application, node_count
        from read_parquet($paths, union_by_name = true, hive_partitioning = false)
        where is_application_run and application_id is not null
    """
    paths = duckdb_paths(jobs)
    with duckdb.connect() as connection:
        rows = connection.execute(query, {"paths": paths}).fetchall() if paths else []
    for former, *parts in rows:
        if new := make_application_id(*parts):
            found[former].add(new)
            found[all_node_counts(former)].add(all_node_counts(new))
    single = {former: ids.pop() for former, ids in found.items() if len(ids) == 1}
    return {former: present for former, present in single.items() if present != former}


def convert_file(table: Table, source: Path, target: Path, application_ids: Mapping[str, str]) -> bool:
    """Rewrite a released file with the contract's columns in order; return False if no row remains.

    application_ids: id by former id.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        query = _build_conversion_query(connection, table, source)
        relation = connection.sql(f"select {_columns(table)} from ({query})", params={"path": duckdb_path(source)})
        return _write(relation, table, target, application_ids)


def convert_landed(table: Table, source: Path, target: Path) -> None:
    """Rewrite a landed file with current names in the original column order."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    current_fields = {field.name: field for field in arrow.schema(table)}
    names = renames.get_renamed_columns(table.name)
    with duckdb.connect() as connection, atomic_write(target) as temporary:
        connection.execute("set TimeZone = 'UTC'")
        query = _build_conversion_query(connection, table, source)
        reader = connection.sql(query, params={"path": duckdb_path(source)}).to_arrow_reader()
        old = {names.get(field.name, field.name): field for field in pq.read_schema(utf8_path(source))}
        schema = pa.schema([current_fields.get(name, old[name].with_name(name)) for name in reader.schema.names])
        with pq.ParquetWriter(utf8_path(temporary), schema, compression="zstd", write_page_checksum=True) as writer:
            for batch in reader:
                writer.write_table(pa.Table.from_batches([batch]).cast(schema), row_group_size=ROW_GROUP_ROWS)
        make_read_only(temporary)


def convert_job_io(folder: Path, sources: Sequence[Path], attributed: Sequence[Path]) -> dict[str | None, Path]:
    """Compute a release's `job_io` from its converted sources and attribution, as one file per day in a new folder."""
    import duckdb

    paths_by_day = {}
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        for table, files in ((JOB_IO_SOURCES, sources), (ATTRIBUTED_IO, attributed)):
            connection.execute(f"create schema if not exists {table.layer}")
            models.expose(connection, table.layer, table, files)
        model = models.model_path(JOB_IO).read_text(encoding="utf-8")
        connection.execute(f"create table job_io_rows as select {_columns(JOB_IO)} from ({model})")
        days = connection.execute("select distinct ended_on::varchar from job_io_rows order by 1").fetchall()
        for (day,) in days:
            query = "from job_io_rows where ended_on is not distinct from $day::date"
            paths_by_day[day] = folder / f"{day}.parquet"
            _write(connection.sql(query, params={"day": day}), JOB_IO, paths_by_day[day], {})
    return paths_by_day


def _columns(table: Table) -> str:
    return ", ".join(quote_identifier(column.name) for column in table.columns)


def _build_conversion_query(connection: duckdb.DuckDBPyConnection, table: Table, source: Path) -> str:
    """Build the SELECT that returns a file's rows with current names and values, and all columns of the contract.

    Landed files keep columns that the contract lacks.
    """
    described = connection.execute(f"describe from {_FILE}", {"path": duckdb_path(source)}).fetchall()
    names, computed = renames.get_renamed_columns(table.name), _COMPUTED.get(table, {})
    values = renames.get_renamed_values(table.name)
    expressions = {}
    for old, *_ in described:
        new = names.get(old, old)
        expressions[new] = _map_values(quote_identifier(old), values.get(new, {}))
    expressions |= {name: expression for name, expression in computed.items() if name not in expressions}
    if table.is_published:
        absent = [column for column in table.columns if column.name not in expressions]
        expressions |= {column.name: column.initial_sql for column in absent}
    selection = ", ".join(f"{expression} as {quote_identifier(name)}" for name, expression in expressions.items())
    condition = f" where {_KEPT_ROWS_CONDITION[table]}" if table in _KEPT_ROWS_CONDITION else ""
    return f"select {selection} from {_FILE}{condition}"


def _map_values(column: str, values: Mapping[str, str]) -> str:
    if not values:
        return column
    cases = " ".join(f"when '{old}' then '{new}'" for old, new in values.items())
    return f"case {column} {cases} else {column} end"


def _replace_ids(rows: pa.Table, table: Table, application_ids: Mapping[str, str]) -> pa.Table:
    """Replace former application ids, also of subjects; an id without a new one stays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    former, new = (pa.array([*values], pa.string()) for values in (application_ids, application_ids.values()))

    def replace(ids: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.coalesce(new.take(pc.index_in(ids, value_set=former)), ids)

    texts = {name: rows[name].cast(pa.string()) for name in (*_ID_COLUMNS, "subject_id") if name in rows.column_names}
    changed = {name: replace(texts[name]) for name in _ID_COLUMNS if name in texts}
    if "subject_kind" in rows.column_names:
        is_application = pc.equal(rows["subject_kind"].cast(pa.string()), "application")
        changed["subject_id"] = pc.if_else(is_application, replace(texts["subject_id"]), texts["subject_id"])
    if table == APPLICATIONS:
        ids = changed["application_id"].to_pylist()
        changed["machine"] = pa.chunked_array([[get_machine(each) for each in ids]], pa.string())
    for name, values in changed.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    return rows


def _write(relation: duckdb.DuckDBPyRelation, table: Table, target: Path, application_ids: Mapping[str, str]) -> bool:
    """Write rows like `write_parquet`; return False, without a file, if the result is empty."""
    import pyarrow as pa

    schema = arrow.schema(table)
    batches = (batch for batch in relation.to_arrow_reader(ROW_GROUP_ROWS) if batch.num_rows)
    first = next(batches, None)
    if first is None:
        return False
    with atomic_write(target) as temporary:
        with parquet_writer(temporary, table) as writer:
            for batch in chain([first], batches):
                rows = _replace_ids(pa.Table.from_batches([batch]), table, application_ids)
                writer.write_table(rows.cast(schema), row_group_size=ROW_GROUP_ROWS)
        make_read_only(temporary)
    return True
