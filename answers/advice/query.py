"""`iosig advise`: choose a file system for an application, and the delay of its start (IOSI, section 6.4).

The page docs/advice.md documents the fields of the JSON document.
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
    ExcludedFilesystem,
    FilesystemState,
    KnownSignature,
    Rates,
    SignatureSource,
    SiteState,
    choose_largest,
)
from iosig.answers.documents import Document, Instant, Part, instant_text
from iosig.answers.signatures.view import choose_application, find_similar, match_applications
from iosig.reports.texts import printable
from iosig.settings.model import AdviceSettings
from iosig.transforms.advice import Advice, AdviceParams, Choice, Partition, RunningApplication, advise
from iosig.transforms.demands import Demand
from iosig.warehouse.contracts.application_ids import get_user, without_node_count
from iosig.warehouse.errors import NothingToDo, UsageError

DEFAULT_MAX_DELAY_S = 1800.0
#: maximum number of steps of a demand
#: maximum number of delays tried
_MAX_DEMAND_STEPS, _MAX_DELAYS = 100_000, 2000
#: maximum number of steps of all demands together, which bounds memory with very many running jobs
#: minimum number of steps available to each demand
_MAX_TOTAL_STEPS, _MIN_DEMAND_STEPS = 20_000_000, 1000
_MAX_LISTED = 5

Method = Literal["contention", "correlation"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """A request for advice; `application` is an id, or a part of an id that is unique for the user and node count.

    filesystems: candidates, all if empty. method: ranking criterion.
    """

    application: str
    user: str | None = None
    node_count: int | None = None
    filesystems: tuple[str, ...] = ()
    max_delay_s: float = DEFAULT_MAX_DELAY_S
    method: Method = "contention"


@dataclass(frozen=True)
class AdviceResult:
    """Advice with the inputs that it was computed from; ages count from `requested_at`."""

    application_id: str
    signature: KnownSignature
    state: SiteState
    advice: Advice
    requested_at: datetime
    max_delay_s: float
    stale_after_s: float

    @cached_property
    def filesystems(self) -> Mapping[str, FilesystemState]:
        """State of each file system, keyed by name."""
        return {state.filesystem: state for state in self.state.filesystems}

    @cached_property
    def choices(self) -> tuple[tuple[Choice, Choice], ...]:
        """For each file system, from best to worst: the start now, and the start after the best delay."""
        now = {choice.partition: choice for choice in self.advice.without_delay}
        return tuple((now[best.partition], best) for best in self.advice.with_delay)

    def load_age_s(self, state: FilesystemState) -> float | None:
        """Return the age of a file system's load; None if its measurement time is unknown."""
        if state.load is None or state.load.measured_until is None:
            return None
        return (self.requested_at - state.load.measured_until).total_seconds()

    def is_stale(self, state: FilesystemState) -> bool:
        """Return whether the load of a file system is older than `stale_after_s`."""
        age_s = self.load_age_s(state)
        return age_s is not None and age_s > self.stale_after_s


# ---- which application


def choose(signatures: SignatureSource, query: Query) -> str:
    """Resolve the requested application to the id of one that has a signature.

    Raises NothingToDo with alternatives if none matches, UsageError if the request is ambiguous.
    """
    candidates = _select_by_size(_select_by_user(signatures.application_ids(), query.user), query.node_count)
    matched = _match(candidates, query)
    if matched is not None:
        return matched
    unsigned = [
        name
        for name in _select_by_user(signatures.list_without_signature(), query.user)
        if _has_size(name, query.node_count)
    ]
    without = _match(unsigned, query)
    similar = [name for name in signatures.application_ids() if _is_like(name, without, query)]
    alternatives = f" Signatures exist for {_join_names(similar)}." if similar else ""
    if without is None:
        raise NothingToDo(_explain_mismatch(signatures, query) + alternatives)
    raise NothingToDo(
        f"{printable(without, 120)} has no signature. {signatures.explain_missing(without)}{alternatives}"
    )


def _select_by_user(names: Sequence[str], user: str | None) -> list[str]:
    return [name for name in names if user is None or get_user(name) == user]


def _has_size(name: str, node_count: int | None) -> bool:
    return node_count is None or name.rpartition("/")[2] == str(node_count)


def _select_by_size(names: Sequence[str], node_count: int | None) -> list[str]:
    """Filter ids by node count; an application without that node count falls back to its id for all node counts."""
    sized = [name for name in names if _has_size(name, node_count)]
    if node_count is None:
        return sized
    sized_ids = {without_node_count(name) for name in sized}
    return sized + [name for name in names if name.endswith("/*") and name[:-2] not in sized_ids]


