"""Results are formatted for people."""

from __future__ import annotations

import subprocess
import sys

import pytest

from iosig.cli.printing import bytes_text, show


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_536_000, "1.54 MB"), (2.2e12, "2.2 TB")],
)
def test_bytes_are_printed_with_si_units(value: float | None, text: str) -> None:
    assert bytes_text(value) == text


def test_cells_are_formatted_by_type(capsys: pytest.CaptureFixture[str]) -> None:
    show("Cells", ("a", "b", "c", "d", "e"), [(True, None, 12345, 0.123456, "[bold]x")])
    out = capsys.readouterr().out
    assert out.splitlines()[-2].split() == ["true", "-", "12,345", "0.1235", "[bold]x"]


def test_control_characters_in_names_are_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    show("a\x1b[2Jb", ("name",), [("x\x1b]0;evil\x07y",), ("two\nlines",)])
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "x\N{REPLACEMENT CHARACTER}]0;evil\N{REPLACEMENT CHARACTER}y" in told
    assert "lines" in told


def test_closed_pipe_is_not_an_error() -> None:
    """The table is larger than the pipe's buffer, and the reader has closed it."""
    script = (
        "import sys\nfrom iosig.cli import main\nfrom iosig.cli.printing import show\n"
        "iosig = sys.modules['iosig.cli.main'].iosig\n"
        "iosig.main = lambda standalone_mode: show('t', ('n',), [('x' * 99,)] * 5000)\nmain()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate()
    assert (process.returncode, said) == (0, b"")
