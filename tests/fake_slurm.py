"""Slurm's commands as scripts on PATH, which tell of jobs that a test has written down."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = """#!{python} -IS
import json, os, sys, time
from datetime import datetime, timezone
name, told = os.path.basename(sys.argv[0]), dict(word.partition("=")[::2] for word in sys.argv[1:])
folder = os.path.dirname(sys.argv[0])
fake = json.load(open(folder + "/fake.json"))
open(folder + "/calls", "a").write(json.dumps([name, *sys.argv[1:]]) + "\\n")
assert os.environ["TZ"] == "UTC" and not any(key.startswith(("SACCT_", "SQUEUE_")) for key in os.environ)
if fake["sleep_s"]:
    time.sleep(fake["sleep_s"])
is_json = "--json" in told
if fake["fault"] or (is_json and not fake["has_json"]):
    print(fake["fault"] or "Unrecognized option: --json", file=sys.stderr)
    sys.exit(1)
if is_json and fake["told_errors"]:
    print(json.dumps({{"jobs": [], "errors": [{{"description": "Unable to query"}}]}}))
    sys.exit(0)
def clock(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") if seconds else "Unknown"
if name == "squeue":
    there = [job for job in fake["jobs"] if not job["end"] or job["end"] > time.time() - 300]
    if is_json:
        keys = {{"job_id": "id", "name": "name", "user_name": "user", "job_state": "state", "submit_time": "submit",
                "start_time": "start", "time_limit": "limit"}}
        print(json.dumps({{"jobs": [{{theirs: job[ours] for theirs, ours in keys.items()}} for job in there]}}))
    else:
        assert told["--format"] == "%i^|^%u^|^%a^|^%P^|^%T^|^%V^|^%S^|^%l^|^%D^|^%r^|^%k^|^%j", told
        header = "JOBID USER ACCOUNT PARTITION STATE SUBMIT_TIME START_TIME TIME_LIMIT NODES REASON COMMENT NAME"
        print(*header.split(), sep="^|^")
        for job in there:
            limit = "%d:00" % job["limit"] if job["limit"] else "UNLIMITED"
            start = clock(job["start"]) if job["start"] else "N/A"
            who = job["id"], job["user"], "(null)", "", job["state"]
            print(*who, clock(job["submit"]), start, limit, "1", "None", "(null)", job["name"], sep="^|^")
    sys.exit(0)
def epoch(key):
    return datetime.fromisoformat(told[key]).replace(tzinfo=timezone.utc).timestamp()
since, until = epoch("--starttime"), epoch("--endtime")
jobs = [job for job in fake["jobs"] if job["submit"] <= until and (not job["end"] or job["end"] >= since)]
if is_json:
    found = [{{
        "job_id": job["id"], "name": job["name"], "user": job["user"], "state": {{"current": [job["state"]]}},
        "derived_exit_code": {{}}, "allocation_nodes": 2,
        "time": {{"submission": job["submit"], "start": job["start"], "end": job["end"],
                  "elapsed": (job["end"] or round(time.time())) - job["start"]}},
    }} for job in jobs]
    print(json.dumps({{"jobs": found, "errors": []}}, indent=1))
else:
    fields = told["--format"].split(",")
    print(told["--delimiter"].join(fields))
    for job in jobs:
        cells = {{"JobID": str(job["id"]), "User": job["user"], "State": job["state"], "JobName": job["name"],
                 "AllocNodes": "2", "Submit": clock(job["submit"]), "Start": clock(job["start"]),
                 "End": clock(job["end"])}}
        print(told["--delimiter"].join(cells.get(field, "") for field in fields))
"""


@dataclass
class FakeSlurm:
    """What the commands say: jobs, and what goes wrong."""

    folder: Path
    jobs: list[dict[str, Any]] = field(default_factory=list)
    has_json: bool = True
    fault: str = ""
    told_errors: bool = False
    sleep_s: float = 0.0

    def add(
        self,
        job_id: int,
        submit: int,
        start: int = 0,
        end: int = 0,
        *,
        name: str = "ior",
        user: str = "ann",
        limit: int | None = None,
    ) -> None:
        """Tell of a job: epoch seconds, 0 for what has not happened; in the place of what was told of it before.

        limit: how long it may run [min].
        """
        state = "COMPLETED" if end else "RUNNING" if start else "PENDING"
        self.jobs = [job for job in self.jobs if job["id"] != job_id]
        told = {"id": job_id, "submit": submit, "start": start, "end": end}
        self.jobs.append(told | {"name": name, "user": user, "state": state, "limit": limit})
        self.tell()

    def tell(self, **told: Any) -> None:
        """Have the commands say so from now on."""
        for name, value in told.items():
            setattr(self, name, value)
        known = {name: value for name, value in vars(self).items() if name != "folder"}
        (self.folder / "fake.json").write_text(json.dumps(known))

    def calls(self) -> list[list[str]]:
        """Return what was called so far: the command and its arguments."""
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def fake_slurm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Put the commands first on PATH."""
    folder.mkdir()
    for name in ("sacct", "squeue"):
        (folder / name).write_text(_SCRIPT.format(python=sys.executable))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SACCT_FORMAT", "JobName")
    fake = FakeSlurm(folder)
    fake.tell()
    return fake
