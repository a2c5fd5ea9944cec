"""Many inputs land in parallel as they do sequentially, refusals are isolated, and time zones are tracked."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.flows.demo.simulated import find_shipped_logs
from iosig.settings.model import Settings
from iosig.streams import landing
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.contracts.traces import TRACES
from iosig.warehouse.errors import InputRefused, IosigError, MissingExtra
from iosig.warehouse.sources.polls import lmt_database
from iosig.warehouse.store import lots
from iosig.warehouse.store.landing import ledger
from iosig.warehouse.store.positions import position
from iosig.warehouse.store.store import Store
from tests.nights import land_files
from tests.small_traces import JOBS, rows as trace_rows, write
from tests.warehouse.sources.lmt_tables import database


def day_of_polls(path: Path, day: int) -> None:
    lines = ["polled_at,controller,read_bytes_per_s,write_bytes_per_s"]
    lines += [f"2026-03-{day:02}T00:00:{second:02}Z,c0,{day},{second}" for second in range(0, 60, 2)]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_large_files_landed_in_parallel_equal_sequential_landing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for number in range(1, 6):
        day_of_polls(inputs / f"polls-{number}.csv", number)
    day_of_polls(inputs / "polls-6.csv", 2)
    (inputs / "polls-7.csv").write_text("neither,nor\n1,2\n")
    (inputs / "tiny").write_text("")
    found = {}
    for worker_count in (1, 2):
        monkeypatch.setattr(landing, "_LARGE_BYTES", 10)
        store = Store(tmp_path / f"warehouse-{worker_count}")
        settings = Settings.model_validate({"engine": {"worker_count": worker_count}})
        arrivals = land_files(store, inputs, settings=settings, allows_refusals=True)
        kept = [{**asdict(one), "landed_at": ""} for one in ledger(store)]
        found[worker_count] = [arrival.line() for arrival in arrivals], kept
        again = land_files(store, inputs, settings=settings, allows_refusals=True)
        assert not any(arrival.landed and arrival.landed.is_new for arrival in again)
    assert found[1] == found[2]
    lines, kept = found[2]
    assert len(lines) == 8
    assert "already landed" in lines[5], "the second of two files of one content"
    assert "refused" in lines[6]
    assert [one["sequence"] for one in kept] == sorted(one["sequence"] for one in kept)


SMALL = landing._Size(fewest_count=4, at_once=3, max_count=8)


def many_small(folder: Path) -> list[str]:
    """Write traces, including a duplicate and a file that is no trace, together with polls and a job log."""
    paths = write(folder, 11)
    Path(paths[7]).write_bytes(Path(paths[2]).read_bytes())
    Path(paths[4]).write_bytes(b"neither this nor that")
    (folder / "run003-jobs.sacct").write_text(JOBS)
    day_of_polls(folder / "run005-polls.csv", 3)
    return [path for path in map(str, sorted(folder.iterdir())) if path != paths[0]]


def landed_small(
    store: Store, paths: list[str], settings: Settings, executor: Executor | None = None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Land small files, including a duplicate of an earlier landing; return report lines and landings, in order."""
    land_files(store, Path(paths[0]).with_name("run000.jsonl"), settings=settings)
    told = [
        arrival.line() for arrival in land_paths(store, settings, [*paths, paths[5]], ReadOptions(), executor=executor)
    ]
    known = ledger(store)
    assert all(one.sequence < after.sequence for one, after in pairwise(known))
    kept = [(one.source_file, one.format, one.content_sha256, one.refused_count, one.row_count()) for one in known]
    return told, kept


@pytest.mark.slow
def test_small_files_landed_in_parallel_equal_sequential_landing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "_SMALL", SMALL)
    monkeypatch.setattr(lots, "MIN_INPUTS", 2)
    paths, found = many_small(tmp_path / "site"), {}
    for worker_count in (1, 2):
        settings = Settings.model_validate({"engine": {"worker_count": worker_count}})
        found[worker_count] = landed_small(Store(tmp_path / f"warehouse-{worker_count}"), paths, settings)
    assert found[1] == found[2]
    told, kept = found[2]
    assert len(told) == len(paths) + 1
    assert sum("already landed" in line for line in told) == 2
    assert len(kept) == len(paths)


@pytest.mark.parametrize("sees", [True, False])
def test_small_files_land_remotely_or_locally_if_not_visible(
    sees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lots, "MIN_INPUTS", 2)
    paths, settings = many_small(tmp_path / "site"), Settings.model_validate({"engine": {"worker_count": 1}})
    plain = landed_small(Store(tmp_path / "plain"), paths, settings)
    monkeypatch.setattr(landing, "_SMALL", SMALL)
    worker = Elsewhere(sees=sees)
    assert landed_small(Store(tmp_path / "elsewhere"), paths, settings, worker) == plain
    assert worker.asked == 4


