"""The prose check finds violations of each rule; pre-commit runs it on the checkout."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench import prose

ROOT = Path(__file__).resolve().parents[2]
MODULE = '''"""A module."""

# nobody is told
#: so many that one
#: may forget
def judged(value: int) -> int:
    """Return what
    is asked of it."""
    return value


class Sum:
    """Add up bytes of all runs of a night."""

    def of(self) -> None:
        """Return the sum."""

    def open_file(self) -> None:
        pass

    def find_period(self) -> None:
        """Find the strongest period of each signal, in seconds."""
'''


def violations(report: prose.Report, kind: str) -> list[tuple[int, str]]:
    return [(line, text) for name, _, line, text in report.findings if name == kind]


def test_violations_of_each_rule_are_found() -> None:
    report = prose.check_python("a.py", MODULE)

    private = [(3, "nobody"), (3, "told"), (4, "so many"), (7, "what\n    is"), (8, "asked")]
    assert sorted(violations(report, "private words")) == private
    assert violations(report, "odd names") == [(6, "judged"), (15, "of")]
    assert violations(report, "empty docstrings") == [(7, "Return what"), (16, "Return the sum.")]
    assert report.totals == Counter(words=38, docstrings=5, functions=4)
    assert report.rate("odd names") == 50


def test_long_sentences_of_a_page_are_found() -> None:
    code, cells = f"```\n{'code ' * 50}\n```", " | ".join(["cell of a table"] * 20)
    page = f"# Page\n\nA short one. {'word ' * 41}\n\n{code}\n\n| {cells} |\n\n- {'item ' * 41}\n- {'item ' * 40}\n"

    assert [line for line, _ in violations(prose.check_page("a.md", page), "long sentences")] == [3, 11]
    assert prose.check_page("a.md", f"<!-- Made by `python -m x`. -->\n{page}").findings == []


@pytest.mark.parametrize(("paths", "listed"), [([], ["a.py:6", "b.py:1"]), (["b.py"], ["b.py:1"])])
def test_rate_above_its_limit_is_an_error(paths: list[str], listed: list[str]) -> None:
    odd = [("odd names", "a.py", 6, "judged"), ("odd names", "b.py", 1, "told")]
    limit, *_ = prose.LIMITS["odd names"]
    lines = list(prose.describe(prose.Report(odd, Counter(functions=2)), paths))

    errors = [line for is_error, line in lines if is_error]
    assert errors[0] == f"odd names: 100.0 per 100 functions, limit {limit}"
    assert [line.split(": ")[0] for line in errors[1:]] == listed


def test_names_that_are_verbs_are_accepted() -> None:
    source = "".join(
        f"def {name}(): pass\n" for name in ("feed", "open_file", "seed_runs", "set_limit", "read_embedded")
    )
    assert prose.check_python("a.py", source).findings == []
