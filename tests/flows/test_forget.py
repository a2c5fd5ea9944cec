"""Forgetting removes data from every byte and release, as if they had never landed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from iosig.flows import forget
from iosig.flows.forget import ErasureRequest
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.errors import InputRefused, NothingToDo, UsageError
from iosig.warehouse.releases import expiring, holds, releases
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release, list_published_tables
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store, lock_warehouse
from tests.documents import require_schema
from tests.flows import growing_traces
from tests.flows.test_privacy import texts_of
from tests.nights import Cli, land_files, run_night, write_small_site

pytestmark = pytest.mark.usefixtures("quick_checks")

USER = "zoequill"
HEAD = "JobID|User|JobName|Partition|NNodes|Start|End|State|Comment\n"
OTHERS = "30{0}|bob|ior|batch|8|2026-03-03T0{0}:00:00|2026-03-03T0{0}:20:00|COMPLETED|for the group\n"
OWN = (
    "40{0}|zoequill|ior|batch|8|2026-03-03T0{0}:30:00|2026-03-03T0{0}:50:00|COMPLETED|mine\n"
    "40{0}.0||ior|batch|8|2026-03-03T0{0}:30:00|2026-03-03T0{0}:50:00|COMPLETED|\n"
    "40{0}|zoequill|broken|batch|x|never|never|COMPLETED|\n"
)
QUEUE = "{0}\nJOBID|USER|PARTITION|STATE|START_TIME|NODES|COMMENT|NAME\n39|bob|batch|PENDING|N/A|8|{1}|ior\n"
OWN_QUEUED = "49|zoequill|batch|PENDING|N/A|8||never\n"


def write_nights(folder: Path, *, with_user: bool) -> list[Path]:
    """Write the inputs of three nights: the small site, jobs of several users, and a trace of a user's file."""
    write_small_site(folder / "0")
    for night in (1, 2):
        (folder / str(night)).mkdir()
        text = HEAD + OTHERS.format(night) + OWN.format(night) * with_user
        (folder / str(night) / "jobs.sacct").write_text(text)
        queue = QUEUE.format(1_772_496_000 + 3_600 * night, f"with {USER}" if with_user else "with forgotten")
        (folder / str(night) / "queue.txt").write_text(queue + OWN_QUEUED * with_user)
    growing_traces.trace(folder / "2" / "run.jsonl", 4)
    if with_user:
        (folder / "2" / f"{USER}.csv").write_text("time_s,write_bytes\n" + "".join(f"{n},{n * 9}\n" for n in range(99)))
    return [folder / str(night) for night in range(3)]


def work(store: Store, nights: list[Path]) -> None:
    for night in nights:
        land_files(store, night, time_zone="UTC")
        run_night(store)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None) -> Path:
    """A warehouse with the user's data after three nights, next to their inputs; must not be changed."""
    folder = tmp_path_factory.mktemp("nights")
    work(Store(folder / "with"), write_nights(folder / "site", with_user=True))
    return folder / "with"


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None) -> Store:
    """A warehouse after the same nights without the user's data; must not be changed."""
    folder = tmp_path_factory.mktemp("without")
    work(Store(folder / "without"), write_nights(folder / "site", with_user=False))
    return Store(folder / "without")


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Store:
    shutil.copytree(made, tmp_path / "warehouse", symlinks=True)
    return Store(tmp_path / "warehouse")


def rows(store: Store, release: Release) -> dict[str, list[str]]:
    """Every row of every table of a release, without columns about landings and its history."""
    found = {}
    with open_release(store, release) as connection:
        for table in list_published_tables():
            if table.name in ("quality", "quality_daily"):
                continue
            names = [f'"{name}"' for name in table.column_names if name not in ("landing_id", *_ABOUT_BEFORE)]
            query = (
                f'select struct_pack({", ".join(f"{name} := {name}" for name in names)})::varchar from "{table.name}"'
            )
            found[table.name] = sorted(str(row) for (row,) in connection.sql(query).fetchall())
    return found


#: columns about the previous release, which forgetting does not recompute
_ABOUT_BEFORE = (
    "is_changed",
    "change_correlation",
    "relative_volume_change",
    "added_burst_count",
    "removed_burst_count",
)


def forget_data(store: Store, *, user: str | None = None, landing_id: str | None = None) -> None:
    with lock_warehouse(store):
        found = forget.find(store, Settings(), ErasureRequest(landing_id, user, "asked for"))
        forget.forget(store, Settings(), found, lambda *_: None)


def assert_gone(store: Store, word: str) -> None:
    assert {name for name, text in texts_of(store.root) if word in text} == set()
    assert verify(store, is_all=True) == []


def assert_as_without(store: Store, without: Store) -> None:
    for release, other in zip(releases.history(store), releases.history(without), strict=True):
        assert rows(store, release) == rows(without, other)


