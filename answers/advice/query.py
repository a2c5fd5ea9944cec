"""`iosig advise`: on which file system an application should run, and how long it should wait (IOSI, section 6.4).

The page docs/advice.md is the promise to readers of the JSON document, and names its fields.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from iosig.answers.advice.inputs import (
    FilesystemState,
    KnownSignature,
    LeftOut,
    Rates,
    SignatureSource,
    SiteState,
    most_told,
)
from iosig.answers.documents import Document, Instant, Part, instant_text
from iosig.answers.signatures.view import choose_application, near_applications
from iosig.reports.texts import printable
from iosig.settings.model import AdviceSettings
from iosig.transforms.advice import Advice, AdviceParams, Choice, Partition, Running, advise
from iosig.transforms.demands import Demand
from iosig.warehouse.contracts.application_ids import user_prefix, without_node_count
from iosig.warehouse.errors import NothingToDo, UsageError

DEFAULT_MOST_DELAY_S = 1800.0
#: steps of a demand, and delays that are tried
_MOST_DEMAND_STEPS, _MOST_DELAYS = 100_000, 2000
#: steps of all demands together, and of one at least: what bounds the memory where very many jobs run
_MOST_STEPS_TOGETHER, _LEAST_DEMAND_STEPS = 20_000_000, 1000
_MOST_TOLD = 5

Method = Literal["contention", "correlation"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to know; `application` is its id, or a part of one that user and node count make clear.

    filesystems: those that are asked about, all of them if empty. method: what choices are ranked by.
    """

    application: str
    user: str | None = None
    node_count: int | None = None
    filesystems: tuple[str, ...] = ()
    max_delay_s: float = DEFAULT_MOST_DELAY_S
    method: Method = "contention"


@dataclass(frozen=True)
class Advised:
    """Advice, and all that it rests on; requested_at: the clock's time of the question, which ages are told from."""

    application_id: str
    signature: KnownSignature
    state: SiteState
    advice: Advice
    requested_at: datetime
    max_delay_s: float
    stale_after_s: float

    @cached_property
    def filesystems(self) -> Mapping[str, FilesystemState]:
        """The file systems by their names."""
        return {one.filesystem: one for one in self.state.filesystems}

    @cached_property
    def choices(self) -> tuple[tuple[Choice, Choice], ...]:
        """Each file system, from the best to the worst: to start now, and with its best delay."""
        now = {choice.partition: choice for choice in self.advice.without_delay}
        return tuple((now[best.partition], best) for best in self.advice.with_delay)

    def load_age_s(self, one: FilesystemState) -> float | None:
        """Return how old the load of a file system is; None if it is not known when it was measured."""
        if one.load is None or one.load.measured_until is None:
            return None
        return (self.requested_at - one.load.measured_until).total_seconds()

    def is_stale(self, one: FilesystemState) -> bool:
        """Return whether the load of a file system is too old to be relied upon."""
        age_s = self.load_age_s(one)
        return age_s is not None and age_s > self.stale_after_s


# ---- which application


def choose(signatures: SignatureSource, asked: Asked) -> str:
    """Return the id of the application that is meant, one that has a signature.

    Raises NothingToDo if it has none, saying what there is instead, UsageError if it could be several.
    """
    known = _of_size(_of_user(signatures.application_ids(), asked.user), asked.node_count)
    found = _found(known, asked)
    if found is not None:
        return found
    others = [name for name in _of_user(signatures.others(), asked.user) if _has_size(name, asked.node_count)]
    without = _found(others, asked)
    near = [name for name in signatures.application_ids() if _is_like(name, without, asked)]
    told = f" There are signatures of {_listed(near)}." if near else ""
    if without is None:
        raise NothingToDo(_unknown(signatures, asked) + told)
    raise NothingToDo(f"{printable(without, 120)} has no signature. {signatures.why_none(without)}{told}")


def _of_user(names: Sequence[str], user: str | None) -> list[str]:
    return [name for name in names if user is None or name.startswith(user_prefix(user))]


def _has_size(name: str, node_count: int | None) -> bool:
    return node_count is None or name.rpartition("/")[2] == str(node_count)


def _of_size(names: Sequence[str], node_count: int | None) -> list[str]:
    """Return the names of a node count; of an application that has none of it, that of all node counts."""
    sized = [name for name in names if _has_size(name, node_count)]
    if node_count is None:
        return sized
    have = {without_node_count(name) for name in sized}
    return sized + [name for name in names if name.endswith("/*") and name[:-2] not in have]


def _found(names: Sequence[str], asked: Asked) -> str | None:
    """Return the one of some names that is meant, None if none is; raises UsageError if it could be several."""
    if not any(asked.application.casefold() in name.casefold() for name in names) or not asked.application:
        return None
    try:
        return choose_application(names, asked.application)
    except UsageError as error:
        raise UsageError(f"{error} --user and --nodes tell them apart, too.") from error


