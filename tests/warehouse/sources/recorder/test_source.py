from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions, land_paths
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.protocol import Head, find_folder_source, recognize
from iosig.warehouse.sources.recorder import calls as recorder_calls
from iosig.warehouse.sources.recorder.source import SOURCE
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store
from tests.budget import one_in
from tests.naive import recorder_traces as naive
from tests.warehouse.sources.trace_landing import calls_of, made_up, put, tables_of, tarred

RANKS = [calls for calls in made_up(4, seed=11) if calls]
RAW = naive.separate(RANKS)
TEXT: dict[str, bytes | str] = {f"{rank}.txt": naive.text(calls) for rank, calls in enumerate(RANKS)}
LOG = "JobID|Start|End|State\n7|2018-02-09T10:00:00Z|2018-02-09T11:00:00Z|COMPLETED\n"
COUNTS = (8, 12, 16, 24)
TRACES = [
    "ior_mpiio_chunk",
    "ior_mpiio_inter_coll",
    "ior_mpiio_inter_coll_romio",
    "ior_posix_chunk",
    "ior_posix_fpp",
    "ior_posix_random",
    "ios_group4",
    "ios_mpiio_n1",
    "ios_mpiio_n1_romio",
    "ios_mpiio_nn",
    "ios_mpiio_nn_romio",
    "ios_posix_nn",
    "ios_sio",
    "ios_strong",
    "ios_strong_posix",
]


def landed(tmp_path: Path, *paths: Path) -> list[tuple[str, str | None, str]]:
    """Land paths; return each input's relative name, the name it landed under, and its format."""
    store = Store(tmp_path / "warehouse")
    found = []
    for arrival in land_paths(store, Settings(), [str(path) for path in paths], ReadOptions()):
        known = arrival.landed.landing if arrival.landed else None
        name = Path(arrival.name).relative_to(tmp_path).as_posix()
        found.append((name, known and known.source_file, known.format if known else "refused"))
    return found


# ---- recognition


def test_archives_texts_and_folders_are_recognized(tmp_path: Path) -> None:
    for name, content in (("a", tarred(RAW)), ("b", tarred(TEXT)), ("c", TEXT["1.txt"])):
        assert recognize(read_head(put(tmp_path, {name: content}) / name)) is SOURCE
    assert find_folder_source(put(tmp_path / "raw", RAW)) == (SOURCE, tuple(sorted(RAW)))
    assert find_folder_source(put(tmp_path / "text", TEXT)) == (SOURCE, tuple(sorted(TEXT)))
    assert find_folder_source(put(tmp_path / "other", {"log": LOG})) is None


@pytest.mark.parametrize("start", [b"", b"0.1 0.2\n0.2 0.3\n", LOG.encode(), b"PAR1", b"\x89HDF\r\n\x1a\n" * 100])
def test_other_content_is_not_recognized(start: bytes) -> None:
    assert not SOURCE.sniff(Head("0.txt", start))


