"""Planning and queries over a million landings: what is there already costs next to nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from bench.figures import Figure
from bench.processes import cost_of, iosig, median_s, python
from bench.small_traces import write
from iosig.flows.steps.plan import code_version
from iosig.settings.model import Settings
from iosig.streams.landing import Told, land_paths
from iosig.warehouse.releases import publishing
from iosig.warehouse.releases.publishing import Draft
from iosig.warehouse.store import ledger
from iosig.warehouse.store.files import Sealed
from iosig.warehouse.store.manifests import MANIFEST, in_folder
from iosig.warehouse.store.store import Store

_BEGAN = date(2026, 1, 1)
_LOT = 500
_NIGHT = 10_000
_COUNT = 1_000_000
_MOST_S = 2.0
_MOST_QUERY_S = 1.5

_PLAN = """
import sys, time
from pathlib import Path
from iosig.settings.model import Settings
from iosig.flows.steps import plan
from iosig.warehouse.store.store import Store
for _ in range(int(sys.argv[2])):
    made = plan.make_plan(Store(Path(sys.argv[1])), Settings())
    assert len(made.inputs) == int(sys.argv[3]), len(made.inputs)
"""


def planning(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the plan of a night of 10,000 new landings on top of a million, and queries of that warehouse."""
    store = Store(scratch / "million")
    fill(store, scratch, _COUNT)
    yield from measured(store, rounds)


def measured(store: Store, rounds: int) -> Iterator[Figure]:
    """Time a plan and queries of a warehouse that `fill` filled."""
    once, thrice = ([cost_of(_plan(store, count)) for _ in range(rounds)] for count in (1, 3))
    taken = (min(cost.cpu_s for cost in thrice) - min(cost.cpu_s for cost in once)) / 2
    yield Figure(
        f"plan of 10,000 new landings on top of {_COUNT:,}, processor time",
        f"{taken:.2f} s ({max(cost.peak_bytes for cost in thrice) / 1e9:.2f} GB)",
        "",
        "",
        f"{_MOST_S:g} s",
        taken <= _MOST_S,
    )
    for query, name in (("select 1", "select 1"), (_of_a_day(store), "`trace_requests` of one day")):
        asked = [cost_of(iosig("--warehouse", str(store.root), "sql", query)) for _ in range(rounds)]
        yield Figure(
            f"`iosig sql` with {_COUNT:,} landings: {name}",
            f"{median_s(asked):.2f} s",
            "",
            "",
            f"{_MOST_QUERY_S:g} s",
            median_s(asked) <= _MOST_QUERY_S,
        )


def _plan(store: Store, count: int) -> list[str]:
    return python(_PLAN, str(store.root), str(count), str(_NIGHT))


def _of_a_day(store: Store) -> str:
    first = ledger.read(store).in_force["landing_id"][0]
    return f"select count(*) from trace_requests where trace_id = '{first}'"


def fill(store: Store, scratch: Path, count: int) -> None:
    """Have so many traces be landed in a warehouse, and released, and a night of new ones beside them.

    The first ones are landed by the program; the others are theirs with other ids, each night's of a day of its own.
    """
    inputs = scratch / "traces"
    write(inputs)
    first = Store(scratch / "first")
    for _ in land_paths(first, Settings(), [str(inputs)], Told()):
        pass
    template = next(path for path in sorted(first.landed.iterdir()))
    store.root.mkdir(parents=True)
    shutil.copy(first.root / "form.json", store.root)
    for place in range((count + _NIGHT) // _LOT):
        _lot(first, store, template.name, place)
        if (place + 1) * _LOT == count:
            _release(store)


def _lot(first: Store, store: Store, template: str, place: int) -> None:
    """Leave the landings of a lot under other ids, and on another day."""
    folder = store.landed / f"lot-{place:016x}"
    folder.mkdir(parents=True)
    day = _BEGAN + timedelta(days=place * _LOT // _NIGHT)
    ids = {one.landing_id: _id(place * _LOT + number) for number, one in enumerate(in_folder(first, template))}
    document = json.loads((first.landed / template / MANIFEST).read_text())
    for name, known in document["files"].items():
        path = folder / f"{name}.parquet"
        _rows(first.root / known["path"], ids, day).write_parquet(path, compression="zstd")
        document["files"][name] = {"path": f"landed/{folder.name}/{path.name}", **asdict(Sealed.of_path(path))}
    for number, landing in enumerate(document["landings"]):
        own = ids[landing["landing_id"]]
        at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        landing |= {"landing_id": own, "content_sha256": own * 4, "sequence": place * _LOT + number + 1}
        landing |= {"landed_at": at.isoformat(timespec="microseconds"), "source_file": f"{own}.jsonl"}
    (folder / MANIFEST).write_text(json.dumps(document))


def _id(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()[:16]


def _rows(path: Path, ids: dict[str, str], day: date) -> pl.DataFrame:
    frame = pl.read_parquet(path)
    own = [name for name in ("trace_id", "landing_id") if name in frame.columns]
    rows = frame.with_columns(pl.col(name).replace(ids) for name in own)
    if "ended_on" not in rows.columns:
        return rows
    began, ended = (datetime(day.year, day.month, day.day, hour, tzinfo=UTC) for hour in (12, 13))
    return rows.with_columns(ended_on=pl.lit(day), started_at=pl.lit(began), ended_at=pl.lit(ended))


def _release(store: Store) -> None:
    landed = ledger.read(store).in_force["landing_id"]
    draft = Draft(
        fingerprint="0" * 12,
        dates=(),
        inputs=tuple(landed),
        removed_inputs=(),
        parameters=Settings().parameters(),
        code_version=code_version(),
        verdict="passed",
        base_release_id=None,
        release_id="night",
    )
    publishing.publish(store, draft, {})
