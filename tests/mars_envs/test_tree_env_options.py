"""What the tree environments can be told: feedback, roles, reward models, budgets, teams."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.errors import InvalidSetting
from mars_envs.judging import CaseFeedback, Feedback, Verdict
from mars_envs.tasks import CodeTask
from mars_envs.testing import StubJudge, check_tree_search, stub_score
from mars_envs.tree_search import NOTHING, ROOT, Node, SearchTree
from mars_envs.tree_search.feedback_level import parent_view, reduce_feedback
from mars_envs.tree_search.tokens import count_words

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_tasks",
    "judge": "mars_envs.testing:StubJudge",
}


def make(**options: Any) -> TreeSearchEnv:
    return TreeSearchEnv(**{**STUBS, **options})


def play(env: TreeSearchEnv, seed: int | None = 0, **reset: Any) -> list[dict[str, Any]]:
    """Play an episode; return the info of each actor after its action."""
    env.reset(seed=seed, options=reset)
    infos: list[dict[str, Any]] = []
    while env.agents:
        agent = env.agent_selection
        if env.terminations[agent] or env.truncations[agent]:
            env.step(None)
        else:
            env.step(f"print({len(infos)})")
            infos.append(env.infos[agent])
    return infos


# Feedback -------------------------------------------------------------------------------------

WRONG = Feedback(
    passed=1,
    total=3,
    status="runtime_error",
    failure=CaseFeedback(name="2", status="runtime_error", input="7", error="ZeroDivisionError"),
)
RIGHT = Feedback(passed=3, total=3, status="accepted")


class Told(StubJudge):
    """Fails every text in the same way."""

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        return dataclasses.replace(
            super().judge(task, completion),
            score=1 / 3,
            solved=False,
            public_passed=1,
            public_total=3,
            feedback=WRONG,
        )


def refinement(level: str, judge: Callable[[], Any] = Told, **options: Any) -> str:
    """Return the prompt of some refinement."""
    env = make(judge=judge, feedback_level=level, budget=30, **options)
    env.reset(seed=0)
    while env.infos[env.agent_selection]["expand_id"] == ROOT:
        env.step("print(1)")
    prompt: str = env.observe(env.agent_selection)["prompt"]
    return prompt


@pytest.mark.parametrize(
    ("level", "shown", "hidden"),
    [
        ("full", ["passes 1 of 3", "runtime error", "ZeroDivisionError"], []),
        ("summary", ["passes 1 of 3", "runtime error"], ["ZeroDivisionError", "first public test"]),
        ("verdict", ["passes 0 of 1"], ["1 of 3", "runtime error", "ZeroDivision"]),
        ("none", ["print(1)"], ["1 of 3", "public test", "error", "wrong", "passes"]),
    ],
)
def test_a_refinement_is_told_as_much_as_the_level_allows(
    level: str, shown: list[str], hidden: list[str]
) -> None:
    prompt = refinement(level)
    assert [text for text in shown if text not in prompt] == []
    assert [text for text in hidden if text in prompt] == []


def test_without_feedback_right_and_wrong_answers_look_alike() -> None:
    class Solved(StubJudge):
        def judge(self, task: CodeTask, completion: str) -> Verdict:
            return dataclasses.replace(
                super().judge(task, completion),
                score=1.0,
                public_passed=3,
                public_total=3,
                feedback=RIGHT,
            )

    for prompts in ("prose", "compact"):
        assert refinement("none", Solved, prompts=prompts) == refinement("none", prompts=prompts)
        assert refinement("verdict", Solved, prompts=prompts) != refinement(
            "verdict", prompts=prompts
        )


@pytest.mark.parametrize("level", ["none", "verdict", "summary", "full"])
def test_fresh_answers_are_never_told_anything(level: str) -> None:
    env = make(feedback_level=level, budget=30, selector="best_of_n")
    env.reset(seed=0)
    first = env.observe(env.agent_selection)["prompt"]
    for turn in range(29):
        env.step(f"print({turn})")
        assert env.observe(env.agent_selection)["prompt"] == first


def test_the_verdict_stands_for_all_tests_at_once() -> None:
    assert reduce_feedback(RIGHT, "verdict") == Feedback(passed=1, total=1, status="accepted")
    assert reduce_feedback(WRONG, "verdict") == Feedback(passed=0, total=1, status="wrong_answer")


def test_no_set_of_prompts_can_tell_more_than_the_level() -> None:
    verdict = Told().judge(make().tasks[0], "print(1)")
    node = SearchTree().add(ROOT, "coder_0", dataclasses.replace(verdict, public_passed=3))
    view = parent_view(node, "none")
    assert (view.feedback, view.solved_public, view.told) == (
        Feedback(passed=0, total=0, status=""),
        False,
        False,
    )


# Roles ----------------------------------------------------------------------------------------


def test_a_role_is_the_last_line_of_every_prompt_of_its_agent() -> None:
    role = "You are careful with edge cases."
    env, plain = make(roles={"coder_1": role}, budget=20), make(budget=20)
    for other in (env, plain):
        other.reset(seed=0)
    seen = set()
    for turn in range(20):
        agent = env.agent_selection
        prompt = env.observe(agent)["prompt"]
        seen.add(agent)
        without = plain.observe(agent)["prompt"]
        assert prompt == (without if agent == "coder_0" else f"{without}{role}\n")
        env.step(f"print({turn})")
        plain.step(f"print({turn})")
    assert seen == {"coder_0", "coder_1"}


# Reward models --------------------------------------------------------------------------------


def longest(task: CodeTask, tree: SearchTree, node: Node) -> float:
    """A reward model that can be named: long answers are good ones."""
    return min(1.0, len(node.reply) / 100)


class Equal(StubJudge):
    """Gives everything the same score."""

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        return dataclasses.replace(
            super().judge(task, completion), score=0.0, public_passed=0, public_total=3
        )


def test_a_reward_model_breaks_ties_in_the_final_choice() -> None:
    env = make(judge=Equal, score_fn=longest, budget=3)
    env.reset(seed=0)
    env.step("short")
    env.step("the longest one of all")
    assert env.infos["coder_0"]["best_node_id"] == 1
    env.step("medium size")
    assert env.infos["coder_0"]["best_node_id"] == 1
    assert env.infos["coder_0"]["best_score"] == 0.0


def test_a_reward_model_may_drive_the_search_but_not_the_contract_s_score() -> None:
    env = make(judge=Equal, score_fn=longest, score_weight=0.25, budget=2)
    env.reset(seed=0)
    env.step("x" * 40)
    assert env.tree[0].value == pytest.approx(0.75 * 0.4)
    agent = env.tree[0].agent
    assert env.infos[agent]["score"] == 0.0
    assert env.state()[1, 3] == 0.0


def test_a_reward_model_knows_the_task() -> None:
    seen = []

    def spy(task: CodeTask, tree: SearchTree, node: Node) -> float:
        seen.append((task.task_id, node.id, len(tree)))
        return 0.0

    env = make(score_fn=spy, score_weight=0.5, budget=2)
    env.reset(seed=0, options={"task": "stub/1"})
    env.step("a")
    assert seen == [("stub/1", 0, 0)]


class Server:
    """A reward model that is away when first asked about a node; no copy, no pickle of it works."""

    def __init__(self) -> None:
        self.calls = 0
        self.known: set[tuple[int, bool]] = set()
        self.lock = threading.Lock()

    def __call__(self, task: CodeTask, tree: SearchTree, node: Node) -> float:
        self.calls += 1
        question = (node.id, node.id < len(tree))
        if question not in self.known:
            self.known.add(question)
            raise ConnectionError("the reward model is away")
        return 0.5


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_misspelled_options_of_reset_are_refused(kind: Any) -> None:
    env = kind(**STUBS)
    with pytest.raises(
        InvalidSetting, match="unknown option 'tasks' of reset; did you mean 'task'"
    ):
        env.reset(options={"tasks": "stub/1"})
    with pytest.raises(InvalidSetting, match="'agent' of reset; did you mean 'agents'"):
        env.reset(options={"agent": ["coder_0"]})


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_a_step_whose_reward_model_raises_changes_nothing_and_may_be_repeated(kind: Any) -> None:
    options: dict[str, Any] = {**STUBS, "score_weight": 0.5, "budget": 7}

    def turn(env: Any) -> None:
        if kind is TreeSearchEnv:
            env.step(f"print({len(env.tree)})")
        else:
            env.step({a: f"{a} {len(env.tree)}" for a in env.agents})

    bumpy = kind(score_fn=Server(), **options)
    smooth = kind(score_fn=lambda task, tree, node: 0.5, **options)
    for env in (bumpy, smooth):
        env.reset(seed=4)
    errors = 0
    while smooth.agents and not smooth.search.done:
        turn(smooth)
        for _ in range(20):
            before = pickle.dumps(bumpy.search.save()), bumpy.state().tobytes()
            try:
                turn(bumpy)
                break
            except ConnectionError:
                errors += 1
                assert (pickle.dumps(bumpy.search.save()), bumpy.state().tobytes()) == before
        assert bumpy.search.save() == smooth.search.save()
    assert errors > 7


@pytest.mark.parametrize("score_fn", [stub_score, "mars_envs.testing:stub_score", "agreement"])
def test_reward_models_can_be_named(score_fn: Any) -> None:
    check_tree_search(lambda: make(score_fn=score_fn, score_weight=0.5))


# Budgets and limits ---------------------------------------------------------------------------


def test_an_agent_makes_no_more_nodes_than_its_own_budget() -> None:
    env = make(agent_budgets={"coder_0": 2}, budget=12)
    infos = play(env)
    agents = [node.agent for node in env.tree]
    assert (agents.count("coder_0"), agents.count("coder_1")) == (2, 10)
    mine = [i["own_nodes_left"] for i, agent in zip(infos, agents, strict=True) if agent[-1] == "0"]
    assert mine == [1, 0]


def test_spending_every_agent_s_budget_terminates() -> None:
    env = make(agent_budgets={"coder_0": 2, "coder_1": 1}, budget=12)
    env.reset(seed=0)
    for turn in range(3):
        env.step(f"print({turn})")
    assert all(env.terminations.values())
    assert not any(env.truncations.values())
    assert env.infos["coder_0"]["stop_reason"] == "agent_budgets"


def test_a_spent_agent_keeps_its_place_in_a_parallel_episode() -> None:
    env = ParallelTreeSearchEnv(**STUBS, agent_budgets={"coder_0": 1}, budget=4)
    env.reset(seed=0)
    infos = env.step({"coder_0": "a", "coder_1": "b"})[4]
    assert env.agents == ["coder_0", "coder_1"]
    assert not infos["coder_0"]["active"]
    while env.agents:
        env.step({"coder_1": "c"})
    assert [node.agent for node in env.tree] == ["coder_0", "coder_1", "coder_1", "coder_1"]


def test_a_spent_token_budget_terminates() -> None:
    env = make(max_tokens=8, budget=12)
    infos = play(env)
    assert count_words("print(0)") == 4
    assert [info["tokens_left"] for info in infos] == [4, 0]
    assert [info["tokens"] for info in infos] == [4, 4]
    assert infos[-1]["stop_reason"] == "tokens"


def characters(text: str) -> int:
    """A counter that can be named."""
    return len(text)


def test_tokens_are_counted_by_whom_one_likes() -> None:
    env = make(max_tokens=17, count_tokens=characters)
    infos = play(env)
    assert [info["tokens_left"] for info in infos] == [9, 1, 0]


def test_without_a_token_budget_nothing_is_counted_unless_asked_for() -> None:
    assert play(make(budget=1))[0]["tokens"] == 0
    assert play(make(budget=1))[0]["tokens_left"] == NOTHING
    info = play(make(budget=1, count_tokens="words"))[0]
    assert (info["tokens"], info["tokens_left"]) == (4, NOTHING)


@pytest.mark.parametrize("count", [-1, 2.5, True, None])
def test_a_count_that_is_no_number_of_tokens_is_refused_before_anything_changes(count: Any) -> None:
    env = make(count_tokens=lambda text: count)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="count_tokens must return a whole number, at least 0"):
        env.step("a")
    assert len(env.tree) == 0


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), (" \n", 0), ("a_1 b", 2), ("x!=y", 4), ("漢字 né", 3), ("```", 3)],
)
def test_words_and_marks_are_counted(text: str, count: int) -> None:
    assert count_words(text) == count


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_time_that_is_up_truncates() -> None:
    clock = Clock()
    env = make(max_seconds=5, clock=clock, budget=12)
    env.reset(seed=0)
    clock.now = 4.9
    env.step("a")
    assert not any(env.truncations.values())
    clock.now = 5.1
    env.step("b")
    assert all(env.truncations.values())
    assert not any(env.terminations.values())
    assert env.infos["coder_0"]["stop_reason"] == "seconds"
    assert len(env.tree) == 2


def test_time_may_run_out_between_two_looks_at_the_clock() -> None:
    class Hasty:
        """Shows a second more at every look."""

        now = 0.0

        def __call__(self) -> float:
            self.now += 1.0
            return self.now

    for limit in range(1, 12):
        env = make(max_seconds=limit, clock=Hasty(), budget=12)
        play(env)
        assert env.search.stop_reason == "seconds"


def test_every_episode_has_its_own_time() -> None:
    clock = Clock()
    env = make(max_seconds=5, clock=clock, budget=2)
    for _ in range(3):
        env.reset(seed=0)
        clock.now += 4
        env.step("a")
        assert not any(env.truncations.values())


# Teams ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_an_episode_may_do_without_some_agents(kind: Any) -> None:
    env = kind(**STUBS, agents=4, agent_budgets={"coder_1": 3})
    env.reset(seed=0, options={"agents": ["coder_3", "coder_0"]})
    assert env.agents == ["coder_0", "coder_3"]
    assert env.possible_agents == ["coder_0", "coder_1", "coder_2", "coder_3"]
    env.reset(seed=0)
    assert env.agents == env.possible_agents


def test_a_smaller_team_shares_the_whole_budget() -> None:
    env = make(agents=3, budget=9)
    infos = play(env, agents=["coder_1", "coder_2"])
    assert len(infos) == 9
    assert {node.agent for node in env.tree} == {"coder_1", "coder_2"}
    assert set(env.state()[1:, 1].tolist()) == {2.0, 3.0}


def test_a_team_that_may_make_no_node_is_refused_and_leaves_the_episode_alone() -> None:
    env = make(agent_budgets={"coder_1": 0})
    env.reset(seed=0)
    env.step("a")
    drawn = env.np_random.bit_generator.state
    with pytest.raises(ValueError, match=r"none of \['coder_1'\] may make a node"):
        env.reset(options={"agents": ["coder_1"]})
    assert len(env.tree) == 1
    assert env.np_random.bit_generator.state == drawn
    with pytest.raises(ValueError, match="give one of them a budget above 0"):
        make(agent_budgets={"coder_0": 0, "coder_1": 0})


@pytest.mark.parametrize("agents", [[], ["coder_9"], "coder_0", 5, [["coder_0"]]])
def test_a_team_that_cannot_be_is_refused_and_leaves_the_episode_alone(agents: Any) -> None:
    env = make()
    env.reset(seed=0)
    env.step("a")
    with pytest.raises(
        ValueError, match=r"options\['agents'\] must name one or more of \['coder_0"
    ):
        env.reset(options={"agents": agents})
    assert len(env.tree) == 1


# All together ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"feedback_level": "none", "roles": {"coder_0": "Be brief."}},
        {"agent_budgets": {"coder_0": 1}, "max_tokens": 40},
        {"feedback_level": "verdict", "prompts": "compact", "count_tokens": "words"},
        {"feedback_level": "summary", "max_seconds": 1e9},
    ],
)
def test_episodes_keep_the_contract_whatever_the_options(options: dict[str, Any]) -> None:
    check_tree_search(lambda: make(**options))


def test_copies_share_what_cannot_be_copied() -> None:
    server = Server()
    env = make(score_fn=server)
    env.reset(seed=0)
    env.step("a")
    twin = copy.deepcopy(env)
    assert twin.task is env.task
    assert twin.tree[0] is env.tree[0]
    with pytest.raises(ConnectionError):
        _ = twin.search.answer
    assert server.calls == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feedback_level": "loud"}, "feedback_level must be one of none, verdict, summary, full"),
        ({"roles": {"coder_9": "x"}}, "roles for unknown agent 'coder_9'"),
        ({"roles": {"coder_0": 3}}, r"roles\['coder_0'\] must be one line of text, got 3"),
        ({"score_fn": 3}, "a score_fn is called with"),
        ({"score_fn": "agree"}, "unknown score_fn 'agree'; expected 'agreement'"),
        ({"score_weight": 0.5}, "needs a score_fn to blend with"),
        ({"score_weight": 2.0}, r"score_weight must lie in \[0, 1\]"),
        ({"agent_budgets": {"coder_9": 1}}, "no agent 'coder_9'"),
        ({"agent_budgets": {"coder_0": -1}}, "must be at least 0 and a whole number, got -1"),
        ({"max_tokens": 0}, "max_tokens, if not None, must be at least 1"),
        ({"max_seconds": -1.0}, "max_seconds must be above 0"),
        ({"count_tokens": 3}, "count_tokens must be 'words', 'module:name' or a callable"),
        ({"count_tokens": "letters"}, "expected 'module:name', got 'letters'"),
    ],
)
@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_bad_options_are_refused_at_once(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{**STUBS, **options})


# Options that cannot be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_cycles": 1.5}, "max_cycles must be a whole number of at least 1, or None, got 1.5"),
        ({"budget": float("nan")}, "budget is a number of nodes, a whole one .* got nan"),
        ({"budget": "8"}, "budget is a number of nodes, a whole one of at least 1, got '8'"),
        ({"agents": 2.0}, "agents is a whole number or a list of names, got 2.0"),
        ({"agents": ["a\nb"]}, r"an agent's name is a text of printable .* got 'a\\nb'"),
        ({"agents": ["\ud800"]}, "an agent's name is a text of printable characters"),
        ({"roles": {"coder_0": "x\ny"}}, r"roles\['coder_0'\] must be one line of text"),
    ],
)
def test_an_option_that_cannot_be_is_refused_in_words(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_a_render_marks_the_answer_that_the_reward_model_chose() -> None:
    def later_is_worse(task: Any, tree: Any, node: Any) -> float:
        return 1 / (node.id + 1)

    env = make(
        judge=StubJudge(solve_rate=1.0), budget=3, score_fn=later_is_worse, render_mode="ansi"
    )
    env.reset(seed=0)
    for _ in range(3):
        env.step("x")
        text = env.render()
        assert isinstance(text, str)
        best = env.infos["coder_0"]["best_node_id"]
        (line,) = (line for line in text.splitlines() if "  best  " in line)
        assert f"─ {best}  " in line
    # While the search runs the latest of equals is the best; the model decides at the end.
    assert env.infos["coder_0"]["best_node_id"] == 0
