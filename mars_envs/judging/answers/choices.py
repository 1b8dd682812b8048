"""Multiple choice: which choice an answer means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .text import bare, normalize_answer

_LETTER = re.compile(
    r"(?:(?:the )?(?:correct )?(?:answer|choice|option)(?: is)? ?:? ?)?"
    r"(?:[(\[]([a-z])[)\]]|([a-z])(?:[.:)]|(?= [-–—] )|$))[.:]?(?: .*)?",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\{([^{}]*)\}")


def choice_index(answer: str, choices: Sequence[str]) -> int | None:
    r"""Return which of `choices` `answer` means, from 0; None where it is not clear.

    It may be the text of a choice, or its letter, alone or as in "(B)", "B.", "B) the text",
    "B - the text", "answer: B", "option B"; in any case, and in a `\text{}`.

    Example:
        >>> choice_index("(b)", ["Paris", "London"])
        1
    """
    # With single spaces between words, the pattern has only one way to read a text.
    text = " ".join(answer.split())
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        text = wrapped[1].strip()
    for same in (bare, normalize_answer):
        wanted = same(text)
        for index, choice in enumerate(choices):
            if wanted and same(choice) == wanted:
                return index
    found = _LETTER.fullmatch(text.strip(" *"))
    if found is None:
        return None
    index = ord((found[1] or found[2]).lower()) - ord("a")
    return index if index < len(choices) else None
