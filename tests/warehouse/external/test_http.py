"""Test HTTP requests: every request ends within its timeouts, and no request reaches an unconfigured server."""

from __future__ import annotations

import io
import time

import pytest

from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.external.http import RequestError, RequestTimeoutError, fetch, get_origin
from tests.hostile_servers import http_server, tcp_server

SHORT = Timeouts(timeout_s=0.3, total_timeout_s=1.0)
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("start", "drip", "said"),
    [
        (b"", None, r"did not answer within 0\.3 s"),
        (b"", b"H", "(complete its answer within 1 s|fails: )"),
        (HEAD, b"X-Drip: 1\r\n", "(complete its answer within 1 s|fails: )"),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b"x", "did not complete its answer within 1 s"),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", None, r"did not answer within 0\.3 s"),
    ],
    ids=["silent", "no HTTP", "dripping header", "dripping body", "silent body"],
)
def test_request_ends_for_any_behavior_of_server(start: bytes, drip: bytes | None, said: str) -> None:
    begun_s = time.monotonic()
    with tcp_server(start, drip) as port, pytest.raises(RequestError, match=said):
        fetch("GET", f"http://127.0.0.1:{port}/", SHORT, io.BytesIO())
    assert time.monotonic() - begun_s < 10


def test_timeout_is_distinguished_from_other_failures() -> None:
    with tcp_server() as port, pytest.raises(RequestTimeoutError):
        fetch("GET", f"http://127.0.0.1:{port}/", SHORT, None)
    with pytest.raises(RequestError, match="Connection refused") as failed:
        fetch("GET", "http://127.0.0.1:1/", SHORT, None)
    assert not isinstance(failed.value, RequestTimeoutError)


def test_redirect_on_same_server_is_followed_with_credentials() -> None:
    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        return (302, {"Location": "/new"}, b"") if path == "/old" else (200, {}, b"body")

    with http_server(answer) as server:
        sink = io.BytesIO()
        assert fetch("GET", f"{server.url}/old", SHORT, sink, headers={"Authorization": "token"}).status == 200
    assert sink.getvalue() == b"body"
    assert [(path, headers["authorization"]) for _, path, headers in server.requests] == [
        ("/old", "token"),
        ("/new", "token"),
    ]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_server_is_refused(status: int) -> None:
    with http_server(lambda _: (200, {}, b"")) as other:
        target = f"{other.url}/steal"
        with (
            http_server(lambda _: (status, {"Location": target}, b"")) as server,
            pytest.raises(RequestError, match=f"redirects to another server, {other.url}, which is refused"),
        ):
            fetch("POST", server.url, SHORT, io.BytesIO(), headers={"Authorization": "token"}, content=b"{}")
    assert other.requests == []


def test_scheme_and_port_identify_the_server() -> None:
    for target in ("https://127.0.0.1", "//127.0.0.1:1", "http://127.0.0.1:1@evil.example/", "http://evil\x1b[2J/"):
        with (
            http_server(lambda _, target=target: (302, {"Location": target}, b"")) as server,  # type: ignore[misc]
            pytest.raises(RequestError) as failed,
        ):
            fetch("GET", server.url, SHORT, None)
        assert "\x1b" not in str(failed.value)


def test_number_of_redirects_is_limited() -> None:
    with (
        http_server(lambda path: (302, {"Location": path + "x"}, b"")) as server,
        pytest.raises(RequestError, match="redirects more than 5 times"),
    ):
        fetch("GET", server.url + "/", SHORT, None)


def test_origin_of_url_omits_default_port_and_user() -> None:
    assert get_origin("http://user:secret@Host:80/path?q") == get_origin("http://host") == "http://host"
    assert get_origin("https://[::1]:8443/x") == "https://[::1]:8443"
