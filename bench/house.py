"""Metrics of the code base: `python -m bench.house [FOLDER]` measures the product code of a checkout from its source.

Folders and modules are nodes. A folder's direct modules count as one node next to its sub-folders, so a cycle is
reported if two folders need each other. Nothing in the checkout is imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median, quantiles

ROOMS = (
    *("answers", "cli", "estimates", "expectations", "flows", "reports", "settings", "streams", "studies", "traces"),
    *("transforms", "warehouse"),
)
_USERS = (*ROOMS, "bench", "tests")
_SMALL_LINES = 40
#: marks a module that declares an input format, a table or a step, which may be small and have a single importer
_FOUND = re.compile(r"^[A-Z_]+ = (?:Source|Table|Step)\(", re.M)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A source file of a checkout: dotted name, folder and source text."""

    name: str
    folder: str
    source: str
    is_front: bool

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed syntax tree, cached."""
        return ast.parse(self.source)

    @cached_property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """All import statements, including those within functions."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom)]

    @property
    def is_product(self) -> bool:
        """Whether the module is part of the wheel."""
        return self.name.startswith("iosig.")

    @property
    def line_count(self) -> int:
        """Number of source lines, including blank ones."""
        return len(self.source.splitlines())


def list_modules(root: Path) -> list[Module]:
    """Return the modules of a checkout's packages, including tests and benchmarks."""
    paths = [path for room in _USERS for path in sorted((root / room).rglob("*.py"))]
    return [_module(path.relative_to(root), path) for path in paths if "__pycache__" not in path.parts]


def _module(place: Path, path: Path) -> Module:
    is_front = place.name == "__init__.py"
    parts = place.parent.parts if is_front else (*place.parent.parts, place.stem)
    name = ".".join(("iosig", *parts) if parts[0] in ROOMS else parts)
    return Module(name, place.parent.as_posix(), path.read_text(encoding="utf-8"), is_front)


def imports(module: Module, names: set[str]) -> set[str]:
    """Return the named modules that a module imports, including imports within functions."""
    imported = set()
    for node in module.imports:
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names} & names
        elif node.module and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= inner & names
            if inner - names and node.module in names:
                imported.add(node.module)
    return imported - {module.name}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of nodes that reach each other, each sorted."""
    reached = {node: _find_reachable(node, edges) for node in edges}
    together = {
        frozenset({node, *(neighbor for neighbor in reached[node] if node in reached[neighbor])}) for node in edges
    }
    return sorted(sorted(nodes) for nodes in together if len(nodes) > 1)


def _find_reachable(node: str, edges: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [node]
    while waiting:
        new = edges.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def folder_edges(modules: list[Module]) -> dict[str, set[str]]:
    """Return the imports between folders, ignoring `__init__` modules."""
    names = {module.name: module for module in modules}
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for name in imports(module, set(names)):
            if not (module.is_front or names[name].is_front) and module.folder != names[name].folder:
                edges[module.folder].add(names[name].folder)
    return {module.folder: edges[module.folder] for module in modules}


def importer_counts(modules: list[Module]) -> Counter[str]:
    """Count the importers of each imported module."""
    names = {module.name for module in modules}
    return Counter(name for module in modules for name in imports(module, names))


def private_modules(modules: list[Module]) -> list[Module]:
    """Return the modules with exactly one importer."""
    counts = importer_counts(modules)
    return [module for module in modules if not module.is_front and counts[module.name] == 1]


def small_private_modules(modules: list[Module]) -> list[str]:
    """Return the names of modules that are too small and have exactly one importer, except declarations."""
    small = [module for module in private_modules(modules) if module.line_count < _SMALL_LINES]
    return [module.name for module in small if not _FOUND.search(module.source)]


def is_importing(module: Module) -> bool:
    """Return whether a module imports anything when it is imported."""
    eager = [node for node in module.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return any(not (isinstance(node, ast.ImportFrom) and node.module == "__future__") for node in eager)


def list_functions(modules: list[Module]) -> Iterator[_Function]:
    """Yield the function and method definitions of all modules, nested ones included."""
    for module in modules:
        yield from (node for node in ast.walk(module.tree) if isinstance(node, _Function))


def body_lines(function: _Function) -> int:
    """Count the lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def argument_count(function: _Function) -> int:
    """Count a function's arguments without `self` and `cls`."""
    arguments = function.args
    named = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in named if name not in {"self", "cls"}])


def parameters(modules: list[Module]) -> list[tuple[str, str]]:
    """Return (class, field) of every parameter: a field with a default, in a dataclass named `*Params`."""
    classes = [node for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    return [
        (owner.name, field.target.id)
        for owner in classes
        if owner.name.endswith("Params")
        for field in owner.body
        if isinstance(field, ast.AnnAssign) and field.value is not None and isinstance(field.target, ast.Name)
    ]


def keywords(modules: list[Module]) -> set[str]:
    """Return the names of all keyword arguments in calls."""
    calls = [node for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    return {keyword.arg for call in calls for keyword in call.keywords if keyword.arg}


def figures(root: Path) -> list[tuple[str, str]]:
    """Compute the rows of the table of metrics, as name and value."""
    everything = list_modules(root)
    product = [module for module in everything if module.is_product]
    sizes = Counter(module.folder for module in product if not module.is_front)
    lines = sorted(module.line_count for module in product)
    bodies = [body_lines(function) for function in list_functions(product)]
    arguments = [argument_count(function) for function in list_functions(product)]
    fields, used_keywords = parameters(product), keywords(everything)
    private, small = private_modules(product), small_private_modules(product)
    return [
        ("product lines", f"{sum(lines):,}"),
        ("modules (median, most lines)", f"{len(product)} ({median(lines):.0f}, {lines[-1]})"),
        ("folders (median, most modules)", f"{len(sizes)} ({median(sizes.values()):.0f}, {max(sizes.values())})"),
        ("import cycles of folders", _circles_text(circles(folder_edges(product)))),
        ("import cycles of modules", _circles_text(circles(_module_edges(product)))),
        (
            f"modules with one importer (of fewer than {_SMALL_LINES} lines)",
            f"{len(private)} ({len(small)})",
        ),
        ("function body lines, median / p90 / maximum", _spread(bodies)),
        ("function arguments, median / p90 / maximum", _spread(arguments)),
        ("parameters (never set)", f"{len(fields)} ({sum(field not in used_keywords for _, field in fields)})"),
    ]


def _module_edges(modules: list[Module]) -> dict[str, set[str]]:
    names = {module.name for module in modules}
    return {module.name: imports(module, names) for module in modules}


def _circles_text(groups: list[list[str]]) -> str:
    return f"{len(groups)}" + "".join(f"; {' '.join(nodes)}" for nodes in groups)


def _spread(values: list[int]) -> str:
    return f"{median(values):.0f} / {quantiles(values, n=10)[-1]:.0f} / {max(values)}"


if __name__ == "__main__":
    for label, value in figures(Path(sys.argv[1] if sys.argv[1:] else ".")):
        print(f"{label:52} {value}")
