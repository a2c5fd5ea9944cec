"""Test landing: each input lands once and atomically, together with its refused rows."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.protocol import Batch, Reading, Source, get_input_name, get_source
from iosig.warehouse.sources.rows.rejects import rejects
from iosig.warehouse.store import landing
from iosig.warehouse.store.landing import LandingResult
from iosig.warehouse.store.manifests import Landing, Part, may_repeat
from iosig.warehouse.store.store import Store

ROOT = Path(__file__).resolve().parents[3]
LOG = "JobID|Start|End|State\n7|2018-02-09T10:00:00Z|2018-02-09T11:00:00Z|COMPLETED\n"
BAD_LINE = "8|yesterday|2018-02-09T11:00:00Z|COMPLETED\n"
POLLS = "polled_at,controller,interval_s,read_bytes_per_s,write_bytes_per_s\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "warehouse")


def put(tmp_path: Path, content: str | bytes, name: str = "input") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def land(
    store: Store,
    path: Path,
    *,
    format_name: str | None = None,
    replace: bool = False,
    time_zone: str | None = None,
    filesystem: str | None = None,
) -> LandingResult:
    reading = Reading(time_zone=time_zone, filesystem=filesystem)
    return landing.land(store, path, lambda _: reading, format_name=format_name, replace=replace)


def rows(store: Store, landed: Landing, table: str) -> pl.DataFrame:
    paths = [store.root / part.path for part in landed.parts if part.table == table]
    return pl.concat([pl.read_parquet(path) for path in paths])


def refused(store: Store) -> pl.DataFrame:
    """Return the refused rows of all landings in force."""
    parts = [part for landed in landing.ledger(store) for part in landed.parts if part.table == "rejects"]
    return pl.concat([frames.empty(REJECTS), *(pl.read_parquet(store.root / part.path) for part in parts)])


# ---- deduplication


def test_file_lands_once_under_any_name(store: Store, tmp_path: Path) -> None:
    first = land(store, put(tmp_path, LOG, "monday"))
    assert first.is_new
    assert first.landing.format == "sacct"
    assert first.landing.source_file == "monday"
    assert first.landing.landing_id == first.landing.content_sha256[:16]
    assert first.landing.row_count() == 1
    again = land(store, put(tmp_path, LOG, "tuesday"))
    assert not again.is_new
    assert again.landing == first.landing
    assert landing.ledger(store) == [first.landing]


@pytest.mark.parametrize("damage", [b"torn", b"0000000000000000", b"flipped"])
def test_landings_are_ordered_by_sequence_not_by_clock(
    damage: bytes, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SetBack(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return NOON.replace(year=2017)

    first = land(store, put(tmp_path, LOG, "monday")).landing
    monkeypatch.setattr(landing, "datetime", SetBack)
    second = land(store, put(tmp_path, LOG + LOG.splitlines()[1].replace("7", "8", 1) + "\n", "tuesday")).landing
    assert second.landed_at < first.landed_at
    assert landing.ledger(store) == [first, second]
    counted = store.root / "landing.sequence"
    counted.write_bytes(counted.read_bytes().replace(b"2 ", b"0 ", 1) if damage == b"flipped" else damage)
    third = land(store, put(tmp_path, LOG + BAD_LINE, "wednesday")).landing
    assert [lot.sequence for lot in landing.ledger(store)] == [1, 2, 3]
    assert landing.ledger(store)[-1] == third


def test_landing_without_manifest_is_set_aside_and_repeated(store: Store, tmp_path: Path) -> None:
    first = land(store, put(tmp_path, LOG, "monday")).landing
    (store.landed / first.landing_id / "landing.json").unlink()
    again = land(store, put(tmp_path, LOG, "tuesday"))
    assert again.is_new
    assert landing.ledger(store) == [again.landing]
    assert len(list((store.root / "damaged" / first.landing_id).iterdir())) == 1, "it is kept"


def test_file_landed_concurrently_by_another_process_is_not_new(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = landing.write_landing

    def slow(landed: Landing, folder: Path) -> None:
        monkeypatch.setattr(landing, "write_landing", write)
        assert land(store, put(tmp_path, LOG, "tuesday")).is_new
        write(landed, folder)

    monkeypatch.setattr(landing, "write_landing", slow)
    assert not land(store, put(tmp_path, LOG, "monday")).is_new
    (landed,) = landing.ledger(store)
    assert landed.source_file == "tuesday"


def test_landed_rows_name_their_file_and_rejects_their_landing(store: Store, tmp_path: Path) -> None:
    landed = land(store, put(tmp_path, LOG + BAD_LINE, "log")).landing
    assert landed.row_count() == 1
    assert landed.refused_count == 1
    assert rows(store, landed, "job_records").select("job_id", "source_file", "line").rows() == [("7", "log", 2)]
    reject = rows(store, landed, "rejects").row(0, named=True)
    assert (reject["landing_id"], reject["source_file"], reject["line"]) == (landed.landing_id, "log", 3)
    assert reject["raw"].startswith("8|yesterday")
    assert reject["reason"]
    assert reject["remedy"]


def test_new_warehouse_is_private_unless_permissions_are_changed(store: Store, tmp_path: Path) -> None:
    land(store, put(tmp_path, LOG))
    assert store.root.stat().st_mode & 0o007 == 0
    store.root.chmod(0o755)
    land(store, put(tmp_path, LOG + BAD_LINE))
    assert store.root.stat().st_mode & 0o777 == 0o755


def test_file_of_mostly_refused_rows_is_refused(store: Store, tmp_path: Path) -> None:
    with apply_limits(Limits(max_refused_count=3)):
        _refuse_as_a_whole(store, tmp_path)


def _refuse_as_a_whole(store: Store, tmp_path: Path) -> None:
    header, good = LOG.splitlines(keepends=True)
    assert land(store, put(tmp_path, LOG + 3 * BAD_LINE)).landing.refused_count == 3
    with pytest.raises(InputRefused, match="More than 3 of its rows are refused"):
        land(store, put(tmp_path, LOG + 4 * BAD_LINE))
    many = header + "".join(good.replace("7|", f"{number}|", 1) for number in range(9)) + 5 * BAD_LINE
    assert land(store, put(tmp_path, many)).landing.refused_count == 5


def test_folder_that_is_not_an_input_is_refused(store: Store, tmp_path: Path) -> None:
    put(tmp_path, LOG)
    with pytest.raises(InputRefused, match="not a file"):
        land(store, tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ios/8/raw", "ios/8/raw"),
        ("ios/8/raw.tar.zst", "ios/8/raw.tar.zst"),
        ("ios/8/_text", "ios/8/_text"),
        ("ios/17.txt", "ios/17.txt"),
        ("ios/run", "run"),
        ("ios/rawer.tar", "rawer.tar"),
    ],
)
def test_trace_name_includes_distinguishing_folders(tmp_path: Path, name: str, expected: str) -> None:
    assert get_input_name(tmp_path / name, get_source("recorder")) == expected
    assert get_input_name(tmp_path / name, get_source("sacct")) == Path(name).name
    assert get_input_name(Path("/8/raw"), get_source("recorder")) == "8/raw"


def test_different_content_is_another_landing_in_order(store: Store, tmp_path: Path) -> None:
    names = ["z", "a", "m"]
    for number, name in enumerate(names):
        land(store, put(tmp_path, LOG.replace("7|", f"{number}|"), name))
    assert [landed.source_file for landed in landing.ledger(store)] == names
    assert len({landed.landing_id for landed in landing.ledger(store)}) == 3


def test_landing_is_found_by_its_id(store: Store, tmp_path: Path) -> None:
    landed = land(store, put(tmp_path, LOG)).landing
    assert landing.find(store, landed.landing_id) == landed
    assert landing.find(store, "nothing") is None


def test_ledger_of_new_warehouse_is_empty(store: Store) -> None:
    assert landing.ledger(store) == []
    landing.sweep(store)
    assert not store.root.exists()


# ---- replacement


def test_replace_makes_a_new_generation_that_supersedes_previous(store: Store, tmp_path: Path) -> None:
    path = put(tmp_path, LOG.replace("Z|", "|"))
    utc = land(store, path, time_zone="UTC").landing
    local = land(store, path, replace=True, time_zone="America/Los_Angeles").landing
    assert (utc.time_zone, local.time_zone) == ("UTC", "America/Los_Angeles")
    assert (local.first_at, local.last_at) == ("2018-02-09T18:00:00+00:00", "2018-02-09T19:00:00+00:00")
    assert local.generation == 1
    assert local.landing_id == f"{utc.landing_id}-1"
    assert landing.ledger(store) == [local]
    assert landing.find(store, utc.landing_id) == utc, "the release before still points to it"
    moved = rows(store, local, "job_records")["started_at"] - rows(store, utc, "job_records")["started_at"]
    assert moved.to_list() == [timedelta(hours=8)]
    assert not land(store, path, time_zone="UTC").is_new
    assert land(store, path, replace=True, time_zone="UTC").landing.generation == 2


def test_unknown_format_raises_usage_error_and_lands_nothing(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Unknown format 'nonsense'"):
        land(store, put(tmp_path, LOG), format_name="nonsense")
    assert landing.ledger(store) == []


# ---- refused inputs


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02 neither log nor polls", gzip.compress(LOG.encode())[:-9]],
    ids=["empty", "foreign", "truncated"],
)
def test_unreadable_file_is_recorded_once_and_retried(store: Store, tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, content)
    for _ in range(3):
        with pytest.raises(InputRefused) as refusal:
            land(store, path)
    assert refused(store).select("source_file", "line", "reason", "remedy").rows() == [
        ("input", None, refusal.value.reason, refusal.value.remedy)
    ]
    (landed,) = landing.ledger(store)
    assert (landed.generation, landed.row_count(), landed.refused_count) == (0, 0, 1)


def test_empty_files_are_refused_separately_by_name(store: Store, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with pytest.raises(InputRefused, match="empty"):
            land(store, put(tmp_path, "", name))
    assert refused(store)["source_file"].to_list() == ["one", "two"]


def test_refused_file_lands_once_readable(store: Store, tmp_path: Path) -> None:
    path = put(tmp_path, LOG)
    with pytest.raises(InputRefused):
        land(store, path, format_name="h5lmt")
    landed = land(store, path)
    assert landed.is_new
    assert landed.landing.generation == 1
    assert refused(store).is_empty(), "the refusal holds no more"
    assert not land(store, path).is_new


def test_missing_file_or_folder_is_refused_and_not_recorded(store: Store, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InputRefused, match="not a file"):
            land(store, path)
    assert landing.ledger(store) == []


@pytest.mark.parametrize("content", [LOG.partition("\n")[0] + "\n", LOG.partition("\n")[0] + "\n" + BAD_LINE])
def test_file_without_good_rows_is_retried_without_new_landing(store: Store, tmp_path: Path, content: str) -> None:
    path = put(tmp_path, content)
    first = land(store, path)
    assert first.is_new
    assert first.landing.row_count() == 0
    for replace in (False, True):
        again = land(store, path, replace=replace)
        assert not again.is_new
        assert again.landing == first.landing
    assert [found.name for found in store.landed.iterdir()] == [first.landing.landing_id]


def test_file_without_good_rows_lands_once_it_has_rows(store: Store, tmp_path: Path) -> None:
    # 01:30 occurs twice at the end of daylight saving time, except in UTC.
    path = put(
        tmp_path, LOG.replace("Z|", "|").replace("2018-02-09T10:00:00", "2018-11-04T01:30:00").replace("02-09", "11-04")
    )
    assert land(store, path, time_zone="America/New_York").landing.row_count() == 0
    landed = land(store, path, time_zone="UTC")
    assert landed.is_new
    assert (landed.landing.row_count(), landed.landing.generation) == (1, 1)


# ---- atomicity


def source(batches: Iterator[Batch]) -> Source:
    return Source("fake", "A fake.", "jobs", lambda _: True, lambda *_: batches)


def good_batch(job_id: str = "1") -> Batch:
    row = {"job_id": job_id, "source_file": "", "line": 1}
    return Batch(JOB_RECORDS, pl.DataFrame([row], schema=frames.schema(JOB_RECORDS)))


def test_truncated_file_lands_only_its_refusal(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking() -> Iterator[Batch]:
        for number in range(5):
            yield good_batch(str(number))
        raise InputRefused("It breaks off.", "Fetch it again.")

    monkeypatch.setattr(landing, "recognize", lambda _: source(breaking()))
    with pytest.raises(InputRefused, match="breaks off"):
        land(store, put(tmp_path, LOG))
    (landed,) = landing.ledger(store)
    assert [part.table for part in landed.parts] == ["rejects"]
    assert refused(store)["reason"].to_list() == ["It breaks off."]
    assert len(list(store.landed.iterdir())) == 1


def test_failing_reader_leaves_no_files(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def buggy() -> Iterator[Batch]:
        yield good_batch()
        raise ZeroDivisionError

    monkeypatch.setattr(landing, "recognize", lambda _: source(buggy()))
    with pytest.raises(ZeroDivisionError):
        land(store, put(tmp_path, LOG))
    assert list(store.landed.iterdir()) == []


def test_landing_in_progress_is_not_swept(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swept_meanwhile() -> Iterator[Batch]:
        for number in range(8):
            yield good_batch(str(number))
        landing.sweep(store)

    monkeypatch.setattr(landing, "recognize", lambda _: source(swept_meanwhile()))
    landed = land(store, put(tmp_path, LOG)).landing
    assert rows(store, landed, "job_records")["job_id"].to_list() == list("01234567")


# ---- polls


def test_polls_are_partitioned_by_utc_day_and_sorted(store: Store, tmp_path: Path) -> None:
    lines = [
        "2018-02-10T00:00:00Z,b,2,1,1",
        "2018-02-09T23:59:58Z,b,2,2,2",
        "2018-02-10T00:00:00Z,a,2,3,3",
        "2018-02-09T23:59:58Z,a,2,4,4",
        "2018-02-11T00:00:00Z,a,600,5,5",
    ]
    landed = land(store, put(tmp_path, POLLS + "\n".join(lines) + "\n"), filesystem="lake").landing
    assert [(part.day, part.row_count) for part in landed.parts] == [
        ("2018-02-09", 2),
        ("2018-02-10", 2),
        ("2018-02-11", 1),
    ]
    assert rows(store, landed, "polls")["read_bytes_per_s"].to_list() == [4, 2, 3, 1, 5]
    assert landed.parts[0].first == ("2018-02-09T23:59:58+00:00", "a", "lake")
    assert landed.parts[0].last == ("2018-02-09T23:59:58+00:00", "b", "lake")
    assert [part.longest_interval_s for part in landed.parts] == [2, 2, 600]
    assert not may_repeat(landed.parts)
    assert landing.ledger(store) == [landed], "the edges survive the manifest"


def test_part_with_duplicate_poll_has_no_edges(store: Store, tmp_path: Path) -> None:
    lines = ["2018-02-09T10:00:00Z,a,2,1,1", "2018-02-09T10:00:02Z,a,2,1,1", "2018-02-09T10:00:00Z,a,2,1,1"]
    (part,) = land(store, put(tmp_path, POLLS + "\n".join(lines) + "\n")).landing.parts
    assert (part.first, part.last) == (None, None)
    assert may_repeat([part])


NOON = datetime(2018, 2, 9, 12, tzinfo=UTC)


def part(first: tuple[float, str], last: tuple[float, str]) -> Part:
    begin, end = (((NOON + timedelta(seconds=at)).isoformat(), controller, "lake") for at, controller in (first, last))
    return Part("polls", "", "2018-02-09", 9, 100, "", begin, end)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], False),
        ([part((0, "a"), (9, "b"))], False),
        ([part((0, "a"), (9, "b")), part((10, "a"), (20, "b"))], False),
        ([part((10, "a"), (20, "b")), part((0, "a"), (9, "b"))], False),
        ([part((0, "a"), (9, "b")), part((9, "c"), (20, "b"))], False),
        ([part((0, "a"), (9, "b")), part((9, "b"), (20, "b"))], True),
        ([part((0, "a"), (9, "b")), part((9, "a"), (20, "b"))], True),
        ([part((0, "a"), (30, "b")), part((5, "a"), (6, "b")), part((10, "a"), (20, "b"))], True),
        ([part((5, "a"), (6, "b")), part((0, "a"), (3, "b")), part((3.5, "a"), (5.5, "b"))], True),
        ([part((0, "a"), (3, "b")), part((3.5, "a"), (4, "b"))], False),
    ],
)
def test_polls_may_repeat_if_time_ranges_of_parts_overlap(parts: list[Part], *, expected: bool) -> None:
    assert may_repeat(parts) is expected


# ---- batches without a file


def test_batches_of_a_database_land_once_by_content(store: Store) -> None:
    batches = [good_batch(), rejects([(3, "bad", "mend", "x")]), good_batch("2")]
    first = landing.land_batches(store, "mysql://host/lmt", "lmt-database", batches)
    assert first.is_new
    assert (first.landing.row_count(), first.landing.refused_count) == (2, 1)
    assert not landing.land_batches(store, "mysql://host/lmt", "lmt-database", batches).is_new
    assert landing.land_batches(store, "mysql://host/lmt", "lmt-database", [*batches, good_batch("3")]).is_new
    assert len(landing.ledger(store)) == 2
