"""Machines that fail (small disks, missing rights and memory), and the command in a process of its own on them."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).resolve().parents[2]
_COMMAND = (sys.executable, "-c", "from iosig.cli import main; main()")
_PATIENCE_S = 300.0
#: prctl's PR_CAPBSET_DROP, and what lets root pass over rights: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_DROP, _OVERRIDES = 24, (1, 2)


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What it said last, of a fault: the line that begins with the command's name."""
        told = [line for line in self.err.splitlines() if line.startswith("iosig: ")]
        return told[-1].removeprefix("iosig: ") if told else ""


@dataclass(frozen=True)
class Machine:
    """How a command is run: with the rights of a user though root runs it, limits, and variables of its environment.

    A limit is that of `resource`, by its name; a variable that is None is not there.
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
        """Run the command there until it ends; `meanwhile` gets the number of its process."""
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
        # as a job that nobody looks at is run: no server
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
#: root passes over rights: where it runs, it does without those of its rights that let it
USER = Machine(has_rights_of_root=False)


def kill_children(process: int) -> None:
    """Kill the processes that a process starts, as a system does that runs out of memory, once they are there."""
    own = Path(f"/proc/{process}/task/{process}/children")
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and own.exists():
        for child in own.read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)
                return
        time.sleep(0.05)


def _mount(*arguments: object) -> None:
    """Mount, or skip the test where that may not be done."""
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
        """Give it another size."""
        _mount("-o", f"remount,size={size_bytes}", self.folder)


@contextmanager
def disk(folder: Path, size_bytes: int) -> Iterator[Disk]:
    """Have a small disk in a folder, which is made."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size_bytes},mode=755", "tmpfs", folder)
    try:
        yield Disk(folder)
    finally:
        _unmount(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Have a folder on a file system that can only be read."""
    _mount("--bind", folder, folder)
    try:
        _mount("-o", "remount,bind,ro", folder)
        yield
    finally:
        _unmount(folder)


def size_on_disk(folder: Path) -> int:
    """Return what the files of a folder take on a disk, each once however many names it has [bytes]."""
    found = {status.st_ino: status.st_blocks * 512 for status in map(Path.lstat, folder.rglob("*"))}
    return sum(found.values())
