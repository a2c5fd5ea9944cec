"""Test connections to LMT's database: a silent or slowly dripping server is refused after a timeout."""

from __future__ import annotations

import time

import pytest

from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.sources.polls.lmt_connections import create_engine_for_url
from iosig.warehouse.sources.polls.lmt_queries import read_url
from iosig.warehouse.sources.protocol import Reading
from tests.hostile_servers import tcp_server

SHORT = Timeouts(timeout_s=0.3, total_timeout_s=1.0)
#: header of a packet of 200 bytes
PACKET = b"\xc8\x00\x00\x00"
#: complete handshake of MariaDB that requests mysql_native_password
HANDSHAKE = (
    b"\x0a10.6.1-MariaDB\x00" + b"\x01\x00\x00\x00" + b"a" * 8 + b"\x00" + b"\xff\xf7" + b"\x21" + b"\x02\x00"
    b"\xff\x81" + b"\x15" + b"\x00" * 10 + b"b" * 12 + b"\x00" + b"mysql_native_password\x00"
)
OK = b"\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"


def told_of(start: bytes, drip: bytes | None) -> str:
    begun_s = time.monotonic()
    with tcp_server(start, drip) as port, pytest.raises(InputRefused) as refused:
        read_url(f"mysql://ann:secret@127.0.0.1:{port}/lmt", Reading(time_zone="UTC"), None, SHORT)
    assert time.monotonic() - begun_s < 10
    assert "secret" not in str(refused.value)
    # the cause is the database's error, which makes a follower retry
    assert refused.value.__cause__ is not None
    return str(refused.value)


def test_silent_server_is_refused_after_timeout() -> None:
    assert "The database did not answer within 0.3 s." in told_of(b"", None)
    assert "live.timeout_s" in told_of(b"", None)


def test_dripping_server_is_refused_after_total_timeout() -> None:
    said = told_of(PACKET, b"x")
    assert "The database did not complete its answer within 1 s." in said
    assert "live.total_timeout_s" in said


def test_server_stalling_after_handshake_is_refused() -> None:
    packet = len(HANDSHAKE).to_bytes(3, "little") + b"\x00" + HANDSHAKE
    assert "did not answer within 0.3 s" in told_of(packet + OK, None)
    # the reply to the first statement is a packet that never ends
    assert "did not complete its answer within 1 s" in told_of(packet + OK + b"\xff\xff\xff\x01", b"x")


def test_server_of_another_protocol_is_refused() -> None:
    assert "protocol" in told_of(b"\x08\x00\x00\x00xxxxxxxx", None)
    assert "The database cannot be read" in told_of(b"\x01\x00\x00\x00\x0a", None)


def test_closed_port_and_unsupported_drivers_are_refused() -> None:
    with pytest.raises(InputRefused, match="unreachable"):
        read_url("mysql://ann@127.0.0.1:1/lmt", Reading(time_zone="UTC"), None, SHORT)
    for url in ("postgresql://127.0.0.1/lmt", "nothing", "mysql+mysqldb://127.0.0.1/lmt"):
        with pytest.raises(UsageError, match="mysql://user:password@host/database"):
            create_engine_for_url(url, SHORT)
