"""Control characters from servers, files and names never reach a terminal, log, notification or artifact."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from iosig.answers.status.problems import Problem
from iosig.cli import printing
from iosig.cli.main import _show_traceback
from iosig.flows import notifications
from iosig.settings.model import AlertSettings
from iosig.warehouse.errors import MachineFault
from iosig.warehouse.store.form import mark_form
from iosig.warehouse.store.store import Store
from tests.answers.status.conditions import NOON
from tests.hostile_servers import http_server, tcp_server
from tests.nights import Cli, write_small_site

#: title change, clear screen, C1, right-to-left override
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202egpj"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def controls_in(text: str) -> list[str]:
    return _CONTROL.findall(text)


def test_check_finds_control_characters() -> None:
    assert len(controls_in(HOSTILE)) == 5


def test_prometheus_error_is_sanitized(cli: Cli, tmp_path: Path) -> None:
    answer = json.dumps({"status": "error", "error": f"broken {HOSTILE}"}).encode()
    with http_server(lambda _: (500, {}, answer)) as server:
        code, out, err = cli("--warehouse", tmp_path / "w", "land", "--prometheus", server.url)
    assert code == 3
    assert "answered 500: broken" in err
    assert controls_in(out + err) == []


@pytest.mark.extra
def test_catalogue_server_error_is_sanitized(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("psycopg2", reason="the extra `postgresql` is not installed")
    fields = f"SFATAL\0C28000\0Mno {HOSTILE}\0\0".encode()
    refusal = b"E" + (len(fields) + 4).to_bytes(4, "big") + fields
    write_small_site(tmp_path / "site")
    with tcp_server(refusal) as port:
        uri = f"postgresql://ann@127.0.0.1:{port}/iosig?sslmode=disable&connect_timeout=2"
        (tmp_path / "iosig.toml").write_text(f'[catalogue]\nkind = "postgresql"\nuri = "{uri}"\n')
        ours = ("--settings", tmp_path / "iosig.toml", "--warehouse", tmp_path / "w")
        cli(*ours, "land", tmp_path / "site")
        code, out, err = cli(*ours, "run", "--inline")
    assert code == 6
    assert "does not answer" in err
    assert controls_in(out + err) == []


def test_file_names_are_sanitized(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / f"{HOSTILE}.csv").write_text("time_s,write_bytes\n0,1\n1,2\n2,9\n")
    (tmp_path / "inbox" / f"x{HOSTILE}").write_text("nothing that is known")
    code, out, err = cli("--warehouse", tmp_path / "w", "land", tmp_path / "inbox")
    assert code == 0
    assert controls_in(out + err) == []
    code, out, err = cli("--warehouse", tmp_path / "w", "land", tmp_path / f"none{HOSTILE}")
    assert code == 2
    assert controls_in(out + err) == []


def test_notifications_are_sanitized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "w")
    mark_form(store)
    (tmp_path / "sendmail").write_text(f"#!/bin/sh\ncat >> {tmp_path}/mails\n")
    (tmp_path / "sendmail").chmod(0o755)
    settings = AlertSettings(mail_to=["ops@example.org"], sendmail=tmp_path / "sendmail", webhook_format="slack")
    monkeypatch.delenv(settings.webhook_variable, raising=False)
    hostile = Problem(f"silent {HOSTILE}", f"Nothing lands of {HOSTILE}.")
    assert notifications.tell(store, settings, [hostile], NOON) == []
    assert notifications.tell(store, settings, [hostile], NOON) == []
    mail = (tmp_path / "mails").read_text()
    assert "Nothing lands of" in mail
    assert mail.count("Subject:") == 1
    assert controls_in(mail.replace("\r", "")) == []


@pytest.mark.slow
def test_message_of_a_failed_prefect_run_is_sanitized() -> None:
    from iosig.flows.flow_runs import make_failed_state

    assert controls_in(str(make_failed_state(MachineFault(f"The server said {HOSTILE}")).message)) == []


def test_traceback_is_sanitized(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        _show_traceback(*sys.exc_info())
    assert "ValueError" in stderr.getvalue()
    assert controls_in(stderr.getvalue()) == []


class _Screen(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def screen_of(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Make stdout a terminal, and return the bytes that it receives."""
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", _Screen(shown, encoding="utf-8", write_through=True))
    return shown


def test_csv_is_sanitized_on_a_terminal_and_raw_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    stream = printing.binary_stdout("csv")
    for byte in f"größe {HOSTILE}\n".encode():
        stream.write(bytes([byte]))
    assert screen.getvalue().decode().startswith("größe ")
    assert controls_in(screen.getvalue().decode()) == []
    piped = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(piped))
    printing.binary_stdout("csv").write(HOSTILE.encode())
    assert piped.getvalue() == HOSTILE.encode()


def test_style_is_kept_and_escapes_in_text_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    printing.say(f"bad {HOSTILE}", fg="red")
    assert screen.getvalue().decode().startswith("\x1b[31mbad ")
    assert screen.getvalue().count(b"\x1b") == 2


def test_progress_is_sanitized(capsys: pytest.CaptureFixture[str]) -> None:
    printing.progress(f"land {HOSTILE}\nfaked line", 1, 0.1)
    said = capsys.readouterr().err
    assert controls_in(said) == []
    assert said.count("\n") == 1
