"""`uv run python -m bench.years`: a year of nights on a small steady site, night after night, and what each costs.

The first nights are real: `iosig land` and `iosig run` of that night's polls and job log, as a site runs them. The rest
is history that is written fast: each day's polls and log are landed by the program, and the release is published by its
own code from the rows of the night before, a day later. Then a night is real again. What is written goes to a folder as
`years.json`, the table `years.md` and the figure `years.png`.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from bench.processes import Cost, cost_of, iosig
from flows.landing import Told, land_paths
from flows.settings import load
from flows.steps import release as releasing
from warehouse.contracts import table as contract
from warehouse.releases import expiring, publishing, releases
from warehouse.releases.locations import Part, part_of
from warehouse.releases.publishing import Draft
from warehouse.store.store import Store, locked, write_parquet

_BEGAN = date(2025, 1, 6)
_CONTROLLERS = 4
_STEP_S = 10
_JOBS = 60
#: of these applications a third has runs in a night, each as often as the others
_APPLICATIONS = 60
_SETTINGS = """
[signatures]
window_days = 7
most_sample_count = 10

[storage]
keep_releases = 10
"""
#: night, and how many nights at its end are compared: one alone is as long as the machine is busy
_SPREAD = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """A night: what it cost, and what lies in the warehouse after it. is_real: whether it was run."""

    night: int
    is_real: bool
    cpu_s: float
    wall_s: float
    peak_bytes: int
    file_count: int
    byte_count: int
    metadata_bytes: int
    landed_bytes: int


# ---- the site


def write_day(folder: Path, night: int) -> list[str]:
    """Write a day's polls and job log, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(night)
    midnight = datetime(*(_BEGAN + timedelta(days=night)).timetuple()[:3], tzinfo=UTC)
    starts = np.sort(chance.integers(600, 80_000, _JOBS))
    spans = 900 + 60 * (np.arange(_JOBS) % 20)
    edges = np.arange(_STEP_S, 86_400 + _STEP_S, _STEP_S)
    load = np.zeros(edges.size)
    for start, span in zip(starts, spans, strict=True):
        load += ((edges - start) % 300 < 60) & (edges > start) & (edges <= start + span)
    noise = chance.integers(0, 1_000_000, edges.size * _CONTROLLERS)
    polls = pl.DataFrame(
        {
            "polled_at": np.repeat(edges, _CONTROLLERS),
            "controller": np.tile([f"c{number}" for number in range(_CONTROLLERS)], edges.size),
            "read_bytes_per_s": np.repeat(1e6 * load, _CONTROLLERS),
            "write_bytes_per_s": np.repeat(5e7 * load, _CONTROLLERS) + noise,
        }
    ).with_columns(polled_at=pl.lit(midnight) + pl.duration(seconds="polled_at"))
    polls.write_parquet(folder / "polls.parquet")
    lines = ["JobID|User|JobName|Partition|NNodes|Start|End|State"]
    for number, (start, span) in enumerate(zip(starts.tolist(), spans.tolist(), strict=True)):
        application = (number % 20 + 20 * (night % 3)) % _APPLICATIONS
        began = midnight + timedelta(seconds=start)
        ended = began + timedelta(seconds=span)
        job = 1000 * night + number
        lines.append(f"{job}|u{application}|app{application}|batch|8|{began:%FT%T}|{ended:%FT%T}|COMPLETED")
    (folder / "jobs.sacct").write_text("\n".join(lines) + "\n")
    return [str(folder / name) for name in ("jobs.sacct", "polls.parquet")]


# ---- nights


def run_night(store: Store, inputs: Path, night: int) -> Measured:
    """Land a day and run its night, as a site does, and return what both cost."""
    paths = write_day(inputs, night)
    landed, run = (
        cost_of(iosig("--warehouse", str(store.root), *arguments))
        for arguments in (("land", *paths), ("run", "--inline", "--json"))
    )
    both = Cost(landed.wall_s + run.wall_s, landed.cpu_s + run.cpu_s, max(landed.peak_bytes, run.peak_bytes))
    _day_passes(store)
    return _measured(store, night, both)


def _day_passes(store: Store) -> None:
    """Remove what waits for a day: between two nights there is one."""
    with locked(store):
        expiring.remove(store, 0.0)


