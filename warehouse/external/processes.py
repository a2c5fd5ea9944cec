"""Run commands in sessions of their own, so that a timeout ends a command and all processes that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

#: time between SIGTERM and SIGKILL [s]
GRACE_S = 5.0
#: maximum time to wait for the end of killed processes [s]
_KILL_WAIT_S = 2.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code and standard error of a command that ended within its time limit."""

    returncode: int
    stderr: bytes


def run(
    command: Sequence[str],
    *,
    timeout_s: float,
    content: bytes = b"",
    stdout: IO[bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    grace_s: float | None = None,
) -> CommandResult:
    """Run a command, wait for its end, and return its exit code and standard error.

    content: standard input. stdout: an open file for standard output, which is discarded by default.
    Raises subprocess.TimeoutExpired after `timeout_s`; by then the command's whole process group has ended.
    Raises OSError if the command cannot be started.
    """
    # Files instead of pipes: a grandchild that keeps a pipe open would block the reader after the command's end.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(content)
        stdin.seek(0)
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.DEVNULL if stdout is None else stdout,
            stderr=stderr,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
        try:
            returncode = process.wait(timeout_s)
        except BaseException:
            end_group(process, grace_s)
            raise
        stderr.seek(0)
        return CommandResult(returncode, stderr.read())


def end_group(process: subprocess.Popen[bytes], grace_s: float | None = None) -> None:
    """End a process that leads its own session, and its whole process group: SIGTERM, then SIGKILL.

    The process must have been started with `start_new_session=True`. grace_s: the time between both signals, GRACE_S
    by default; 0 sends SIGKILL at once.
    """
    grace_s = GRACE_S if grace_s is None else grace_s
    if grace_s > 0 and _signal(process, signal.SIGTERM) and _wait_for_end(process, grace_s):
        return
    if _signal(process, signal.SIGKILL):
        # Bounded: a program of another user (setuid) cannot be killed, and some containers reap no orphans.
        _wait_for_end(process, _KILL_WAIT_S)
    process.poll()


def _wait_for_end(process: subprocess.Popen[bytes], wait_s: float) -> bool:
    """Wait until a process group has no member; return False if one is left after the wait."""
    deadline = time.monotonic() + wait_s
    while True:
        # Reap the leader: a zombie would count as a member of the group.
        process.poll()
        if not _signal(process, 0):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)


def _signal(process: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to the process group; return False if the group has no member."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
