"""What a tree environment must make of its judge: hidden tests stay hidden, failures harmless.

These checks need judges of their own, so they are for environments with an attribute `judge` that
can be set between episodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import JudgeUnavailable
from ..judging.base import Verdict
from ..tasks.code import CodeTask
from ..tree_search.choosing import read_choice
from .actions import taken
from .episodes import Form, Player
from .frames import assert_same, without
from .moments import Moment, Spaces
from .resets import core
from .stubs import StubJudge

HIDDEN = ("solved", "status", "parent_solved", "best_solved")
"""Infos that know hidden tests."""
SEED = 0
MAX_TRIES = 1000
"""Times that a step is repeated: more than agents act at once."""
PUBLIC_RATES = (0.5, 1.0)
"""Shares of texts that pass every public test: a mixed tree, and one in which each node does."""


def check_judging(player: Player, make_env: Callable[[], Any]) -> None:
    """Check what an environment does with verdicts, and with a judge that fails.

    Raises:
        AssertionError: a rule is broken.
    """
    env = make_env()
    if hasattr(core(env), "judge"):
        for rate in PUBLIC_RATES:
            _check_hidden_tests(player, env, rate)
        _check_texts(player, env)
        _check_interruption(player, env)
    env.close()


def _check_hidden_tests(player: Player, env: Any, rate: float) -> None:
    """Play an episode twice, with texts that pass, or all fail, the hidden tests."""
    episodes = []
    for fails in (False, True):
        core(env).judge = StubJudge(solve_rate=rate, hidden_fails=fails)
        episodes.append(player.play(env, SEED))
    passed, failed = episodes
    assert_same(
        [without(frame, HIDDEN) for frame in passed],
        [without(frame, HIDDEN) for frame in failed],
        f"an episode whose hidden tests pass, and one where they fail (only {', '.join(HIDDEN)} "
        "and the reward may know them: no observation, no state, no mask, no choice)",
    )
    earned = [sum(sum(frame["rewards"].values()) for frame in trace) for trace in episodes]
    pays = not earned[1] and (earned[0] > 0 or rate < 1)
    assert pays, (
        f"an episode in which every text passes all tests earned {earned[0]}, and one in which "
        f"all fail the hidden ones {earned[1]}; the reward is 1.0 where the verdict is `solved`"
    )


def _check_texts(player: Player, env: Any) -> None:
    judge = core(env).judge = _Recording()
    trace = player.play(env, SEED)
    masked = any("action_mask" in info for info in trace[0]["infos"].values())
    given = []
    for frame in trace:
        for action in frame["actions"].values():
            text = read_choice(action, 2**20)[0] if masked else action
            given.append(taken(text))
    for text in given:
        assert text in judge.texts, (
            f"the text {text!r:.80} was never judged, but {judge.texts!r:.300}; the judge gets "
            "what the agent wrote, cut to the length of the space and with lone surrogates replaced"
        )


def _check_interruption(player: Player, env: Any) -> None:
    core(env).judge = StubJudge()
    expected = player.play(env, SEED)
    judge = core(env).judge = _Failing()
    patient = dataclasses.replace(player, form=_Patient(player.form))
    assert_same(
        expected,
        patient.play(env, SEED),
        "an episode in which the judge failed for a while, and each step was repeated (a step "
        "that raises changes nothing, the random generator included)",
    )
    assert judge.seen, "no text was ever judged, though the environment has a judge"


@dataclass
class _Recording:
    """Remembers what it judged."""

    texts: list[str] = field(default_factory=list)

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        self.texts.append(completion)
        return StubJudge().judge(task, completion)

    def close(self) -> None:
        """Do nothing."""


@dataclass
class _Failing:
    """Fails at every text that it has not seen before."""

    seen: set[str] = field(default_factory=set)

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        if completion not in self.seen:
            self.seen.add(completion)
            raise JudgeUnavailable("the check of an interrupted step: repeat it")
        return StubJudge().judge(task, completion)

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class _Patient:
    """Plays as another form does, and repeats each step until its judge does not fail."""

    form: Form

    def spaces(self, env: Any) -> Spaces:
        return self.form.spaces(env)

    def begin(self, env: Any, seed: int | None, options: Mapping[str, Any] | None) -> Moment:
        # Partners may speak, and be judged, within `reset` already.
        return _patiently(lambda: self.form.begin(env, seed, options), lambda: None)

    def look_again(self, env: Any, moment: Moment) -> Moment:
        return self.form.look_again(env, moment)

    def act(
        self, env: Any, moment: Moment, turn: int, *, failing: int = 0, permanent: bool = False
    ) -> Moment:
        def compare() -> None:
            now = self.form.look_again(env, moment)
            what = "an environment before a step in which the judge fails, and after it"
            assert_same([moment.frame()], [now.frame()], what)

        return _patiently(
            lambda: self.form.act(env, moment, turn, failing=failing, permanent=permanent), compare
        )


def _patiently(call: Callable[[], Moment], after_failure: Callable[[], None]) -> Moment:
    for _ in range(MAX_TRIES):
        try:
            return call()
        except JudgeUnavailable:
            after_failure()
    raise AssertionError(
        f"a step raised JudgeUnavailable {MAX_TRIES} times in a row, with a judge that fails once "
        "for each text; `judge` must be the one that judges"
    )
