"""What a run has to do: the days that new or replaced landings make stale, and no others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.metadata import version

from flows.settings import Settings
from warehouse.contracts import Table
from warehouse.contracts.jobs import JOB_RECORDS
from warehouse.contracts.polls import POLLS
from warehouse.contracts.predictions import PREDICTION_RECORDS
from warehouse.contracts.releases import STALE_DAYS
from warehouse.contracts.series import SERIES
from warehouse.contracts.traces import TRACES
from warehouse.errors import NothingToDo, UsageError
from warehouse.releases import releases
from warehouse.releases.releases import Release
from warehouse.store import landing, models
from warehouse.store.landing import Landing
from warehouse.store.store import Store

#: days of polls, on which runs and series ended, and of predictions
_Stale = tuple[list[date], list[date | None], list[date]]


@dataclass(frozen=True)
class Plan:
    """One run: from which release and landings it starts, and which days it computes anew.

    `poll_days` are days of polls; `job_days` are days on which runs or series ended, None for those without
    an end; `prediction_days` are days on which predictions were made. The same plan, made anew after a crash,
    has the same fingerprint.
    """

    base: Release | None
    landings: tuple[Landing, ...]
    inputs: tuple[str, ...]
    removed_inputs: tuple[str, ...]
    poll_days: tuple[date, ...]
    job_days: tuple[date | None, ...]
    parameters: str
    prediction_days: tuple[date, ...] = ()

    @cached_property
    def days(self) -> tuple[date | None, ...]:
        """Every day that is computed anew, in order, None last."""
        days = {*self.poll_days, *self.job_days, *self.prediction_days}
        return (*sorted(day for day in days if day is not None), *([None] if None in days else []))

    @property
    def judged_days(self) -> tuple[date | None, ...]:
        """The days whose classes and periods are made anew: what is of no day holds those of signatures too."""
        return self.job_days if None in self.job_days else (*self.job_days, None)

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hex digits that tell this plan from every other."""
        content = [
            self.base.release_id if self.base else None,
            self.inputs,
            self.removed_inputs,
            [day and day.isoformat() for day in (*self.poll_days, *self.job_days)],
            [day.isoformat() for day in self.prediction_days],
            self.parameters,
            code_version(),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]

    @property
    def release_id(self) -> str:
        """The release that the plan makes: its last day and its fingerprint."""
        dated = [day for day in self.days if day]
        return f"{dated[-1].isoformat() if dated else 'undated'}-{self.fingerprint[:8]}"


def code_version() -> str:
    """Return the version of iosig that runs."""
    return version("iosig")


def make_plan(store: Store, settings: Settings, since: date | None = None, until: date | None = None) -> Plan:
    """Find what is stale since the current release, or take all days of a range.

    Raises NothingToDo if nothing is, UsageError if nothing was ever landed.
    """
    ledger = landing.ledger(store)
    if not ledger:
        raise UsageError(f"Nothing is landed in {store.root} yet. Start with `iosig land PATH…`.")
    base = releases.current(store)
    parameters = settings.parameters()
    known = releases.landings_in(store, base)
    is_whole = base is None or base.parameters != parameters or since is not None or until is not None
    in_force = {landed.landing_id for landed in ledger}
    fresh = [landed for landed in ledger if landed.landing_id not in known]
    gone = list(landing.found(store, sorted(known - in_force)).values())
    touched = list(ledger) if is_whole else [*fresh, *gone]
    if not touched:
        raise NothingToDo(f"Nothing new since release {base.release_id if base else ''}.")
    everything = [*ledger, *gone]
    poll_days, job_days, prediction_days = _stale(store, settings, everything, touched)
    if since or until:
        # What concerns days outside of the range stays new for the next run.
        fresh, gone = (
            [lot for lot in lots if _is_within(_stale(store, settings, everything, [lot]), since, until)]
            for lots in (fresh, gone)
        )
    return Plan(
        base=base,
        landings=tuple(ledger),
        inputs=tuple(landed.landing_id for landed in fresh),
        removed_inputs=tuple(landed.landing_id for landed in gone),
        poll_days=tuple(day for day in poll_days if _within(day, since, until)),
        job_days=tuple(day for day in job_days if _within(day, since, until)),
        parameters=parameters,
        prediction_days=tuple(day for day in prediction_days if _within(day, since, until)),
    )


def _within(day: date | None, since: date | None, until: date | None) -> bool:
    return day is None or ((since is None or day >= since) and (until is None or day <= until))


def _is_within(stale: _Stale, since: date | None, until: date | None) -> bool:
    return all(_within(day, since, until) for days in stale for day in days)


def _stale(store: Store, settings: Settings, landings: list[Landing], touched: list[Landing]) -> _Stale:
    """Return the days that the touched landings concern: of polls, on which runs and series ended, of predictions."""
    poll_days = _days_of(POLLS, touched)
    with models.engine(store.builds / "spill", settings.engine.memory_limit) as connection:
        for table in (JOB_RECORDS, SERIES, TRACES):
            parts = [(lot, part) for lot in landings for part in lot.parts]
            models.expose_parts(store, connection, table, parts)
        parameters = {
            "landings": [lot.landing_id for lot in touched],
            "poll_days": poll_days,
            "clock_tolerance_s": settings.traces.clock_tolerance_s,
            "longest_interval_s": max((part.longest_interval_s for lot in touched for part in lot.parts), default=0.0),
        }
        stale = models.select(connection, STALE_DAYS, parameters)["ended_on"]
    job_days = [*stale.drop_nulls().sort(), *([None] if stale.null_count() else [])]
    return poll_days, job_days, _prediction_days(landings, touched)


def _days_of(table: Table, landings: Iterable[Landing]) -> list[date]:
    """Return the days of a table's parts."""
    parts = (part for landed in landings for part in landed.parts)
    return sorted({date.fromisoformat(part.day) for part in parts if part.day and part.table == table.name})


def _prediction_days(landings: list[Landing], touched: list[Landing]) -> list[date]:
    """Return the days of predictions that are new; all of them where records were landed anew.

    Then another day's record of the same evaluation may have become the first one that was landed.
    """
    table = PREDICTION_RECORDS
    is_anew = any(lot.generation and _days_of(table, [lot]) for lot in touched)
    return _days_of(table, landings if is_anew else touched)
