"""The two ways of taking a program out of a reply, side by side.

What `lcb` has to give is fixed by the published rule (lines that contain three backticks; the text
between the last two), and by 266 recorded answers with the code that was published for them.
"""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidSetting
from mars_envs.judging import CodeJudge, extract_lcb, extract_program, resolve_extractor

# (name, reply, program by `default`, program by `lcb`); None: no program
DIFFERENT: list[tuple[str, str, str | None, str | None]] = [
    ("bare program", "n = int(input())\nprint(n)", "n = int(input())\nprint(n)", None),
    (
        "fence inside a string of a bare program",
        'x = """\n```\ny\n```\n"""\nprint(x)',
        'x = """\n```\ny\n```\n"""\nprint(x)',
        "y",
    ),
    ("fence that is never closed", "```python\nprint(1)\nprint(2)", "print(1)\nprint(2)", None),
    (
        "second fence that is never closed",
        "```python\nprint(1)\n```\nBetter:\n```python\nprint(2)",
        "print(2)",
        "Better:",
    ),
    ("cut off in the middle of a line", "```\nprint(1)\nprin(", "print(1)\nprin(", None),
    (
        "sample output after the program",
        "```python\nprint(42)\n```\nIt prints:\n```\n42\n```",
        "print(42)",
        "42",
    ),
    (
        "usage in a shell after the program",
        "```python\nprint(1)\n```\nRun it:\n```bash\npython a.py\n```",
        "print(1)",
        "python a.py",
    ),
    (
        "labelled text after the program",
        "```python\nprint(1)\n```\n```text\na = b\n```",
        "print(1)",
        "a = b",
    ),
    (
        "session after the program",
        "```python\ndef f():\n    return 1\n```\n```\n>>> f()\n1\n```",
        "def f():\n    return 1",
        ">>> f()\n1",
    ),
    (
        "other language after the program",
        "```python\nprint(1)\n```\nIn C++:\n```cpp\nint main() {}\n```",
        "print(1)",
        "int main() {}",
    ),
    (
        "last block is broken",
        "```\nprint(1)\n```\nor\n```\nprint(2\n```",
        "print(1)",
        "print(2",
    ),
    ("last block is blank", "```\nprint(1)\n```\n```\n\n```", "print(1)", None),
    (
        "last block holds comments only",
        "```\nprint(1)\n```\n```\n# that is all\n```",
        "print(1)",
        "# that is all",
    ),
    (
        "stray fence at the end",
        "```\nprint(1)\n```\nDone.\n```",
        "print(1)",
        "Done.",
    ),
    ("doubled closing fence", "```\nprint(1)\n```\n```", "print(1)", None),
    ("inline mention afterwards", "```\nprint(1)\n```\nUse ```f``` now.", "print(1)", None),
    (
        "two inline mentions afterwards",
        "```\nprint(1)\n```\nWith ```f```\nand then\nwith ```g```.",
        "print(1)",
        "and then",
    ),
    ("tildes", "~~~python\nprint(1)\n~~~", "print(1)", None),
    (
        "tildes around backticks",
        "~~~\ns = '''\n```\n'''\nprint(s)\n```\n~~~",
        "s = '''\n```\n'''\nprint(s)\n```",
        "'''\nprint(s)",
    ),
    (
        "four backticks around three",
        "````python\ns = '''\n```\n'''\n````",
        "s = '''\n```\n'''",
        "'''",
    ),
    (
        "nested block in a docstring",
        '````\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n````',
        'def f():\n    """\n    ```\n    f()\n    ```\n    """',
        '    """',
    ),
    ("shorter run inside", "`````\nx = 1\n````\n`````", "x = 1\n````", None),
    ("indented fence", "  ```\n  print(1)\n  ```", "print(1)", "  print(1)"),
    (
        "fence in a list",
        "1. So:\n\n    ```python\n    print(1)\n    ```",
        "print(1)",
        "    print(1)",
    ),
    ("tab before the fence", "\t```\n\tprint(1)\n\t```", "print(1)", "\tprint(1)"),
    (
        "closing line with chatter, then more",
        "```\nprint(1)\n``` and done.\nUse it so:\n```\n$ python a.py\n```",
        "print(1)",
        "$ python a.py",
    ),
    (
        "words behind a fence in a string",
        '````\ns = """\n``` a\n"""\n````',
        's = """\n``` a\n"""',
        '"""',
    ),
    (
        "program in the reasoning only",
        "<think>\n```\nprint(0)\n```\n</think>\nI do not know.",
        None,
        "print(0)",
    ),
    ("cut off while thinking", "<think>\n```\nprint(0)\n```\nbut", None, "print(0)"),
    (
        "bare program behind the reasoning",
        "<think>\n```\nprint(0)\n```\n</think>\nprint(1)",
        "print(1)",
        "print(0)",
    ),
    (
        "reasoning opened by the chat template",
        "```\nprint(0)\n```\nso</think>\nprint(1)\n",
        "print(1)",
        "print(0)",
    ),
    (
        "open fence behind the reasoning",
        "<think>\n```\nprint(0)\n```\n</think>\n```\nprint(1)",
        "print(1)",
        "</think>",
    ),
    (
        "line ends spelled out",
        r"```python\nn = int(input())\nprint(n)\n```",
        "n = int(input())\nprint(n)",
        None,
    ),
    (
        "line ends and quotes spelled out",
        r"Here: \n```\nprint(\"a\\nb\")\n```\n",
        r'print("a\nb")',
        None,
    ),
    (
        "line ends of a bare program spelled out",
        r"def f(n):\n\treturn n",
        "def f(n):\n\treturn n",
        None,
    ),
    (
        "one-line program with an escape",
        r"print('a\nb')",
        r"print('a\nb')",
        None,
    ),
    (
        "CRLF and an indented fence",
        "  ```\r\n  print(1)\r\n  ```\r\n",
        "print(1)\r",
        "  print(1)\r",
    ),
    (
        "no answer but its format",
        "I cannot.\n```text\n\n```\n```text\nn/a\n```\n```",
        "n/a",
        None,
    ),
]
SAME: list[tuple[str, str, str | None]] = [
    ("one block", "```python\nprint(1)\n```", "print(1)"),
    ("no language", "Here:\n```\nprint(1)\n```\nDone.", "print(1)"),
    ("last of two programs", "```\nprint(1)\n```\n```\nprint(2)\n```", "print(2)"),
    ("usage that is Python wins", "```\ndef f(): pass\n```\n```python\nf()\n```", "f()"),
    ("CRLF", "```python\r\nprint(1)\r\n```\r\n", "print(1)\r"),
    ("reasoning dropped", "<think>hm</think>\n```\nprint(1)\n```", "print(1)"),
    (
        "reasoning that leaves a fence open",
        "<think>\n```\nprint(0)\n</think>\n```\nprint(1)\n```",
        "print(1)",
    ),
    ("carriage returns only", "```\rprint(1)\r```", None),
    ("closing line with chatter", "```\nprint(1)\n``` and done", "print(1)"),
    (
        "opening again without closing",
        "```python\nprint(\n```python\nprint(1)\n```",
        "print(1)",
    ),
    ("broken and alone", "```\nprint(1\n```", "print(1"),
    ("blank block", "```python\n\n```", None),
    ("prose", "I cannot solve this.", None),
    ("nothing", "", None),
]


