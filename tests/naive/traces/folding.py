"""What folded calls mean, the slow way: they are executed again, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transforms.traces.folding import FoldedCall, FoldedNode

#: a symbol that is called, or nodes that are gone through so often as the numbers say, one for each time
Program = int | tuple[tuple[int, ...], tuple["Program", ...]]


def executed(nodes: Sequence[FoldedNode]) -> list[tuple[int, int]]:
    """Return the symbol and the position of each call in the order in which the nodes execute them."""
    found: list[tuple[int, int]] = []
    left: dict[int, Iterator[int]] = {}

    def following(node: FoldedNode) -> int:
        if id(node) not in left:
            left[id(node)] = iter((node.positions if isinstance(node, FoldedCall) else node.counts).tolist())
        return next(left[id(node)])

    def execute(body: Sequence[FoldedNode]) -> None:
        for node in body:
            if isinstance(node, FoldedCall):
                found.append((node.symbol, following(node)))
            else:
                for _ in range(following(node)):
                    execute(node.body)

    execute(nodes)
    assert all(next(numbers, None) is None for numbers in left.values())
    return found


def expanded(program: Program) -> list[int]:
    """Return the symbols that a program calls; a loop's numbers are taken in turn, over and over."""
    entered: dict[int, int] = {}

    def calls(part: Program) -> list[int]:
        if isinstance(part, int):
            return [part]
        counts, body = part
        time = entered.get(id(part), 0)
        entered[id(part)] = time + 1
        return [symbol for _ in range(counts[time % len(counts)]) for inner in body for symbol in calls(inner)]

    return calls(program)
