"""Split lines of Slurm's commands into fields, at the separator of the header: `|`, or another (`--delimiter`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows.rejects import ParsedRows, build_refused_rows

#: fields with text that users choose; any of them may contain the separator
_FREE_TEXT = frozenset(
    [
        "jobname",
        "name",
        "comment",
        "admincomment",
        "systemcomment",
        "submitline",
        "workdir",
        "work_dir",
        "command",
        "extra",
        "container",
        "constraints",
        "features",
        "licenses",
    ]
)
#: lists and texts with commas; they are ambiguous only if the separator is a comma
_WITH_COMMAS = frozenset(
    [
        "nodelist",
        "nodelist(reason)",
        "nodes(reason)",
        "req_nodes",
        "exc_nodes",
        "partition",
        "reason",
        "flags",
        "reqtres",
        "alloctres",
    ]
)
#: text between the first two names of a header; blanks alone separate the columns of a padded table
_BETWEEN = re.compile(r"\s*[A-Za-z][A-Za-z0-9_/]* *([^A-Za-z0-9_/ ]+) *[A-Za-z]")
_FAILURE = r"^\s*(?:sacct|squeue|slurm_[a-z_]+):? *(?:error|fatal): *(.*)$"
_MAX_SHOWN_CHARS = 200
#: start of a comment
COMMENT = "#"
_SURPLUS = "Check for a truncated line. A name may contain the separator: export with --delimiter='^|^'."


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of the fields of a line, in lower case, and their separator; a form without a header may be closed."""

    fields: tuple[str, ...]
    separator: str = "|"
    #: whether lines end with the separator, as with `--parsable`
    is_closed: bool = True

    @classmethod
    def parse(cls, line: str) -> Layout | None:
        """Parse a line that may be a header; the separator of `--parsable` also ends the line. None without one."""
        match = _BETWEEN.match(line)
        if match is None:
            return None
        text = line.strip(" \r\n")
        is_closed = text.endswith(match[1])
        cells = text.removesuffix(match[1]).split(match[1])
        return cls(tuple(cell.strip().lower() for cell in cells), match[1], is_closed)

    @property
    def has_free_end(self) -> bool:
        """Whether surplus separators belong to the last field, because no other field may contain them."""
        texts = _FREE_TEXT | _WITH_COMMAS if self.separator == "," else _FREE_TEXT
        return self.fields[-1] in texts and not texts & set(self.fields[:-1])

    def split(self, lines: pl.DataFrame, expected: str = "") -> ParsedRows:
        """Split lines (`line`, `raw`) into a column per field, named `field_0` and so on, beside `line` and `raw`.

        Lines with another number of fields are comments, or refused; `expected` describes the correct number. Raises
        InputRefused for an error message of Slurm, since the log is incomplete then.
        """
        width, separator = len(self.fields), self.separator
        count = pl.col("raw").str.count_matches(separator, literal=True).cast(pl.Int64) + 1
        is_closed = pl.col("raw").str.ends_with(separator) & (count > width) & pl.lit(self.is_closed)
        surplus = count - width - is_closed.cast(pl.Int64)
        # two merged lines have about twice the number of fields; this differs from free text with separators
        is_overlong = surplus.is_between(1, width - 2) & pl.lit(self.has_free_end)
        fits = lines.select((surplus == 0) | is_overlong).to_series()
        # a field may begin with the mark of a comment
        misfits = lines.filter(~fits & ~lines["raw"].str.starts_with(COMMENT))
        if failure := find_failure(misfits["raw"]):
            raise failure
        reason = pl.format("The line has {} fields; {}.", count, pl.lit(expected or f"the header has {width}"))
        text = pl.when(is_closed).then(pl.col("raw").str.strip_suffix(separator)).otherwise("raw")
        rows = lines.filter(fits).select("line", "raw", parts=text.str.splitn(separator, width)).unnest("parts")
        return ParsedRows(rows, build_refused_rows(misfits, reason, _SURPLUS))


def find_failure(lines: pl.Series) -> InputRefused | None:
    """Find an error message of Slurm's commands; return the refusal that quotes it."""
    messages = lines.str.extract(_FAILURE).drop_nulls()
    if messages.is_empty():
        return None
    return InputRefused(
        f"The output contains an error of Slurm, so it is incomplete: {messages[0][:_MAX_SHOWN_CHARS].rstrip('.')}.",
        "Export it again; write error messages to another file.",
    )
