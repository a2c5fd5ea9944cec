"""One machine beside several: a night in a folder by processes, and in an object store by Dask's workers.

Measured are two workers on this machine, what they and the servers take, and what goes over the loopback. What more
workers would come to is simulated (`bench.many_workers`).
`python -m bench.machines --days 12 --into DIR` measures so many days of a large site.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from bench.many_workers import Span, covered_s, simulated, tasks

_WORKER_COUNT = 2
_CATALOGUES = {"rest": "a REST catalogue", "postgresql": "PostgreSQL"}
_NIGHT = """
import contextlib, json, sys, time
from pathlib import Path
from iosig.flows import executors, nightly
from iosig.settings.model import load
from iosig.warehouse.store.store import Store
store = Store.named(sys.argv[1])
settings = load(Path(sys.argv[2]), store.root)
def watched():
    if settings.engine.runner != "dask":
        return contextlib.nullcontext()
    from distributed import default_client
    from distributed.diagnostics.task_stream import get_task_stream
    return get_task_stream(default_client())
def main():
    began = time.perf_counter()
    with executors.opened(settings, store.root) as executor, watched() as stream:
        nightly.run_inline(store, settings, lambda *_: None, executor=executor)
    wall_s = time.perf_counter() - began
    done = [(str(task["key"]), each) for task in (stream.data if stream else ()) for each in task["startstops"]]
    spans = [[key, each["start"], each["stop"]] for key, each in done if each["action"] == "compute"]
    works = [work.name for step in nightly.STEPS for work in step.works]
    print(json.dumps({"wall_s": wall_s, "spans": spans, "works": works}))
if __name__ == "__main__":
    main()
"""


@dataclass(frozen=True, slots=True)
class Night:
    """What a night took: wall and processor seconds, what Dask's workers were at, and bytes over the loopback.

    works: the names of all kinds of work, in order.
    """

    wall_s: float
    cpu_s: float
    spans: list[Span]
    works: list[str]
    moved_bytes: int


def figures(
    inbox: Path, scratch: Path, rounds: int, *, kind: str = "rest", day_count: int = 1, about: str = "a night"
) -> Iterator[Figure]:
    """Time what is in an inbox, in a folder and in an object store with two workers.

    kind: of the catalogue. day_count: of the polls in the inbox. about: what the inbox holds.
    """
    with ExitStack() as servers:
        own = [f"bench{number}" for number in range(rounds + 1)]
        remote, processes = _servers(servers, kind, own)
        settings = scratch / "machines.toml"

        def here() -> Night:
            settings.write_text(f"[schedule]\ninbox = '{inbox}'\n")
            return _night(str(scratch / uuid.uuid4().hex), settings, [])

        def there() -> Night:
            name = own.pop()
            settings.write_text(f"[schedule]\ninbox = '{inbox}'\n{remote.format(name=name)}")
            return _night(f"s3://iosig/{name}", settings, processes)

        here(), there()
        pairs = [(there(), here()) for _ in range(rounds)]
    yield from _compared(pairs, f"{about} in S3 with {_CATALOGUES[kind]} and {_WORKER_COUNT} Dask workers")
    fastest = min((one for one, _ in pairs), key=lambda night: night.wall_s)
    yield from simulated(tasks(fastest.spans, fastest.works), day_count, fastest.wall_s)


def _compared(pairs: Sequence[tuple[Night, Night]], about: str) -> Iterator[Figure]:
    ours, peers = (min(nights, key=lambda night: night.wall_s) for nights in zip(*pairs, strict=True))
    for name, values, limit in (
        ("wall", (ours.wall_s, peers.wall_s), 1.5),
        ("processor time, servers apart", (ours.cpu_s, peers.cpu_s), 1.3),
    ):
        ratio = values[0] / values[1]
        yield Figure(
            f"{about} / in a folder by processes: {name}",
            f"{values[0]:.1f} s",
            f"{values[1]:.1f} s",
            f"{ratio:.2f}",
            str(limit),
            ratio <= limit,
        )
    outside = 1 - covered_s([(span.began_s, span.ended_s) for span in ours.spans]) / ours.wall_s
    name = "… of its wall outside of all that workers do (scheduling, store, catalogue)"
    yield Figure(name, f"{outside:.0%}", "", "", "15%", outside <= 0.15)
    yield Figure("… over the loopback, all of it", f"{ours.moved_bytes / 1e6:.0f} MB", "", "", "", True)


# ---- servers, and what all of it takes


def _servers(stack: ExitStack, kind: str, names: Sequence[str]) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """Start the servers and warm workers; return what settings say of them, a name open, and the workers' processes."""
    from tests.servers import PASSWORD, dask, postgresql, seaweedfs

    store = stack.enter_context(seaweedfs(*(names if kind == "rest" else ())))
    os.environ.update(store.environment | {"PGPASSWORD": PASSWORD})
    if kind == "rest":
        catalogue = f"uri = '{store.rest_uri}'\nwarehouse = '{{name}}'\nlocation = 's3://{{name}}'\n"
    else:
        catalogue = f"uri = '{stack.enter_context(postgresql()).uri}'\nname = '{{name}}'\n"
    cluster = stack.enter_context(dask(_WORKER_COUNT))
    lines = f"[engine]\nrunner = 'dask'\nscheduler = '{cluster.address}'\n[catalogue]\nkind = '{kind}'\n{catalogue}"
    return lines, [cluster.scheduler, *cluster.workers]


def _night(warehouse: str, settings: Path, others: Sequence[subprocess.Popen[bytes]]) -> Night:
    from bench.processes import _MEASURED

    before, moved = _cpu_s(others), _loopback_bytes()
    code = _MEASURED.replace("stdout=subprocess.DEVNULL", "stdout=subprocess.PIPE").replace(
        "print(json.dumps([", "print(json.dumps([done.stdout.decode(), "
    )
    told = [sys.executable, "-I", "-S", "-c", code, sys.executable, "-c", _NIGHT, warehouse, str(settings)]
    found = subprocess.run(told, capture_output=True, text=True, check=True)
    said, returned, _, cpu_s, _, errors = json.loads(found.stdout)
    if returned:
        raise RuntimeError(errors)
    answer = json.loads(said.splitlines()[-1])
    cpu_s += _cpu_s(others) - before
    spans = [Span(*span) for span in answer["spans"]]
    return Night(answer["wall_s"], cpu_s, spans, answer["works"], _loopback_bytes() - moved)


def _cpu_s(processes: Sequence[subprocess.Popen[bytes]]) -> float:
    """Return the processor seconds of processes and of all that are of their groups."""
    groups, ticks = {process.pid for process in processes}, 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[2]) in groups:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _loopback_bytes() -> int:
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(next(line for line in lines if line.strip().startswith("lo:")).split()[1])


def main() -> None:
    """Measure days of a large site, and print a line for each figure."""
    from bench.backfill import write

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=12)
    parser.add_argument("--catalogue", choices=_CATALOGUES, default="rest")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--into", type=Path, required=True, help="where inputs and warehouses lie")
    chosen = parser.parse_args()
    inputs = chosen.into / f"inputs-{chosen.days}"
    if not inputs.exists():
        write(inputs, chosen.days)
    for one in figures(
        inputs,
        chosen.into,
        chosen.rounds,
        kind=chosen.catalogue,
        day_count=chosen.days,
        about=f"{chosen.days} days of a large site",
    ):
        told = f" (limit {one.limit}: {'yes' if one.holds else 'NO'})" * bool(one.limit)
        print(f"{one.name}: {one.ours} / {one.peer} {one.ratio}{told}", flush=True)


if __name__ == "__main__":
    main()
