"""Select steps of a run by names and graph operators as in dbt: `NAME`, `+NAME`, `NAME+`, `1+NAME+2`.

A name is that of a step or a table. Spaces between selectors form a union, and commas an intersection. Intermediate
tables, which no release keeps, are like dbt's ephemeral models: the steps that compute them are executed, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

from iosig.flows.steps.checks import QUARANTINED
from iosig.flows.steps.order import WORK_STEPS
from iosig.flows.steps.plan import Selection
from iosig.flows.steps.step import Step
from iosig.warehouse.contracts import Table
from iosig.warehouse.errors import UsageError, meant
from iosig.warehouse.releases import releases
from iosig.warehouse.store.store import Store

_SELECTOR = re.compile(
    r"(?:(?P<before>[0-9]*)(?P<is_upstream>\+))?(?P<name>[^+]+)(?:(?P<is_downstream>\+)(?P<after>[0-9]*))?"
)
_STEPS = {step.name: step for step in WORK_STEPS}


def select_steps(store: Store, select: Sequence[str], exclude: Sequence[str] = ()) -> Selection:
    """Return the steps that selectors name, and those that compute intermediate tables for them.

    Raises UsageError for an unknown name, for no steps at all, and for tables that the current release does not have.
    """
    excluded = _union(exclude)
    chosen = (_union(select) if select else set(_STEPS)) - excluded
    if not chosen:
        raise UsageError("The selection has no steps: --select is empty, or --exclude excludes all of it.")
    chosen = _with_intermediates(chosen, excluded)
    if chosen & _intermediates(QUARANTINED).keys() and QUARANTINED.name not in excluded:
        chosen.add(QUARANTINED.name)
    steps = [step for step in WORK_STEPS if step.name in chosen]
    tables = frozenset(table.name for step in steps for table in step.writes)
    _require_tables(store, steps, tables)
    return Selection(tuple(step.name for step in steps), tables)


def _require_tables(store: Store, steps: Iterable[Step], tables: Collection[str]) -> None:
    """Raise UsageError if a step reads a table that neither the run nor the current release has."""
    base = releases.current(store)
    for step in steps if base else ():
        for table, producer in _reads(step):
            if table.is_published and table.name not in tables and base and table.name not in base.snapshots:
                raise UsageError(
                    f"The step {step.name} reads {table.name}, which release {base.release_id} does not have. "
                    f"Select {_word(producer)}, too."
                )


# ---- the graph


def _reads(step: Step) -> list[tuple[Table, str]]:
    """Return the tables that a step reads from other steps, each with its step."""
    step_of_table = _map_tables_to_steps()
    tables = [table for source in step.reads if source.wait != "none" for table in source.tables]
    producers = {
        table: step_of_table[table.name] for table in (*tables, *step.days_after) if table.name in step_of_table
    }
    return [(table, producer) for table, producer in producers.items() if producer != step.name]


@cache
def _map_tables_to_steps() -> dict[str, str]:
    return {table.name: step.name for step in WORK_STEPS for table in step.writes}


def _intermediates(step: Step) -> dict[str, list[str]]:
    """Return the tables that a step reads and no release keeps, by the step that computes them."""
    by_producer: dict[str, list[str]] = defaultdict(list)
    for table, producer in _reads(step):
        if not table.is_published:
            by_producer[producer].append(table.name)
    return by_producer


@cache
def _upstream() -> Mapping[str, Collection[str]]:
    return {step.name: {producer for _, producer in _reads(step)} for step in WORK_STEPS}


@cache
def _downstream() -> Mapping[str, Collection[str]]:
    readers: dict[str, set[str]] = defaultdict(set)
    for name, producers in _upstream().items():
        for producer in producers:
            readers[producer].add(name)
    return readers


def _collect_reachable(names: set[str], edges: Mapping[str, Collection[str]], depth: int | None) -> set[str]:
    """Return the names, and all names that can be reached over at most `depth` edges (None: any number)."""
    reachable, level = set(names), names
    while level and depth != 0:
        level = {neighbor for name in level for neighbor in edges.get(name, ())} - reachable
        reachable |= level
        depth = None if depth is None else depth - 1
    return reachable


def _with_intermediates(chosen: set[str], excluded: set[str]) -> set[str]:
    """Add the steps that compute intermediate tables for the chosen steps.

    The quarantine step needs no such steps: quarantined rows of tables that are not recomputed remain valid.
    """
    steps, level = set(chosen), set(chosen)
    while level:
        readers = {
            producer: (name, tables[0])
            for name in level - {QUARANTINED.name}
            for producer, tables in _intermediates(_STEPS[name]).items()
        }
        for producer in sorted(readers.keys() & excluded):
            reader, table = readers[producer]
            raise UsageError(
                f"The step {reader} reads {table}, which {producer} computes and no release keeps. "
                f"Do not exclude {_word(producer)}, or exclude {_word(reader)}, too."
            )
        level = readers.keys() - steps
        steps |= level
    return steps


# ---- selectors


def _union(selectors: Iterable[str]) -> set[str]:
    """Return the steps that any selector matches; a string may contain several, separated by spaces."""
    steps: set[str] = set()
    for text in selectors:
        words = [text] if _is_name(text.strip().strip("+0123456789")) else text.split()
        steps.update(*(set.intersection(*map(_select_steps, word.split(","))) for word in words))
    return steps


def _is_name(name: str) -> bool:
    return bool(_find_steps(name))


def _find_steps(name: str) -> set[str]:
    """Return the steps that are named `name` or write the table `name`; hyphens may replace spaces."""
    return {step.name for step in WORK_STEPS if name in (step.name, _word(step.name))} | {
        step.name for step in WORK_STEPS if any(table.name == name for table in step.writes)
    }


def _word(name: str) -> str:
    """Replace the spaces of a step's name by hyphens, so that it can be used in a selector."""
    return name.replace(" ", "-")


def _select_steps(selector: str) -> set[str]:
    match = _SELECTOR.fullmatch(selector.strip())
    names = _find_steps(match["name"].strip()) if match else set()
    if match is None or not names:
        available = {_word(name) for name in _STEPS} | _map_tables_to_steps().keys()
        name = match["name"] if match else selector
        raise UsageError(
            f"No step or table is named {name!r}.{meant(name, sorted(available))} `iosig lineage` lists them."
        )
    steps = set(names)
    if match["is_upstream"]:
        steps |= _collect_reachable(names, _upstream(), _depth(match["before"]))
    if match["is_downstream"]:
        steps |= _collect_reachable(names, _downstream(), _depth(match["after"]))
    return steps


def _depth(digits: str) -> int | None:
    return int(digits) if digits else None
