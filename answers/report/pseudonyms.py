"""Users as pseudonyms: what a report shows to those who may not know who they are.

The pseudonyms are those of `iosig.warehouse.store.pseudonyms`. Their key is the site's, or else one that the warehouse
keeps beside its tables, so they are the same in every report.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import polars as pl

from iosig.settings.model import Settings
from iosig.warehouse.store.pseudonyms import FEWEST_KEY_BYTES, Names, is_private
from iosig.warehouse.store.store import Store

#: the key of pseudonyms in reports, where the site has none of its own
_KEY_FILE = "report.key"
#: sentences that may quote anybody
_APPLICATION_IDS = ("application_id", "top_interferer_application_id", "other_application_id")
_FREE_TEXTS = ("raw", "reason", "command", "row_json")


@dataclass(frozen=True)
class Hider:
    """Puts pseudonyms in the places of users, accounts and what is named after them."""

    names: Names

    @property
    def mark(self) -> str:
        """What differs where pseudonyms do, which says nothing of the key."""
        return self.names.name("iosig")

    def hide(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a frame in which nobody is named."""
        changed = [
            *(self._each(frame[name], self.names.name) for name in ("user", "account") if name in frame.columns),
            *(self._each(frame[name], self.application_id) for name in _APPLICATION_IDS if name in frame.columns),
            *(self._each(frame[name], self.names.path) for name in ("source_file",) if name in frame.columns),
            *(self._each(frame[name], self.names.said) for name in _FREE_TEXTS if name in frame.columns),
        ]
        return frame.with_columns(changed)

    def application_id(self, clear: str) -> str:
        """Return an application's id with a pseudonym for its user, which is what stands before the first slash."""
        user, slash, rest = clear.partition("/")
        return f"{self.names.name(user.replace('%2F', '/'))}{slash}{rest}"

    def _each(self, values: pl.Series, hide: object) -> pl.Series:
        clear = values.drop_nulls().unique()
        hidden = pl.Series([hide(text) for text in clear], dtype=pl.String)  # type: ignore[operator]
        return values.replace_strict(clear, hidden, default=None, return_dtype=pl.String)


def hider_of(store: Store, settings: Settings) -> Hider | None:
    """Return what hides users; None where the warehouse holds pseudonyms already."""
    if is_private(store):
        return None
    return Hider(Names(settings, _key(store, settings)))


def _key(store: Store, settings: Settings) -> bytes:
    known = settings.privacy.model_copy(update={"is_pseudonymized": True}) if settings.privacy.key_file else None
    if known is not None and (key := known.key()):
        return key
    found = store.files.content(_KEY_FILE)
    if found is None or len(found) < FEWEST_KEY_BYTES:
        found = secrets.token_hex(FEWEST_KEY_BYTES).encode()
        store.files.put(_KEY_FILE, found)
    return found
