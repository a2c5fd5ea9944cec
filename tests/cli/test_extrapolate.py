"""`iosig extrapolate` on real traces is exact, or refuses with a reason and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from iosig.traces.extrapolation.extrapolating import families
from iosig.traces.extrapolation.view import read
from iosig.transforms.extrapolation.iteration_models import Families
from iosig.transforms.traces.checks import check
from iosig.transforms.traces.expansion import rank_calls
from iosig.warehouse.contracts.extrapolations import EXTRAPOLATION_RECORDS
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.sources.extrapolations import compressed_traces, source
from iosig.warehouse.store.landing import ledger
from iosig.warehouse.store.store import Store
from tests.naive import recorder_traces as naive
from tests.naive.recorder_traces import Call as Logged
from tests.nights import Cli, land_files, write_small_site
from tests.warehouse.sources.trace_landing import put

INPUTS = (8, 12, 16, 24)
WRITE = 2
_FLOOR = """
from fractions import Fraction
from iosig.transforms.extrapolation.count_models import CountFamily

class Floor:
    def __init__(self, k): self.k = k
    def at(self, n): return Fraction(self.k // n)
    def formula(self): return f"floor({self.k}/n)"

COUNT_FAMILIES = (CountFamily("floor", 1, lambda points: Floor(1000)),)
"""
_SQUARE = """
class Square:
    def values_at(self, n, ranks): return ranks ** 2
    def formula(self): return "rank^2"

def square(columns, families):
    return Square() if all((column.values == column.ranks ** 2).all() for column in columns) else None

RANK_FAMILIES = [square]
"""


def traces(shared_data: Path, name: str) -> list[Path]:
    return [shared_data / "recorder" / name / str(n) / "raw.tar.zst" for n in INPUTS]


def made(folder: Path, size: str) -> list[Path]:
    """Return traces of a program in which each rank writes once; `size` is a formula of r and n."""
    return [
        put(
            folder / f"of{n}",
            naive.separate(
                [[Logged(WRITE, 0, ("f", "%p", str(eval(size, {"r": r, "n": n}))), 10, 19)] for r in range(n)]
            ),
        )
        for n in INPUTS
    ]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """The path of a warehouse that does not exist."""
    return tmp_path / "warehouse"


# ---- real traces


@pytest.mark.parametrize("n", [6, 20, 48])
def test_strong_scaling_trace_is_extrapolated_exactly(
    cli: Cli, shared_data: Path, tmp_path: Path, warehouse: Path, n: int
) -> None:
    into = tmp_path / "strong.parquet"
    given = traces(shared_data, "ios_strong")
    code, out, err = cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", n, "--output", into)
    assert code == 0, err
    # a title with a long path is wrapped
    assert f"the trace of {n} ranks, from those of 8, 12, 16, 24" in " ".join(out.split())
    assert "960/n*rank + 960*i" in out
    trace = read(into)
    check(trace)
    assert trace.process_count == n
    for rank in range(n):
        calls = rank_calls(trace, rank)
        seeks = calls.filter(pl.col("function") == "MPI_File_seek")["arguments"].to_list()
        assert seeks == [f"0-0 {rank * (960 // n) + 960 * i} MPI_SEEK_SET" for i in range(3)]
        writes = calls.filter(pl.col("function") == "MPI_File_write")["arguments"].to_list()
        assert writes == [f"0-0 %p {960 // n} MPI_BYTE %p"] * 3
    assert not warehouse.exists()


def test_rank_count_that_does_not_divide_the_size_is_refused(
    cli: Cli, shared_data: Path, tmp_path: Path, warehouse: Path
) -> None:
    into = tmp_path / "strong.parquet"
    given = traces(shared_data, "ios_strong")
    code, out, _ = cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", 28, "--output", into)
    assert code == 3
    assert "Refused: no trace of 28 ranks from those of 8, 12, 16, 24" in " ".join(out.split())
    assert "MPI_File_seek" in out
    assert "28 does not divide 960" in " ".join(out.split())
    assert not into.exists()


def test_random_offsets_are_refused(cli: Cli, shared_data: Path, tmp_path: Path, warehouse: Path) -> None:
    into = tmp_path / "random.parquet"
    given = traces(shared_data, "ior_posix_random")
    code, out, _ = cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", 32, "--output", into, "--json")
    assert code == 3
    row = json.loads(out)
    assert row["outcome"] == "no_exact_model"
    assert "no model gives" in row["refused_fields"]
    assert not into.exists()


# ---- extrapolation records


def test_extrapolation_is_recorded_in_an_existing_warehouse(cli: Cli, shared_data: Path, tmp_path: Path) -> None:
    write_small_site(tmp_path / "site")
    store = Store(tmp_path / "warehouse")
    land_files(store, tmp_path / "site" / "jobs.sacct")
    given = traces(shared_data, "ios_sio")
    into = tmp_path / "sio.parquet"
    for n, expected in ((48, 0), (48, 0)):
        code, out, err = cli("--warehouse", store.root, "extrapolate", *given, "--ranks", n, "--output", into, "--json")
        assert code == expected, err
    row = json.loads(out)
    assert (row["outcome"], row["process_count"], row["rank_counts"]) == ("extrapolated", 48, list(INPUTS))
    assert "has a record of it" in err
    landed = [
        pl.read_parquet(store.root / part.path)
        for lot in ledger(store)
        for part in lot.parts
        if part.table == EXTRAPOLATION_RECORDS.name
    ]
    assert [(rows["process_count"].to_list(), rows["outcome"].to_list()) for rows in landed] == [
        ([48], ["extrapolated"])
    ]
    _, metadata = compressed_traces.read(into)
    assert metadata["process_count"] == "48"
    assert json.loads(metadata[source.METADATA_KEY])["outcome"] == "extrapolated"


# ---- arguments


def test_fewer_than_four_rank_counts_are_refused(cli: Cli, tmp_path: Path, warehouse: Path) -> None:
    given = made(tmp_path, "8 * r")
    into = tmp_path / "x.parquet"
    code, out, _ = cli("--warehouse", warehouse, "extrapolate", *given[:3], given[0], "--ranks", 32, "--output", into)
    assert code == 3
    assert "3 different rank counts are known; 4 are needed" in out
    assert not into.exists()


def test_excessive_rank_count_is_a_usage_error(cli: Cli, tmp_path: Path, warehouse: Path) -> None:
    given = made(tmp_path, "8 * r")
    into = tmp_path / "x.parquet"
    code, _, err = cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", 1 << 40, "--output", into)
    assert code == 2
    assert "exceed the maximum" in err
    assert cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", 0, "--output", into)[0] == 2
    assert not into.exists()


def test_input_trace_is_never_overwritten(cli: Cli, tmp_path: Path, warehouse: Path) -> None:
    given = made(tmp_path, "8 * r")
    for into in (given[2] / "recorder.mt", given[1] / "new.parquet"):
        code, _, err = cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", 32, "--output", into)
        assert code == 2
        assert "is never overwritten" in err
    assert (
        cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", 32, "--output", tmp_path / "t.parquet")[0] == 0
    )


def test_million_ranks_extrapolate_to_a_file_of_similar_size(cli: Cli, tmp_path: Path, warehouse: Path) -> None:
    given = made(tmp_path, "8 * r")
    sizes = []
    for n in (1000, 1_000_000):
        into = tmp_path / f"{n}.parquet"
        code, _, err = cli("--warehouse", warehouse, "extrapolate", *given, "--ranks", n, "--output", into)
        assert code == 0, err
        sizes.append(into.stat().st_size)
        assert rank_calls(read(into), n - 1)["arguments"].to_list() == [f"f %p {8 * (n - 1)}"]
    assert sizes[1] < 2 * sizes[0]


# ---- user-defined models


@pytest.mark.parametrize(
    ("size", "text", "formula", "reason"),
    [
        ("1000 // n", _FLOOR, "floor(1000/n)", "ambiguous: 1008/n - 1 is as good as floor(1000/n), 166 at 6"),
        ("r * r", _SQUARE, "rank^2", "no model gives 0, 1, 4, 9, ... at 8 ranks"),
    ],
    ids=["of_n", "of_rank"],
)
def test_user_models_allow_further_extrapolations(
    cli: Cli, tmp_path: Path, warehouse: Path, size: str, text: str, formula: str, reason: str
) -> None:
    given, into, models = made(tmp_path, size), tmp_path / "x.parquet", tmp_path / "own.py"
    asked = ("--warehouse", warehouse, "extrapolate", *given, "--ranks", 6, "--output", into)
    code, out, _ = cli(*asked, "--json")
    assert code == 3
    assert reason in json.loads(out)["refused_fields"]
    models.write_text(text)
    code, out, err = cli(*asked, "--models", models)
    assert code == 0, err
    assert formula in out
    found = read(into)
    assert [rank_calls(found, r)["arguments"].to_list() for r in range(6)] == [
        [f"f %p {eval(size, {'r': r, 'n': 6})}"] for r in range(6)
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "own.py has no models"),
        ("import no_such_module", "own.py cannot be run: ModuleNotFoundError"),
        ("1/0", "own.py cannot be run: ZeroDivisionError"),
        ("COUNT_FAMILIES = 5", "COUNT_FAMILIES of own.py is not a tuple"),
        ("COUNT_FAMILIES = (5,)", "COUNT_FAMILIES of own.py must contain only families"),
        ("RANK_FAMILIES = (5,)", "RANK_FAMILIES of own.py must contain only functions"),
        (
            "def broken(columns, families):\n    return 1 / 0\nRANK_FAMILIES = (broken,)",
            "own.py, line 2: ZeroDivisionError",
        ),
    ],
)
def test_invalid_user_models_are_refused(cli: Cli, tmp_path: Path, warehouse: Path, text: str, reason: str) -> None:
    models, into = tmp_path / "own.py", tmp_path / "x.parquet"
    models.write_text(text)
    given = made(tmp_path, "r * r * r")
    code, _, err = cli(
        "--warehouse", warehouse, "extrapolate", *given, "--ranks", 20, "--output", into, "--models", models
    )
    assert code == 3
    assert reason in " ".join(err.split())
    assert not into.exists()


def test_model_file_must_be_python(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(_FLOOR)
    with pytest.raises(UsageError, match=r"not a Python file"):
        families(tmp_path / "own.txt")
    with pytest.raises(InputRefused):
        families(tmp_path / "absent.py")
    assert families(None) == Families()
