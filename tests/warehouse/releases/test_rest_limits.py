"""Test REST catalogues that are silent, drip or redirect: a timeout ends the request, and no token is forwarded."""

from __future__ import annotations

import json
import time

import pytest

from iosig.warehouse.errors import MachineFault
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.releases import rest
from iosig.warehouse.releases.servers import Server
from tests.hostile_servers import http_server, tcp_server

TOKEN = "token-of-the-test"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "_TIMEOUTS", Timeouts(timeout_s=0.3, total_timeout_s=1.0))
    monkeypatch.setenv("PYICEBERG_CATALOG__IOSIG__TOKEN", TOKEN)


@pytest.mark.parametrize(
    ("drip", "said"), [(None, r"did not answer within 0\.3 s"), (b" ", "did not complete its answer within 1 s")]
)
def test_silent_or_dripping_server_is_reported(drip: bytes | None, said: str) -> None:
    begun_s = time.monotonic()
    with tcp_server(_HEAD, drip) as port, pytest.raises(MachineFault, match=said):
        rest.open_rest_catalogue(Server("rest", f"http://127.0.0.1:{port}"))
    assert time.monotonic() - begun_s < 15


def test_redirects_to_another_server_are_not_followed() -> None:
    empty = json.dumps({"defaults": {}, "overrides": {}}).encode()
    with http_server(lambda _: (200, {}, empty)) as other:
        ways = (
            lambda _: (307, {"Location": f"{other.url}/v1/config"}, b""),
            lambda _: (200, {}, json.dumps({"defaults": {}, "overrides": {"uri": other.url}}).encode()),
        )
        for answer in ways:
            with (
                http_server(answer) as server,
                pytest.raises(MachineFault, match=f"another server, {other.url}"),
                rest.convert_errors(wanted := Server("rest", server.url)),
            ):
                rest.open_rest_catalogue(wanted).list_namespaces()
            assert server.requests[0][2]["authorization"] == f"Bearer {TOKEN}"
    assert other.requests == []


def test_valid_server_is_read() -> None:
    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        found = {"namespaces": [["published"]]} if "namespaces" in path else {"defaults": {}, "overrides": {}}
        return 200, {"Content-Type": "application/json"}, json.dumps(found).encode()

    with http_server(answer) as server:
        assert rest.open_rest_catalogue(Server("rest", server.url)).list_namespaces() == [("published",)]
