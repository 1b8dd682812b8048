"""Play one search tree with scripted coders and print it: who refined what, and how it was judged.

python examples/play_tree.py
"""

from mars_envs import TreeSearchEnv
from mars_envs.metrics import summarize
from mars_envs.tasks import CodeTask
from mars_envs.tasks.code import ExpectedCase
from mars_envs.tree_search import tree_to_text

TASK = CodeTask(
    task_id="triangle",
    statement="Read n from standard input and print the sum of the numbers from 1 to n.",
    public=(
        ExpectedCase(name="one", input="1\n", expected="1\n"),
        ExpectedCase(name="four", input="4\n", expected="10\n"),
    ),
    hidden=(ExpectedCase(name="zero", input="0\n", expected="0\n"),),
)


def coder(prompt: str) -> str:
    """Guess at first, read the feedback on a refinement: a stand-in for a language model."""
    if "Expected output:\n10" in prompt:
        program = "n = int(input())\nprint(n * (n + 1) // 2)"
    elif "not valid Python" in prompt:
        program = "n = int(input())\nprint(n)"
    else:
        program = "n = int(input()\nprint(n)"
    return f"```python\n{program}\n```"


def main(**options: object) -> str:
    env = TreeSearchEnv(tasks=[TASK], agents=2, budget=8, **options)
    env.reset(seed=3)
    for _ in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        env.step(None if terminated or truncated else coder(observation["prompt"]))
    env.close()
    text = tree_to_text(env.tree, programs=True)
    print(text)
    summary = summarize(env.tree)
    print(f"{summary.solved_nodes} of {summary.nodes} nodes solved; best solved: ", end="")
    print(summary.best_solved)
    return text


if __name__ == "__main__":
    main()
