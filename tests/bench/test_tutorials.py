"""Tutorials run as scripts and in marimo, and their pages show text, code and outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import tutorials

NOTEBOOKS = sorted(tutorials.FOLDER.glob("*.py"))
NOTEBOOK = '''
import marimo

app = marimo.App()


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Title

    Text.
    """)
    return


@app.cell
def _(y):
    frame = pl.DataFrame({"name": ["a|b", None], "bytes": [1234.5, 2.0]})
    frame
    return (frame,)


@app.cell
def _():
    import marimo as mo
    import polars as pl

    y = 1
    return mo, pl, y


@app.cell
def _(mo):
    mo.plain_text("a < b\\n\\n  c")
    return


if __name__ == "__main__":
    app.run()
'''.replace("def _(y)", "def _(pl, y)")


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    path = tmp_path / "small.py"
    path.write_text(NOTEBOOK)
    return path


def test_cells_are_listed_with_their_code(notebook: Path) -> None:
    cells = list(tutorials.list_cells(notebook))
    assert [is_hidden for _, is_hidden in cells] == [True, False, False, False]
    assert cells[1][0].splitlines()[1:] == ["frame"]
    assert cells[2][0] == "import marimo as mo\nimport polars as pl\n\ny = 1"


@pytest.mark.extra
def test_page_has_text_code_and_outputs(notebook: Path) -> None:
    pytest.importorskip("marimo", reason="the dependency group docs is not installed")
    page = tutorials.render_page(notebook)
    assert page.startswith("# Title\n\nText.\n\nThis page is the output of a [notebook](small.py).")
    assert "| name | bytes |\n| --- | --- |\n| a\\|b | 1,234.5 |\n| - | 2 |" in page
    assert "```text\na < b\n\n  c\n```" in page
    assert "mo.md" not in page


@pytest.mark.extra
def test_exception_of_a_cell_is_raised(notebook: Path) -> None:
    pytest.importorskip("marimo", reason="the dependency group docs is not installed")
    notebook.write_text(NOTEBOOK.replace("y = 1", "y = 1 / 0"))
    with pytest.raises(Exception, match="division by zero"):
        tutorials.render_page(notebook)


def run(command: list[str | Path], folder: Path, **variables: str) -> None:
    removed = {name: value for name, value in os.environ.items() if name != "IOSIG_WAREHOUSE"}
    done = subprocess.run(
        command, cwd=folder, env=removed | variables, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_tutorial_runs_as_a_script(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("marimo", reason="the dependency group docs is not installed")
    run([sys.executable, path], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_tutorial_runs_in_marimo_without_real_data(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("marimo", reason="the dependency group docs is not installed")
    program = Path(sys.executable).with_name("marimo")
    output = tmp_path / "page.html"
    run([program, "export", "html", path, "-o", output], tmp_path, IOSIG_TEST_DATA=str(tmp_path / "nowhere"))
    assert output.stat().st_size > 10_000
