"""The remaining uses of libraries' private names, each with its reason and the version it was written for.

With another version, check whether a public alternative exists, and whether the private name has the same meaning.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog

import iosig
from iosig.warehouse.releases import catalogue, database, manifest_repair, multi_table_transaction, rest, snapshots

_ROOT = Path(iosig.__file__).parent
_PACKAGES = sorted(path.name for path in _ROOT.iterdir() if path.is_dir() and path.name not in ("__pycache__", "sql"))


@dataclass(frozen=True)
class Use:
    """A private name: where it is used, why, and a check that the installed library still has it."""

    module: str
    name: str
    reason: str
    has_it: Callable[[], bool]


def _takes_answers_through(name: str) -> bool:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return hasattr(executor, name)


USES = [
    Use(
        "warehouse/releases/rest.py",
        "_config_headers",
        "The constructor of RestCatalog asks for the configuration and a token. Only when the session gets its headers "
        "can a time limit be set before these requests.",
        lambda: "_config_headers" in vars(RestCatalog),
    ),
    Use(
        "warehouse/releases/rest.py",
        "_session",
        "RestCatalog cannot commit several tables in one request, and only its session knows the token.",
        lambda: "_session" in RestCatalog.__init__.__code__.co_names,
    ),
    Use(
        "warehouse/processes.py",
        "_processes",
        "After Ctrl-C the processes of a pool end at once. Python has `kill_workers` from 3.14 on. loky and pebble can "
        "do it, but start all processes at the first call instead of one by one.",
        lambda: _takes_answers_through("_processes"),
    ),
    Use(
        "warehouse/processes.py",
        "_result_queue",
        "Half an answer of a killed process is waited for until nobody holds the other end of the pipe.",
        lambda: _takes_answers_through("_result_queue"),
    ),
    Use("warehouse/processes.py", "_writer", "The same pipe.", lambda: _takes_answers_through("_result_queue")),
]


def test_private_names_exist_in_the_supported_versions() -> None:
    assert version("pyiceberg").startswith("0.12.")
    assert sys.version_info[:2] in ((3, 11), (3, 12), (3, 13))
    for use in USES:
        assert use.has_it(), use.name
        assert use.name in (_ROOT / use.module).read_text()


def _private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("_") and name not in ("_exit", "_typeshed")


def _defined(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module defines: functions, classes, variables, attributes, parameters."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _used(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a module takes from objects or imports from libraries."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            parts = [*(node.module or "").split("."), *(each.name for each in node.names)]
            yield from (part for part in parts if _private(part))


@pytest.mark.parametrize("package", _PACKAGES)
def test_no_unlisted_private_name_is_used(package: str) -> None:
    """Public methods of named tuples begin with an underscore."""
    trees = {path: ast.parse(path.read_text()) for path in (_ROOT / package).rglob("*.py")}
    own = {name for tree in trees.values() for name in _defined(tree)} | {"_replace", "_asdict", "_fields"}
    found = {(path.relative_to(_ROOT).as_posix(), name) for path, tree in trees.items() for name in _used(tree)}
    listed = {(use.module, use.name) for use in USES}
    assert {(module, name) for module, name in found if name not in own} <= listed


def test_private_names_are_detected() -> None:
    tree = ast.parse("from pyiceberg._x import _y\nz._commit()\nclass A:\n    def _own(self): self._own()")
    assert {*_used(tree)} - {*_defined(tree)} == {"_x", "_y", "_commit"}


def test_no_unlisted_private_method_of_pyiceberg_is_overridden() -> None:
    modules = (catalogue, database, multi_table_transaction, manifest_repair, rest, snapshots)
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
