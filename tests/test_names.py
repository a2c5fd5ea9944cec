"""Our packages have plain names, so another distribution could take them: nobody does, and ours are found.

This is asked in a process of its own, started elsewhere: pytest puts the checkout first on the path, which
would hide the clash.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("bench", "expectations", "flows", "reports", "sql", "studies", "tests", "transforms", "warehouse")
_PROBE = """
import json, sys
from importlib.metadata import packages_distributions
from importlib.util import find_spec

def places(name):
    spec = find_spec(name)
    return [] if spec is None else list(spec.submodule_search_locations or [spec.origin])

owners = packages_distributions()
names = sys.argv[1:]
print(json.dumps({name: [owners.get(name, []), places(name)] for name in names}))
"""


def clashes(elsewhere: Path, *path: Path) -> list[str]:
    """Ask a fresh process, started elsewhere with more entries on its path, whose our names are."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    command = [sys.executable, "-c", _PROBE, *NAMES]
    told = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True)
    found = []
    for name, (owners, places) in json.loads(told.stdout).items():
        foreign = [owner for owner in owners if owner != "iosig"]
        found += [f"{name} is provided by {owner}" for owner in foreign]
        if [Path(place).resolve() for place in places] != [ROOT / name]:
            found.append(f"{name} is found at {places}, not in {ROOT}")
    return found


def test_our_names_are_ours(tmp_path: Path) -> None:
    assert clashes(tmp_path) == []


def test_a_foreign_package_is_told(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "transforms").mkdir(parents=True)
    (site / "transforms" / "__init__.py").touch()
    (site / "foreign-1.0.dist-info").mkdir()
    (site / "foreign-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (site / "foreign-1.0.dist-info" / "top_level.txt").write_text("transforms\n")
    found = clashes(tmp_path, site)
    assert found[0] == "transforms is provided by foreign"
    assert found[1].startswith("transforms is found at")
    assert len(found) == 2
