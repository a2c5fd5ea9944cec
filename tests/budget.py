"""How many examples a property is tried with: few while one waits, all of them in `.ci/run`'s second part."""

from __future__ import annotations

import os

#: of a property's examples, one in so many is tried while one waits
_QUICK_PART = 5
_LEAST = 5


def examples(full_count: int) -> int:
    """Return how many examples to try of a property that deserves so many (`IOSIG_TEST_EXAMPLES=full`: all)."""
    if os.environ.get("IOSIG_TEST_EXAMPLES") == "full":
        return full_count
    return min(full_count, max(full_count // _QUICK_PART, _LEAST))
