"""Compare the results of a replay with the trace: calls by function, bytes, file sizes and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from iosig.traces.replay.execution import Done
from iosig.traces.replay.libc import Place
from iosig.traces.replay.ordering import Order
from iosig.traces.replay.planning import Survey, disk_bytes, list_prepared_files


@dataclass(frozen=True, slots=True)
class FileSize:
    """Expected and actual size of a file: from the trace (None if unknown), and on disk (None if missing)."""

    path: str
    traced_bytes: int | None
    replayed_bytes: int | None
    prepared_bytes: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a finished or only planned replay.

    traced_s: duration of the traced run. is_time_drawn: whether this duration is known from mean times only.
    traced_calls, replayed_calls: by function. failures: by function and error. not_replayed: by function and reason.
    """

    folder: str
    is_timed: bool
    rank_count: int
    process_count: int
    traced_calls: Counter[str]
    not_replayed: Counter[tuple[str, str]]
    traced_read_bytes: int
    traced_written_bytes: int
    files: list[FileSize]
    needed_bytes: int
    traced_s: float
    is_time_drawn: bool
    synchronized_on: dict[str, int]
    ignored: dict[str, str]
    replayed_calls: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    read_bytes: int = 0
    written_bytes: int = 0
    replayed_s: float | None = None
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def is_dry_run(self) -> bool:
        """Whether the replay was only planned, not executed."""
        return self.replayed_s is None

    def differences(self) -> list[str]:
        """Return the differences between the replay and the trace's calls; empty without differences."""
        if self.is_dry_run:
            return []
        differences = [
            f"{function}: {count:,} of {self.replayed_calls[function]:,} calls failed with {error}"
            for (function, error), count in sorted(self.failures.items())
        ]
        for verb, traced, replayed in (
            ("read", self.traced_read_bytes, self.read_bytes),
            ("written", self.traced_written_bytes, self.written_bytes),
        ):
            if traced != replayed:
                differences.append(f"{replayed:,} bytes were {verb}, but the trace has {traced:,}")
        if self.traced_calls != self.replayed_calls:
            differences.append("incomplete: some calls were not made")
        resized = [
            file for file in self.files if file.traced_bytes is not None and file.traced_bytes != file.replayed_bytes
        ]
        if resized:
            differences.append(f"{len(resized):,} files differ in size from the trace, such as {resized[0].path!r}")
        return differences

    def document(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        return {
            "folder": self.folder,
            "is_dry_run": self.is_dry_run,
            "is_timed": self.is_timed,
            "rank_count": self.rank_count,
            "process_count": self.process_count,
            "traced": {
                "calls": dict(sorted(self.traced_calls.items())),
                "read_bytes": self.traced_read_bytes,
                "written_bytes": self.traced_written_bytes,
                "duration_s": self.traced_s,
                "is_duration_from_means": self.is_time_drawn,
            },
            "replayed": None if self.is_dry_run else self._format_result(),
            "not_replayed": _rows(self.not_replayed, "reason"),
            "files": [asdict(file) for file in self.files],
            "needed_bytes": self.needed_bytes,
            "synchronized_on": self.synchronized_on,
            "not_synchronized_on": self.ignored,
            "notes": dict(sorted(self.notes.items())),
            "differences": self.differences(),
        }

    def _format_result(self) -> dict[str, Any]:
        return {
            "calls": dict(sorted(self.replayed_calls.items())),
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "duration_s": self.replayed_s,
            "failures": _rows(self.failures, "error"),
        }


def _rows(counts: Counter[tuple[str, str]], reason_name: str) -> list[dict[str, object]]:
    """Return counts by function and reason as rows."""
    return [
        {"function": function, reason_name: reason, "count": count}
        for (function, reason), count in sorted(counts.items())
    ]


def report_plan(
    survey: Survey, order: Order, folder: str, *, is_timed: bool, process_count: int, traced_s: float | None
) -> Report:
    """Build the report of a planned replay."""
    ready = list_prepared_files(survey.uses)
    files = [
        FileSize("/".join(place), use.final_bytes(), None, ready.get(place))
        for place, use in sorted(survey.uses.files.items())
    ]
    return Report(
        folder=folder,
        is_timed=is_timed,
        rank_count=len(survey.ranks),
        process_count=process_count,
        traced_calls=survey.counts,
        not_replayed=survey.not_replayed,
        traced_read_bytes=survey.read_bytes,
        traced_written_bytes=survey.written_bytes,
        files=files,
        needed_bytes=disk_bytes(survey.uses),
        traced_s=survey.end_s if traced_s is None else traced_s,
        is_time_drawn=traced_s is None,
        synchronized_on=order.members,
        ignored=order.ignored,
    )


def report_result(
    plan: Report, results: Iterable[Done], start_s: float, sizes: Mapping[Place, int | None], faults: Counter[str]
) -> Report:
    """Build the report of a finished replay from its plan and the ranks' results."""
    ranks = list(results)
    calls, failures, notes = Counter[str](), Counter[tuple[str, str]](), Counter(faults)
    for rank in ranks:
        calls.update(rank.counts)
        failures.update(rank.failures)
        notes.update(rank.notes)
    files = [replace(file, replayed_bytes=sizes.get(tuple(file.path.split("/")))) for file in plan.files]
    return replace(
        plan,
        replayed_calls=calls,
        failures=failures,
        read_bytes=sum(rank.read_bytes for rank in ranks),
        written_bytes=sum(rank.written_bytes for rank in ranks),
        files=files,
        replayed_s=max([rank.end_s for rank in ranks], default=start_s) - start_s,
        notes=notes,
    )
