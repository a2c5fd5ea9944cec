"""Validate queries by DuckDB's parse tree; only a single read-only statement is accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from iosig.warehouse.errors import UsageError

if TYPE_CHECKING:
    import duckdb


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: allowed nodes of a parse tree: queries, their sources, and modifiers for order and limit
_NODES = _words(
    """
    SELECT_NODE SET_OPERATION_NODE RECURSIVE_CTE_NODE CTE_NODE
    EMPTY BASE_TABLE SUBQUERY JOIN TABLE_FUNCTION EXPRESSION_LIST PIVOT SHOW_REF
    ORDER_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER DISTINCT_MODIFIER
    ORDER_DEFAULT ASCENDING DESCENDING
    """
)
#: allowed classes of expressions
_EXPRESSIONS = _words(
    """
    CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT DEFAULT FUNCTION LAMBDA LAMBDA_REF OPERATOR
    PARAMETER POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW BETWEEN
    """
)
#: table functions that read no file; queries name the release's views, never files
READING_FUNCTIONS = _words(
    """
    duckdb_approx_database_count duckdb_available_metrics duckdb_columns duckdb_connection_count duckdb_constraints
    duckdb_coordinate_systems duckdb_databases duckdb_dependencies duckdb_dialects duckdb_eviction_queues
    duckdb_extension_repositories duckdb_extensions duckdb_external_file_cache duckdb_external_resource_types
    duckdb_external_resources duckdb_functions duckdb_grammar_extensions duckdb_indexes duckdb_keywords
    duckdb_log_contexts duckdb_logs duckdb_logs_parsed duckdb_memory duckdb_optimizers duckdb_prepared_statements
    duckdb_profiling_settings duckdb_schemas duckdb_secret_type_parameters duckdb_secret_types duckdb_secrets
    duckdb_sequences duckdb_settings duckdb_table_sample duckdb_tables duckdb_temporary_files duckdb_triggers
    duckdb_types duckdb_variables duckdb_views generate_series histogram histogram_values icu_calendar_names
    json_each json_tree pg_timezone_names pragma_collations pragma_database_size pragma_metadata_info
    pragma_platform pragma_show pragma_storage_info pragma_table_info pragma_user_agent pragma_version range repeat
    repeat_row summary test_all_types test_vector_types unnest
    """
)
#: table functions that open files or list folders
FILE_FUNCTIONS = _words(
    """
    glob parquet_bloom_probe parquet_file_metadata parquet_full_metadata parquet_kv_metadata parquet_metadata
    parquet_scan parquet_schema read_blob read_csv read_csv_auto read_duckdb read_json read_json_auto
    read_json_objects read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects read_parquet
    read_single_csv_file read_single_json_file read_single_parquet_file read_text sniff_csv
    """
)
#: maximum size of a query's text [B]
MAX_QUERY_BYTES = 1_000_000
#: maximum nesting depth of a query, since DuckDB parses and binds recursively
MAX_NESTING = 100
#: maximum number of operators in a query, since DuckDB needs quadratic time for chains of operators
MAX_OPERATORS = 2_000
#: scalar functions with side effects
CHANGING_FUNCTIONS = frozenset({"currval", "nextval", "setseed", "setval", "write_log"})
_PRAGMAS = (
    "collations|database_list|database_size|functions|metadata_info|platform|show|show_databases|show_tables|"
    "show_tables_expanded|storage_info|table_info|user_agent|version"
)
_PRAGMA = re.compile(rf"\s*pragma\s+({_PRAGMAS})\s*(\(\s*('[^']*'|\w+)\s*\))?[\s;]*", re.IGNORECASE)
#: prefix of a statement that shows a query's plan; with `analyze`, DuckDB also executes the query
_EXPLAIN = re.compile(r"\s*explain(\s+analyze)?\s+(?=\w)", re.IGNORECASE)
_READ_ONLY = "A release is read-only"
_BY_NAME = "a query can only read tables of its release, by name. `show tables` lists them."


def require_reading(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raise UsageError unless the text is a single read-only statement."""
    _require_bounded(query)
    kind = _get_statement_kind(connection, query)
    if kind == "EXPLAIN" and (explained := _EXPLAIN.match(query)):
        return require_reading(connection, query[explained.end() :])
    if kind == "MULTI":
        raise UsageError("DuckDB treats this as several statements. Write a pivot with `on COLUMN in (VALUES)`.")
    if kind == "PRAGMA" and _PRAGMA.fullmatch(query):
        return None
    if kind != "SELECT":
        raise UsageError(f"{_READ_ONLY}: this is a {kind.replace('_', ' ')} statement.")
    for node in _nodes(_tree(connection, query)):
        _require_reading_node(node)
    return None


