from __future__ import annotations

import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.judging.extract import extract_program, is_program

# (name, reply, program, how)
CASES: list[tuple[str, str, str | None, str]] = [
    ("one python fence", "```python\nprint(1)\n```", "print(1)", "fenced"),
    ("a fence without a tag", "```\nprint(1)\n```", "print(1)", "fenced"),
    ("prose around", "Here:\n```py\nprint(1)\n```\nDone.", "print(1)", "fenced"),
    ("the last of two programs", "```\nprint(1)\n```\n```\nprint(2)\n```", "print(2)", "fenced"),
    ("the last that parses", "```\nprint(1)\n```\n```\nprint(2\n```", "print(1)", "fenced"),
    ("none parses", "```\nprint(1\n```\n```\nprint(2\n```", "print(2", "unparsed"),
    (
        "output after the program",
        "```\nprint(42)\n```\nprints\n```\n42\n```",
        "print(42)",
        "fenced",
    ),
    ("named output", "```python\nx = f(\n```\n```text\ny = 5\n```", "x = f(", "unparsed"),
    ("shell lines after it", "```python\nprint(1)\n```\n```bash\nls\n```", "print(1)", "fenced"),
    ("only another language", "```cpp\nint main() {}\n```", "int main() {}", "unparsed"),
    ("unclosed fence", "```python\nprint(1)\nprint(2)", "print(1)\nprint(2)", "fenced"),
    ("unclosed and cut off", "```python\nprint(1)\nprin(", "print(1)\nprin(", "unparsed"),
    (
        "four backticks around three",
        "````python\ns = '''\n```\n'''\n````",
        "s = '''\n```\n'''",
        "fenced",
    ),
    ("shorter run does not close", "`````\nx = 1\n````\n`````", "x = 1\n````", "unparsed"),
    ("longer run closes", "```\nprint(1)\n`````", "print(1)", "fenced"),
    ("tildes", "~~~python\nprint(1)\n~~~", "print(1)", "fenced"),
    ("tildes around backticks", "~~~\ns = '''\n```\n'''\n~~~", "s = '''\n```\n'''", "fenced"),
    ("backticks do not close tildes", "~~~\nx = 1\n```\n~~~", "x = 1\n```", "unparsed"),
    ("two backticks are no fence", "``\nprint(1)\n``", None, "none"),
    ("closing line with words", "```\nprint(1)\n``` done", "print(1)", "fenced"),
    (
        "words behind a fence in a string",
        "```\ns = '''\n``` a\n'''\n```",
        "s = '''\n``` a\n'''",
        "fenced",
    ),
    ("opened twice", "```python\nprint(\n```python\nprint(1)\n```", "print(1)", "fenced"),
    ("nothing parses either way", "```\nprint(\n``` a b\nx", "print(\n``` a b\nx", "unparsed"),
    ("spaces behind the closing fence", "```\nprint(1)\n```  \t", "print(1)", "fenced"),
    (
        "indented fence",
        "  ```python\n  if x:\n      print(1)\n  ```",
        "if x:\n    print(1)",
        "fenced",
    ),
    ("fence in a list", "1. So:\n\n    ```python\n    print(1)\n    ```", "print(1)", "fenced"),
    ("less indented content", "   ```\nprint(1)\n   ```", "print(1)", "fenced"),
    ("tabs before the fence", "\t```python\n\tprint(1)\n\t```", "print(1)", "fenced"),
    ("CRLF line ends", "```python\r\nprint(1)\r\n```\r\n", "print(1)\r", "fenced"),
    ("info string with attributes", '```{.python title="a"}\nprint(1)\n```', "print(1)", "fenced"),
    ("upper-case tag", "```Python3\nprint(1)\n```", "print(1)", "fenced"),
    ("code on the fence line", "```print(1)```", None, "none"),
    ("inline code is no block", "Use ```x``` here", None, "none"),
    ("empty fence", "```python\n```", None, "none"),
    ("blank fence", "```python\n\n   \n```", None, "none"),
    ("blank fence after a program", "```\nprint(1)\n```\n```\n\n```", "print(1)", "fenced"),
    ("no fence", "n = int(input())\nprint(n)\n", "n = int(input())\nprint(n)", "whole"),
    ("no fence, leading blanks", "  print(1)", "print(1)", "whole"),
    (
        "fence inside a string",
        'x = """\n```\ny\n```\n"""\nprint(x)',
        'x = """\n```\ny\n```\n"""\nprint(x)',
        "whole",
    ),
    ("a bare word", "yes", None, "none"),
    ("a number", "42", None, "none"),
    ("words that parse", "not sure", None, "none"),
    ("words with commas", "hello, world", None, "none"),
    ("a labelled answer", "Answer: 42", None, "none"),
    ("a quoted text", '"print(1)"', None, "none"),
    ("prose", "I cannot solve this.", None, "none"),
    ("a comment only", "# no idea", None, "none"),
    ("nothing", "", None, "none"),
    ("blanks", " \n\t\n", None, "none"),
    (
        "reasoning dropped",
        "<think>\n```\nprint(0)\n```\n</think>\n```\nprint(1)\n```",
        "print(1)",
        "fenced",
    ),
    ("program only in the reasoning", "<think>```\nprint(0)\n```</think>No.", None, "none"),
    ("reasoning without a fence behind it", "<think>hm</think>\nprint(1)", "print(1)", "whole"),
    (
        "a fence right behind the reasoning",
        "<think>x</think>```\nprint(1)\n```",
        "print(1)",
        "fenced",
    ),
    ("reasoning cut off", "<think>\n```\nprint(0)\n```\nbut", None, "none"),
    (
        "reasoning opened by the template",
        "so\n```\nprint(0)\n```\n</think>\n```\nf(1)\n```",
        "f(1)",
        "fenced",
    ),
    (
        "tag inside a program",
        '```\nprint("<think>a</think>")\n```',
        'print("<think>a</think>")',
        "fenced",
    ),
    (
        "tag inside a bare program",
        'print("<think>a</think>")',
        'print("<think>a</think>")',
        "whole",
    ),
    ("tag as a word", "About <think> tags:\n```\nprint(1)\n```", "print(1)", "fenced"),
    ("NUL byte in a fence", "```\nprint('\0')\n```", "print('\0')", "unparsed"),
    ("lone surrogate in a fence", "```\nprint('\ud800')\n```", "print('\ud800')", "unparsed"),
    ("NUL byte without a fence", "print('\0')", None, "none"),
    ("lone surrogate without a fence", "print('\udfff')", None, "none"),
    ("line separators stay", "```\nx = '\u2028\x0b\x0c'\n```", "x = '\u2028\x0b\x0c'", "fenced"),
    ("trailing line ends stay", "```\nprint(1)\n\n\n```", "print(1)\n\n", "fenced"),
    ("an invalid escape is still Python", "```\nprint('\\d')\n```", "print('\\d')", "fenced"),
]


