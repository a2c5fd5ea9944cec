"""Raw Recorder 2.5 traces, written and read number by number, as the format specifies."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

FUNCTIONS = ("open", "close", "write", "pwrite", "MPI_File_open", "MPI_Barrier", "MPI_File_write_at", "H5Fopen")
USER = 255
TICKS_PER_S = 10_000_000

Grammar = dict[int, list[tuple[int, int]]]


@dataclass(frozen=True)
class Call:
    """A call: function number, depth, arguments, and start and end in ticks."""

    function: int
    level: int
    arguments: tuple[str, ...]
    began: int
    ceased: int
    thread: int = 0

    def key(self) -> bytes:
        text = b"".join(argument.encode() + b" " for argument in self.arguments)
        head = struct.pack("<QBBBi", self.thread, self.function, self.level, len(self.arguments), len(text))
        return head + text


# ---- writing


def metadata(rank_count: int, *, merged: bool = False, start_s: float = 1.7e9, tick_s: float = 1e-7) -> bytes:
    head = struct.pack("<i4xddiii4x", rank_count, start_s, tick_s, 1 << 18, 0, int(merged))
    return head + "".join(f"{name}\n" for name in FUNCTIONS).encode()


def signatures(numbers: dict[bytes, int], rank: int, counts: dict[int, int]) -> bytes:
    entries = (struct.pack("<iiiI", n, rank, len(key), counts[n]) + key for key, n in numbers.items())
    return struct.pack("<i", len(numbers)) + b"".join(entries)


def folded(symbols: Sequence[int]) -> Grammar:
    """Return a grammar of a sequence: runs become exponents, and repeated pairs rules, most frequent pairs first."""
    body = [(symbol, 1) for symbol in symbols]
    grammar: Grammar = {}
    while True:
        runs: list[tuple[int, int]] = []
        for symbol, times in body:
            if runs and runs[-1][0] == symbol:
                runs[-1] = (symbol, runs[-1][1] + times)
            else:
                runs.append((symbol, times))
        body = runs
        pairs = Counter(pairwise(body)).most_common(1)
        if not pairs or pairs[0][1] < 2:
            return {-1: body} | grammar
        pair, number = pairs[0][0], -2 - len(grammar)
        replaced: list[tuple[int, int]] = []
        index = 0
        while index < len(body):
            is_pair = tuple(body[index : index + 2]) == pair
            replaced.append((number, 1) if is_pair else body[index])
            index += 2 if is_pair else 1
        if len(replaced) > len(body) - 2:
            return {-1: body} | grammar
        grammar[number] = list(pair)
        body = replaced


def grammar_file(grammar: Grammar) -> bytes:
    content = struct.pack("<i", len(grammar))
    for rule, body in grammar.items():
        content += struct.pack("<ii", rule, len(body)) + b"".join(struct.pack("<ii", *pair) for pair in body)
    return content


def stamps(calls: Sequence[Call]) -> bytes:
    befores = [0, *(call.began for call in calls)]
    gaps = [(call.began - before, call.ceased - before) for call, before in zip(calls, befores, strict=False)]
    return b"".join(struct.pack("<II", *gap) for gap in gaps)


def separate(ranks: Sequence[Sequence[Call]]) -> dict[str, bytes]:
    """Return the files of a trace with separate signatures and grammars for each rank."""
    files = {"VERSION": b"2.5.0", "recorder.mt": metadata(len(ranks))}
    for rank, calls in enumerate(ranks):
        numbers: dict[bytes, int] = {}
        order = [numbers.setdefault(call.key(), len(numbers)) for call in calls]
        files[f"{rank}.cst"] = signatures(numbers, rank, Counter(order))
        files[f"{rank}.cfg"] = grammar_file(folded(order))
        files[f"{rank}.ts"] = stamps(calls)
    return files


def merged(ranks: Sequence[Sequence[Call]]) -> dict[str, bytes]:
    """Return the files of a trace with signatures and grammars merged over all ranks."""
    files = {"VERSION": b"2.5.0", "recorder.mt": metadata(len(ranks), merged=True)}
    numbers: dict[bytes, int] = {}
    for call in (call for calls in reversed(ranks) for call in calls):
        numbers.setdefault(call.key(), len(numbers))
    orders = [[numbers[call.key()] for call in calls] for calls in ranks]
    unique: dict[bytes, int] = {}
    of_rank = [unique.setdefault(grammar_file(folded(order)), len(unique)) for order in orders]
    counts = Counter(symbol for order in orders for symbol in order)
    files["0.cst"] = signatures(numbers, 0, counts)
    files["ug.mt"] = struct.pack(f"<{len(ranks) + 1}i", *of_rank, len(unique))
    files |= {f"{number}.cfg": content for content, number in unique.items()}
    return files | {f"{rank}.ts": stamps(calls) for rank, calls in enumerate(ranks)}


def text(calls: Sequence[Call]) -> str:
    """Return the output of recorder2text for the calls of a rank."""
    lines = []
    for call in calls:
        name = call.arguments[1] if call.function == USER else FUNCTIONS[call.function]
        kind = 4 if call.function == USER else (0, 0, 0, 0, 1, 2, 1, 3)[call.function]
        shown = "" if call.function == USER else "".join(f" {argument}" for argument in call.arguments)
        times = f"{call.began / TICKS_PER_S:.7f} {call.ceased / TICKS_PER_S:.7f}"
        lines.append(f"{times} {name} {call.level} {kind} ({shown} )\n")
    return "".join(lines)


# ---- reading


def decoded(folder: Path, rank: int) -> list[tuple[str, int, str, float, float]]:
    """Return function, level, arguments, start and end of each call of a rank of an unmerged trace."""
    names = (folder / "recorder.mt").read_bytes()[40:].decode().split("\n")
    listed = (folder / f"{rank}.cst").read_bytes()
    known: dict[int, tuple[str, int, str]] = {}
    place = 4
    for _ in range(struct.unpack_from("<i", listed)[0]):
        number, _, length, _ = struct.unpack_from("<iiiI", listed, place)
        _, function, level, _, _ = struct.unpack_from("<QBBBi", listed, place + 16)
        arguments = listed[place + 31 : place + 16 + length].decode()
        known[number] = (names[function], level, arguments[:-1])
        place += 16 + length
    content = (folder / f"{rank}.cfg").read_bytes()
    rules: Grammar = {}
    place = 4
    for _ in range(struct.unpack_from("<i", content)[0]):
        rule, count = struct.unpack_from("<ii", content, place)
        rules[rule] = [struct.unpack_from("<ii", content, place + 8 + 8 * index) for index in range(count)]
        place += 8 + 8 * count
    found: list[tuple[str, int, str, float, float]] = []
    before = 0
    order = sequence(rules, -1)
    with (folder / f"{rank}.ts").open("rb") as file:
        for symbol in order:
            began, ceased = struct.unpack("<II", file.read(8))
            found.append((*known[symbol], (before + began) * 1e-7, (before + ceased) * 1e-7))
            before += began
    return found


def sequence(rules: Grammar, rule: int) -> list[int]:
    """Return the calls of a rule in order."""
    found: list[int] = []
    for symbol, times in rules[rule]:
        for _ in range(times):
            found.extend([symbol] if symbol >= 0 else sequence(rules, symbol))
    return found
