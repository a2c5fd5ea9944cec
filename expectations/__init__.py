"""IS IT GOOD: the suites of every published table, and the gate that decides on a release.

- `custom`: Custom expectations: rules of the suites with arithmetic, or across columns or rows.
- `docs` (`of_release`, `of_refusal`, `build`): The local Data Docs: what the checks say of a release, as pages.
- `gate` (`check`, `decide`, `preload`): The gate: holds a table to its suite, and decides on the release.
- `sentences` (`describe_failure`, `what_to_do`): Sentences: what happened where an expectation does not hold.
- `suites` (`rules`, `rule`, `parameters`): Suites: what a table is expected to be, and how each rule is judged.
- `summing` (`aggregate_days`): Summing up: what the checks of days say of a release as a whole.

After `import iosig.expectations`, Great Expectations knows the custom expectations, so that the suites load in any of
its contexts. Its import takes seconds, and few commands need it: if it is not imported yet, they are registered when
it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_ENGINE = "great_expectations"
_CUSTOM = "iosig.expectations.custom"


class _Registration(MetaPathFinder):
    """Import hook that loads the custom expectations right after Great Expectations."""

    def __init__(self) -> None:
        self._is_searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _ENGINE or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = find_spec(fullname)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                import_module(_CUSTOM)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


if _ENGINE in sys.modules:
    import_module(_CUSTOM)
else:
    sys.meta_path.insert(0, _Registration())
