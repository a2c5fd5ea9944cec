"""Benchmarks run some programs as text, which no other check reads: what they import has to be there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import bench

_OURS = ("bench", "iosig", "tests")


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the modules of ours that a program imports from, each with a name that it wants of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in _OURS:
            yield from ((node.module, alias.name) for alias in node.names)


def programs(path: Path) -> Iterator[ast.AST]:
    """Yield the module itself, and the programs in its text that can be read as such."""
    module = ast.parse(path.read_text())
    yield module
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\nfrom " in node.value:
            yield ast.parse(node.value)


@pytest.mark.parametrize("path", sorted(Path(bench.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_what_is_imported_is_there(path: Path) -> None:
    wanted = {pair for program in programs(path) for pair in imported(program)}
    lost = [
        f"{module}.{name}"
        for module, name in sorted(wanted)
        if not hasattr(import_module(module), name) and find_spec(f"{module}.{name}") is None
    ]
    assert lost == []
