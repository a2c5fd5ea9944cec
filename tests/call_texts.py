"""Arguments as they may stand in a trace, however odd, drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

#: numbers of all lengths, filled up or not, with signs or what looks like one
_NUMBERS = (
    *("0", "7", "12", "123", "07", "007", "00", "-5", "--5", "0-0", "12-3", "1.5e-3", "0x7f", "٣²"),
    *("9" * 18, "1" + "0" * 17, "9" * 19, "0" * 18, "0" * 19, "1234567890123456789012345678901234567890"),
)
_STATUSES = (
    "[5_3]",
    "[-5_3]",
    "[5_-3]",
    "[-5_-3]",
    "[-0_3]",
    "[5_-03]",
    "[-07_3]",
    "[-33808_-21]",
    f"[-{'9' * 19}_-3]",
)
_WORDS = (
    "/a/f",
    "f.",
    "",
    "%p",
    "é_日本",
    "[",
    "]",
    "_",
    "-",
    "[-",
    "_-",
    "a\nb",
    "\x01",
    "$1",
    "\\1",
    "MPI_COMM_WORLD",
)
#: names of one kind with numbers that are all filled up to one width
_NAMES = ("f.00000001", "f.00000123", "f.12345678")


def arguments() -> st.SearchStrategy[str]:
    """Draw the arguments of a call: numbers, statuses and words with spaces between them or without."""
    parts = st.one_of(st.sampled_from(_NUMBERS), st.sampled_from(_STATUSES), st.sampled_from(_WORDS + _NAMES))
    return st.tuples(st.lists(parts, max_size=4), st.sampled_from([" ", " ", "", "  "])).map(
        lambda drawn: drawn[1].join(drawn[0])
    )