def _match(names: Sequence[str], query: Query) -> str | None:
    """Return the id that matches the request, or None; raises UsageError if several match."""
    if not match_applications(names, query.application):
        return None
    try:
        return choose_application(names, query.application)
    except UsageError as error:
        raise UsageError(f"{error} Alternatively, pass --user and --nodes.") from error


def _is_like(name: str, reference: str | None, query: Query) -> bool:
    """Return whether a name is `reference` at another node count or, without it, contains the query's name."""
    if reference is not None:
        return without_node_count(name) == without_node_count(reference)
    return f"/{query.application.casefold()}/" in f"/{name.casefold()}/"


def _explain_mismatch(signatures: SignatureSource, query: Query) -> str:
    owner = "" if query.user is None else f" of user {query.user!r}"
    size = "" if query.node_count is None else f" on {query.node_count} nodes"
    application_ids = signatures.application_ids()
    similar = find_similar(application_ids, query.application)
    suggestion = f" Did you mean {_join_names(similar)}?" if similar else ""
    return (
        f"No application named {query.application!r}{owner}{size} has a signature; {len(application_ids):,} others "
        f"have one.{suggestion} "
        "A signature needs several runs: land the job log and polls, then `iosig run`. "
        '`iosig sql "from applications"` lists the known applications.'
    )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(printable(name, 120) for name in names[:_MAX_LISTED]) + more


# ---- the advice


def find_signature(signatures: SignatureSource, application_id: str, at: datetime) -> KnownSignature:
    """Return the application's signature with the largest volume; raises NothingToDo if it has expired."""
    signature = choose_largest(signatures.find([application_id])[application_id])
    if not signature.holds_at(at):
        raise NothingToDo(
            f"The signature of {printable(application_id, 120)} expired at {_instant(signature.valid_until)}: its last "
            "known run ended too long ago. Land its later runs, then `iosig run`."
        )
    return signature


def advise_on(
    signature: KnownSignature,
    application_id: str,
    state: SiteState,
    query: Query,
    settings: AdviceSettings,
    requested_at: datetime,
) -> AdviceResult:
    """Rank file systems and start delays for an application; raises NothingToDo if no file system can be assessed."""
    state = _select_filesystems(state, query.filesystems)
    if not state.filesystems:
        reasons = "; ".join(
            f"{printable(filesystem.filesystem, 120)}: {filesystem.reason}"
            for filesystem in state.excluded[:_MAX_LISTED]
        )
        raise NothingToDo(f"No file system can be assessed{'. ' if reasons else ''}{reasons}.")
    demands = _demands(state)
    partitions = []
    for filesystem in state.filesystems:
        signed_jobs = [job for job in filesystem.now_running if job.signature is not None]
        running = tuple(RunningApplication(job.name, demands[id(job.signature)], job.elapsed_s) for job in signed_jobs)
        partitions.append(
            Partition(
                filesystem.filesystem, filesystem.capacity_bytes_per_s, filesystem.background_bytes_per_s, running
            )
        )
    params = AdviceParams(method=query.method, max_delay_s=query.max_delay_s)
    params = replace(params, delay_step_s=max(params.delay_step_s, query.max_delay_s / _MAX_DELAYS))
    advice = advise(resample_demand(signature.rates), partitions, params)
    return AdviceResult(
        application_id, signature, state, advice, requested_at, query.max_delay_s, settings.stale_after_s
    )


def _demands(state: SiteState) -> dict[int, Demand]:
    """Return the demand of each running signature, keyed by object id, since jobs of an application share one."""
    jobs = [job for filesystem in state.filesystems for job in filesystem.now_running]
    rates = {id(job.signature): job.signature.rates for job in jobs if job.signature is not None}
    max_steps = _MAX_TOTAL_STEPS // max(len(rates), 1)
    max_steps = min(_MAX_DEMAND_STEPS, max(_MIN_DEMAND_STEPS, max_steps))
    return {key: resample_demand(signature_rates, max_steps) for key, signature_rates in rates.items()}


def resample_demand(rates: Rates, max_steps: int = _MAX_DEMAND_STEPS) -> Demand:
    """Resample rates to equal steps of 1 s, or longer ones to stay within `max_steps`."""
    step_s = max(1.0, rates.duration_s / max_steps)
    count = max(1, math.ceil(rates.duration_s / step_s - 1e-9))
    return Demand(rates.resample(0.0, step_s, count), step_s)


def _select_filesystems(state: SiteState, names: Sequence[str]) -> SiteState:
    if not names:
        return state
    known_names = {filesystem.filesystem for filesystem in state.filesystems} | {
        filesystem.filesystem for filesystem in state.excluded
    }
    unknown = tuple(ExcludedFilesystem(name, "unknown") for name in dict.fromkeys(names) if name not in known_names)
    return SiteState(
        state.at,
        tuple(filesystem for filesystem in state.filesystems if filesystem.filesystem in names),
        tuple(filesystem for filesystem in state.excluded if filesystem.filesystem in names) + unknown,
    )


