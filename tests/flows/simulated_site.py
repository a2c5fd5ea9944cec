"""A small site over many nights, with inputs that are late, duplicated, wrong, missing or broken, as a seed decides."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from iosig.warehouse.contracts.attribution import ATTRIBUTED_IO, ATTRIBUTION_DAILY, SLOWDOWNS, UNATTRIBUTED_PATTERNS
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import list_published_tables
from iosig.warehouse.store.store import Store
from tests.nights import land_files, query_release, run_night

FIRST = datetime(2026, 3, 2, tzinfo=UTC)
#: faults of inputs, and faults of the machine that runs the nights
OF_INPUTS = ("late", "doubled", "corrected", "missing", "hostile", "unreadable")
OF_MACHINE = ("disk full", "server restarts", "killed", "gate fails", "two at once", "database down")
_HEAD = "JobID|User|JobName|Partition|NNodes|Start|End|State"
#: columns about the previous release and landings: they depend on the number of releases
_HISTORY = ("is_changed", "change_correlation", "relative_volume_change", "added_burst_count", "removed_burst_count")
#: traffic is attributed by the signatures of its night, which improve over time; unattributed traffic changes with them
_OF_THEIR_NIGHT = (ATTRIBUTED_IO, SLOWDOWNS, UNATTRIBUTED_PATTERNS)
_BY_SIGNATURES = ("attributed_bytes", "unattributed_bytes", "excess_own_bytes", "confidence")


def drawn(seed: int, night_count: int, kinds: Sequence[str] = (*OF_INPUTS, *OF_MACHINE)) -> dict[int, str]:
    """Draw the night of each fault: each kind occurs once, never on the first or the last two nights."""
    nights = random.Random(seed).sample(range(1, night_count - 2), len(kinds))
    return dict(zip(nights, kinds, strict=True))


@dataclass
class Site:
    """A site's inbox, and everything that arrived there, in order."""

    folder: Path
    faults: dict[int, str]
    seed: int
    #: files that arrived on each night: their path in the inbox, and their content
    came: list[list[tuple[str, bytes]]] = field(default_factory=list)
    _late: list[tuple[int, str, bytes]] = field(default_factory=list)

    def night(self) -> str | None:
        """Deliver the files of a night, and return its fault."""
        number = len(self.came)
        fault = self.faults.get(number)
        jobs, polls = f"{number:02}-jobs.sacct", f"{number:02}-polls.csv"
        files = [(jobs, self._jobs(number, is_wrong=fault == "corrected")), (polls, self._polls(number))]
        if fault in ("late", "missing"):
            late = files.pop()
            self._late += [(number + 2, *late)] if fault == "late" else []
        elif fault == "corrected":
            self._late.append((number + 1, f"{number:02}-jobs-again.sacct", self._jobs(number)))
        elif fault == "doubled":
            # the same bytes under another name, and the same polls in other bytes
            files += [(f"{number:02}-twice.csv", files[1][1]), (f"{number:02}-more.csv", self._polls(number, "{:.1f}"))]
        elif fault == "hostile":
            noise = random.Random(self.seed).randbytes(5000)
            broken = f"{_HEAD}\n{number}77|x|y\n{number}78|\x1b[31m|`$(x)`|b|8|never|now|{'z' * 3000}\n".encode()
            files += [(f"{number:02}-no\x1bise\n", noise), (f"{number:02}-broken.sacct", broken)]
        files += [(name, content) for night, name, content in self._late if night == number]
        self.came.append(files)
        self.folder.mkdir(exist_ok=True)
        for name, content in files:
            (self.folder / name).write_bytes(content)
        if fault == "unreadable":
            (self.folder / f"{number:02}-closed").write_bytes(b"nobody may read it")
            (self.folder / f"{number:02}-closed").chmod(0)
        return fault

    def _jobs(self, number: int, *, is_wrong: bool = False) -> bytes:
        lines, day = [_HEAD], FIRST + timedelta(days=number)
        for place in range(4):
            began = day + timedelta(hours=10, minutes=15 * place)
            ended = began + timedelta(minutes=6 if is_wrong else 12)
            user, name = ("ann", "bob")[place % 2], ("ior", "s3d")[place // 2]
            lines.append(f"{number}{place:02}|{user}|{name}|batch|8|{began:%FT%TZ}|{ended:%FT%TZ}|COMPLETED")
        return ("\n".join(lines) + "\n").encode()

    def _polls(self, number: int, form: str = "{}") -> bytes:
        chance, day = random.Random(f"{self.seed} {number}"), FIRST + timedelta(days=number)
        lines = ["polled_at,controller,read_bytes_per_s,write_bytes_per_s"]
        for step in range(160):
            at = day + timedelta(hours=9, minutes=50, seconds=30 * step)
            for controller in ("c0", "c1"):
                rates = [float(chance.randrange(1, 50) * 10**6 * (step % 30 < 12)) for _ in range(2)]
                lines.append(f"{at:%FT%TZ},{controller}," + ",".join(map(form.format, rates)))
        return ("\n".join(lines) + "\n").encode()


def counters(seed: int, night_count: int) -> Iterator[list[tuple[datetime, list[tuple[int, int]]]]]:
    """Yield LMT's database of each night: bytes read and written so far by two targets, at each instant."""
    chance, totals = random.Random(f"counters {seed}"), [[0, 0], [0, 0]]
    for number in range(night_count):
        night = []
        for step in range(160):
            for total in totals:
                total[:] = [each + chance.randrange(1, 1 << 30) * (step % 40 < 9) for each in total]
            at = FIRST + timedelta(days=number, hours=9, minutes=50, seconds=30 * step)
            night.append((at, [(total[0], total[1]) for total in totals]))
        yield night


def undisturbed(site: Site, root: Path, *databases: str) -> Store:
    """Return a warehouse that received the same inputs in the same order, and built all days in a single run."""
    store, inbox = Store(root / "warehouse"), root / "inbox"
    inbox.mkdir(parents=True)
    for files in site.came:
        for name, content in files:
            (inbox / name).write_bytes(content)
        land_files(store, inbox, allows_refusals=True)
        # landed inputs are not read again
        shutil.rmtree(inbox)
        inbox.mkdir()
    land_files(store, *databases, allows_refusals=True)
    run_night(store)
    return store


def contents(store: Store) -> dict[str, list[str]]:
    """Every row of every table of the current release, without columns that depend on the number of releases."""
    found = {}
    with open_release(store, releases.find(store, None)) as connection:
        for table in list_published_tables():
            if table in _OF_THEIR_NIGHT:
                continue
            left_out = _HISTORY + (_BY_SIGNATURES if table == ATTRIBUTION_DAILY else ())
            names = [f'"{name}"' for name in table.column_names if name not in left_out]
            query = (
                f'select struct_pack({", ".join(f"{name} := {name}" for name in names)})::varchar from "{table.name}"'
            )
            if "table_name" in table.column_names:
                left = ", ".join(f"'{one.name}'" for one in _OF_THEIR_NIGHT)
                query += f" where table_name not in ({left})"
            found[table.name] = sorted(str(row) for (row,) in connection.sql(query).fetchall())
    return found


def refused(store: Store) -> pl.DataFrame:
    """Return the rejected rows of the current release."""
    return query_release(store, releases.find(store, None), "select source_file, line, reason from rejects")


def open_again(folder: Path) -> None:
    """Restore read permission, so that a test's folder can be removed."""
    for path in folder.glob("*-closed"):
        os.chmod(path, 0o600)
