"""A real Prometheus server that scrapes an exporter is followed by a repeatedly killed command."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import polars as pl
import pytest

from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, SCRAPES
from iosig.warehouse.store import ledger
from iosig.warehouse.store.store import Store
from tests.servers import prometheus

pytestmark = pytest.mark.long

SEED = 24
SCRAPED_S, KILLS = 40.0, 5
_ROOT = Path(__file__).resolve().parents[2]
_COLUMNS = {
    "lustre_job_read_bytes_total": "total_read_bytes",
    "lustre_job_write_bytes_total": "total_written_bytes",
    "lustre_read_bytes_total": "total_read_bytes",
    "lustre_write_bytes_total": "total_written_bytes",
}
#: a counter: its metric, its target, and its job if any
Key = tuple[str, str, str | None]


@dataclass
class Exporter:
    """Counts as servers do: jobs appear, move bytes or not, and are dropped; every scrape is recorded."""

    url: str = ""
    draw: random.Random = field(default_factory=lambda: random.Random(SEED))
    counts: dict[Key, int] = field(default_factory=dict)
    served: dict[Key, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    scrape: int = 0

    def step(self) -> str:
        """Advance time, and return the exposition of this scrape."""
        at, self.scrape = time.time(), self.scrape + 1
        for target in ("fs1-OST0000", "fs1-OST0001"):
            jobs = [str(job) for job in range(12) if job * 3 <= self.scrape < job * 3 + 8 + job]
            for key in [key for key in self.counts if key[1] == target and key[2] and key[2] not in jobs]:
                del self.counts[key]
            for job in (None, *jobs):
                for way in ("read", "write"):
                    key = (f"lustre_{'job_' if job else ''}{way}_bytes_total", target, job)
                    rise = self.draw.choice((0, 0, 4096, 10**13))
                    self.counts[key] = self.counts.get(key, 0) + rise
        lines = []
        for (metric, target, told), count in self.counts.items():
            self.served[metric, target, told].append((at, count))
            label = f',jobid="{told}"' if told else ""
            lines.append(f'{metric}{{component="ost",target="{target}"{label}}} {count}')
        return "\n".join(lines) + "\n"


@contextmanager
def exporting() -> Iterator[Exporter]:
    exporter = Exporter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = exporter.step().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    exporter.url = f"127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield exporter
    finally:
        server.shutdown()
        server.server_close()


def in_server(url: str) -> dict[Key, dict[int, int]]:
    """Return the server's content by a minimal query: values by their times [ms]."""
    query = quote('{__name__=~"lustre_.+"}[10m]')
    with urlopen(f"{url}/api/v1/query?query={query}", timeout=30) as answer:
        series = json.load(answer)["data"]["result"]
    found = {}
    for one in series:
        key = (one["metric"]["__name__"], one["metric"]["target"], one["metric"].get("jobid"))
        found[key] = {round(1000 * at): int(value) for at, value in one["values"]}
    return found


def landed(store: Store, table: Table) -> pl.DataFrame:
    paths = ledger.read(store).files.filter(pl.col("table") == table.name)["path"]
    rows = pl.concat([pl.read_parquet(store.local(path)) for path in paths])
    return rows.with_columns(at=pl.col("scraped_at").dt.epoch("ms"))


def follow(warehouse: Path, *told: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from iosig.cli import main; main()"]
    command += ["--warehouse", str(warehouse), "land"]
    return subprocess.Popen(
        [*command, *told], cwd=_ROOT, env=os.environ | {"PYTHONPATH": str(_ROOT)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_scraped_samples_land_once_though_the_follower_is_killed(tmp_path: Path) -> None:
    draw, warehouse = random.Random(SEED), tmp_path / "warehouse"
    warehouse.mkdir()
    (warehouse / "iosig.toml").write_text(
        "[prometheus]\ndelay_s = 1.5\nchunk_s = 60\npresets = ['lustre']\n[live]\nbackfill_days = 0.002\n"
    )
    with exporting() as exporter, prometheus(exporter.url) as url:
        end = time.monotonic() + SCRAPED_S
        for _ in range(KILLS):
            process = follow(warehouse, "--prometheus", url, "--follow", "--interval", "0.2")
            time.sleep(SCRAPED_S / (KILLS + 1) + draw.uniform(-1.0, 1.0))
            assert process.poll() is None, "it goes on until it is killed"
            process.send_signal(signal.SIGKILL)
            process.wait()
        time.sleep(max(0.0, end - time.monotonic()))
        last = exporter.scrape
        truth = in_server(url)
        until = max(at for points in truth.values() for at in points)
        time.sleep(max(0.0, until / 1000 + 3.5 - time.time()))
        assert follow(warehouse, "--prometheus", url).wait() == 0
    assert_served(exporter, truth, last)
    store = Store(warehouse)
    assert len(landing_ids(store)) > 2 * KILLS, "it landed while it was followed"
    assert_scrapes(landed(store, SCRAPES).filter(pl.col("at") <= until), truth)
    assert_samples(landed(store, COUNTER_SAMPLES).filter(pl.col("at") <= until), truth)


def landing_ids(store: Store) -> list[str]:
    found: list[str] = ledger.read(store).in_force["landing_id"].to_list()
    return found


def assert_served(exporter: Exporter, truth: dict[Key, dict[int, int]], last: int) -> None:
    """Require that the server holds all served samples except its very last scrapes, each within a second."""
    assert last > SCRAPED_S / 2
    for key, points in truth.items():
        served = exporter.served[key][: len(points)]
        assert [value for _, value in served] == [*points.values()], key
        assert max(abs(at / 1000 - told) for (told, _), at in zip(served, points, strict=True)) < 1.0


def assert_scrapes(scrapes: pl.DataFrame, truth: dict[Key, dict[int, int]]) -> None:
    """Require that each scrape of a target landed once, with its number of entries."""
    entries: dict[tuple[str, bool, int], set[str | None]] = defaultdict(set)
    for (_, target, job), points in truth.items():
        for at in points:
            entries[target, job is not None, at].add(job)
    told = scrapes.select("target", "is_job_scrape", "at", "entry_count").rows()
    assert sorted(told) == sorted((*key, len(jobs)) for key, jobs in entries.items())


def assert_samples(samples: pl.DataFrame, truth: dict[Key, dict[int, int]]) -> None:
    """Require that each row equals the server's value at that instant, without duplicates or missing changes."""
    keys = samples.select("target", "job_key", "at")
    assert keys.is_unique().all()
    found = {}
    for row in samples.iter_rows(named=True):
        for metric, column in _COLUMNS.items():
            if metric.startswith("lustre_job_") == (row["job_key"] is not None):
                found[metric, row["target"], row["job_key"], row["at"]] = row[column]
    assert all(truth[*key][at] == value for (*key, at), value in found.items())
    changed = 0
    for key, points in truth.items():
        values = list(points.items())
        for place, (at, value) in enumerate(values):
            if place == 0 or values[place - 1][1] != value:
                assert found[*key, at] == value
                changed += 1
    assert changed > 200
