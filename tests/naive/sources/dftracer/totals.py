"""Bytes and calls of each module in DFTracer traces, read line by line with the standard library.

Whatever may falsify the totals raises `Damaged`: no reader may accept such a trace as valid.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LAYERS = {"MPIIO": 0, "STDIO": 1, "POSIX": 2}
_READS = {"read", "pread", "pread64", "readv", "preadv", "fread", "fgets", "fgetc", "getc", "getw"}
_WRITES = {"write", "pwrite", "pwrite64", "writev", "pwritev", "fwrite", "fputs", "fputc", "putc", "putw", "sendfile"}
_KERNEL = ("/dev/", "/proc/", "/sys/")
_EVENTS, _SAYINGS, _PASSED_OVER = ("X", "1"), ("M", "4"), ("C", "2", "i", "I")
_NAMING = ("FH", "HH", "SH")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_MOST_BYTES = 1 << 60
#: Maximum depth of brackets in a line; deeper contents are dropped.
_DEPTH = 50

Event = dict[str, Any]


class Damaged(Exception):
    """A line does not follow the format of DFTracer, or lacks information."""


@dataclass
class Totals:
    """Bytes by (module, direction, is nested), calls by (module, name), and known processes and files."""

    moved: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    processes: set[tuple[Any, int]] = field(default_factory=set)
    first_us: int = 0
    last_us: int = 0


@dataclass
class _Said:
    """Known hashes: files by input, and hosts."""

    files: dict[Path, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    hosts: set[str] = field(default_factory=set)

    def path_of(self, source: Path, args: Event) -> str:
        if args.get("fname") or args.get("fhash") is None:
            return args.get("fname") or ""
        key = str(args["fhash"])
        names = self.files[source][key] or set().union(*(of_input[key] for of_input in self.files.values()))
        if not names:
            raise Damaged("a hash of no file")
        return next(iter(names)) if len(names) == 1 else ""


def totals(paths: Iterable[Path]) -> Totals:
    """Read the files of a run; duplicate events count once, and calls within calls of an outer layer are nested.

    Raises Damaged.
    """
    found, said = Totals(), _Said()
    events: dict[str, tuple[Path, Event]] = {}
    for path in paths:
        for event in _lines(path):
            args = event["args"]
            if str(event["ph"]) in _SAYINGS:
                _hear(event, args, path, said)
            elif str(event["ph"]) in _EVENTS:
                found.processes.add((args.get("hostname", args.get("hhash")), int(event["pid"])))
                alike = {name: str(event[name]) for name in ("pid", "tid", "id", "name", "ts", "dur")}
                events.setdefault(json.dumps([alike, str(args.get("ret"))]), (path, event))
    _require_hosts(list(events.values()), said)
    times = [(int(event["ts"]), int(event["ts"]) + int(event["dur"])) for _, event in events.values()]
    found.first_us, found.last_us = min(first for first, _ in times), max(last for _, last in times)
    _count(list(events.values()), said, found)
    return found


# ---- lines


def _lines(path: Path) -> list[Event]:
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except UnicodeDecodeError as error:
        raise Damaged from error
    return [_event(line) for line in text.split("\n") if line.strip() not in ("", "[", "]")]


def _event(line: str) -> Event:
    text = line.strip().removesuffix(",")
    try:
        event = json.loads(_shallow(text), object_pairs_hook=_single)
    except ValueError as error:
        raise Damaged from error
    args = event.get("args") if isinstance(event, dict) else 0
    if not isinstance(args, dict | None):
        raise Damaged("no object")
    told = {name: value for name, value in (args or {}).items() if value is not None}
    _require(event, told)
    return {**event, "args": told}


def _single(pairs: list[tuple[str, Any]]) -> Event:
    if len(dict(pairs)) < len(pairs):
        raise Damaged("a name comes twice")
    return dict(pairs)


def _shallow(text: str) -> str:
    """Drop the contents of brackets beyond the maximum depth, which the standard library cannot parse."""
    if text.count("[") + text.count("{") < _DEPTH:
        return text
    kept, depth, is_text, is_escaped = [], 0, False, False
    for mark in text:
        depth += (mark in "[{") * (not is_text)
        if depth <= _DEPTH:
            kept.append(mark)
        elif kept[-1] == ":":
            kept.append("0")
        depth -= (mark in "]}") * (not is_text)
        is_text ^= mark == '"' and not is_escaped
        is_escaped = mark == "\\" and not is_escaped
    return "".join(kept)


def _require(event: Event, args: Event) -> None:
    """Raise Damaged if a used field of a line has another type than DFTracer writes."""
    phase = str(event.get("ph"))
    if phase in _PASSED_OVER:
        return
    texts = [event.get("name"), event.get("cat")] + [args[name] for name in ("hostname", "fname") if name in args]
    hashes = [args[name] for name in ("hhash", "fhash") if name in args]
    numbers = [event.get("pid"), event.get("tid")]
    if phase in _EVENTS:
        numbers += [event.get(name) for name in ("id", "ts", "dur")]
        numbers += [args["ret"]] if event.get("cat") in _LAYERS and "ret" in args else []
        numbers += [args["num_events"]] if event.get("cat") == "dftracer" and "num_events" in args else []
    elif phase not in _SAYINGS:
        raise Damaged("no kind of record")
    elif event.get("name") in _NAMING:
        texts.append(args.get("name"))
        hashes.append(args.get("value"))
    if not all(isinstance(text, str) for text in texts):
        raise Damaged("no text")
    if not all(isinstance(text, str | int) and not isinstance(text, bool) for text in hashes):
        raise Damaged("no hash")
    for number in numbers:
        _whole(number)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int) or not _WHOLE.fullmatch(str(value)):
        raise Damaged("no number")
    if not -(1 << 63) <= int(value) < 1 << 63:
        raise Damaged("no number of 64 bits")
    return int(value)


def _hear(event: Event, args: Event, path: Path, said: _Said) -> None:
    if event["cat"] == "dftracer" and event["name"] == "FH":
        said.files[path][str(args["value"])].add(args["name"])
    elif event["cat"] == "dftracer" and event["name"] == "HH":
        said.hosts.add(str(args["value"]))


def _require_hosts(events: list[tuple[Path, Event]], said: _Said) -> None:
    """Raise Damaged if only some processes have a host."""
    told = [event["args"] for _, event in events]
    if any("hhash" in args or "hostname" in args for args in told) and not all(
        "hostname" in args or str(args.get("hhash")) in said.hosts for args in told
    ):
        raise Damaged("a process of no host")


# ---- sums


def _count(events: list[tuple[Path, Event]], said: _Said, found: Totals) -> None:
    threads = defaultdict(list)
    for path, event in events:
        threads[event["pid"], event["tid"]].append((path, event))
    for own in threads.values():
        outer = [other for _, other in own if other["cat"] == "STDIO" and other["name"] in _READS | _WRITES]
        for path, event in own:
            args = event["args"]
            direction = "read" if event["name"] in _READS else "write" if event["name"] in _WRITES else None
            if event["cat"] not in _LAYERS:
                # A function of the program counts if it has the name of a read or write and a number of bytes.
                if direction and ("ret" in args or "size" in args):
                    found.calls["APP", event["name"]] += 1
                    found.moved["APP", direction, False] += _own_bytes(args)
                continue
            module = "KERNEL" if said.path_of(path, args).startswith(_KERNEL) else event["cat"]
            found.calls[module, event["name"]] += 1
            if direction:
                found.moved[module, direction, _is_nested(event, outer)] += _bytes(event["name"], args)


def _bytes(name: str, args: Event) -> int:
    told = {"fgets": "ret_len", "fputs": "str_len"}.get(name, "ret")
    if told not in args and told != "ret_len":
        raise Damaged("nothing says how many bytes moved")
    ret = _whole(args.get(told, 0))
    for other in ("count", "size", "offset"):
        if not 0 <= _whole(args.get(other, 0)) <= _MOST_BYTES:
            raise Damaged("no size of a file")
    if ret < 0:
        return 0
    if name in ("fread", "fwrite") and "size" not in args:
        raise Damaged("nothing says how large the items are")
    moved = ret * _whole(args["size"]) if name in ("fread", "fwrite") else ret
    if moved > _MOST_BYTES:
        raise Damaged("no file is so large")
    return moved


def _own_bytes(args: Event) -> int:
    ret, size = (_whole(args[name]) if name in args else None for name in ("ret", "size"))
    return ret if ret is not None and ret >= 0 else size or 0


def _is_nested(event: Event, outer: list[Event]) -> bool:
    """Return whether a call that moves bytes lies within a call of an outer layer with a known size."""
    first, last = int(event["ts"]), int(event["ts"]) + int(event["dur"])
    return event["cat"] == "POSIX" and any(
        int(other["ts"]) <= first < int(other["ts"]) + int(other["dur"]) >= last for other in outer
    )
