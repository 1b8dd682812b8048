"""A search tree as one self-contained page: every answer whole, a click away.

No scripts, no links, no fonts from elsewhere. Whatever agents wrote is escaped, so a page may be
opened and shared without care.
"""

from __future__ import annotations

import re
from html import escape

from ..spaces import replace_surrogates
from .tree import ROOT, Node, SearchTree

_INDENT, _DEEPEST = 1.6, 24
"""Ems for each level, and the level from which on nothing moves further right."""

_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f]")

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
details { margin: 2px 0; border-left: 4px solid #bbb; padding: 1px 0.6em; }
details.solved { border-color: #14822a; }
details.best { background: #fff6d6; }
summary { cursor: pointer; }
pre { background: #f4f4f4; padding: 0.6em; overflow-x: auto; white-space: pre-wrap; }
.score { display: inline-block; width: 3em; font-variant-numeric: tabular-nums; }
.note { color: #666; }
"""


def tree_to_html(tree: SearchTree, *, title: str = "Search tree", statement: str = "") -> str:
    """Return a page that shows the tree, each node below its parent.

    Args:
        tree: what to show.
        title: of the page, a task's id for instance.
        statement: what the agents answered; empty: not shown.
    """
    best = tree.best
    solved = sum(node.solved for node in tree)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{_safe(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_safe(title)}</h1>",
        f'<p class="note">{len(tree)} nodes, {solved} solved, depth {tree.max_depth}.</p>',
    ]
    if statement:
        parts.append(f"<pre>{_safe(statement)}</pre>")
    stack = list(reversed(tree.children(ROOT)))
    while stack:  # not by recursion: a tree may be deeper than Python's stack
        node = stack.pop()
        parts.append(_node(node, is_best=node is best))
        stack += reversed(tree.children(node.id))
    parts.append("</body></html>")
    return "\n".join(parts)


def _node(node: Node, *, is_best: bool) -> str:
    marks = [name for name, on in (("solved", node.solved), ("best", is_best)) if on]
    indent = min(node.depth - 1, _DEEPEST) * _INDENT
    parent = "root" if node.parent_id == ROOT else str(node.parent_id)
    facts = " ".join((node.verdict.status, *marks))
    failure = node.verdict.feedback.failure
    body = [f"<pre>{_safe(node.reply)}</pre>"]
    if failure is not None:
        lines = [
            f"{name}:\n{text}"
            for name, text in (
                ("input", failure.input),
                ("expected", failure.expected),
                ("actual", failure.actual),
                ("error", failure.error),
            )
            if text
        ]
        body.append(f'<p class="note">{_safe(failure.name)}: {_safe(failure.status)}</p>')
        body.append(f"<pre>{_safe(chr(10).join(lines))}</pre>" if lines else "")
    return (
        f'<details class="{" ".join(marks)}" style="margin-left:{indent:.1f}em">'
        f'<summary><span class="score">{node.score:.2f}</span> <b>{node.id}</b> from {parent}, '
        f'{_safe(node.agent)} <span class="note">{_safe(facts)}</span></summary>'
        f"{''.join(body)}</details>"
    )


def _safe(text: str) -> str:
    """Return text for HTML: escaped, encodable, and without characters that HTML forbids."""
    return escape(_FORBIDDEN.sub("\ufffd", replace_surrogates(text)))
