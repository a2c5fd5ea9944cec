"""Naive implementation of `iosig.transforms.traces.totals`: every call of every rank is read and added."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from iosig.transforms.traces.requests import CallFormat, CallFormats
from iosig.transforms.traces.trace import CompressedTrace
from tests.naive.traces import expansion

#: Rank, module, function, level and arguments of a call; the calls of a rank are in order.
Made = tuple[int, str, str, int, str]

_UNKNOWN = ("???", "MPI_FILE_NULL", "MPI_FILE_UNKNOWN", "")


@dataclass
class File:
    """Accesses to all files with names that differ only in numbers."""

    paths: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    calls: Counter[bool] = field(default_factory=Counter)
    bytes: defaultdict[tuple[bool, str], int | None] = field(default_factory=lambda: defaultdict(int))


@dataclass
class Sums:
    """Totals of calls; modules by layer, nesting and direction."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: Counter[tuple[str, bool, str]] = field(default_factory=Counter)
    bytes: defaultdict[tuple[str, bool, str], int | None] = field(default_factory=lambda: defaultdict(int))
    files: defaultdict[str | None, File] = field(default_factory=lambda: defaultdict(File))


def calls_of(trace: CompressedTrace) -> Iterator[Made]:
    """Yield all calls of all ranks."""
    for rank in range(trace.process_count):
        for _, node, text in expansion.calls(trace, rank):
            yield rank, node.module, node.function, node.level, text


def kind(path: str) -> str:
    """Return a name with its numbers, or ranges of numbers, replaced."""
    return re.sub(r"\{-?[0-9]+\.\.-?[0-9]+(\.\.[0-9]+)?\}|[0-9]+", "#", path)


def asked_of(given: Sequence[str], form: CallFormat, forms: CallFormats) -> int | None:
    """Return the requested bytes of a call with these arguments."""

    def number(place: int | None) -> int | None:
        text = given[place] if place is not None and place < len(given) else ""
        return int(text) if re.fullmatch(r"-?[0-9]+", text) else None

    count = number(form.count_at)
    each: int | None = 1
    if form.layer == "MPIIO":
        each = forms.type_bytes.get(given[form.type_at]) if form.type_at and form.type_at < len(given) else None
    elif form.size_at is not None:
        each = number(form.size_at)
    if count is None or each is None or count - form.surplus < 0 or each < 0:
        return None
    return (count - form.surplus) * each


def _plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def compute_totals(made: Iterable[Made], forms: CallFormats) -> Sums:
    """Return the totals of calls, added one by one."""
    found = Sums()
    handles: dict[str, str] = {}
    around: list[tuple[int, bool]] = []
    last_rank = -1
    for rank, module, function, level, text in made:
        if rank != last_rank:
            handles, around, last_rank = {}, [], rank
        found.calls[module, function] += 1
        around = [pair for pair in around if pair[0] < level]
        is_nested = any(touches for _, touches in around)
        around.append((level, function.startswith("MPI_File_") or module in ("POSIX", "MPIIO", "STDIO")))
        form = forms.by_function.get(function)
        if form is None:
            continue
        given = text.split(" ")
        if form.path_at is not None and form.file_at is not None:
            path = given[form.path_at] if form.path_at < len(given) else ""
            if form.file_at < len(given):
                handles[given[form.file_at]] = path
        else:
            path = given[form.file_at] if form.file_at is not None and form.file_at < len(given) else ""
            path = handles.get(path, "") if form.layer == "MPIIO" else path
        known = None if path in _UNKNOWN else path
        file = found.files[None if known is None else kind(known)]
        file.paths |= {known} if known is not None else set()
        file.ranks.add(rank)
        file.calls[is_nested] += 1
        if form.operation in ("read", "write"):
            asked = asked_of(given, form, forms)
            found.requests[form.layer, is_nested, form.operation] += 1
            key = form.layer, is_nested, form.operation
            found.bytes[key] = _plus(found.bytes[key], asked)
            file.bytes[is_nested, form.operation] = _plus(file.bytes[is_nested, form.operation], asked)
    return found
