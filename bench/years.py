"""`uv run python -m bench.years`: measure the cost of nightly runs over a year, on a small site with constant load.

The first nightly runs are real: `iosig land` and `iosig run` process the polls and the job log of the day, as at a
site. The following history is written faster: each day's polls and log land as usual, but the release is published
from the rows of the previous one, shifted by a day. Then nightly runs are real again. `--measurements` writes the page.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from bench.harness import Cost, iosig, process_cost
from iosig.flows.steps import release as releasing
from iosig.reports.panels import picture
from iosig.reports.style import INK, PURPLE
from iosig.settings.model import load
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.contracts import table as contract
from iosig.warehouse.releases import expiring, publishing, releases
from iosig.warehouse.releases.locations import Part, parse_part
from iosig.warehouse.releases.publishing import Draft
from iosig.warehouse.store.store import Store, lock_warehouse, write_parquet

_BEGAN = date(2025, 1, 6)
_CONTROLLERS = 4
_STEP_S = 10
_JOBS = 60
#: number of applications; each night, a third of these have runs, all equally often
_APPLICATIONS = 60
_SETTINGS = """
[signatures]
window_days = 7
max_sample_count = 10

[storage]
keep_releases = 10
"""
#: number of final nights that are compared with as many early ones, since a single one depends on the machine's load
_SPREAD = 3
_LINES = "years.jsonl"
_DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True, slots=True)
class NightCost:
    """Cost of a nightly run, and size of the warehouse after it. is_real: whether it was run rather than written."""

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
        lines.append(f"{job}|u{application}|app{application}|batch|8|{began:%FT%TZ}|{ended:%FT%TZ}|COMPLETED")
    (folder / "jobs.sacct").write_text("\n".join(lines) + "\n")
    return [str(folder / name) for name in ("jobs.sacct", "polls.parquet")]


# ---- nights


def run_night(store: Store, inputs: Path, night: int) -> NightCost:
    """Land a day and execute its nightly run, as a site does, and return the cost of both."""
    paths = write_day(inputs, night)
    landed, run = (
        process_cost(iosig("--warehouse", str(store.root), *arguments))
        for arguments in (("land", *paths), ("run", "--inline", "--json"))
    )
    total = Cost(landed.wall_s + run.wall_s, landed.cpu_s + run.cpu_s, max(landed.peak_bytes, run.peak_bytes))
    _day_passes(store)
    return _measure(store, night, total)


def _day_passes(store: Store) -> None:
    """Remove files that expire after a day, since a day passes between nightly runs."""
    with lock_warehouse(store):
        expiring.remove(store, 0.0)


def write_night(store: Store, inputs: Path, night: int) -> NightCost:
    """Land a day, and publish the rows of the previous release, shifted by a day; return the warehouse's size."""
    settings = load(None, store.root)
    paths = write_day(inputs, night)
    landings = [
        arrival.landed.landing.landing_id
        for arrival in land_paths(store, settings, paths, ReadOptions())
        if arrival.landed
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
        base_release_id=before.release_id,
    )
    folder = store.builds / draft.fingerprint
    built = {
        name: dict(_a_day_later(paths, name, set(days), folder))
        for name, paths in releases.files_of(store, before).items()
    }
    with lock_warehouse(store):
        publishing.publish(store, draft, {name: parts for name, parts in built.items() if parts})
        shutil.rmtree(folder)
        releasing.maintain(store, settings)
    _day_passes(store)
    return replace(_measure(store, night, Cost(0.0, 0.0, 0)), is_real=False)


def _a_day_later(paths: Sequence[Path], name: str, days: set[date], folder: Path) -> Iterator[tuple[Part, Path]]:
    """Yield the parts of a table that a nightly run replaces: days shifted by one, and undated rows unchanged."""
    for path in paths:
        part = parse_part(path)
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


def _measure(store: Store, night: int, cost: Cost) -> NightCost:
    """Measure the files in a warehouse after a nightly run; hard links to the same file count once."""
    sizes: dict[int, tuple[int, str]] = {}
    for path in store.root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            sizes.setdefault(status.st_ino, (status.st_size, path.relative_to(store.root).as_posix()))
    data = {name: size for size, name in sizes.values() if name.endswith(".parquet") and _is_data(name)}
    whole = sum(size for size, _ in sizes.values())
    landed = sum(size for name, size in data.items() if name.startswith("landed/"))
    return NightCost(
        night, True, cost.cpu_s, cost.wall_s, cost.peak_bytes, len(sizes), whole, whole - sum(data.values()), landed
    )


def _is_data(name: str) -> bool:
    return not name.startswith(("ledger/", "tables/releases/"))


# ---- report


def nights(folder: Path, real: int, wholes: Sequence[int], copy_count: int) -> Iterator[NightCost]:
    """Execute `real` nightly runs, then write history, and execute `_SPREAD` runs at each history length in `wholes`.

    copy_count: number of further real runs on a copy of the warehouse after the first ones, as a reference for the
    written history.
    """
    store = _new(folder / "warehouse")
    inputs = folder / "inputs"
    for night in range(real):
        yield run_night(store, inputs, night)
    copy = Store(folder / "real")
    shutil.copytree(store.root, copy.root, symlinks=True)
    for night in range(real, real + copy_count):
        yield run_night(copy, inputs, night)
    night_count = real
    for whole in wholes:
        for night in range(night_count, whole):
            yield write_night(store, inputs, night)
        for night in range(whole, whole + _SPREAD):
            yield run_night(store, inputs, night)
        night_count = whole + _SPREAD


def _new(root: Path) -> Store:
    root.mkdir(parents=True)
    (root / "iosig.toml").write_text(_SETTINGS)
    return Store(root)


