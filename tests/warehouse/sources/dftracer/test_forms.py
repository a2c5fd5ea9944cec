"""Lines by their forms: all that is read at once is as it is line by line, whatever the lines are."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.dftracer.forms import Forms, form_of
from iosig.warehouse.sources.dftracer.lines import CELLS, INPUT, NUMBERS, OF_KIND, SIZES, Lines, careful
from iosig.warehouse.sources.rows.delimited import LINE, RAW
from iosig.warehouse.sources.rows.text_blocks import Block
from tests.dftracer_traces import CALLS, FORMS, Form, Process, write_call
from tests.warehouse.sources.dftracer.test_damage import KINDS
from tests.warehouse.sources.dftracer_landing import landed


def of(*lines: str | bytes) -> Lines:
    content = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    return Lines.of([(0, Block(1, len(lines), content))])


def told(forms: Forms, lines: Lines) -> tuple[pl.DataFrame, list[int]]:
    """Return cells as those that are read line by line, and the numbers of lines of no form."""
    cells, is_other = forms.read(lines)
    kinds = pl.DataFrame({name: forms._table.texts(name) for name in OF_KIND})[cells["kind"]]
    texts = cells.drop("kind").hstack(kinds).select(CELLS.names()).with_columns(pl.exclude(LINE).cast(pl.String))
    return texts, lines.numbers[is_other].tolist()


def require_alike(lines: Lines) -> int:
    """Hold lines that are read by their forms against themselves one by one; return how many there are."""
    forms = Forms()
    expected = careful(lines)
    for _ in range(2):
        found, others = told(forms, lines)
        assert set(expected.refused["line"]) <= set(others)
        same = expected.rows.filter(~pl.col(LINE).is_in(others)).drop(RAW, INPUT)
        assert found.height == same.height
        for name in CELLS:
            assert _numbers(found[name]).equals(_numbers(same[name]), null_equal=True), name
    return found.height


def _numbers(cells: pl.Series) -> pl.Series:
    """Return cells as they are compared: `007` and `7` are one number where a number is meant."""
    return cells.cast(pl.Int64, strict=False) if cells.name in (*NUMBERS, *SIZES) else cells


def event(name: str = '"read"', ts: str = "1700000000000001", args: str = '"ret":5') -> str:
    return f'{{"id":17,"name":{name},"cat":"POSIX","pid":7,"tid":7,"ts":{ts},"dur":3,"ph":"X","args":{{{args}}}}}'


def test_digits_are_cut_out_of_lines_of_one_form() -> None:
    lines = [event('"pread64"', args=f'"fhash":{n},"ret":{n * 7},"offset":-{n},"fname":"/a/{n}.x"') for n in range(9)]
    found, others = told(Forms(), of(*lines))
    assert others == []
    assert found["ret"].to_list() == [str(7 * n) for n in range(9)]
    assert found["offset"].cast(pl.Int64).to_list() == [-n for n in range(9)]
    assert found["path"].to_list() == [f"/a/{n}.x" for n in range(9)]
    assert found["name"].unique().to_list() == ["pread64"]


@pytest.mark.parametrize("digits", [1, 7, 8, 9, 15, 16, 17, 18])
def test_numbers_of_all_lengths(digits: int) -> None:
    values = np.random.default_rng(digits).integers(10 ** (digits - 1), 10**digits, 20).tolist()
    found, others = told(Forms(), of(*(event(args=f'"ret":{value}') for value in values)))
    assert (found["ret"].cast(pl.Int64).to_list(), others) == (values, [])


@pytest.mark.parametrize(
    "line",
    [
        event(args='"fname":"a\\u0041"'),
        event(ts="1.5"),
        event(ts="true"),
        event(args='"fhash":-0'),
        event(args='"a1":1,"ret":2'),
        event(args=f'"ret":{"1" * 19}'),
        event(args='"ret":[1]'),
        event('"x"', args='"name":1.5'),
        event("17"),
        event(args='"ret":NaN'),
        event()[:-1],
        '{"a":' * 2_000 + "1" + "}" * 2_000,
        "[1]",
        "",
    ],
)
def test_what_could_be_read_otherwise_is_of_no_form(line: str) -> None:
    assert form_of(line.encode()) is None


def test_a_number_that_begins_with_a_zero_is_none() -> None:
    good = event(args='"ret":105,"p":-10,"fname":"/a/007","x":1.05e-07')
    bad = [good.replace("105", "015"), good.replace("-10", "-01"), good.replace('"id":17', '"id":07')]
    text = good.replace("007", "123")
    _, others = told(Forms(), of(*[good] * 9, *bad, text))
    assert others == [10, 11, 12]
    assert require_alike(of(*[good] * 9, *bad, text)) == 10


def test_a_line_that_is_no_text_is_of_no_form() -> None:
    assert require_alike(of(*[event()] * 9, event().encode().replace(b"read", b"r\xffad"), b"\x00")) == 9


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


def _require_lines_alike(events: list[tuple[dict[str, Any], dict[str, Any]]], seed: int, *, is_ascii: bool) -> None:
    """Hold lines of some forms against themselves, each with other digits many times, some of them damaged."""
    rng, lines = random.Random(seed), []
    for own, args in events:
        text = json.dumps(own | {"args": args}, ensure_ascii=is_ascii, separators=(",", ":"))
        for _ in range(6):
            cells = [str(rng.randrange(10)) if sign.isdigit() else sign for sign in text]
            if rng.random() < 0.1:
                cells[rng.randrange(len(cells))] = rng.choice('0"\\{}[]:,-.e \t')
            lines.append("".join(cells))
    rng.shuffle(lines)
    require_alike(of(*lines))


@settings(max_examples=20, deadline=None)
@given(_EVENTS, st.integers(0, 2**32), st.booleans())
def test_any_line_is_read_as_by_itself(
    events: list[tuple[dict[str, Any], dict[str, Any]]], seed: int, is_ascii: bool
) -> None:
    _require_lines_alike(events, seed, is_ascii=is_ascii)


@pytest.mark.long
@settings(max_examples=2_000, deadline=None)
@given(_EVENTS, st.integers(0, 2**32), st.booleans())
def test_many_lines_are(events: list[tuple[dict[str, Any], dict[str, Any]]], seed: int, is_ascii: bool) -> None:
    _require_lines_alike(events, seed, is_ascii=is_ascii)


# ---- files


def _told_of(path: Path) -> dict[str, pl.DataFrame] | str:
    try:
        return landed(path)
    except InputRefused as refused:
        return f"{refused.reason} {refused.remedy}"


def _require_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Hold a file's rows against those that come of it line by line; return whether it has any."""
    ours = _told_of(path)
    with monkeypatch.context() as patched:
        patched.setattr("iosig.warehouse.sources.dftracer.forms._MOST_FORMS", 0)
        patched.setattr("iosig.warehouse.sources.dftracer.files.Reader.quick", lambda *_: None)
        naive = _told_of(path)
    if isinstance(ours, str) or isinstance(naive, str):
        assert ours == naive
        return False
    assert ours.keys() == naive.keys()
    for name, rows in ours.items():
        assert rows.equals(naive[name]), name
    return True


def _made(form: Form, rng: random.Random) -> bytes:
    """Return a trace of many calls of few forms, so that most are read by them."""
    written = [
        write_call(400 + 20 * at, rng.randrange(1 << rng.randrange(40)), path=f"/a/{at % 9:02}") for at in range(60)
    ]
    return "\n".join(Process(7, form, rank=3).lines_of([*CALLS, *written])).encode() + b"\n"


def _mutated(content: bytes, rng: random.Random) -> bytes:
    """Change some digits, or signs between them, of a trace."""
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
def test_many_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
    _hold(tmp_path, monkeypatch, form, 200)


@pytest.mark.long
def test_a_real_trace_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_data: Path) -> None:
    paths = sorted((shared_data / "dftracer" / "cm1").glob("*"))[:8]
    for path in (*paths, shared_data / "dftracer" / "test-trace.pfw.gz"):
        assert _require_alike(path, monkeypatch)
