"""Test the client of Prometheus' HTTP API: each sample is read once at its time, and failures are reported."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.counters.prometheus_http import PRESETS, TOKEN_VARIABLE, ResponseTooLargeError, Server
from iosig.warehouse.sources.protocol import Batch, Reading
from tests.fake_prometheus import FakePrometheus, fake_prometheus

T = 1_772_366_400
NAMES = ("lustre_read_bytes_total", "lustre_job_write_bytes_total")


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    with fake_prometheus() as server:
        server.add("lustre_read_bytes_total", {T + second + 0.25: str(second) for second in range(0, 40, 10)})
        server.add("lustre_job_write_bytes_total", {T + 10.25: "5", T + 20.0: "7"}, jobid="1", fs="other")
        server.add("up", {T + 10.0: "1"})
        yield server


def read(fake: FakePrometheus, since_s: int, until_s: int, matchers: str = "") -> list[Batch]:
    return Server.from_url(fake.url, matchers).read(NAMES, T + since_s, T + until_s, Reading())


def samples(batches: list[Batch]) -> list[tuple[float, int | None, int | None]]:
    (rows,) = [batch.rows for batch in batches if batch.table == COUNTER_SAMPLES]
    at = pl.col("sampled_at").dt.epoch("us") / 1e6 - T
    return rows.select(at, "total_read_bytes", "total_written_bytes").rows()


def test_presets_contain_metrics_of_known_exporters() -> None:
    assert {"lustre_job_read_bytes_total", "lustre_stats_total"} <= set(PRESETS["lustre"])
    assert "gpfs_perf_write_bytes_total" in PRESETS["gpfs"]


def test_samples_keep_their_timestamps(fake: FakePrometheus) -> None:
    batches = read(fake, 0, 30)
    assert samples(batches) == [
        (0.25, 0, None),
        (10.25, 10, None),
        (10.25, None, 5),
        (20.0, None, 7),
        (20.25, 20, None),
    ]
    assert [batch.rows.height for batch in batches if batch.table == SCRAPES] == [5]
    assert {query["partial_response"] for query in fake.queries} == {"false"}


@pytest.mark.parametrize("is_open", [True, False])
def test_sample_at_start_of_range_belongs_to_previous_range(fake: FakePrometheus, is_open: bool) -> None:
    fake.is_open = is_open
    assert (20.0, None, 7) in samples(read(fake, 10, 20))
    assert samples(read(fake, 20, 30)) == [(20.25, 20, None)]
    assert read(fake, 31, 50) == []


def test_matchers_are_sent_to_server(fake: FakePrometheus) -> None:
    assert samples(read(fake, 0, 30, 'fs="other"')) == [(10.25, None, 5), (20.0, None, 7)]


def test_too_many_samples_and_server_errors_are_distinguished(fake: FakePrometheus) -> None:
    fake.most_samples = 1
    with pytest.raises(
        ResponseTooLargeError, match=r"answered 422: query processing would load too many samples.*chunk_s"
    ):
        read(fake, 0, 30)
    fake.status = 500
    with pytest.raises(InputRefused, match=r"answered 500: it is broken\.") as told:
        read(fake, 0, 30)
    assert not isinstance(told.value, ResponseTooLargeError)


def test_truncated_response_is_refused(fake: FakePrometheus) -> None:
    fake.cut_bytes = 20
    with pytest.raises(InputRefused, match="not valid JSON"):
        read(fake, 0, 30)


def test_client_sends_password_or_token_without_logging_them(
    fake: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.token = "Bearer of the test alone"
    with pytest.raises(InputRefused, match=rf"answered 401.*Set {TOKEN_VARIABLE}"):
        read(fake, 0, 30)
    monkeypatch.setenv(TOKEN_VARIABLE, "of the test alone")
    assert samples(read(fake, 0, 30))
    fake.token = "Basic YW5uOm1pbmU="
    server = Server.from_url(fake.url.replace("//", "//ann:mine@"), "")
    assert server.read(NAMES, T, T + 30, Reading())
    assert server.url == fake.url


def test_invalid_or_unreachable_server_is_refused() -> None:
    with pytest.raises(UsageError, match="host is not the address"):
        Server.from_url("ftp://ann:mine@host", "")
    with pytest.raises(InputRefused, match=r"http://127\.0\.0\.1:1 fails: .*refused"):
        Server.from_url("http://127.0.0.1:1", "").read(NAMES, 0, 30, Reading())