@pytest.mark.parametrize(
    ("reply", "default", "lcb"), [c[1:] for c in DIFFERENT], ids=[c[0] for c in DIFFERENT]
)
def test_the_presets_give_what_the_table_says(
    reply: str, default: str | None, lcb: str | None
) -> None:
    assert default != lcb
    assert extract_program(reply).program == default
    assert extract_lcb(reply).program == lcb


@pytest.mark.parametrize(("reply", "program"), [c[1:] for c in SAME], ids=[c[0] for c in SAME])
def test_on_plain_replies_the_presets_agree(reply: str, program: str | None) -> None:
    assert extract_program(reply).program == program
    assert extract_lcb(reply).program == program


@pytest.mark.data
@pytest.mark.parametrize("preset", ["lcb", "default"])
def test_the_published_code_is_taken_out_of_every_recorded_answer(
    data_dir: Path, preset: str
) -> None:
    lines = (data_dir / "generations/lcb_o1_outputs.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 266
    extract = resolve_extractor(preset)
    wrong = [r["id"] for r in records if (extract(r["output"]) or "") != r["extracted"]]
    assert wrong == []


PIECES = [
    "\n",
    "```",
    "~~~~",
    "```python\n",
    "<think>",
    "</think>",
    "print(1)",
    "\\n",
    "\0",
    "\ud800",
    "\r",
]


@given(st.lists(st.text(max_size=6) | st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_reply_makes_a_preset_raise_and_both_take_text_from_it(reply: str) -> None:
    for extract in (extract_program, extract_lcb):
        found = extract(reply)
        assert (found.program is None) == (found.how == "none")
        assert found.program is None or found.program.strip()
    # By the published rule, written in another way.
    parts = re.split(r"^[^\n]*```[^\n]*$", reply, flags=re.MULTILINE)
    expected = parts[-2][1:-1] if len(parts) > 2 else ""
    assert extract_lcb(reply).program == (expected if expected.strip() else None)


@pytest.mark.parametrize(
    "unit", ["\0", "`", "```\n", "~~~\n", "\\n", "\\", "<think>", "\ud800", "x = 1\n"]
)
def test_a_megabyte_of_anything_has_an_answer(unit: str) -> None:
    reply = unit * (1_000_000 // len(unit))
    for extract in (extract_program, extract_lcb):
        assert extract(reply).how in ("none", "unparsed", "fenced", "whole")


def first_line(reply: str) -> str | None:
    """A rule of one's own."""
    return reply.partition("\n")[0] or None


def number(reply: str) -> str | None:
    """A rule that returns what it must not."""
    return len(reply)  # type: ignore[return-value]


def test_a_rule_may_be_named_given_or_imported() -> None:
    reply = "print(1)\n```\nprint(2)\n```\n```\n3\n```"
    assert resolve_extractor("default")(reply) == "print(2)"
    assert resolve_extractor("lcb")(reply) == "3"
    assert resolve_extractor(first_line)(reply) == "print(1)"
    assert resolve_extractor(f"{__name__}:first_line")(reply) == "print(1)"


@pytest.mark.parametrize("wrong", ["cpp", "math:no_such", "no.such.module:f", "math:pi", 3])
def test_an_unknown_rule_is_refused_when_the_judge_is_made(wrong: str) -> None:
    with pytest.raises(InvalidSetting, match="code extraction"):
        CodeJudge(extract=wrong)


def test_a_rule_that_returns_anything_but_text_or_none_is_told_so() -> None:
    with pytest.raises(InvalidSetting, match=r"number.*must return the program.*got a int"):
        resolve_extractor(number)("print(1)")


@pytest.mark.parametrize("extract", ["lcb", first_line])
def test_a_pickled_judge_keeps_its_rule(extract: str) -> None:
    assert pickle.loads(pickle.dumps(CodeJudge(extract=extract))).extract == extract