@pytest.mark.long
def test_forgotten_user_is_in_no_byte_and_no_release(store: Store, without: Store) -> None:
    before = releases.history(store)
    assert any(USER in text for _, text in texts_of(store.root))
    forget_data(store, user=USER)
    assert_gone(store, USER)
    after = releases.history(store)
    assert [release.sequence for release in after] == [1, 2, 3]
    assert after[0] == before[0], "it never had any"
    assert releases.find(store, before[2].release_id) == after[2] == releases.current(store)
    assert after[2].parent_release_id == after[1].release_id
    told = releases.redirects(store)[before[1].release_id]
    assert (told["to"], told["reason"]) == (after[1].release_id, "asked for")
    assert_as_without(store, without)
    with pytest.raises(NothingToDo):
        forget_data(store, user=USER)


@pytest.mark.long
def test_nights_continue_and_forgotten_data_are_refused(store: Store, made: Path) -> None:
    forget_data(store, user=USER)
    with pytest.raises(NothingToDo):
        run_night(store)
    site = made.parent / "site"
    arrivals = land_paths(store, Settings(), [str(site / "2")], ReadOptions(time_zone="UTC"))
    found = {Path(arrival.name).name: arrival for arrival in arrivals}
    assert isinstance(found[f"{USER}.csv"].refusal, InputRefused)
    assert found["jobs.sacct"].landed
    assert not found["jobs.sacct"].landed.is_new
    assert_gone(store, USER)
    (site.parent / "more").mkdir(exist_ok=True)
    (site.parent / "more" / "jobs.sacct").write_text(HEAD + OTHERS.format(5))
    work(store, [site.parent / "more"])
    assert len(releases.history(store)) == 4
    assert verify(store, is_all=True) == []


@pytest.mark.long
def test_forgotten_landing_is_removed_from_every_release(store: Store, tmp_path: Path) -> None:
    night = write_nights(tmp_path / "site", with_user=True)[1]
    (gone,) = [one for one in landing.ledger(store) if one.source_file == "jobs.sacct" and one.sequence == 3]
    forget_data(store, landing_id=gone.landing_id)
    assert landing.find(store, gone.landing_id) is None
    other = Store(tmp_path / "other")
    (night / "jobs.sacct").unlink()
    work(other, [tmp_path / "site" / str(number) for number in range(3)])
    assert rows(store, releases.find(store, None)) == rows(other, releases.find(other, None))
    assert verify(store, is_all=True) == []
    with pytest.raises(UsageError, match="Unknown landing"):
        forget_data(store, landing_id="0" * 16)
    with pytest.raises(NothingToDo, match="was erased on"):
        forget_data(store, landing_id=f"{gone.landing_id}-1")


@pytest.mark.long
def test_rolled_back_pinned_and_expired_releases_are_cleaned(store: Store, without: Store) -> None:
    second = releases.history(store)[1]
    holds.roll_back(store, second.release_id)
    expiring.pin(store, second.release_id)
    expiring.expire(store, 1)
    assert [release.sequence for release in releases.list_readable(store)] == [2, 4]
    forget_data(store, user=USER)
    assert_gone(store, USER)
    kept = releases.list_readable(store)
    assert [release.sequence for release in kept] == [2, 4]
    assert list(expiring.pins(store)) == [kept[0].release_id]
    other = releases.history(without)[1]
    assert [rows(store, release) for release in kept] == [rows(without, other)] * 2


@pytest.mark.long
def test_interrupted_forget_must_be_completed_first(
    store: Store, without: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(holds, "rename", kill)
        with pytest.raises(KeyboardInterrupt):
            forget_data(store, user=USER)
    with pytest.raises(UsageError, match="has an interrupted erasure"):
        forget_data(store, user="somebodyelse")
    forget_data(store, user=USER)
    assert_gone(store, USER)
    assert_as_without(store, without)


@pytest.mark.slow
def test_dry_run_reports_changes_and_unreachable_copies(cli: Cli, store: Store) -> None:
    before = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    ours = ("--warehouse", store.root, "forget")
    code, out, _ = cli(*ours, "--user", USER, "--dry-run")
    assert code == 0
    assert "2 releases would be replaced" in out
    assert "backups" in out
    assert {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()} == before
    code, out, _ = cli(*ours, "--user", USER, "--dry-run", "--json")
    assert (code, require_schema(out)) == (0, ["iosig-forgetting/1"])
    assert len(json.loads(out)["releases"]) == 2
    assert cli(*ours, "--user", USER, "--reason", f"{USER} left")[0] == 2
    assert cli(*ours)[0] == 2
    code, out, err = cli(*ours, "--user", USER, "--reason", "left")
    assert code == 0, err
    assert_gone(store, USER)