def test_recognition_imports_no_heavy_modules(tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", RAW)
    code = (
        "import sys; from pathlib import Path; from iosig.warehouse.sources.protocol import Head;"
        "from iosig.warehouse.sources.recorder import source as recorder;"
        f"assert recorder.owns(Path({str(folder)!r})); assert not recorder.sniff(Head('x', b'y'));"
        "assert not {'numpy', 'polars', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- landing


def test_traces_in_nested_folders_are_found_and_named(tmp_path: Path) -> None:
    site = tmp_path / "site"
    put(site / "ios" / "8" / "raw", RAW | {"README": "x"})
    put(site / "ios" / "8" / "raw" / "_text", TEXT)
    put(
        site / "ios" / "12", {"raw.tar": tarred({f"raw/{name}": content for name, content in RAW.items()} | {"z": "x"})}
    )
    put(site / "host-user-app-7", {name: content for name, content in TEXT.items() if name != "1.txt"})
    put(site, {"log": LOG})
    assert landed(tmp_path, site) == [
        ("site/host-user-app-7", "host-user-app-7", "recorder"),
        ("site/ios/12/raw.tar", "ios/12/raw.tar", "recorder"),
        ("site/ios/8/raw", "ios/8/raw", "recorder"),
        ("site/ios/8/raw/README", None, "refused"),
        ("site/log", "log", "sacct"),
    ]


def test_folder_lands_again_only_if_its_content_changed(tmp_path: Path) -> None:
    first, second = put(tmp_path / "one", RAW), put(tmp_path / "two", RAW)
    assert [name for _, name, _ in landed(tmp_path, first, second)] == ["one", "one"]
    put(second, {"0.ts": RAW["0.ts"][:-8], "foreign": "x"})
    assert landed(tmp_path, second)[0][1] == "two"


def test_rows_have_trace_id_and_source_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    list(land_paths(store, Settings(), [str(put(tmp_path / "ios" / "raw", RAW))], ReadOptions()))
    (known,) = landing.ledger(store)
    for part in known.parts:
        rows = pl.read_parquet(store.root / part.path)
        key = "landing_id" if part.table == "rejects" else "trace_id"
        assert rows[key].unique().to_list() == [known.landing_id]
        assert "source_file" not in rows.columns or rows["source_file"].unique().to_list() == ["ios/raw"]


def test_refused_folder_is_recorded_in_ledger(tmp_path: Path) -> None:
    folder = put(tmp_path / "ios" / "raw", RAW | {"VERSION": b"3.0.0"})
    assert landed(tmp_path, folder) == [("ios/raw", None, "refused")]
    (known,) = landing.ledger(Store(tmp_path / "warehouse"))
    assert (known.source_file, known.refused_count) == ("ios/raw", 1)


def test_explicit_format_must_match_the_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / "warehouse")
    folder = put(tmp_path / "x", TEXT)
    with pytest.raises(InputRefused, match="not a file"):
        landing.land(store, folder, lambda _: pytest.fail("nothing to read"), format_name="sacct")
    assert [name for _, name, _ in landed(tmp_path, folder)] == ["x"]


def test_rank_with_too_many_calls_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [len(calls) for calls in RANKS]
    monkeypatch.setattr(recorder_calls, "MAX_CALLS", max(counts) - 1)
    for name, files in (("raw", RAW), ("text", TEXT)):
        found = tables_of(put(tmp_path / name, files))
        assert found["rejects"]["reason"].str.contains("maximum per rank").sum() == counts.count(max(counts))
        assert found["trace_modules"]["outcome"].unique().to_list() == ["partial"]


# ---- real traces


@pytest.mark.parametrize("application", one_in(4, TRACES))
def test_raw_and_text_of_real_traces_have_equal_calls(shared_data: Path, application: str) -> None:
    for count in COUNTS:
        folder = shared_data / "recorder" / application / str(count)
        raw, text = calls_of(folder / "raw.tar.zst"), calls_of(folder / "text.tar.zst")
        assert raw == text
        assert len({row[0] for row in raw}) == count


def test_real_folder_and_archive_yield_equal_rows(shared_data: Path, tmp_path: Path) -> None:
    packed = shared_data / "recorder" / "ior_mpiio_inter_coll" / "12" / "raw.tar.zst"
    with pa.input_stream(str(packed), compression="zstd") as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        archive.extractall(tmp_path, filter="data")
    folder, archived = tables_of(tmp_path / "raw"), tables_of(packed)
    assert all(rows.equals(archived[name]) for name, rows in folder.items())
    assert "rejects" not in folder
    assert folder["trace_modules"]["outcome"].unique().to_list() == ["sound"]
    for rank in range(12):
        rows = folder["trace_calls"].filter(rank=rank).select("function", "level", "arguments").rows()
        assert rows == [row[:3] for row in naive.decoded(tmp_path / "raw", rank)]
