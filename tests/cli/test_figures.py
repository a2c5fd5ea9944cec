"""The page of pictures: its commands are the command's, its pictures are there, and none is made by nobody."""

from __future__ import annotations

import shlex

import click
import pytest

from iosig.cli import figures
from iosig.cli.main import iosig

PAGE = figures.PAGE.read_text(encoding="utf-8")
LINES = [line for block in figures.commands(PAGE) for line in block.splitlines() if line.startswith("iosig ")]
#: of a log that is too large to be with the project
_OTHERS = {"network-jeanbez.png"}


def test_every_picture_is_made_by_a_command_of_the_page() -> None:
    made = {word for line in LINES for word in shlex.split(line, comments=True) if word.endswith(".png")}
    assert set(figures.pictures(PAGE)) == made | _OTHERS


@pytest.mark.parametrize("name", figures.pictures(PAGE))
def test_pictures_are_there_and_light_to_load(name: str) -> None:
    content = (figures.DOCS / "figures" / name).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 500_000


@pytest.mark.parametrize("line", LINES)
def test_commands_of_the_page_are_those_that_there_are(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(iosig)
    command: click.Command | None = iosig
    while isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0))
    assert command is not None
    known = {name for param in command.params for name in param.opts}
    assert [word for word in words if word.startswith("--") and word not in known] == []
