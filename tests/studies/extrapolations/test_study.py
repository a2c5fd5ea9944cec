"""The study of extrapolations finds the programs, and distinguishes exact, refused and wrong results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.studies.extrapolations import STUDY, tables
from iosig.studies.extrapolations.checking import compare_calls, compute_end_s, compute_trace_end_s, remove_times
from iosig.studies.extrapolations.maps import generate_map_rows
from iosig.studies.extrapolations.programs import decode_runs, find_programs
from iosig.studies.extrapolations.running import CHECKS, Results, StudyParams, study
from iosig.traces.extrapolation.extrapolating import families
from iosig.transforms.extrapolation.extrapolating import ExtrapolationParams, extrapolate_to, fit_trace
from iosig.transforms.traces.compression import compress, compress_together
from iosig.warehouse.errors import InputRefused
from tests.naive.recorder_traces import FUNCTIONS, Call, separate, text
from tests.study_pages import page_of

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "extrapolation.md"
COUNTS = (4, 6, 8, 12)

#: The calls of a rank as function, level and arguments.
Made = list[tuple[str, int, tuple[str, ...]]]


def shared_out(rank: int, count: int) -> Made:
    """As in Table 1 of the paper, by MPI-IO, which calls pwrite."""
    size = 48 // count
    made: Made = [("MPI_File_open", 0, ("MPI_COMM_WORLD", "f", "9", "%p", "0-0"))]
    for i in range(3):
        offset = str(size * rank + 48 * i)
        made += [
            ("MPI_File_write_at", 0, ("0-0", offset, "%p", str(size), "MPI_BYTE", f"[{rank + i}_0]")),
            ("pwrite", 1, ("f", "%p", str(size), offset)),
        ]
    return made


def own_files(rank: int, count: int) -> Made:
    """A file for each rank, at any rank count."""
    return [("open", 0, (f"f.{rank:08d}", "66")), ("write", 0, (f"f.{rank:08d}", "%p", "8"))]


def jumping(rank: int, count: int) -> Made:
    """Regular up to eight ranks, then with doubled sizes, which smaller rank counts cannot predict."""
    return [("open", 0, ("g", "66")), ("write", 0, ("g", "%p", str(10 if count <= 8 else 20))), ("close", 0, ("g",))]


def at_random(rank: int, count: int) -> Made:
    """Offsets that follow no rule."""
    return [
        ("pwrite", 0, ("h", "%p", "1", str((rank * 7919 + count * count * 104729 + i * i * 31) % 997)))
        for i in (1, 2, 3)
    ]


def rounding(rank: int, count: int) -> Made:
    """The example of the guide: floor(1000/n), and as many barriers as a binary tree has levels."""
    size = 1000 // count
    writes = [("pwrite", 0, ("s", "%p", str(size), str(rank * size + 1000 * i))) for i in range(3)]
    return [*writes, *[("MPI_Barrier", 0, ("MPI_COMM_WORLD",))] * (count - 1).bit_length()]


def logged(made: Made) -> list[Call]:
    return [
        Call(FUNCTIONS.index(function), level, arguments, 1000 * place + level, 1000 * place + 500 - level)
        for place, (function, level, arguments) in enumerate(made)
    ]


def traced(folder: Path, program: Callable[[int, int], Made], count: int) -> Path:
    """Write the raw trace of a program at a rank count."""
    folder.mkdir(parents=True)
    for name, content in separate([logged(program(rank, count)) for rank in range(count)]).items():
        (folder / name).write_bytes(content)
    return folder


PROGRAMS = {"at_random": at_random, "deep/jumping": jumping, "own_files": own_files, "shared_out": shared_out}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    for name, program in PROGRAMS.items():
        for count in COUNTS:
            traced(folder / name / str(count) / "raw", program, count)
    return folder


@pytest.fixture(scope="module")
def results(root: Path) -> Results:
    return study(StudyParams(root, 1))


def outcome(results: Results, program: str, count: int, *, has_nested: bool = False, is_unseen: bool = True) -> str:
    keys = {"program": program, "process_count": count, "has_nested": has_nested, "is_unseen": is_unseen}
    (row,) = results.checks.filter(**keys)["outcome"]
    return str(row)


# ---- programs


def test_programs_are_found(root: Path) -> None:
    found = find_programs(root)
    assert [(one.name, [count for count, _ in one.paths]) for one in found] == [
        (name, list(COUNTS)) for name in sorted(PROGRAMS)
    ]
    assert find_programs(root / "shared_out")[0].name == "shared_out"


def test_raw_traces_are_preferred_and_other_files_ignored(tmp_path: Path) -> None:
    traced(tmp_path / "one" / "4", shared_out, 4)
    calls = [logged(shared_out(rank, 6)) for rank in range(6)]
    as_text = tmp_path / "one" / "6" / "a text"
    as_text.mkdir(parents=True)
    for rank, own in enumerate(calls):
        (as_text / f"{rank}.txt").write_text(text(own))
    traced(tmp_path / "one" / "6" / "raw", shared_out, 6)
    (tmp_path / "one" / "7").mkdir()
    (tmp_path / "one" / "7" / "notes.txt").write_text("none")
    (tmp_path / "other" / "year").mkdir(parents=True)
    (tmp_path / "one" / "again").symlink_to(tmp_path)
    (found,) = find_programs(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for _, path in found.paths] == ["one/4", "one/6/raw"]


def test_folder_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no Recorder traces"):
        find_programs(tmp_path)


def test_trace_with_another_rank_count_is_refused(tmp_path: Path) -> None:
    traced(tmp_path / "one" / "5", jumping, 4)
    with pytest.raises(InputRefused, match="of 4 ranks, not of 5"):
        decode_runs(find_programs(tmp_path)[0])


def test_damaged_trace_is_refused_with_its_name(tmp_path: Path) -> None:
    (traced(tmp_path / "one" / "4", jumping, 4) / "2.cfg").write_bytes(b"\0")
    with pytest.raises(InputRefused, match="one at 4 ranks: Rank 2"):
        decode_runs(find_programs(tmp_path)[0])


# ---- comparing


def test_each_difference_is_counted(root: Path) -> None:
    run = decode_runs(find_programs(root / "shared_out")[0])[0]
    calls = sum(rank.order.size for rank in run.ranks)
    whole = compress(4, run.ranks)
    assert compare_calls(run.ranks, whole).is_exact
    changed = run.ranks[2].signatures.with_columns(arguments=pl.col("arguments").str.replace("f", "F"))
    other = compress(4, [*run.ranks[:2], replace(run.ranks[2], signatures=changed), run.ranks[3]])
    found = compare_calls(run.ranks, other)
    assert (found.call_count, found.equal_count, found.other_count) == (calls, calls - 4, calls)
    cut = replace(run.ranks[3], order=run.ranks[3].order[:-1], **times_of(run.ranks[3], slice(None, -1)))
    fewer = [*run.ranks[:3], cut]
    assert not compare_calls(fewer, whole).is_exact
    assert not compare_calls(run.ranks, compress(4, fewer)).is_exact
    assert not compare_calls(run.ranks[:3], whole).is_exact


def times_of(rank: object, part: slice) -> dict[str, object]:
    return {name: getattr(rank, name)[part] for name in ("start_s", "end_s")}


def test_traces_without_times_are_equal_if_their_calls_are(root: Path) -> None:
    run = decode_runs(find_programs(root / "deep")[0])[0]
    later = [replace(rank, end_s=rank.end_s + 1e-5) for rank in run.ranks]
    one, other = compress(4, run.ranks), compress(4, later)
    assert one != other
    assert remove_times(one) == remove_times(other)
    assert compute_end_s(other) == pytest.approx(compute_trace_end_s(later), abs=1e-6)


# ---- results


@pytest.mark.slow
def test_exact_refused_and_wrong_results_are_distinguished(results: Results) -> None:
    assert dict(results.checks.schema) == CHECKS
    for has_nested in (False, True):
        for count in COUNTS:
            for is_unseen in (True, False):
                assert outcome(results, "shared_out", count, has_nested=has_nested, is_unseen=is_unseen) == "exact"
                assert outcome(results, "at_random", count, has_nested=has_nested, is_unseen=is_unseen) == "refused"
    assert outcome(results, "deep/jumping", 12) == "wrong"
    assert outcome(results, "deep/jumping", 8) == "refused"
    assert outcome(results, "deep/jumping", 12, is_unseen=False) == "refused"
    (wrong,) = results.checks.filter(outcome="wrong", has_nested=False).to_dicts()
    assert (wrong["call_count"], wrong["equal_count"]) == (36, 24)


@pytest.mark.slow
def test_models_have_the_formulas_of_the_program(results: Results) -> None:
    formulas = set(results.models.filter(program="shared_out", has_nested=False)["formula"])
    assert {"48/n*rank + 48*i", "48/n"} <= formulas
    nested = results.models.filter(program="shared_out", has_nested=True)
    assert "pwrite" in " ".join(nested["field"])


@pytest.mark.slow
def test_all_calls_are_restored(results: Results) -> None:
    own = results.traces.filter(program="shared_out")
    assert own["call_count"].to_list() == own["expanded_count"].to_list() == [7 * count for count in COUNTS]
    assert own["outer_call_count"].to_list() == [4 * count for count in COUNTS]
    found = tables.summarize_lossless(results)
    assert found["trace_count"] == found["same_trace_count"] == 16
    assert found["call_count"] == found["same_call_count"]


@pytest.mark.slow
def test_map_contains_the_offsets_of_all_ranks(results: Results) -> None:
    own = results.maps
    assert own["program"].unique().to_list() == ["shared_out"]
    assert own.group_by("process_count", maintain_order=True).first()["is_traced"].to_list() == [True] * 4 + [False] * 2
    row = own.filter(process_count=24, rank=5, iteration=2)
    assert row["offset"].to_list() == [5 * 48 // 24 + 2 * 48]
    assert own.height == 3 * (sum(COUNTS) + 24 + 48)


def test_program_without_shared_offsets_has_no_map(root: Path) -> None:
    known = [
        (run.process_count, run.select_calls(has_nested=False)) for run in decode_runs(find_programs(root / "deep")[0])
    ]
    together = compress_together(known)
    assert list(generate_map_rows(fit_trace(together, ExtrapolationParams()), together)) == []


def test_too_few_rank_counts_are_refused(tmp_path: Path) -> None:
    for count in (4, 6):
        traced(tmp_path / "few" / str(count), jumping, count)
    found = study(StudyParams(tmp_path, 1))
    assert set(found.checks["outcome"]) == {"refused"}
    assert set(found.checks["field"]) == {"rank counts"}
    assert found.sizes.is_empty()
    assert STUDY.write(StudyParams(tmp_path), found, tmp_path).is_file()


@pytest.mark.slow
@pytest.mark.long
def test_results_are_independent_of_the_number_of_processes(results: Results, root: Path, tmp_path: Path) -> None:
    for name in ("own_files", "shared_out"):
        (tmp_path / name).symlink_to(root / name)
    again = study(StudyParams(tmp_path, 2))
    for name in ("traces", "checks", "models", "sizes", "curves", "maps"):
        known = getattr(results, name).filter(pl.col("program").is_in(["own_files", "shared_out"]))
        assert getattr(again, name).equals(known), name


@pytest.mark.slow
def test_real_program_is_exact_or_refused(shared_data: Path) -> None:
    told: list[tuple[int, int]] = []
    found = study(StudyParams(shared_data / "recorder" / "ios_mpiio_n1", 1), lambda *counts: told.append(counts))
    assert told == [(1, 1)]
    outcomes = found.checks.group_by("program", "has_nested", maintain_order=True).agg(pl.col("outcome").unique())
    assert outcomes.rows() == [("ios_mpiio_n1", False, ["exact"]), ("ios_mpiio_n1", True, ["refused"])]
    assert found.traces["expanded_count"].to_list() == found.traces["call_count"].to_list() == [159, 235, 318, 476]
    assert found.sizes.is_empty()


def test_links_to_traces_are_followed_once(shared_data: Path, tmp_path: Path) -> None:
    for name in ("ios_strong", "ios_sio"):
        (tmp_path / name).symlink_to(shared_data / "recorder" / name)
    assert [one.name for one in find_programs(tmp_path)] == ["ios_sio", "ios_strong"]
    assert [path.name for _, path in find_programs(tmp_path)[0].paths] == ["raw.tar.zst"] * 4


# ---- page and document


@pytest.mark.usefixtures("undrawn")
def test_page_has_its_figures_and_tables(results: Results, tmp_path: Path) -> None:
    found = page_of(STUDY, StudyParams(tmp_path), results, tmp_path)
    assert found.count("](figures/") == 3
    assert "| deep/jumping | 4, 6, 8, 12 | 36 | **WRONG** | 24 |" in found
    assert "16 came back whole" in found
    assert page_of(STUDY, StudyParams(tmp_path), results, tmp_path) == found


@pytest.mark.usefixtures("undrawn")
def test_links_between_page_and_guide_have_targets(results: Results, tmp_path: Path) -> None:
    text = page_of(STUDY, StudyParams(tmp_path), results, tmp_path)
    headings = {re.sub(r"[^a-z0-9 -]", "", line[3:].lower()).replace(" ", "-") for line in lines_of(GUIDE.read_text())}
    links = re.findall(r"\]\(extrapolation\.md#([^)]+)\)", text)
    assert links
    assert set(links) <= headings
    own = {re.sub(r"[^a-z0-9 -]", "", line[3:].lower()).replace(" ", "-") for line in lines_of(text)}
    back = re.findall(r"\]\(extrapolations-study\.md#([^)]+)\)", GUIDE.read_text(encoding="utf-8"))
    assert set(back) <= own


def lines_of(page_text: str) -> list[str]:
    return [line for line in page_text.splitlines() if line.startswith("## ")]


@pytest.mark.usefixtures("undrawn")
def test_lost_calls_are_emphasized_on_the_page(results: Results, tmp_path: Path) -> None:
    lost = results.traces.with_columns(expanded_count=pl.col("expanded_count") - 1)
    assert "did NOT come back whole" in page_of(STUDY, StudyParams(tmp_path), replace(results, traces=lost), tmp_path)


def test_document_has_traces_and_checks(results: Results) -> None:
    document: Any = json.loads(json.dumps(STUDY.document(results)))
    assert {row["outcome"] for row in document["checks"]} == {"exact", "refused", "wrong"}
    assert document["traces"][0]["program"] == "at_random"


# ---- models of the guide


def test_models_of_the_guide_work(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "models.py").write_text(code, encoding="utf-8")
    counts = (8, 12, 16, 24, 53)
    known = [decode_runs(find_programs(traced(tmp_path / str(n) / str(n), rounding, n).parent)[0])[0] for n in counts]
    together = compress_together([(run.process_count, run.select_calls(has_nested=False)) for run in known[:-1]])
    assert extrapolate_to(fit_trace(together, ExtrapolationParams()), 53).trace is None
    own = ExtrapolationParams(families=families(tmp_path / "models.py"))
    found = extrapolate_to(fit_trace(together, own), 53)
    assert found.trace is not None
    assert compare_calls(known[-1].select_calls(has_nested=False), found.trace).is_exact
    formulas = {model.formula for model in found.models}
    assert {"1*floor(1000/n)", "1*floor(1000/n)*rank + 1000*i", "1*ceil(log2(n))"} <= formulas
