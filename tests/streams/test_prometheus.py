"""Samples of a Prometheus server land once, even if a call is killed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from iosig.settings.model import Settings
from iosig.streams import prometheus as live
from iosig.streams.landing import Arrival, ReadOptions, land_paths
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store import landing, ledger
from iosig.warehouse.store.store import Store
from tests.fake_prometheus import FakePrometheus, fake_prometheus
from tests.nights import run_night

pytestmark = pytest.mark.slow

START = 1_772_366_400


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    with fake_prometheus() as server:
        yield server


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Control the current time, in seconds since the start."""
    told = SimpleNamespace(second=0.0)
    monkeypatch.setattr(live, "time", SimpleNamespace(time=lambda: START + told.second))
    return told


def scrape(fake: FakePrometheus, seconds: range) -> None:
    for second in seconds:
        fake.add("lustre_job_read_bytes_total", {START + second: str(second // 20)}, jobid="1")
        fake.add("lustre_job_stats_total", {START + second: str(second)}, jobid="1", operation="open")


def land(store: Store, url: str, since: datetime | None = None, **told: Any) -> list[Arrival]:
    asked = {"chunk_s": 100, "delay_s": 5, "presets": ["lustre"], **told}
    settings = Settings.model_validate({"prometheus": asked, "live": {"backfill_days": 500 / 86_400}})
    return [*live.land_prometheus(store, settings, url, ReadOptions(), since=since)]


def rows(store: Store, table: Table) -> pl.DataFrame:
    paths = ledger.read(store).files.filter(pl.col("table") == table.name)["path"]
    return pl.concat([pl.read_parquet(store.local(path)) for path in paths]).sort("scraped_at")


def seconds(frame: pl.DataFrame) -> list[int]:
    found: list[int] = (frame["scraped_at"].dt.epoch("s") - START).to_list()
    return found


def test_each_chunk_of_time_lands_once_and_the_next_call_continues(
    fake: FakePrometheus, clock: SimpleNamespace, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    scrape(fake, range(110, 300, 10))
    clock.second = 295
    assert [one.row_count > 0 for one in land(store, fake.url)] == [True] * 2
    asked = [(int(query["time"]) - START) for query in fake.queries]
    assert sorted(set(asked)) == [-105, -5, 95, 195, 290]
    scrape(fake, range(300, 600, 10))
    clock.second = 296
    assert [one.line() for one in land(store, fake.url)] == [f"{fake.url}: no new data"]
    clock.second = 600
    assert len(land(store, fake.url)) == 3
    assert seconds(rows(store, SCRAPES)) == [*range(110, 600, 10)]
    told = rows(store, COUNTER_SAMPLES)
    assert told["total_open_count"].to_list() == seconds(told) == [*range(110, 600, 10)]
    assert told["total_read_bytes"].to_list() == [second // 20 for second in seconds(told)]
    # --since queries the time again
    assert len(land(store, fake.url, datetime.fromtimestamp(START + 500, UTC))) == 1


def test_killed_call_neither_loses_nor_duplicates_samples(
    fake: FakePrometheus, clock: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    store = Store(tmp_path)
    scrape(fake, range(10, 250, 10))
    for second in (180, 255):
        clock.second = second
        for place in ("land_batches", "write_landing"):
            with monkeypatch.context() as patched:
                patched.setattr(landing, place, killed)
                with pytest.raises(KeyboardInterrupt):
                    land(store, fake.url)
        land(store, fake.url)
    assert seconds(rows(store, SCRAPES)) == [*range(10, 250, 10)]


def test_query_range_shrinks_when_an_answer_is_too_large(
    fake: FakePrometheus, clock: SimpleNamespace, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    scrape(fake, range(10, 250, 10))
    clock.second, fake.most_samples = 255, 7
    assert not any(one.refusal for one in land(store, fake.url, chunk_s=250))
    assert seconds(rows(store, SCRAPES)) == [*range(10, 250, 10)]
    fake.most_samples = 1
    scrape(fake, range(250, 500, 10))
    clock.second = 505
    (refused,) = land(store, fake.url)
    assert "Set prometheus.chunk_s lower" in refused.line()


def test_failed_query_is_reported_and_retried(fake: FakePrometheus, clock: SimpleNamespace, tmp_path: Path) -> None:
    store = Store(tmp_path)
    clock.second = 255
    for _ in range(2):
        (refused,) = land(store, fake.url, presets=["gpfs"])
        assert "has no metrics" in refused.line()
    fake.status = 502
    (refused,) = land(store, fake.url)
    assert refused.line() == f"{fake.url}: refused. {fake.url} answered 502: it is broken. {_REMEDY}"
    fake.status = 200
    scrape(fake, range(10, 250, 10))
    assert len(land(store, fake.url)) == 3
    assert seconds(rows(store, SCRAPES)) == [*range(10, 250, 10)]


_REMEDY = "Check that Prometheus is running, and that the address is that of its web page."


@pytest.mark.long
@pytest.mark.usefixtures("quick_checks")
def test_chunks_of_time_give_the_same_deltas_as_one_query(
    fake: FakePrometheus, clock: SimpleNamespace, tmp_path: Path
) -> None:
    draw, counts, used = random.Random(5), dict[tuple[str, str], int](), dict[tuple[str, str], int]()
    # an hour before midnight and an hour after it
    for second in range(39_600, 46_800, 10):
        for key in [(f"fs1-OST{target:04x}", str(job)) for target in range(2) for job in range(9)]:
            if draw.random() < (0.2 if int(key[1]) % 2 else 0.002):
                counts[key], used[key] = counts.get(key, 0) + draw.randrange(1, 10**9), second
            elif second - used.get(key, second) > 600:
                counts.pop(key, None)
            if key in counts and draw.random() < 0.99:
                at = START + second
                fake.add("lustre_job_write_bytes_total", {at: str(counts[key])}, target=key[0], jobid=key[1])
    clock.second = 46_900
    pieces, whole = Store(tmp_path / "pieces"), Store(tmp_path / "whole")
    land(pieces, fake.url, datetime.fromtimestamp(START + 39_500, UTC), chunk_s=997)
    _, answer = fake.answer('{__name__="lustre_job_write_bytes_total"}[9000s]', START + 46_900)
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    assert [
        one.has_refusals for one in land_paths(whole, Settings(), [str(tmp_path / "answer.json")], ReadOptions())
    ] == [False]
    found = []
    for store in (pieces, whole):
        with open_release(store, run_night(store)) as connection:
            rises = "from counter_deltas order by target, job_key, interval_ended_at"
            found.append(connection.sql(rises).pl())
    assert found[0].drop("flag").equals(found[1].drop("flag"))
    assert found[0].height > 1_000
    # a row at the start of a chunk shows that an idle entry still existed
    flags = pl.DataFrame({"pieces": found[0]["flag"], "whole": found[1]["flag"]})
    differing = flags.filter(pl.col("pieces").ne_missing(pl.col("whole"))).unique().rows()
    assert {*differing} <= {(None, "unclear")}


def test_configured_metrics_are_queried(fake: FakePrometheus, clock: SimpleNamespace, tmp_path: Path) -> None:
    fake.add("site:read:bytes", {START + 10: "7"}, fs="scratch")
    clock.second = 50
    settings = Settings.model_validate(
        {"counters": {"columns": {"total_read_bytes": "site:read:bytes"}}, "prometheus": {"presets": []}}
    )
    store = Store(tmp_path)
    found = [
        *live.land_prometheus(store, settings, fake.url, ReadOptions(), since=datetime.fromtimestamp(START - 120, UTC))
    ]
    assert found[-1].refusal is not None, "it is not two minutes old"
    clock.second = 150
    (landed,) = live.land_prometheus(store, settings, fake.url, ReadOptions())
    assert landed.row_count == 2
    assert rows(store, COUNTER_SAMPLES).select("filesystem", "total_read_bytes").rows() == [("scratch", 7)]
