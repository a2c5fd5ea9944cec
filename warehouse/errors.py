"""Define errors that a user can fix; each class has its own exit code."""

from __future__ import annotations

from collections.abc import Iterable

from iosig.warehouse.printable import printable


def meant(name: str, candidates: Iterable[str], *, max_count: int = 3) -> str:
    """Suggest the current name of a renamed setting or column, or similar names; return "" if none is similar."""
    from difflib import get_close_matches

    from iosig.warehouse.renames import present_names

    names = list(candidates)
    if renamed := [new for new in present_names(name.lower()) if new in names]:
        return f" It was renamed to {renamed[0]}."
    matches = get_close_matches(name.lower(), names, n=max_count, cutoff=0.6)
    return f" Did you mean {' or '.join(matches)}?" if matches else ""


class IosigError(Exception):
    """Base class of errors that are shown without a traceback; the message names the problem and the remedy.

    The message may quote a server, a file or a name, so control characters in it are replaced.
    """

    exit_code = 1

    def __str__(self) -> str:
        """Format the message so that terminals, logs, artifacts and notifications display it safely."""
        return printable(super().__str__())


class ContractError(IosigError):
    """Raised when rows or columns violate the table's contract: a bug in iosig that a cast must not hide."""


class UsageError(IosigError):
    """Raised when a request is invalid and the user must change it."""

    exit_code = 2


class MissingExtra(UsageError):
    """Raised when an optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs missing packages: run `uv sync --extra {extra}` in the checkout, or the wheel's "
            f"iosig[{extra}]."
        )
        self._given = feature, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        """Support pickling, so that the error can cross process boundaries."""
        return type(self), self._given


class InputRefused(IosigError):
    """Raised when an input cannot be read at all; processing continues with the other inputs."""

    exit_code = 3

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason} {remedy}")
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[InputRefused], tuple[str, str]]:
        """Support pickling, so that the error can cross process boundaries."""
        return type(self), (self.reason, self.remedy)


class GateFailed(IosigError):
    """Raised when a critical expectation fails, which blocks the release."""

    exit_code = 4


class NothingToDo(IosigError):
    """Raised when the requested work is already done."""

    exit_code = 5


class MachineFault(IosigError):
    """Raised when the machine or a service fails: disk space, permissions, memory, damaged files, a server."""

    exit_code = 6