# ---- as JSON

#: attributes of a `Choice` that keep their names in its JSON object
_CHOICE_FIELDS = (
    *("contended_bytes", "low_contended_bytes", "high_contended_bytes", "own_contended_bytes"),
    *("others_contended_bytes", "stretch", "met_load_ratio"),
)


class _Excluded(Part):
    filesystem: str = Field(description="the file system")
    reason: str = Field(description="why it was excluded")


class AdviceDocument(Document, title="iosig advise"):
    """Where and when an application should start."""

    format: Literal["iosig-advice/1"] = "iosig-advice/1"
    at: Instant = Field(description="the instant that the advice is for [UTC]")
    requested_at: Instant = Field(description="when the advice was requested [UTC]")
    signatures_from: Literal["release", "feed"] = Field(description="source of the signatures")
    release_id: str | None = Field(description="the release of the signatures")
    state_from: Literal["warehouse", "mix"] = Field(description="source of the state of the file systems")
    method: Method = Field(description="ranking criterion")
    max_delay_s: float = Field(description="the longest delay that was tried [s]")
    delay_step_s: float = Field(description="the step between delays [s]")
    step_s: float = Field(description="the step of time [s]")
    application: Any = Field(description="the application and its signature: see [Advice](advice.md#the-application)")
    choices: list[Any] = Field(description="the file systems, the best one first: see [Advice](advice.md#choices)")
    excluded: list[_Excluded] = Field(description="file systems that could not be assessed")


def build_document(
    result: AdviceResult, *, signatures_from: str, release_id: str | None, state_from: str
) -> AdviceDocument:
    """Build the JSON document of advice."""
    advice = result.advice
    delays = advice.delays_s
    return AdviceDocument(
        at=_instant(result.state.at),
        requested_at=_instant(result.requested_at),
        signatures_from=signatures_from,
        release_id=release_id,
        state_from=state_from,
        method=advice.method,
        max_delay_s=result.max_delay_s,
        delay_step_s=float(delays[1] - delays[0]) if len(delays) > 1 else 0.0,
        step_s=advice.step_s,
        application=_application(result),
        choices=[_choice(result, number) for number in range(len(result.choices))],
        excluded=result.state.excluded,
    )


def _application(result: AdviceResult) -> Row:
    signature = result.signature
    return {
        "application_id": result.application_id,
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


def _choice(result: AdviceResult, number: int) -> Row:
    now, best = result.choices[number]
    state, advice = result.filesystems[best.partition], result.advice
    rank_now = [choice.partition for choice in advice.without_delay].index(now.partition) + 1
    at, load = result.state.at, state.load
    counts = Counter(job.status for job in state.now_running)
    return {
        "rank": number + 1,
        "rank_now": rank_now,
        "filesystem": state.filesystem,
        "now": _describe_start(result, now),
        "best": _describe_start(result, best),
        "capacity_bytes_per_s": state.capacity_bytes_per_s,
        "capacity_basis": state.capacity_basis,
        "capacity_observed_at": _instant(state.capacity_observed_at),
        "load_bytes_per_s": None if load is None else load.bytes_per_s,
        "load_from": None if load is None else _instant(_before(at, load.from_s_ago)),
        "load_until": None if load is None else _instant(_before(at, load.until_s_ago)),
        "load_age_s": result.load_age_s(state),
        "is_stale": result.is_stale(state),
        "attributed_bytes_per_s": state.attributed_bytes_per_s,
        "background_bytes_per_s": state.background_bytes_per_s,
        **{f"{status}_job_count": counts[status] for status in ("known", "over", "unknown")},
        "running": [
            {"name": job.name, "application_id": job.application_id, "elapsed_s": job.elapsed_s, "status": job.status}
            for job in state.now_running
        ],
        "delays_s": advice.delays_s.tolist(),
        "contended_bytes": advice.contended_bytes[advice.partitions.index(state.filesystem)].tolist(),
    }


def _describe_start(result: AdviceResult, choice: Choice) -> Row:
    fields = {"delay_s": choice.delay_s, "start_at": _instant(_before(result.state.at, -choice.delay_s))}
    return fields | {name: getattr(choice, name) for name in _CHOICE_FIELDS}


def _before(at: datetime, seconds: float) -> datetime:
    return datetime.fromtimestamp(at.timestamp() - seconds, UTC)


def _instant(value: datetime | None) -> str | None:
    return None if value is None else instant_text(value)
