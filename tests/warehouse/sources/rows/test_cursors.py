"""Places that move on together are where they would be, moved one by one."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from iosig.warehouse.sources.rows.cursors import Cursors, between, bytes_at, marks


def test_places_move_over_names_and_numbers_of_any_length() -> None:
    dice = random.Random(7)
    numbers = ["", "0", "007", "9" * 19, "1" * 8, "2" * 16, *(str(dice.randrange(10**n)) for n in range(1, 20))]
    lines = [f"ab={number}{dice.choice(('', 'i', 'u', 'x'))} 5" for number in numbers]
    content = "\n".join(lines).encode()
    starts = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])])
    places = Cursors(content, starts)
    assert places.passes(b"ab=").all()
    values, lengths = places.number()
    assert values.tolist() == [int(number or 0) for number in numbers]
    assert lengths.tolist() == [len(number) for number in numbers]
    places.skip(b"iu")
    left = [re.sub("^ab=[0-9]*[iu]?", "", line) for line in lines]
    assert bytes_at(content, places.at).tolist() == [ord(line[0]) for line in left]
    assert places.only(np.array([1])).at.tolist() == [places.at[1]]
    assert places.passes(b" 5").tolist() == [line == " 5" for line in left]


@pytest.mark.parametrize("end", ["1234567", "12345678", "", "x"])
def test_behind_the_end_there_is_nothing(end: str) -> None:
    content = f"0123456789 {end}".encode()
    places = Cursors(content, np.array([11, len(content), len(content) + 9]))
    assert places.number()[0].tolist() == [int(end) if end.isdigit() else 0, 0, 0]
    assert not places.passes(b"x" * 30).any()
    assert Cursors(content, np.array([0, 2, 9])).passes(b"0123456789").tolist() == [True, False, False]


def test_a_content_is_parted_at_its_blanks_and_line_ends() -> None:
    content = ("a few words\tand more\n" * 20_000).encode()
    assert marks(content).tolist() == [found.start() for found in re.finditer(rb"[\x00- ]", content)]
    assert marks(b"").tolist() == []
    told = between(content, np.array([2, 21]), np.array([20, 41]))
    assert told.to_list() == [content[2:20], content[21:41]]
    with pytest.raises(ValueError, match="too short"):
        between(content, np.array([2]), np.array([14]))
