"""What Great Expectations would make again for each metric of a suite, made once: most of what a small table takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def made_once(execution_engine: Any) -> Iterator[None]:
    """Have the configuration of each expectation, and the rows of each condition, be made once in this block.

    A rule with a condition has some four metrics, and each filters the rows anew; each look at an expectation makes
    its configuration anew, some sixty times. All metrics without a condition share one frame, so none changes it.

    execution_engine: of pandas, with one frame as long as the block lasts.
    """
    from great_expectations.expectations import expectation as known

    every: Any = known.Expectation
    make = getattr(every, "configuration", None)
    select = getattr(execution_engine, "_apply_row_condition_filter", None)
    if not isinstance(make, property) or make.fget is None or select is None:
        # a version to come makes them otherwise: that takes longer, and says the same
        yield
        return
    told = make.fget
    # what is known by its place in memory is held, so that nothing else gets that place
    configurations: dict[int, tuple[Any, Any]] = {}
    rows: dict[tuple[int, str], tuple[Any, Any]] = {}

    def configuration(expectation: Any) -> Any:
        if id(expectation) not in configurations:
            configurations[id(expectation)] = expectation, told(expectation)
        return configurations[id(expectation)][1]

    def selected(data: Any, row_condition: Any, domain_kwargs: Any) -> Any:
        key = id(data), f"{row_condition!r} {domain_kwargs.get('condition_parser')}"
        if key not in rows:
            rows[key] = data, select(data, row_condition, domain_kwargs)
        return rows[key][1]

    every.configuration = property(configuration)
    execution_engine._apply_row_condition_filter = selected
    try:
        yield
    finally:
        every.configuration = make
        del execution_engine._apply_row_condition_filter
