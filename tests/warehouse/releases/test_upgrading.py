"""Test upgrades: a warehouse of commit 18b5d00 is converted to the current format with all its content.

`warehouse-18b5d00.tar.zst` holds two nights and a rollback to the first night. Each day has twelve runs on the file
system `scratch`: flash writes and milc reads 300 GB, five bursts of 30 s every 300 s. The second night also landed
`dxt.darshan`, an example of PyDarshan. The warehouse was made in `/data/iosig`.
"""

from __future__ import annotations

import io
import json
import tarfile
from datetime import date
from pathlib import Path

import polars as pl
import pytest
import zstandard
from pyiceberg.table import StaticTable

from iosig.warehouse import renames
from iosig.warehouse.contracts import TABLES, frames, table
from iosig.warehouse.errors import MachineFault, UsageError
from iosig.warehouse.releases import holds, releases, upgrading
from iosig.warehouse.releases.locations import parse_part
from iosig.warehouse.releases.upgrading import needs, upgrade
from iosig.warehouse.releases.verifying import verify
from iosig.warehouse.store import landing
from iosig.warehouse.store.buckets import compute_bucket
from iosig.warehouse.store.form import FORM, FORMER, read_form
from iosig.warehouse.store.manifests import manifest_in
from iosig.warehouse.store.store import Store, document, write_json
from tests.budget import one_in
from tests.warehouse.releasing import keys, publish

IDS = ["2026-03-02-520d754c", "2026-03-03-81a5cb72", "2026-03-02-520d754c-again1"]


def unpack(store: Store) -> None:
    """Unpack the warehouse of commit 18b5d00."""
    packed = (Path(__file__).parent / "warehouse-18b5d00.tar.zst").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompressobj().decompress(packed))) as archive:
        archive.extractall(store.root.parent, filter="data")
    (store.root.parent / "iosig").rename(store.root)


@pytest.fixture
def old(tmp_path: Path) -> Store:
    store = Store(tmp_path / "warehouse")
    unpack(store)
    return store


def rows(store: Store, release_id: str, name: str) -> pl.DataFrame:
    """Return the rows of a released table, read directly from its files."""
    files = releases.files_of(store, releases.find(store, release_id))[name]
    return pl.concat([pl.DataFrame(schema=frames.schema(table(name))), *map(pl.read_parquet, files)])


def old_rows(store: Store, name: str) -> pl.DataFrame:
    """Return the rows of all files of a table of the old warehouse."""
    return pl.concat([pl.read_parquet(path) for path in sorted(store.tables.glob(f"{name}/data/*.parquet"))])


def test_older_format_is_refused_with_remedy(old: Store) -> None:
    assert read_form(old) == FORMER
    for ask in (releases.history, landing.ledger):
        with pytest.raises(UsageError, match="iosig upgrade"):
            ask(old)
    with pytest.raises(UsageError, match="iosig upgrade"):
        publish(old, "fourth", {"jobs": {8: ""}})


@pytest.mark.slow
def test_upgraded_releases_keep_ids_rows_and_verdicts(old: Store) -> None:
    names = ("signatures", "poll_days", "signature_bursts", "attributed_io", "jobs")
    before = {name: old_rows(old, name) for name in names}
    found = needs(old)
    assert found is not None
    assert (found.form, found.file_count > 60, found.written_bytes > 0) == (FORMER, True, True)
    progress: list[tuple[int, int]] = []
    upgrade(old, lambda *done: progress.append(done))
    assert progress[-1] == (3, 3)
    assert (read_form(old), needs(old), (old.root / "before-upgrade").exists()) == (FORM, None, False)
    history = releases.history(old)
    assert [release.release_id for release in history] == IDS
    assert {release.verdict for release in history} == {"passed with warnings"}
    assert [len(keys(old, release, "jobs", "job_id")) for release in history] == [12, 24, 12]
    assert verify(old, is_all=True) == []
    for name, own in before.items():
        present = renames.TABLES.get(name, name)
        after, columns, values = (
            rows(old, IDS[1], present),
            renames.get_renamed_columns(present),
            renames.get_renamed_values(present),
        )
        expected = own.rename({column: columns[column] for column in own.columns if column in columns})
        expected = expected.with_columns(pl.col(c).replace(v) for c, v in values.items() if c in expected.columns)
        assert expected.height > 0, name
        assert not renames.get_renamed_columns(present).keys() & set(after.columns), name
        # the old files contain the rows of all releases
        assert after.join(expected, on=expected.columns, how="anti", nulls_equal=True).is_empty(), name
    assert set(rows(old, IDS[1], "signatures")["method"]) == {"elastic", "iosi_filtered"}
    for name in ("signatures", "signature_points", "signature_bursts", "sample_sets", "classes", "periods"):
        assert set(rows(old, IDS[1], name)["metric"]) == {"bytes"}
    assert rows(old, IDS[1], "job_io").group_by("estimate_source").len().sort("estimate_source").rows() == [
        ("attributed", 24), ("none", 24), ("traced", 2),
    ]  # fmt: skip
    assert "slowed" not in rows(old, IDS[1], "periods")["outcome"]
    requests = pl.read_parquet(next(old.landed.glob("*/trace_requests*.parquet")))
    assert {"start_s", "end_s"} <= set(requests.columns)
    assert requests.height == 7623
    parameters = json.loads(releases.find(old, IDS[0]).parameters)
    assert parameters["signatures"]["min_sample_count"] == 4
    assert parameters["signatures"]["methods"] == ["elastic", "iosi_filtered"]
    assert releases.is_converted(releases.find(old, IDS[0]))


