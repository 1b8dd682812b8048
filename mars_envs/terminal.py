"""What may be shown on a terminal of texts that others wrote."""

from __future__ import annotations

import json
import re
from typing import Any

# JSON writers escape what is below a blank; terminals also heed DEL and the C1 controls, and a lone
# surrogate cannot be written at all.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, *, keep: str = "") -> str:
    r"""Return a text of the same length with blanks for what does not print.

    Models and documents could else move the cursor, clear the screen or reverse the text.

    Args:
        text: any.
        keep: characters that stay as they are, e.g. a line break.

    Example:
        >>> printable("\x1b[31mred\n", keep="\n")
        ' [31mred\n'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else " " for char in text)


def printable_json(value: Any) -> str:
    r"""Return a value as JSON in which all that does not print is escaped; it reads the same.

    Example:
        >>> printable_json("é\x1b\x9b")
        '"é\\u001b\\u009b"'
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
