from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.polls import hdf5
from tests.warehouse.sources import archives

ZERO = 1517126400
TIMES = [ZERO + 5 * index for index in range(5)]
READ = [[0, 1, 2, 3, 4], [0, 10, 20, 30, 40]]
WRITE = [[0, 5, 6, 7, 8], [0, 50, 60, 70, 80]]
LEFT = TIMES[:3]
CELLS = [[5.0, 50.0], [-0.0, 0.0], [15.0, 150.0]]

every_reader = pytest.mark.parametrize("read", [hdf5.pylmt, hdf5.tokio])
Reader = Callable[[str], Iterator[hdf5.Arrays]]


def test_both_layouts_yield_equal_arrays(tmp_path: Path) -> None:
    grid, block = hdf5.pylmt(str(archives.pylmt(tmp_path / "a", TIMES, READ, WRITE)))
    assert grid["controllers"].tolist() == archives.NAMES
    assert grid["filesystems"].tolist() == ["fs1", "fs1"]
    assert grid["times_s"].tolist() == TIMES
    assert grid["recorded_count"].tolist() == [5]
    assert (block["first_step"].tolist(), block["is_volume"].tolist()) == ([0], [False])
    assert block["read"].tolist() == np.transpose(READ).tolist()
    assert block["write"].tolist() == np.transpose(WRITE).tolist()
    other_grid, other = hdf5.tokio(str(archives.tokio(tmp_path / "b", TIMES, np.transpose(READ), np.transpose(WRITE))))
    assert {name: array.tolist() for name, array in other_grid.items()} == {
        name: array.tolist() for name, array in grid.items()
    }
    assert other["is_volume"].tolist() == [True]
    assert np.array_equal(other["read"], block["read"])
    assert np.array_equal(other["write"], block["write"])


def test_child_yields_arrays_of_plain_types(tmp_path: Path) -> None:
    given = list(hdf5.pylmt(str(archives.pylmt(tmp_path / "a", TIMES, READ, WRITE, missing=np.zeros((2, 5))))))
    assert {array.dtype.kind for arrays in given for array in arrays.values()} <= set("biufU")


def test_load_of_wrong_length_does_not_extend_recording(tmp_path: Path) -> None:
    for load, expected in (([0, 0, 0, 1, 0], 4), ([0, 0, np.nan, 0, 0], 2), ([1, 1, 1, 1, 1, 1], 2)):
        path = archives.pylmt(tmp_path / "a", TIMES, [[0, 1, 0, 0, 0], [0] * 5], np.zeros((2, 5)), load=load)
        assert next(hdf5.pylmt(str(path)))["recorded_count"].tolist() == [expected]


@pytest.mark.parametrize(
    ("fs", "expected"),
    [(b"scratch", "scratch"), ("scratch", "scratch"), ("", "fs1"), ([b"a", b"b"], "fs1"), (7, "fs1")],
)
def test_filesystem_attribute_must_be_text(tmp_path: Path, fs: object, expected: str) -> None:
    path = archives.pylmt(tmp_path / "a", TIMES, READ, WRITE)
    with h5py.File(path, "a") as file:
        file["FSStepsGroup/FSStepsDataSet"].attrs["fs"] = fs
    assert next(hdf5.pylmt(str(path)))["filesystems"].tolist() == [expected] * 2


def test_write_columns_of_tokio_are_reordered_like_read_columns(tmp_path: Path) -> None:
    path = archives.tokio(tmp_path / "a", LEFT, CELLS, [[1, 2]] * 3)
    with h5py.File(path, "a") as file:
        file["datatargets/writebytes"].attrs["columns"] = [name.encode() for name in archives.NAMES[::-1]]
    _, block = hdf5.tokio(str(path))
    assert block["write"].tolist() == [[2, 1]] * 3
    with h5py.File(path, "a") as file:
        file["datatargets/writebytes"].attrs["columns"] = [b"x", b"y"]
    with pytest.raises(InputRefused, match="same targets"):
        list(hdf5.tokio(str(path)))


@every_reader
def test_file_without_datasets_is_refused_with_their_name(tmp_path: Path, read: Reader) -> None:
    with h5py.File(tmp_path / "a", "w") as file:
        file.create_group("FSStepsGroup")
        file.create_group("datatargets")
    with pytest.raises(InputRefused, match=r"no dataset (FSStepsGroup/FSStepsDataSet|datatargets/timestamps)"):
        list(read(str(tmp_path / "a")))


def test_external_links_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a", "w") as file:
        file["FSStepsGroup/FSStepsDataSet"] = h5py.ExternalLink("absent", "/x")
    with pytest.raises(InputRefused):
        list(hdf5.pylmt(str(tmp_path / "a")))


def test_block_size_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = [1, 1, 0, 1, 0]
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, np.zeros((2, 5)), np.zeros((2, 5)), load=load)
    whole = list(hdf5.pylmt(str(path)))
    monkeypatch.setattr(hdf5, "BLOCK_CELLS", 4)
    pieces = list(hdf5.pylmt(str(path)))
    assert len(whole) == 2
    assert len(pieces) == 4
    assert whole[0]["recorded_count"].tolist() == pieces[0]["recorded_count"].tolist() == [4]
    assert np.array_equal(whole[1]["read"], np.concatenate([block["read"] for block in pieces[1:]]))


@pytest.mark.parametrize("fault", ["shape", "names", "doubled", "absent", "text", "group"])
def test_archives_of_wrong_shape_are_refused(tmp_path: Path, fault: str) -> None:
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, READ, WRITE)
    with h5py.File(path, "a") as file:
        place = "OSTWriteGroup/OSTBulkWriteDataSet"
        if fault == "shape":
            del file[place]
            file[place] = np.zeros((2, 4))
        elif fault == "names":
            del file[place].attrs["OSTNames"]
        elif fault == "doubled":
            file[place].attrs["OSTNames"] = [b"x", b"x"]
        elif fault == "absent":
            del file[place]
        elif fault == "text":
            del file[place]
            file[place] = np.full((2, 5), b"x")
        else:
            del file[place]
            file.create_group(place)
    with pytest.raises(InputRefused):
        list(hdf5.pylmt(str(path)))


def test_excessive_declared_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.h5lmt"
    with h5py.File(path, "w") as file:
        file.create_dataset("FSStepsGroup/FSStepsDataSet", (1 << 40,), np.int32, chunks=(1 << 20,))
    with pytest.raises(InputRefused, match="more than an archive"):
        list(hdf5.pylmt(str(path)))


def test_tokio_archives_without_throughput_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="datatargets/readbytes"):
        list(hdf5.tokio(str(archives.tokio(tmp_path / "a.hdf5", LEFT, CELLS, CELLS, kind="ops"))))
    with pytest.raises(InputRefused, match="same shape"):
        list(hdf5.tokio(str(archives.tokio(tmp_path / "b.hdf5", LEFT[:2], CELLS, CELLS))))
    with pytest.raises(InputRefused, match="does not name"):
        list(hdf5.tokio(str(archives.tokio(tmp_path / "c.hdf5", LEFT, CELLS, CELLS, names=["x"]))))
