"""Test the effect of each kind of damage on each format, in a table with a small valid input of each format.

A cell is the expected outcome: the input is refused, its rows are read except for rejected rows, or all rows are read.
`changed` marks damage that no reader of the format can detect. `DAMAGE` lists damage to files, `CHANGES` damage to
values of a format.
"""

from __future__ import annotations

import copy
import gzip
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files import opening
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.protocol import list_sources
from iosig.warehouse.store.landing import find_source
from tests.budget import examples
from tests.warehouse.sources.malformed_values import CHANGES, Change
from tests.warehouse.sources.samples import (
    Expected,
    Sample,
    changed,
    lost,
    none,
    read,
    recognized,
    refused,
    same,
    samples,
    sound,
)

BOM = b"\xef\xbb\xbf"
PLAIN_LOGS = "sacct squeue pbs swf sge slurm-jobcomp lsf"
LOGS = f"{PLAIN_LOGS} flux"
TABLES = "polls-csv request-events-csv class-reviews"
COCKPIT = "clustercockpit clustercockpit-data"
JSON = f"sacct-json squeue-json prometheus-json extrapolations {COCKPIT}"
PARQUET = "polls-parquet glljobstat request-events-parquet"
HDF5 = "h5lmt tokio"
NO_TEXT = f"{PARQUET} {HDF5} lmt-database tmio-msgpack recorder-tar darshan"


def _within(junk: bytes) -> Callable[[Sample], bytes]:
    """Return a damage that inserts bytes into the sample's value."""

    def damaged(sample: Sample) -> bytes:
        place = sample.content.index(sample.value) + len(sample.value) // 2
        return sample.content[:place] + junk + sample.content[place:]

    return damaged


def _with_line(change: Callable[[list[bytes], int], list[bytes]]) -> Callable[[Sample], bytes]:
    """Return a damage to lines; `change` gets the index of the line with the sample's value."""

    def damaged(sample: Sample) -> bytes:
        lines = sample.content.splitlines(keepends=True)
        return b"".join(change(lines, next(at for at, line in enumerate(lines) if sample.value in line)))

    return damaged


def _with_cells(change: Callable[[list[bytes], int], list[bytes]]) -> Callable[[Sample], bytes]:
    """Return a change of the cells of a table; `change` gets the cells of a line and its index."""

    def changed_table(sample: Sample) -> bytes:
        lines = sample.content.splitlines()
        first = next(at for at, line in enumerate(lines) if _mark(line) in line)
        mark = _mark(lines[first])
        cells = (mark.join(change(line.split(mark), at)) for at, line in enumerate(lines[first:]))
        return b"".join(line + b"\n" for line in (*lines[:first], *cells))

    return changed_table


def _mark(line: bytes) -> bytes:
    return b"|" if b"|" in line else b","


def _with_header_again(sample: Sample) -> bytes:
    """Repeat the header before the last line."""
    lines = sample.content.splitlines(keepends=True)
    header = next(line for line in lines if _mark(line) in line)
    return b"".join([*lines[:-1], header, lines[-1]])


