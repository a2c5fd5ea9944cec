from __future__ import annotations

from pathlib import Path

import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.darshan import library as library
from tests.warehouse.sources.darshan_tables import SHIPPED

LOG = SHIPPED / "examples" / "example_logs" / "ior_hdf5_example.darshan"


@pytest.fixture(autouse=True)
def loaded_anew() -> None:
    library.load_library.cache_clear()


def test_bundled_library_is_loaded() -> None:
    assert Path(library.load_library()._name).parent.name == "darshan.libs"
    assert library.load_library().darshan_log_get_lib_version() == library.VERSION.encode()


def test_counters_are_named_by_library() -> None:
    integers, reals = library.counter_names("POSIX")
    assert (len(integers), len(reals)) == (69, 17)
    assert (integers[0], reals[-1]) == ("POSIX_OPENS", "POSIX_F_VARIANCE_RANK_BYTES")


def test_unexpected_library_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "VERSION", "3.6.0")
    with pytest.raises(InputRefused, match=r"has version 3\.5\.0"):
        library.load_library()


def test_unexpected_counters_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "COUNTERS", library.COUNTERS | {"POSIX": ("posix", 70, 17)})
    with pytest.raises(InputRefused, match="other posix counters"):
        library.load_library()


def test_library_that_misreads_the_sample_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Some builds have longer segments; the second segment is then not at its expected offset.
    monkeypatch.setattr(library, "SEGMENT_BYTES", 40)
    with pytest.raises(InputRefused, match="wrongly"):
        library.load_library()


def test_missing_sample_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_SAMPLE", "gone.darshan")
    with pytest.raises(InputRefused, match="missing"):
        library.load_library()


def test_missing_wheel_is_refused_with_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputRefused, match="not installed") as refusal:
        library.load_library()
    assert library.VERSION in refusal.value.remedy


def test_job_names_and_modules_are_read() -> None:
    with library.open_log(LOG) as log:
        job = library.read_job(log)
        assert (job.uid, job.process_count, job.job_id) == (69628, 4, 32324925)
        assert (job.started, job.ended) == ((1594155460, 0), (1594155460, 0))
        assert job.command.endswith("ior -a HDF5 -o /global/cscratch1/sd/ssnyder/test123.h5")
        assert ("/global/cscratch1", "lustre") in job.mounts
        ids, names = library.read_names(log)
        assert len(ids) == len(names)
        assert "/global/cscratch1/sd/ssnyder/test123.h5" in names
        assert set(library.module_numbers(log)) == {
            *("POSIX", "MPI-IO", "H5F", "H5D", "LUSTRE", "STDIO", "DXT_POSIX", "DXT_MPIIO"),
        }


def test_modules_are_read_to_their_end() -> None:
    with library.open_log(LOG) as log:
        assert len(list(library.iterate_records(log, library.module_numbers(log)["STDIO"]))) == 1
    with library.open_log(LOG) as log:
        assert len(list(library.iterate_records(log, library.module_numbers(log)["H5D"]))) == 3


def test_unopenable_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="cannot open"), library.open_log(tmp_path / "gone"):
        pass


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("", ""),
        ("Warning: nothing\n", ""),
        ("a\nError: unable to inflate darshan log data.\nError: more\n", "unable to inflate darshan log data"),
        ("Error:\n", "an unspecified error"),
    ],
)
def test_first_error_is_found(said: str, error: str) -> None:
    assert library.find_first_error(said) == error
