"""Run `sacct` and `squeue`, and write their output to a file that is read like a site's log.

JSON has unambiguous names and times, so it is tried first; text is used if Slurm does not support JSON.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.external.processes import run
from iosig.warehouse.sources.jobs import sacct, sacct_json, squeue, squeue_json
from iosig.warehouse.sources.protocol import Source

#: fields that every sacct since 14.03 has
_SACCT_FIELDS = (
    "Cluster,JobID,User,Account,Partition,AllocNodes,NTasks,Submit,Start,End,State,ExitCode,NodeList,Comment,JobName"
)
#: prefixes of environment variables with a user's preferences, which must not change the output
_HABITS = ("SACCT_", "SQUEUE_")
_FAULTS_IN_JSON = re.compile(rb'"errors"\s*:\s*\[\s*\{')
_SEARCHED_BYTES = 64 << 10
_MAX_MESSAGE_CHARS = 300


def query_sacct(since: datetime, until: datetime, folder: Path, timeout_s: float) -> tuple[Source, Path]:
    """Query all jobs between two instants; return the format and file of the output.

    Its times are in UTC. Raises InputRefused if sacct is missing, fails, or times out.
    """
    command = ["sacct", "--allusers", "--duplicates", f"--starttime={_clock(since)}", f"--endtime={_clock(until)}"]
    text = [*command, "--parsable2", "--delimiter=^|^", "--noconvert", f"--format={_SACCT_FIELDS}"]
    return _run_first_supported(
        ((sacct_json.SOURCE, [*command, "--json"]), (sacct.SOURCE, text)), folder / "sacct", timeout_s
    )


def query_squeue(at: datetime, folder: Path, timeout_s: float) -> tuple[Source, Path]:
    """Query the running and waiting jobs; return the format and file of the output, which is named after the instant.

    Its times are in UTC. Raises InputRefused if squeue is missing, fails, or times out.
    """
    command = ["squeue", "--all"]
    text = [*command, "--states=all", f"--format={squeue.FORMAT}"]
    answer = folder / f"squeue-{int(at.timestamp())}"
    return _run_first_supported(((squeue_json.SOURCE, [*command, "--json"]), (squeue.SOURCE, text)), answer, timeout_s)


def _clock(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _run_first_supported(
    forms: Sequence[tuple[Source, list[str]]], answer: Path, timeout_s: float
) -> tuple[Source, Path]:
    """Return the first format that the command supports, and its output; if all fail, raise the last error."""
    for source, command in forms:
        message = _run(command, answer, timeout_s)
        if message is None and ("--json" not in command or _is_sound_json(answer)):
            return source, answer
    raise InputRefused(
        f"`{command[0]}` failed: {message}",
        f"Run `{command[0]}` manually as iosig's user, and check that Slurm's daemons are running.",
    )


def _run(command: Sequence[str], answer: Path, timeout_s: float) -> str | None:
    """Run a command with its output to a file; return its error message, None on success."""
    name = command[0]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(_HABITS)}
    environment |= {"TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
    try:
        with answer.open("wb") as file:
            process = run(command, timeout_s=timeout_s, stdout=file, environment=environment)
    except subprocess.TimeoutExpired as error:
        raise InputRefused(
            f"`{name}` did not answer within {timeout_s:g} s.", "Raise live.timeout_s, or check Slurm's daemons."
        ) from error
    except (FileNotFoundError, PermissionError) as error:
        raise InputRefused(
            f"`{name}` is not installed on this machine, or not executable.",
            "Install Slurm's commands, and put them on PATH.",
        ) from error
    message = " ".join(process.stderr.decode("utf-8", "replace").split())
    return (message[:_MAX_MESSAGE_CHARS] or f"exit code {process.returncode}") if process.returncode else None


def _is_sound_json(answer: Path) -> bool:
    """Test whether the output is JSON without errors; newer versions report errors only in the output."""
    with answer.open("rb") as file:
        start = file.read(_SEARCHED_BYTES)
        file.seek(max(0, answer.stat().st_size - _SEARCHED_BYTES))
        end = file.read()
    return start.lstrip().startswith(b"{") and not any(map(_FAULTS_IN_JSON.search, (start, end)))
