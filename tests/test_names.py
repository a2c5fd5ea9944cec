"""All packages are imported as `iosig.<package>`, so that they can be installed next to other packages.

The checkout is on the path of pytest, where `import flows` would work and create a second copy of every class.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from bench import house

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (*house.ROOMS, "sql")
#: quoted, or run as a module: `settings.storage` is mostly a variable
_DOTTED = re.compile(rf"(?:(?<=[\"'`])|(?<=-m ))(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
_NAMES = "|".join(PACKAGES)
_IMPORT = re.compile(
    rf"(?<![\w.])from (?:{_NAMES})(?:\.\w+)* import|(?:^[ \t>]*|[;\"'] ?)import (?:{_NAMES})(?=[ .,;\"']|$)",
    re.MULTILINE,
)
#: text about these names, published history, and columns of tables (`transforms.signatures.expected_correlation`)
_EXEMPT = {"CHANGELOG.md", "docs/lineage.md", "uv.lock", "tests/test_names.py", "tests/test_wheel.py"}


def is_module(dotted: str) -> bool:
    """Return whether the first two parts of a dotted name are a module of the checkout, and not just a table's name."""
    parts = dotted.split(".")
    path = ROOT.joinpath(*parts[:2])
    is_table = len(parts) == 2 and (ROOT / "sql" / parts[0]).is_dir()
    return not is_table and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


def bare_names(path: Path) -> list[str]:
    """Return the places in a file that name a package of iosig without `iosig.`."""
    place = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    matches = [match for match in _DOTTED.finditer(text) if is_module(match.group())]
    matches += _IMPORT.finditer(text) if path.suffix in {".py", ".yaml", ".toml", ""} else []
    return [f"{place}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}" for match in matches]


def test_symbolic_links_lead_to_each_package() -> None:
    links = {path.name: os.readlink(path) for path in (ROOT / "iosig").iterdir() if path.is_symlink()}

    assert links == {name: f"../{name}" for name in PACKAGES}


def test_no_file_uses_a_bare_package_name() -> None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("this is not a git checkout")
    names = [name for name in listing.stdout.decode().split("\0") if name and name not in _EXEMPT]
    suffixes = {"", ".md", ".py", ".sql", ".toml", ".yaml"}
    paths = [ROOT / name for name in names if Path(name).suffix in suffixes and (ROOT / name).is_file()]

    assert [place for path in paths for place in bare_names(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "from cli import main",
        '"import sys; import warehouse.contracts"',
        '("cli.land", "land")',
        "`transforms.periods.ftio` has the formulas",
        "uv run python -m cli.reference",
    ],
)
def test_bare_package_name_is_found(text: str) -> None:
    assert _IMPORT.search(text) or any(is_module(match.group()) for match in _DOTTED.finditer(text))


@pytest.mark.parametrize("text", ["from iosig.flows import x", "stage.jobs", "transforms.periods", "docs/flows.md"])
def test_other_names_are_not_found(text: str) -> None:
    assert not _IMPORT.search(text)
    assert not any(is_module(match.group()) for match in _DOTTED.finditer(text))