def _is_like(name: str, other: str | None, asked: Asked) -> bool:
    """Return whether an application is the other one on other nodes; if there is no other, whether it is so called."""
    if other is not None:
        return without_node_count(name) == without_node_count(other)
    return f"/{asked.application.casefold()}/" in f"/{name.casefold()}/"


def _unknown(signatures: SignatureSource, asked: Asked) -> str:
    whose = "" if asked.user is None else f" of user {asked.user!r}"
    size = "" if asked.node_count is None else f" on {asked.node_count} nodes"
    known = signatures.application_ids()
    near = near_applications(known, asked.application)
    meant = f" Is it {_listed(near)}?" if near else ""
    return (
        f"No application with a signature is called {asked.application!r}{whose}{size}; {len(known):,} others have "
        f"one.{meant} "
        'Signatures come of several runs: land job log and polls, then `iosig run`. `iosig sql "from applications"` '
        "lists what is known."
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_TOLD:,} more" if len(names) > _MOST_TOLD else ""
    return ", ".join(printable(name, 120) for name in names[:_MOST_TOLD]) + more


# ---- the advice


def signature_of(signatures: SignatureSource, application_id: str, at: datetime) -> KnownSignature:
    """Return the signature that advice is about: that of the file system on which the application moves most."""
    found = most_told(signatures.of([application_id])[application_id])
    if not found.holds_at(at):
        raise NothingToDo(
            f"The signature of {printable(application_id, 120)} held until {_instant(found.valid_until)}: its last run "
            "that was seen ended too long ago. Land its later runs, then `iosig run`."
        )
    return found


def advise_on(
    signature: KnownSignature,
    application_id: str,
    state: SiteState,
    asked: Asked,
    settings: AdviceSettings,
    requested_at: datetime,
) -> Advised:
    """Return where and when an application should start; raises NothingToDo if there is no file system to advise."""
    state = _asked_about(state, asked.filesystems)
    if not state.filesystems:
        reasons = "; ".join(f"{printable(one.filesystem, 120)}: {one.reason}" for one in state.excluded[:_MOST_TOLD])
        raise NothingToDo(f"There is no file system to advise{'. ' if reasons else ''}{reasons}.")
    demands = _demands(state)
    partitions = []
    for one in state.filesystems:
        known = [job for job in one.now_running if job.signature is not None]
        running = tuple(Running(job.name, demands[id(job.signature)], job.elapsed_s) for job in known)
        partitions.append(Partition(one.filesystem, one.capacity_bytes_per_s, one.background_bytes_per_s, running))
    params = AdviceParams(method=asked.method, max_delay_s=asked.max_delay_s)
    params = replace(params, delay_step_s=max(params.delay_step_s, asked.max_delay_s / _MOST_DELAYS))
    advice = advise(demand_of(signature.rates), partitions, params)
    return Advised(application_id, signature, state, advice, requested_at, asked.max_delay_s, settings.stale_after_s)


def _demands(state: SiteState) -> dict[int, Demand]:
    """Return the demand of each signature that runs, by the object's id: many jobs of an application share theirs."""
    jobs = [job for one in state.filesystems for job in one.now_running]
    rates = {id(job.signature): job.signature.rates for job in jobs if job.signature is not None}
    most = _MOST_STEPS_TOGETHER // max(len(rates), 1)
    most = min(_MOST_DEMAND_STEPS, max(_LEAST_DEMAND_STEPS, most))
    return {key: demand_of(of, most) for key, of in rates.items()}


def demand_of(rates: Rates, most_steps: int = _MOST_DEMAND_STEPS) -> Demand:
    """Return rates in even steps: of a second, or longer ones where it lasts very long."""
    step_s = max(1.0, rates.duration_s / most_steps)
    count = max(1, math.ceil(rates.duration_s / step_s - 1e-9))
    return Demand(rates.stepped(0.0, step_s, count), step_s)


def _asked_about(state: SiteState, names: Sequence[str]) -> SiteState:
    if not names:
        return state
    known = {one.filesystem for one in state.filesystems} | {one.filesystem for one in state.excluded}
    unknown = tuple(LeftOut(name, "nothing is known of it") for name in dict.fromkeys(names) if name not in known)
    return SiteState(
        state.at,
        tuple(one for one in state.filesystems if one.filesystem in names),
        tuple(one for one in state.excluded if one.filesystem in names) + unknown,
    )


# ---- as JSON

#: the fields of what is expected of a start that a choice has by these names
_EXPECTED = (
    *("contended_bytes", "low_contended_bytes", "high_contended_bytes", "own_contended_bytes"),
    *("others_contended_bytes", "stretch", "met_load_ratio"),
)


