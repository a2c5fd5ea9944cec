"""The package of sources: every format is found, and finding them imports no library that only one of them needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from warehouse.sources import protocol

HEAVY = "sqlalchemy h5py darshan msgpack pandas scipy"


def test_every_module_with_a_source_is_found() -> None:
    folder = Path(protocol.__file__).parent
    declaring = [path for path in folder.rglob("*.py") if "\nSOURCE = " in path.read_text()]
    assert len({source.name for source in protocol.sources()}) == len(declaring)


def test_finding_them_imports_nothing_heavy() -> None:
    probe = f"print(*(set({HEAVY!r}.split()) & sys.modules.keys()))"
    code = f"import sys, warehouse.sources.protocol as s; s.sources(); {probe}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
