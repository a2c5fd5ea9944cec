"""Read a job mix: a JSON document from a scheduler that lists file systems and running jobs (see docs/advice.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import IO, Annotated, Literal

import numpy as np
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    Strict,
    ValidationError,
    model_validator,
)

from iosig.answers.advice.inputs import (
    FilesystemState,
    KnownSignature,
    Load,
    Rates,
    RunningJob,
    SignatureSource,
    SiteState,
    find_for_filesystem,
)
from iosig.answers.documents import format_faults
from iosig.settings.model import AdviceSettings
from iosig.warehouse.contracts.application_ids import all_node_counts
from iosig.warehouse.errors import InputRefused

FORMAT = "iosig-mix/1"
MAX_BYTES = 16 << 20
#: maximum numbers of file systems, of running jobs, and of bursts per job, which are far above those of any real site
#: and bound time and memory
MAX_FILESYSTEMS, MAX_RUNNING, MAX_BURSTS = 64, 4096, 10_000
_MAX_FIELDS = 64
_MAX_DURATION_S = 31 * 86_400.0
_REMEDY = "docs/advice.md describes the format of a mix."

_Name = Annotated[str, Field(min_length=1, max_length=1024)]
_Rate = Annotated[float, Field(ge=0, le=1e18)]
_Seconds = Annotated[float, Field(ge=0, le=_MAX_DURATION_S)]


def _limit_length(max_count: int, *, min_count: int = 0) -> tuple[object, ...]:
    """Return the annotations of a bounded list: length is checked first, and validation stops at the first bad item."""

    def check_length(value: object) -> object:
        if isinstance(value, list) and not min_count <= len(value) <= max_count:
            raise ValueError(f"has more than {max_count} items" if value else "is empty")
        return value

    return Strict(False), FailFast(), BeforeValidator(check_length)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_field_count(cls, value: object) -> object:
        # with extra="forbid", each additional field would become an error message
        if isinstance(value, dict) and len(value) > _MAX_FIELDS:
            raise ValueError(f"has more than {_MAX_FIELDS} fields")
        return value


class _Burst(_Part):
    start_s: _Seconds
    duration_s: Annotated[float, Field(gt=0, le=_MAX_DURATION_S)]
    volume_bytes: Annotated[float, Field(ge=0, le=1e18)]


class _Running(_Part):
    name: _Name
    elapsed_s: Annotated[float, Field(ge=0, le=1e9)]
    application_id: _Name | None = None
    bursts: Annotated[tuple[_Burst, ...], *_limit_length(MAX_BURSTS)] = ()

    @property
    def has_bursts(self) -> bool:
        """Whether the mix gives the job's bursts, even an empty list."""
        return "bursts" in self.model_fields_set

    @model_validator(mode="after")
    def _check_single_signature(self) -> _Running:
        if self.application_id is not None and self.has_bursts:
            raise ValueError("give application_id or bursts, not both")
        return self


class _Filesystem(_Part):
    filesystem: _Name
    capacity_bytes_per_s: Annotated[float, Field(gt=0, le=1e18)]
    load_bytes_per_s: _Rate | None = None
    background_bytes_per_s: _Rate | None = None
    running: Annotated[tuple[_Running, ...], *_limit_length(MAX_RUNNING)] = ()

    @model_validator(mode="after")
    def _check_single_load(self) -> _Filesystem:
        if (self.load_bytes_per_s is None) == (self.background_bytes_per_s is None):
            raise ValueError("give either load_bytes_per_s (total load) or background_bytes_per_s")
        return self


class _Mix(_Part):
    format: Literal["iosig-mix/1"]
    at: Annotated[AwareDatetime, Field(strict=False)] | None = None
    load_window_s: Annotated[float, Field(ge=1, le=86_400)] | None = None
    filesystems: Annotated[tuple[_Filesystem, ...], *_limit_length(MAX_FILESYSTEMS, min_count=1)]

    @model_validator(mode="after")
    def _check_limits(self) -> _Mix:
        names = [filesystem.filesystem for filesystem in self.filesystems]
        if len(set(names)) < len(names):
            raise ValueError("a file system is given twice")
        running = [job for filesystem in self.filesystems for job in filesystem.running]
        if len(running) > MAX_RUNNING:
            raise ValueError(f"more than {MAX_RUNNING} jobs run")
        return self


def read_mix(
    file: IO[bytes], name: str, signatures: SignatureSource | None, settings: AdviceSettings, now: datetime
) -> SiteState:
    """Parse and validate a mix; raises InputRefused with the location of the error.

    signatures: lookup for the application ids in the mix; None if unavailable. now: the time of a mix without `at`.
    """
    mix = _parse(file.read(MAX_BYTES + 1), name)
    at = mix.at or now
    running_ids = {job.application_id for filesystem in mix.filesystems for job in filesystem.running} - {None}
    names = {form for running_id in running_ids if running_id for form in (running_id, all_node_counts(running_id))}
    signatures_by_application = signatures.find(sorted(names)) if signatures and names else {}
    window_s = mix.load_window_s or settings.load_window_s
    return SiteState(
        at, tuple(_state(filesystem, signatures_by_application, window_s, at) for filesystem in mix.filesystems)
    )


def _parse(content: bytes, name: str) -> _Mix:
    if len(content) > MAX_BYTES:
        raise InputRefused(f"{name} is larger than {MAX_BYTES:,} bytes.", "Remove jobs that do not run.")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputRefused(f"{name} is not JSON: {error}.", _REMEDY) from error
    try:
        return _Mix.model_validate(document)
    except ValidationError as error:
        raise InputRefused(f"{name} is refused: {format_faults(error)}.", _REMEDY) from error


def _state(
    filesystem: _Filesystem,
    signatures_by_application: Mapping[str, Mapping[str, KnownSignature]],
    window_s: float,
    at: datetime,
) -> FilesystemState:
    load = None if filesystem.load_bytes_per_s is None else Load(filesystem.load_bytes_per_s, window_s, 0.0)
    return FilesystemState(
        filesystem=filesystem.filesystem,
        capacity_bytes_per_s=filesystem.capacity_bytes_per_s,
        capacity_basis="mix",
        running=tuple(_job(job, filesystem.filesystem, signatures_by_application, at) for job in filesystem.running),
        load=load,
        given_background_bytes_per_s=filesystem.background_bytes_per_s,
    )


def _job(
    running: _Running,
    filesystem: str,
    signatures_by_application: Mapping[str, Mapping[str, KnownSignature]],
    at: datetime,
) -> RunningJob:
    signature = None
    if running.has_bursts:
        signature = KnownSignature(None, None, _rates(running.bursts), "mix", {})
    elif running.application_id is not None:
        # the scheduler knows on which file system its jobs run
        signature_there = find_for_filesystem(
            signatures_by_application, running.application_id, filesystem, is_certain=True
        )
        signature = signature_there if signature_there is not None and signature_there.holds_at(at) else None
    return RunningJob(running.name, running.application_id, running.elapsed_s, signature)


def _rates(bursts: tuple[_Burst, ...]) -> Rates:
    columns = np.array([(burst.start_s, burst.duration_s, burst.volume_bytes) for burst in bursts]).reshape(-1, 3).T
    return Rates.of_bursts(columns[0], columns[1], columns[2])