class _LeftOut(Part):
    filesystem: str = Field(description="the file system")
    reason: str = Field(description="why not")


class AdviceDocument(Document, title="iosig advise"):
    """Where and when an application should start."""

    format: Literal["iosig-advice/1"] = "iosig-advice/1"
    at: Instant = Field(description="the instant that the advice is for [UTC]")
    requested_at: Instant = Field(description="when it was asked for [UTC]")
    signatures_from: Literal["release", "feed"] = Field(description="where signatures are from")
    release_id: str | None = Field(description="the release that they are of")
    state_from: Literal["warehouse", "mix"] = Field(description="who told what file systems do")
    method: Method = Field(description="what choices are ranked by")
    max_delay_s: float = Field(description="the longest delay that was tried [s]")
    delay_step_s: float = Field(description="the step between delays [s]")
    step_s: float = Field(description="the step of time [s]")
    application: Any = Field(description="the application and its signature: see [Advice](advice.md#the-application)")
    choices: list[Any] = Field(description="the file systems, the best one first: see [Advice](advice.md#choices)")
    excluded: list[_LeftOut] = Field(description="what could not be judged")


def document(advised: Advised, *, signatures_from: str, release_id: str | None, state_from: str) -> AdviceDocument:
    """Return the advice for programs."""
    advice = advised.advice
    delays = advice.delays_s
    return AdviceDocument(
        at=_instant(advised.state.at),
        requested_at=_instant(advised.requested_at),
        signatures_from=signatures_from,
        release_id=release_id,
        state_from=state_from,
        method=advice.method,
        max_delay_s=advised.max_delay_s,
        delay_step_s=float(delays[1] - delays[0]) if len(delays) > 1 else 0.0,
        step_s=advice.step_s,
        application=_application(advised),
        choices=[_choice(advised, number) for number in range(len(advised.choices))],
        excluded=advised.state.excluded,
    )


def _application(advised: Advised) -> Row:
    signature = advised.signature
    return {
        "application_id": advised.application_id,
        "filesystem": signature.filesystem,
        "outcomes": dict(sorted(signature.outcomes.items())),
        "method": signature.method,
        "basis": signature.basis,
        "duration_s": signature.rates.duration_s,
        "volume_bytes": signature.rates.volume_bytes,
        "peak_bytes_per_s": signature.rates.peak_bytes_per_s,
        "sample_count": signature.sample_count,
        "last_run_ended_at": _instant(signature.last_run_ended_at),
        "valid_until": _instant(signature.valid_until),
        "confidence": signature.confidence,
        "expected_correlation": signature.expected_correlation,
    }


def _choice(advised: Advised, number: int) -> Row:
    now, best = advised.choices[number]
    one, advice = advised.filesystems[best.partition], advised.advice
    rank_now = [choice.partition for choice in advice.without_delay].index(now.partition) + 1
    at, load = advised.state.at, one.load
    counts = Counter(job.status for job in one.now_running)
    return {
        "rank": number + 1,
        "rank_now": rank_now,
        "filesystem": one.filesystem,
        "now": _expected(advised, now),
        "best": _expected(advised, best),
        "capacity_bytes_per_s": one.capacity_bytes_per_s,
        "capacity_basis": one.capacity_basis,
        "capacity_observed_at": _instant(one.capacity_observed_at),
        "load_bytes_per_s": None if load is None else load.bytes_per_s,
        "load_from": None if load is None else _instant(_before(at, load.from_s_ago)),
        "load_until": None if load is None else _instant(_before(at, load.until_s_ago)),
        "load_age_s": advised.load_age_s(one),
        "is_stale": advised.is_stale(one),
        "attributed_bytes_per_s": one.attributed_bytes_per_s,
        "background_bytes_per_s": one.background_bytes_per_s,
        **{f"{status}_job_count": counts[status] for status in ("known", "over", "unknown")},
        "running": [
            {"name": job.name, "application_id": job.application_id, "elapsed_s": job.elapsed_s, "status": job.status}
            for job in one.now_running
        ],
        "delays_s": advice.delays_s.tolist(),
        "contended_bytes": advice.contended_bytes[advice.partitions.index(one.filesystem)].tolist(),
    }


def _expected(advised: Advised, choice: Choice) -> Row:
    told = {"delay_s": choice.delay_s, "start_at": _instant(_before(advised.state.at, -choice.delay_s))}
    return told | {name: getattr(choice, name) for name in _EXPECTED}


def _before(at: datetime, seconds: float) -> datetime:
    return datetime.fromtimestamp(at.timestamp() - seconds, UTC)


def _instant(value: datetime | None) -> str | None:
    return None if value is None else instant_text(value)
