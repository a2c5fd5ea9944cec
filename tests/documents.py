"""What commands print with --json, held to the schemas of `docs/schemas.json` without a field that these lack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from iosig.cli.documents import schemas


def require_schema(printed: str) -> list[str]:
    """Hold each document that was printed to the schema that its format names; returns their formats."""
    return [_held(document) for document in _documents(printed)]


def _documents(printed: str) -> Iterator[dict[str, Any]]:
    """Yield the one document that was printed, or one for each line."""
    try:
        yield from [json.loads(printed)] if printed.strip() else []
    except json.JSONDecodeError:
        yield from map(json.loads, printed.splitlines())


def _held(document: dict[str, Any]) -> str:
    name, _, _ = document["format"].removeprefix("iosig-").partition("/")
    _validator(name).validate(document)
    return str(document["format"])


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_closed(schemas()["$defs"][name]))


def _closed(schema: Any) -> Any:
    """Return a schema that allows no field that it does not name."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    own = {name: _closed(value) for name, value in schema.items()}
    return own | {"additionalProperties": False} if "properties" in own and "type" in own else own
