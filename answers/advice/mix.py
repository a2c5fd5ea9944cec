"""A mix: what a scheduler tells of its file systems and of what runs there, as JSON; docs/advice.md has its form."""

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
    on_filesystem,
)
from iosig.answers.documents import faults_of
from iosig.settings.model import AdviceSettings
from iosig.warehouse.contracts.application_ids import all_node_counts
from iosig.warehouse.errors import InputRefused

FORMAT = "iosig-mix/1"
MOST_BYTES = 16 << 20
#: what is beyond these is no site, and would take its time
MOST_FILESYSTEMS, MOST_RUNNING, MOST_BURSTS = 64, 4096, 10_000
_MOST_FIELDS = 64
_LONGEST_S = 31 * 86_400.0
_REMEDY = "docs/advice.md says what a mix must hold."

_Name = Annotated[str, Field(min_length=1, max_length=1024)]
_Rate = Annotated[float, Field(ge=0, le=1e18)]
_Seconds = Annotated[float, Field(ge=0, le=_LONGEST_S)]


def _at_most(count: int, *, least: int = 0) -> tuple[object, ...]:
    """Return what bounds a list: its length is looked at first, and the first item that is wrong ends it."""

    def bounded(value: object) -> object:
        if isinstance(value, list) and not least <= len(value) <= count:
            raise ValueError(f"holds more than {count}" if value else "holds nothing")
        return value

    return Strict(False), FailFast(), BeforeValidator(bounded)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, value: object) -> object:
        # each field too many would be a fault of its own
        if isinstance(value, dict) and len(value) > _MOST_FIELDS:
            raise ValueError(f"has more than {_MOST_FIELDS} fields")
        return value


class _Burst(_Part):
    start_s: _Seconds
    duration_s: Annotated[float, Field(gt=0, le=_LONGEST_S)]
    volume_bytes: Annotated[float, Field(ge=0, le=1e18)]


class _Running(_Part):
    name: _Name
    elapsed_s: Annotated[float, Field(ge=0, le=1e9)]
    application_id: _Name | None = None
    bursts: Annotated[tuple[_Burst, ...], *_at_most(MOST_BURSTS)] = ()

    @property
    def has_bursts(self) -> bool:
        """Whether it is told what the job will do, be it nothing."""
        return "bursts" in self.model_fields_set

    @model_validator(mode="after")
    def _has_one_signature(self) -> _Running:
        if self.application_id is not None and self.has_bursts:
            raise ValueError("give application_id or bursts, not both")
        return self


class _Filesystem(_Part):
    filesystem: _Name
    capacity_bytes_per_s: Annotated[float, Field(gt=0, le=1e18)]
    load_bytes_per_s: _Rate | None = None
    background_bytes_per_s: _Rate | None = None
    running: Annotated[tuple[_Running, ...], *_at_most(MOST_RUNNING)] = ()

    @model_validator(mode="after")
    def _has_one_load(self) -> _Filesystem:
        if (self.load_bytes_per_s is None) == (self.background_bytes_per_s is None):
            raise ValueError("give load_bytes_per_s (all that it moves) or background_bytes_per_s, one of them")
        return self


class _Mix(_Part):
    format: Literal["iosig-mix/1"]
    at: Annotated[AwareDatetime, Field(strict=False)] | None = None
    load_window_s: Annotated[float, Field(ge=1, le=86_400)] | None = None
    filesystems: Annotated[tuple[_Filesystem, ...], *_at_most(MOST_FILESYSTEMS, least=1)]

    @model_validator(mode="after")
    def _is_bounded(self) -> _Mix:
        names = [one.filesystem for one in self.filesystems]
        if len(set(names)) < len(names):
            raise ValueError("a file system is told twice")
        running = [job for one in self.filesystems for job in one.running]
        if len(running) > MOST_RUNNING:
            raise ValueError(f"more than {MOST_RUNNING} jobs run")
        return self


def read_mix(
    file: IO[bytes], name: str, signatures: SignatureSource | None, settings: AdviceSettings, now: datetime
) -> SiteState:
    """Return the state that a mix tells of; raises InputRefused with the place of what is wrong.

    signatures: where the applications that it names have theirs from; None if there is no such place. now: when, if
    the mix does not say it.
    """
    mix = _parsed(file.read(MOST_BYTES + 1), name)
    at = mix.at or now
    named = {job.application_id for one in mix.filesystems for job in one.running} - {None}
    wanted = {form for known in named if known for form in (known, all_node_counts(known))}
    known = signatures.of(sorted(wanted)) if signatures and wanted else {}
    window_s = mix.load_window_s or settings.load_window_s
    return SiteState(at, tuple(_state(one, known, window_s, at) for one in mix.filesystems))


def _parsed(content: bytes, name: str) -> _Mix:
    if len(content) > MOST_BYTES:
        raise InputRefused(f"{name} is larger than {MOST_BYTES:,} bytes.", "Leave out what does not run.")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputRefused(f"{name} is not JSON: {error}.", _REMEDY) from error
    try:
        return _Mix.model_validate(document)
    except ValidationError as error:
        raise InputRefused(f"{name} is refused: {faults_of(error)}.", _REMEDY) from error


def _state(
    told: _Filesystem, known: Mapping[str, Mapping[str, KnownSignature]], window_s: float, at: datetime
) -> FilesystemState:
    load = None if told.load_bytes_per_s is None else Load(told.load_bytes_per_s, window_s, 0.0)
    return FilesystemState(
        filesystem=told.filesystem,
        capacity_bytes_per_s=told.capacity_bytes_per_s,
        capacity_basis="mix",
        running=tuple(_job(job, told.filesystem, known, at) for job in told.running),
        load=load,
        given_background_bytes_per_s=told.background_bytes_per_s,
    )


def _job(
    told: _Running, filesystem: str, known: Mapping[str, Mapping[str, KnownSignature]], at: datetime
) -> RunningJob:
    signature = None
    if told.has_bursts:
        signature = KnownSignature(None, None, _rates(told.bursts), "mix", {})
    elif told.application_id is not None:
        # a scheduler knows where its jobs run
        found = on_filesystem(known, told.application_id, filesystem, is_certain=True)
        signature = found if found is not None and found.holds_at(at) else None
    return RunningJob(told.name, told.application_id, told.elapsed_s, signature)


def _rates(bursts: tuple[_Burst, ...]) -> Rates:
    columns = np.array([(one.start_s, one.duration_s, one.volume_bytes) for one in bursts]).reshape(-1, 3).T
    return Rates.of_bursts(columns[0], columns[1], columns[2])
