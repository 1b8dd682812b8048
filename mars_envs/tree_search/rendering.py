"""A search tree as text: one line for each node, or with the programs shown."""

from __future__ import annotations

from ..terminal import printable
from .tree import ROOT, Node, SearchTree

_LINE = 60


def tree_to_text(tree: SearchTree, *, programs: bool = False, best: Node | None = None) -> str:
    """Return the tree, indented, each node below its parent.

    Args:
        tree: what to show.
        programs: show each program whole below its line, instead of its first line.
        best: the node that is marked; None: that of the best public score, of equals the latest.

    Example:
        >>> from mars_envs.tree_search.tree import verdict_of_score
        >>> tree = SearchTree()
        >>> first = tree.add(ROOT, "coder_0", verdict_of_score(0.0), "print(1)")
        >>> second = tree.add(first.id, "coder_1", verdict_of_score(1.0), "print(2)")
        >>> print(tree_to_text(tree))
        task
        └─ 0  coder_0  0.00  wrong_answer  print(1)
           └─ 1  coder_1  1.00  accepted  solved  best  print(2)
    """
    best = best or tree.best
    lines = ["task"]
    # Node, and the indentation of its line; a stack, since trees may be deeper than Python's.
    stack = [(child, "") for child in reversed(tree.children(ROOT))]
    while stack:
        node, indent = stack.pop()
        siblings = tree.children(node.parent_id)
        last = node.id == siblings[-1].id
        below = indent + ("   " if last else "│  ")
        children = tree.children(node.id)
        lines.append(
            f"{indent}{'└─ ' if last else '├─ '}{_line(node, node is best, preview=not programs)}"
        )
        if programs:
            bar = "│    " if children else "     "
            source = _source(node).strip("\n").splitlines()
            lines += [f"{below}{bar}{printable(line.expandtabs(4))}".rstrip() for line in source]
        stack += [(child, below) for child in reversed(children)]
    return "\n".join(lines)


def _source(node: Node) -> str:
    return node.verdict.program or node.reply


def _line(node: Node, is_best: bool, *, preview: bool) -> str:
    words = [str(node.id), node.agent, f"{node.score:.2f}", node.verdict.status]
    if node.solved:
        words.append("solved")
    if is_best:
        words.append("best")
    if preview:
        first = next((line for line in _source(node).splitlines() if line.strip()), "")
        words.append(_cut(printable(first.strip())))
    return "  ".join(words).rstrip()


def _cut(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
