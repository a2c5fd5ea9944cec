"""Replace user names in reports with pseudonyms.

The pseudonyms are those of `iosig.warehouse.store.pseudonyms`, with the site's key or, without one, a key stored in the
warehouse. They are therefore the same in every report.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import polars as pl

from iosig.settings.model import Settings
from iosig.warehouse.contracts.application_ids import get_user, replace_user
from iosig.warehouse.store.pseudonyms import MIN_KEY_BYTES, Names, is_private
from iosig.warehouse.store.store import Store

#: file with the key of pseudonyms in reports, if the site has no key
_KEY_FILE = "report.key"
_APPLICATION_IDS = ("application_id", "top_interferer_application_id", "other_application_id")
#: columns of free text that may contain user names
_FREE_TEXTS = ("raw", "reason", "command", "row_json")


@dataclass(frozen=True)
class Pseudonymizer:
    """Replaces names of users and accounts by pseudonyms, also within ids, paths and free text."""

    names: Names

    @property
    def mark(self) -> str:
        """Identifier that distinguishes the key from others, but does not reveal it."""
        return self.names.name("iosig")

    def hide(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the frame with pseudonyms in all columns that may identify users."""
        changed = [
            *(self._replace(frame[name], self.names.name) for name in ("user", "account") if name in frame.columns),
            *(self._replace(frame[name], self.application_id) for name in _APPLICATION_IDS if name in frame.columns),
            *(self._replace(frame[name], self.names.path) for name in ("source_file",) if name in frame.columns),
            *(self._replace(frame[name], self.names.said) for name in _FREE_TEXTS if name in frame.columns),
        ]
        return frame.with_columns(changed)

    def application_id(self, clear: str) -> str:
        """Replace the user in an application id."""
        return replace_user(clear, self.names.name(get_user(clear)))

    def _replace(self, values: pl.Series, hide: object) -> pl.Series:
        clear = values.drop_nulls().unique()
        hidden = pl.Series([hide(text) for text in clear], dtype=pl.String)  # type: ignore[operator]
        return values.replace_strict(clear, hidden, default=None, return_dtype=pl.String)


def create_pseudonymizer(store: Store, settings: Settings) -> Pseudonymizer | None:
    """Create the pseudonymizer of a site; None if the warehouse already stores pseudonyms."""
    if is_private(store):
        return None
    return Pseudonymizer(Names(settings, _key(store, settings)))


def _key(store: Store, settings: Settings) -> bytes:
    privacy = settings.privacy.model_copy(update={"is_pseudonymized": True}) if settings.privacy.key_file else None
    if privacy is not None and (key := privacy.key()):
        return key
    stored = store.files.content(_KEY_FILE)
    if stored is None or len(stored) < MIN_KEY_BYTES:
        stored = secrets.token_hex(MIN_KEY_BYTES).encode()
        store.files.put(_KEY_FILE, stored)
    return stored
