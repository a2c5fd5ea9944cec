"""Test the reading of lines with DuckDB: results equal reading them individually, for any lines."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.dftracer import files
from iosig.warehouse.sources.dftracer.files import FileState, read_lines
from iosig.warehouse.sources.rows.delimited import LINE
from iosig.warehouse.sources.rows.engine import InputDatabase
from iosig.warehouse.sources.rows.text_blocks import Block
from tests.budget import examples
from tests.dftracer_traces import CALLS, FORMS, Form, Process, write_call
from tests.warehouse.sources.dftracer.test_damage import KINDS
from tests.warehouse.sources.dftracer_landing import landed


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InputDatabase]:
    with InputDatabase(tmp_path_factory.mktemp("scratch")) as opened:
        yield opened


def read(engine: InputDatabase, lines: list[bytes], *, is_careful: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return good and refused lines of two inputs, read with DuckDB where possible or individually."""
    middle = len(lines) // 2
    parts = [part for part in (lines[:middle], lines[middle:]) if part]
    pieces = [
        (FileState(str(number), number), Block(1, len(part), b"\n".join(part))) for number, part in enumerate(parts)
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "_MIN_DUCKDB_LINES", 1 << 40 if is_careful else 2)
        told = read_lines(pieces, engine)
    return told.rows.with_columns(pl.col("name", "called").cast(pl.String)), told.refused.sort(LINE, "raw")


def require_alike(engine: InputDatabase, *lines: str | bytes) -> int:
    """Assert that reading with DuckDB equals reading line by line; return the number of good lines."""
    content = [line if isinstance(line, bytes) else line.encode() for line in lines]
    (rows, refused), (naive_rows, naive_refused) = (
        read(engine, content, is_careful=is_careful) for is_careful in (False, True)
    )
    assert rows.equals(naive_rows)
    assert refused.equals(naive_refused)
    return rows.height


def event(name: str = '"read"', ts: str = "1700000000000001", args: str = '"ret":5') -> str:
    return f'{{"id":17,"name":{name},"cat":"POSIX","pid":7,"tid":7,"ts":{ts},"dur":3,"ph":"X","args":{{{args}}}}}'


@pytest.mark.parametrize("digits", [1, 7, 8, 9, 15, 16, 17, 18])
def test_numbers_of_any_length_are_read(engine: InputDatabase, digits: int) -> None:
    values = [10 ** (digits - 1), 10**digits - 1, 5 * 10 ** (digits - 1) + 3 % 10**digits]
    lines = [event('"open"', args=f'"ret":{value}').encode() for value in values]
    rows, refused = read(engine, lines, is_careful=False)
    assert (rows["ret"].to_list(), refused.height) == (values, 0)


@pytest.mark.parametrize(
    ("line", "is_good"),
    [
        (event(args='"ret":1,"fname":"a\\u0041"'), True),
        (event(args='"ret":1,"fname":"a\\u0000"'), False),
        (event(ts="1.5"), False),
        (event(ts="true"), False),
        (event(args='"ret":1,"fhash":-0'), True),
        (event(args='"a1":1,"ret":2'), True),
        (event(args=f'"ret":{"9" * 19}'), False),
        (event(args='"ret":[1]'), False),
        (event(args='"ret":015'), False),
        (event().replace('"id":17', '"id":07'), False),
        (event(args='"ret":1,"fname":"/a/007","x":1.05e-07'), True),
        (event('"x"', args='"name":1.5'), True),
        (event("17"), False),
        (event(args='"ret":NaN'), False),
        (event(args='"ret":1,"level":-Infinity'), False),
        (event(args='"ret":1,"ret":1'), False),
        (event()[:-1], False),
        (event() + ",", True),
        (event() + "\r", True),
        ("[1]", False),
        (event().encode().replace(b"read", b"r\xffad"), False),
        (b"\x00", False),
    ],
)
def test_odd_line_among_valid_lines_is_read_correctly(engine: InputDatabase, line: str | bytes, is_good: bool) -> None:
    assert require_alike(engine, *[event()] * 9, line, *[event()] * 4) == 13 + is_good


_VALUES = st.one_of(
    *(st.integers(-(10**9), 10**19), st.booleans(), st.none(), st.floats(allow_nan=True)),
    *(st.from_regex(r"-?[0-9]{1,20}", fullmatch=True), st.text('a1-/é "\\,:{}[]', max_size=9)),
    st.lists(st.integers(0, 99), max_size=2),
)
_ARGS = st.dictionaries(
    st.sampled_from(["ret", "hhash", "fhash", "fname", "hostname", "offset", "name", "value", "level", "a1"]), _VALUES
)
_OWN = st.fixed_dictionaries(
    {"id": st.integers(0, 9_999), "name": st.sampled_from(["read", "lseek64", "FH", "v2.x"]), "cat": st.just("POSIX")},
    optional=dict.fromkeys(("pid", "tid", "ts", "dur", "ph"), _VALUES),
)


