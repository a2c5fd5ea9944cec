"""Convert suggested commands to the form in which the user can type them in this shell.

Messages of all packages name commands as `iosig run`. When a message is printed, the command that starts this program
replaces `iosig` (`uv run iosig` in a checkout). The given warehouse and settings options follow.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource

_COMMAND = re.compile(r"`iosig(?= [a-z])")
#: global options of this invocation, which suggested commands need too
_options: list[str] = []


def keep_options(context: click.Context, warehouse: str) -> None:
    """Remember the global options that every suggested command needs; warehouse: as given on the command line."""
    global_options = {
        "warehouse": ("--warehouse", warehouse),
        "settings_path": ("--settings", context.params["settings_path"]),
    }
    _options[:] = [
        f" {flag} {shlex.quote(str(value))}"
        for name, (flag, value) in global_options.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]


@contextmanager
def for_warehouse(name: str | None) -> Iterator[None]:
    """Suggest commands for a warehouse other than that of the command line; None: the one in IOSIG_WAREHOUSE."""
    before = _options[:]
    _options[:] = [] if name is None else [f" --warehouse {shlex.quote(name)}"]
    yield
    _options[:] = before


def runnable(text: str) -> str:
    """Replace the suggested commands in text with commands that work as printed."""
    if "`iosig " not in text:
        return text
    call = "".join([f"`{program(Path(sys.argv[0]), os.environ, Path.cwd())}", *_options])
    return _COMMAND.sub(lambda _: call, text)


def command(arguments: str) -> str:
    """Return a command line with these arguments that works in this shell."""
    return runnable(f"`iosig {arguments}`").strip("`")


def program(started: Path, environment: Mapping[str, str], folder: Path) -> str:
    """Return the command that starts this program from a folder.

    started: how this process was started. `uv run` puts the checkout's scripts on the PATH of its own processes only.
    """
    if started.name != "iosig" or started == Path("iosig"):
        return "iosig"
    scripts = Path(sys.prefix) / "bin"
    places = environment.get("PATH", "").split(os.pathsep)
    is_by_uv = "UV_RUN_RECURSION_DEPTH" in environment
    if is_by_uv and str(scripts) in places:
        places.remove(str(scripts))
    executable = shutil.which("iosig", path=os.pathsep.join(places))
    if executable and Path(executable).resolve() == (scripts / "iosig").resolve():
        return "iosig"
    checkout = Path(sys.prefix).parent
    if not is_by_uv or not (checkout / "pyproject.toml").is_file():
        return shlex.quote(str(started))
    if folder.is_relative_to(checkout):
        return "uv run iosig"
    return f"uv run --project {shlex.quote(str(checkout))} iosig"
