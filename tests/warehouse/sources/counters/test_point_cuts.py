"""Points that are cut out of a block: they are what they are when they are read as text."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from iosig.warehouse.contracts import frames
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.counters import influx_line
from iosig.warehouse.sources.counters.influx_line import SOURCE
from iosig.warehouse.sources.counters.line_protocol import Shape
from iosig.warehouse.sources.counters.point_cuts import Cut, cut
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.rows.text_blocks import Block
from tests.budget import one_in
from tests.warehouse.sources.counter_reading import mutated

T = 1_700_000_000


def cuts_of(*lines: str, of: tuple[str, ...] | None = ("measurement",)) -> tuple[list[Cut], list[int]]:
    """Return points, and the numbers of lines that are left."""
    found, is_other = cut(Block(1, len(lines), ("\n".join(lines) + "\n").encode()), of, lambda _: True)
    return found, [number for number, other in enumerate(is_other.tolist(), 1) if other]


def test_heads_counts_and_times_are_cut_out_of_lines() -> None:
    lines = [f"measurement,a=x{n % 3},b=y f={7**n}i,g=0{n}u {T + n}" for n in range(20)]
    (found,), others = cuts_of(*lines, f"measurement,a=x1,b=y f=7i,g=01u {T}000", lines[5])
    assert (found.shape, others) == (Shape("measurement", ("a", "b"), ("f", "g")), [])
    assert found.counts.rows() == [(7**n, n) for n in range(20)]
    assert found.heads.tag("a").gather(found.places).to_list() == [f"x{n % 3}" for n in range(20)]
    assert (found.said[-2:].tolist(), found.times["line"].to_list()) == ([1, 5], list(range(1, 23)))
    assert found.times["at_us"][-2:].to_list() == [T * 1_000_000, (T + 5) * 1_000_000]


def test_each_shape_is_cut_by_itself() -> None:
    found, others = cuts_of(
        *(f"measurement,ab=x{n} f={n}i {T}" for n in range(3)),
        *(f"measurement,ab=x{n} g={n}i,f=1i {T}" for n in range(3)),
        *(f"measurement,ab=x{n},c=1 f={n}i {T}" for n in range(3)),
        f"others,abc=x f=1i {T}",
    )
    assert others == [10]
    assert [each.shape.fields for each in found] == [("f",), ("g", "f"), ("f",)]
    assert [each.times["line"].to_list() for each in found] == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "measurement,ab=1 f=1.5 {T}",
            "measurement,ab=1 f=-1i {T}",
            "measurement,ab=1 f=i {T}",
            "measurement,ab=1 f={n}i {T}",
        ),
        *(
            "measurement,ab=1 f=1iu {T}",
            'measurement,ab=1 f="1" {T}',
            "measurement,ab=1 f=1i,f=2i {T}",
            "measurement,ab=1 ab=1i {T}",
        ),
        *(
            "measurement,ab=1 f=1i",
            "measurement,ab=1 f=1i 0{T}",
            "measurement,ab=1 f=1i 9{T}999999999",
            "measurement,ab=1 f=1i {T}0",
        ),
        *(
            "measurement,ab=1  f=1i {T}",
            "measurement,ab=1 f=1i {T} ",
            "measurement,ab=1\tf=1i {T}",
            "measurement,ab=1 f=1i {T}\r",
        ),
        *(
            "measurement,ab=1,,c=2 f=1i {T}",
            "measurement,ab f=1i {T}",
            "#measurement,ab=1 f=1i {T}",
            "m,a=1 f=1i {T}",
            "",
        ),
    ],
)
def test_what_is_no_plain_point_is_left(line: str) -> None:
    told = line.format(T=T, n="1" * 19)
    for of in (("measurement", "m", "#measurement"), None) if not line.startswith("#") else (None,):
        found, others = cuts_of(*(f"measurement,ab={n} f={n}i {T}" for n in range(3)), told, of=of)
        assert (len(found), others) == (1, [4])


def test_what_most_lines_say_is_not_taken_for_granted() -> None:
    """Of 200 lines each seventh is looked at: what these say alike others say, too, or are read by themselves."""
    said = {3: "0i,g=7i,h=9u", 78: "00,g=7i,h=9u", 111: "0i,g=77i,h=9i", 199: "5,g=7i,h=9u"}
    wrong = {40: "0i,g=7x,h=9u", 50: "0i,g=7i", 60: "0i,g=7i,h=9u,k=1", 70: "i,g=7i,h=9u"}
    lines = [f"measurement,a=x f={({**said, **wrong}).get(n, '0i,g=7i,h=9u')},z={n}i {T}" for n in range(200)]
    found, others = cuts_of(*lines)
    whole = found[0]
    assert others == [n + 1 for n in (40, 70)]
    assert [each.shape.fields for each in found[1:]] == [("f", "g", "z"), ("f", "g", "h", "k", "z")]
    expected = [n for n in range(200) if n not in wrong]
    assert whole.counts["z"].to_list() == expected
    assert whole.counts.filter(whole.counts["z"].is_in([3, 78, 111, 199])).rows() == [
        (0, 7, 9, 3), (0, 7, 9, 78), (0, 77, 9, 111), (5, 7, 9, 199)
    ]  # fmt: skip


# ---- files

_JOBS = ("1", "22", "cp.0", r"a\ b", '"q:1"')


def _point(dice: random.Random, second: int) -> str:
    """Return a point of a job, of a target, of clients, of BeeGFS, or of something else."""
    host, target = f"oss{dice.randrange(3)}", f"fs1-OST000{dice.choice('0a9')}"
    kind, value = dice.randrange(12), dice.randrange(1 << dice.randrange(1, 50))
    if kind < 7:
        own = f"lustre2,host={host},jobid={dice.choice(_JOBS)},name={target}"
        told = f"jobstats_read_bytes={value}i,jobstats_ost_sync={dice.randrange(20)}i,jobstats_punch=0i"
    elif kind < 9:
        own, told = f"lustre2,host={host},name={target}", f"read_bytes={value}i,write_bytes={value * 3}i"
    elif kind == 9:
        own, told = f"lustre2,brw_section=rpc_hist,host={host},name={target}", f"read_percentage={value}i"
    elif kind == 10:
        own, told = f"highResStorage,nodeID={host}", f"diskWriteBytes={value},diskReadBytes=7"
    else:
        own, told = f"cpu,host={host},cpu=cpu{dice.randrange(9)}", f"usage_idle={value}.5"
    return f"{own} {told} {T + second}000000000"


def _made(dice: random.Random) -> bytes:
    lines = [_point(dice, second // 40 * 10) for second in range(160)]
    return ("\n".join(lines + dice.choices(lines, k=20)) + dice.choice(("\n", ""))).encode()


def _mutated(content: bytes, dice: random.Random) -> bytes:
    """Change digits, names and what splits, of some lines."""
    changed = bytearray(content)
    for _ in range(dice.choice((1, 3, 12))):
        place = dice.randrange(len(changed))
        changed[place : place + 1] = dice.choice(
            (b"0", b"9", b"=", b",", b" ", b"i", b"\\", b'"', b"", b"-", b".5", b"x", b"\n", b"\r\n", b"\xff")
        )
    return bytes(changed)


def _told(path: Path, reading: Reading) -> dict[str, pl.DataFrame] | str:
    found: dict[str, list[pl.DataFrame]] = {}
    try:
        for batch in SOURCE.read(path, reading):
            frames.require(batch.rows, batch.table)
            found.setdefault(batch.table.name, []).append(batch.rows)
    except InputRefused as refused:
        return f"{refused.reason} {refused.remedy}"
    # polls and samples come of different lines, and their order among each other says nothing
    return {name: pl.concat(parts) for name, parts in found.items()}


def _require_alike(path: Path, reading: Reading, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Hold what a file holds against that of it with all lines read as text; return whether it is anything."""
    ours = _told(path, reading)
    with monkeypatch.context() as patched:
        patched.setattr(influx_line, "cut", lambda block, *_: ([], np.ones(block.line_count, np.bool_)))
        naive = _told(path, reading)
    if isinstance(ours, str) or isinstance(naive, str):
        assert ours == naive
        return False
    assert ours.keys() == naive.keys()
    for name, rows in ours.items():
        assert rows.equals(naive[name]), name
    return "counter_samples" in ours


@pytest.mark.parametrize("seed", one_in(30, range(30), 99))
def test_files_are_read_as_lines_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Three of four are damaged, and blocks are small; there are twelve of a seed where nobody waits."""
    dice, path, read_count = random.Random(seed), tmp_path / "points.influx", 0
    count = 12 if seed % 30 else 2
    own = Reading(columns={"total_read_bytes": "usage_idle", "target": "host"}) if seed % 5 == 4 else Reading()
    monkeypatch.setattr(influx_line, "BLOCK_BYTES", dice.choice((4_000, 1 << 20)))
    for number in range(count):
        content = _made(dice)
        if number % 4:
            content = _mutated(content, dice) if dice.random() < 0.7 else mutated(content, dice.randrange(10**6))
        path.write_bytes(content)
        read_count += _require_alike(path, own, monkeypatch)
    assert read_count >= count // 2