@pytest.mark.slow
def test_other_readers_read_upgraded_releases(old: Store) -> None:
    upgrade(old)
    signatures = StaticTable.from_metadata(str(old.tables / "signatures"))
    for release_id in IDS:
        found = signatures.scan().use_ref(release_id).to_arrow()
        assert "expected_correlation" in found.column_names
        assert found.num_rows == rows(old, release_id, "signatures").height
    assert sorted(path.name for path in old.tables.iterdir()) == sorted(
        each.name for each in TABLES if each.is_published
    )
    later = publish(old, "later", {"jobs": {8: "job_id \n 83"}})
    assert (later.sequence, later.parent_release_id) == (4, IDS[-1])
    assert holds.roll_back(old, IDS[1])[0].sequence == 5
    assert verify(old, is_all=True) == []


def name_clusters(store: Store) -> None:
    """Let flash run on `titan`, and milc on `titan` and, on the second day, on `smoky`, as if the log named them."""
    for path in store.tables.glob("*/data/*.parquet"):
        frame = pl.read_parquet(path, hive_partitioning=False)
        if "cluster" not in frame.columns:
            continue
        named = pl.lit("titan")
        if path.parts[-3] == "jobs":
            named = pl.when(application="milc", ended_on=date(2026, 3, 3)).then(pl.lit("smoky")).otherwise(named)
        path.chmod(0o644)
        frame.with_columns(cluster=pl.when(cluster="default").then(named).otherwise("cluster")).write_parquet(path)


@pytest.mark.slow
def test_upgraded_applications_belong_to_a_machine(old: Store) -> None:
    name_clusters(old)
    ids = {"ada/flash/4": "ada@titan/flash/4", "grace/milc/4": "grace/milc/4"}
    former = [path for path in old.tables.glob("*/data/*.parquet") if "application_id" in pl.read_parquet_schema(path)]
    of_subjects = [old.tables / name / "data" for name in ("classes", "periods", "period_segments")]
    assert {path.parts[-3] for path in former} >= {"attributed_io", "signature_points", "slowdowns", "sample_sets"}
    upgrade(old)
    assert verify(old, is_all=True) == []
    for release_id in IDS:
        applications = rows(old, release_id, "applications").sort("application")
        assert applications["application_id"].to_list() == list(ids.values())
        assert applications["machine"].to_list() == ["titan", "default"]
        jobs = rows(old, release_id, "jobs")
        assert dict(jobs.select("application", "application_id").unique().iter_rows()) == {
            "flash": "ada@titan/flash/4",
            "milc": "grace/milc/4",
        }
        assert jobs["machine"].equals(jobs["cluster"])
        # all references to an application have its id
        for name in sorted({path.parts[-3] for path in former} & {each.name for each in TABLES}):
            found = rows(old, release_id, name)["application_id"].drop_nulls().unique()
            assert set(found) == set(ids.values()), name
        for name in (folder.parent.name for folder in of_subjects):
            found = rows(old, release_id, name).filter(subject_kind="application")["subject_id"].unique()
            assert set(found) == set(ids.values()), name
        points = releases.files_of(old, releases.find(old, release_id))["signature_points"]
        buckets = {parse_part(path): set(pl.read_parquet(path)["application_id"]) for path in points}
        named = pl.Series(sorted(ids.values()))
        assert buckets == {bucket: {name} for bucket, name in zip(compute_bucket(named), named, strict=True)}


PLACES = one_in(2, ["_convert_landings", "append_row", "mark_form", "leave_hints", "_keep"], slow=1)


def content_of(store: Store) -> dict[str, bytes]:
    """Return the contents of all files of a warehouse except its locks."""
    paths = (path for path in store.root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path.relative_to(store.root).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("place", PLACES)
def test_failed_upgrade_leaves_warehouse_unchanged(old: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = content_of(old)
    with monkeypatch.context() as patch:
        patch.setattr(upgrading, place, kill)
        with pytest.raises(KeyboardInterrupt):
            upgrade(old)
    assert content_of(old) == before
    assert read_form(old) == FORMER


def test_damaged_landing_is_named(old: Store) -> None:
    path = next(old.landed.glob("*/trace_requests*.parquet"))
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    before = content_of(old)
    with pytest.raises(MachineFault, match=rf"{path.name} is damaged. Restore it"):
        upgrade(old)
    assert content_of(old) == before


def test_warehouse_of_another_version_is_refused(old: Store) -> None:
    (old.tables / "job_io_sources").mkdir()
    with pytest.raises(UsageError, match=r"other than commit 18b5d00: land its inputs in a new warehouse\.$"):
        needs(old)


@pytest.mark.slow
def test_released_and_landed_files_are_read_only(old: Store) -> None:
    upgrade(old)
    paths = [*old.tables.glob("*/data/*.parquet"), *old.landed.glob("*/*.parquet")]
    assert paths
    assert not any(path.stat().st_mode & 0o222 for path in paths)
    manifests = [document(old, name) for name in old.files.matching(manifest_in("*"))]
    parts = [part for manifest in manifests for part in manifest["parts"]]
    assert all(old.files.compute_checksum(part["path"]).sha256 == part["sha256"] for part in parts)


def test_newer_format_is_refused_with_required_version(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    write_json({"form": FORM + 1, "read_by": "9.9"}, store.root / "form.json")
    for ask in (releases.history, landing.ledger):
        with pytest.raises(UsageError, match=r"use iosig 9\.9 or later"):
            ask(store)
    assert json.loads((store.root / "form.json").read_text())["form"] == FORM + 1
