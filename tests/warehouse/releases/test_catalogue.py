"""pyiceberg is used by its public names; the exceptions are listed, and belong to one version."""

from __future__ import annotations

import ast
from importlib.metadata import version
from pathlib import Path

import pytest
from pyiceberg.types import ListType

import iosig
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.releases import RELEASES
from iosig.warehouse.releases import catalogue, database, gathering, manifest_repair, releases, rest, snapshots

_WAREHOUSE = Path(iosig.__file__).parent / "warehouse"


def test_the_private_parts_are_those_of_one_version() -> None:
    """With another version, look whether PRIVATE_API is still needed, and still true."""
    assert version("pyiceberg").startswith("0.12.")
    for name in rest.PRIVATE_API:
        owner, _, attribute = name.partition(".")
        assert owner == rest.RestCatalog.__name__
        assert attribute in {*vars(rest.RestCatalog), *rest.RestCatalog.__init__.__code__.co_names}


def _modules() -> list[Path]:
    return [path for path in _WAREHOUSE.rglob("*.py") if "pyiceberg" in path.read_text()]


def _foreign_private_names(source: str) -> set[str]:
    """Return private names that a module imports, or takes of objects, and does not define itself."""
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    taken = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own |= {node.attr for node in taken if isinstance(node.ctx, ast.Store)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    used = {node.attr for node in taken} | {name.name for node in imports for name in node.names}
    return {name for name in used - own if name.startswith("_") and not name.endswith("__")}


def test_no_other_private_part_is_used() -> None:
    used = {name for path in _modules() for name in _foreign_private_names(path.read_text())}
    assert used <= {name.partition(".")[2] for name in rest.PRIVATE_API} | {"_gathered"}
    assert _foreign_private_names("from pyiceberg.x import _y\nz._commit()") == {"_y", "_commit"}


def test_no_other_private_part_is_overridden() -> None:
    modules = (catalogue, database, gathering, manifest_repair, rest, snapshots)
    classes = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    own = [each for each in classes if each.__module__.startswith("iosig.")]
    overridden = {
        f"{base.__name__}.{name}"
        for each in own
        for base in each.__mro__
        if base.__module__.startswith("pyiceberg.")
        for name in vars(each).keys() & vars(base).keys()
        if name.startswith("_") and not name.endswith("__") and not name.startswith("_abc")
    }
    assert overridden == {"RestCatalog._config_headers"}


@pytest.mark.parametrize("table", [*releases.published(), RELEASES], ids=lambda table: table.name)
def test_columns_have_ids_in_order_and_elements_after_them(table: Table) -> None:
    schema = catalogue._iceberg_schema(table)
    count = len(table.columns)
    assert [field.field_id for field in schema.fields] == list(range(1, count + 1))
    elements = [field.field_type.element_id for field in schema.fields if isinstance(field.field_type, ListType)]
    assert elements == list(range(count + 1, count + 1 + len(elements)))
    assert [(field.name, field.required) for field in schema.fields] == [
        (column.name, not column.nullable) for column in table.columns
    ]