#: by kind of damage: its function, and the expected outcome by format
DAMAGE: dict[str, tuple[Callable[[Sample], bytes], dict[str, Expected]]] = {
    "empty": (
        lambda _: b"",
        {
            "tacc-stats": refused("No header has"),
            f"{PLAIN_LOGS} predictions": none(),
            "flux series influx-line mmperfmon prometheus-prom prometheus-json": refused("is empty"),
            "recorder-txt recorder-tar": refused("is empty"),
            f"sacct-json squeue-json extrapolations {COCKPIT}": refused("not valid JSON"),
            f"{TABLES} request-events-parquet": refused("no column"),
            "polls-parquet glljobstat": refused("Parquet content"),
            HDF5: refused("HDF5 content"),
            "lmt-database": refused("no table OST_DATA"),
            "lustre-stats": refused("No header names"),
            "jobstats": refused("no job statistics"),
            "ldms-csv": refused("The file has no header"),
            "ldms-lustre2": refused("no counters of LDMS"),
            "mmpmon": refused("no counters"),
            "pmrep": refused("None of the"),
            "dftracer": refused("No line"),
            "tmio-jsonl tmio-msgpack": refused("No flush"),
            "darshan": refused("not a Darshan log"),
        },
    ),
    "another file": (
        lambda _: b"hello\nworld\n",
        {
            "tacc-stats": refused("No header has"),
            "sacct": none(2, "no header with JobID"),
            "squeue": none(2, "no header precedes"),
            "pbs": none(2, "not an accounting record"),
            "sge": none(2, "1 fields where the format has"),
            "slurm-jobcomp": none(2, "not a record of a completed job"),
            "lsf": none(2, "not a record of lsb.acct"),
            "predictions": none(2, "not a prediction"),
            "swf": refused("start of the log is unknown"),
            f"sacct-json squeue-json extrapolations tmio-jsonl tmio-msgpack flux {COCKPIT}": refused("JSON"),
            f"{TABLES} request-events-parquet": refused("no column"),
            "polls-parquet glljobstat": refused("Parquet content"),
            HDF5: refused("HDF5 content"),
            "lmt-database": refused("not a database"),
            "lustre-stats": refused("No header names"),
            "series": refused("Neither a header"),
            "mmperfmon influx-line prometheus-prom prometheus-json": refused("[nN]one of the|no metric that counts"),
            "jobstats": refused("no job statistics"),
            "ldms-csv": refused("The file has no header"),
            "ldms-lustre2": refused("no counters of LDMS"),
            "mmpmon": refused("no counters"),
            "pmrep": refused("None of the"),
            "dftracer": refused("No line"),
            "recorder-txt": refused("starts with a call"),
            "recorder-tar": refused("contain the rank"),
            "darshan": refused("not a Darshan log"),
        },
    ),
    "cut in the middle": (
        lambda sample: sample.content[: len(sample.content) // 2],
        {
            "tacc-stats": none(1, "no end"),
            "sacct pbs swf sge slurm-jobcomp lsf flux": lost(2, 1),
            "squeue": lost(3, 1, "no end"),
            "polls-csv": lost(4, 1, "3 fields"),
            "class-reviews": lost(3, 1, "fields"),
            "request-events-csv": lost(5, 1, "4 fields"),
            "series": lost(3, 1, "1 fields"),
            JSON: refused("not valid JSON"),
            PARQUET: refused("Parquet content"),
            HDF5: refused("truncated file"),
            "lmt-database": refused("truncated"),
            "lustre-stats": refused("two readings"),
            "mmperfmon": lost(10, 1, "no end"),
            "jobstats influx-line": lost(2, 1),
            "ldms-csv pmrep": lost(3, 1, "no end"),
            # nothing is left but a part of the header
            "ldms-lustre2": none(),
            "mmpmon": lost(2, 1, "no end"),
            # an exporter's text has no end marker
            "prometheus-prom": changed(0),
            "dftracer": lost(3, 1, "not JSON"),
            "tmio-jsonl": refused("not complete JSON"),
            "tmio-msgpack": lost(3, 1, "truncated"),
            "recorder-txt": lost(2, 1, "not in recorder2text"),
            "recorder-tar": refused("truncated"),
            "darshan": refused("ends within it"),
            "predictions": lost(2, 1, "is truncated"),
        },
    ),
    "cut by nine bytes": (
        lambda sample: sample.content[:-9],
        {
            "tacc-stats": lost(2, 1, "no end"),
            LOGS: lost(1, 1, "no end"),
            "polls-csv": lost(1, 1, "2 fields"),
            "class-reviews": lost(1, 1, "fields"),
            "request-events-csv": lost(1, 1, "9 fields"),
            "series": changed(-2),
            JSON: refused("not valid JSON"),
            PARQUET: refused("Parquet content"),
            HDF5: refused("truncated file"),
            "lmt-database": refused("truncated"),
            "lustre-stats": lost(1, 1, "no end"),
            "mmperfmon": lost(2, 1, "no end"),
            "jobstats influx-line": lost(1, 1),
            "ldms-csv mmpmon pmrep": lost(1, 1, "no end"),
            "ldms-lustre2": lost(4, 1, "7 fields where 11"),
            "prometheus-prom": lost(1, 2, "no end|fewer counters"),
            "dftracer": same(1, "not JSON"),
            "tmio-jsonl": lost(6, 1, "not complete JSON"),
            "tmio-msgpack": same(1, "truncated"),
            "recorder-txt": lost(1, 1, "not in recorder2text"),
            "recorder-tar": same(),
            "darshan": lost(3),
            "predictions": lost(1, 1, "is truncated"),
        },
    ),
    "without the last line end": (
        lambda sample: sample.content.removesuffix(b"\n"),
        {
            "tacc-stats": lost(2, 1, "no end"),
            f"{TABLES} {JSON} {NO_TEXT} lustre-stats series jobstats influx-line ldms-lustre2": same(),
            LOGS: lost(1, 1, "no end"),
            "prometheus-prom": lost(1, 2, "no end|fewer counters"),
            "dftracer tmio-jsonl recorder-txt predictions": same(),
            # a number that ends early would pass for another number
            "mmperfmon": lost(2, 1, "no end"),
            "ldms-csv mmpmon pmrep": lost(1, 1, "no end"),
        },
    ),
    "twice": (
        lambda sample: sample.content * 2,
        {
            "tacc-stats": same(),
            f"{LOGS} predictions": changed(3),
            JSON: refused("not valid JSON"),
            "polls-csv": changed(4),
            "class-reviews": changed(3),
            "request-events-csv": same(7, "repeats another"),
            "series": same(5),
            f"{PARQUET} {HDF5} lmt-database lustre-stats recorder-tar": same(),
            "mmperfmon": changed(10),
            "jobstats influx-line ldms-csv ldms-lustre2 mmpmon pmrep prometheus-prom dftracer": same(),
            "tmio-jsonl": same(6, "repeat those of line"),
            "tmio-msgpack": same(2, "repeat those of line"),
            "recorder-txt": same(3, "repeats a call"),
            "darshan": refused("the file has"),
        },
    ),
    "junk behind the end": (
        lambda sample: sample.content + b"\x00\xff junk\n",
        {
            "tacc-stats": same(1, "not in TACC"),
            f"{LOGS} {TABLES} series ldms-csv ldms-lustre2 dftracer": same(1, "not UTF-8"),
            JSON: refused("not valid JSON"),
            PARQUET: refused("Parquet content"),
            f"{HDF5} lmt-database recorder-tar": same(),
            "mmperfmon": same(1, "not a row"),
            "lustre-stats": lost(1, 1, "does not write"),
            "jobstats": lost(1, 1, "not in Lustre's format"),
            "influx-line mmpmon pmrep prometheus-prom recorder-txt predictions tmio-jsonl": same(1),
            "tmio-msgpack": same(8),
            "darshan": refused("the file has"),
        },
    ),
    "a line twice": (
        _with_line(lambda lines, at: [*lines[: at + 1], *lines[at:]]),
        {
            "tacc-stats": same(),
            f"{LOGS} polls-csv class-reviews predictions": changed(1),
            "request-events-csv recorder-txt": same(1, "repeats"),
            "series mmperfmon jobstats": same(1),
            "lustre-stats": changed(-1, 1, "more than once"),
            "influx-line ldms-csv ldms-lustre2 mmpmon pmrep prometheus-prom dftracer": same(),
        },
    ),
    "without a line": (
        _with_line(lambda lines, at: [*lines[:at], *lines[at + 1 :]]),
        {
            "tacc-stats": changed(-4),
            f"{LOGS} predictions class-reviews": lost(1),
            "polls-csv": changed(-1),
            "request-events-csv influx-line ldms-csv mmpmon pmrep dftracer recorder-txt": lost(1),
            "series": changed(-1),
            "ldms-lustre2": lost(4),
            # lctl writes no line for a counter of 0
            "lustre-stats": changed(0),
            "mmperfmon": lost(2),
            "jobstats": lost(2, 1, "not in Lustre's format"),
            "prometheus-prom": lost(1, 1, "fewer counters"),
        },
    ),
    "the last two lines swapped": (
        lambda sample: b"".join((lines := sample.content.splitlines(keepends=True))[:-2] + lines[:-3:-1]),
        {
            "tacc-stats": same(),
            f"{LOGS} {TABLES} predictions": same(),
            "series": changed(-1, 1, "not later"),
            "mmperfmon": lost(2, 1, "not greater"),
            "lustre-stats jobstats influx-line ldms-csv ldms-lustre2 mmpmon pmrep prometheus-prom dftracer": same(),
            "recorder-txt": lost(1, 1, "starts before the previous call"),
        },
    ),
    "without its first line": (
        lambda sample: sample.content.partition(b"\n")[2],
        {
            "tacc-stats": same(),
            "sacct": lost(3, 3, "no header with JobID"),
            "squeue sge mmperfmon prometheus-prom dftracer": same(),
            "pbs slurm-jobcomp lsf flux influx-line mmpmon recorder-txt predictions": lost(1),
            "swf": refused("start of the log is unknown"),
            TABLES: refused("no column"),
            "series": same(),
            "lustre-stats": lost(1),
            "jobstats": changed(0),
            "ldms-csv": refused("The file has no header"),
            "pmrep": refused("None of the"),
            "ldms-lustre2": refused("no counters of LDMS"),
        },
    ),
    "a comment before": (
        lambda sample: b"# exported by a collector\n" + sample.content,
        {
            "tacc-stats": same(),
            f"sacct squeue pbs swf sge lsf flux {TABLES} series mmperfmon jobstats": same(),
            "influx-line mmpmon prometheus-prom": same(),
            "slurm-jobcomp": same(1, "not a record"),
            "lustre-stats": same(1, "belongs to no target"),
            "ldms-lustre2 pmrep": same(),
            # a header of LDMS begins with this mark
            "ldms-csv": same(1, "header is damaged"),
            "dftracer predictions": same(1, "not JSON|not a prediction"),
            "recorder-txt": refused("starts with a call"),
        },
    ),
    "a foreign first line": (
        lambda sample: b"Last login: today\n" + sample.content,
        {
            "tacc-stats": same(1, "not in TACC"),
            TABLES: same(1, "1 fields where"),
            "series": same(),
            LOGS: same(1),
            "lustre-stats ldms-lustre2 pmrep": same(1),
            "mmperfmon jobstats influx-line ldms-csv mmpmon prometheus-prom dftracer predictions": same(1),
            "recorder-txt": refused("starts with a call"),
        },
    ),
    "the header again": (
        _with_header_again,
        {
            f"sacct {TABLES} ldms-csv": same(),
            # each output needs its time
            "squeue": lost(1, 1, "time of the query"),
            "series": same(1, "not a number"),
        },
    ),
    "columns in another order": (
        _with_cells(lambda cells, _: cells[::-1]),
        {f"sacct squeue {TABLES} series": same()},
    ),
    "an unknown column": (
        _with_cells(lambda cells, at: [*cells[:1], b"zz", *cells[1:]] if at else [*cells[:1], b"unknown", *cells[1:]]),
        {f"sacct squeue {TABLES} series ldms-csv": same()},
    ),
    "CRLF": (
        lambda sample: sample.content.replace(b"\n", b"\r\n"),
        {
            "tacc-stats": same(),
            f"{LOGS} {TABLES} {JSON} lustre-stats series mmperfmon pmrep ldms-lustre2": same(),
            "jobstats influx-line ldms-csv mmpmon prometheus-prom dftracer tmio-jsonl recorder-txt predictions": same(),
        },
    ),
    "byte order mark": (
        lambda sample: BOM + sample.content,
        {
            "tacc-stats": same(),
            f"{LOGS} {TABLES} {JSON} lustre-stats series mmperfmon pmrep": same(),
            "ldms-lustre2": same(),
            "jobstats influx-line ldms-csv mmpmon prometheus-prom dftracer tmio-jsonl predictions": same(),
            "recorder-txt": same(),
        },
    ),
    **{
        encoding: (
            lambda sample, encoding=encoding: sample.content.decode().encode(encoding),
            {
                f"{LOGS} {TABLES} {JSON} series mmperfmon jobstats influx-line ldms-csv mmpmon": same(),
                "prometheus-prom dftracer tmio-jsonl recorder-txt predictions lustre-stats ldms-lustre2 pmrep": same(),
                "tacc-stats": same(),
            },
        )
        for encoding in ("UTF-16", "UTF-32")
    },
    **{
        f"{name} in a value": (
            _within(junk),
            {
                f"{LOGS} {TABLES} ldms-csv dftracer": lost(1, 1, "not UTF-8"),
                "ldms-lustre2": lost(4, 1, "not UTF-8"),
                "series": changed(-1, 1, "not UTF-8"),
                "tacc-stats": lost(4, 3, "not in TACC|No time"),
                "sacct-json": json_expected or lost(2, 2, "not valid Unicode|its job is refused"),
                "squeue-json": json_expected or lost(1, 1, "not valid Unicode"),
                "prometheus-json": json_expected or lost(2, 1, "not valid Unicode"),
                "clustercockpit": json_expected or lost(1, 1, "not valid Unicode"),
                # the names of nodes are not used
                "clustercockpit-data": json_expected or same(),
                "extrapolations": refused("not valid JSON"),
                "mmperfmon": lost(2, 1, "not a row"),
                "lustre-stats": changed(-1, 1, "does not write"),
                "jobstats": lost(1, 1, "not in Lustre's format"),
                "prometheus-prom": lost(1, 2, "not UTF-8|fewer counters"),
                "influx-line mmpmon": lost(1, 1, "not UTF-8"),
                "pmrep": changed(0),
                # a path may have any bytes but NUL
                "recorder-txt": lost(1, 1, "not in recorder2text's") if junk == b"\0" else changed(0),
                "predictions": lost(1, 1, "not valid JSON"),
            },
        )
        for name, junk, json_expected in (
            ("NUL", b"\0", refused("Invalid control character")),
            ("a byte that is not text", b"\xff", refused("can't decode")),
            ("a lone surrogate", b"\xed\xa0\x80", None),
        )
    },
    "a line end in a value": (
        _within(b"\n"),
        {
            "tacc-stats": lost(4, 3, "not in TACC|No time"),
            f"sacct squeue swf sge slurm-jobcomp lsf flux {TABLES} ldms-csv mmpmon dftracer recorder-txt": lost(1, 2),
            "predictions": lost(1, 2, "not a prediction"),
            "pbs series pmrep": changed(0, 1),
            JSON: refused("Invalid control character"),
            "mmperfmon": lost(2, 2, "not a row"),
            "ldms-lustre2": lost(4, 2, "fields where 11"),
            "lustre-stats": changed(-1, 1, "does not write"),
            "jobstats": lost(2, 2),
            "influx-line": lost(1, 1, "no time"),
            "prometheus-prom": lost(1, 3),
        },
    ),
    "an overlong value": (
        _within(b"x" * (1 << 20)),
        {
            "tacc-stats": lost(4, 3, "not in TACC|No time"),
            f"{LOGS} {TABLES} ldms-csv": lost(1, 1, "limits.max_line_bytes"),
            "ldms-lustre2": lost(4, 1, "limits.max_line_bytes"),
            "series": changed(-1, 1, "limits.max_line_bytes"),
            # JSON items have a separate limit
            "sacct-json squeue-json prometheus-json": changed(0),
            "predictions": refused("limits.max_line_bytes"),
            "mmperfmon": lost(2, 1, "not a row"),
            "lustre-stats": changed(-1, 1, "does not write"),
            "prometheus-prom": lost(1, 2, "limits.max_line_bytes|fewer counters"),
            "pmrep": changed(0),
            "jobstats influx-line mmpmon recorder-txt": lost(1, 1, "limits.max_line_bytes"),
            "dftracer": lost(1, 1, "not UTF-8"),
            f"extrapolations {COCKPIT}": changed(0),
        },
    ),
    "an empty value": (
        lambda sample: sample.content.replace(sample.value, b"", 1),
        {
            "tacc-stats": lost(4, 3, "not in TACC|No time"),
            f"sacct squeue pbs sge slurm-jobcomp lsf flux sacct-json squeue-json prometheus-json {COCKPIT}": changed(0),
            "ldms-csv influx-line jobstats recorder-txt extrapolations predictions": changed(0),
            "swf": lost(1, 1, "17 fields"),
            # a reading that names no job counts in total only
            "ldms-lustre2": lost(2),
            "polls-csv": lost(1, 1, "controller is missing"),
            "request-events-csv": lost(1, 1, "event is missing"),
            "class-reviews": lost(1, 1, "subject_id is missing"),
            "series": changed(-1),
            "lustre-stats": changed(-1, 1, "more bytes than"),
            "mmperfmon": lost(2, 1, "not a row"),
            "mmpmon": lost(1, 1, "not in mmpmon's"),
            "pmrep": lost(1, 1, "no host"),
            "prometheus-prom": lost(1, 2, "fewer counters"),
            "dftracer": lost(1, 1, "not JSON"),
        },
    ),
    "packed by gzip": (lambda sample: gzip.compress(sample.content), {"*": same()}),
    "packed by zstd": (lambda sample: zstandard.compress(sample.content), {"*": same()}),
    "packed and cut": (
        lambda sample: gzip.compress(sample.content, mtime=0)[:-9],
        {
            f"{PLAIN_LOGS} polls-csv predictions": refused("damaged after line"),
            "jobstats influx-line ldms-csv mmpmon pmrep": refused("damaged after line"),
            f"sacct-json squeue-json {COCKPIT}": refused("not valid JSON"),
            # rows before the truncation are read and flagged as partial
            "dftracer": same(),
            "*": refused("damaged|cannot be read"),
        },
    ),
}  # fmt: skip


def _expected(cells: dict[str, Expected], key: str) -> Expected | None:
    named = [expected for keys, expected in cells.items() if key in keys.split()]
    assert len(named) < 2, key
    return named[0] if named else cells.get("*")


def _cases() -> Iterator[tuple[str, str]]:
    for kind, (_, cells) in DAMAGE.items():
        for key in samples():
            if _expected(cells, key) is not None:
                yield kind, key


@pytest.mark.parametrize("key", samples())
def test_sample_is_sound_and_recognized_plain_and_compressed(key: str) -> None:
    outcome, sample = sound(key), samples()[key]
    assert outcome.refusal is None
    assert outcome.rows(sample.table)
    for content in (sample.content, gzip.compress(sample.content)):
        assert recognized(sample, content) == sample.format


@pytest.mark.parametrize(("kind", "key"), list(_cases()))
def test_damage_is_reported_and_other_rows_are_kept(kind: str, key: str) -> None:
    damage, cells = DAMAGE[kind]
    expected = _expected(cells, key)
    assert expected is not None
    expected.check(key, read(samples()[key], damage(samples()[key])))


def test_table_of_damage_covers_all_formats() -> None:
    assert {sample.format for sample in samples().values()} == {source.name for source in list_sources()}
    texts = {key for key, sample in samples().items() if sample.value}
    for kind, (_, cells) in DAMAGE.items():
        there = {key for key in samples() if _expected(cells, key) is not None}
        is_of_tables = kind in ("the header again", "columns in another order", "an unknown column")
        assert is_of_tables or there == set(samples()) or texts - there <= {"tmio-jsonl", *JSON.split()}, kind


@pytest.mark.parametrize("kind", ["byte order mark", "UTF-16", "CRLF", "a comment before", "a foreign first line"])
def test_damage_at_the_start_does_not_stop_recognition(kind: str) -> None:
    damage, cells = DAMAGE[kind]
    keys = [key for key in samples() if _expected(cells, key) is not None]
    # the file of a rank begins with a call
    for key in set(keys) - {"recorder-txt"}:
        assert recognized(samples()[key], damage(samples()[key])) == samples()[key].format, key


#: text formats with rows of one line each, which do not depend on later lines
TRUNCATED = f"{LOGS} {TABLES} influx-line ldms-csv mmpmon predictions".split()


@pytest.mark.parametrize("key", TRUNCATED)
def test_truncation_at_any_line_keeps_only_known_rows(key: str) -> None:
    sample = samples()[key]
    ends = [place + 1 for place, byte in enumerate(sample.content) if byte == ord("\n")]
    known = set(sound(key).rows(sample.table))
    for end in random.Random(key).sample(ends, examples(len(ends))):
        outcome = read(sample, sample.content[:end])
        assert set(outcome.rows(sample.table)) <= known, end


@pytest.mark.parametrize("key", ["tmio-jsonl", "request-events-csv", "recorder-txt"])
def test_trace_that_is_appended_to_itself_is_refused(key: str, tmp_path: Path) -> None:
    path = tmp_path / samples()[key].name
    path.write_bytes(samples()[key].content)
    assert find_source(path, None, None).name == samples()[key].format
    path.write_bytes(samples()[key].content * 2)
    with pytest.raises(InputRefused, match="same content twice"):
        find_source(path, None, None)


@pytest.mark.parametrize(("key", "change"), [(key, change) for key, own in CHANGES.items() for change in own])
def test_impossible_value_loses_only_its_row(key: str, change: Change) -> None:
    old, replacements, expected = change
    before, there, after = samples()[key].content.decode().rpartition(old)
    assert there, f"the sample has no {old!r}"
    for new in replacements:
        expected.check(key, read(samples()[key], f"{before}{new}{after}".encode()))


@pytest.mark.parametrize("key", samples())
def test_suffix_and_special_characters_of_path_have_no_effect(key: str) -> None:
    folders, name = "w[1]*? #%41;\\$HOME'\"=~\n/hive=1/file:/caf\udce9", samples()[key].name.split(".")[0]
    same().check(key, read(samples()[key], name=f"{folders}/{name}.csv"))


@pytest.mark.parametrize("key", samples())
def test_expansion_beyond_limit_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = samples()[key]
    monkeypatch.setattr(opening, "_FREE_BYTES", 0)
    with apply_limits(Limits(max_expansion_factor=0.1)):
        refused("limits.max_expansion_factor").check(key, read(sample, gzip.compress(sample.content)))


# ---- lone surrogates, which JSON can represent and columns cannot


def _spoilt(document: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield copies of a document, each with a lone surrogate in a name or text, and its location."""

    def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        # a line that is not JSON, such as a bracket, has no escapes
        if isinstance(value, str) and value not in ("[", "]"):
            yield path
        elif isinstance(value, dict):
            for name, each in value.items():
                yield (*path, ("name", name))
                yield from places(each, (*path, name))
        elif isinstance(value, list):
            for number in range(len(value)):
                yield from places(value[number], (*path, number))

    for path in places(document, ()):
        spoilt = copy.deepcopy(document)
        holder = spoilt
        for part in path[:-1]:
            holder = holder[part]
        if isinstance(path[-1], tuple):
            holder[path[-1][1] + "\ud800"] = holder.pop(path[-1][1])
        else:
            holder[path[-1]] += "\ud800"
        yield path, spoilt


@pytest.mark.parametrize("key", [key for key, sample in samples().items() if sample.document is not None])
def test_lone_surrogate_raises_only_input_refused(key: str) -> None:
    sample = samples()[key]
    spoilt = list(_spoilt(sample.document))
    assert len(spoilt) > 10
    for path, document in random.Random(key).sample(spoilt, examples(len(spoilt))):
        outcome = read(sample, sample.write(document).encode())
        assert outcome.refusal or outcome.tables or outcome.rejects.height, path
