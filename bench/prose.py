"""Prose check: `python -m bench.prose [FILE...]` counts private words, empty docstrings, odd names and long sentences.

Above a limit, findings are listed, in the given files only if there are any. Limits only go down.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

#: maximum rate of each kind of finding, and the total to which it refers
LIMITS = {
    "private words": (300.0, 100_000, "words"),
    "empty docstrings": (2.0, 100, "docstrings"),
    "odd names": (0.8, 100, "functions"),
    "long sentences": (0.0, 1, "checkout"),
}
MAX_SENTENCE_WORDS = 40
#: scipy, polars, scikit-learn and Prefect use each of these at most 10 times per 100,000 words
_PRIVATE = re.compile(
    r"(?<![\w-])(?:told|tells?|so\s+(?:many|long|often|much)|nobody(?:'s)?|whose|what\s+is|of\s+(?:what|which)|asked|beside|"
    r"least|(?:is|are)\s+held|there\s+is|likelier|anew|meanwhile|among\s+them)(?![\w-])",
    re.IGNORECASE,
)
#: a function name that starts with a participle (except verbs and nouns with the same ending), or the name `of`
_PARTICIPLE = re.compile(
    r"_*(?!(?:embed|feed|need|proceed|seed|speed|even|open|ten|then|token|when)(?:_|$))"
    r"(?:[a-z]+(?:ed|en)|told|kept|held|made|known|said|found|left|laid|of$)(?:_|$)"
)
_WORD = re.compile(r"[A-Za-z][\w'-]*")
_FILLER = re.compile(
    r"an?|all|also|and|any|are|as|at|be|been|by|did|do|does|done|each|every|for|from|had|has|have|how|if|in|is|its?|no|not|"
    r"of|on|one|only|or|others?|own|returns?|so|some|than|that|the|their|them|there|these|they|this|those|to|was|were|"
    r"what|when|where|which|who|whose|will|with|yields?"
)
#: ends of sentences, table cells, list items, paragraphs and headings
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\|\s*|\n\s*(?:[-*]|\d+\.)\s+|\n\s*\n|\n#+ ")


class Report(NamedTuple):
    """Findings in files (kind, path, line, text), and their numbers of words, docstrings and functions."""

    findings: list[tuple[str, str, int, str]]
    totals: Counter[str]

    def rate(self, kind: str) -> float:
        """Return the number of findings of a kind, relative to the total that `LIMITS` names."""
        _, scale, total = LIMITS[kind]
        return scale * sum(item[0] == kind for item in self.findings) / max(1, self.totals[total])


def check_python(path: str, source: str) -> Report:
    """Check the docstrings, comments and function names of a module."""
    nodes = list(ast.walk(ast.parse(source)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    documented = [node for node in nodes if isinstance(node, ast.ClassDef | ast.Module)] + functions
    docstrings = [(node, text) for node in documented if (text := ast.get_docstring(node, clean=False))]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    texts += [(node.body[0].lineno, text) for node, text in docstrings]
    violations = [("odd names", node.lineno, node.name) for node in functions if _PARTICIPLE.match(node.name)]
    for node, text in docstrings:
        if not isinstance(node, ast.Module) and is_empty(text):
            violations.append(("empty docstrings", node.body[0].lineno, text.strip().splitlines()[0]))
    matches = [(line, text, match) for line, text in texts for match in _PRIVATE.finditer(text)]
    violations += [
        ("private words", line + text.count("\n", 0, match.start()), match[0]) for line, text, match in matches
    ]
    words = sum(len(_WORD.findall(text)) for _, text in texts)
    totals = Counter(words=words, docstrings=len(docstrings), functions=len(functions))
    return Report([(kind, path, line, text) for kind, line, text in violations], totals)


def is_empty(docstring: str) -> bool:
    """Return whether the first sentence has at most two words, apart from filler words."""
    words = _WORD.findall(re.split(r"(?<=[.:])\s", docstring.strip(), maxsplit=1)[0].lower())
    return sum(not _FILLER.fullmatch(word) for word in words) <= 2


def check_page(path: str, source: str) -> Report:
    """Check the length of sentences outside of code blocks; generated pages are not checked."""
    if re.match(r"<!-- (?:Made|Generated|Written) by", source):
        return Report([], Counter())
    text = re.sub(r"(?s)```.*?```", lambda match: "\n" * match.group().count("\n"), source)
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    places = [(text.count("\n", 0, start) + 1, text[start:end].split()) for start, end in pairwise(ends)]
    long = [(line, f"{len(words)}: {' '.join(words[:8])}") for line, words in places if len(words) > MAX_SENTENCE_WORDS]
    return Report([("long sentences", path, line, words) for line, words in long], Counter())


def check_checkout(root: Path) -> Report:
    """Check every tracked module outside of `tests/`, and every tracked page."""
    listing = subprocess.run(["git", "ls-files", "-z", "*.py", "*.md"], cwd=root, capture_output=True, check=True)
    files = [(name, root / name) for name in listing.stdout.decode().split("\0") if not name.startswith("tests/")]
    checks = {".md": check_page, ".py": check_python}
    reports = [checks[path.suffix](name, path.read_text(encoding="utf-8")) for name, path in files if path.is_file()]
    return Report([item for report in reports for item in report.findings], sum((r.totals for r in reports), Counter()))


def describe(report: Report, paths: list[str]) -> Iterator[tuple[bool, str]]:
    """Yield (is an error, line) for each rate, and for the findings if the rate is above its limit."""
    for kind, (limit, scale, total) in LIMITS.items():
        is_error = report.rate(kind) > limit
        yield is_error, f"{kind}: {report.rate(kind):.1f} per {scale:,} {total}, limit {limit}"
        for finding, path, line, text in report.findings if is_error else []:
            if finding == kind and (not paths or path in paths):
                yield True, f"{path}:{line}: {kind}: {text}"


if __name__ == "__main__":
    lines = list(describe(check_checkout(Path()), sys.argv[1:]))
    print(*(line for _, line in lines), sep="\n")
    sys.exit(any(is_error for is_error, _ in lines))
