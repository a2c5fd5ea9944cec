"""What every picture of a study has to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def assert_drawn_alike(draw: Callable[[Path], None], folder: Path) -> None:
    """Draw the same picture twice: a PNG, the same to the byte."""
    first, second = folder / "first.png", folder / "second.png"
    draw(first)
    draw(second)
    assert first.read_bytes().startswith(b"\x89PNG")
    assert first.read_bytes() == second.read_bytes()
