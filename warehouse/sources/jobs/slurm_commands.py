"""Slurm asked by its own commands: what `sacct` and `squeue` say is written to a file, to be read as a site's log is.

JSON says names and times without doubt, so it is asked for first; a Slurm that has none is asked for text.
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

#: fields of every sacct since 14.03; the last one may hold the delimiter
_SACCT_FIELDS = (
    "Cluster,JobID,User,Account,Partition,AllocNodes,NTasks,Submit,Start,End,State,ExitCode,NodeList,Comment,JobName"
)
_SQUEUE_FORMAT = "%i|%u|%a|%P|%T|%V|%S|%l|%D|%r|%k|%j"
#: a person's own habits, which are not to change what is asked
_HABITS = ("SACCT_", "SQUEUE_")
_FAULTS_IN_JSON = re.compile(rb'"errors"\s*:\s*\[\s*\{')
_LOOKED_AT_BYTES = 64 << 10
_SAID_CHARS = 300


def ask_sacct(since: datetime, until: datetime, folder: Path, timeout_s: float) -> tuple[Source, Path]:
    """Ask for all jobs that were there at any time between two instants; return the format and file of the answer.

    Times in it are in UTC. Raises InputRefused where there is no sacct, or it fails or does not answer in time.
    """
    told = ["sacct", "--allusers", "--duplicates", f"--starttime={_clock(since)}", f"--endtime={_clock(until)}"]
    text = [*told, "--parsable2", "--noconvert", f"--format={_SACCT_FIELDS}"]
    return _first_answer(((sacct_json.SOURCE, [*told, "--json"]), (sacct.SOURCE, text)), folder / "sacct", timeout_s)


def ask_squeue(at: datetime, folder: Path, timeout_s: float) -> tuple[Source, Path]:
    """Ask what runs and waits at this instant; return the format and file of the answer, whose name tells the instant.

    Times in it are in UTC. Raises InputRefused where there is no squeue, or it fails or does not answer in time.
    """
    told = ["squeue", "--all"]
    text = [*told, "--states=all", f"--format={_SQUEUE_FORMAT}"]
    answer = folder / f"squeue-{int(at.timestamp())}"
    return _first_answer(((squeue_json.SOURCE, [*told, "--json"]), (squeue.SOURCE, text)), answer, timeout_s)


def _clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _first_answer(forms: Sequence[tuple[Source, list[str]]], answer: Path, timeout_s: float) -> tuple[Source, Path]:
    """Return the first form that a command answers in; of the last one, what is wrong is raised."""
    for source, command in forms:
        said = _run(command, answer, timeout_s)
        if said is None and ("--json" not in command or _is_sound_json(answer)):
            return source, answer
    raise InputRefused(
        f"`{command[0]}` failed: {said}",
        f"Try `{command[0]}` by hand, as the user that iosig runs as; look whether Slurm's daemons are up.",
    )


def _run(command: Sequence[str], answer: Path, timeout_s: float) -> str | None:
    """Have a command write its answer; return what it says where it fails, None where it does not."""
    name = command[0]
    own = {key: value for key, value in os.environ.items() if not key.startswith(_HABITS)}
    own |= {"TZ": "UTC", "SLURM_TIME_FORMAT": "standard"}
    try:
        with answer.open("wb") as file:
            done = run(command, timeout_s=timeout_s, stdout=file, environment=own)
    except subprocess.TimeoutExpired as error:
        raise InputRefused(
            f"`{name}` did not answer within {timeout_s:g} s.", "Set live.timeout_s higher, or look at Slurm's daemons."
        ) from error
    except (FileNotFoundError, PermissionError) as error:
        raise InputRefused(
            f"`{name}` is not on this machine, or may not be run.", "Install Slurm's commands, and put them on PATH."
        ) from error
    said = " ".join(done.stderr.decode("utf-8", "replace").split())
    return (said[:_SAID_CHARS] or f"exit code {done.returncode}") if done.returncode else None


def _is_sound_json(answer: Path) -> bool:
    """Return whether an answer is JSON that tells of no error: newer versions do so in the answer alone."""
    with answer.open("rb") as file:
        start = file.read(_LOOKED_AT_BYTES)
        file.seek(max(0, answer.stat().st_size - _LOOKED_AT_BYTES))
        end = file.read()
    return start.lstrip().startswith(b"{") and not any(map(_FAULTS_IN_JSON.search, (start, end)))
