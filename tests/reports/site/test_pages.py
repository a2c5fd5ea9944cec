"""The declarations of pages are complete, and their command lines are quoted safely."""

from __future__ import annotations

import re
import shlex

from hypothesis import given, settings, strategies as st

from iosig.reports.site.figures import command_line
from iosig.reports.site.pages import PAGES
from tests.budget import examples

_NAMES = {"application_id", "filesystem", "direction", "cluster", "job_id", "started_at", "day"}


def test_every_figure_is_described() -> None:
    for page in PAGES:
        assert page.figures
        assert len({figure.name for figure in page.figures}) == len(page.figures)
        for figure in page.figures:
            assert figure.shows.endswith(".")
            assert figure.matters.endswith(".")
            assert set(re.findall(r"\$(\w+)", figure.query)) <= _NAMES


@given(st.text(st.characters(exclude_characters="\0"), max_size=40))
@settings(max_examples=examples(50), deadline=None)
def test_name_in_a_command_is_quoted_for_shell_and_sql(name: str) -> None:
    words = shlex.split(command_line("select 1 where x = $application_id", {"application_id": name}))
    assert words[:2] == ["iosig", "sql"]
    literal = words[2].removeprefix("select 1 where x = ")
    assert len(words) == 3
    assert literal[1:-1].replace("''", "'") == name


def test_plain_command_is_not_escaped() -> None:
    assert command_line("from jobs\n  limit 3") == 'iosig sql "from jobs limit 3"'
    assert command_line("select $day", {"day": "$(ls)"}) == "iosig sql 'select '\"'\"'$(ls)'\"'\"''"
