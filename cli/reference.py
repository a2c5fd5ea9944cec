"""Generate the reference pages under `docs/` from the code: `python -m iosig.cli.reference`."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from iosig.cli.documents import schemas
from iosig.cli.main import iosig
from iosig.expectations import suites
from iosig.settings.model import FILE_NAME, Settings
from iosig.warehouse import renames
from iosig.warehouse.contracts import TABLES, Column, Dtype, Table
from iosig.warehouse.releases.views import VIEWS, find_example
from iosig.warehouse.sources.extrapolations import compressed_traces as compressed_files

if TYPE_CHECKING:
    from iosig.flows.lineage import ColumnLineage, TableLineage

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: example settings file, included in the page about the settings: handwritten values of a site, completed with defaults
EXAMPLE = DOCS / FILE_NAME

_DTYPES: dict[Dtype, str] = {
    "text": "UTF-8 text",
    "int": "64-bit integer",
    "real": "64-bit floating point; never NaN or infinite",
    "bool": "true or false",
    "instant": "time stamp in UTC, to the microsecond",
    "date": "calendar day",
    "reals": "list of `real`, whose elements may be NULL",
    "ints": "list of `int`",
}
_TYPE_WORDS: dict[object, str] = {
    bool: "true or false",
    str: "text",
    int: "whole number",
    float: "number",
    Path: "path",
}
_SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}


def _page(*blocks: str) -> str:
    note = "<!-- Made by `python -m iosig.cli.reference`: edit the declarations, not this page. -->"
    return "\n\n".join([note, *(block for block in blocks if block)]) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table; characters that would end a cell are escaped."""
    lines = [header, ["---"] * len(header), *([_cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", r"\|")


def _code(text: str) -> str:
    return f"`{text}`"


# ---- the data dictionary


def dictionary() -> str:
    """Return the page that documents each column of all published and landed tables."""
    published = [table for table in TABLES if table.is_published]
    landed = [table for table in TABLES if table.layer == "landed" and not table.is_published]
    inner = [table for table in TABLES if table not in published and table not in landed]
    return _page(
        "# Data dictionary",
        (
            "All published and landed tables. Units are bytes, seconds and UTC, and part of the column names. The time "
            "stamp of an interval is its right edge. Missing results are NULL, with the reason in another column. "
            "Columns without `yes` under NULL always have a value."
        ),
        (
            "Tables with a partition are rewritten by day, others as a whole. Rows that break a rule marked "
            "`quarantine` are moved from the table to [`quarantine`](#quarantine)."
        ),
        _table(("type", "content"), ((_code(name), words) for name, words in _DTYPES.items())),
        "## Tables of a release",
        _index(published),
        "## Views of a release",
        "`iosig sql` has views whose rows are correct without a join. They are not part of a release's files.",
        _table(("view", "rows"), ((_code(view.name), view.doc) for view in VIEWS)),
        "## Landed tables",
        (
            "All rows read by sources, with the names and units of iosig. Landed tables are not part of a release. "
            "Unreadable rows are in [`rejects`](#rejects). The checks of landed rows are part of "
            "[`quality`](#quality): their examples name the landed file, and the line if the table has it. A row that "
            "fails a check stays in the table."
        ),
        _index(landed),
        "## Tables within a run",
        "Temporary tables of a run. They are not part of a release.",
        _table(("table", "grain"), ((_code(table.name), table.grain) for table in inner)),
        *(block for table in (*published, *landed) for block in _describe(table)),
    )


def _index(tables: Iterable[Table]) -> str:
    rows = ((f"[`{table.name}`](#{table.name})", table.layer, table.grain) for table in tables)
    return _table(("table", "layer", "grain"), rows)


def _describe(table: Table) -> Iterator[str]:
    yield f"## {table.name}"
    key = ", ".join(map(_code, table.key))
    partition = f" Partition: {_code(table.partition)}." if table.partition else ""
    yield f"{table.grain[0].upper()}{table.grain[1:]}. Key: {key}.{partition}"
    yield _table(("column", "type", "unit", "NULL", "bounds", "meaning"), map(_column_cells, table.columns))
    rules = suites.load_suite_rules(table)
    if rules:
        yield "Checks beyond the contract:"
        yield _table(("check", "severity", "condition", "remedy"), map(_rule_cells, rules))
    parameters = suites.parameters(table)
    if parameters:
        names = ", ".join(_code(parameter.name) for parameter in parameters)
        yield f"Checks use these values of the section [`[quality]`](settings.md#quality) of the settings: {names}."
    example = find_example(table.name)
    if example:
        yield f"Example: {example.question}\n\n```sql\n{example.query}\n```"


def _column_cells(column: Column) -> tuple[str, ...]:
    limits = (("≥", column.low), ("≤", column.high))
    bounds = ", ".join(f"{sign} {limit:g}" for sign, limit in limits if limit is not None)
    choices = f" One of {', '.join(map(_code, column.choices))}." if column.choices else ""
    is_null = "yes" if column.nullable else ""
    return (_code(column.name), column.dtype, column.unit or "", is_null, bounds, column.doc + choices)


def _rule_cells(rule: suites.Rule) -> tuple[str, ...]:
    severity = f"{rule.severity}, quarantine" if rule.is_quarantine else rule.severity
    return (_code(rule.name), severity, rule.doc, rule.remedy)


# ---- the command


def command_line() -> str:
    """Return the page about the command, its subcommands and their options."""
    commands = contexts(click.Context(iosig, info_name="iosig"))
    return _page(
        "# The command",
        (
            "Results go to stdout, progress to stderr. All subcommands have `--help`, and those that print data have "
            "[`--json`](json.md)."
        ),
        str(iosig.epilog),
        (
            "Tables fit the terminal: texts are wrapped, and omitted columns are named below the table (`--wide` "
            "prints them). `COLUMNS` sets another width. In a pipe or a file, each row is one line, with all columns. "
            "`NO_COLOR` and `TERM=dumb` are supported. If a pipe is closed early (`| head`), the exit code is 0."
        ),
        (
            "The shell completes commands, options, tables, releases, applications and file systems, the last three "
            "from the local warehouse. Run this once per shell, with `iosig` on the path:"
        ),
        "```sh\n"
        "_IOSIG_COMPLETE=bash_source iosig > ~/.iosig-complete.bash  # then in ~/.bashrc: . ~/.iosig-complete.bash\n"
        "_IOSIG_COMPLETE=zsh_source iosig > ~/.iosig-complete.zsh    # then in ~/.zshrc: . ~/.iosig-complete.zsh\n"
        "_IOSIG_COMPLETE=fish_source iosig > ~/.config/fish/completions/iosig.fish\n```",
        *(block for context in commands for block in _describe_command(context)),
    )


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield a command, and the subcommands below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None:
                yield from contexts(click.Context(command, parent=context, info_name=name))


def _describe_command(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}"
    yield f"```\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield inspect.cleandoc(command.help or "")
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        yield _table(("option", "effect"), (_option_cells(option, context) for option in options))


def _option_cells(option: click.Option, context: click.Context) -> tuple[str, str]:
    names = " / ".join(_code(name) for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" {_code(option.make_metavar(context))}"
    extra = option.get_help_extra(context)
    words = [
        option.help or "",
        "Required." if option.required else "",
        f"Within {_code(extra['range'])}." if "range" in extra else "",
        f"Default: {extra['default'].strip('()')}." if "default" in extra else "",
    ]
    return names + value, " ".join(filter(None, words))


# ---- JSON documents


def documents_page() -> str:
    """Return the page about what `--json` prints: each document, field by field."""
    documents = schemas()["$defs"].values()
    formats = ((_code(schema["properties"]["format"]["const"]), _code(schema["title"])) for schema in documents)
    return _page(
        "# JSON output",
        (
            "Every command that prints data has `--json`. It prints one object, or one object per line while it runs "
            "(`iosig predict`, `iosig land --follow`). Programs must check `format` first, and ignore unknown fields. "
            "Within a version, fields are never removed, and never change in type, unit or meaning."
        ),
        (
            "Units are bytes, seconds and UTC, and part of the names. Instants are texts such as "
            "`2026-03-03T02:31:07Z`. Missing results are null. Names are untrusted data: users choose the names of "
            "their jobs."
        ),
        (
            "[schemas.json](schemas.json) is the JSON Schema (2020-12) of all documents. Tests validate all printed "
            "documents against it. `iosig sql --format json` prints only the rows, `--json` also the types of their "
            "columns. The type `any` is described elsewhere, or has the form of its source table."
        ),
        _table(("format", "printed by"), formats),
        *(block for document in documents for block in _describe_document(document)),
    )


def _describe_document(schema: dict[str, Any]) -> Iterator[str]:
    yield f"## {schema['properties']['format']['const']}"
    yield f"{schema['description']} By `{schema['title']}`."
    fields = {name: field for name, field in schema["properties"].items() if name != "format"}
    yield _table(("field", "type", "unit", "null", "meaning"), _field_rows("", schema | {"properties": fields}))


def _field_rows(above: str, schema: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each field of an object, followed by the rows of the fields nested in it."""
    for name, field in schema["properties"].items():
        doc, unit = re.fullmatch(r"(.*?)(?: \[([^]]+)\])?", field["description"]).groups("")  # type: ignore[union-attr]
        note = "" if name in schema["required"] else " (only if not empty)"
        is_null = "yes" if "null" in field.get("type", ()) else ""
        yield (_code(above + name), _type_word(field), unit, is_null, doc + note)
        path = f"{above}{name}"
        while (inner := field.get("items", field.get("additionalProperties"))) is not None:
            path, field = path + ("[]" if "items" in field else ".*"), inner
        if "properties" in field:
            yield from _field_rows(f"{path}.", field)


def _type_word(field: dict[str, Any]) -> str:
    types = field.get("type", "any")
    kind = types if isinstance(types, str) else types[0]
    if (inner := field.get("items", field.get("additionalProperties"))) is not None:
        word = f"{_type_word(inner)}s".replace("anys", "any").replace("list", "lists").replace("ss", "s")
        return f"{'list of' if kind == 'array' else 'map to'} {word}"
    return {"string": "text", "date-time": "instant", "date": "day"}.get(field.get("format", kind), kind)


def schema_file() -> str:
    """Return the JSON Schema of all documents."""
    return json.dumps(schemas(), indent=1, ensure_ascii=False) + "\n"


# ---- the settings


def settings() -> str:
    """Return the page about the settings file: every section, every field, and a complete example."""
    sections = {name: model for name, field in Settings.model_fields.items() if (model := _model(field))}
    tables = {name: field for name, field in Settings.model_fields.items() if name not in sections}
    recomputed = json.loads(Settings().parameters())
    return _page(
        "# The settings file",
        (
            f"`{FILE_NAME}` describes the site. It is a TOML file. Every field has a default, and unknown fields are "
            "errors. Pass it with `--settings FILE` or `IOSIG_SETTINGS`. Otherwise, iosig looks in the warehouse's "
            "folder, then in the current folder. Command-line options override it."
        ),
        (
            "A change of a field marked ⟳ makes all days stale: the next run recomputes them. Fields about reading "
            "inputs apply to inputs that land later; `iosig land --replace` reads a landed file again."
        ),
        *(block for name, model in sections.items() for block in _describe_section(name, model, recomputed)),
        *(block for name, field in tables.items() for block in _describe_table(name, field, recomputed)),
        "## A complete example",
        f"```toml\n{example().strip()}\n```",
    )


def example() -> str:
    """Return the example settings file, completed with the defaults of the fields that it omits."""
    text = EXAMPLE.read_text(encoding="utf-8")
    written = tomllib.loads(text)
    for name, field in Settings.model_fields.items():
        if model := _model(field):
            defaults = [(key, value.default) for key, value in model.model_fields.items() if value.default is not None]
            missing = [(key, default) for key, default in defaults if key not in written.get(name, {})]
            lines = [f"{key} = {json.dumps(default, default=str)}\n" for key, default in missing]
            section = re.search(rf"(?m)^\[{name}\].*\n(?:.+\n)*", text)
            end = section.end() if section else len(text)
            text = text[:end] + ("" if section else f"\n[{name}]\n") + "".join(lines) + text[end:]
    return text


def _model(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _describe_section(name: str, model: type[BaseModel], recomputed: dict[str, Any]) -> Iterator[str]:
    yield f"## {name}"
    yield f"Section `[{name}]`. {model.__doc__ or ''}"
    rows = (
        (
            _code(key) + (" ⟳" if key in recomputed.get(name, {}) else ""),
            _type_words(value.annotation) + _bound_words(value),
            _default_words(value),
            value.description or "",
        )
        for key, value in model.model_fields.items()
    )
    yield _table(("field", "type", "default", "meaning"), rows)


def _describe_table(name: str, field: FieldInfo, recomputed: dict[str, Any]) -> Iterator[str]:
    yield f"## {name}"
    mark = " ⟳" if name in recomputed else ""
    yield f"Section `[{name}]`{mark}. Each line: {field.description}. Empty if not given."


def _type_words(kind: Any) -> str:
    """Return a field's type in words, without None: the default shows that a field is optional."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (part for part in typing.get_args(kind) if part is not type(None))
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(_code(choice) for choice in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        return f"list of {_type_words(typing.get_args(kind)[0])}"
    if typing.get_origin(kind) is dict:
        return f"table of {_type_words(typing.get_args(kind)[1])}s"
    return _TYPE_WORDS[kind]


def _bound_words(field: FieldInfo) -> str:
    """Format a field's bounds as text that follows its type, such as `, ≥ 0, ≤ 1`."""
    bounds = ((sign, getattr(limit, name, None)) for limit in field.metadata for name, sign in _SIGNS.items())
    return "".join(f", {sign} {bound:g}" for sign, bound in bounds if bound is not None)


def _default_words(field: FieldInfo) -> str:
    value = field.default
    if value is None or value == {}:
        return "none"
    if isinstance(value, float):
        return _code(f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}")
    if isinstance(value, bool):
        return _code(str(value).lower())
    return _code(f"'{value}'" if isinstance(value, str) else str(value))


# ---- compressed traces


def compressed_traces() -> str:
    """Return the page on the format of compressed traces, with its tables regenerated."""
    return compressed_files.render_page((DOCS / "compressed-traces.md").read_text(encoding="utf-8"))


# ---- renamed names

_RENAMED = "## Renamed\n"


def upgrading() -> str:
    """Return the page about upgrading: its handwritten text, followed by the table of renamed names."""
    text = (DOCS / "upgrading.md").read_text(encoding="utf-8").partition(_RENAMED)[0]
    blocks = [f"### {title}\n\n{_table(header, rows)}" for title, header, rows in _list_renames()]
    return text + _RENAMED + "\n" + "\n\n".join(blocks) + "\n"


def _list_renames() -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    def pairs(names: Mapping[str, str]) -> list[tuple[str, ...]]:
        return [(_code(old), _code(new)) for old, new in names.items()]

    def within(names: Mapping[str, Mapping[str, str]]) -> list[tuple[str, ...]]:
        return [
            (_code(place), _code(old), _code(new))
            for place, new_names in names.items()
            for old, new in new_names.items()
        ]

    former = ("before", "now")
    columns = {
        f"{table}.{old}": new for table, new_names in renames.TABLE_COLUMNS.items() for old, new in new_names.items()
    }
    values = renames.list_values() | {
        f"{table}.{column}": new_names
        for table, columns_renamed in renames.TABLE_VALUES.items()
        for column, new_names in columns_renamed.items()
    }
    yield "Tables", former, pairs(renames.TABLES)
    yield "Columns", former, pairs(renames.COLUMNS | columns)
    yield "Values", ("column", *former), within(values)
    yield "Settings", former, pairs(renames.SETTINGS)
    yield "Commands", former, pairs(renames.COMMANDS)
    yield "Options", ("command", *former), within(renames.OPTIONS)
    yield "Fields of JSON documents", former, pairs(renames.JSON_FIELDS)
    yield "Checks", former, pairs(renames.CHECKS)


# ---- lineage


def lineage_page() -> str:
    """Return the page about the tables and columns from which each table is computed."""
    from iosig.flows.lineage import get_column_lineage, lineage

    tables = lineage()
    return _page(
        "# Lineage",
        (
            "Source tables and step of each table, and source columns if an SQL model computes it. `iosig lineage "
            "TABLE` prints the same with all upstream and downstream tables. This page is generated from the "
            "declarations of the steps and from the SQL."
        ),
        "## Steps",
        _diagram(tables),
        "## Tables",
        _table(
            ("table", "step", "computed by", "computed from"),
            (
                (_code(table.name), table.step, _link_source(table), ", ".join(map(_code, table.tables)))
                for table in tables
            ),
        ),
        "## Columns",
        (
            "Columns of tables that an SQL model computes. A column without sources is a constant, a count of rows, or "
            "comes from the settings."
        ),
        *(
            block
            for table in tables
            if table.is_sql
            for block in _describe_columns(table.name, get_column_lineage(table.table))
        ),
    )


def _link_source(lineage: TableLineage) -> str:
    return f"[SQL](../sql/{lineage.table.layer}/{lineage.table.name}.sql)" if lineage.is_sql else "Python"


def _diagram(tables: Sequence[TableLineage]) -> str:
    """Return the steps as a Mermaid diagram, with an arrow from each step to the steps that read its tables."""
    step_of = {table.name: table.step for table in tables}
    numbers = {step: number for number, step in enumerate(dict.fromkeys(step_of.values()))}
    arrows = {
        (numbers[step_of[name]], numbers[table.step]): None
        for table in tables
        for name in table.tables
        if name in step_of and step_of[name] != table.step
    }
    nodes = [f'    s{number}["{step}"]' for step, number in numbers.items()]
    lines = ["```mermaid", "flowchart LR", *nodes, *(f"    s{first} --> s{then}" for first, then in arrows), "```"]
    return "\n".join(lines)


def _describe_columns(name: str, columns: Sequence[ColumnLineage]) -> Iterator[str]:
    yield f"### {name}"
    rows = ((_code(column.column), ", ".join(map(_code, column.sources))) for column in columns)
    yield _table(("column", "computed from"), rows)


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": command_line,
    "compressed-traces.md": compressed_traces,
    "dictionary.md": dictionary,
    "iosig.toml": example,
    "json.md": documents_page,
    "lineage.md": lineage_page,
    "schemas.json": schema_file,
    "settings.md": settings,
    "upgrading.md": upgrading,
}


def stale(folder: Path = DOCS) -> list[str]:
    """Return the names of the pages in a folder that differ from what the code declares, or are missing."""
    return [
        name
        for name, page in PAGES.items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != page()
    ]


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a page is stale.")
def write(check: bool) -> None:
    """Write the reference pages under docs/ that differ from what the code declares."""
    names = stale()
    for name in names:
        if not check:
            (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        click.echo(f"docs/{name}: {'stale; run `uv run python -m iosig.cli.reference`' if check else 'written'}")
    raise SystemExit(1 if check and names else 0)


if __name__ == "__main__":
    write()
