"""Points that differ in their digits only have one form, which is read once.

One line of each form is read as all lines are, with a number of its own in place of each run of digits: so it says
where its tags, counts and time stand, and there they stand in all lines of the form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from warehouse.sources.counters.line_protocol import SOUND, UNITS, Shape, names
from warehouse.sources.files.limits import in_force
from warehouse.sources.rows.digits import MARK, MARKED, MOST_DIGITS, Digits, Ints, marked, parts
from warehouse.sources.rows.text_blocks import Block

Flags = npt.NDArray[np.bool_]

#: so many forms of a block are learnt, and one more of so many lines; and so many in all
_ENOUGH_FORMS, _LINES_PER_FORM, _MOST_FORMS = 32, 50, 10_000
_MOST_BYTES = 8192
#: of so many lines it is counted first how many say something else, and so many are enough
_FIRST_LINES, _ENOUGH_SAID = 64, 10
_TIME = re.compile(rb" ([0-9]{10}|[0-9]{13}|[0-9]{16}|[0-9]{19})$")
_COUNT = re.compile(r"(7[0-9]{6})i?")
#: what escapes, or is no plain text: such lines are read by themselves
_ODD = re.compile(rb"[\\\"#\x80-\xff\x00-\x1f]")


class Place(NamedTuple):
    """Where a value stands in a line."""

    start: int
    length: int


_NONE = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Form:
    """Where lines of a form have what they say; a tag without digits is a text. shape: None where they are passed over.

    fixed: where the digits of names stand, and which they are.
    """

    shape: Shape | None
    fixed: tuple[tuple[Place, int], ...]
    time: Place
    tags: Mapping[str, Place | str]
    counts: Mapping[str, Place]


@dataclass(frozen=True, slots=True)
class Cut:
    """Points of one shape, cut out of lines of known forms.

    said_count: how many of them say something else, times apart, or enough of them. times: `line` and `at_us`.
    """

    shape: Shape
    said_count: int
    times: pl.DataFrame
    _tags: dict[str, pl.Series]
    _counts: dict[str, pl.Series]

    def tag(self, name: str) -> pl.Series:
        """Return the texts of a tag, NULL where there is none of that name."""
        if name not in self._tags:
            return pl.repeat(None, self.times.height, dtype=pl.String, eager=True)
        return self._tags[name]

    def counts(self, names: Collection[str]) -> pl.DataFrame:
        """Return fields as whole numbers."""
        return pl.DataFrame([self._counts[name].alias(name) for name in names])


#: which fields of points count, None where the points are to be read by themselves
Columns = Callable[[Shape], Collection[str] | None]


def form_of(line: bytes, measurements: Collection[str] | None, columns: Columns) -> Form | None:
    """Return the form of a line, None where it is to be read by itself; measurements: those that are meant."""
    at = _TIME.search(line)
    if at is None or _ODD.search(line) or len(line) > min(_MOST_BYTES, in_force().line_bytes):
        return None
    text = line[: at.start()].decode()
    told, places = marked(line[: at.start()])
    time = Place(at.start(1), at.end(1) - at.start(1))
    own = re.split("[, ]", text, maxsplit=1)[0]
    if measurements is not None and own not in measurements:
        fixed = tuple(_fixed(line, [place for place in places if place[0] < len(own)]))
        return Form(None, fixed, time, {}, {}) if re.match(SOUND, line.decode()) else None
    found = names(text)
    if found is None:
        return None
    shape, (head, _, body) = Shape(*found), told.decode().partition(" ")
    tags = dict(part.split("=") for part in head.split(",")[1:])
    fields = dict(zip(shape.fields, (part.split("=")[1] for part in body.split(",")), strict=True))
    counted = columns(shape)
    if counted is None:
        return None
    counts = {name: match for name in counted if (match := _COUNT.fullmatch(fields[name]))}
    counts_at = {name: _between(*places[int(match[1]) - MARK]) for name, match in counts.items()}
    if len(counts) < len(counted) or any(place.length > MOST_DIGITS for place in counts_at.values()):
        return None
    named = [part.split("=")[0] for part in (*head.split(","), *body.split(","))]
    of_names = [places[int(mark) - MARK] for name in named for mark in MARKED.findall(name)]
    tags_at = {name: _tag(value, places) for name, value in zip(shape.tags, tags.values(), strict=True)}
    return Form(shape, tuple(_fixed(line, of_names)), time, tags_at, counts_at)


def _fixed(line: bytes, places: Sequence[tuple[int, int]]) -> list[tuple[Place, int]]:
    return [(_between(*place), int(line[slice(*place)])) for place in places]


def _between(first: int, end: int) -> Place:
    return Place(first, end - first)


def _tag(value: str, places: Sequence[tuple[int, int]]) -> Place | str:
    marks = list(MARKED.finditer(value))
    if not marks:
        return value
    first = places[int(marks[0][0]) - MARK][0] - marks[0].start()
    return _between(first, places[int(marks[-1][0]) - MARK][1] + len(value) - marks[-1].end())


class PointForms:
    """Cuts points out of lines whose forms it knows, and learns forms."""

    def __init__(self, measurements: Collection[str] | None, columns: Columns) -> None:
        self._measurements, self._columns = measurements, columns
        self._digits, self._forms = Digits(), list[Form]()
        self._known = pl.DataFrame(schema={"hash": pl.UInt64, "form": pl.Int64})
        self._shapes: dict[Shape | None, int] = {None: 0}
        self._shape_of = np.zeros(0, np.int64)

    def read(self, block: Block) -> tuple[list[Cut], Flags]:
        """Return points, and which lines are to be read by themselves."""
        content = block.content if block.content.endswith(b"\n") else block.content + b"\n"
        ends, _ = self._digits.take(content)
        edges = np.concatenate([np.zeros(1, np.int64), ends + 1])
        form = self._forms_of(content, edges)
        starts = edges[:-1]
        for fixed in zip_longest(*(each.fixed for each in self._forms), fillvalue=(_NONE, 0)):
            form[
                self._numbers([place for place, _ in fixed], form, starts) != self._of([v for _, v in fixed], form)
            ] = -1
        at_us = self._instants(form, starts)
        form[at_us < 0] = -1
        shape = np.where(form < 0, -1, self._of(self._shape_of, form))
        raw = parts(np.frombuffer(content, np.uint8), edges)
        cuts = []
        for known, number in self._shapes.items():
            own = np.flatnonzero(shape == number)
            if known is not None and len(own):
                times = pl.DataFrame({"line": own + block.first_line, "at_us": at_us[own]})
                lines = raw if len(own) == len(raw) else raw.gather(own)
                cuts.append(self._cut(known, form[own], starts[own], times, lines))
        return cuts, form < 0

    def _forms_of(self, content: bytes, edges: Ints) -> Ints:
        """Return the number of each line's form, -1 where it is to be read by itself."""
        told = parts(self._digits.alike, edges).hash().to_frame("hash")
        found = told.join(self._known, on="hash", how="left", maintain_order="left")["form"]
        if found.has_nulls():
            places = found.is_null().arg_true()
            seen = told[places].with_columns(place=places).group_by("hash", maintain_order=True)
            counted = seen.agg(pl.col("place").first(), pl.len()).sort("len", descending=True, maintain_order=True)
            most = min(len(edges) // _LINES_PER_FORM + _ENOUGH_FORMS, _MOST_FORMS - self._known.height)
            if not (worth := counted.head(most)).is_empty():
                lines = [content[edges[place] : edges[place + 1] - 1] for place in worth["place"].to_list()]
                self._learn(worth["hash"], lines)
                found = told.join(self._known, on="hash", how="left", maintain_order="left")["form"]
        return found.fill_null(-1).to_numpy(writable=True)

    def _learn(self, hashes: pl.Series, lines: Sequence[bytes]) -> None:
        numbers = []
        for line in lines:
            form = form_of(line, self._measurements, self._columns)
            numbers.append(-1 if form is None else len(self._forms))
            if form is not None:
                self._shapes.setdefault(form.shape, len(self._shapes))
                self._forms.append(form)
        known = pl.DataFrame({"hash": hashes, "form": pl.Series(numbers, dtype=pl.Int64)})
        self._known = pl.concat([self._known, known])
        self._shape_of = np.array([self._shapes[form.shape] for form in self._forms], np.int64)

    def _of(self, of_forms: Sequence[int] | Ints, form: Ints) -> Ints:
        """Return what a table says of lines by their forms, 0 of others."""
        return np.append(np.asarray(of_forms, np.int64), 0).take(form)

    def _numbers(self, places: Sequence[Place], form: Ints, starts: Ints) -> Ints:
        """Return the numbers in a place of lines, 0 where there is none."""
        ends, lengths = ([sum(place) for place in places], [place.length for place in places])
        return self._digits.numbers(starts + self._of(ends, form), self._of(lengths, form).astype(np.uint8))

    def _instants(self, form: Ints, starts: Ints) -> Ints:
        """Return the times [us since 1970] of lines, -1 where it is none."""
        places = [each.time for each in self._forms]
        number, digits = self._numbers(places, form, starts), self._of([place.length for place in places], form)
        factor = self._of([UNITS[place.length] for place in places], form)
        # a time does not begin with a zero, nor has it more than 63 bits
        least = np.array([0, *(10**power for power in range(19))], np.int64).take(digits)
        found = np.where(factor > 0, number * factor, number // 1_000)
        return np.where(number >= least, found, -1)

    def _cut(self, shape: Shape, form: Ints, starts: Ints, times: pl.DataFrame, raw: pl.Series) -> Cut:
        """Return the points of a shape; raw: the lines."""
        used = np.unique(form)
        counted = next(self._forms[number].counts for number in used)
        tags = {name: self._tag(name, form, used, raw) for name in shape.tags}
        counts = {
            name: pl.Series(self._numbers([each.counts.get(name, _NONE) for each in self._forms], form, starts))
            for name in counted
        }
        first = self._said_count(form[:_FIRST_LINES], raw[:_FIRST_LINES])
        return Cut(shape, first if first >= _ENOUGH_SAID else self._said_count(form, raw), times, tags, counts)

    def _tag(self, name: str, form: Ints, used: Ints, raw: pl.Series) -> pl.Series:
        told = [each.tags.get(name, "") for each in self._forms]
        texts = pl.Series([value if isinstance(value, str) else None for value in told], dtype=pl.String)
        places = np.array([_NONE if isinstance(value, str) else value for value in told], np.int64)
        if not places[used].any():
            return texts.gather(form)
        cut = pl.DataFrame({"raw": raw, "first": places[:, 0].take(form), "length": places[:, 1].take(form)}).select(
            pl.col("raw").bin.slice("first", "length").cast(pl.String), "length"
        )
        return cut["raw"].zip_with(cut["length"] > 0, texts.gather(form))

    def _said_count(self, form: Ints, raw: pl.Series) -> int:
        """Return how many lines say something else than those before, times apart."""
        length = self._of([each.time.start for each in self._forms], form)
        told = pl.DataFrame({"raw": raw, "length": length})
        return int(told.select(pl.col("raw").bin.slice(0, "length").n_unique()).item())
