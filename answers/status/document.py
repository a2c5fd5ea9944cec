"""What `iosig status --json` prints."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from iosig.answers.documents import Day, Document, Instant, Part, RollbackPart, one_of
from iosig.answers.status.condition import Condition
from iosig.answers.status.problems import Problem
from iosig.warehouse.contracts.releases import PASSED, WITH_WARNINGS


class ProblemPart(Part):
    """A problem, or a note."""

    name: str = Field(description="the same as long as it lasts")
    sentence: str = Field(description="what it is")


class _Source(Part):
    table: str = Field(description="what it holds rows of")
    landed_at: list[Instant] = Field(description="when, the last one last")
    refused_rows: list[int | None] = Field(description="refused rows of each")
    rows: list[int | None] = Field(description="rows of each, refused ones too")


class _IncompleteDay(Part):
    day: Day = Field(description="the day")
    missing_ratio: float = Field(description="polls that were due and are missing [1]")


class _Filesystem(Part):
    filesystem: str = Field(description="the file system")
    last_day: Day = Field(description="its last whole day; without one, its last day")
    bytes_moved: float = Field(description="read and written on that day [B]")
    typical_bytes: list[float | None] = Field(description="on each whole day before, up to fourteen")
    missing_ratio: float = Field(description="polls that were due on that day and are missing [1]")
    is_partial_day: bool = Field(description="whether the data begin or end within that day")
    incomplete_days: list[_IncompleteDay] = Field(description="days with too many missing polls, of the last fifteen")


class _RefusedInput(Part):
    file: str = Field(description="the input, as it landed")
    landed_at: Instant = Field(description="when [UTC]")
    refused_rows: int = Field(description="rows that could not be read [rows]")
    rows: int = Field(description="rows that could be read [rows]")


class StatusDocument(Document, title="iosig status"):
    """How a warehouse fares."""

    format: Literal["iosig-status/1"] = "iosig-status/1"
    warehouse: str = Field(description="where it is")
    at: Instant = Field(description="the moment that is told of [UTC]")
    release_id: str | None = Field(description="the current release")
    released_at: Instant | None = Field(description="when it was made [UTC]")
    verdict: Annotated[str, one_of((PASSED, WITH_WARNINGS))] | None = Field(description="the result of its checks")
    rollback: RollbackPart | None = Field(description="the rollback in force")
    sources: list[_Source] = Field(description="what has landed, by kind")
    filesystems: list[_Filesystem] = Field(description="what was polled")
    waiting: list[Instant] = Field(description="when each landing landed that is in no release")
    refused_inputs: list[_RefusedInput] = Field(
        description="inputs of the last seven days with refused rows, the latest last"
    )
    refused_run: str | None = Field(description="the pages of the last run, if it failed its checks")
    held_by: dict[str, Any] | None = Field(description="who writes just now: process, host, since")
    disk_total_bytes: int = Field(description="room on the disk [B]")
    disk_free_bytes: int = Field(description="free of it [B]")
    next_run_at: Instant = Field(description="when the next night begins [UTC]")
    server_url: str | None = Field(description="Prefect server of `iosig serve`, if this user has one in the warehouse")
    server_state: str | None = Field(
        description="`running`, `not running`, `password refused`, `port in use`, or a fault"
    )
    problems: list[ProblemPart] = Field(description="what is wrong, the worst first")
    notes: list[ProblemPart] = Field(description="what is worth knowing and no problem")


def document(
    condition: Condition, problems: list[Problem], notes: list[Problem], server_url: str, server_state: str | None
) -> StatusDocument:
    """Return a condition for programs; server_state: None where there is no server of the warehouse's own."""
    values = {name: getattr(condition, name) for name in StatusDocument.model_fields if hasattr(condition, name)}
    url = server_url if server_state else None
    return StatusDocument(**values, problems=problems, notes=notes, server_url=url, server_state=server_state)
