"""Traces as DFTracer writes them, in its three forms, from calls that are told in few words."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

#: of the DLIO profiler (numbers as text, names in full), of DFTracer 1 (hashes are numbers), and of 3 (no brackets)
Form = Literal["old", "new", "newest"]
FORMS: tuple[Form, ...] = ("old", "new", "newest")
EPOCH_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class Call:
    """One call: microseconds from the run's start, and what is logged of it."""

    cat: str
    name: str
    at_us: int
    lasting_us: int
    path: str | None = "/scratch/out"
    tid: int | None = None
    args: dict[str, Any] = field(default_factory=dict)


def write_call(at_us: int, byte_count: int, lasting_us: int = 10, **given: Any) -> Call:
    """Return a POSIX write."""
    return Call("POSIX", "write", at_us, lasting_us, args={"ret": byte_count, "count": byte_count}, **given)


@dataclass
class Process:
    """One process's file, line by line."""

    pid: int
    form: Form = "new"
    host: str = "node1"
    rank: int | None = None
    lines: list[str] = field(default_factory=list)
    event_count: int = 0

    def lines_of(self, calls: Sequence[Call], *, is_ended: bool = True) -> list[str]:
        """Return the lines of the file, with its brackets where the form has them."""
        hashes = {name: self._hash(name) for name in dict.fromkeys([self.host, "prog -x", *_paths(calls)])}
        self.lines, self.event_count = [], 0
        if self.form != "old":
            self._metadata("HH", self.host, hashes[self.host])
            self._metadata("SH", "prog -x", hashes["prog -x"])
            last = min([call.at_us for call in calls], default=0)
            self._event("dftracer", "start", last, 0, None, {"cmd_hash": hashes["prog -x"], "version": "3.0"}, hashes)
            for path in _paths(calls):
                self._metadata("FH", path, hashes[path])
            if self.rank is not None:
                self._metadata("PR", "rank", str(self.rank))
        for call in calls:
            self._event(call.cat, call.name, call.at_us, call.lasting_us, call.path, call.args, hashes, call.tid)
        if self.form != "old" and is_ended:
            count = self.event_count - (self.form == "new" and 0)
            last = max([call.at_us + call.lasting_us for call in calls], default=0)
            self._event("dftracer", "end", last, 0, None, {"num_events": count}, hashes)
        closing = ["]"] if is_ended else []
        return self.lines if self.form == "newest" else ["[", *self.lines, *closing]

    def _hash(self, name: str) -> int | str:
        number = sum(name.encode()) * 31 % 65_521
        return number if self.form == "new" else f"{number:016x}"

    def _metadata(self, kind: str, name: str, value: Any) -> None:
        number = {"id": self._next()} if self.form == "new" else {"type": 1}
        phase = {"ph": "M"} if self.form == "new" else {"ph": 4}
        own = {"pid": self.pid, "tid": self.pid}
        self._put(number | {"name": kind, "cat": "dftracer"} | own | phase | {"args": {"name": name, "value": value}})

    def _event(
        self,
        cat: str,
        name: str,
        at_us: int,
        lasting_us: int,
        path: str | None,
        args: dict[str, Any],
        hashes: dict[str, int | str],
        tid: int | None = None,
    ) -> None:
        place: dict[str, Any] = {"hhash": hashes[self.host]}
        if path is not None:
            place["fhash"] = hashes[path]
        if self.form == "old":
            place = {"hostname": self.host} | ({"fname": path} if path is not None else {})
        event = {"id": self._next(), "name": name, "cat": cat, "pid": self.pid, "tid": tid or self.pid}
        event |= {"ts": EPOCH_US + at_us, "dur": lasting_us, "ph": 1 if self.form == "newest" else "X"}
        if self.form == "old":
            event = {key: str(value) for key, value in event.items()}
            args = {key: str(value) for key, value in args.items()}
        self._put(event | {"args": place | args})

    def _next(self) -> int:
        self.event_count += 1
        return self.event_count

    def _put(self, line: dict[str, Any]) -> None:
        self.lines.append(json.dumps(line, separators=(",", ":")))


def _paths(calls: Sequence[Call]) -> list[str]:
    return list(dict.fromkeys(call.path for call in calls if call.path is not None))


def put(path: Path, lines: Sequence[str], *, end: str = "\n") -> Path:
    """Write lines as a file, compressed where its name ends so."""
    content = ("\n".join(lines) + end).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


#: a call of each kind, with what DFTracer logs of it
CALLS = (
    Call("POSIX", "open", 0, 5, args={"ret": 3, "flags": 0}),
    write_call(10, 100),
    Call("POSIX", "pread64", 30, 5, args={"ret": 40, "count": 64, "offset": 1_000}),
    Call("POSIX", "lseek64", 40, 1, args={"ret": 0, "offset": 0, "whence": 0}),
    Call("STDIO", "fwrite", 50, 9, path="/scratch/log", args={"ret": 3, "size": 8, "count": 4}),
    Call("POSIX", "write", 52, 5, path="/scratch/log", args={"ret": 24, "count": 24}),
    Call("POSIX", "write", 70, 5, args={"ret": -1, "count": 7}),
    Call("POSIX", "write", 80, 5, path="/dev/shm/x", args={"ret": 1_000, "count": 1_000}),
    Call("reader", "NPZReader.open", 90, 5, path=None, args={"image_size": 5}),
    Call("POSIX", "close", 100, 5, args={"ret": 0}),
)
