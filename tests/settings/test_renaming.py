"""Settings files of commit 18b5d00 are refused with the new names, and rewritten by upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosig.settings import model
from iosig.settings.renaming import has_former_names, rename_settings
from iosig.warehouse.errors import UsageError
from tests.nights import Cli

FORMER = """
# our site
[signatures]
methods = [
    "warped",  # the default
    'iosi',
]
least_sample_count = 4
  longest_s=600    # [s]

[watch] # who is told
jump_ratio = 5.0
mail_to = ["ops@example.org"]

[periods]
server_window_levels = 3
z_score = 2.5

[polls.columns]
polled_at = "late_s"
"""
PRESENT = """
# our site
[signatures]
methods = [
    "elastic",  # the default
    'iosi',
]
min_sample_count = 4
  max_duration_s=600    # [s]

[alerts] # who is told
anomaly_factor = 5.0
mail_to = ["ops@example.org"]

[periods]
z_score = 2.5

[polls.columns]
polled_at = "late_s"
"""


@pytest.fixture
def former(tmp_path: Path) -> Path:
    path = tmp_path / "iosig.toml"
    path.write_text(FORMER)
    path.chmod(0o640)
    return path


def test_names_and_values_are_rewritten_and_the_rest_is_kept(former: Path, tmp_path: Path) -> None:
    assert has_former_names(former)
    aside = rename_settings(former)
    assert (former.read_text(), aside.read_text()) == (PRESENT, FORMER)
    assert former.stat().st_mode & 0o777 == aside.stat().st_mode & 0o777 == 0o640
    assert not has_former_names(former)
    assert model.load(former, tmp_path).alerts.anomaly_factor == 5.0


def test_inline_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "iosig.toml"
    path.write_text("watch = { jump_ratio = 5.0 }\n")
    with pytest.raises(UsageError, match=r"rename its settings by docs/upgrading\.md"):
        rename_settings(path)
    assert path.read_text() == "watch = { jump_ratio = 5.0 }\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[signatures]\nleast_sample_count = 4",
            "signatures.least_sample_count: renamed to signatures.min_sample_count",
        ),
        ('[periods]\nmethods = ["controlled"]', "periods.methods.0: renamed to null_tested"),
        ("[watch]\njump_ratio = 3", "watch: renamed to alerts"),
        ("[counters]\nlate_s = 3", "counters.late_s: renamed to counters.grace_s"),
    ],
)
def test_former_names_are_refused_with_the_new_ones(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "iosig.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="`iosig upgrade` renames it") as refusal:
        model.load(path, tmp_path)
    assert expected in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("who", "lake", "--hurt"), "'who --hurt' was renamed to `iosig slowdowns`."),
        (("who", "lake", "--unknown"), "'who --unknown' was renamed to `iosig patterns`."),
        (("study", "unexplained"), "'study unexplained' was renamed to `iosig study unattributed`."),
        (("plot", "map", "--to", "x.png"), "'--to' was renamed to '--output'."),
        (("predict", "--anew"), "'--anew' was renamed to '--reset'."),
        (("status", "--every", "3"), "'--every' was renamed to '--interval'."),
    ],
)
def test_former_options_are_refused_with_the_new_ones(cli: Cli, arguments: tuple[str, ...], expected: str) -> None:
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert expected in " ".join(err.split())
