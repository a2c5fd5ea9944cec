"""Points by their forms: what is cut out of lines is as what they are when they are split."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from tests.budget import one_in
from tests.warehouse.sources.counter_reading import mutated
from warehouse.contracts import frames
from warehouse.errors import InputRefused
from warehouse.sources.counters import influx_line, point_forms
from warehouse.sources.counters.influx_line import SOURCE
from warehouse.sources.counters.line_protocol import Shape
from warehouse.sources.counters.point_forms import Cut, PointForms, form_of
from warehouse.sources.protocol import Reading
from warehouse.sources.rows.text_blocks import Block

T = 1_700_000_000


def cut(*lines: str) -> tuple[list[Cut], list[int]]:
    """Return points of `m`, of which `f` counts, and the numbers of lines that are to be read by themselves."""
    content = "\n".join(lines).encode()
    forms = PointForms(("m",), lambda shape: ("f",) if "f" in shape.fields else ())
    cuts, is_other = forms.read(Block(1, len(lines), content))
    return cuts, [number for number, other in enumerate(is_other.tolist(), 1) if other]


def test_tags_counts_and_times_are_cut_out_of_lines_of_one_form() -> None:
    (found,), others = cut(
        *(f"m,a=x{n},b=y f={7 * n}i,g=0.5 {T + n}" for n in range(5)), f"m,a=z,b=y f=3,g=t {T}000000"
    )
    assert (others, found.shape) == ([], Shape("m", ("a", "b"), ("f", "g")))
    assert found.tag("a").to_list() == ["x0", "x1", "x2", "x3", "x4", "z"]
    assert (found.tag("b").unique().to_list(), found.tag("c").null_count()) == (["y"], 6)
    assert found.counts(["f"])["f"].to_list() == [0, 7, 14, 21, 28, 3]
    assert found.times["at_us"].to_list() == [*((T + n) * 1_000_000 for n in range(5)), T * 1_000_000]
    assert found.said_count == 6


def test_digits_of_names_are_those_of_the_names() -> None:
    lines = [
        f"m,a1=x f=1i {T}",
        f"m,a2=x f=1i {T}",
        f"m2,a1=x f=1i {T}",
        f"m,a1=y1 f=1i,g2=1 {T}",
        f"m,a1=y1 f=1i,g3=1 {T}",
    ]
    cuts, others = cut(*lines)
    assert others == [2, 5]
    assert [(found.shape.tags, found.times["line"].to_list()) for found in cuts] == [(("a1",), [1]), (("a1",), [4])]


@pytest.mark.parametrize(
    "point",
    [
        *(
            "m f=1.0",
            "m f=-1i",
            "m f=1u",
            f"m f={'1' * 19}i",
            "m f=1i,f=2i",
            "m,a=é f=1i",
            'm,a="x" f=1i',
            "m,a=x\\ y f=1i",
        ),
        *("m,a= f=1i,,g=1i", "# m f=1i", "", "n f", "m f=1i 7"),
    ],
)
def test_what_could_be_read_otherwise_is_of_no_form(point: str) -> None:
    assert form_of(f"{point} {T}".encode(), ("m",), lambda _: ("f",)) is None
    assert form_of(b"m f=1i", ("m",), lambda _: ("f",)) is None


def test_a_time_that_begins_with_a_zero_is_none() -> None:
    assert cut(*[f"m f=1i {T}"] * 3, f"m f=1i 0{T % 10**9:09}", f"m f=1i {T}{'0' * 9}", f"m f=1i 9{'9' * 18}")[1] == [
        4,
        6,
    ]


# ---- files


def _point(dice: random.Random, second: int) -> str:
    """Return a point of a job, of a target, of clients, of BeeGFS, or of something else."""
    host, target = f"oss{dice.randrange(3)}", f"fs1-OST000{dice.choice('0a9')}"
    kind, value = dice.randrange(12), dice.randrange(1 << dice.randrange(1, 50))
    if kind < 7:
        own = f"lustre2,host={host},jobid={dice.randrange(1, 200)},name={target}"
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
    return "".join(_point(dice, second // 40 * 10) + "\n" for second in range(160)).encode()


_PUT = (b"0", b"9", b"=", b",", b" ", b"i", b"\\", b'"', b"", b"-", b".5", b"x", b"\n")


def _mutated(content: bytes, dice: random.Random) -> bytes:
    """Change digits, names and what splits, of some lines."""
    changed = bytearray(content)
    for _ in range(dice.choice((1, 3, 12))):
        place = dice.randrange(len(changed))
        changed[place : place + 1] = dice.choice(
            (b"0", b"9", b"=", b",", b" ", b"i", b"\\", b'"', b"", b"-", b".5", b"x", b"\n")
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
    """Hold what a file holds against that of it with all lines split; return whether it is anything."""
    ours = _told(path, reading)
    with monkeypatch.context() as patched:
        patched.setattr(point_forms, "_MOST_FORMS", 0)
        naive = _told(path, reading)
    if isinstance(ours, str) or isinstance(naive, str):
        assert ours == naive
        return False
    assert ours.keys() == naive.keys()
    for name, rows in ours.items():
        assert rows.equals(naive[name]), name
    return "counter_samples" in ours


@pytest.mark.parametrize("seed", one_in(12, range(24), 99))
def test_files_are_read_as_lines_that_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Three of four are damaged, and blocks are small; there are twelve of a seed where nobody waits."""
    dice, path, read_count = random.Random(seed), tmp_path / "points.influx", 0
    count = 12 if seed % 12 else 3
    own = Reading(columns={"total_read_bytes": "usage_idle", "target": "host"}) if seed % 5 == 4 else Reading()
    monkeypatch.setattr(influx_line, "BLOCK_BYTES", dice.choice((4_000, 1 << 20)))
    for number in range(count):
        content = _made(dice)
        if number % 4:
            content = _mutated(content, dice) if dice.random() < 0.7 else mutated(content, dice.randrange(10**6))
        path.write_bytes(content)
        read_count += _require_alike(path, own, monkeypatch)
    assert read_count >= count // 2
