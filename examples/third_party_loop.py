"""Bring your own algorithm: a bare PettingZoo loop, here with a bandit that learns what to say.

Nothing of `trainers` is used. Each coder keeps a small table: for every operation word of the
tiny tasks, how well each operator did so far. The programs are really run.

    python examples/third_party_loop.py
"""

import random
import re
from collections import defaultdict

import pettingzoo

import mars_envs  # registers the ids

OPERATORS = ("+", "-", "*", "%")
STEP = re.compile(r"^\d+\. (.+?) (\d|c)\b", re.MULTILINE)  # c: a constant that is not told


class Bandit:
    """Learns which operator a word stands for, by ε-greedy choice."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.used: list[tuple[str, str]] = []

    def act(self, prompt: str) -> str:
        """Write a program for the operations that the prompt names."""
        self.used = []
        program = "n"
        for words, constant in STEP.findall(prompt):
            number = constant if constant != "c" else self.rng.randint(2, 9)
            program = f"({program}{self.choose(words)}{number})"
        return f"```python\nn = int(input())\nprint({program})\n```"

    def choose(self, words: str) -> str:
        """Pick an operator for these words: mostly the best so far."""

        def mean(operator: str) -> float:
            total, count = self.totals[words, operator]
            return total / count if count else 0.5  # untried operators are worth a look

        operators = self.rng.sample(OPERATORS, len(OPERATORS))
        best = operators[0] if self.rng.random() < 0.2 else max(operators, key=mean)
        self.used.append((words, best))
        return best

    def learn(self, value: float) -> None:
        """Credit every choice of the last program with its score."""
        for key in self.used:
            self.totals[key][0] += value
            self.totals[key][1] += 1


def main(episodes: int = 60, **options: object) -> list[float]:
    env = pettingzoo.make("aec", "mars_envs/tree_search_v0", agents=2, budget=4, **options)
    coders = {agent: Bandit(seed) for seed, agent in enumerate(env.possible_agents)}
    rewards: list[float] = []
    for episode in range(episodes):
        env.reset(seed=episode)
        total = 0.0
        for agent in env.agent_iter():
            observation, reward, terminated, truncated, info = env.last()
            if coders[agent].used:
                # `reward` is for this agent's action before; `score` is the share of public tests.
                coders[agent].learn(info["score"])
                coders[agent].used = []
                total += reward
            over = terminated or truncated
            env.step(None if over else coders[agent].act(observation["prompt"]))
        rewards.append(total / 4)
    env.close()
    third = max(1, episodes // 3)
    print(f"mars-envs contract {mars_envs.CONTRACT_VERSION}, {episodes} episodes")
    print(f"mean reward: first third {sum(rewards[:third]) / third:.2f}, ", end="")
    print(f"last third {sum(rewards[-third:]) / third:.2f}")
    return rewards


if __name__ == "__main__":
    main()
