"""Define the expectation suite of every table, and decide whether a release passes.

- `custom`: Custom expectations: rules with arithmetic, or across columns or rows.
- `docs` (`write_release_docs`, `write_refusal_docs`, `build`): Pages with the validation results of a release.
- `gate` (`check`, `decide`, `preload`): Validation of a table against its suite, and the decision on the release.
- `landed` (`check`): Validation of a landed table against its suite, by SQL.
- `sentences` (`describe_failure`, `what_to_do`): Sentences that describe a failed expectation and its remedy.
- `suites` (`rules`, `rule`, `parameters`): The rules of each table, and how each rule is judged for a release.
- `daily_summary` (`aggregate_days`): Aggregation of daily validation results to results of a release.

After `import iosig.expectations`, Great Expectations knows the custom expectations, so that the suites load in any of
its contexts. Its import takes seconds, and few commands need it. The custom expectations are therefore registered as
soon as Great Expectations is imported.
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