def _require_bounded(query: str) -> None:
    """Raise UsageError if the text is too long, too deeply nested, or chains too many operators."""
    import duckdb

    if len(query.encode(errors="replace")) > MAX_QUERY_BYTES:
        raise UsageError(f"This query is too long: the maximum is {MAX_QUERY_BYTES:,} bytes.")
    tokens = duckdb.tokenize(query)
    depth = operator_count = 0
    for start, kind in tokens:
        if kind not in (duckdb.token_type.operator, duckdb.token_type.keyword):
            continue
        word = query[start : start + 4].lower()
        if word[:1] in "([{" or word == "case":
            depth += 1
        elif word[:1] in ")]}" or word[:3] == "end":
            depth -= 1
        elif word[:1] != ",":
            operator_count += 1
        if depth > MAX_NESTING:
            raise UsageError(
                f"This query is too deeply nested: the maximum is {MAX_NESTING} levels of brackets and CASE."
            )
    if operator_count > MAX_OPERATORS:
        raise UsageError(f"This query is too long: the maximum is {MAX_OPERATORS:,} keywords and operators.")


def _get_statement_kind(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    import duckdb

    try:
        statements = connection.extract_statements(query)
        kinds = [str(statement.type).rsplit(".", 1)[-1] for statement in statements]
    except duckdb.Error as error:
        raise UsageError(first_sentence(error)) from error
    except ValueError as error:
        # a statement type that DuckDB's Python API does not know
        raise UsageError(f"{_READ_ONLY}: this statement is not a query.") from error
    if len(kinds) != 1:
        raise UsageError("Pass one SQL statement.")
    return kinds[0]


def first_sentence(error: Exception) -> str:
    """Return the first sentence of DuckDB's error, without suggestions, query text or stack traces."""
    text = re.split(r"\n\s*(?:\n|LINE \d|Did you mean|Candidate |Possible solutions|Stack Trace)", str(error))[0]
    text = re.sub(r"^(?:[A-Z][A-Za-z]* )+Error: ", "", " ".join(text.split()))
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _tree(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    import duckdb

    try:
        rows = connection.execute("select json_serialize_sql($query)", {"query": query}).fetchall()
    except duckdb.Error as error:
        raise UsageError(first_sentence(error)) from error
    try:
        document = json.loads(rows[0][0])
    except RecursionError as error:
        raise UsageError("This query is too deeply nested: write it as several CTEs.") from error
    if document["error"]:
        raise UsageError(
            f"This query cannot be verified to be read-only: {document.get('error_message', 'it has no tree')}"
        )
    return document["statements"]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all nested objects of a parse tree."""
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def _require_reading_node(node: dict[str, Any]) -> None:
    """Raise UsageError unless a node of the parse tree is on the list of read-only nodes."""
    kind = node.get("type")
    if "class" in node:
        if node["class"] not in _EXPRESSIONS:
            raise UsageError(f"{_READ_ONLY}: {node['class']} is not a read-only expression.")
        if node["class"] == "FUNCTION" and (name := node["function_name"].lower()) in CHANGING_FUNCTIONS:
            raise UsageError(f"{_READ_ONLY}: {name}() has side effects.")
        if len(node.get("column_names", ())) > MAX_NESTING:
            raise UsageError(f"This query is too deeply nested: at most {MAX_NESTING} names joined by dots.")
    elif isinstance(kind, str) and kind not in _NODES:
        raise UsageError(f"{_READ_ONLY}: the query contains a {kind.removesuffix('_QUERY_NODE').replace('_', ' ')}.")
    if kind == "BASE_TABLE" and "/" in node["table_name"]:
        raise UsageError(f"{node['table_name']} is a file: {_BY_NAME}")
    if kind == "TABLE_FUNCTION":
        name = node["function"].get("function_name", "").lower()
        if name in FILE_FUNCTIONS:
            raise UsageError(f"{name}() reads files: {_BY_NAME}")
        if name not in READING_FUNCTIONS:
            raise UsageError(f"{_READ_ONLY}: {name}() is not a read-only table function.")


def find_described_table(connection: duckdb.DuckDBPyConnection, query: str) -> str | None:
    """Return the table in `describe TABLE` or `show TABLE`; None for all other read-only statements."""
    if _get_statement_kind(connection, query) != "SELECT":
        return None
    source_node = _tree(connection, query)[0]["node"].get("from_table") or {}
    if source_node.get("type") != "SHOW_REF" or source_node["show_type"] not in ("DESCRIBE", "SHOW"):
        return None
    if (described := source_node["query"]) is None:
        return str(source_node["table_name"])
    source = described["from_table"]
    is_whole = source["type"] == "BASE_TABLE" and [item["class"] for item in described["select_list"]] == ["STAR"]
    return str(source["table_name"]) if is_whole else None
