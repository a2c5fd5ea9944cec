"""Lines that differ in their digits only have one form, which is read once.

Of all other lines the digits are taken. A program makes the same calls again and again: of a million lines there are
some hundred forms. What form a line has is told by its bytes with all digits alike. The first line of each is read by
the parser of JSON that reads lines one by one, and says where in it the values stand; there they stand in all others,
too. A form whose values could be read otherwise than that parser does it is not taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from iosig.warehouse.sources.dftracer import calls
from iosig.warehouse.sources.dftracer.lines import (
    INPUT,
    NUMBERS,
    OF_ARGS,
    OF_KIND,
    OF_LINE,
    SIZES,
    Lines,
    cells_of,
    decoded,
    no_constant,
    single,
)
from iosig.warehouse.sources.files.limits import in_force
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.digits import MARK, MARKED, MOST_DIGITS, Digits, Ints, marked, parts

Flags = npt.NDArray[np.bool_]

#: to read a form takes as long as ten lines by themselves: so many of a block are learnt, and one more of so many lines
_ENOUGH_FORMS, _LINES_PER_FORM = 32, 100
#: forms that are remembered, and how long a line of one may be [bytes]
_MOST_FORMS, _MOST_BYTES = 10_000, 8192
_CELLS: Final = (*OF_LINE, *OF_ARGS)
_TEXTS: Final = tuple(name for name in _CELLS if name not in (*NUMBERS, *SIZES))


class Place(NamedTuple):
    """Where a value stands in a line: its bytes, of which a sign is none, and whether it is a whole number."""

    start: int
    length: int
    is_negative: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """What the lines of a form say alike, and where they say what they do not.

    numbers: where the first digits of whole numbers stand, of those that have several.
    """

    texts: dict[str, str]
    places: dict[str, Place]
    numbers: frozenset[int]


# ---- forms


def form_of(line: bytes) -> Form | None:
    """Return the form of a line without its end; None where it is refused, or its values could be read otherwise."""
    text = decoded(line)
    if text is None or b"\\" in line or len(line) > min(_MOST_BYTES, in_force().line_bytes):
        return None
    copy, runs = marked(line)
    try:
        cells_of(text)
        found = json.loads(
            (decoded(copy) or "").removesuffix(","), object_pairs_hook=_plain, parse_constant=no_constant
        )
    except (ValueError, RecursionError):
        return None
    args = found.get("args") or {}
    said = {name: found.get(name) for name in OF_LINE} | {ours: args.get(theirs) for ours, theirs in OF_ARGS.items()}
    texts: dict[str, str] = {}
    places: dict[str, Place] = {}
    for name, value in said.items():
        told = None if value is None else _number(value, runs) if name not in _TEXTS else _text(value, runs)
        if isinstance(told, Place):
            places[name] = told
        elif told is not None:
            texts[name] = told
        elif value is not None:
            return None
    return Form(texts, places, frozenset(_wholes(line, runs)))


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; names with digits could come twice in another line of the form."""
    if any(MARKED.search(name) for name, _ in pairs):
        raise ValueError("a name has digits")
    return single(pairs)


def _number(value: object, runs: Sequence[tuple[int, int]]) -> Place | None:
    """Return where a whole number stands; None where the value is none, or may be too large."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    match = re.fullmatch(r"(-?)(7[0-9]{6})", str(value))
    if match is None:
        return None
    first, end = runs[int(match[2]) - MARK]
    return Place(first, end - first, match[1] == "-") if end - first <= MOST_DIGITS else None


def _text(value: object, runs: Sequence[tuple[int, int]]) -> Place | str | None:
    """Return a text that has no digits, or where one with digits stands; None where it could be written otherwise."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        # 0 may be written as -0
        first, end = runs[value - MARK] if value > 0 else (0, 0)
        return Place(first, end - first, is_whole=True) if 0 < end - first <= MOST_DIGITS else None
    if not isinstance(value, str):
        return None
    marks = list(MARKED.finditer(value))
    if not marks:
        return value
    first = runs[int(marks[0][0]) - MARK][0] - len(value[: marks[0].start()].encode())
    end = runs[int(marks[-1][0]) - MARK][1] + len(value[marks[-1].end() :].encode())
    return Place(first, end - first)


