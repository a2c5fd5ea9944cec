"""Test the sanitization of displayed text: no character controls a terminal or the text direction."""

from __future__ import annotations

import json
import pickle

import pytest

from iosig.warehouse.errors import InputRefused, IosigError, MachineFault
from iosig.warehouse.printable import MARK, escape_controls, one_line, printable

#: sequences used in attacks on terminals and readers
HOSTILE = {
    "escape": "\x1b[2J",
    "title": "\x1b]0;title\x07",
    "backspace": "\x08",
    "delete": "\x7f",
    "C1 CSI": "\x9b31m",
    "carriage return": "\r",
    "bidi override": "\u202e",
    "bidi isolate": "\u2066",
    "zero width": "\u200b",
    "line separator": "\u2028",
    "lone surrogate": "\ud800",
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_control_characters_are_replaced_and_text_is_kept(hostile: str) -> None:
    said = printable(f"größe 数 {hostile}end\n\tnext")
    assert said.startswith("größe 数 ")
    assert said.endswith("end\n\tnext")
    assert MARK in said
    assert said.replace("\n", "").replace("\t", "").isprintable()
    assert one_line(f"a\n\t{hostile}").isprintable()


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_message_of_error_is_sanitized_and_its_reason_is_not(hostile: str) -> None:
    for error in (
        IosigError(f"said {hostile}"),
        MachineFault(f"said {hostile}"),
        InputRefused(f"said {hostile}", "Do."),
    ):
        for one in (error, pickle.loads(pickle.dumps(error))):
            assert hostile not in str(one)
            assert MARK in f"{one}"
    # rows keep the original text
    assert InputRefused(f"said {hostile}", "Do.").reason == f"said {hostile}"


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_escaped_json_keeps_its_meaning(hostile: str) -> None:
    document = json.dumps({"name": f"a{hostile}"}, ensure_ascii=False)
    assert escape_controls(document).isprintable()
    assert json.loads(escape_controls(document)) == json.loads(document)
