"""Build the JSON document of `iosig status`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from iosig.answers.documents import Day, Document, Instant, Part, RollbackPart, make_enum_schema
from iosig.answers.status.condition import Condition
from iosig.answers.status.problems import Problem
from iosig.warehouse.contracts.releases import PASSED, WITH_WARNINGS


class ProblemPart(Part):
    """A problem that needs action, or a note that does not."""

    name: str = Field(description="name that stays the same while the problem persists")
    sentence: str = Field(description="description and remedy")


class _Source(Part):
    table: str = Field(description="the landed table")
    landed_at: list[Instant] = Field(description="times of the landings, in order")
    refused_rows: list[int | None] = Field(description="refused rows of each landing")
    rows: list[int | None] = Field(description="total rows of each landing")


class _IncompleteDay(Part):
    day: Day = Field(description="the day")
    missing_ratio: float = Field(description="fraction of the expected polls that is missing [1]")


class _Filesystem(Part):
    filesystem: str = Field(description="the file system")
    last_day: Day = Field(description="its last complete day; without one, its last day")
    bytes_moved: float = Field(description="read and written on that day [B]")
    typical_bytes: list[float | None] = Field(description="bytes of each complete day before, at most fourteen")
    missing_ratio: float = Field(description="fraction of that day's expected polls that is missing [1]")
    is_partial_day: bool = Field(description="whether the data begin or end within that day")
    incomplete_days: list[_IncompleteDay] = Field(
        description="days with too many missing polls, out of the last fifteen"
    )


class _RefusedInput(Part):
    file: str = Field(description="the input, as it landed")
    landed_at: Instant = Field(description="time of the landing [UTC]")
    refused_rows: int = Field(description="rows that could not be read [rows]")
    rows: int = Field(description="rows that could be read [rows]")


class StatusDocument(Document, title="iosig status"):
    """Landings, releases, problems and notes of a warehouse."""

    format: Literal["iosig-status/1"] = "iosig-status/1"
    warehouse: str = Field(description="location of the warehouse")
    at: Instant = Field(description="time of the status [UTC]")
    release_id: str | None = Field(description="the current release")
    released_at: Instant | None = Field(description="time of its publication [UTC]")
    verdict: Annotated[str, make_enum_schema((PASSED, WITH_WARNINGS))] | None = Field(
        description="the result of its checks"
    )
    rollback: RollbackPart | None = Field(description="the rollback in force")
    sources: list[_Source] = Field(description="landings by table")
    filesystems: list[_Filesystem] = Field(description="polled file systems")
    waiting: list[Instant] = Field(description="times of landings that are in no release")
    refused_inputs: list[_RefusedInput] = Field(
        description="inputs of the last seven days with refused rows, the latest last"
    )
    refused_run: str | None = Field(description="the pages of the last run, if it failed its checks")
    held_by: dict[str, Any] | None = Field(description="holder of the lock: process, host, since")
    disk_total_bytes: int = Field(description="size of the disk [B]")
    disk_free_bytes: int = Field(description="free space of the disk [B]")
    next_run_at: Instant = Field(description="start of the next scheduled run [UTC]")
    server_url: str | None = Field(description="Prefect server of `iosig serve`, if this user has one in the warehouse")
    server_state: str | None = Field(
        description="`running`, `not running`, `password refused`, `port in use`, or a fault"
    )
    problems: list[ProblemPart] = Field(description="problems, most severe first")
    notes: list[ProblemPart] = Field(description="notes that need no action")


def build_document(
    condition: Condition, problems: list[Problem], notes: list[Problem], server_url: str, server_state: str | None
) -> StatusDocument:
    """Build the JSON document; server_state: None if the warehouse has no server of its own."""
    values = {name: getattr(condition, name) for name in StatusDocument.model_fields if hasattr(condition, name)}
    url = server_url if server_state else None
    return StatusDocument(**values, problems=problems, notes=notes, server_url=url, server_state=server_state)
