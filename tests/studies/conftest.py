"""Pages are tested without their figures."""

import pytest

from iosig.studies import pages


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have empty files for figures: to lay out and to encode takes longest, and is tested where it belongs."""
    draw_beside = pages.draw_beside
    monkeypatch.setattr(
        pages, "draw_beside", lambda page, name, _: draw_beside(page, name, lambda path: path.write_bytes(b""))
    )
