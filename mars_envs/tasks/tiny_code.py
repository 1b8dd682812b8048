"""Tiny code: a generated family of one-line programs with exact truth.

A task asks for two operations on an integer, say `add 8, times 2`; its gold program is

    n=int(input())
    print((n+8)*2)

Ten operation words name the four operators `+ - * %` and constants run from 2 to 9, which makes
1,024 programs. Two kinds of task share them:

* *told*: everything is said;
* *hidden*: the second constant is missing (`mul 3, add ?`) and has to be read from the feedback of
  the first public test. That test feeds 0, which `*` and `%` map to 0, so its expected output is
  the constant up to its sign. From the root it is a one-in-eight guess, which is what makes
  refinement worth learning.

Tasks are split into train and held-out by *gold program*: a split by statement would leak programs
through synonyms. The two public tests do not determine the program, so passing them and solving
the task differ.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, overload

from ..errors import InvalidTask
from .code import CodeTask, ExpectedCase

Split = Literal["train", "held_out"]
Kind = Literal["told", "hidden"]

BOILERPLATE: Final = "n=int(input())\nprint((n"
"""What every program starts with; the tiny coders' tokenizers merge it into one token."""
PUBLIC_INPUTS: Final = (0, 5)
HIDDEN_INPUTS: Final = (-3, 17, 100, 64)
CONSTANTS: Final = tuple(range(2, 10))
HELD_OUT_PROGRAMS: Final = 150
HIDDEN_SHARE: Final = 0.3
UNKNOWN: Final = "?"

WORDS: Final = MappingProxyType(
    {
        "add": "+",
        "plus": "+",
        "more": "+",
        "sub": "-",
        "minus": "-",
        "less": "-",
        "mul": "*",
        "times": "*",
        "mod": "%",
        "rem": "%",
    }
)
"""Operation word -> operator."""

_APPLY: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": operator.mod,
}
OPERATORS: Final = tuple(_APPLY)
_SAY: Final = {
    "+": "add {}",
    "-": "subtract {}",
    "*": "multiply by {}",
    "%": "take the remainder modulo {}, as Python's % does",
}
_SPLIT_SEED: Final = 20_260  # fixed for good: it decides which programs are held out


@dataclass(frozen=True, slots=True)
class TinyProgram:
    """Two operations on `n`, the first one's result feeding the second."""

    first: str
    a: int
    second: str
    b: int

    @property
    def source(self) -> str:
        """The program's text."""
        return f"{BOILERPLATE}{self.first}{self.a}){self.second}{self.b})"

    def evaluate(self, n: int) -> int:
        """What the program prints for `n`, exactly (`%` is Python's: never negative here)."""
        return _APPLY[self.second](_APPLY[self.first](n, self.a), self.b)


@dataclass(frozen=True, slots=True)
class TinySpec:
    """One task before it is put into words."""

    words: tuple[str, str]
    a: int
    b: int
    kind: Kind

    @property
    def gold(self) -> TinyProgram:
        """The program that solves the task."""
        return TinyProgram(WORDS[self.words[0]], self.a, WORDS[self.words[1]], self.b)

    @property
    def compact(self) -> str:
        """The short statement, e.g. `mul 3, add ?`."""
        last = UNKNOWN if self.kind == "hidden" else str(self.b)
        return f"{self.words[0]} {self.a}, {self.words[1]} {last}"

    @property
    def statement(self) -> str:
        """The statement in prose, complete enough for a model that has never seen the family."""
        last = "c" if self.kind == "hidden" else str(self.b)
        text = (
            "Write a Python program that reads one integer n from standard input, applies two "
            "operations to it in this order, and prints the resulting integer.\n"
            f"1. {_SAY[self.gold.first].format(self.a)}\n"
            f"2. {_SAY[self.gold.second].format(last)}\n"
        )
        if self.kind == "hidden":
            text += (
                "Here c is a fixed integer from 2 to 9 that you are not told: guess it first, then "
                "work it out from the test that your program fails. Write it as a literal.\n"
            )
        return text

    def task(self) -> CodeTask:
        """The task itself; asked for again, the same object, since it is frozen."""
        return _task(self)

    def _make_task(self) -> CodeTask:
        gold = self.gold
        name = self.compact.replace(", ", "-").replace(" ", "-")
        suffix = f"/{self.b}" if self.kind == "hidden" else ""
        return CodeTask(
            task_id=f"tiny/{self.kind}/{name}{suffix}",
            statement=self.statement,
            public=tuple(_case("public", n, gold) for n in PUBLIC_INPUTS),
            hidden=tuple(_case("hidden", n, gold) for n in HIDDEN_INPUTS),
            meta={"compact": self.compact, "kind": self.kind, "gold": gold.source},
        )