_EVENTS = st.lists(st.tuples(_OWN, _ARGS), min_size=1, max_size=4)


def _require_lines_alike(
    engine: InputDatabase, events: list[tuple[dict[str, Any], dict[str, Any]]], seed: int, *, is_ascii: bool
) -> None:
    """Read variants of some events with random digits, some damaged, in both ways."""
    rng, lines = random.Random(seed), []
    for own, args in events:
        text = json.dumps(own | {"args": args}, ensure_ascii=is_ascii, separators=(",", ":"))
        for _ in range(6):
            cells = [str(rng.randrange(10)) if sign.isdigit() else sign for sign in text]
            if rng.random() < 0.1:
                cells[rng.randrange(len(cells))] = rng.choice('0"\\{}[]:,-.e \t')
            lines.append("".join(cells))
    rng.shuffle(lines)
    require_alike(engine, *lines)


@settings(max_examples=examples(20), deadline=None)
@given(events=_EVENTS, seed=st.integers(0, 2**32), is_ascii=st.booleans())
def test_any_line_is_read_as_if_alone(
    engine: InputDatabase, events: list[tuple[dict[str, Any], dict[str, Any]]], seed: int, is_ascii: bool
) -> None:
    _require_lines_alike(engine, events, seed, is_ascii=is_ascii)


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(events=_EVENTS, seed=st.integers(0, 2**32), is_ascii=st.booleans())
def test_many_lines_are_read_as_if_alone(
    engine: InputDatabase, events: list[tuple[dict[str, Any], dict[str, Any]]], seed: int, is_ascii: bool
) -> None:
    _require_lines_alike(engine, events, seed, is_ascii=is_ascii)


# ---- files


def _told_of(path: Path) -> dict[str, pl.DataFrame] | str:
    try:
        return landed(path)
    except InputRefused as refused:
        return f"{refused.reason} {refused.remedy}"


def _require_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compare a file's rows with the rows read line by line; return whether the file has any."""
    told = []
    for fewest in (2, 1 << 40):
        with monkeypatch.context() as patched:
            patched.setattr(files, "_MIN_DUCKDB_LINES", fewest)
            told.append(_told_of(path))
    ours, naive = told
    if isinstance(ours, str) or isinstance(naive, str):
        assert ours == naive
        return False
    assert ours.keys() == naive.keys()
    for name, rows in ours.items():
        assert rows.equals(naive[name]), name
    return True


def _made(form: Form, rng: random.Random) -> bytes:
    """Return a trace of many calls."""
    written = [
        write_call(400 + 20 * at, rng.randrange(1 << rng.randrange(40)), path=f"/a/{at % 9:02}") for at in range(60)
    ]
    return "\n".join(Process(7, form, rank=3).lines_of([*CALLS, *written])).encode() + b"\n"


def _mutated(content: bytes, rng: random.Random) -> bytes:
    """Change some digits or punctuation of a trace."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 2, 9))):
        place = rng.choice([place for place, sign in enumerate(changed) if chr(sign) in '0123456789":,-{}'])
        changed[place : place + 1] = rng.choice(
            (b"0", b"9", b"-", b'"', b".5", b"", b"e1", b"00", b"?", b"\n", b"\\u0031")
        )
    return bytes(changed)


def _hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form, count: int) -> None:
    rng, path = random.Random(form), tmp_path / "t.pfw"
    landed_count = 0
    for number in range(count):
        content = _made(form, rng)
        if number % 4:
            content = rng.choice((*KINDS, _mutated, _mutated, _mutated))(content, rng)
        path.write_bytes(content)
        landed_count += _require_alike(path, monkeypatch)
    assert landed_count > count // 2


def test_files_are_read_as_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _hold(tmp_path, monkeypatch, "new", 4)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_many_files_are_read_as_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
    _hold(tmp_path, monkeypatch, form, 60)


@pytest.mark.long
def test_real_trace_is_read_as_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_data: Path) -> None:
    paths = sorted((shared_data / "dftracer" / "cm1").glob("*"))[:8]
    for path in (*paths, shared_data / "dftracer" / "test-trace.pfw.gz"):
        assert _require_alike(path, monkeypatch)
