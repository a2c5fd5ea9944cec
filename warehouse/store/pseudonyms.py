"""Replace names of users, jobs and files in landed rows by pseudonyms, if a site requires it.

A pseudonym is a keyed hash (HMAC-SHA256) of the name. The same name always has the same pseudonym, so joins by name
still work. Without the key, no pseudonyms can be computed, not even to test known names.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from iosig.warehouse.errors import UsageError
from iosig.warehouse.sources.jobs import host_lists, wait_reasons
from iosig.warehouse.store.state import put_state
from iosig.warehouse.store.store import Store, document

if TYPE_CHECKING:
    import polars as pl

    from iosig.warehouse.contracts import Table
    from iosig.warehouse.contracts.types import Hiding

#: file that marks a warehouse as pseudonymized, and detects a key other than the first one
MARK = "privacy.json"
#: minimum key length [B]; a shorter key could be found by brute force
MIN_KEY_BYTES = 32
#: characters of a pseudonym: 80 bits make collisions between a site's names negligible
_LENGTH = 16
#: words in job ids, next to numbers, that identify no user
_STEPS = frozenset({"batch", "extern", "interactive"})
_PARTS_OF_IDS = re.compile(r"[^\s._\[\]+/]+")
_WORD = re.compile(r"[^\s\"'`,;:()\[\]{}=<>]+")
_QUOTED_OR_WORD = re.compile(rf"`[^`]*`|'[^']*'|\"[^\"]*\"|{_WORD.pattern}")
_STORAGE_TARGET = re.compile(r"([\w.]+-)?(OST|MDT)[0-9a-fA-F]{1,8}(_UUID)?")
_ROOMS = ("warehouse/sources", "transforms/extrapolation")


class Rules(Protocol):
    """Site rules that select the meaningful parts of job names and comments, and the mount points of file systems."""

    @property
    def application_pattern(self) -> str:
        """Regular expression with the application in a job name as its first group."""

    @property
    def filesystem_pattern(self) -> str:
        """Regular expression with the file system in a job comment as its first group."""

    @property
    def mounts(self) -> frozenset[str]:
        """Mount points that the settings name."""


@dataclass(frozen=True)
class Names:
    """Replaces names by keyed pseudonyms; the key is never displayed."""

    rules: Rules
    _key: bytes

    def __repr__(self) -> str:
        """Omit the secret key from the printed form."""
        return "Names(…)"

    def name(self, clear: str) -> str:
        """Return the pseudonym of a name; an empty string stays empty."""
        if not clear:
            return clear
        digest = hmac.digest(self._key, clear.encode("utf-8", "surrogatepass"), "sha256")
        return base64.b32encode(digest).decode().lower()[:_LENGTH]

    def job_id(self, clear: str) -> str:
        """Pseudonymize a job id, except for its numbers."""
        return _PARTS_OF_IDS.sub(
            lambda part: part[0] if part[0] in _STEPS or not _has_letters(part[0]) else self.name(part[0]), clear
        )

    def path(self, clear: str) -> str:
        """Pseudonymize each component of a path, which keeps the folder structure."""
        return "/".join(map(self.name, clear.split("/")))

    def mount(self, clear: str) -> str:
        """Pseudonymize a mount point, unless the settings list it or it has a single component, which names no user."""
        return clear if clear in self.rules.mounts or clear.strip("/").count("/") == 0 else self.path(clear)

    def words(self, clear: str) -> str:
        """Pseudonymize all words that contain letters."""
        return " ".join(self.path(word) if _has_letters(word) else word for word in clear.split(" "))

    def said(self, clear: str) -> str:
        """Pseudonymize the quoted parts of a message, and words that occur in no message of iosig."""
        return _QUOTED_OR_WORD.sub(lambda match: self._part(match[0]), clear)

    def _part(self, part: str) -> str:
        if part[0] in "`'\"":
            return part if part in _vocabulary() else f"{part[0]}{self.name(part[1:-1])}{part[-1]}"
        return part if not _has_letters(part) or _plain(part) in _vocabulary() else self.path(part)

    def node(self, clear: str) -> str:
        """Pseudonymize a host name and keep its port; a rank, which is a number, stays."""
        host, colon, port = clear.rpartition(":")
        if colon and port.isdecimal() and ":" not in host:
            return f"{self.node(host)}:{port}"
        return clear if clear.isdecimal() else self.name(clear)

    def nodes(self, clear: str) -> str | None:
        """Pseudonymize a scheduler's host list, in the form used by traces; None if the list is too long."""
        hosts = host_lists.expand(clear)
        return None if hosts is None else ",".join(map(self.node, hosts))

    def target(self, clear: str) -> str:
        """Return a storage target's name unchanged (`lake-OST0001`), or the pseudonym of a host."""
        return clear if _STORAGE_TARGET.fullmatch(clear) else self.node(clear)

    def reason(self, clear: str) -> str | None:
        """Return the scheduler's own code from a wait reason, without the names that follow it; None for other text."""
        return wait_reasons.extract_code(clear)

    def listed(self, clear: str) -> str:
        """Pseudonymize each name in a JSON list."""
        return json.dumps([self.path(str(name)) for name in json.loads(clear)])

    def hide(self, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace names by pseudonyms in rows that are about to land."""
        hidden = {column.name: column.hides for column in table.columns if column.hides and column.name in rows.columns}
        if "uid" in hidden.values():
            rows = _with_numbers_as_users(rows)
        return rows.with_columns(self._pseudonymize(rows[name], how) for name, how in hidden.items() if how != "uid")

    def _pseudonymize(self, values: pl.Series, how: Hiding) -> pl.Series:
        import polars as pl

        if how == "raw":
            return pl.Series(values.name, [None], pl.String).new_from_index(0, len(values))
        if how == "comment":
            return _extract_group(values, self.rules.filesystem_pattern)
        if how == "job_name":
            groups = _extract_group(values, self.rules.application_pattern)
            values = groups.zip_with(groups.is_not_null(), values)
        hiding: dict[str, Callable[[str], str | None]] = {"id": self.job_id, "job_name": self.name}
        hide = hiding.get(how) or getattr(self, how)
        clear = values.drop_nulls().unique()
        return values.replace_strict(clear, pl.Series([*map(hide, clear)], dtype=pl.String), default=None)


def _extract_group(values: pl.Series, pattern: str) -> pl.Series:
    """Return a pattern's first group in each value; NULL if the pattern does not match or the group is empty."""
    import polars as pl

    groups = values.str.extract(pattern, 1)
    return pl.select(pl.when(groups != "").then(groups).alias(values.name)).to_series()


def _with_numbers_as_users(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace uids with user names; if a name is unknown, the uid itself becomes the name, so that joins still work."""
    import polars as pl

    return rows.with_columns(
        user=pl.coalesce("user", pl.col("uid").cast(pl.String)), uid=pl.lit(None, rows.schema["uid"])
    )


def _has_letters(text: str) -> bool:
    return any(letter.isalpha() for letter in text)


def _plain(word: str) -> str:
    return word.strip(".!?*").lower()


@cache
def _vocabulary() -> frozenset[str]:
    """Collect the words and quoted strings of all string constants in the modules that report faults of inputs."""
    root = Path(__file__).resolve().parents[2]
    words: set[str] = set()
    for path in (path for room in _ROOMS for path in (root / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words |= {*map(_plain, _WORD.findall(node.value)), *_QUOTED_OR_WORD.findall(node.value)}
    return frozenset(words)


# ---- which warehouses hold pseudonyms


def is_private(store: Store) -> bool:
    """Return whether a warehouse contains pseudonyms instead of names."""
    return store.files.content(MARK) is not None


def open_names(store: Store, rules: Rules, key: bytes | None) -> Names | None:
    """Return the pseudonyms of a warehouse, and mark it as private; None for a warehouse with clear names.

    key: None if the settings disable pseudonyms. Raises UsageError if a warehouse would mix names and pseudonyms, or
    pseudonyms from two keys.
    """
    mark: dict[str, Any] | None = document(store, MARK)
    if key is None:
        if mark is not None:
            raise UsageError(
                f"Names in {store.name} are pseudonyms, but the settings do not: set privacy.is_pseudonymized."
            )
        return None
    if len(key) < MIN_KEY_BYTES:
        raise UsageError(f"The key of pseudonyms is shorter than {MIN_KEY_BYTES} bytes, the minimum.")
    names = Names(rules, key)
    check = hashlib.sha256(names.name(MARK).encode()).hexdigest()
    if mark is None:
        if store.exists or store.journal.is_file():
            raise UsageError(f"{store.name} stores names in clear text: use another warehouse for pseudonyms.")
        put_state(store, MARK, {"check": check})
    elif mark.get("check") != check:
        raise UsageError(f"The pseudonyms in {store.name} were made with another key: set the original key.")
    return names
