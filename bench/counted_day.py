"""`uv run python -m bench.counted_day --hours 24 --into DIR`: a day of a large site whose servers count by job.

100 OSTs on 10 servers and 8 MDTs on two, 2,000 jobs at a time, each on four OSTs and one MDT, read every 60 s: some 14
million entries a day. Each server's text is a file an hour, as a collector appends it; an hour is written, landed and
removed, and then comes the next. A job moves something in a quarter of its minutes, so that three of four entries say
what they said before. After the last hour the job log lands, and the night is run. What the night says was moved has to
be what the texts say.

Of a day that is not run, what an hour costs 24 times is an estimate, and is called so.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from bench.processes import Cost, cost_of, iosig, python

_BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
_OSTS, _MDTS, _DATA_SERVERS, _METADATA_SERVERS = 100, 8, 10, 2
_JOBS_AT_A_TIME, _OSTS_OF_A_JOB = 2000, 4
_STEP_S = 60
#: minutes that jobs last, from and to; of each ten minutes, those in which they move something; bytes of such a minute
_LASTING, _ACTIVE, _MOVED = (60, 420), (2, 3), (1 << 20, 1 << 33)
#: minutes that an entry stays unused
_CLEANUP = 10
_APPLICATIONS, _USERS = 400, 50
#: what a core is to take in [B/s], of how many cores; how long the night may take [s], and how large it may be [B]
_BYTES_PER_S, _CORES, _NIGHT_S, _MOST_BYTES = 60e6, 2, 120.0, 2e9
_SEED = 11

_HEAD = (
    "- job_id:          {job}\n  snapshot_time:   {at}.887515895 secs.nsecs\n"
    "  start_time:      {since}.057286226 secs.nsecs\n  elapsed_time:    {age}.830229669 secs.nsecs\n"
)
_BYTES_LINE = (
    "  {name}_bytes:{pad}{{{{ samples: {{{name}_count:11}}, unit: bytes, min:     4096, max:  4194304, "
    "sum: {{{name}_sum:16}}, sumsq: {{{name}_sum:18}}, hist: {{{{ 4K: 1, 1M: 6, 4M: {{{name}_count}} }}}} }}}}\n"
)
_TIMED_LINE = (
    "  {name}:{pad}{{{{ samples: {{{count}:11}}, unit: usecs, min:       12, max:    34699, sum:          7304967, "
    "sumsq:       80724646151 }}}}\n"
)


def _timed(name: str, count: str) -> str:
    return _TIMED_LINE.format(name=name, pad=" " * max(1, 16 - len(name)), count=count)


#: what is counted beside, in turn with what the templates fill in, and mostly not used
_OST_OTHERS = (
    "getattr",
    "setattr",
    "sync",
    "destroy",
    "create",
    "statfs",
    "get_info",
    "set_info",
    "quotactl",
    "prealloc",
)
_MDT_OTHERS = (
    "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "setattr", "getxattr", "setxattr", "statfs", "sync",
    "samedir_rename", "crossdir_rename",
)  # fmt: skip
_OST_ENTRY = "".join(
    (
        _HEAD,
        *(_BYTES_LINE.format(name=name, pad=" " * (10 - len(name))) for name in ("read", "write")),
        *(_timed(name, f"{name}_count") for name in ("read", "write", "punch")),
        *(_timed(name, "none") for name in _OST_OTHERS),
    )
)
_MDT_ENTRY = "".join(
    (
        _HEAD,
        *(_timed(name, f"{name}_count") for name in ("open", "close", "getattr")),
        *(_timed(name, "none") for name in _MDT_OTHERS),
    )
)


@dataclass(slots=True)
class _Job:
    """A job: its number, its minutes, and the targets that it uses."""

    number: int
    started: int
    ended: int
    targets: list[int]
    #: of each target its sums so far, and its entry as it stands there
    sums: dict[int, list[int]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Site:
    """The site minute by minute, from a seed; `moved_bytes` is what the texts say that jobs moved."""

    dice: np.random.Generator = field(default_factory=lambda: np.random.default_rng(_SEED))
    minute: int = 0
    entry_count: int = 0
    moved_bytes: int = 0
    jobs: list[_Job] = field(default_factory=list)
    #: those of which there are entries, by target
    there: list[dict[int, _Job]] = field(default_factory=lambda: [{} for _ in range(_OSTS + _MDTS)])
    running: list[_Job] = field(default_factory=list)

    def hour(self, folder: Path) -> int:
        """Write an hour's file of each server, and return how many bytes they have."""
        names = [f"oss{number}" for number in range(_DATA_SERVERS)] + [f"mds{n}" for n in range(_METADATA_SERVERS)]
        files = [(folder / f"{name}-{self.minute:05}.jobstats").open("w") for name in names]
        for _ in range(60):
            self._step()
            at = _seconds(self.minute)
            for number, file in enumerate(files):
                file.write(f"{at}\n")
                for target in _targets_of(number):
                    file.write(_header(target))
                    file.write("".join(job.texts[target] for job in self.there[target].values()))
                    self.entry_count += len(self.there[target])
        for file in files:
            file.close()
        return sum(path.stat().st_size for path in folder.iterdir())

    def _step(self) -> None:
        """Go on by a minute: jobs end and begin, move something, and entries that nobody used go."""
        self.minute += 1
        self.running = [job for job in self.running if job.ended >= self.minute]
        while len(self.running) < _JOBS_AT_A_TIME:
            self.running.append(self._begun())
        for job in self.running:
            if (self.minute - job.started) % _CLEANUP in _ACTIVE:
                self._move(job)
        for own in self.there:
            for number in [number for number, job in own.items() if job.ended + _CLEANUP < self.minute]:
                del own[number]

    def _begun(self) -> _Job:
        lasting = int(self.dice.integers(*_LASTING))
        # at first they are in the midst of their time, as at any other
        left = int(self.dice.integers(1, lasting)) if self.minute == 1 else lasting
        targets = [
            *self.dice.choice(_OSTS, _OSTS_OF_A_JOB, replace=False).tolist(),
            _OSTS + int(self.dice.integers(_MDTS)),
        ]
        job = _Job(len(self.jobs), self.minute - 1, self.minute - 1 + left, targets)
        self.jobs.append(job)
        return job

    def _move(self, job: _Job) -> None:
        at = _seconds(self.minute)
        for target in job.targets:
            sums = job.sums.setdefault(target, [0, 0])
            for way, moved in enumerate(self.dice.integers(*_MOVED, 2).tolist()):
                sums[way] += moved
                self.moved_bytes += moved if target < _OSTS else 0
            times = {
                "job": _job_id(job),
                "at": at - 7,
                "since": _seconds(job.started) + 1,
                "age": at - _seconds(job.started),
            }
            read, written = sums
            counts = {"read_count": read >> 20, "write_count": written >> 20, "punch_count": written >> 33}
            opened = {"open_count": read >> 24, "close_count": read >> 24, "getattr_count": written >> 22}
            form = _OST_ENTRY if target < _OSTS else _MDT_ENTRY
            job.texts[target] = form.format(**times, **counts, **opened, read_sum=read, write_sum=written, none=0)
            self.there[target][job.number] = job

    def write_log(self, path: Path) -> int:
        """Write the job log as `sacct --parsable2` prints it, and return how many jobs it has."""
        lines = ["JobID|User|Account|JobName|Partition|NNodes|NTasks|Submit|Start|End|State|ExitCode"]
        for job in self.jobs:
            own = job.number % _APPLICATIONS
            is_over = job.ended <= self.minute
            started, ended = (_BEGAN + timedelta(minutes=minute) for minute in (job.started, job.ended))
            cells = [
                _job_id(job), f"user{own % _USERS}", f"acct{own % 10}", f"app{own}", "batch", "8", "128",
                f"{started - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}", f"{started:%Y-%m-%dT%H:%M:%SZ}",
                f"{ended:%Y-%m-%dT%H:%M:%SZ}" if is_over else "Unknown", "COMPLETED" if is_over else "RUNNING", "0:0",
            ]  # fmt: skip
            lines.append("|".join(cells))
        path.write_text("\n".join(lines) + "\n")
        return len(self.jobs)


