"""Output validators of problem packages as checkers of ours.

A validator is a program: `validator INPUT ANSWER FEEDBACK_DIR [FLAGS] < OUTPUT`, which ends with
exit status 42 to accept and 43 to reject. The checker made here runs it in the sandbox's slot for
trusted checkers, with these files in a private folder. Many validators break on an output of the
wrong form: that is a rejection, if the validator accepts the judges' own answer, and else the
validator's fault, for which no program is judged.
"""

from __future__ import annotations

from collections.abc import Sequence

_CHECKER = """
import io
import os
import sys
import tempfile


def check(input, output, expected):
    status = validate(input, output, expected)
    if status not in (42, 43) and validate(input, expected, expected) != 42:
        raise ValueError(f"the output validator ended with {{status!r}}, not with 42 or 43")
    return status == 42


def validate(input, output, expected):
    folder = tempfile.mkdtemp()
    names = [os.path.join(folder, name) for name in ("input.in", "answer.ans")]
    for name, text in zip(names, (input, expected)):
        with open(name, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    feedback = os.path.join(folder, "feedback") + os.sep
    os.mkdir(feedback)
    raw = output.encode("utf-8", "surrogateescape")
    kept = sys.stdin, sys.stdout, sys.stderr, sys.argv
    sys.stdin = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", errors="surrogateescape")
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    sys.argv = ["validator", *names, feedback, *{flags!a}]
    status = 0
    try:
        exec(compile({source!a}, "validator.py", "exec"), {{"__name__": "__main__"}})
    except SystemExit as leaving:
        status = leaving.code
    except Exception as error:
        status = repr(error)
    finally:
        sys.stdin, sys.stdout, sys.stderr, sys.argv = kept
    return status
""".lstrip()


def checker_source(validator: str, flags: Sequence[str] = ()) -> str:
    """Return the source of a checker that runs an output validator.

    Args:
        validator: its source, in Python.
        flags: further arguments for it.
    """
    return _CHECKER.format(source=validator, flags=list(flags))
