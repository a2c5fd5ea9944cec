"""Tables fit a terminal by wrapping texts and omitting columns, and numbers of a column are aligned."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from iosig.cli.printing import show
from iosig.cli.table_layout import GAP, amount_texts, fit_table, measure_width, number_texts, wrap_text

NAMES = ("application", "file system", "what happened", "volume")
ROW = ("ann/a_long_name_of_a_program/16", "scratch", "one two three four five six seven eight nine ten", "689 GB")
NUMBERS = (False, False, False, True)


def taken(widths: tuple[int, ...]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def test_table_with_enough_room_keeps_natural_widths() -> None:
    fit = fit_table(NAMES, [ROW], NUMBERS, 200)
    assert (fit.columns, fit.widths) == ((0, 1, 2, 3), (31, 11, 48, 6))
    assert fit_table(NAMES, [ROW], NUMBERS, None) == fit


def test_texts_are_wrapped_before_columns_are_omitted() -> None:
    fit = fit_table(NAMES, [ROW], NUMBERS, 80)
    assert fit.columns == (0, 1, 2, 3)
    assert taken(fit.widths) == 80
    assert fit.widths[3] == 6, "a number is not wrapped"


def test_columns_of_lowest_priority_are_omitted_first() -> None:
    assert fit_table(NAMES, [ROW], NUMBERS, 60, ("file system",)).columns == (0, 2, 3)
    assert fit_table(NAMES, [ROW], NUMBERS, 60).columns == (0, 1, 2)
    assert fit_table(NAMES, [ROW], NUMBERS, 5, ("application",)).columns == (0,), "the first one stays"


@given(
    st.lists(st.lists(st.text(max_size=60), min_size=3, max_size=3), max_size=4),
    st.integers(1, 150),
)
def test_no_line_exceeds_the_width(rows: list[list[str]], width: int) -> None:
    fit = fit_table(("a", "b", "c"), rows, (False, False, True), width)
    assert taken(fit.widths) <= width
    for row in rows:
        for place, own in zip(fit.columns, fit.widths, strict=True):
            if own > 1:
                assert all(measure_width(line) <= own for line in wrap_text(row[place], own))


@given(st.text(max_size=80), st.integers(2, 40))
def test_wrapping_loses_only_spaces(text: str, width: int) -> None:
    assert "".join("".join(wrap_text(text, width)).split()) == "".join(text.split())


def test_texts_break_between_words_and_after_slashes() -> None:
    assert wrap_text("no whole word is cut", 8) == ["no whole", "word is", "cut"]
    assert wrap_text("ann/program/16", 12) == ["ann/program/", "16"]
    assert wrap_text("deoxyribonucleic", 6) == ["deoxyr", "ibonuc", "leic"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([470.0, 624.3], ["470.0", "624.3"]),
        ([470.0, 600.0], ["470", "600"]),
        ([1.0, 2, None], ["1", "2", None]),
        ([0.5, 12_345.6], ["0.5", "12,346"]),
        ([1e-9, 3.0], ["1e-09", "3"]),
        ([1234, 5], ["1,234", "5"]),
        ([0.0, 0.25, 0.1], ["0.00", "0.25", "0.10"]),
    ],
)
def test_numbers_of_a_column_share_their_precision(values: list[float | None], texts: list[str | None]) -> None:
    assert number_texts(values) == texts


@pytest.mark.parametrize(
    ("given_texts", "texts"),
    [
        (["5 MB", "65.1 MB", "0 B"], ["5.00 MB", "65.1 MB", "0 B"]),
        (["7.4 ms", "1 s"], ["7.40 ms", "1.00 s"]),
        (["15.562 s", "17.5 s", "-"], ["15.562 s", "17.500 s", "-"]),
        (["0.00012 s", "0.5 s"], ["0.00012 s", "0.50000 s"]),
        (["2.50748 s", "29.1 s"], ["2.507 s", "29.100 s"]),
        (["60 GB", "75 GB"], ["60 GB", "75 GB"]),
    ],
)
def test_amounts_of_a_column_share_their_precision(given_texts: list[str], texts: list[str]) -> None:
    assert list(amount_texts(given_texts)) == texts


@pytest.mark.parametrize("width", [40, 80])
def test_table_names_omitted_columns(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"column_{number}" for number in range(20))
    monkeypatch.setenv("COLUMNS", str(width))
    show("A title of some words that is longer than forty letters", names, [tuple(range(20))], alternatives="--wide")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    told = " ".join(lines)
    shown = len(lines[[line.startswith("column_0") for line in lines].index(True)].split())
    assert f"… {20 - shown} more columns: column_{shown}, " in told
    assert "(--wide)" in told


def test_row_is_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    show("", ("name", "text"), [("x" * 100, "word " * 50)])
    assert capsys.readouterr().out.splitlines()[2] == f"{'x' * 100}  {('word ' * 50).rstrip()}"


def test_amounts_are_right_aligned_and_ids_left_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show("", ("id", "volume"), [("100", "689 GB"), ("9", "65.1 GB")])
    assert capsys.readouterr().out.splitlines()[2:4] == ["100   689 GB", "9    65.1 GB"]
