"""What can go wrong that a user can mend; each kind has its exit code."""

from __future__ import annotations

from collections.abc import Iterable

from iosig.warehouse.printable import printable


def meant(name: str, known: Iterable[str], *, most: int = 3) -> str:
    """Return a sentence that names the present name of a renamed one, or else similar known names; empty if none."""
    from difflib import get_close_matches

    from iosig.warehouse.renames import present_names

    names = list(known)
    if renamed := [new for new in present_names(name.lower()) if new in names]:
        return f" It was renamed to {renamed[0]}."
    near = get_close_matches(name.lower(), names, n=most, cutoff=0.6)
    return f" Did you mean {' or '.join(near)}?" if near else ""


class IosigError(Exception):
    """A fault to be shown without a traceback: what is wrong and what to do about it.

    Its text may quote a server, a file or a name, so control characters in it are replaced.
    """

    exit_code = 1

    def __str__(self) -> str:
        """Return the message as it may be shown, wherever it goes: a terminal, a log, an artifact, a notice."""
        return printable(super().__str__())


class ContractError(IosigError):
    """Rows or columns that differ from the table's contract: a bug on our side, never cast away."""


class UsageError(IosigError):
    """A request that cannot be carried out as it was put."""

    exit_code = 2


class MissingExtra(UsageError):
    """What needs a package that is installed only where it is asked for."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs packages that are not installed: `uv sync --extra {extra}` in the checkout, or the wheel's "
            f"iosig[{extra}]."
        )
        self._given = what, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        """Let it come from another process."""
        return type(self), self._given


class InputRefused(IosigError):
    """An input that cannot be read at all: the whole file is refused, the others go on."""

    exit_code = 3

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason} {remedy}")
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[InputRefused], tuple[str, str]]:
        """Let it come from another process."""
        return type(self), (self.reason, self.remedy)


class GateFailed(IosigError):
    """A critical expectation that does not hold: nothing is released."""

    exit_code = 4


class NothingToDo(IosigError):
    """All that was asked for is done already."""

    exit_code = 5


class MachineFault(IosigError):
    """What the machine or its disk does not give: space, rights, memory, sound files, a server."""

    exit_code = 6
