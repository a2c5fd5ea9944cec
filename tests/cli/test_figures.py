"""Every figure of the documentation page exists and is drawn by a valid command of the page."""

from __future__ import annotations

import shlex

import click
import pytest

from iosig.cli import figures
from iosig.cli.main import iosig

PAGE = figures.PAGE.read_text(encoding="utf-8")
LINES = [line for block in figures.commands(PAGE) for line in block.splitlines() if line.startswith("iosig ")]
#: figures of a log that is too large for the repository
_OTHERS = {"network-jeanbez.png"}


def test_every_figure_is_drawn_by_a_command_of_the_page() -> None:
    made = {word for line in LINES for word in shlex.split(line, comments=True) if word.endswith(".png")}
    assert set(figures.pictures(PAGE)) == made | _OTHERS


@pytest.mark.parametrize("name", figures.pictures(PAGE))
def test_figures_exist_and_are_below_500_kb(name: str) -> None:
    content = (figures.DOCS / "figures" / name).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 500_000


@pytest.mark.parametrize("line", LINES)
def test_commands_of_the_page_exist_with_their_options(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(iosig)
    command: click.Command | None = iosig
    while isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0))
    assert command is not None
    known = {name for param in command.params for name in param.opts}
    assert [word for word in words if word.startswith("--") and word not in known] == []
