"""Make external text safe to display on terminals, in logs, in notifications and on pages."""

from __future__ import annotations

import json

#: replacement for a character that must not be displayed
MARK = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Replace characters that control a terminal or the direction of text: C0, C1, escapes, bidi overrides.

    Tabs and line feeds stay; `one_line` replaces them, too. Lone surrogates are replaced.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character in "\n\t" else MARK for character in text)


def one_line(text: str) -> str:
    """Replace control characters, including line feeds and tabs, so that the text stays on one line."""
    return "".join(character if character.isprintable() else MARK for character in text)


def escape_controls(document: str) -> str:
    """Escape control characters in a JSON document, without changing its meaning."""
    if document.isprintable():
        return document
    return "".join(
        character if character.isprintable() or character in "\n\t" else json.dumps(character)[1:-1]
        for character in document
    )
