"""How long a night has to go: by how long its steps took the last time, a day."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from iosig.warehouse.store.store import Store, cached, put_document

#: told when a step begins: its name, and about how many seconds are left, None where that is not known
Begin = Callable[[str, float | None], None]
#: where the last night's times are kept
_NAME = "pace.json"


class Pace:
    """The times of a night's steps: those of the last one, and those of this one as they pass."""

    def __init__(self, store: Store, step_names: Sequence[str], day_count: int, begin: Begin) -> None:
        """Begin a night of so many days."""
        self._store, self._names, self._begin = store, step_names, begin
        self._day_count = max(1, day_count)
        known = cached(store, _NAME, lambda told: {str(name): float(told["steps"][name]) for name in told["steps"]})
        self._usual_s = {name: self._day_count * seconds for name, seconds in (known or {}).items()}
        self._taken_s: dict[str, float] = {}
        self._last: tuple[str, float] | None = None

    def begin(self, name: str) -> None:
        """Tell that a step begins, and about how long it and those after it will take."""
        self._pass()
        self._last = name, time.perf_counter()
        self._begin(name, self._left_s(name))

    def keep(self) -> None:
        """Keep the times for the next night, which can do without."""
        self._pass()
        steps = {name: seconds / self._day_count for name, seconds in sorted(self._taken_s.items())}
        with suppress(OSError):
            put_document(self._store, _NAME, {"steps": steps})

    def _pass(self) -> None:
        if self._last is not None:
            name, began_at = self._last
            self._taken_s[name] = time.perf_counter() - began_at
        self._last = None

    def _left_s(self, name: str) -> float | None:
        """Return what this step and those after it took the last time; None where nobody knows."""
        left = [*self._names[self._names.index(name) :]] if name in self._names else []
        return sum(self._usual_s.get(one, 0.0) for one in left) if self._usual_s and left else None
