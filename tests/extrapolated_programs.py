"""SPMD programs as formulas of rank and n: what they call at any rank count, to hold extrapolated traces against."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

import numpy as np
from hypothesis import strategies as st

from iosig.transforms.traces.compression import compress_together
from iosig.transforms.traces.trace import CompressedTrace, Loop, Node, RankClass
from tests.compressed import class_ranks, nodes, rank_values
from tests.spmd_programs import Ranked, ranked

#: module, function, arguments
Made = tuple[str, str, str]
Program = Callable[[int, int], list[Made]]

INPUTS = (8, 12, 16, 24)


class NotDefined(Exception):
    """A program shares out a number that the ranks do not divide."""


def share(k: int, n: int) -> int:
    """Return `k/n` of programs that are not written for other rank counts than those that divide k."""
    if k % n:
        raise NotDefined
    return k // n


def posix(function: str, *arguments: object) -> Made:
    return "POSIX", function, " ".join(map(str, arguments))


def mpiio(function: str, *arguments: object) -> Made:
    return "MPIIO", function, " ".join(map(str, arguments))


def calls_of(program: Program, n: int) -> list[Ranked]:
    """Return the calls of all ranks as a tracer would give them; of ranks without any, too."""
    return [
        ranked(rank, [(rank, module, function, 0, text) for module, function, text in program(rank, n)])
        for rank in range(n)
    ]


def traces_of(program: Program, counts: Sequence[int] = INPUTS) -> tuple[CompressedTrace, ...]:
    return compress_together([(n, [one for one in calls_of(program, n) if one.order.size]) for n in counts])


def first_difference(trace: CompressedTrace, program: Program) -> str | None:
    """Return the first call of a trace that is not the program's, None if all are."""
    made = {rank: calls for one in trace.classes for rank, calls in _expanded(one).items()}
    for rank in range(trace.process_count):
        found, wanted = made.get(rank, []), program(rank, trace.process_count)
        if found != wanted:
            places = (at for at, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1])
            place = next(places, min(len(found), len(wanted)))
            return f"rank {rank}, call {place}: {found[place : place + 1]}, not {wanted[place : place + 1]}"
    return None


def _expanded(one: RankClass) -> dict[int, list[Made]]:
    """Return the calls of all ranks of a class, node by node and value by value."""
    known: dict[int, list[dict[int, Iterator[int]]]] = {}
    for node in nodes(one.body):
        vectors = [node.counts] if isinstance(node, Loop) else [slot.vector for slot in node.slots]
        known[id(node)] = [{rank: iter(row) for rank, row in rank_values(vector).items()} for vector in vectors]

    def body(members: Sequence[Node], rank: int) -> Iterator[Made]:
        for node in members:
            if isinstance(node, Loop):
                for _ in range(next(known[id(node)][0][rank])):
                    yield from body(node.body, rank)
                continue
            values = (
                str(next(own[rank])).zfill(slot.width) for own, slot in zip(known[id(node)], node.slots, strict=True)
            )
            filled = zip(node.texts, (*values, ""), strict=True)
            yield node.module, node.function, "".join(text + value for text, value in filled)

    return {rank: list(body(one.body, rank)) for rank in class_ranks(one)}


# ---- programs with names

PROGRAMS: dict[str, Program] = {}


def _program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def _pwrite(size: int, offset: int, path: str = "/a/f") -> Made:
    return posix("pwrite", path, "%p", size, offset)


