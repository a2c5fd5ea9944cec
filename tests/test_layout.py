"""The repository follows CONTRIBUTING.md: rooms, mirrored tests, short files, and no personal or machine data."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from bench import house
from iosig.warehouse.contracts import TABLES
from iosig.warehouse.store.models import model_path
from tests.budget import one_in

ROOT = Path(__file__).resolve().parent.parent
#: imported without being installed: iosig itself, and packages that only type checkers know
_OWN = ("iosig", "bench", "tests", "_typeshed")
ROOMS = (*house.ROOMS, "sql", "tests")
MAX_LINES = 600
#: allowed entries next to the rooms; anything else at the top is a leftover
_BESIDE_ROOMS = {
    *(".ci", ".containerignore", ".github", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CITATION.cff"),
    *("CONTRIBUTING.md", "GLOSSARY.md", "LICENSE", "README.md", "SECURITY.md", "bench", "containers", "docs", "iosig"),
    *("pyproject.toml", "uv.lock"),
}
#: tests contain tables of cases
MOST_TEST_LINES = 750
_UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b|NotImplemented" + "Error")
_MACHINE_PATH = re.compile(r"(?<![\w.~)}])/(?:home|root|work|Users|farm)/\w")
_ADDRESS = re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,}")
#: hosts that exist in no network (RFC 2606), and networks of Lustre (10.0.0.1@o2ib)
_EXAMPLE_HOST = re.compile(r"@(?:[\w-]+\.)*(?:example(?:\.(?:com|edu|net|org))?|test|invalid|localhost)$|@o2ib\b")
_FOREIGN_WORDS = {"LICENSE", "uv.lock"}


@cache
def tracked() -> list[Path]:
    """Return the files of the project, including new files that are not added yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if told.returncode:
        pytest.skip("this is no git checkout")
    return [path for name in told.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


@cache
def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def lines_that_match(pattern: re.Pattern[str], path: Path) -> list[str]:
    text = read(path)
    found = pattern.finditer(text)
    place = path.relative_to(ROOT).as_posix()
    return [f"{place}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}" for match in found]


def texts() -> list[Path]:
    return [path for path in tracked() if path.name not in _FOREIGN_WORDS and path.suffix != ".png"]


# ---- rooms


def test_rooms_exist() -> None:
    assert [room for room in ROOMS if not (ROOT / room).is_dir()] == []


def test_top_folder_has_no_unexpected_entries() -> None:
    assert {name.split("/")[0] for name in names(tracked())} - {*ROOMS, *_BESIDE_ROOMS} == set()


def test_python_files_are_in_rooms() -> None:
    allowed = {*ROOMS, "bench", "iosig"}
    outside = [name for name in names(tracked()) if name.endswith(".py") and name.split("/")[0] not in allowed]
    assert [name for name in outside if not name.startswith("docs/tutorials/")] == []


@pytest.mark.parametrize("room", ["transforms", "warehouse/sources"])
def test_every_module_has_a_test_at_its_path(room: str) -> None:
    modules = [path.relative_to(ROOT) for path in (ROOT / room).rglob("*.py") if path.stem != "__init__"]
    tests = [ROOT / "tests" / path.with_name(f"test_{path.name}") for path in sorted(modules)]
    assert [str(test.relative_to(ROOT)) for test in tests if not test.is_file()] == []


def test_test_folders_mirror_the_rooms() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in tracked() if path.is_relative_to(ROOT / "tests")}
    lost = [str(folder) for folder in folders if not (ROOT / folder).is_dir() and folder.parts[0] != "naive"]
    assert sorted(lost) == []


def test_every_sql_model_names_its_table_and_grain() -> None:
    grains = {model_path(table): f"-- {table.layer}.{table.name}: {table.grain}" for table in TABLES}
    found = {path: path.read_text(encoding="utf-8").split("\n", 1)[0] for path in (ROOT / "sql").rglob("*.sql")}
    # views and examples read published tables
    found = {path: line for path, line in found.items() if path.parent.name not in ("views", "examples")}
    assert found == {path: grain for path, grain in grains.items() if path in found}


def test_every_suite_belongs_to_a_table() -> None:
    suites = {path.stem for path in (ROOT / "expectations").glob("*.json")}
    assert sorted(suites - {table.name for table in TABLES}) == []


@pytest.fixture(scope="module")
def every() -> list[house.Module]:
    """All modules, including tests and benchmarks."""
    return house.list_modules(ROOT)


@pytest.fixture(scope="module")
def product(every: list[house.Module]) -> list[house.Module]:
    """The modules that are shipped."""
    return [module for module in every if module.is_product]


