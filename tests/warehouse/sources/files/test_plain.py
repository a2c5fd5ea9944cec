from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from warehouse.errors import InputRefused
from warehouse.sources.files.plain import plain_file


def test_a_plain_file_is_given_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    with plain_file(path) as plain:
        assert plain == path


def test_a_compressed_file_is_given_decompressed_and_the_copy_vanishes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"content"))
    with plain_file(path) as plain:
        assert plain.read_bytes() == b"content"
    assert not plain.exists()


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"content" * 1000)[:-4])
    with pytest.raises(InputRefused, match="damaged"), plain_file(path):
        pass
