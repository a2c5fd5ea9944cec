"""Each problem is notified once when it begins and once when it ends, even if a delivery fails."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from iosig.answers.status.problems import Problem
from iosig.flows import notifications
from iosig.flows.notifications import tell, telling
from iosig.settings.model import AlertSettings, Settings
from iosig.warehouse.errors import GateFailed, MachineFault, NothingToDo
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.store.files import Folder
from iosig.warehouse.store.form import mark_form
from iosig.warehouse.store.store import Store
from tests.answers.status.conditions import DAY, NOON
from tests.hostile_servers import http_server, tcp_server
from tests.servers import is_over

LATE, DISK = Problem("late", "Two inputs wait."), Problem("disk", "It is full.")


@dataclass
class Hook:
    """A webhook on the loopback interface: the posted messages, and the status with which it answers."""

    url: str = ""
    posted: list[dict[str, str]] = field(default_factory=list)
    answer: int = 200


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    found = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(found.answer)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}/secret"
    monkeypatch.setenv("IOSIG_WEBHOOK_URL", found.url)
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "w")
    mark_form(store)
    return store


def test_problem_is_notified_when_it_begins_and_when_it_ends(store: Store, hook: Hook) -> None:
    settings = AlertSettings()
    for at, problems in ((NOON, [LATE]), (NOON + DAY, [LATE, DISK]), (NOON + 2 * DAY, [DISK]), (NOON + 3 * DAY, [])):
        assert tell(store, settings, problems, at) == []
        assert tell(store, settings, problems, at) == []
    assert [(one["problem"], one["state"], one["since"][:10], one["at"][:10]) for one in hook.posted] == [
        ("late", "begun", "2026-03-20", "2026-03-20"),
        ("disk", "begun", "2026-03-21", "2026-03-21"),
        ("late", "over", "2026-03-20", "2026-03-22"),
        ("disk", "over", "2026-03-21", "2026-03-23"),
    ]
    assert {one["warehouse"] for one in hook.posted} == {str(store.root)}
    tell(store, settings, [LATE], NOON + 4 * DAY)
    assert hook.posted[-1]["state"] == "begun", "it has come again"


def test_failed_notification_is_retried_on_the_next_run(store: Store, hook: Hook) -> None:
    hook.answer = 503
    (fault,) = tell(store, AlertSettings(), [LATE], NOON)
    assert fault == "The webhook of IOSIG_WEBHOOK_URL rejected the notice: HTTP status 503."
    hook.answer = 200
    assert tell(store, AlertSettings(), [LATE], NOON + DAY) == []
    assert len(hook.posted) == 2


def test_invalid_webhook_url_is_not_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://127.0.0.1:1/secret", "no address, secret", "http://[secret"):
        monkeypatch.setenv("IOSIG_WEBHOOK_URL", url)
        (fault,) = tell(store, AlertSettings(), [LATE], NOON)
        assert "secret" not in fault


def test_silent_slow_or_redirecting_webhook_fails_within_the_timeout(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "_TIMEOUTS", Timeouts(timeout_s=0.3, total_timeout_s=1.0))
    begun_s = time.monotonic()
    with tcp_server() as port:
        monkeypatch.setenv("IOSIG_WEBHOOK_URL", f"http://127.0.0.1:{port}/secret")
        (fault,) = tell(store, AlertSettings(), [LATE], NOON)
    assert fault.endswith("it did not answer within 0.3 s.")
    with tcp_server(b"HTTP/1.1 200 OK\r\n", b"X: 1\r\n") as port:
        monkeypatch.setenv("IOSIG_WEBHOOK_URL", f"http://127.0.0.1:{port}/secret")
        assert tell(store, AlertSettings(), [LATE], NOON)
    with (
        http_server(lambda _: (200, {}, b"")) as other,
        http_server(lambda _: (307, {"Location": f"{other.url}/hidden"}, b"")) as server,
    ):
        monkeypatch.setenv("IOSIG_WEBHOOK_URL", f"{server.url}/secret")
        (fault,) = tell(store, AlertSettings(), [LATE], NOON)
    assert fault.endswith(f"it redirects to another server, {other.url}, which is refused.")
    assert other.requests == []
    assert time.monotonic() - begun_s < 20


def test_hanging_mail_program_is_killed_with_its_children(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IOSIG_WEBHOOK_URL", raising=False)
    monkeypatch.setattr(notifications, "_TIMEOUTS", Timeouts(timeout_s=0.5, total_timeout_s=1.0))
    hanging = tmp_path / "sendmail"
    hanging.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child\nwait\n")
    hanging.chmod(0o755)
    (fault,) = tell(store, AlertSettings(mail_to=["ops@example.org"], sendmail=hanging), [LATE], NOON)
    assert fault.endswith("no exit within 0.5 s.")
    assert is_over(int((tmp_path / "child").read_text()))


def test_slack_format_posts_a_text(store: Store, hook: Hook) -> None:
    tell(store, AlertSettings(webhook_format="slack"), [LATE], NOON)
    assert hook.posted == [{"text": f"iosig, {store.root}: Two inputs wait."}]
    tell(store, AlertSettings(webhook_format="slack"), [], NOON)
    assert hook.posted[1] == {"text": f"iosig, {store.root}: resolved: Two inputs wait."}


def sendmail(folder: Path, ends_with: int = 0) -> Path:
    path = folder / "sendmail"
    path.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\ncat >> {folder}/mails\nexit {ends_with}\n')
    path.chmod(0o755)
    return path


def test_mail_is_sent_through_sendmail_without_header_injection(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IOSIG_WEBHOOK_URL", raising=False)
    settings = AlertSettings(mail_to=["ops@example.org", "night@example.org"], sendmail=sendmail(tmp_path))
    hostile = Problem("silent a\nBcc: everybody@example.org", "Nothing lands.")
    assert tell(store, settings, [hostile], NOON) == []
    mail = (tmp_path / "mails").read_text()
    assert "To: ops@example.org, night@example.org" in mail
    assert not [line for line in mail.splitlines() if line.startswith("Bcc")]
    assert "Nothing lands." in mail
    assert (tmp_path / "asked").read_text() == "-t -oi\n"
    broken = AlertSettings(mail_to=["ops@example.org"], sendmail=sendmail(tmp_path, 75))
    assert tell(store, broken, [hostile, LATE], NOON) == [f"{broken.sendmail} rejected the notice: exit code 75."]
    missing = AlertSettings(mail_to=["ops@example.org"], sendmail=tmp_path / "none")
    assert "FileNotFoundError" in tell(store, missing, [hostile, LATE], NOON)[0]


def test_truncated_notification_state_is_recreated(store: Store, hook: Hook) -> None:
    (store.root / "notices.json").write_text("{torn")
    assert tell(store, AlertSettings(), [LATE], NOON) == []
    assert len(hook.posted) == 1


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (None, []),
        (NothingToDo("all is done"), []),
        (MachineFault("No space.\nMore."), ["The last run failed: No space."]),
        (KeyError("a bug"), ["The last run failed: 'a bug'"]),
        (GateFailed("refused"), []),
    ],
)
def test_outcome_of_a_run_is_notified(store: Store, hook: Hook, failure: Exception | None, told: list[str]) -> None:
    warned: list[str] = []

    def run() -> None:
        with telling(store, Settings(), warned.append):
            if failure:
                raise failure

    if failure:
        with pytest.raises(type(failure)):
            run()
    else:
        run()
    assert ([one["sentence"] for one in hook.posted], warned) == (told, [])


def test_warehouse_is_not_read_without_a_recipient(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IOSIG_WEBHOOK_URL", raising=False)

    def asked(*_: object) -> Callable[..., None]:
        raise AssertionError("the warehouse was read")

    monkeypatch.setattr(notifications, "read_condition", asked)
    with telling(store, Settings(), pytest.fail):
        pass
    assert not (store.root / "notices.json").exists()


def test_state_is_saved_in_reserved_space_when_the_disk_is_full(
    store: Store, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store.root / "landed").mkdir()
    room, put = store.root / "notices.room", Folder.put

    def full(files: Folder, name: str, content: bytes) -> None:
        if room.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        put(files, name, content)

    def run() -> None:
        with telling(store, Settings(), pytest.fail):
            assert room.stat().st_size > 1 << 14
            monkeypatch.setattr(Folder, "put", full)
            raise MachineFault("no space left on the disk")

    with pytest.raises(MachineFault):
        run()
    monkeypatch.undo()
    monkeypatch.setenv("IOSIG_WEBHOOK_URL", hook.url)
    assert tell(store, AlertSettings(), [], NOON) == []
    told = [(one["problem"], one["state"]) for one in hook.posted if one["problem"] == "run"]
    assert told == [("run", "begun"), ("run", "over")]
