"""Send notices of problems by webhook and mail, once when a problem begins and once when it ends.

The warehouse records sent notices. A notice that could not be sent is sent again with the next run.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from email.message import EmailMessage
from typing import Any

from iosig.answers.status.condition import read_condition
from iosig.answers.status.problems import Problem, find_problems
from iosig.settings.model import AlertSettings, Settings
from iosig.warehouse.errors import GateFailed, IosigError, NothingToDo
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.external.http import RequestError, fetch
from iosig.warehouse.external.processes import run
from iosig.warehouse.printable import one_line
from iosig.warehouse.store.store import Store, put_document, read_cache

_NOTICES_FILE = "notices.json"
#: name and size of a file that reserves space, so that a notice of a full disk can be recorded on that disk
_ROOM, _ROOM_BYTES = "notices.room", 64 << 10
_TIMEOUTS = Timeouts(timeout_s=20.0, total_timeout_s=60.0)
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that a problem of a warehouse has begun or ended, with the time and a message."""

    warehouse: str
    problem: str
    state: str
    since: str
    at: str
    sentence: str

    @property
    def line(self) -> str:
        """Warehouse, state, time and message in one line."""
        text = self.sentence if self.state == "begun" else f"resolved: {self.sentence}"
        return one_line(f"iosig, {self.warehouse}: {text}")


@contextmanager
def telling(store: Store, settings: Settings, warn: Callable[[str], object]) -> Iterator[None]:
    """Send notices after a block, even if it fails; warn of notices that could not be sent."""
    failure: Exception | None = None
    require_own_sendmail(settings)
    if _is_heard(settings) and store.exists and not store.files.mark(_ROOM):
        with suppress(OSError):
            store.files.put(_ROOM, bytes(_ROOM_BYTES))
    try:
        yield
    except NothingToDo:
        raise
    except Exception as error:
        failure = error
        raise
    finally:
        try:
            faults = send_notices(store, settings, failure)
        except (IosigError, OSError) as error:
            # an earlier failure of the block takes precedence over this error
            faults = [f"The state of the warehouse could not be determined: {error}"]
        for fault in faults:
            warn(fault)


def send_notices(store: Store, settings: Settings, failure: Exception | None = None) -> list[str]:
    """Send notices about the current state of a warehouse; return delivery errors.

    failure: the error of the last run, if it failed. Does nothing without recipients in the settings.
    """
    if not _is_heard(settings):
        return []
    condition = read_condition(store, settings)
    problems = find_problems(condition, settings.alerts)
    if failure is not None and not isinstance(failure, GateFailed):
        problems.append(Problem("run", f"The last run failed: {str(failure).partition(chr(10))[0]}"))
    return tell(store, settings.alerts, problems, condition.at)


def tell(store: Store, settings: AlertSettings, problems: Sequence[Problem], at: datetime) -> list[str]:
    """Send notices of problems that have begun or ended since the last notices; return delivery errors."""
    sent: dict[str, dict[str, str]] = read_cache(store, _NOTICES_FILE, dict) or {}
    failures: list[str] = []
    for notice in list(_notices(store, sent, problems, at)):
        failed = list(_sent(settings, notice))
        failures += failed
        if failed:
            continue
        if notice.state == "begun":
            sent[notice.problem] = {"since": notice.since, "sentence": notice.sentence}
        else:
            del sent[notice.problem]
        _note(store, sent)
    return failures


def require_own_sendmail(settings: Settings) -> None:
    """Raise UsageError if other users could have changed the mail program in the settings file."""
    if settings.alerts.mail_to and "sendmail" in settings.alerts.model_fields_set:
        settings.require_own_file("alerts.sendmail")


def _is_heard(settings: Settings) -> bool:
    """Return whether the settings name a recipient."""
    return bool(settings.alerts.mail_to or os.environ.get(settings.alerts.webhook_variable))


def _note(store: Store, sent: dict[str, dict[str, str]]) -> None:
    """Record sent notices; if the disk is full, in the reserved space."""
    try:
        put_document(store, _NOTICES_FILE, sent)
    except OSError:
        store.files.remove(_ROOM)
        put_document(store, _NOTICES_FILE, sent)


def _notices(
    store: Store, sent: dict[str, dict[str, str]], problems: Sequence[Problem], at: datetime
) -> Iterator[Notice]:
    warehouse, now = store.address, at.isoformat(timespec="seconds")
    for problem in problems:
        if problem.name not in sent:
            yield Notice(warehouse, problem.name, "begun", now, now, problem.sentence)
    current_names = {problem.name for problem in problems}
    for name, notice in sent.items():
        if name not in current_names:
            yield Notice(warehouse, name, "over", notice["since"], now, notice["sentence"])


def _sent(settings: AlertSettings, notice: Notice) -> Iterator[str]:
    """Send a notice to each recipient; yield delivery errors, with secrets removed."""
    url = os.environ.get(settings.webhook_variable)
    if url:
        document: dict[str, Any] = {"text": notice.line} if settings.webhook_format == "slack" else asdict(notice)
        if fault := _post_document(url, document):
            yield f"The webhook of {settings.webhook_variable} rejected the notice: {fault}."
    if settings.mail_to and (fault := _send_mail(settings, notice)):
        yield f"{settings.sendmail} rejected the notice: {fault}."


def _post_document(url: str, document: dict[str, Any]) -> str | None:
    """Post a document; return the error without the address, which may be secret."""
    try:
        response = fetch("POST", url, _TIMEOUTS, None, headers=_JSON, content=json.dumps(document).encode())
    except RequestError as error:
        return type(error.__cause__).__name__ if error.has_detail else f"it {error}"
    return None if 200 <= response.status < 300 else f"HTTP status {response.status}"


def _send_mail(settings: AlertSettings, notice: Notice) -> str | None:
    message = EmailMessage()
    message["To"] = ", ".join(settings.mail_to)
    # names from inputs may contain line breaks, which headers must not
    message["Subject"] = one_line(" ".join(f"iosig: {notice.problem} {notice.state}".split()))
    message.set_content(f"{notice.line}\n\nSince {notice.since}.\n", cte="8bit")
    try:
        result = run([str(settings.sendmail), "-t", "-oi"], timeout_s=_TIMEOUTS.timeout_s, content=message.as_bytes())
    except subprocess.TimeoutExpired:
        return f"no exit within {_TIMEOUTS.timeout_s:g} s"
    except OSError as error:
        return type(error).__name__
    return None if result.returncode == 0 else f"exit code {result.returncode}"
