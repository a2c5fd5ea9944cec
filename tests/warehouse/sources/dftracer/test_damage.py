"""Test damaged DFTracer traces: no damage raises an unexpected error or passes as sound with wrong data."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from iosig.warehouse.errors import InputRefused
from tests.dftracer_traces import CALLS, FORMS, Form, Process, write_call
from tests.naive.sources.dftracer.totals import Damaged, totals
from tests.warehouse.sources.dftracer_landing import landed, moved

#: number of each of the eight kinds of damage: of real and packed traces, and of each form
_EACH, _EACH_FORM = 40, 14
_LINES = 400


def _truncated(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _flipped(content: bytes, rng: random.Random) -> bytes:
    flipped = bytearray(content)
    for _ in range(rng.choice((1, 1, 3))):
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def _doubled(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    return b"\n".join([*lines[:place], lines[place], *lines[rng.choice((place, max(place - 3, 0))) :]])


def _with_value(content: bytes, rng: random.Random, values: tuple[str, ...]) -> bytes:
    """Replace a value of a line, at the top level or in `args`."""
    lines = content.split(b"\n")
    place = rng.choice([number for number, line in enumerate(lines) if line.strip().startswith(b"{")])
    event = json.loads(lines[place])
    within = event["args"] if rng.random() < 0.5 and event.get("args") else event
    within[rng.choice(list(within))] = "\x01"
    lines[place] = json.dumps(event).replace('"\\u0001"', rng.choice(values)).encode()
    return b"\n".join(lines)


def _swapped(content: bytes, rng: random.Random) -> bytes:
    return _with_value(content, rng, ("true", "null", "1.5", '"text"', "[1]", '{"a": 1}', '"0x10"', "1e3", '" 7 "'))


def _huge(content: bytes, rng: random.Random) -> bytes:
    digits = "9" * 400
    return _with_value(content, rng, (str(1 << 63), str(1 << 62), "-" + str(1 << 63), digits, "1e300", f'"{digits}"'))


def _deep(content: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((500, 5_000, 100_000))
    return _with_value(content, rng, ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))


def _with_bytes(content: bytes, rng: random.Random, given: tuple[bytes, ...]) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + rng.choice(given) + content[place:]


def _with_nul(content: bytes, rng: random.Random) -> bytes:
    return _with_bytes(content, rng, (b"\x00", b"\\u0000", b"\x00\x00\x00\n"))


def _no_text(content: bytes, rng: random.Random) -> bytes:
    return _with_bytes(content, rng, (b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\\ud800"))


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_truncated, _flipped, _doubled, _swapped),
    *(_huge, _deep, _with_nul, _no_text),
)


def _check(path: Path) -> str:
    """Land a damaged file: it is refused, reports a fault, or equals an independent count."""
    try:
        found = landed(path)
    except InputRefused:
        return "refused"
    outcomes = set(found["trace_modules"]["outcome"]) if "trace_modules" in found else set()
    if "rejects" in found:
        assert found["rejects"]["reason"].null_count() == 0
        assert "sound" not in outcomes
        return "rejects"
    if not outcomes:
        assert set(found) == {"traces"}
        return "no call"
    if outcomes != {"sound"}:
        assert found["trace_modules"]["reason"].null_count() == 0
        return "partial"
    try:
        naive = totals([path])
    except Damaged as damage:
        pytest.fail(f"It passes for sound, and is not: {damage.__cause__ or damage}.")
    assert moved(found) == {key: float(volume) for key, volume in naive.moved.items()}
    return "sound"


def _made(form: Form) -> bytes:
    calls = [*CALLS, *(write_call(200 + 20 * at, at) for at in range(40))]
    return "\n".join(Process(7, form, rank=3).lines_of(calls)).encode() + b"\n"


def _of_cm1(shared_data: Path) -> bytes:
    lines = gzip.decompress(next((shared_data / "dftracer" / "cm1").glob("*3537781*")).read_bytes()).split(b"\n")
    naming = [line for line in lines[_LINES:-_LINES] if b'"FH"' in line]
    kept = [*lines[1:_LINES], *naming, *lines[-_LINES:-3]]
    # the tracer counts all lines, so set the count to the number of kept lines
    end = json.loads(lines[-3])
    end["args"]["num_events"] = len(kept)
    return b"\n".join([b"[", *kept, json.dumps(end).encode(), b"]", b""])


def _damage(tmp_path: Path, content: bytes, kind: Callable[[bytes, random.Random], bytes], count: int) -> set[str]:
    rng, path = random.Random(kind.__name__), tmp_path / "t.pfw"
    path.write_bytes(content)
    assert _check(path) == "sound"
    told = set()
    for _ in range(count):
        path.write_bytes(kind(content, rng))
        told.add(_check(path))
    return told


def test_damaged_trace_is_never_wrongly_sound(tmp_path: Path) -> None:
    assert _damage(tmp_path, _made("new"), _swapped, 3) != {"sound"}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_trace_of_any_form_is_never_wrongly_sound(
    tmp_path: Path, form: Form, kind: Callable[[bytes, random.Random], bytes]
) -> None:
    assert _damage(tmp_path, _made(form), kind, _EACH_FORM) != {"sound"} or kind is _doubled


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_real_trace_is_never_wrongly_sound(
    tmp_path: Path, shared_data: Path, kind: Callable[[bytes, random.Random], bytes]
) -> None:
    assert _damage(tmp_path, _of_cm1(shared_data), kind, _EACH) != {"sound"} or kind is _doubled


@pytest.mark.long
def test_damaged_packed_trace_is_refused_or_partial(tmp_path: Path) -> None:
    packed, rng = gzip.compress(_made("new"), mtime=0), random.Random("packed")
    path = tmp_path / "t.pfw.gz"
    told = set()
    for _ in range(8 * _EACH):
        path.write_bytes(rng.choice((_flipped, _truncated))(packed, rng))
        told.add(_check(path))
    assert {"refused", "partial"} <= told
