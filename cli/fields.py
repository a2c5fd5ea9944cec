"""Fields of what `--json` prints: what each holds, in which unit, and how they are declared in short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from iosig.warehouse.contracts import Column

Kind = Literal["text", "integer", "number", "boolean", "instant", "day", "object", "list", "map", "any"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object: what it holds, in which unit, and whether it may be null.

    fields: of an object, or of the objects of a list or a map. of: what a list or a map (any name = a value) holds
    otherwise. is_optional: it is there only where there is something to tell.
    """

    name: str
    kind: Kind
    doc: str
    unit: str | None = None
    nullable: bool = False
    fields: tuple[Field, ...] = ()
    of: Kind = "object"
    choices: tuple[str, ...] = ()
    is_optional: bool = False


def text_field(name: str, doc: str, *, null: bool = False, choices: Iterable[str] = ()) -> Field:
    """Return a field of text."""
    return Field(name, "text", doc, nullable=null, choices=tuple(choices))


def count_field(name: str, doc: str, unit: str | None = None, *, null: bool = False) -> Field:
    """Return a field of a whole number."""
    return Field(name, "integer", doc, unit, null)


def number_field(name: str, doc: str, unit: str | None = None, *, null: bool = False) -> Field:
    """Return a field of a number."""
    return Field(name, "number", doc, unit, null)


def flag_field(name: str, doc: str) -> Field:
    """Return a field that is true or false."""
    return Field(name, "boolean", doc)


def instant_field(name: str, doc: str, *, null: bool = False) -> Field:
    """Return a field of an instant, in UTC."""
    return Field(name, "instant", doc, "UTC", null)


def day_field(name: str, doc: str, *, null: bool = False) -> Field:
    """Return a field of a day."""
    return Field(name, "day", doc, nullable=null)


def object_field(name: str, doc: str, *fields: Field, null: bool = False) -> Field:
    """Return a field that has fields itself."""
    return Field(name, "object", doc, nullable=null, fields=fields)


def list_field(name: str, doc: str, *fields: Field, of: Kind = "object", null: bool = False) -> Field:
    """Return a field of a list, of objects with these fields unless it is said otherwise."""
    return Field(name, "list", doc, nullable=null, fields=fields, of=of)


def map_field(name: str, doc: str, *fields: Field, of: Kind = "object") -> Field:
    """Return a field that has a value for each of any names."""
    return Field(name, "map", doc, fields=fields, of=of)


def column_fields(table_name: str, *names: str, but: Iterable[str] = ()) -> tuple[Field, ...]:
    """Return columns of a table as fields, all of them where none is named."""
    from iosig.warehouse.contracts import table

    columns = table(table_name).columns
    chosen = names or tuple(column.name for column in columns)
    left_out = set(but)
    by_name = {column.name: column for column in columns}
    return tuple(_of_column(by_name[name]) for name in chosen if name not in left_out)


def _of_column(column: Column) -> Field:
    kinds: dict[str, Kind] = {
        "text": "text",
        "int": "integer",
        "real": "number",
        "bool": "boolean",
        "instant": "instant",
        "date": "day",
        "reals": "list",
        "ints": "list",
    }
    of: Kind = "integer" if column.dtype == "ints" else "number"
    return Field(
        column.name, kinds[column.dtype], column.doc, column.unit, column.nullable, of=of, choices=column.choices
    )
