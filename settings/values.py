"""Validate single settings and sections: functions return the value, or raise ValueError with the reason."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Params = TypeVar("_Params", bound="DataclassInstance")

_SECRETS = ("password", "token", "credential", "secret")


class Section(BaseModel):
    """Base class of the settings sections: immutable, and unknown fields are rejected."""

    # build validators only when a file is read: the defaults, which apply without a file, need no validation
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def params(self, kind: type[_Params]) -> _Params:
        """Build a parameter dataclass from the fields of this section with the same names."""
        return kind(**self.model_dump(include={field.name for field in fields(kind)}))


def with_group(pattern: str) -> str:
    """Validate a regular expression with one or more groups, or raise ValueError."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    if not groups:
        raise ValueError("has no group: put parentheses around the part to extract")
    return pattern


def validate_memory_amount(text: str) -> str:
    """Validate an amount of memory in DuckDB's syntax, or raise ValueError."""
    if not re.fullmatch(r"\s*\d+(\.\d+)?\s*([KMGT]i?B|B|%)\s*", text, re.IGNORECASE):
        raise ValueError(f"must be an amount of memory such as 4GB or 512MB: {text!r}")
    return text


def time_zone(name: str) -> str:
    """Validate an IANA time zone name, or raise ValueError."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"is not an IANA time zone such as Europe/Berlin: {name!r}") from error
    return name


def cron_line(line: str) -> str:
    """Validate a cron expression that matches some date, or raise ValueError."""
    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(line, datetime(2026, 1, 1)))
    except (CronSimError, StopIteration) as error:
        raise ValueError(
            f"is not a cron line such as 30 2 * * * (minute, hour, day, month, weekday): {line!r}"
        ) from error
    return line


def job_key(text: str) -> str:
    """Validate the format of job ids on servers (a jobid_name or a regular expression), or raise ValueError."""
    from iosig.transforms.job_keys import to_regex

    try:
        to_regex(text)
    except re.error as error:
        raise ValueError(f"is neither a jobid_name nor a regular expression: {error}") from error
    return text


def positive(values: dict[str, float]) -> dict[str, float]:
    """Validate that all rates are positive and finite, or raise ValueError."""
    invalid = [name for name, value in values.items() if not 0 < value < float("inf")]
    if invalid:
        raise ValueError(f"must be above 0 and finite: {', '.join(invalid)}")
    return values


def _has_password(uri: str) -> bool:
    """Return whether a URL contains a secret; raise ValueError for an invalid URL."""
    try:
        split = urlsplit(uri)
        return split.password is not None or any(word in split.query for word in _SECRETS)
    except ValueError as error:
        raise ValueError("is not a URI") from error


def without_password(uri: str) -> str:
    """Validate a catalogue server's URL without a password, or raise ValueError."""
    if _has_password(uri):
        raise ValueError(
            "contains a password: move it to PGPASSWORD or ~/.pgpass (libpq), or to "
            "PYICEBERG_CATALOG__IOSIG__CREDENTIAL or ~/.pyiceberg.yaml (pyiceberg)"
        )
    return uri


def database_url(url: str) -> str:
    """Validate a database URL without credentials, or raise ValueError."""
    if _has_password(url):
        raise ValueError("contains a password: move it to a MySQL option file, and add ?read_default_file=~/.my.cnf")
    if "://" not in url:
        raise ValueError("is not a URL such as mysql://reader@lmt.example.org/filesystem_scratch")
    return url


def http_url(url: str) -> str:
    """Validate an HTTP server URL without credentials, or raise ValueError."""
    if _has_password(url):
        raise ValueError("contains a password: use a token in the environment variable IOSIG_PROMETHEUS_TOKEN")
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname:
        raise ValueError("is not a URL such as http://prometheus.example.org:9090")
    return url


_MATCHER = r"""[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*\""""


def label_matchers(text: str) -> str:
    """Validate PromQL label matchers, or raise ValueError."""
    if text and not re.fullmatch(rf"\s*{_MATCHER}\s*(?:,\s*{_MATCHER}\s*)*", text):
        raise ValueError('must be label matchers such as job="lustre",fs=~"scratch.*"')
    return text


def list_fields(model: Any) -> dict[str, Any]:
    """Return the field annotations of a section by name; empty for other types."""
    fields = getattr(model, "model_fields", {})
    return {name: field.annotation for name, field in fields.items()}