def test_only_first_file_of_equal_content_lands(tmp_path: Path) -> None:
    for name, text in (("a", "12"), ("b", "34"), ("c", "12"), ("d", "123"), ("e", "34")):
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in ("a", "b", "c", "d", "e", "gone")]
    assert landing._firsts(paths) == ([0, 1, 3, 5], {})


def test_refusals_are_returned_from_another_process(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    told = tmp_path / "warehouse", Settings(), ReadOptions(), None, [tmp_path / "empty.csv"]
    arrivals = landing._land_apart(*told, 7, are_new=False)
    assert arrivals is not None
    assert [type(arrival.refusal) for arrival in arrivals] == [InputRefused]
    (landed,) = ledger(Store(tmp_path / "warehouse"))
    assert landed.sequence == 7


class Elsewhere(Executor):
    """A worker on another machine that sees the files, or does not."""

    def __init__(self, *, sees: bool) -> None:
        self.sees, self.asked = sees, 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.asked += 1
        ended: Future[Any] = Future()
        ended.set_result(fn(*args, **kwargs) if self.sees else None)
        return ended


@pytest.mark.parametrize("sees", [True, False])
def test_large_file_lands_remotely_or_locally_if_not_visible(
    sees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "_LARGE_BYTES", 1)
    (tmp_path / "empty.csv").write_text("no polls\n")
    day_of_polls(tmp_path / "polls.csv", 1)
    settings = Settings.model_validate({"engine": {"worker_count": 1}})
    worker, paths = Elsewhere(sees=sees), [str(tmp_path / name) for name in ("empty.csv", "polls.csv")]
    arrivals = list(land_paths(Store(tmp_path / "warehouse"), settings, paths, ReadOptions(), executor=worker))
    assert worker.asked == 2
    assert [arrival.refusal is None for arrival in arrivals] == [False, True]
    assert [landed.sequence for landed in ledger(Store(tmp_path / "warehouse"))] == [1, 2]


def test_invisible_file_is_not_refused_by_the_worker(tmp_path: Path) -> None:
    told = tmp_path / "warehouse", Settings(), ReadOptions(), None, [tmp_path, tmp_path / "gone.csv"]
    assert landing._land_apart(*told, 7, are_new=False) is None
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize("refusal", [InputRefused("A reason.", "A remedy."), MissingExtra("Dask", "dask")])
def test_refusals_can_be_pickled(refusal: IosigError) -> None:
    again = pickle.loads(pickle.dumps(refusal))
    assert (type(again), str(again), vars(again)) == (type(refusal), str(refusal), vars(refusal))


def test_report_of_a_hostile_name_is_one_printable_line(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J\nb").write_bytes(b"\xff\x00 noise")
    (arrival,) = land_paths(Store(tmp_path / "w"), Settings(), [str(tmp_path / "a\x1b[2J\nb")], ReadOptions())
    assert arrival.line().isprintable()


def test_special_files_are_refused_individually(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "in" / "pipe")
    (tmp_path / "in" / "polls.csv").write_text("polled_at,controller,read_bytes_per_s,write_bytes_per_s\n")
    found = [*land_paths(Store(tmp_path / "w"), Settings(), [str(tmp_path / "in")], ReadOptions())]
    told = {Path(arrival.name).name: arrival.refusal for arrival in found}
    assert [str(told[name].reason) for name in ("link", "pipe")] == ["This is not a file."] * 2
    assert told["polls.csv"] is None or told["polls.csv"].reason != "This is not a file."


# ---- time zones


LOCAL_JOBS = JOBS.replace("Z|", "|")


def test_local_times_are_refused_without_a_time_zone(tmp_path: Path) -> None:
    log, store = tmp_path / "jobs.sacct", Store(tmp_path / "w")
    log.write_text(LOCAL_JOBS)
    (refused,) = land_paths(store, Settings(), [str(log)], ReadOptions())
    assert refused.refusal is not None
    assert "2026-03-03T00:00:00 has no time zone. Pass the input's time zone" in refused.line()
    (landed,) = land_paths(store, Settings(), [str(log)], ReadOptions(time_zone="America/Los_Angeles"))
    assert landed.line().endswith(
        "landed 1 rows (sacct), 2026-03-03 08:00:00 to 2026-03-03 09:00:00 UTC, local times read as America/Los_Angeles"
    )


@pytest.mark.parametrize(
    ("settings", "zone"),
    [
        ({"jobs": {"time_zone": "Asia/Tokyo"}}, "Asia/Tokyo"),
        ({"time_zones": {"sacct": "Asia/Tokyo"}, "jobs": {"time_zone": "Europe/Berlin"}}, "Asia/Tokyo"),
        ({"time_zones": {"squeue": "Europe/Berlin"}, "jobs": {"time_zone": "Asia/Tokyo"}}, "Asia/Tokyo"),
    ],
)
def test_time_zone_comes_from_the_settings_of_a_format_or_kind(
    tmp_path: Path, settings: dict[str, Any], zone: str
) -> None:
    log = tmp_path / "jobs.sacct"
    log.write_text(LOCAL_JOBS)
    (arrival,) = land_paths(Store(tmp_path / "w"), Settings.model_validate(settings), [str(log)], ReadOptions())
    assert arrival.landed
    assert arrival.landed.landing.time_zone == zone
    (arrival,) = land_paths(
        Store(tmp_path / "v"), Settings.model_validate(settings), [str(log)], ReadOptions(time_zone="America/Denver")
    )
    assert arrival.landed
    assert arrival.landed.landing.time_zone == "America/Denver"


def test_file_systems_can_have_different_time_zones(tmp_path: Path) -> None:
    polls = tmp_path / "polls.csv"
    lines = ["polled_at,controller,filesystem,read_bytes_per_s,write_bytes_per_s"]
    for second in (10, 20):
        lines += [f"2026-03-03T00:00:{second},c0,{name},1,1" for name in ("east", "west", "other")]
    polls.write_text("\n".join(lines) + "\n")
    settings = Settings.model_validate(
        {"time_zones": {"east": "Asia/Tokyo", "west": "America/Los_Angeles"}, "polls": {"time_zone": "UTC"}}
    )
    store = Store(tmp_path / "w")
    (arrival,) = land_paths(store, settings, [str(polls)], ReadOptions())
    assert arrival.landed
    rows = pl.concat([pl.read_parquet(store.root / part.path) for part in arrival.landed.landing.parts])
    hours = {name: at.hour for name, at in rows.select("filesystem", "polled_at").iter_rows()}
    assert hours == {"east": 15, "west": 8, "other": 0}
    assert arrival.landed.landing.time_zone == "America/Los_Angeles, Asia/Tokyo, UTC"


def test_time_zone_does_not_affect_times_with_offset(tmp_path: Path) -> None:
    day_of_polls(tmp_path / "polls.csv", 2)
    (arrival,) = land_paths(Store(tmp_path / "w"), Settings(), [str(tmp_path / "polls.csv")], ReadOptions())
    (other,) = land_paths(
        Store(tmp_path / "v"), Settings(), [str(tmp_path / "polls.csv")], ReadOptions(time_zone="Asia/Tokyo")
    )
    assert arrival.landed
    assert other.landed
    assert other.landed.landing.first_at == arrival.landed.landing.first_at == "2026-03-02T00:00:00+00:00"
    assert other.landed.landing.time_zone is arrival.landed.landing.time_zone is None
    (again,) = land_paths(
        Store(tmp_path / "w"), Settings(), [str(tmp_path / "polls.csv")], ReadOptions(time_zone="UTC")
    )
    assert "--replace" not in again.line()


def test_replace_lands_a_file_with_another_time_zone(tmp_path: Path) -> None:
    log, store = tmp_path / "jobs.sacct", Store(tmp_path / "w")
    log.write_text(LOCAL_JOBS)
    land_files(store, log, time_zone="UTC")
    (again,) = land_paths(store, Settings(), [str(log)], ReadOptions(time_zone="Asia/Tokyo"))
    assert again.other_zone == "Asia/Tokyo"
    assert "already landed with time zone UTC, unchanged; --replace lands it with Asia/Tokyo." in again.line()
    land_files(store, log, time_zone="Asia/Tokyo", replace=True)
    (known,) = ledger(store)
    assert (known.time_zone, known.first_at) == ("Asia/Tokyo", "2026-03-02T15:00:00+00:00")


def poll_hours(store: Store) -> list[int]:
    rows = [pl.read_parquet(store.root / part.path) for one in ledger(store) for part in one.parts]
    return sorted({at.hour for frame in rows for at in frame["polled_at"]})


def test_database_keeps_its_time_zone_until_replaced(tmp_path: Path) -> None:
    readings = [(1, ts, ts, ts) for ts in (0, 5, 10)]
    url, store = f"sqlite:///{database(tmp_path, readings[:2])}", Store(tmp_path / "w")
    (refused,) = land_paths(store, Settings(), [url], ReadOptions())
    assert refused.refusal
    assert "has no time zone" in refused.refusal.reason
    land_files(store, url, time_zone="UTC")
    database(tmp_path, readings)
    (other,) = land_paths(store, Settings(), [url], ReadOptions(time_zone="Asia/Tokyo"))
    assert other.refusal
    assert "landed with time zone UTC; with Asia/Tokyo, its traffic would be duplicated" in other.line()
    assert poll_hours(store) == [0]
    (more,) = land_paths(store, Settings(), [url], ReadOptions(time_zone="UTC"))
    assert more.row_count == 1
    assert more.landed
    assert more.landed.is_new
    (replaced,) = land_paths(store, Settings(), [url], ReadOptions(time_zone="Asia/Tokyo"), replace=True)
    assert replaced.row_count == 2
    assert poll_hours(store) == [15]
    (same,) = land_paths(store, Settings(), [url], ReadOptions(time_zone="Asia/Tokyo"))
    assert same.landed
    assert not same.landed.is_new


def test_position_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    url, store = f"sqlite:///{database(tmp_path, [(1, ts, ts, ts) for ts in (0, 5, 10)])}", Store(tmp_path / "w")
    reading = landing.make_reading(lmt_database.SOURCE, Settings(), ReadOptions(time_zone="UTC"))
    _, cursor = lmt_database.read_url(url, reading, None)
    # earlier versions kept a position for each zone
    position(store, f"{url} {reading}").move(cursor)
    (arrival,) = land_paths(store, Settings(), [url], ReadOptions(time_zone="UTC"))
    assert arrival.row_count == 0


def test_archive_in_local_time_matches_the_same_polls_in_utc(tmp_path: Path, shared_data: Path) -> None:
    local, utc = (shared_data / "lmt" / f"snx11025_2018-01-28.{ending}" for ending in ("sqlite3", "h5lmt"))
    store = Store(tmp_path / "w")
    (refused,) = land_paths(store, Settings(), [str(local)], ReadOptions())
    assert refused.refusal
    arrivals = land_files(store, local, utc, time_zone="America/Los_Angeles")
    keys = []
    for arrival in arrivals:
        assert arrival.landed
        rows = pl.concat([pl.read_parquet(store.root / part.path) for part in arrival.landed.landing.parts])
        keys.append(rows.filter(pl.col("read_bytes_per_s").is_not_null()).select("controller", "polled_at").unique())
    assert keys[0].join(keys[1], on=["controller", "polled_at"]).height == min(key.height for key in keys)


def landed_jobs(store: Store, paths: list[str], read_options: ReadOptions, **traces: Any) -> dict[str, str | None]:
    """Land traces and return the job of each, by file name."""
    settings = Settings.model_validate({"traces": traces})
    for arrival in land_paths(store, settings, paths, read_options):
        assert not arrival.has_refusals, arrival.line()
    return dict(trace_rows(store, TRACES).select("source_file", "job_id").rows())


@pytest.mark.parametrize("count", [1, lots.MIN_INPUTS])
def test_trace_without_a_job_belongs_to_the_stated_one(tmp_path: Path, count: int) -> None:
    paths = write(tmp_path / "traces", count)
    jobs = landed_jobs(Store(tmp_path / "warehouse"), paths, ReadOptions(job_id="4711"))
    assert jobs == {Path(path).name: "4711" for path in paths}


def test_trace_without_a_job_belongs_to_the_one_in_its_path(tmp_path: Path) -> None:
    pattern = r"/slurm-(\d+)/"
    paths = [*write(tmp_path / "slurm-4711", 1), *write(tmp_path / "slurm-4712", 1, first=1)]
    paths += write(tmp_path / "others-4713", 1, first=2)
    found = landed_jobs(Store(tmp_path / "pattern"), paths, ReadOptions(), job_id_pattern=pattern)
    assert found == {"run000.jsonl": "4711", "run001.jsonl": "4712", "run002.jsonl": None}
    found = landed_jobs(Store(tmp_path / "option"), paths, ReadOptions(job_id="9"), job_id_pattern=pattern)
    assert set(found.values()) == {"9"}, "the option overrides the setting"
    assert set(landed_jobs(Store(tmp_path / "neither"), paths, ReadOptions()).values()) == {None}


def test_job_in_a_trace_is_kept(tmp_path: Path) -> None:
    log = find_shipped_logs()[0]
    stated = landed_jobs(Store(tmp_path / "stated"), [str(log)], ReadOptions(job_id="4711"))
    assert stated == landed_jobs(Store(tmp_path / "own"), [str(log)], ReadOptions())
    assert stated[log.name] not in (None, "4711")