def write_night(store: Store, inputs: Path, night: int) -> Measured:
    """Land a day, and publish what the day before holds as if it were its own; return what lies there then."""
    settings = load(None, store.root)
    paths = write_day(inputs, night)
    landings = [
        arrival.landed.landing.landing_id for arrival in land_paths(store, settings, paths, Told()) if arrival.landed
    ]
    before = releases.find(store, None)
    days = [date.fromisoformat(day) for day in before.dates if day]
    draft = Draft(
        release_id=f"{_BEGAN + timedelta(days=night)}-{night:08x}",
        fingerprint=f"{night:012x}",
        dates=(*(day + timedelta(days=1) for day in days), None),
        inputs=tuple(landings),
        removed_inputs=(),
        parameters=before.parameters,
        code_version=before.code_version,
        verdict=before.verdict,
    )
    folder = store.builds / draft.fingerprint
    built = {
        name: dict(_a_day_later(paths, name, set(days), folder))
        for name, paths in releases.files_of(store, before).items()
    }
    with locked(store):
        publishing.publish(store, draft, {name: parts for name, parts in built.items() if parts})
        shutil.rmtree(folder)
        releasing.maintain(store, settings)
    _day_passes(store)
    return replace(_measured(store, night, Cost(0.0, 0.0, 0)), is_real=False)


def _a_day_later(paths: Sequence[Path], name: str, days: set[date], folder: Path) -> Iterator[tuple[Part, Path]]:
    """Yield a table's parts that a night makes anew: its days, a day later, and what is of no day as it is."""
    for path in paths:
        part = part_of(path)
        if isinstance(part, date) and part not in days:
            continue
        target = folder / name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(part, date):
            times = pl.selectors.temporal() - pl.selectors.duration()
            rows = pl.read_parquet(path).with_columns(times + pl.duration(days=1))
            write_parquet(rows, contract(name), target)
            yield part + timedelta(days=1), target
        else:
            shutil.copyfile(path, target)
            yield part, target


def _measured(store: Store, night: int, cost: Cost) -> Measured:
    """Return what lies in a warehouse after a night; of files that are linked each counts once."""
    sizes: dict[int, tuple[int, str]] = {}
    for path in store.root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            sizes.setdefault(status.st_ino, (status.st_size, path.relative_to(store.root).as_posix()))
    data = {name: size for size, name in sizes.values() if name.endswith(".parquet") and _is_data(name)}
    whole = sum(size for size, _ in sizes.values())
    landed = sum(size for name, size in data.items() if name.startswith("landed/"))
    return Measured(
        night, True, cost.cpu_s, cost.wall_s, cost.peak_bytes, len(sizes), whole, whole - sum(data.values()), landed
    )


def _is_data(name: str) -> bool:
    return not name.startswith(("ledger/", "tables/releases/"))


# ---- what is told


def nights(folder: Path, real: int, whole: int, beside: int) -> Iterator[Measured]:
    """Yield the nights: so many real ones, the history after them, and three real ones at its end.

    beside: so many more real nights follow the first ones in a copy, to hold the fast ones against.
    """
    store = _new(folder / "warehouse")
    inputs = folder / "inputs"
    for night in range(real):
        yield run_night(store, inputs, night)
    copy = Store(folder / "real")
    shutil.copytree(store.root, copy.root, symlinks=True)
    for night in range(real, whole):
        yield write_night(store, inputs, night)
    for night in range(whole, whole + _SPREAD):
        yield run_night(store, inputs, night)
    for night in range(real, real + beside):
        yield run_night(copy, inputs, night)


def _new(root: Path) -> Store:
    root.mkdir(parents=True)
    (root / "iosig.toml").write_text(_SETTINGS)
    return Store(root)


def main() -> None:
    """Run the nights, a line each, and leave what was measured in a folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.years", description=__doc__)
    parser.add_argument("--real", type=int, default=40, help="real nights at the start (default 40)")
    parser.add_argument(
        "--nights", type=int, default=365, help="nights in all, before three more real ones (default 365)"
    )
    parser.add_argument("--beside", type=int, default=0, help="real nights after the first ones, in a copy (default 0)")
    parser.add_argument("--into", type=Path, required=True, help="a new folder, for the warehouse and what is measured")
    given = parser.parse_args()
    given.into.mkdir(parents=True)
    with (given.into / "years.jsonl").open("w") as file:
        for measured in nights(given.into, given.real, given.nights, given.beside):
            file.write(json.dumps(asdict(measured)) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
