"""Files for readers that must seek: a compressed input is decompressed beside, for as long as it is read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.errors import InputRefused
from warehouse.sources.files.opening import DAMAGE, compression, open_bytes


@contextmanager
def plain_file(path: Path) -> Iterator[Path]:
    """Give the path itself, or that of a decompressed copy that vanishes at the end; refuse a damaged one."""
    if compression(path) is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="iosig-") as folder:
        copy = Path(folder) / "input"
        try:
            with open_bytes(path) as packed, copy.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
        except DAMAGE as error:
            raise InputRefused(f"The file is damaged: {error}.", "Fetch or compress it anew.") from error
        yield copy