class TinyTasks(Sequence[CodeTask]):
    """A lazy sequence of tasks: each is made when it is asked for; a slice is a `TinyTasks`."""

    def __init__(self, specs: Sequence[TinySpec]) -> None:
        self.specs = tuple(specs)

    def __len__(self) -> int:
        return len(self.specs)

    @overload
    def __getitem__(self, index: int) -> CodeTask: ...
    @overload
    def __getitem__(self, index: slice) -> TinyTasks: ...
    def __getitem__(self, index: int | slice) -> CodeTask | TinyTasks:
        if isinstance(index, slice):
            return TinyTasks(self.specs[index])
        return self.specs[index].task()

    def __iter__(self) -> Iterator[CodeTask]:
        return (spec.task() for spec in self.specs)

    def __repr__(self) -> str:
        return f"TinyTasks({len(self)} tasks)"


def tiny_tasks(
    split: Split = "train",
    *,
    size: int | None = None,
    hidden_share: float = HIDDEN_SHARE,
    seed: int = 0,
) -> TinyTasks:
    """Tiny code tasks in a shuffled order, no two of them alike.

    Args:
        split: "train" or "held_out". No gold program occurs in both, whatever the other arguments.
        size: how many tasks; all that `hidden_share` allows by default.
        hidden_share: the share of hidden-constant tasks, in [0, 1].
        seed: order and choice of the tasks, not the split.

    Raises:
        InvalidTask: an unknown split, a share outside [0, 1], or more tasks than there are.
    """
    if split not in ("train", "held_out"):
        raise InvalidTask(f"tiny code has the splits 'train' and 'held_out', got {split!r}")
    if not 0 <= hidden_share <= 1:
        raise InvalidTask(f"hidden_share is a share in [0, 1], got {hidden_share}")
    told, hidden = _specs(split, "told"), _specs(split, "hidden")
    # The scarcer kind bounds the size: told <= size * (1 - share), hidden <= size * share.
    most = min(
        int(len(told) / (1 - hidden_share)) if hidden_share < 1 else len(hidden),
        int(len(hidden) / hidden_share) if hidden_share > 0 else len(told),
    )
    if size is None:
        size = most
    if not 0 < size <= most:
        raise InvalidTask(
            f"the {split} split has {len(told)} told and {len(hidden)} hidden tasks, which with "
            f"hidden_share={hidden_share} makes 1 to {most} tasks; got size={size}"
        )
    rng = random.Random(f"tiny/{split}/{seed}")
    n_hidden = min(round(size * hidden_share), len(hidden))
    chosen = rng.sample(hidden, n_hidden) + rng.sample(told, min(size - n_hidden, len(told)))
    rng.shuffle(chosen)
    return TinyTasks(chosen)


@lru_cache(maxsize=1)
def held_out_programs() -> frozenset[TinyProgram]:
    """The gold programs that no training task has."""
    return frozenset(random.Random(_SPLIT_SEED).sample(_all_programs(), HELD_OUT_PROGRAMS))


@lru_cache(maxsize=8192)  # more than there are: each of many environments walks over them all
def _task(spec: TinySpec) -> CodeTask:
    return spec._make_task()


def _all_programs() -> list[TinyProgram]:
    return [
        TinyProgram(first, a, second, b)
        for first in OPERATORS
        for a in CONSTANTS
        for second in OPERATORS
        for b in CONSTANTS
    ]


@lru_cache(maxsize=4)
def _specs(split: Split, kind: Kind) -> tuple[TinySpec, ...]:
    """Every task of a kind, in a fixed order."""
    held_out = held_out_programs()
    specs = (
        TinySpec((first, second), a, b, kind)
        for first, first_op in WORDS.items()
        for second, second_op in WORDS.items()
        # Only there does the first public test reveal the missing constant.
        if kind == "told" or (first_op in "*%" and second_op in "+-")
        for a in CONSTANTS
        for b in CONSTANTS
    )
    return tuple(spec for spec in specs if (spec.gold in held_out) == (split == "held_out"))


def _case(group: str, n: int, gold: TinyProgram) -> ExpectedCase:
    return ExpectedCase(name=f"{group} {n}", input=f"{n}\n", expected=f"{gold.evaluate(n)}\n")
