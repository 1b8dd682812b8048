"""Make the environment with Gymnasium and play one episode: no model, no engine, no set-up.

python examples/gym_make.py
"""

import gymnasium as gym


def main() -> None:
    # Importing the package by name ("module:id") registers its ids. Without further arguments the
    # tasks are the built-in tiny programs, and the judge runs them in the embedded sandbox.
    env = gym.make("mars_envs:mars_envs/TreeSearch-v0", budget=4)
    observation, info = env.reset(seed=0)
    print(observation["prompt"])
    over = False
    while not over:
        text = "```python\nn = int(input())\nprint(n + 1)\n```"  # here a model would answer
        observation, reward, terminated, truncated, info = env.step(text)
        print(f"node {info['node_id']}: score {info['score']:.2f}, reward {reward}")
        over = terminated or truncated
    env.close()


if __name__ == "__main__":
    main()
