"""What to learn from: prompts of real episodes, and what the oracle would reply to them.

Episodes are driven by a speaker that makes mistakes, and each of its prompts is labelled by one
that makes none: so the learner sees memories with gaps and with rubbish in them, as it will meet
them when it is on its own, and learns how to go on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_envs.parallel_memory.replies import parse_answer, parse_read
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.parallel_memory.workflow import Speaker
from mars_envs.reading.task import ReadingTask

from .encoding import MEMORY, PARTS, ROLES, Encoded, encode
from .spans import find_copies
from .speaking import UNKNOWN
from .words import Vocabulary, words_of


@dataclass(frozen=True, slots=True)
class Lesson:
    """A prompt and the reply to learn."""

    prompt: Encoded
    yes: bool
    """A reader's verdict; whether an answerer knows; of others, whether there is anything."""
    copy: NDArray[np.float32]
    """[tokens]; 1 where the reply copies."""

    @property
    def kind(self) -> str:
        """The role and what is to be done: reads `read yes`, `read no`, `update new`, ...

        A memorizer's `new` takes something from its chunk; `kept` only keeps what it remembers.
        """
        role = ROLES[self.prompt.role]
        if role == "update" and self.yes:
            new = (self.copy[self.prompt.part == PARTS.index("c")] > 0).any()
            return "update new" if new else "update kept"
        return f"{role} {'yes' if self.yes else 'no'}"


class UnlikeCopy(ValueError):
    """A reply has a piece that does not stand in its prompt, so it can't be learned by copying."""


def teacher(task: ReadingTask) -> Speaker:
    """Return the oracle, with a memory of evidence alone: what else was reported it forgets."""
    wise = oracle(task)
    evidence = {" ".join(passage.text.split()) for passage in task.evidence}

    def speak(view: Mapping[str, Any]) -> str:
        reply = wise(view)
        if view["role"] in ("merger", "memorizer"):
            return "\n".join(line for line in reply.splitlines() if line in evidence)
        return reply

    return speak


def watched(speak: Speaker, task: ReadingTask, seen: list[tuple[str, str]]) -> Speaker:
    """Return `speak`, while each prompt goes into `seen` with what the teacher would reply."""
    teach = teacher(task)

    def speaker(view: Mapping[str, Any]) -> str:
        seen.append((view["prompt"], teach(view)))
        return speak(view)

    return speaker


def lesson(prompt: str, reply: str, vocabulary: Vocabulary) -> Lesson:
    """Return a prompt with its reply as marks on the tokens that are copied.

    A sentence that stands in the prompt more than once is copied from the memory, if it stands
    there, else from its first place. An answer is marked wherever it stands, since nobody could say
    which of them is meant.

    Raises:
        UnlikeCopy: a piece of the reply does not stand in the prompt.
    """
    encoded = encode(prompt, vocabulary)
    role = ROLES[encoded.role]
    pieces, yes = pieces_of(reply, role)
    # What can't be copied is no word here, so it matches nothing.
    words = [w if ok else "" for w, ok in zip(encoded.words(), encoded.copied, strict=True)]
    copy = np.zeros(len(encoded), np.float32)
    for piece in pieces:
        found = find_copies(words, [word.lower() for word in words_of(piece)])
        if not found:
            raise UnlikeCopy(f"{piece!r} does not stand in the prompt {prompt!r}")
        if role != "answer":
            found = sorted(found, key=lambda span: encoded.part[span[0]] != MEMORY)[:1]
        for start, end in found:
            copy[start:end] = 1
    return Lesson(encoded, yes, copy)


def pieces_of(reply: str, role: str) -> tuple[list[str], bool]:
    """Return what a reply copies, and whether it says yes (or, an answerer's, that it knows)."""
    if role == "read":
        check = parse_read(reply)
        return (check.note or "").splitlines(), check.status == "yes"
    if role == "answer":
        answer = parse_answer(reply)
        return ([], False) if answer == UNKNOWN else ([answer], True)
    lines = [line for line in reply.splitlines() if line]
    return lines, bool(lines)