def test_rooms_have_no_circular_imports(product: list[house.Module]) -> None:
    assert house.circles(house.folder_edges(product)) == []


def test_package_docstrings_list_their_modules(product: list[house.Module]) -> None:
    fronts = {module.folder: ast.get_docstring(module.tree) or "" for module in product if module.is_front}
    # the tables of contracts name their modules
    seen = [module for module in product if not module.is_front and module.folder != "warehouse/contracts"]
    behind = [(module.folder, f"`{module.name.split('.')[-1]}`") for module in seen]
    behind += [(str(Path(folder).parent), f"`{Path(folder).name}/`") for folder in fronts if "/" in folder]
    assert sorted((folder, name) for folder, name in behind if name not in fronts.get(folder, "")) == []


def test_names_in_package_docstrings_exist(product: list[house.Module]) -> None:
    lost = [
        f"{front.name}: {name}"
        for front in product
        if front.is_front
        for line in re.findall(r"^- `[a-z_0-9]+`.*?(?=^- |\Z)", ast.get_docstring(front.tree) or "", re.M | re.S)
        for module, *names in [re.findall(r"`(\w+)`", line.split(":")[0])]
        for name in names
        if not re.search(rf"^(?:def |class |){name}\b", (ROOT / front.folder / f"{module}.py").read_text("utf-8"), re.M)
    ]
    assert lost == []


def test_package_init_files_import_nothing(product: list[house.Module]) -> None:
    # the entry point of the command, the tables, and the classes that Great Expectations needs to load the suites
    allowed = {"iosig.cli", "iosig.expectations", "iosig.warehouse.contracts"}
    fronts = [module for module in product if module.is_front and "\nSTUDY = " not in module.source]
    assert sorted({module.name for module in fronts if house.is_importing(module)} - allowed) == []


def test_no_small_module_serves_only_one_other(product: list[house.Module]) -> None:
    assert house.small_private_modules(product) == []


# ---- files


def test_no_catch_all_modules_exist() -> None:
    drawers = {"common", "helper", "helpers", "misc", "util", "utils"}
    assert [name for name in names(tracked()) if {Path(name).stem, *Path(name).parts[:-1]} & drawers] == []


def test_files_are_short() -> None:
    long = []
    for path in tracked():
        limit = MOST_TEST_LINES if path.is_relative_to(ROOT / "tests") else MAX_LINES
        if path.suffix in {".py", ".sql"} and (count := len(path.read_text(encoding="utf-8").splitlines())) > limit:
            long.append(f"{path.name}: {count}")
    assert long == []


# ---- dependencies


def imported(module: house.Module) -> set[str]:
    """Return the top-level packages that a module imports, wherever in it."""
    plain = {alias.name for node in module.imports if isinstance(node, ast.Import) for alias in node.names}
    of = {node.module for node in module.imports if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.split(".")[0] for name in plain | of} - sys.stdlib_module_names - set(_OWN)


def declared(*, with_dev: bool) -> set[str]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    optional = [line for lines in project["optional-dependencies"].values() for line in lines]
    lines = project["dependencies"] + optional + (document["dependency-groups"]["dev"] if with_dev else [])
    return {re.split(r"[^A-Za-z0-9_.-]", line)[0].lower().replace("_", "-") for line in lines}


@pytest.mark.parametrize("with_dev", one_in(2, [False, True]))
def test_imported_packages_are_declared(every: list[house.Module], with_dev: bool) -> None:
    owners = packages_distributions()
    known = declared(with_dev=with_dev)
    undeclared = {
        f"{module.name} imports {name}"
        for module in every
        if module.is_product != with_dev
        for name in imported(module)
        # an optional package may not be installed, so its name must suffice
        if not {owner.lower().replace("_", "-") for owner in owners.get(name, [name, f"{name}-binary"])} & known
    }
    assert sorted(undeclared) == []


# ---- forbidden content


def test_no_unfinished_work_is_marked() -> None:
    assert [line for path in texts() for line in lines_that_match(_UNFINISHED, path)] == []


def test_no_machine_paths_occur() -> None:
    assert [line for path in texts() for line in lines_that_match(_MACHINE_PATH, path)] == []


def test_no_personal_addresses_occur() -> None:
    found = [line for path in texts() for line in lines_that_match(_ADDRESS, path)]
    assert [line for line in found if not _EXAMPLE_HOST.search(line)] == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (_UNFINISHED, "# TO" + "DO: later"),
        (_MACHINE_PATH, 'open("/ho' + 'me/ana/x")'),
        (_MACHINE_PATH, "/wo" + "rk/main"),
        (_ADDRESS, "write to ana.b@site" + ".edu"),
    ],
)
def test_patterns_match_their_examples(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)