def _wholes(line: bytes, runs: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield where whole numbers of several digits begin: in JSON, none of them begins with a zero."""
    for first, end in runs:
        before = line[:first].removesuffix(b"-")
        is_fraction = before[-1:] in (b".", b"e", b"E") or line[first - 1 : first] == b"+"
        if end - first > 1 and not is_fraction and line.count(b'"', 0, first) % 2 == 0:
            yield first


# ---- lines


class _Table:
    """The forms there are, by their numbers: of each cell its place in a line, or its text."""

    def __init__(self) -> None:
        self.forms: list[Form] = []
        #: of each cell (rows) and form (columns) what `Place` says; a value that is nowhere has no bytes
        self._places = np.zeros((4, len(_CELLS), 0), np.int64)
        self._texts: dict[str, pl.Series] = {name: pl.Series([], dtype=pl.String) for name in _TEXTS}
        self.is_open = np.zeros(0, np.bool_)
        #: a form's number and a place in its lines as one number, in order
        self.wholes = np.zeros(0, np.int64)

    def add(self, forms: Sequence[Form]) -> None:
        """Add forms."""
        none, before = Place(0, 0), len(self.forms)
        places = np.array([[form.places.get(name, none) for form in forms] for name in _CELLS], np.int64)
        self._places = np.concatenate([self._places, places.reshape(len(_CELLS), len(forms), 4).transpose(2, 0, 1)], 2)
        for name in _TEXTS:
            told = pl.Series([form.texts.get(name) for form in forms], dtype=pl.String)
            self._texts[name] = pl.concat([self._texts[name], told])
        are_open = [not form.places.keys().isdisjoint(OF_KIND) for form in forms]
        self.is_open = np.append(self.is_open, np.array(are_open, np.bool_))
        pairs = [(number << 16) + start for number, form in enumerate(forms, before) for start in form.numbers]
        self.wholes = np.sort(np.append(self.wholes, np.array(pairs, np.int64)))
        self.forms += forms

    def places(self, name: str) -> Sequence[Ints]:
        """Return where a cell starts in the lines of each form, its length, whether it is negative, and is whole."""
        return list(self._places[:, _CELLS.index(name)])

    def texts(self, name: str) -> pl.Series:
        """Return the text that a cell has in the lines of each form, NULL where it has none, or not always the same."""
        return self._texts[name]


class Forms:
    """Reads lines whose forms it knows, and learns forms."""

    def __init__(self) -> None:
        self._digits, self._table = Digits(), _Table()
        self._known = pl.DataFrame(schema={"hash": pl.UInt64, "form": pl.Int64})
        self._kinds = calls.meant(pl.DataFrame(schema=dict.fromkeys(OF_KIND, pl.String)))
        #: forms by that of which they are, and the texts of its kind
        self._variants: dict[tuple[int, tuple[str, ...]], int] = {}

    @property
    def kinds(self) -> pl.DataFrame:
        """Return what lines of each `kind` are."""
        if self._kinds.height < len(self._table.forms):
            self._kinds = calls.meant(pl.DataFrame({name: self._table.texts(name) for name in OF_KIND}))
        return self._kinds

    def read(self, lines: Lines) -> tuple[pl.DataFrame, Flags]:
        """Return the cells of lines of known forms, with `kind` for those of OF_KIND, and which lines are of none."""
        ends, zeros = self._digits.take(lines.content)
        edges = np.concatenate([np.zeros(1, np.int64), ends + 1])
        form = self._forms_of(lines, edges)
        if len(zeros):
            # no number in JSON begins with a zero
            place = np.searchsorted(ends, zeros)
            form[place[np.isin((form[place] << 16) + zeros - edges[place], self._table.wholes)]] = -1
        raw = parts(np.frombuffer(lines.content, np.uint8), edges)
        self._specify(form, edges, raw)
        is_other = form < 0
        own = np.flatnonzero(~is_other)
        cells = self._cells(form[own], edges[own], raw.gather(own) if is_other.any() else raw)
        kind = pl.Series("kind", form[own].astype(np.uint32))
        line, source = pl.Series(LINE, lines.numbers[own]), pl.Series(INPUT, lines.inputs[own])
        return pl.DataFrame([*cells, kind, line, source]), is_other

    def _forms_of(self, lines: Lines, edges: Ints) -> Ints:
        """Return the number of each line's form, -1 where it has none that can be taken."""
        told = parts(self._digits.alike, edges).hash().to_frame("hash")
        found = told.join(self._known, on="hash", how="left", maintain_order="left")["form"]
        if found.has_nulls() and self._learn(lines, edges, told.filter(found.is_null()), found.is_null().arg_true()):
            found = told.join(self._known, on="hash", how="left", maintain_order="left")["form"]
        return found.fill_null(-1).to_numpy(writable=True)

    def _learn(self, lines: Lines, edges: Ints, told: pl.DataFrame, places: pl.Series) -> bool:
        """Learn the forms that most lines have; return whether there are any."""
        seen = told.with_columns(place=places).group_by("hash", maintain_order=True)
        counted = seen.agg(pl.col("place").first(), pl.len()).sort("len", descending=True, maintain_order=True)
        most = min(len(lines.numbers) // _LINES_PER_FORM + _ENOUGH_FORMS, _MOST_FORMS - self._known.height)
        worth = counted.head(most)
        forms: list[Form] = []
        numbers = []
        for place in worth["place"].to_list():
            form = form_of(lines.content[edges[place] : edges[place + 1] - 1])
            numbers.append(-1 if form is None else len(self._table.forms) + len(forms))
            forms += [] if form is None else [form]
        self._table.add(forms)
        self._known = pl.concat([self._known, worth.select("hash", form=pl.Series(numbers, dtype=pl.Int64))])
        return bool(numbers)

    def _specify(self, form: Ints, edges: Ints, raw: pl.Series) -> None:
        """Put in place of forms whose kinds have digits, as `lseek64` has, those of one kind each."""
        if not self._table.is_open.any():
            return
        own = np.flatnonzero((form >= 0) & self._table.is_open.take(form, mode="wrap"))
        if not len(own):
            return
        lines, there = raw.gather(own), form[own]
        used = np.unique(there)
        varied = [name for name in OF_KIND if self._table.places(name)[1][used].any()]
        told = pl.DataFrame(
            {"form": there, **{name: self._texts(name, there, edges[own], used, lines) for name in varied}}
        )
        seen = told.unique(maintain_order=True)
        numbers = self._variants_of([(row.pop("form"), row) for row in seen.iter_rows(named=True)])
        known = seen.with_columns(number=pl.Series(numbers, dtype=pl.Int64))
        found = told.join(known, on=told.columns, how="left", nulls_equal=True, maintain_order="left")
        form[own] = found["number"].to_numpy()

    def _variants_of(self, told: Sequence[tuple[int, dict[str, str]]]) -> list[int]:
        """Return the numbers of forms of one kind each; -1 where there are too many."""
        new: list[Form] = []
        for form, texts in told:
            key = form, tuple(texts.values())
            if key not in self._variants and len(self._variants) < _MOST_FORMS:
                own = self._table.forms[form]
                places = {name: place for name, place in own.places.items() if name not in OF_KIND}
                self._variants[key] = len(self._table.forms) + len(new)
                new.append(Form(own.texts | texts, places, frozenset()))
        if new:
            self._table.add(new)
        return [self._variants.get((form, tuple(texts.values())), -1) for form, texts in told]

    def _cells(self, form: Ints, starts: Ints, raw: pl.Series) -> Iterator[pl.Series]:
        """Yield the cells of lines by their forms, but those of OF_KIND."""
        used = np.flatnonzero(np.bincount(form, minlength=len(self._table.forms)))
        for name in (name for name in _CELLS if name not in OF_KIND):
            if name in _TEXTS:
                yield self._texts(name, form, starts, used, raw).alias(name)
            else:
                yield self._numbers(name, form, starts, used).alias(name)

    def _numbers(self, name: str, form: Ints, starts: Ints, used: Ints) -> pl.Series:
        """Return a cell that is a whole number; used: the forms there are."""
        first, lengths, is_negative, _ = self._table.places(name)
        if not lengths[used].any():
            return pl.Series([None], dtype=pl.Int64).new_from_index(0, len(form))
        asked = np.zeros_like(lengths)
        asked[used] = lengths[used]
        values = self._digits.numbers(starts, form, first + lengths, asked)
        if is_negative[used].any():
            values *= (1 - 2 * is_negative).take(form)
        found = pl.Series(values)
        return found if lengths[used].all() else found.set(pl.Series(lengths.take(form) == 0), None)

    def _texts(self, name: str, form: Ints, starts: Ints, used: Ints, raw: pl.Series) -> pl.Series:
        """Return a cell that is a text; used: the forms there are."""
        texts, (first, lengths, _, is_whole) = self._table.texts(name), self._table.places(name)
        if not lengths[used].any():
            same = texts.gather(used).unique()
            return same.new_from_index(0, len(form)) if len(same) == 1 else texts.gather(form)
        has_texts = texts.gather(used).null_count() < len(used)
        if not has_texts and (is_whole | (lengths == 0))[used].all():
            # numbers, as hashes are, are read twice as fast as texts, and are often but one
            numbers = self._numbers(name, form, starts, used)
            is_one = not numbers.has_nulls() and bool((numbers == numbers[0]).all())
            return numbers[:1].cast(pl.String).new_from_index(0, len(form)) if is_one else numbers.cast(pl.String)
        told = pl.DataFrame({"raw": raw, "first": first.take(form), "length": lengths.take(form)})
        cut = told.select(pl.col("raw").bin.slice("first", "length").cast(pl.String)).to_series()
        return cut if lengths[used].all() else cut.zip_with(told["length"] > 0, texts.gather(form))
