"""The JSON Schema of what `--json` prints."""

from __future__ import annotations

from typing import Any

from iosig.cli.documents import DOCUMENTS, Document
from iosig.cli.fields import Field, Kind

_TYPES: dict[Kind, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "instant": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "object": {"type": "object"},
    "any": {},
}


def schema(document: Document) -> dict[str, Any]:
    """Return the JSON Schema of a document."""
    fields = document.fields()
    made = _object_schema(fields)
    own = {"format": {"const": document.format, "description": "name and version of the document"}}
    return {
        "title": document.command,
        "description": document.doc,
        **made,
        "properties": own | made["properties"],
        "required": ["format", *made["required"]],
    }


def _object_schema(fields: tuple[Field, ...]) -> dict[str, Any]:
    properties = {field.name: _schema_of(field) for field in fields}
    required = [field.name for field in fields if not field.is_optional]
    return {"type": "object", "properties": properties, "required": required}


def _schema_of(field: Field) -> dict[str, Any]:
    told = {"description": field.doc} if field.doc else {}
    if field.unit:
        told["description"] += f" [{field.unit}]"
    made = _value_schema(field)
    if field.choices:
        made = made | {"enum": [*field.choices, *([None] if field.nullable else [])]}
    if field.nullable and "type" in made:
        made = made | {"type": [made["type"], "null"]}
    return told | made


def _value_schema(field: Field) -> dict[str, Any]:
    if field.kind == "object":
        return _object_schema(field.fields)
    if field.kind not in ("list", "map"):
        return dict(_TYPES[field.kind])
    if field.kind == "map" and field.of == "list":
        held = _schema_of(field.fields[0])
    else:
        held = _object_schema(field.fields) if field.fields else _element(field.of)
    return (
        {"type": "array", "items": held} if field.kind == "list" else {"type": "object", "additionalProperties": held}
    )


def _element(kind: Kind) -> dict[str, Any]:
    """Return the schema of what a list holds: gaps and days without a date are null."""
    made = _TYPES[kind]
    return made | {"type": [made["type"], "null"]} if kind in ("number", "integer", "day") else dict(made)


def schemas() -> dict[str, Any]:
    """Return the JSON Schema of all documents: a document is one of them, by its format."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What iosig prints with --json",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in DOCUMENTS],
        "$defs": {name: schema(document) for name, document in DOCUMENTS.items()},
    }