@_program
def table_one(r: int, n: int) -> list[Made]:
    rows = [
        (posix("lseek", "/a/f", r * (960 // n) + 960 * i, 0), posix("write", "/a/f", "%p", 960 // n)) for i in range(3)
    ]
    return [posix("open", "/a/f", 66, 420), *(call for row in rows for call in row), posix("close", "/a/f")]


@_program
def shifted_file(r: int, n: int) -> list[Made]:
    path = f"/a/f{(r + 1) % n}"
    return [posix("open", path, 0), *(posix("pread", path, "%p", 10, i * 10) for i in range(5))]


@_program
def shifted_offset(r: int, n: int) -> list[Made]:
    return [posix("pread", "/a/f", "%p", 10, ((r + 3) % n) * 100 + i * 100 * n) for i in range(5)]


@_program
def reversed_ranks(r: int, n: int) -> list[Made]:
    return [_pwrite(10, (n - 1 - r) * 100 + i * 100 * n) for i in range(4)]


@_program
def file_of_four(r: int, n: int) -> list[Made]:
    return [_pwrite(10, (r % 4) * 100, f"/a/f.{r // 4}")]


@_program
def file_of_half(r: int, n: int) -> list[Made]:
    return [_pwrite(10, (r % (n // 2)) * 100, f"/a/f.{r // (n // 2)}")]


@_program
def root_writes_all(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 66, 420), *([posix("write", "/a/f", "%p", 100)] * n if r == 0 else [])]


@_program
def last_writes(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 66, 420), *([posix("write", "/a/f", "%p", 100)] if r == n - 1 else [])]


@_program
def padded_names(r: int, n: int) -> list[Made]:
    return [posix("open", f"/a/f.{r:08d}.{n:03d}", 66, 420)]


@_program
def loop_of_n(r: int, n: int) -> list[Made]:
    return [_pwrite(8, i * 8 * n + r * 8) for i in range(n)]


@_program
def loop_of_share(r: int, n: int) -> list[Made]:
    return [_pwrite(8, i * 8) for i in range(share(48, n))]


@_program
def loops_in_one_another(r: int, n: int) -> list[Made]:
    return [_pwrite(8, t * 10**6 + i * 8 * n + r * 8) for t in range(3) for i in range(share(96, n))]


@_program
def uneven_variables(r: int, n: int) -> list[Made]:
    sizes = ((8, 0), (24, 8), (16, 32))
    return [_pwrite(size, t * 10**6 * n + before * n + r * size) for t in range(6) for size, before in sizes]


@_program
def constant_offsets(r: int, n: int) -> list[Made]:
    return [_pwrite(1, offset) for offset in (5, 9, 1, 77, 3)]


@_program
def round_and_round(r: int, n: int) -> list[Made]:
    return [_pwrite(1, (i % 4) * 100 + r) for i in range(24)]


@_program
def round_the_ranks(r: int, n: int) -> list[Made]:
    return [_pwrite(1, (i % n) * 100 + r) for i in range(2 * n)]


@_program
def round_the_ranks_in_a_fixed_loop(r: int, n: int) -> list[Made]:
    share(96, n)
    return [_pwrite(1, (i % n) * 100 + r) for i in range(96)]


@_program
def neighbors(r: int, n: int) -> list[Made]:
    before = [posix("pread", "/a/f", "%p", 1, (r - 1) * 10)] if r else []
    behind = [posix("read", "/a/f", "%p", (r + 1) * 10)] if r < n - 1 else []
    return [posix("open", "/a/f", 1), *before, *behind]


@_program
def even_and_odd(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 1)] if r % 2 else [posix("close", "/a/f")]


@_program
def upper_half(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 1)] if r >= n // 2 else [posix("close", "/a/f")]


@_program
def large_offsets(r: int, n: int) -> list[Made]:
    return [_pwrite(1 << 20, r * (1 << 40) + i * (1 << 20)) for i in range(5)]


@_program
def partners(r: int, n: int) -> list[Made]:
    return [posix("pread", "/a/f", "%p", 1, (r ^ 1) * 10)]


@_program
def loop_behind_its_like(r: int, n: int) -> list[Made]:
    rows = [(posix("lseek", "/a/f", i, 0), posix("write", "/a/f", "%p", 5)) for i in range(3)]
    return [posix("write", "/a/f", "%p", 5), *(call for row in rows for call in row)]


@_program
def loop_of_share_without_index(r: int, n: int) -> list[Made]:
    return [_pwrite(1, r * 10)] * share(48, n) + [posix("fsync", "/a/f")]


@_program
def columns_of_four(r: int, n: int) -> list[Made]:
    return [_pwrite(8, (r % 4) * 8 + (r // 4) * 320 + i * 32) for i in range(10)]


@_program
def four_columns(r: int, n: int) -> list[Made]:
    width = share(n, 4)
    return [_pwrite(8, (r % width) * 8 + (r // width) * 8 * n + i * 32) for i in range(10)]


@_program
def tiles_in_two_dimensions(r: int, n: int) -> list[Made]:
    columns, size = 4, share(9600, n)
    x, y = r % columns, r // columns
    return [_pwrite(8 * size, y * 9600 * 32 + row * 8 * columns * size + x * 8 * size) for row in range(6)]


@_program
def variables_of_unequal_sizes(r: int, n: int) -> list[Made]:
    found, base = [], 0
    for step in range(4):
        for size in (share(960, n), 8, 3 * share(960, n)):
            found.append(_pwrite(size, base + r * size))
            base += size * n
        found.append(posix("fsync", "/a/f", step))
    return found


@_program
def restart(r: int, n: int) -> list[Made]:
    size = share(9600, n)
    read = [posix("pread", "/in/restart.0007", "%p", size, v * 9600 + r * size) for v in range(3)]
    written = [_pwrite(size, v * 9600 + r * size, f"/out/restart.{t:04d}") for t in range(1, 4) for v in range(3)]
    return [posix("open", "/in/restart.0007", 0), *read, posix("close", "/in/restart.0007"), *written]


@_program
def group_roots(r: int, n: int) -> list[Made]:
    path = f"/a/g.{r // 4:03d}"
    if r % 4:
        return [posix("stat", path), posix("barrier")]
    return [
        posix("open", path, 66, 420),
        *(posix("pwrite", path, "%p", 64, m * 64) for m in range(4)),
        posix("close", path),
    ]


@_program
def folder_of_group(r: int, n: int) -> list[Made]:
    return [posix("mkdir", f"/a/d{r // 4}/r{r:05d}", 448), posix("open", f"/a/d{r // 4}/r{r:05d}/part.{n}", 66, 420)]


@_program
def handles(r: int, n: int) -> list[Made]:
    written = [
        mpiio("MPI_File_write_at", f"{r}-1", r * 80 + i * 80 * n, "%p", 10, "MPI_DOUBLE", "%p") for i in range(3)
    ]
    both = [
        mpiio("MPI_File_open", "MPI_COMM_WORLD", "f", 9, "%p", "0-0"),
        mpiio("MPI_File_open", "MPI_COMM_SELF", f"g{r}", 9, "%p", f"{r}-1"),
    ]
    return [*both, *written, mpiio("MPI_File_close", f"{r}-1"), mpiio("MPI_File_close", "0-0")]


@_program
def log_of_every_fourth(r: int, n: int) -> list[Made]:
    own = [posix("open", f"/log/{r}", 66, 420), posix("write", f"/log/{r}", "%p", 80), posix("close", f"/log/{r}")]
    return [*(own if r % 4 == 0 else []), _pwrite(8, 8 * r)]


@_program
def weak_and_strong(r: int, n: int) -> list[Made]:
    strong = [_pwrite(share(9600, n), r * share(9600, n) + t * 9600) for t in range(3)]
    weak = [_pwrite(1024, r * 1024 + t * 1024 * n, "/a/weak") for t in range(3)]
    return [*strong, *weak, posix("truncate", "/a/weak", 3072 * n)]


@_program
def files_for_each_rank_of_each_step(r: int, n: int) -> list[Made]:
    return [_pwrite(4096, 0, f"/out/t{t:03d}/f.{r}.{n}") for t in range(4)]


@_program
def four_files(r: int, n: int) -> list[Made]:
    width = share(n, 4)
    return [_pwrite(100, (r % width) * 100, f"/a/f.{r // width}") for _ in range(3)]


@_program
def root_alone(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 66, 420), *(_pwrite(100, i * 100) for i in range(n))] if r == 0 else []


@_program
def first_four_write(r: int, n: int) -> list[Made]:
    return [_pwrite(25 * n, 25 * n * r)] if r < 4 else []


@_program
def header_and_parts(r: int, n: int) -> list[Made]:
    header = [_pwrite(512, 0)] if r == 0 else []
    return [*header, _pwrite(share(960, n), 512 + r * share(960, n))]


@_program
def gather_from_all(r: int, n: int) -> list[Made]:
    return [posix("pread", f"/a/f.{other}", "%p", 8, r * 8) for other in range(n)]


@_program
def all_but_the_first_read(r: int, n: int) -> list[Made]:
    return [posix("pread", "/a/f", "%p", 8, (r - 1) * 8)] * (r > 0) + [_pwrite(8, r * 8)]


# ---- programs that must be refused, wherever they are not what they seem


REFUSED: dict[str, Program] = {}


def _refused(function: Program) -> Program:
    REFUSED[function.__name__] = function
    return function


@_refused
def triangular(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 1), *(posix("write", "/a/f", "%p", i) for i in range(r + 2))]


@_refused
def loop_by_rank(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 1), *([posix("write", "/a/f", "%p", 8)] * (r + 1))]


@_refused
def logarithm(r: int, n: int) -> list[Made]:
    return [_pwrite(8, int(np.log2(n)))]


@_refused
def square(r: int, n: int) -> list[Made]:
    return [_pwrite(8, n * n * r)]


@_refused
def rounded_share(r: int, n: int) -> list[Made]:
    return [_pwrite(1000 // n, r * (1000 // n))]


@_refused
def rounded_elements(r: int, n: int) -> list[Made]:
    return [_pwrite(8 * (1000 // n), 0)]


@_refused
def rounded_total(r: int, n: int) -> list[Made]:
    return [posix("truncate", "/a/f", n * (1000 // n))]


@_refused
def rounded_up(r: int, n: int) -> list[Made]:
    return [_pwrite(-(-968 // n), 0)]


@_refused
def what_is_left(r: int, n: int) -> list[Made]:
    return [_pwrite(1000 % n, 0)]


@_refused
def one_more_for_some(r: int, n: int) -> list[Made]:
    return [_pwrite(1, i) for i in range(100 // n + (1 if r < 100 % n else 0))]


@_refused
def at_random(r: int, n: int) -> list[Made]:
    drawn = random.Random(r * 1000 + n)
    return [_pwrite(1, drawn.randrange(10**6)) for _ in range(5)]


@_refused
def every_third(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 1)] if r % 3 == 1 else [posix("close", "/a/f")]


@_refused
def aggregators(r: int, n: int) -> list[Made]:
    return [posix("open", "/a/f", 1)] if r < max(1, n // 8) else [posix("close", "/a/f")]


@_refused
def groups_of_eight_seen_by_fourths(r: int, n: int) -> list[Made]:
    return [posix("open", f"/a/f.{r // 8}", 1)] if r % 4 == 0 else [posix("close", "/a/f")]


@_refused
def half_of_even_ranks(r: int, n: int) -> list[Made]:
    return [_pwrite(1, r * (n // 4))] if r % 2 == 0 else [posix("close", "/a/f")]


# ---- programs out of a grammar


@dataclass(frozen=True)
class Drawn:
    """A program as lines of (depth, kind, what): loops, conditions, and calls with formulas in their arguments."""

    lines: tuple[tuple[int, str, str, str], ...]

    def __call__(self, r: int, n: int) -> list[Made]:
        known = {"r": r, "n": n, "share": lambda k, by=n: share(k, by)}
        return list(_run(self._compiled(), known))

    @property
    def has_remainders_of_last(self) -> bool:
        """Return whether the last rank is one of its own, and may have a remainder of n - 1 for a number."""
        is_apart = any("n - 1" in text for _, kind, _, text in self.lines if kind == "if")
        return is_apart and any("(r %" in text for _, _, _, text in self.lines)

    def _compiled(self) -> Sequence[tuple[int, str, str, CodeType]]:
        if self not in _CODE:
            _CODE[self] = [
                (depth, kind, name, compile(text, "program", "eval")) for depth, kind, name, text in self.lines
            ]
        return _CODE[self]


_CODE: dict[Drawn, Sequence[tuple[int, str, str, CodeType]]] = {}


def _run(lines: Sequence[tuple[int, str, str, CodeType]], known: dict[str, object]) -> Iterator[Made]:
    place = 0
    while place < len(lines):
        depth, kind, name, code = lines[place]
        end = next((at for at in range(place + 1, len(lines)) if lines[at][0] <= depth), len(lines))
        value = eval(code, {"__builtins__": {}}, known)
        if kind == "call":
            yield "POSIX", name, str(value)
        elif kind == "if":
            yield from _run(lines[place + 1 : end], known) if value else ()
        else:
            for index in range(value):
                yield from _run(lines[place + 1 : end], known | {name: index})
        place = end


_CONSTANTS = st.sampled_from([1, 2, 8, 10, 64, 1000, 4096])
_SHARED = st.sampled_from([48, 96, 960, 9600, 1 << 20 // 16 * 48])
_CONDITIONS = ("r == 0", "r < n - 1", "r == n - 1", "r % 2 == 0", "r % 4 == 0", "r > 0", "r < 3")
_CALLS = (
    ("pwrite", "'/a/f %p {} {}'"),
    ("write", "'/a/f %p {}'"),
    ("lseek", "'/a/f {} 0'"),
    ("open", "'/a/f.{} {}'"),
    ("open", "'/a/d{}/f.%08d 66' % {}"),
    ("close", "'{}-{}'"),
)


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    """Draw a program of a few lines, in loops and conditions up to two deep."""
    return Drawn(tuple(_lines(draw, 0, (), "True")))


def _lines(
    draw: st.DrawFn, depth: int, indices: tuple[tuple[str, str], ...], condition: str
) -> Iterator[tuple[int, str, str, str]]:
    """Yield lines within loops of these indices and counts, and within a condition."""
    for _ in range(draw(st.integers(1, 3 if depth == 0 else 2))):
        kind = draw(st.sampled_from(["call", "loop", "if"] if depth < 2 else ["call"]))
        if kind == "call":
            yield depth, *_call(draw, indices, condition)
        elif kind == "if" and condition == "True":
            inner = draw(st.sampled_from(_CONDITIONS))
            yield depth, "if", "", inner
            yield from _lines(draw, depth + 1, indices, inner)
        else:
            count = draw(st.sampled_from(["2", "3", "5", "n", "2 * n", "share(48)", "share(96)"]))
            name = "ijl"[len(indices)]
            yield depth, "loop", name, count
            yield from _lines(draw, depth + 1, (*indices, (name, count)), condition)


def _call(draw: st.DrawFn, indices: tuple[tuple[str, str], ...], condition: str) -> tuple[str, str, str]:
    function, text = draw(st.sampled_from(_CALLS))
    formulas = [_formula(draw, indices, condition) for _ in range(text.count("{}"))]
    if "%08d" in text:
        return "call", function, f"'/a/d%d/f.%08d 66' % ({formulas[0]}, {formulas[1]})"
    shown = text.replace("{}", "%d").replace("%p", "%%p")
    return "call", function, f"{shown} % ({', '.join(formulas)},)"


def _formula(draw: st.DrawFn, indices: tuple[tuple[str, str], ...], condition: str) -> str:
    """Draw a formula: something of the rank, something of each loop, and a constant, or some of these."""
    shared = f"share({draw(_SHARED)})"
    scale = str(draw(_CONSTANTS))
    of_rank = ["0", scale, shared, f"n * {scale}", "r", f"r * {scale}", f"r * {shared}", f"(n - 1 - r) * {scale}"]
    of_rank += [f"((r + {draw(st.integers(1, 3))}) % n) * {scale}"]
    # Of the last rank alone, the remainder of n - 1 is all that is seen, and the same at all even rank counts.
    if condition != "r == n - 1":
        size = draw(st.sampled_from(["2", "3", "4", "8", "share(n, 2)", "share(n, 4)"]))
        of_rank += [f"(r // {size})", f"(r % {size}) * {scale}", f"(r % {size}) * {scale} + (r // {size}) * 4096 * n"]
    terms = [draw(st.sampled_from(of_rank))]
    for index, count in indices:
        times = str(draw(_CONSTANTS))
        of_loop = ["0", index, f"{index} * {times}", f"{index} * n * {times}", f"{index} * share({draw(_SHARED)})"]
        of_loop += [f"({index} % {draw(st.sampled_from([2, 3]))}) * {times}"]
        # A shorter loop is not seen to begin anew.
        of_loop += [f"({index} % n)"] * (count in ("n", "2 * n"))
        terms.append(draw(st.sampled_from(of_loop)))
    return " + ".join(terms)
