"""Define the pydantic models of the `--json` output, from which the JSON Schemas are generated.

A document begins with its `format`, a name and a version. Within a version no field is removed or changes its type,
unit or meaning. A description ends with the unit in brackets. Fields with a default are optional and printed only if
set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from iosig.reports.texts import printable

if TYPE_CHECKING:
    from iosig.warehouse.contracts import Column

#: an instant or a day; text is printed unchanged
Instant = Annotated[datetime | str, WithJsonSchema({"type": "string", "format": "date-time"})]
Day = Annotated[date | str, WithJsonSchema({"type": "string", "format": "date"})]
#: maximum validation errors in a message
_MAX_FAULTS = 3


class Part(BaseModel):
    """Base class of objects within a document; validates keywords, rows, or objects with the same attributes."""

    model_config = ConfigDict(
        frozen=True, from_attributes=True, validate_by_name=True, serialize_by_alias=True, defer_build=True
    )


class Document(Part):
    """Base class of the JSON documents that commands print."""

    format: str

    def json_text(self, indent: int | None = None) -> str:
        """Serialize the document to ASCII JSON, so that text from inputs cannot control a terminal."""
        values = self.model_dump(mode="json", exclude_unset=True, fallback=str)
        return json.dumps({"format": self.format, **values}, indent=indent)


class RollbackPart(Part):
    """JSON object of an active rollback to an earlier release."""

    target_id: str = Field(description="the release that is current again")
    since: Instant = Field(description="since when [UTC]")
    landing_ids: list[str] = Field(description="landings that runs exclude")
    table_names: list[str] = Field(description="tables that keep their rows of that release")
    parameters: str | None = Field(description="the only settings with which runs publish, as JSON; null for any")
    ended_at: Instant | None = Field(description="null while it is in force [UTC]")


def make_enum_schema(choices: Collection[str]) -> WithJsonSchema:
    """Return the schema annotation of a string that is one of `choices`."""
    return WithJsonSchema({"type": "string", "enum": list(choices)})


def instant_text(at: datetime) -> str:
    """Format an instant as UTC text with whole seconds, which sorts chronologically."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def format_faults(error: ValidationError) -> str:
    """Format the first `_MAX_FAULTS` validation errors, each with its location in the document."""
    faults = error.errors(include_input=False)[:_MAX_FAULTS]
    messages = [f"{_place(fault['loc'])}: {fault['msg'].removeprefix('Value error, ')}" for fault in faults]
    more = error.error_count() - len(messages)
    return "; ".join(messages) + (f"; and {more} more" if more > 0 else "")


def _place(loc: tuple[int | str, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{printable(part, 80)}" for part in loc)
    return text.lstrip(".") or "the document"


# ---- columns of tables

_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "int": {"type": "integer"},
    "real": {"type": "number"},
    "bool": {"type": "boolean"},
    "instant": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "reals": {"type": "array", "items": {"type": ["number", "null"]}},
    "ints": {"type": "array", "items": {"type": ["integer", "null"]}},
}


def make_columns_schema(
    table_name: str, *names: str, exclude: Collection[str] = (), are_nullable: bool = False
) -> Callable[[dict[str, Any]], None]:
    """Return the `json_schema_extra` that declares columns of a table (default: all) as extra fields of a model.

    A field declared in the model overrides the column of the same name. are_nullable: every column may be NULL.
    """

    def add(schema: dict[str, Any]) -> None:
        from iosig.warehouse.contracts import table

        chosen = [table(table_name).column(name) for name in names or table(table_name).column_names]
        columns = {
            column.name: _column_schema(column, is_nullable=column.nullable or are_nullable)
            for column in chosen
            if column.name not in exclude
        }
        properties = schema.get("properties", {})
        declared = {name: _inherit_description(columns.get(name)) | field for name, field in properties.items()}
        schema["properties"] = columns | declared
        schema["required"] = [*columns, *(name for name in schema.get("required", ()) if name not in columns)]

    return add


def _inherit_description(schema: dict[str, Any] | None) -> dict[str, Any]:
    return {"description": schema["description"]} if schema else {}


def _column_schema(column: Column, *, is_nullable: bool) -> dict[str, Any]:
    unit = f" [{column.unit}]" if column.unit else ""
    schema = {"description": f"{column.doc}{unit}", **_TYPES[column.dtype]}
    if column.choices:
        schema["enum"] = [*column.choices, *([None] if is_nullable else [])]
    return schema | {"type": [schema["type"], "null"]} if is_nullable else schema
