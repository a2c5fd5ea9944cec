"""JSON documents and their schema."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any, Literal

from pydantic import Field

from iosig.answers.documents import Day, Document, Instant, Part, make_columns_schema
from iosig.cli.documents import schemas
from iosig.warehouse.contracts import table


class _File(Part):
    path: str = Field(description="its path")
    reason: str = Field("", description="reason of the refusal")


class _Example(Document, title="iosig example"):
    format: Literal["iosig-example/1"] = "iosig-example/1"
    at: Instant = Field(description="when [UTC]")
    day: Day = Field(description="the day")
    files: list[_File] = Field(description="the files")
    rows: list[Any] = Field(description="rows")


def _example(**values: Any) -> dict[str, Any]:
    given = {"at": datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC), "day": date(2026, 3, 4), "files": [], "rows": []}
    text = _Example(**given | values).json_text()
    assert text.isascii()
    printed: dict[str, Any] = json.loads(text)
    return printed


def test_format_is_first_and_instants_are_in_utc() -> None:
    printed = _example(rows=[{"at": datetime(2026, 3, 4, tzinfo=UTC)}])
    assert next(iter(printed)) == "format"
    assert (printed["at"], printed["day"]) == ("2026-03-04T05:06:07Z", "2026-03-04")
    assert printed["rows"] == [{"at": "2026-03-04T00:00:00Z"}]
    assert _example(at="2026-03-04T05:06:07.25+00:00")["at"] == "2026-03-04T05:06:07.25+00:00"


def test_optional_fields_are_printed_if_given() -> None:
    files = [{"path": "a"}, {"path": "b\x1b[2J\x9b", "reason": "torn"}]
    assert _example(files=files)["files"] == files


def test_columns_have_the_schema_of_their_table() -> None:
    classes = schemas()["$defs"]["classes"]["properties"]["classes"]["items"]
    assert [*classes["properties"]] == classes["required"] == [*table("classes").column_names]
    assert classes["properties"]["volume_bytes"]["type"] == ["number", "null"]
    assert None in classes["properties"]["label"]["enum"]
    schema: dict[str, Any] = {"properties": {"method": {"type": "string"}}, "required": ["method"]}
    make_columns_schema("periods", "method", "period_s")(schema)
    assert schema["required"] == ["method", "period_s"]
    assert "enum" not in schema["properties"]["method"]
    assert schema["properties"]["method"]["description"] == table("periods").column("method").doc


def test_every_document_is_named_by_its_format() -> None:
    found = schemas()
    assert [one["$ref"] for one in found["oneOf"]] == [f"#/$defs/{name}" for name in found["$defs"]]
    for name, schema in found["$defs"].items():
        assert schema["properties"]["format"]["const"] == f"iosig-{name}/1"
        assert schema["required"][0] == "format"
        assert "$ref" not in json.dumps(schema)
