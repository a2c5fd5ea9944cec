"""Faulty machines (small disks, missing permissions or memory), and the command as a separate process on them."""

from __future__ import annotations

import ctypes
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, "-c", "from iosig.cli import main; main()")
_PATIENCE_S = 300.0
#: prctl's PR_CAPBSET_DROP, and the capabilities with which root bypasses permissions: CAP_DAC_OVERRIDE,
#: CAP_DAC_READ_SEARCH
_DROP, _OVERRIDES = 24, (1, 2)


@dataclass(frozen=True)
class Ended:
    """A finished command: its exit code and its output."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The last line on standard error that begins with the command's name."""
        told = [line for line in self.err.splitlines() if line.startswith("iosig: ")]
        return told[-1].removeprefix("iosig: ") if told else ""


@dataclass(frozen=True)
class Machine:
    """How to run a command: with the permissions of a user even under root, with limits and environment variables.

    Limits are named as in `resource`. A variable that is None is unset.
    """

    has_rights_of_root: bool = True
    limits: tuple[tuple[int, int], ...] = ()
    variables: tuple[tuple[str, str | None], ...] = ()

    def iosig(
        self,
        *arguments: object,
        folder: Path = ROOT,
        printed_to: IO[str] | int = subprocess.PIPE,
        meanwhile: Callable[[int], None] = lambda _: None,
    ) -> Ended:
        """Run the command until it ends; `meanwhile` receives its process id."""
        process = subprocess.Popen(
            [*_COMMAND, *map(str, arguments)],
            cwd=folder,
            env=self._environment(),
            preexec_fn=self._limit,
            stdin=subprocess.DEVNULL,
            stdout=printed_to,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        meanwhile(process.pid)
        out, err = process.communicate(timeout=_PATIENCE_S)
        return Ended(process.returncode, out or "", err)

    def _environment(self) -> dict[str, str]:
        # run as an unattended job does: without a server
        known = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
        path = os.pathsep.join([str(ROOT), *filter(None, [known.get("PYTHONPATH")])])
        told: Mapping[str, str | None] = known | {"PYTHONPATH": path} | dict(self.variables)
        return {name: value for name, value in told.items() if value is not None}

    def _limit(self) -> None:
        if not self.has_rights_of_root and os.geteuid() == 0:
            libc = ctypes.CDLL(None, use_errno=True)
            for capability in _OVERRIDES:
                libc.prctl(_DROP, capability, 0, 0, 0)
        for kind, most in self.limits:
            resource.setrlimit(kind, (most, most))


SOUND = Machine()
#: root bypasses permissions, so the command drops the capabilities for that
USER = Machine(has_rights_of_root=False)


def kill_children(process: int, max_count: float = math.inf) -> None:
    """Kill the worker processes of a process as soon as they exist, as the kernel does when memory runs out."""
    deadline, killed = time.monotonic() + _PATIENCE_S, set[int]()
    while len(killed) < max_count and time.monotonic() < deadline and _is_running(process):
        for child in _workers_of(process) - killed:
            os.kill(child, signal.SIGKILL)
            killed.add(child)
        time.sleep(0.05)


def _is_running(process: int) -> bool:
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _workers_of(process: int) -> set[int]:
    # a process may end while it is looked at
    with suppress(OSError):
        children = {
            int(word) for file in Path(f"/proc/{process}/task").glob("*/children") for word in file.read_text().split()
        }
        return {child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()}
    return set()


def _mount(*arguments: object) -> None:
    """Mount, or skip the test if mounting is not permitted."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount")
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


@dataclass(frozen=True)
class Disk:
    """A small disk, in memory."""

    folder: Path

    def resize(self, size_bytes: int) -> None:
        """Change its size."""
        _mount("-o", f"remount,size={size_bytes}", self.folder)


@contextmanager
def disk(folder: Path, size_bytes: int) -> Iterator[Disk]:
    """Mount a small disk on a new folder."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size_bytes},mode=755", "tmpfs", folder)
    try:
        yield Disk(folder)
    finally:
        _unmount(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Mount a read-only file system on a folder."""
    _mount("--bind", folder, folder)
    try:
        _mount("-o", "remount,bind,ro", folder)
        yield
    finally:
        _unmount(folder)


def size_on_disk(folder: Path) -> int:
    """Return the disk usage of a folder [bytes]; hard links count once."""
    found = {status.st_ino: status.st_blocks * 512 for status in map(Path.lstat, folder.rglob("*"))}
    return sum(found.values())
