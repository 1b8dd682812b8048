r"""The answer in a reply: what stands in its last `\boxed{}`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKENS = re.compile(r"[{}]|\\(boxed|fbox)\b(?:\s*(\{))?")
_BOX = re.compile(r"\\(?:boxed|fbox)\b")
_TAIL = 300
"""Characters at the end of a reply in which the reference looks for a box."""
_DROPPED = re.compile(r"\n|\\!|\\left|\\right|\^\{\\circ\}|\^\\circ|\\\$|\\%")
_THINK_END = "</think>"


def boxed(reply: str) -> str | None:
    r"""Return the content of the last box of `reply`, trimmed; None where there is none.

    A box is `\boxed{...}` with balanced braces; where there is none, `\fbox{...}`; where there is
    none either, the rest of the line behind the last `\boxed `, up to a `$`. Of nested boxes the
    innermost counts. A box that is never closed is none, so a reply that was cut in its second box
    still has its first one. Only what follows the last `</think>` is read. Linear in the length.

    Example:
        >>> boxed(r"First \boxed{Lyon}, no: \boxed{\text{Paris}}.")
        '\\text{Paris}'
    """
    text = without_thinking(reply)
    first = _BOX.search(text)
    if first is None:
        return None
    open_braces: list[tuple[int, str]] = []  # where its content begins, and whose brace it is
    last: dict[str, tuple[int, int]] = {}
    bare = -1
    for token in _TOKENS.finditer(text, first.start()):
        name = token[1] or ""
        if token[0] == "}":
            if open_braces:
                start, owner = open_braces.pop()
                if owner and start > last.get(owner, (-1, -1))[0]:
                    last[owner] = start, token.start()
        elif token[0] == "{" or token[2]:
            open_braces.append((token.end(), name))
        elif name == "boxed" and text[token.end() : token.end() + 1] in (" ", "\t"):
            bare = token.end()
    for owner in ("boxed", "fbox"):
        if owner in last:
            start, end = last[owner]
            return text[start:end].strip()
    if bare < 0:
        return None
    return text[bare:].partition("\n")[0].partition("$")[0].strip() or None


def without_thinking(reply: str) -> str:
    """Return what follows the last `</think>`; all of `reply` where there is none."""
    return reply.rpartition(_THINK_END)[2]


def math_strict(reply: str, golds: str | Sequence[str]) -> bool:
    r"""Whether the box in the last 300 characters of `reply` equals any of `golds`.

    The answer reward that MemAgent and PI-Mem are trained with: text behind the last `</think>`,
    its end, in lower case, the last box, compared by `normalize_math`. Neither articles nor
    punctuation are forgiven ("Paris." is not "paris"), and a box with more than 300 characters
    behind it is lost. Golds are compared in lower case, too.
    """
    found = boxed(without_thinking(reply)[-_TAIL:].lower())
    if found is None:
        return False
    wanted = [golds] if isinstance(golds, str) else golds
    return any(normalize_math(found) == normalize_math(gold.lower()) for gold in wanted)


def normalize_math(text: str) -> str:
    r"""Return `text` as the MATH data set compares answers.

    Without line ends, spaces, `\!`, `\left`, `\right`, degrees, `\$` and `\%`; double backslashes
    become single ones, `tfrac` and `dfrac` `frac`, and " ." becomes " 0.".
    """
    text = text.replace("\n", "").replace("\\!", "").replace("\\\\", "\\")
    text = text.replace("tfrac", "frac").replace("dfrac", "frac")
    text = _DROPPED.sub("", text)
    return text.replace(" .", " 0.").replace(" ", "")
