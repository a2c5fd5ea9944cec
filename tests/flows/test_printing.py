"""How results look to people."""

from __future__ import annotations

import pytest

from flows.command.printing import bytes_text, show


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_536_000, "1.54 MB"), (2.2e12, "2.2 TB")],
)
def test_bytes_are_written_as_people_write_them(value: float | None, text: str) -> None:
    assert bytes_text(value) == text


def test_cells_say_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    show("Cells", ("a", "b", "c", "d", "e"), [(True, None, 12345, 0.123456, "[bold]x")])
    out = capsys.readouterr().out
    assert out.splitlines()[-2].split() == ["true", "-", "12,345", "0.1235", "[bold]x"]
