"""Options for the test of outliers in the spectrum, by which FTIO's methods find frequencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from iosig.cli.options import refuse

if TYPE_CHECKING:
    from iosig.settings.model import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])

_TESTS = ("z_score", "dbscan", "isolation_forest", "local_outlier_factor", "find_peaks")
#: names that FTIO accepts, reduced to letters
_OTHER_NAMES = {
    "zscore": "z_score",
    "db": "dbscan",
    "forest": "isolation_forest",
    "isolationforest": "isolation_forest",
    "lof": "local_outlier_factor",
    "localoutlierfactor": "local_outlier_factor",
    "peak": "find_peaks",
    "peaks": "find_peaks",
    "findpeaks": "find_peaks",
}


class _OutlierChoice(click.Choice[str]):
    def __init__(self) -> None:
        super().__init__(_TESTS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Map FTIO's names of the tests to those of this option; case and punctuation are ignored."""
        letters = "".join(filter(str.isalpha, str(value))).lower()
        return super().convert(_OTHER_NAMES.get(letters, letters), param, ctx)


def outlier_options(command: _Command) -> _Command:
    """Add the options `--outliers` and `--outlier-merge` to a command."""
    test = click.option(
        "--outliers",
        type=_OutlierChoice(),
        help="With dft and merged: test that finds outlying frequencies in the spectrum (FTIO's paper, section II-B2). "
        "FTIO's names, such as lof, are accepted. Default: [periods] outliers in the settings, which is z_score.",
    )
    merge = click.option(
        "--outlier-merge",
        type=click.Choice(["none", "agreement", "union"]),
        help="Merge of another test with the Z-score: that test alone, frequencies that are outliers for both, or for "
        "either. Default: [periods] outlier_merge in the settings, which is none.",
    )
    return test(merge(command))


def override_outliers(
    settings: Settings, method: str, methods: Sequence[str], outliers: str | None, merge: str | None
) -> Settings:
    """Replace settings by the given options; raises UsageError with a method that is not one of `methods`."""
    names = f"{', '.join(methods[:-1])} or {methods[-1]}"
    fault = f"has no effect with --method {method}: use it with {names}."
    has_effect = method in methods
    refuse(
        (outliers and not has_effect, f"--outliers {fault}"),
        (merge and not has_effect, f"--outlier-merge {fault}"),
    )
    options = {"outliers": outliers, "outlier_merge": merge}
    changes = {name: value for name, value in options.items() if value is not None}
    return settings.model_copy(update={"periods": settings.periods.model_copy(update=changes)}) if changes else settings