def _seconds(minute: int) -> int:
    return int(_BEGAN.timestamp()) + _STEP_S * minute


def _job_id(job: _Job) -> str:
    return str(7_000_000 + job.number)


def _targets_of(server: int) -> range:
    if server < _DATA_SERVERS:
        each = _OSTS // _DATA_SERVERS
        return range(each * server, each * (server + 1))
    each, number = _MDTS // _METADATA_SERVERS, server - _DATA_SERVERS
    return range(_OSTS + each * number, _OSTS + each * (number + 1))


def _header(target: int) -> str:
    if target < _OSTS:
        return f"obdfilter.fs1-OST{target:04x}.job_stats=\njob_stats:\n"
    return f"mdt.fs1-MDT{target - _OSTS:04x}.job_stats=\njob_stats:\n"


_MOVED_QUERY = """
import subprocess, sys
from pathlib import Path
print(subprocess.run(
    [sys.argv[1], "--warehouse", sys.argv[2], "sql", "--format", "csv",
     "select coalesce(sum(read_bytes + written_bytes), 0)::bigint from counter_rises where component = 'ost'"],
    capture_output=True, text=True, check=True).stdout.split()[-1])
"""


def measured(root: Path, folder: Path, hours: int) -> Iterator[dict[str, object]]:
    """Yield what each hour's landing and the night cost, and what that is beside what is asked for."""
    site, texts, landed_s, landed_cpu_s, size = Site(), folder / "texts", 0.0, 0.0, 0
    for hour in range(hours):
        shutil.rmtree(texts, ignore_errors=True)
        texts.mkdir()
        written = site.hour(texts)
        cost = cost_of(iosig("--warehouse", str(root), "land", str(texts)))
        landed_s, landed_cpu_s, size = landed_s + cost.wall_s, landed_cpu_s + cost.cpu_s, size + written
        yield {
            "part": f"land hour {hour}",
            "text_gb": written / 1e9,
            **_told(cost),
            "mb_per_cpu_s": written / cost.cpu_s / 1e6,
        }
    shutil.rmtree(texts)
    log = folder / "jobs.sacct"
    job_count = site.write_log(log)
    yield {
        "part": "land the job log",
        "jobs": job_count,
        **_told(cost_of(iosig("--warehouse", str(root), "land", str(log)))),
    }
    night = cost_of(iosig("--warehouse", str(root), "run", "--inline"))
    yield {"part": "night", **_told(night)}
    allowed_s = size / (_CORES * _BYTES_PER_S)
    yield {
        "part": f"{hours} hours",
        "entries": site.entry_count,
        "text_gb": size / 1e9,
        "landed_s": landed_s,
        # what both cores had to do, if nothing else is under way
        "landed_cpu_s_a_core": landed_cpu_s / _CORES,
        "allowed_s": allowed_s,
        "is_landed_in_time": landed_s <= allowed_s,
        "is_night_in_time": night.wall_s <= _NIGHT_S,
        "is_night_in_memory": night.peak_bytes <= _MOST_BYTES,
        "estimated_landed_s_a_day": landed_s * 24 / hours,
        "estimated_text_gb_a_day": size * 24 / hours / 1e9,
    }
    _require_moved(root, site)


def _require_moved(root: Path, site: Site) -> None:
    """Raise AssertionError unless the release says that jobs moved what the texts say."""
    import subprocess

    command = python(_MOVED_QUERY, iosig()[0], str(root))
    found = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if found != site.moved_bytes:
        raise AssertionError(f"of {site.moved_bytes:,} bytes, the release says {found:,}")


def _told(cost: Cost) -> dict[str, float]:
    return {"wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "peak_gb": cost.peak_bytes / 1e9}


def main() -> None:
    """Write, land and run the hours, and print what each part costs, as lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=1)
    parser.add_argument("--into", type=Path, required=True, help="where texts and warehouse lie")
    chosen = parser.parse_args()
    root = chosen.into / "warehouse"
    shutil.rmtree(root, ignore_errors=True)
    chosen.into.mkdir(parents=True, exist_ok=True)
    for told in measured(root, chosen.into, chosen.hours):
        shown = {name: round(value, 2) if isinstance(value, float) else value for name, value in told.items()}
        print(json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()