def format_page(measured: Sequence[NightCost], around: int, note: str = "") -> str:
    """Format the page: costs of early nights (near `around`) and of the last ones, and the warehouse's contents."""
    real = {cost.night: cost for cost in measured if cost.is_real}
    early = [real[night] for night in real if abs(night - around) <= 1]
    ends = [night for night in real if night + 1 not in real and night - _SPREAD not in real and night > around + 1]
    late = {end: [real[end - place] for place in range(_SPREAD)] for end in ends}
    ratios = "\n".join(
        f"Night {end} takes {_ratio(last_nights, early, 'cpu_s'):.2f} times the processor time of night {around}, and "
        f"{_ratio(last_nights, early, 'peak_bytes'):.2f} times its memory.\n"
        for end, last_nights in late.items()
    )
    listed_nights = {cost.night for cost in early} | {end - place for end in ends for place in range(_SPREAD + 1)} | {0}
    twice = {night for night in real if any(cost.night == night and not cost.is_real for cost in measured)}
    rows = "\n".join(
        f"| {cost.night} | {'real' if cost.is_real else 'written'} | {f'{cost.cpu_s:.1f}' if cost.is_real else ''} |"
        f" {f'{cost.peak_bytes / 1e6:,.0f}' if cost.is_real else ''} | {cost.file_count:,} |"
        f" {cost.byte_count / 1e6:,.1f} | {cost.landed_bytes / 1e6:,.1f} | {cost.metadata_bytes / 1e6:,.1f} |"
        for cost in sorted(measured, key=lambda cost: (cost.night, not cost.is_real))
        if cost.night in listed_nights | twice
    )
    return _PAGE.format(
        ratios=ratios, rows=rows, note=note, early=around, controllers=_CONTROLLERS, step=_STEP_S, jobs=_JOBS
    )


def _ratio(late: Sequence[NightCost], early: Sequence[NightCost], name: str) -> float:
    return _middle(late, name) / _middle(early, name)


def _middle(measured: Sequence[NightCost], name: str) -> float:
    return median(getattr(cost, name) for cost in measured)


_PAGE = """# Cost of nights over years

Written by `python -m bench.years --measurements`.

{ratios}
![Processor time, files and bytes by night](figures/years.png)

| night | kind | processor time [s] | peak [MB] | files | all [MB] | landed [MB] | metadata [MB] |
|---|---|---|---|---|---|---|---|
{rows}

- **Site**: small and steady, with {controllers} controllers polled every {step} s, and {jobs} jobs per night of
  20 of 60 applications. Sample sets span 7 days and 10 samples; 10 releases are kept.
- **Real** nights run `iosig land` and `iosig run` on a night's inputs. **Written** nights in between are landed and
  published by iosig's own code, with the rows of the previous night, shifted by a day.
- Nights around night {early} are compared with the last three consecutive real nights.
- **Metadata** are all files except rows of tables and landed data. Their number per night and kept release does not
  depend on the size of the site. At this small site, they weigh as much as the rows.

{note}
"""


@picture((9.0, 2.8), is_constrained=True)
def draw(figure: Figure, measured: Sequence[NightCost]) -> None:
    """Draw the cost of nightly runs, and the size of the warehouse after each."""
    panels = figure.subplots(1, 3)
    real = [cost for cost in measured if cost.is_real]
    panels[0].plot([cost.night for cost in real], [cost.cpu_s for cost in real], "o", color=INK, markersize=3)
    panels[0].set_ylabel("processor time [s]", fontsize=8)
    lines = (("file_count", 1e3, panels[1]), ("byte_count", 1e6, panels[2]), ("metadata_bytes", 1e6, panels[2]))
    for name, unit, axes in lines:
        for is_real, mark, color in ((True, "o", INK), (False, ".", PURPLE)):
            chosen = [cost for cost in measured if cost.is_real == is_real]
            heights = [getattr(cost, name) / unit for cost in chosen]
            axes.plot([cost.night for cost in chosen], heights, mark, color=color, markersize=3)
    panels[1].set_ylabel("files [thousands]", fontsize=8)
    panels[2].set_ylabel("all, and metadata [MB]", fontsize=8)
    for axes in panels:
        axes.set_xlabel("night", fontsize=8)
        axes.set_ylim(bottom=0)


def main() -> None:
    """Execute the nightly runs and save the measurements, or format saved measurements as the page in the docs."""
    parser = argparse.ArgumentParser(prog="python -m bench.years", description=__doc__)
    parser.add_argument("--real", type=int, default=40, help="number of real nights at the start (default 40)")
    parser.add_argument("--nights", type=int, nargs="+", default=[88, 363], help="lengths of history (default 88 363)")
    parser.add_argument(
        "--beside", type=int, default=0, help="number of real nights after the first ones, in a copy (default 0)"
    )
    parser.add_argument("--output", type=Path, help="a new folder for the warehouse and the measurements")
    parser.add_argument("--measurements", type=Path, help="folder of measurements: write docs/years.md and its figure")
    parser.add_argument("--around", type=int, default=10, help="the early night of the page (default 10)")
    parser.add_argument("--note", default="", help="additional note on this measurement for the page")
    options = parser.parse_args()
    if options.measurements:
        lines = (options.measurements / _LINES).read_text().splitlines()
        measured = [NightCost(**json.loads(line)) for line in lines]
        (_DOCS / "years.md").write_text(format_page(measured, options.around, options.note))
        draw(measured).write(_DOCS / "figures" / "years.png")
        return
    options.output.mkdir(parents=True)
    with (options.output / _LINES).open("w") as file:
        for cost in nights(options.output, options.real, options.nights, options.beside):
            file.write(json.dumps(asdict(cost)) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
