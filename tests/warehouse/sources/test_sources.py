"""The package of sources: every format is found, and finding them imports no library that only one of them needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from warehouse import sources

HEAVY = "sqlalchemy h5py darshan msgpack pandas scipy"


def test_every_module_with_a_source_is_found() -> None:
    folder = Path(sources.__file__).parent
    declaring = {path.stem for path in folder.glob("*.py") if "\nSOURCE = " in path.read_text()}
    found = {source.name: source for source in sources.sources()}
    assert {name.replace("-", "_") for name in found} == declaring


def test_finding_them_imports_nothing_heavy() -> None:
    code = f"import sys, warehouse.sources as s; s.sources(); print(*(set({HEAVY!r}.split()) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
