"""Programs that benchmarks run as text import only existing names, which no other check verifies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import bench

_OURS = ("bench", "iosig", "tests")


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each project module that a program imports from, with an imported name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in _OURS:
            yield from ((node.module, alias.name) for alias in node.names)


def programs(path: Path) -> Iterator[ast.AST]:
    """Yield the module itself, and the programs in its text that can be parsed."""
    module = ast.parse(path.read_text())
    yield module
    for node in ast.walk(module):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and re.search(r"\nfrom \S+ import ", text):
            yield ast.parse(text)


@pytest.mark.parametrize("path", sorted(Path(bench.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_imported_names_exist(path: Path) -> None:
    wanted = {pair for program in programs(path) for pair in imported(program)}
    lost = [
        f"{module}.{name}"
        for module, name in sorted(wanted)
        if not hasattr(import_module(module), name) and find_spec(f"{module}.{name}") is None
    ]
    assert lost == []
