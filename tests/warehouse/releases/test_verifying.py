"""Test verification and repair: every changed byte is detected, its file is named and repaired where possible."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from iosig.warehouse.errors import MachineFault
from iosig.warehouse.releases import checksums, expiring, losses, releases, seals
from iosig.warehouse.releases.relocating import relocate
from iosig.warehouse.releases.repairing import repair
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.sources.rows.rejects import rejects
from iosig.warehouse.store.landing import land_batches
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.sql.given import DAY
from tests.warehouse.releasing import keys, publish

JOBS = ["100", "80", "81", "91", "run"]


@pytest.fixture(scope="module")
def intact(published: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Path]:
    """A warehouse in a place of its own, and a copy of it."""
    folder = tmp_path_factory.mktemp("intact")
    shutil.copytree(published, folder / "warehouse", symlinks=True)
    store = Store(folder / "warehouse")
    relocate(store)
    expiring.pin(store, "2018-02-09-first")
    shutil.copytree(store.root, folder / "copy", symlinks=True)
    return store, folder / "copy"


@pytest.fixture
def sound(intact: tuple[Store, Path]) -> Store:
    """The warehouse, restored from its copy: it stays in its place, since a relocation takes as long as a test."""
    store, copy = intact
    shutil.rmtree(store.root)
    shutil.copytree(copy, store.root, symlinks=True)
    return store


def flipped(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1 << place % 8
    path.chmod(0o644)
    path.write_bytes(content)


def files(store: Store) -> list[Path]:
    """Return the files that releases depend on, without duplicates; of links, only the first."""
    found = [*store.tables.rglob("*.parquet"), *store.tables.rglob("*.avro"), *store.tables.rglob("*.text")]
    found += [path for folder in ("seals", "copies") for path in (store.root / folder).iterdir()]
    found += [*(store.root / "snapshot_files").iterdir(), store.root / "pins.json"]
    found += [store.tables / name / "metadata" / f"{hint(store, name)}.metadata.json" for name in ("jobs", "releases")]
    return sorted(found)


def hint(store: Store, table: str) -> str:
    return (store.tables / table / "metadata" / "version-hint.text").read_text()


def test_intact_warehouse_passes_verification(sound: Store) -> None:
    told: list[tuple[int, int]] = []
    assert verify(sound, progress=lambda *done: told.append(done)) == []
    assert verify(sound, is_all=True) == []
    assert told[-1][0] == told[-1][1] > 0


@pytest.mark.parametrize("seed", one_in(50, range(50), slow=5))
def test_bit_flip_is_detected_and_named(sound: Store, seed: int) -> None:
    draw = random.Random(seed)
    path = draw.choice(files(sound))
    flipped(path, draw.randrange(1 << 20))
    assert path.relative_to(sound.root).as_posix() in {damage.path for damage in verify(sound, is_all=True)}


def test_missing_or_truncated_file_is_detected(sound: Store) -> None:
    path = releases.files_of(sound, releases.find(sound, None))["jobs"][0]
    content = path.read_bytes()
    path.unlink()
    for kept in (None, content[: len(content) // 2], b""):
        if kept is not None:
            path.write_bytes(kept)
        (damage,) = verify(sound)
        assert damage.path == path.relative_to(sound.root).as_posix()
        assert ("does not exist" if kept is None else "bytes, not") in damage.problem
        assert "iosig run" in damage.remedy


def test_older_release_is_verified_only_on_request(sound: Store) -> None:
    first, second = (set(releases.files_of(sound, release)["jobs"]) for release in releases.history(sound))
    (path,) = first - second
    flipped(path, 100)
    assert verify(sound) == []
    assert [damage.path for damage in verify(sound, is_all=True)] == [path.relative_to(sound.root).as_posix()]


# ---- repair


def test_damaged_caches_do_not_prevent_reading(sound: Store) -> None:
    for cache in ("release_index", "snapshot_files"):
        for path in (sound.root / cache).iterdir():
            path.write_text('{"torn')
    assert keys(sound, releases.find(sound, None), "jobs", "job_id") == JOBS


def test_links_caches_and_seals_are_rebuilt(sound: Store) -> None:
    (sound.root / "latest").unlink()
    (sound.root / "snapshot_files" / "older-1.json").write_text("{")
    (sound.root / seals.make_seal_name(releases.find(sound, None))).write_text("{}")
    assert len(verify(sound)) == 3
    assert len(repair(sound)) == 3
    assert verify(sound) == []


def damaged_metadata(store: Store) -> None:
    (store.tables / "jobs" / "metadata" / f"{hint(store, 'jobs')}.metadata.json").write_text('{"format-version": 2')


def emptied_catalogue(store: Store) -> None:
    with closing(sqlite3.connect(store.catalogue)) as connection, connection:
        connection.execute("delete from iceberg_tables")


def damaged_catalogue(store: Store) -> None:
    store.catalogue.write_bytes(b"SQLite format 3\0" + b"\0" * 5000)


def deleted_catalogue(store: Store) -> None:
    store.catalogue.unlink()


@pytest.mark.slow
def test_damaged_metadata_restore_last_intact_release(sound: Store) -> None:
    first, second = releases.history(sound)
    damaged_metadata(sound)
    assert verify(sound)
    mended = repair(sound)
    assert any(first.release_id in each.outcome for each in mended)
    assert releases.history(sound) == [first]
    assert keys(sound, first, "jobs", "job_id") == ["80", "81", "90", "run"]
    assert verify(sound) == []
    again = publish(sound, "second", {"jobs": {9: "job_id \n 91", 10: "job_id \n 100"}})
    assert (again.release_id, again.sequence) == (second.release_id, 2)
    assert keys(sound, again, "jobs", "job_id") == JOBS
    assert verify(sound, is_all=True) == []


@pytest.mark.parametrize(("table_name", "kind"), one_in(3, product(("jobs", "polls_daily"), ("snap-*", "*-m[0-9]*"))))
def test_damaged_manifests_are_rewritten(sound: Store, table_name: str, kind: str) -> None:
    """The manifests of `polls_daily` belong to the first release and are shared by all releases."""
    before = releases.history(sound)
    for path in sound.tables.glob(f"{table_name}/metadata/{kind}.avro"):
        path.write_bytes(path.read_bytes()[:-20])
    assert verify(sound)
    assert any("written again" in each.outcome for each in repair(sound))
    assert verify(sound, is_all=True) == []
    sound.files.remove("release_index", "snapshot_files")
    assert releases.history(sound) == before
    assert keys(sound, before[0], "jobs", "job_id") == ["80", "81", "90", "run"]
    assert keys(sound, before[1], "jobs", "job_id") == JOBS
    publish(sound, "third", {"jobs": {9: ""}, "polls_daily": {9: ""}})
    assert keys(sound, releases.find(sound, None), "jobs", "job_id") == ["100", "80", "81", "run"]
    assert verify(sound, is_all=True) == []


def test_damaged_manifest_without_file_list_restores_older_release(sound: Store) -> None:
    first, second = releases.history(sound)
    (path,) = (
        name for name in checksums.read(sound, seals.make_seal_name(second)) or {} if "jobs/metadata/snap" in name
    )
    (sound.root / path).unlink()
    sound.files.remove("snapshot_files")
    assert any(first.release_id in each.outcome for each in repair(sound))
    assert releases.history(sound) == [first]
    assert verify(sound, is_all=True) == []


@pytest.mark.parametrize("damage", one_in(3, [emptied_catalogue, damaged_catalogue, deleted_catalogue]))
def test_lost_catalogue_is_refused_and_rebuilt_from_seals(sound: Store, damage: object) -> None:
    assert callable(damage)
    before = releases.history(sound)
    damage(sound)
    with pytest.raises(MachineFault, match="iosig repair"):
        releases.history(sound)
    with pytest.raises(MachineFault, match="iosig repair"):
        publish(sound, "third", {"jobs": {9: ""}})
    assert verify(sound)
    repair(sound)
    assert releases.history(sound) == before
    assert keys(sound, before[-1], "jobs", "job_id") == JOBS
    assert verify(sound, is_all=True) == []


def test_lost_day_is_left_to_next_run(sound: Store) -> None:
    path = next(p for p in releases.files_of(sound, releases.find(sound, None))["jobs"] if "2018-02-08" in p.name)
    flipped(path, 50)
    (mended,) = repair(sound)
    assert (mended.outcome, mended.remedy) == ("lost", "`iosig run` computes 2018-02-08 again.")
    assert losses.losses(sound).days == {DAY.replace(day=8)}


def test_damaged_files_are_set_aside(sound: Store) -> None:
    damaged_catalogue(sound)
    content = sound.catalogue.read_bytes()
    repair(sound)
    assert (sound.root / "damaged" / "catalogue.sqlite").read_bytes() == content
    shutil.rmtree(sound.root / "damaged")
    assert verify(sound) == []


def test_damaged_metadata_without_caches_are_repaired(sound: Store) -> None:
    sound.files.remove("release_index", "snapshot_files")
    (path,) = sound.tables.glob(f"releases/metadata/{hint(sound, 'releases')}.metadata.json")
    path.write_bytes(path.read_bytes()[:500])
    (damage,) = verify(sound)
    assert sound.root / damage.path == path
    assert repair(sound)[-1].outcome.startswith("restored to release 2018-02-09-")
    assert verify(sound) == []
    assert len(releases.history(sound)) == 1


@pytest.mark.slow
def test_without_intact_release_all_tables_are_set_aside(sound: Store) -> None:
    (first,) = (
        path
        for path in sound.tables.glob("releases/data/*")
        if path.name in str(checksums.read(sound, seals.make_seal_name(releases.history(sound)[0])))
    )
    flipped(first, 40)
    mended = repair(sound)
    assert [(each.path, each.outcome) for each in mended][-1] == (
        "catalogue.sqlite",
        "set aside with all tables: no release is undamaged",
    )
    assert releases.history(sound) == []
    assert (sound.root / "damaged" / "tables" / "jobs").is_dir()
    publish(sound, "again", {"jobs": {9: "job_id \n 91"}})
    assert keys(sound, releases.find(sound, None), "jobs", "job_id") == ["91"]
    assert verify(sound, is_all=True) == []


def test_damaged_journal_is_set_aside(sound: Store) -> None:
    sound.journal.write_bytes(b"no journal")
    assert [damage.path for damage in verify(sound)] == ["predictions.sqlite"]
    assert [each.outcome for each in repair(sound)] == ["set aside as damaged/predictions.sqlite"]
    assert verify(sound) == []
    assert (sound.root / "damaged" / "predictions.sqlite").read_bytes() == b"no journal"


def test_damaged_catalogue_and_journal_are_both_listed(sound: Store) -> None:
    damaged_catalogue(sound)
    sound.journal.write_bytes(b"no journal")
    assert {damage.path for damage in verify(sound)} >= {"catalogue.sqlite", "predictions.sqlite"}


def test_every_changed_byte_of_catalogue_is_detected(sound: Store) -> None:
    """A byte of a free page or of the header changes no table, but is detected."""
    content = sound.catalogue.read_bytes()
    for place in (18, 24, 60, 96, len(content) - 1, *range(100, len(content), 4099)):
        flipped(sound.catalogue, place)
        assert [damage.path for damage in verify(sound)] == ["catalogue.sqlite"]
        sound.catalogue.write_bytes(content)
    assert verify(sound) == []


def test_failed_change_of_catalogue_keeps_its_checksum(sound: Store) -> None:
    before = checksums.read(sound, checksums.CATALOGUE_SEAL)
    with pytest.raises(ValueError, match="no change"), checksums.changing_catalogue(sound):
        raise ValueError("no change")
    assert checksums.read(sound, checksums.CATALOGUE_SEAL) == before
    assert verify(sound) == []


def test_wrong_cache_is_detected_and_repaired(sound: Store) -> None:
    for name in ("release_index", "snapshot_files"):
        for path in (sound.root / name).glob("*.json"):
            path.write_text(path.read_text().replace("2018-02-0", "2018-02-1"))
        assert verify(sound), name
        repair(sound)
        assert verify(sound) == []
    assert keys(sound, releases.find(sound, None), "jobs", "job_id") == JOBS


def test_damaged_format_file_is_rewritten(sound: Store) -> None:
    for content in ("", "{", '{"form": 3, "read_by": "0.2"}', '{"form": 1, "read_by": "0.2"}'):
        (sound.root / "form.json").write_text(content)
        assert [damage.path for damage in verify(sound)] == ["form.json"], content
        assert [each.path for each in repair(sound)] == ["form.json"]
    assert verify(sound) == []


def test_newest_release_with_intact_data_is_restored(sound: Store) -> None:
    """A table without days cannot be recomputed by day, but an older release has another file of it."""
    first = releases.history(sound)[0]
    publish(sound, "third", {"applications": {None: "application_id \n a/x/1"}})
    (path,) = releases.files_of(sound, releases.find(sound, None))["applications"]
    flipped(path, 50)
    assert any("restored to release 2018-02-09-second" in each.outcome for each in repair(sound))
    assert [release.release_id for release in releases.history(sound)] == [first.release_id, "2018-02-09-second"]
    assert verify(sound) == []


def test_losses_are_kept_until_settled_by_a_run(sound: Store) -> None:
    losses.add(sound, losses.Losses(landing_ids=frozenset({"l1", "l2"})))
    losses.add(sound, losses.Losses(days=frozenset({None, DAY})))
    assert losses.losses(sound) == losses.Losses(frozenset({None, DAY}), frozenset({"l1", "l2"}))
    losses.settle(sound, losses.Losses(frozenset({None, DAY}), frozenset({"l1"})))
    assert losses.losses(sound) == losses.Losses(landing_ids=frozenset({"l2"}))
    losses.settle(sound, losses.Losses(landing_ids=frozenset({"l2"})))
    assert not (sound.root / "losses.json").exists()


def test_manifest_of_unreleased_landing_must_match_its_folder(sound: Store) -> None:
    """No seal has its checksum yet, so the manifest has a separate checksum."""
    landed = land_batches(sound, "jobs", "sacct", [rejects([(1, "no job", "none", None)])]).landing
    assert verify(sound) == []
    path = sound.root / landed.manifest
    content = path.read_text()
    for before, after in (
        ('"generation": 0', '"generation": 1'),
        ('"content_sha256": "', '"content_sha256": "0'),
        ("landed/", "landed/0"),
        ('"format": "sacct"', '"format": "sacdt"'),
        ('"refused_count": 1', '"refused_count": 0'),
    ):
        assert before in content
        path.write_text(content.replace(before, after))
        assert landed.manifest in {damage.path for damage in verify(sound)}, after
    assert any("set aside" in each.outcome for each in repair(sound))
    assert verify(sound) == []
