"""How far apart two programs are: by their tokens, and by their syntax trees.

The token distance sees every name and number and needs no parser. The syntax distance sees what is
done, whatever it is called: names, constants, annotations, docstrings and comments do not count.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from ..parsing import parse_python

MAX_TOKENS = 10_000
"""Tokens of a program that are looked at: an edit takes time for each pair of them, over 64."""

# Linear on any text: every quantifier is possessive, and a quote that is not closed still matches.
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*+)
    |'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\"
    |'(?:\\.|[^'\\\n])*+'?|"(?:\\.|[^"\\\n])*+"?
    |[^\W\d]\w*+|\d[\w.]*+
    |\*\*=?|//=?|<<=?|>>=?|:=|->|[-+*/%@&|^=<>!]=|[^\w\s]""",
    re.VERBOSE,
)
_LEFT_OUT = frozenset({"ctx", "annotation", "returns", "type_comment", "type_ignores"})
_DIGEST_BYTES = 8


def tokens(program: str) -> tuple[str, ...]:
    """Return the first `MAX_TOKENS` tokens of any text, read as Python, comments left out."""
    found: list[str] = []
    for match in _TOKEN.finditer(program):
        if match["comment"] is None:
            found.append(match[0])
            if len(found) == MAX_TOKENS:
                break
    return tuple(found)


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the least number of insertions, deletions and replacements between two sequences.

    Hyyrö's bit-parallel form of Myers's algorithm (2003): a column of the table is a pair of
    integers, so the time is that of `len(other)` operations on integers of `len(one)` bits.
    """
    if len(one) < len(other):
        one, other = other, one
    if not other:
        return len(one)
    places: dict[Hashable, int] = {}
    for number, item in enumerate(one):
        places[item] = places.get(item, 0) | 1 << number
    every, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    more, less, distance = every, 0, len(one)
    for item in other:
        here = places.get(item, 0)
        kept = (((here & more) + more) ^ more) | here
        up, down = (less | ~(kept | more)) & every, more & kept
        distance += bool(up & last) - bool(down & last)
        up, down = (up << 1 | 1) & every, (down << 1) & every
        here |= less
        more, less = (down | ~(here | up)) & every, up & here
    return distance


def token_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return edits over the length of the longer of two token sequences, in [0, 1].

    Two empty sequences are equal: 0.
    """
    longer = max(len(one), len(other))
    return edit_distance(one, other) / longer if longer else 0.0


def syntax_bag(program: str) -> Counter[bytes] | None:
    """Return how often each subtree stands in a program's syntax tree; None: it does not parse.

    A subtree is known by its digest; leaves do not count. See the module for what is left out.
    """
    digests = _digests(program)
    return None if digests is None else Counter(digests[1])


def syntax_distance(one: Mapping[bytes, int], other: Mapping[bytes, int]) -> float:
    """Return 1 minus the cosine of two bags of subtrees, in [0, 1]; two empty bags are equal."""
    if not one or not other:
        return float(bool(one) != bool(other))
    common = sum(count * other[digest] for digest, count in one.items() if digest in other)
    norms = (math.fsum(count * count for count in bag.values()) for bag in (one, other))
    return max(0.0, 1.0 - common / math.sqrt(math.prod(norms)))


def shape(program: str) -> str | None:
    """Return a digest of a program's whole syntax tree, equal for programs of one shape.

    None where the program does not parse.
    """
    digests = _digests(program)
    return None if digests is None else digests[0].hex()


def _digests(program: str) -> tuple[bytes, list[bytes]] | None:
    """Return the digest of the whole tree and those of all subtrees that are no leaves."""
    module = parse_python(program)
    if module is None:
        return None
    # Parents before children, so that the reverse knows the children of whatever it comes to. Not
    # by recursion: a tree may be deeper than the stack.
    order: list[ast.AST] = [module]
    for node in order:
        order.extend(child for _, children in _fields(node) for child in children)
    known: dict[int, bytes] = {}
    inner: list[bytes] = []
    for node in reversed(order):
        digest = hashlib.blake2b(_label(node).encode(), digest_size=_DIGEST_BYTES)
        leaf = True
        for name, children in _fields(node):
            digest.update(f"\0{name}".encode())
            for child in children:
                digest.update(b"\1" + known[id(child)])
                leaf = False
        known[id(node)] = digest.digest()
        if not leaf:
            inner.append(known[id(node)])
    return known[id(module)], inner


def _fields(node: ast.AST) -> Iterator[tuple[str, list[ast.AST]]]:
    for name, value in ast.iter_fields(node):
        if name in _LEFT_OUT:
            continue
        values = value if isinstance(value, list) else [value]
        yield name, [item for item in values if isinstance(item, ast.AST) and not _is_note(item)]


def _is_note(node: ast.AST) -> bool:
    """Whether a statement is a docstring, or another constant that does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _label(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return f"Constant {type(node.value).__name__}"
    return type(node).__name__
