"""Run the refresh loop of `iosig status --watch`, on a screen or as JSON."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from iosig.warehouse.errors import IosigError

if TYPE_CHECKING:
    from rich.console import Console

    from iosig.answers.moment.query import Moment
    from iosig.warehouse.interrupts import Stop

#: interval at which a waiting screen checks for a stop [s]
#: default width of output that is not a terminal
_POLL_INTERVAL_S, _DEFAULT_WIDTH = 0.2, 80
_LEAVING = ("q", "Q", "\x04")

Look = Callable[[datetime], "Moment"]
Wait = Callable[[float], bool]


def now() -> datetime:
    """Return the current UTC time."""
    return datetime.now(UTC)


def watch_as_json(look: Look, tell: Callable[[Moment], None], wait: Wait, every_s: float) -> None:
    """Report the live view at a fixed interval, until `wait` signals the end."""
    while True:
        tell(look(now()))
        if wait(every_s):
            return


def watch_on_screen(
    look: Look, console: Console, wait: Wait, every_s: float, clock: Callable[[], datetime] = now
) -> None:
    """Refresh the screen at a fixed interval until `wait` signals the end.

    If a refresh fails, its error is shown above the last successful screen.
    """
    from rich.live import Live

    from iosig.cli.live_screen import Screen

    with Live("Looking ...", console=console, screen=True, refresh_per_second=1) as live:
        moment = look(clock())
        live.update(Screen(moment, clock), refresh=True)
        while not wait(every_s):
            try:
                moment, fault = look(clock()), None
            except IosigError as error:
                fault = str(error)
            live.update(Screen(moment, clock, fault), refresh=True)


def show_once(look: Look, console: Console, clock: Callable[[], datetime] = now) -> None:
    """Print the current screen once, without refreshing."""
    from iosig.cli.live_screen import Screen

    with console.capture() as printed:
        console.print(Screen(look(clock()), clock))
    # tables are padded with spaces
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def create_console(width: int | None, *, is_plain: bool) -> Console:
    """Return the console to draw on; is_plain: without colors or other terminal control codes."""
    from rich.console import Console

    if is_plain:
        return Console(file=sys.stdout, width=width or _DEFAULT_WIDTH, color_system=None, force_terminal=False)
    return Console(file=sys.stdout)


def is_plain() -> bool:
    """Return whether the output is not a terminal, or a terminal without control codes."""
    return not sys.stdout.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown")


@contextmanager
def waiting(stop: Stop) -> Iterator[Wait]:
    """Yield a wait function that returns True once `stop` is set or the user pressed `q` on a terminal."""
    with _keys() as pressed:

        def wait(seconds: float) -> bool:
            ends_s = time.monotonic() + seconds
            while not stop.is_set() and (left_s := ends_s - time.monotonic()) > 0:
                if pressed(min(_POLL_INTERVAL_S, left_s)) in _LEAVING:
                    return True
            return stop.is_set()

        yield wait


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits for a key press up to a timeout, and returns the key or an empty string."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():

        def slept(seconds: float) -> str:
            time.sleep(seconds)
            return ""

        yield slept
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield lambda seconds: os.read(terminal, 1).decode(errors="replace") if _is_ready(terminal, seconds) else ""
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _is_ready(terminal: int, seconds: float) -> bool:
    return bool(select.select([terminal], [], [], seconds)[0])
