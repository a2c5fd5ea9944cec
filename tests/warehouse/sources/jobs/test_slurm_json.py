"""Test the parsing of values in all forms of Slurm's JSON."""

from __future__ import annotations

from typing import Any

import pytest

from iosig.warehouse.sources.jobs.slurm_json import format_job_id, get_instant, get_number, get_state
from iosig.warehouse.sources.rows.documents import MalformedError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"), ("7", "7"), (None, None), ({"set": True, "infinite": False, "number": 7}, "7"),
        ({"set": False, "number": 7}, None), ({"set": True, "infinite": True, "number": 7}, None), ({"number": 0}, "0"),
    ],
)  # fmt: skip
def test_plain_and_wrapped_numbers_are_parsed(value: Any, text: str | None) -> None:
    assert get_number(value, "it") == text
    assert get_instant(value, "it") == (None if text == "0" else text)


def test_other_values_are_malformed_numbers() -> None:
    with pytest.raises(MalformedError, match="it is not a number"):
        get_number({"number": {}}, "it")


@pytest.mark.parametrize("said", ["RUNNING", ["RUNNING", "CLOUD"], {"current": "RUNNING"}, {"current": ["RUNNING"]}])
def test_first_word_is_the_state(said: Any) -> None:
    assert get_state(said) == "RUNNING"


@pytest.mark.parametrize(
    ("array", "het", "spelled"),
    [
        (("0", None, None), ("0", "0"), "12"),
        (("9", "3", None), ("0", None), "9_3"),
        (("9", None, "[4-9]"), (None, None), "9_[4-9]"),
        (("9", None, None), ("11", "1"), "11+1"),
    ],
)
def test_job_ids_are_formatted_as_in_text_output(array: Any, het: Any, spelled: str) -> None:
    assert format_job_id("12", array, het) == spelled
