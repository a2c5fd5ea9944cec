"""Test the discovery of sources: every format is found without importing libraries that only a single source needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import iosig.warehouse.sources
from iosig.warehouse.sources import protocol
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Reading, get_source, recognize
from iosig.warehouse.store.landing import land
from iosig.warehouse.store.store import Store

HEAVY = "sqlalchemy h5py darshan msgpack pandas scipy"


def test_every_module_with_a_source_is_found() -> None:
    folder = Path(protocol.__file__).parent
    declaring = [path for path in folder.rglob("*.py") if "\nSOURCE = " in path.read_text()]
    assert len({source.name for source in protocol.list_sources()}) == len(declaring)


#: an invented format of polls: a file in any package of sources is sufficient
_NEW = """
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from iosig.warehouse.sources.polls import polls
from iosig.warehouse.sources.protocol import Batch, Head, Reading, Source


def pieces(path: Path, reading: Reading):
    rows = pl.read_csv(path, skip_rows=1, has_header=False, separator=" ", new_columns=list(polls.REQUIRED))
    lined = rows.with_row_index("line", offset=2).with_columns(raw=pl.lit(""))
    yield polls.read_rows(lined, reading)


def read(path: Path, reading: Reading) -> Iterator[Batch]:
    return polls.fill_intervals(lambda: pieces(path, reading))


SOURCE = Source("made-up", "Polls after a line.", "polls", lambda head: head.start.startswith(b"MADE UP"), read)
"""


def test_adding_a_format_takes_a_single_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "made_up"
    room.mkdir()
    (room / "__init__.py").touch()
    (room / "format.py").write_text(_NEW)
    monkeypatch.setattr(iosig.warehouse.sources, "__path__", [*iosig.warehouse.sources.__path__, str(tmp_path)])
    path = tmp_path / "polls"
    path.write_text("MADE UP\n1500000000 a 1 2\n1500000002 a 3 4\n1500000002 a no 4\n")
    protocol.list_sources.cache_clear()
    try:
        assert recognize(read_head(path)) is get_source("made-up")
        landed = land(Store(tmp_path / "warehouse"), path, lambda _: Reading()).landing
    finally:
        protocol.list_sources.cache_clear()
    assert (landed.format, landed.row_count(), landed.refused_count) == ("made-up", 2, 1)


def test_listing_sources_imports_no_heavy_libraries() -> None:
    probe = f"print(*(set({HEAVY!r}.split()) & sys.modules.keys()))"
    code = f"import sys, iosig.warehouse.sources.protocol as s; s.list_sources(); {probe}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
