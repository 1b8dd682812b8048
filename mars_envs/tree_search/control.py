"""Search as a control problem: a numeric environment in which the learner is the selector.

One episode grows one tree to a budget. The learner chooses, instead of Thompson sampling, which
node is expanded and by which agent; simulated or recorded coders (`simulated`) say at once what
came of it. So a policy that was learned over many trees can be compared with rules that begin every
tree anew, on the same episodes: an episode's task, and what the k-th expansion of any node by any
agent would yield, are fixed by the seed (common random numbers). Of recorded pools the order is
fixed: an agent's n-th node gets its n-th outcome, whatever the parent.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..errors import PoolExhausted, ProtocolError
from ..random_state import draws_or_nothing
from ..shell import reset_options
from .drawing import tree_to_image
from .families import resolve_coders
from .rendering import tree_to_text
from .rows import Layout, TreeRows
from .selection import Choice
from .simulated import TaskModel, TaskSource
from .tree import NOTHING, ROOT, Node, SearchTree

Observation = NDArray[np.float32]
Reward = Literal["answer", "coverage", "new_best"]
InvalidAction = Literal["waste", "error"]


class TreeControlEnv(gymnasium.Env[Observation, Any]):
    """Grow a search tree: choose a parent and an agent, see the public score, repeat.

    Observation: `Box(0, 1, (layout.size,), float32)`, the tree as rows and totals (`rows.Layout`);
    public facts only. Action: `Discrete(budget * agents)`; action `row * agents + agent` expands
    row 0 (the root: answer afresh) or row i (refine node i - 1) with that agent. `action_masks()`
    (sb3-contrib) and `info["action_mask"]` (CleanRL, Tianshou, `Discrete.sample`) say which of them
    are possible. After the last step no action counts and the mask allows action 0 alone, so that
    no policy ever normalises over nothing.

    The spent budget terminates the episode, as do exhausted pools of recorded coders.

    Args:
        coders: a family of simulated coders ("specialists", "repair", "no_repair", "alike"), a
            .jsonl file of recorded pools, "module:name", or a `TaskSource`.
        budget: expansions of an episode.
        reward: "answer": 1.0 at the end if the answer (the best public score, of equals the
            latest) is solved, so a return is Pass@1(MCTS). "coverage": 1.0 with the first solved
            node, so a return is Pass@N. "new_best": what the best public score gains with this
            node; a return is the answer's public score, all that is known where no hidden test is.
        expand_solved: whether a node that passes every public test may be refined.
        invalid_action: "waste": an action that the mask forbids spends one expansion and makes no
            node (`info["invalid"]`), as unmasked learners and Gymnasium's checkers need; "error":
            it raises ValueError and changes nothing.
        render_mode: "ansi" (text), "human" (printed), "rgb_array" (see `drawing`) or None.

    Raises:
        ValueError: an option out of range or of an unknown name.

    Example:
        >>> env = TreeControlEnv(coders="specialists", budget=4)
        >>> observation, info = env.reset(seed=0)
        >>> terminated = False
        >>> while not terminated:
        ...     action = env.action_space.sample(info["action_mask"])
        ...     observation, reward, terminated, truncated, info = env.step(action)
        >>> len(env.tree)
        4
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Gymnasium's is no ClassVar
        "render_modes": ["ansi", "human", "rgb_array"],
        "render_fps": 4,
    }

    def __init__(
        self,
        *,
        coders: str | TaskSource = "specialists",
        budget: int = 8,
        reward: Reward = "answer",
        expand_solved: bool = True,
        invalid_action: InvalidAction = "waste",
        render_mode: str | None = None,
    ) -> None:
        _check_word("reward", reward, get_args(Reward))
        _check_word("invalid_action", invalid_action, get_args(InvalidAction))
        _check_word("render_mode", render_mode, (*self.metadata["render_modes"], None))
        if budget < 1:
            raise ValueError(
                f"budget is a number of expansions and must be at least 1, got {budget!r}"
            )
        self.render_mode = render_mode
        self.budget = budget
        self.expand_solved = expand_solved
        self._source = resolve_coders(coders)
        self._reward: Reward = reward
        self._invalid_action: InvalidAction = invalid_action
        self.agents = tuple(self._source.agents)
        self.layout = Layout(self.agents, budget)
        self.observation_space = spaces.Box(0.0, 1.0, (self.layout.size,), np.float32)
        self._actions = budget * len(self.agents)
        self.action_space = spaces.Discrete(self._actions)
        self.tree = SearchTree()
        self._rows = TreeRows(self.layout)
        self._paths: dict[int, tuple[int, ...]] = {ROOT: ()}
        self._task: TaskModel | None = None
        self._entropy = 0
        self._wasted = 0
        self._covered = False
        self._exhausted: set[str] = set()
        self._possible = np.zeros((budget, len(self.agents)), np.bool_)

    @property
    def nodes_left(self) -> int:
        """How much of the budget is left; wasted expansions are spent."""
        return self.budget - len(self.tree) - self._wasted

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw a task and begin a tree.

        Args:
            seed: of the task and of everything that the coders will do in this episode.
            options: `{"task": index}` asks for one recorded task, from 0; others are ignored.

        Raises:
            ValueError: a task is asked for where tasks have no index, or there is none such.
                Nothing has changed then.
        """
        with draws_or_nothing(self):
            super().reset(seed=seed)
            entropy = int(self.np_random.integers(2**63))
            self._task = self._draw(reset_options(options, "task").get("task"), _rng(entropy, 0))
        self._entropy = entropy
        self.tree = SearchTree()
        self._rows = TreeRows(self.layout)
        self._paths = {ROOT: ()}
        self._wasted = 0
        self._covered = False
        self._exhausted = set()
        self._possible = self._find_possible()
        self._show()
        return self._rows.observe(self.nodes_left), self._info(None, invalid=False)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Expand a node.

        Raises:
            ProtocolError: before `reset`, or after the end.
            ValueError: not an action at all; or a forbidden one, where those are errors.
        """
        if self._task is None or self._done:
            raise ProtocolError("this episode is over or not begun; call reset() before step()")
        index = _whole(action)
        if index is None or not 0 <= index < self._actions:
            raise ValueError(
                f"expected an action in 0..{self._actions - 1} (row * {len(self.agents)} "
                f"agents + agent), got {action!r}"
            )
        forbidden = not self._possible.flat[index]
        if forbidden and self._invalid_action == "error":
            raise ValueError(self._why_not(index))
        before = self.tree.best
        node = None if forbidden else self._expand(self._task, self.choice(index))
        self._wasted += node is None
        self._possible = self._find_possible()
        reward = self._pay(node, before)
        self._covered = self._covered or (node is not None and node.solved)
        self._show()
        observation = self._rows.observe(self.nodes_left)
        return observation, reward, self._done, False, self._info(node, invalid=node is None)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are possible: [budget * agents], never all False."""
        mask = self._possible.flatten()
        mask[0] |= self._done
        return mask

    def choice(self, action: int) -> Choice:
        """Return the parent and the agent that an action stands for."""
        row, agent = divmod(int(action), len(self.agents))
        return Choice(row - 1, self.agents[agent])

    def action(self, choice: Choice) -> int:
        """Return the action that stands for a parent and an agent."""
        return (choice.parent_id + 1) * len(self.agents) + self.agents.index(choice.agent)

    def render(self) -> str | NDArray[np.uint8] | None:
        """Return the tree as text ("ansi") or as a picture ("rgb_array"), or print it ("human")."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: the environment has no render_mode")
            return None
        if self.render_mode == "human":
            self._show()
            return None
        if self.render_mode == "rgb_array":
            return tree_to_image(self.tree, self.agents)
        return self._text()

    @property
    def _done(self) -> bool:
        return not self._possible.any()

    def _find_possible(self) -> NDArray[np.bool_]:
        """Return which (row, agent) may be expanded: [budget, agents]; none after the end."""
        possible = np.zeros((self.budget, len(self.agents)), np.bool_)
        if self.nodes_left > 0:
            possible[: len(self.tree) + 1] = [self._has_answers(agent) for agent in self.agents]
            if not self.expand_solved:
                possible[[node.id + 1 for node in self.tree if node.solved_public]] = False
        return possible

    def _has_answers(self, agent: str) -> bool:
        if agent in self._exhausted:
            return False
        supply = getattr(self._task, "left", None)  # recorded coders come to an end
        return supply is None or supply(self.tree, agent) > 0

    def _draw(self, wanted: object, rng: np.random.Generator) -> TaskModel:
        if wanted is None:
            return self._source.draw(rng)
        pick = getattr(self._source, "task", None)
        if pick is None:
            raise ValueError(
                f"options={{'task': {wanted!r}}}: {type(self._source).__name__} draws its tasks "
                "and has none to ask for; recorded pools do"
            )
        try:
            task: TaskModel = pick(wanted, rng)
        except (IndexError, TypeError) as error:
            raise ValueError(f"options={{'task': {wanted!r}}}: no such task ({error})") from error
        return task

    def _expand(self, task: TaskModel, choice: Choice) -> Node | None:
        parent_id, agent = choice
        earlier = sum(child.agent == agent for child in self.tree.children(parent_id))
        # A node's name in the tree of all that could be: the same whatever else was expanded.
        path = (*self._paths[parent_id], self.agents.index(agent), earlier)
        try:
            verdict = task.answer(self.tree, parent_id, agent, _rng(self._entropy, 1, *path))
        except PoolExhausted:
            # Of a task model without `left`, nobody could know before.
            self._exhausted.add(agent)
            return None
        node = self.tree.add(parent_id, agent, verdict)
        self._paths[node.id] = path
        self._rows.add(self.tree, node)
        return node

    def _pay(self, node: Node | None, before: Node | None) -> float:
        if self._reward == "answer":
            answer = self.tree.best
            return float(self._done and answer is not None and answer.solved)
        if node is None:
            return 0.0
        if self._reward == "coverage":
            return float(node.solved and not self._covered)
        return max(0.0, node.score - (0.0 if before is None else before.score))

    def _info(self, node: Node | None, *, invalid: bool) -> dict[str, Any]:
        best = self.tree.best
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "invalid": invalid,
            "node_id": NOTHING if node is None else node.id,
            "node_parent_id": NOTHING if node is None else node.parent_id,
            "depth": NOTHING if node is None else node.depth,
            "score": 0.0 if node is None else float(node.score),
            "solved": node is not None and bool(node.solved),
            "nodes_left": self.nodes_left,
            "best_node_id": NOTHING if best is None else best.id,
            "best_score": 0.0 if best is None else float(best.score),
            "best_solved": best is not None and bool(best.solved),
            "covered": self._covered,
        }

    def _why_not(self, action: int) -> str:
        parent_id, agent = self.choice(action)
        if parent_id >= len(self.tree):
            reason = f"there is no node {parent_id}; the tree has {len(self.tree)} nodes"
        elif parent_id != ROOT and not self.expand_solved and self.tree[parent_id].solved_public:
            reason = f"node {parent_id} passes every public test, and expand_solved is False"
        else:
            reason = f"{agent} has no recorded answer left"
        return (
            f"action {action} (expand {parent_id} with {agent}) is not possible: {reason}. "
            "Choose by action_masks(), or allow it with invalid_action='waste'"
        )

    def _text(self) -> str:
        return f"{self.nodes_left} of {self.budget} expansions left\n{tree_to_text(self.tree)}"

    def _show(self) -> None:
        if self.render_mode == "human":
            print(self._text())


def _rng(entropy: int, *key: int) -> np.random.Generator:
    """Return a generator that depends on an episode's entropy and on `key` alone."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


def _whole(action: Any) -> int | None:
    """Return the action as an int, if it is one: an int, a NumPy integer or an array of one."""
    array = np.asarray(action)
    if array.size != 1 or not np.issubdtype(array.dtype, np.integer):
        return None
    return int(array.reshape(()))


def _check_word(option: str, word: object, allowed: tuple[object, ...]) -> None:
    if word not in allowed:
        expected = ", ".join(repr(item) for item in allowed)
        raise ValueError(f"{option} must be one of {expected}, got {word!r}")
