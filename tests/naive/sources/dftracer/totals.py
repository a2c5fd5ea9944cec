"""DFTracer's traces, read line by line with the standard library: what each module moved and called."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LAYERS = {"MPIIO": 0, "STDIO": 1, "POSIX": 2}
_READS = {"read", "pread", "pread64", "readv", "preadv", "fread", "fgets", "fgetc", "getc", "getw"}
_WRITES = {"write", "pwrite", "pwrite64", "writev", "pwritev", "fwrite", "fputs", "fputc", "putc", "putw", "sendfile"}
_KERNEL = ("/dev/", "/proc/", "/sys/")


@dataclass
class Totals:
    """Bytes by (module, direction, whether nested), calls by (module, name), and processes and files that are known."""

    moved: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    processes: set[tuple[Any, int]] = field(default_factory=set)
    first_us: int = 0
    last_us: int = 0


def totals(paths: Iterable[Path]) -> Totals:
    """Read the files of a run; doubled events count once, and calls within calls of an outer layer are nested."""
    found = Totals()
    events: dict[str, tuple[Path, dict[str, Any]]] = {}
    names: dict[Path, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in paths:
        for event in _lines(path):
            args = event.get("args") or {}
            if event["ph"] in ("M", 4):
                if event["name"] == "FH":
                    names[path][str(args["value"])].add(args["name"])
                continue
            found.processes.add((args.get("hostname", args.get("hhash")), int(event["pid"])))
            alike = {name: str(event[name]) for name in ("pid", "tid", "id", "name", "ts", "dur")}
            events.setdefault(json.dumps([alike, str(args.get("ret"))]), (path, event))
    times = [(int(event["ts"]), int(event["ts"]) + int(event["dur"])) for _, event in events.values()]
    found.first_us, found.last_us = min(first for first, _ in times), max(last for _, last in times)
    _count([event for event in events.values() if event[1]["cat"] in _LAYERS], names, found)
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [json.loads(line) for line in text.splitlines() if line.strip() not in ("", "[", "]")]


def _count(events: list[tuple[Path, dict[str, Any]]], names: dict[Path, dict[str, set[str]]], found: Totals) -> None:
    threads = defaultdict(list)
    for path, event in events:
        threads[event["pid"], event["tid"]].append((path, event))
    for own in threads.values():
        outer = [other for _, other in own if other["cat"] == "STDIO" and other["name"] in _READS | _WRITES]
        for path, event in own:
            args = event.get("args") or {}
            module = event["cat"]
            name = args.get("fname") or next(iter(names[path][str(args.get("fhash"))]), "")
            if args.get("fhash") is not None and len(names[path][str(args["fhash"])]) > 1:
                name = ""
            if name.startswith(_KERNEL):
                module = "KERNEL"
            found.calls[module, event["name"]] += 1
            direction = "read" if event["name"] in _READS else "write" if event["name"] in _WRITES else None
            if direction:
                found.moved[module, direction, _is_nested(event, outer)] += _bytes(event["name"], args)


def _bytes(name: str, args: dict[str, Any]) -> int:
    ret = int(args.get("ret", args.get("ret_len", -1)))
    if ret < 0:
        return 0
    return ret * int(args["size"]) if name in ("fread", "fwrite") else ret


def _is_nested(event: dict[str, Any], outer: list[dict[str, Any]]) -> bool:
    """Return whether a call that moves bytes lies within one of an outer layer that says its own."""
    first, last = int(event["ts"]), int(event["ts"]) + int(event["dur"])
    return event["cat"] == "POSIX" and any(
        int(other["ts"]) <= first < int(other["ts"]) + int(other["dur"]) >= last for other in outer
    )
