"""Keep read positions of inputs that grow: a database, a server, or a command that is queried repeatedly.

A position is written before the rows, together with the id of their landing, and takes effect once that landing exists.
So rows that did not land because of a crash are read again, and none are skipped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.landing import LandingResult
from iosig.warehouse.store.manifests import make_landing_id
from iosig.warehouse.store.pseudonyms import Names
from iosig.warehouse.store.state import put_state
from iosig.warehouse.store.store import Store, document


@dataclass(frozen=True, slots=True)
class Position:
    """Read position of an input: the input's unique name and a cursor, which is None at the start."""

    store: Store
    name: str
    cursor: Any
    #: id of the last landing, if it exists
    landing_id: str | None

    @property
    def _place(self) -> str:
        return f"positions/{hashlib.sha256(self.name.encode()).hexdigest()[:16]}.json"

    def last(self) -> LandingResult | None:
        """Return the last landing of the input, marked as landed before; None if there was none."""
        before = landing.find(self.store, self.landing_id) if self.landing_id else None
        return LandingResult(before, is_new=False) if before else None

    def move(self, cursor: Any) -> None:
        """Advance the cursor past data that need not land."""
        put_state(self.store, self._place, {"cursor": cursor, "next": None, "landing_id": self.landing_id})

    def land(
        self,
        source_file: str,
        format_name: str,
        batches: Sequence[Batch],
        cursor: Any,
        names: Names | None,
        time_zone: str | None = None,
    ) -> LandingResult:
        """Land rows up to a cursor, from which the next call continues.

        A landing is identified by its input, its cursors and its rows, because a server may return more when it is
        queried again. time_zone: zone in which local times of the rows were read.
        """
        rows = [hashlib.sha256(batch.rows.hash_rows().to_numpy().tobytes()).hexdigest() for batch in batches]
        content = json.dumps([self.name, self.cursor, cursor, rows]).encode()
        landing_id = make_landing_id(hashlib.sha256(content).hexdigest())
        put_state(self.store, self._place, {"cursor": self.cursor, "next": cursor, "landing_id": landing_id})
        return landing.land_batches(
            self.store, source_file, format_name, batches, content=content, names=names, time_zone=time_zone
        )


def position(store: Store, name: str) -> Position:
    """Return the read position of an input, up to its last existing landing."""
    result = Position(store, name, None, None)
    content: dict[str, Any] | None = document(store, result._place)
    if content is None:
        return result
    has_landed = bool(
        content["next"] is not None and content["landing_id"] and landing.find(store, content["landing_id"])
    )
    return Position(store, name, content["next"] if has_landed else content["cursor"], content["landing_id"])
