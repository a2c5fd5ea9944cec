"""A replay never touches paths outside its folder, whatever the trace names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from iosig.traces.replay.libc import flags_here
from iosig.traces.replay.sandbox import MODE_BITS, RefusedPathError, Sandbox, remap_path
from tests.budget import examples
from tests.flows.replayed_programs import executed


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return everything below a folder: kind and mode, modification time and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        told = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[path.relative_to(folder).as_posix()] = (told.st_mode, told.st_mtime_ns, content)
    return found


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/etc/passwd", ("etc", "passwd")),
        ("../../x", ("x",)),
        ("a/../../../b/./c", ("b", "c")),
        ("//a///b/", ("a", "b")),
        ("/dev/null", ("dev", "null")),
        ("...", ("...",)),
        ("-rf", ("-rf",)),
    ],
)
def test_paths_are_mapped_below_the_folder(path: str, names: tuple[str, ...]) -> None:
    assert remap_path(path) == names


@pytest.mark.parametrize(
    "path", ["", ".", "/", "..", "a/..", "a\0b", "x" * 256, "é" * 128, "a/" * 129 + "b", ("y" * 200 + "/") * 30]
)
def test_paths_without_a_valid_target_are_refused(path: str) -> None:
    with pytest.raises(RefusedPathError):
        remap_path(path)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(alphabet=st.sampled_from("ab./\0é"), max_size=40))
def test_no_path_leaves_the_folder(path: str) -> None:
    try:
        names = remap_path(path)
    except RefusedPathError:
        return
    assert names
    assert not {"", ".", ".."} & set(names)
    assert not any("/" in name or "\0" in name for name in names)
    assert remap_path("/".join(names)) == names


HOSTILE = [
    "/etc/passwd",
    "../../x",
    "../sentinel/kept",
    "/../sentinel/kept",
    "a/../../sentinel/kept",
    "/dev/null",
    "/dev/sda",
    "/proc/self/mem",
    "/proc/self/fd/1",
    "",
    ".",
    "..",
    "/",
    "\0",
    "x" * 300,
    "d/" * 200 + "f",
]


def hostile_calls(path: str) -> list[tuple[str, str]]:
    """Return calls of every kind on a path."""
    return [
        ("mkdir", f"{path}.folder 511"),
        ("open", f"{path} 577 4095"),
        ("write", f"{path} %p 10"),
        ("pwrite", f"{path} %p 10 5"),
        ("ftruncate", f"{path} 7"),
        ("fsync", path),
        ("close", path),
        ("symlink", f"/etc {path}"),
        ("link", f"/etc/passwd {path}"),
        ("chmod", f"{path} 4095"),
        ("mknod", f"{path} 8192"),
        ("fopen", f"{path} w+"),
        ("fwrite", f"%p 1 10 {path}"),
        ("fclose", path),
        ("MPI_File_open", f"MPI_COMM_SELF {path} 9 %p 0-0"),
        ("MPI_File_write_at", "0-0 0 %p 10 MPI_BYTE [0_0]"),
        ("MPI_File_close", "0-0"),
        ("stat", f"{path} %p"),
        ("truncate", f"{path} 3"),
        ("rename", f"{path} ../sentinel/moved"),
        ("unlink", "../sentinel/kept"),
        ("unlink", "/sentinel/kept"),
        ("rmdir", ".."),
        ("remove", path),
    ]


def test_hostile_trace_writes_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "sentinel").mkdir()
    (tmp_path / "sentinel" / "kept").write_text("kept")
    folder = tmp_path / "folder"
    folder.mkdir()
    before = tree(tmp_path)
    passwd = Path("/etc/passwd").stat()
    done, _, _ = executed(folder, [[line for path in HOSTILE for line in hostile_calls(path)]])
    after = {name: entry for name, entry in tree(tmp_path).items() if not name.startswith("folder")}
    assert after == {name: entry for name, entry in before.items() if name != "folder"}
    assert (passwd.st_mtime_ns, passwd.st_size) == (Path("/etc/passwd").stat().st_mtime_ns, passwd.st_size)
    assert done[0].counts["open"] > 5
    assert not {"symlink", "link", "chmod", "mknod"} & set(done[0].counts)
    for path in folder.rglob("*"):
        assert not path.is_symlink()
        assert path.stat().st_mode & 0o7000 == 0


def test_planted_symbolic_links_are_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    (outside / "kept").write_text("kept")
    (folder / "way").symlink_to(outside)
    (folder / "file").symlink_to(outside / "kept")
    done, _, _ = executed(
        folder,
        [
            [
                ("open", "/way/new 577 420"),
                ("open", "/file 577 420"),
                ("write", "/file %p 10"),
                ("truncate", "/file 0"),
                ("unlink", "/way/kept"),
                ("mkdir", "/way/made 511"),
                ("fopen", "/way/kept w"),
            ]
        ],
    )
    assert sum(done[0].failures.values()) == 7
    assert tree(outside).keys() == {"kept"}
    assert (outside / "kept").read_text() == "kept"


def test_file_modes_are_masked(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    before = os.umask(0)
    try:
        os.close(sandbox.open(("f",), os.O_CREAT | os.O_WRONLY, 0o7777))
        sandbox.mkdir(("d",), 0o7000)
    finally:
        os.umask(before)
        sandbox.close()
    assert (tmp_path / "f").stat().st_mode & 0o7777 == MODE_BITS
    assert (tmp_path / "d").stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize(
    ("traced", "here"),
    [
        (578, os.O_RDWR | os.O_CREAT | os.O_TRUNC),
        (0o2101, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (0o4010000, os.O_SYNC),
        (0o10001, os.O_WRONLY | os.O_DSYNC),
        (0o40002, os.O_RDWR | os.O_DIRECT),
        (1 << 40, 0),
    ],
)
def test_traced_flags_are_translated_to_this_machine(traced: int, here: int) -> None:
    assert flags_here(traced) == here