@pytest.mark.parametrize(
    ("reply", "program", "how"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_program_is_taken_from_the_reply(reply: str, program: str | None, how: str) -> None:
    found = extract_program(reply)
    assert (found.program, found.how) == (program, how)


@given(
    st.lists(
        st.one_of(
            st.text(),
            st.text(st.characters(categories=["Cs", "Cc", "Ll"]), max_size=8),
            st.sampled_from(
                ["\n", "```", "~~~~", "```python\n", "<think>", "</think>", "print(1)", " ", "\\\n"]
            ),
        ),
        max_size=30,
    ).map("".join)
)
def test_any_text_at_all_gives_an_answer(reply: str) -> None:
    found = extract_program(reply)
    assert (found.program is None) == (found.how == "none")
    if found.program is not None:
        assert found.program.strip()


@pytest.mark.parametrize(
    "unit",
    [
        "```\n",
        "x\n<think>\n",
        "</think>\n",
        "`",
        "<",
        "~~~ a\n",
        "(",
        "a.",
        "-",
        "\\\n",
        "</think>",
        "<think></think>",
    ],
)
def test_the_time_is_linear_in_the_length(unit: str) -> None:
    begin = time.process_time()
    extract_program(unit * (400_000 // len(unit)))
    assert time.process_time() - begin < 5  # 0.3 s where it is linear, minutes where quadratic


def test_nesting_beyond_the_parser_is_no_program() -> None:
    assert not is_program("(" * 100_000)
    assert not is_program("-" * 100_000 + "1")
    assert not is_program("x" + "()" * 100_000)


def test_warnings_of_the_parser_neither_leak_nor_count_as_errors() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        assert is_program("print('\\d')")
        assert warnings.filters == before
    assert all(issubclass(warning.category, DeprecationWarning) for warning in caught)


@pytest.mark.parametrize(
    "reply",
    [
        "print(0)</think>a</think>```python\nprint(1)\n```",
        "x</think>y<think>z</think>\n```python\nprint(1)\n```",
        "</think></think><think>```\nprint(2)\n```</think>\n```python\nprint(1)\n```",
    ],
)
def test_a_line_may_hold_many_tags_of_reasoning(reply: str) -> None:
    assert extract_program(reply).program == "print(1)"


def test_a_byte_order_mark_hides_no_fence() -> None:
    assert extract_program("\ufeff```python\nprint(1)\n```").program == "print(1)"
