"""Stand-ins that need no sandbox and no model: deterministic, instant, meaningless.

They can be named in constructor arguments: `judge="mars_envs.testing:StubJudge"`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..judging.base import CaseFeedback, Feedback, Verdict
from ..reading.document import TextDocument
from ..reading.task import Evidence, ReadingTask
from ..tasks.code import CodeTask, ExpectedCase
from ..tree_search.tree import Node, SearchTree

ODD_TEXTS = (
    "print(1)",
    "",
    "```python\nprint(input())\n```",
    "naïve 漢字 🙂 \u202e\u0000 text",
    "lone \ud800 surrogate \udfff",
    "\n" * 1000,
)
"""Completions that a model may well produce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StubJudge:
    """Judges by a hash of task and text: deterministic, instant, meaningless.

    Args:
        solve_rate: share of texts that pass all public tests, and so solve their task.
        public_total: public tests that it pretends to run.
        hidden_fails: whether every text fails the hidden tests; what is public stays the same.
    """

    solve_rate: float = 0.3
    public_total: int = 3
    hidden_fails: bool = False

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Return the verdict that the hash gives."""
        digest = hashlib.sha256(
            f"{task.task_id}\0{completion}".encode("utf-8", "surrogatepass")
        ).digest()
        passes = int.from_bytes(digest[:4], "big") < self.solve_rate * 2**32
        passed = self.public_total if passes else digest[4] % self.public_total
        seen = "accepted" if passes else "wrong_answer"
        failure = None if passes else CaseFeedback(name="stub", status=seen, actual="nothing")
        solved = passes and not self.hidden_fails
        return Verdict(
            score=passed / self.public_total,
            solved=solved,
            status="accepted" if solved else "wrong_answer",
            public_passed=passed,
            public_total=self.public_total,
            feedback=Feedback(passed=passed, total=self.public_total, status=seen, failure=failure),
            program=completion,
        )

    def close(self) -> None:
        """Do nothing."""


def stub_tasks(count: int = 3) -> list[CodeTask]:
    """Return small tasks for environments whose judge is a stub."""
    return [
        CodeTask(
            task_id=f"stub/{index}",
            statement=f"Print {index}.",
            public=(ExpectedCase(name="1", input="", expected=str(index)),),
        )
        for index in range(count)
    ]


def stub_reading_tasks(count: int = 3, *, chunks: int = 6) -> list[ReadingTask]:
    """Return questions about small documents, of `chunks` lines of eight words each.

    The second line holds the evidence.
    """
    tasks = []
    for index in range(count):
        lines = [f"Line {line} of text {index} says nothing new.\n" for line in range(chunks)]
        fact = f"The city of traveller {index} is Ulm{index} today.\n"
        lines[1 % chunks] = fact
        text = "".join(lines)
        start = text.index(fact)
        tasks.append(
            ReadingTask(
                task_id=f"stub/{index}",
                question=f"What is the city of traveller {index}?",
                document=TextDocument(text),
                answers=(f"Ulm{index}",),
                evidence=(Evidence(start=start, end=start + len(fact) - 1, text=fact.strip()),),
                hops=1,
                kind="stub",
            )
        )
    return tasks


def stub_score(task: CodeTask, tree: SearchTree, node: Node) -> float:
    """Score by a hash of task and text: a stand-in for a reward model."""
    digest = hashlib.sha256(
        f"{task.task_id}\0{node.reply}\0score".encode("utf-8", "replace")
    ).digest()
    return digest[0] / 255


def odd_policy(agent: str, observation: Any, info: Mapping[str, Any], turn: int) -> str:
    """Answer with the odd texts in turn."""
    return ODD_TEXTS[turn % len(ODD_TEXTS)]


def odd_reader(agent: str, observation: Any, info: Mapping[str, Any], turn: int) -> str:
    """Play every role of the memory environments: sense, nonsense and odd texts, by a hash.

    It depends on the observation alone, so that it says the same in every form. Every other answer
    to the questions of `stub_reading_tasks` is right.
    """
    seen = json.dumps({key: str(observation[key]) for key in sorted(observation)})
    digest = hashlib.sha256(seen.encode("utf-8", "replace")).digest()
    if observation["role"] == "answerer" and digest[1] % 2:
        return f"\\boxed{{{stub_answer(observation['question'])}}}"
    sayings = _SAYINGS.get(observation["role"], ODD_TEXTS)
    return sayings[digest[0] % len(sayings)]


def stub_answer(question: str) -> str:
    """Return the answer to a question of `stub_reading_tasks`."""
    return "Ulm" + question.rpartition(" ")[2].rstrip("?")


def odd_partner_reader(observation: Any, info: Mapping[str, Any]) -> str:
    """Play a partner of `SingleAgentView` in a memory environment as `odd_reader` does."""
    return odd_reader("", observation, info, 0)


_TAG = "<check>{}</check>"
_SAYINGS: Mapping[str, tuple[str, ...]] = {
    "reader": (
        _TAG.format("no"),
        _TAG.format("no"),
        _TAG.format("yes") + " The city is Ulm0.",
        _TAG.format("yes"),
        "I cannot say. <section>3</section>",
        *ODD_TEXTS[3:5],
    ),
    "merger": ("The city is Ulm0.", "", "<think>hm</think> Ulm1 \ud800", "\n" * 1000),
    "answerer": ("\\boxed{Rome}", "Ulm2", "", "\\boxed{lone \ud800}"),
}
"""What agents of a role may say: a tag, a bare tag, none; an answer with and without a box."""


def assert_speaks(policy: Any, action_space: Any) -> None:
    """Check that the default policy may be sent to an environment.

    Raises:
        AssertionError: its space holds no usual texts, and no other policy was given.
    """
    assert policy is not odd_policy or action_space.contains(ODD_TEXTS[0]), (
        f"the action space {action_space!r:.200} does not hold the text {ODD_TEXTS[0]!r}, which "
        "the check says by default; widen it to UnicodeText, or pass policy=, a callable of "
        "(agent, observation, info, turn) that returns actions of your space"
    )


def odd_partner(observation: Any, info: Mapping[str, Any]) -> str:
    """Play a partner of `SingleAgentView` with an odd text for every number of nodes."""
    return ODD_TEXTS[int(info["nodes_left"]) % len(ODD_TEXTS)]
