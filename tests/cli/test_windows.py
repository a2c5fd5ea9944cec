"""Time windows and instants are parsed from the command line."""

from __future__ import annotations

import math

import click
import pytest

from iosig.cli.windows import WindowText, read_window

_CONTEXT, _PARAMETER = click.Context(click.Command("period")), click.Option(["--window"])


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("1:5.5", WindowText(1, 5.5, False)),
        ("3.3:", WindowText(3.3, math.inf, False)),
        (":", WindowText(-math.inf, math.inf, False)),
        ("1970-01-01T00:01Z/", WindowText(60, math.inf, True)),
        ("1970-01-01T01:00+01:00/1970-01-01T00:00:30", WindowText(0, 30, True)),
    ],
)
def test_window_may_be_open_at_either_end(text: str, window: WindowText) -> None:
    assert read_window(_CONTEXT, _PARAMETER, text) == window


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("5", "give two numbers"),
        ("1:2:3", "give two numbers"),
        ("a:b", "is not a number of seconds"),
        ("nan:3", "is not a number of seconds"),
        ("x/y", "is not an instant"),
        ("9:3", "ends before it begins"),
        ("1:1", "ends before it begins"),
    ],
)
def test_invalid_window_is_refused(text: str, told: str) -> None:
    with pytest.raises(click.BadParameter, match=told):
        read_window(_CONTEXT, _PARAMETER, text)
