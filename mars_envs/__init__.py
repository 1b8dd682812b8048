"""Teams of language models as standard PettingZoo and Gymnasium environments.

Importing this package registers its environments:

    gym.make("mars_envs/TreeSearch-v0")               one learner speaks for the selected coder
    pettingzoo.make("aec", "mars_envs/tree_search_v0")      every coder is an agent
    pettingzoo.make("parallel", "mars_envs/tree_search_v0") all coders at once, round by round
    gym.make("mars_envs/TreeControl-v0")              the learner selects; coders are simulated
    gym.make("mars_envs/ParallelMemory-v0")           one learner reads, merges and answers
    pettingzoo.make("parallel", "mars_envs/parallel_memory_v0")  a wave of readers at once
    gym.make("mars_envs/RecurrentMemory-v0")          one learner memorizes and answers
    gym.make("mars_envs/SinglePass-v0")               one call, with the document or a search
"""

from .answer import AnswerFailed, Reading, answer
from .errors import InvalidTask, JudgeUnavailable, MarsEnvsError, ProtocolError
from .parallel_memory.env import ParallelMemoryEnv, TurnBasedMemoryEnv
from .parallel_memory.loop import MemoryLoop
from .parallel_memory.recurrent_env import ParallelRecurrentMemoryEnv, RecurrentMemoryEnv
from .parallel_memory.single_pass_env import ParallelSinglePassEnv, SinglePassEnv
from .registration import register_envs
from .single_agent import PromptOnly, SingleAgentView
from .spaces import UnicodeText
from .tree_search import (
    ParallelTreeSearchEnv,
    SearchTree,
    TreeControlEnv,
    TreeSearch,
    TreeSearchEnv,
)

CONTRACT_VERSION = 1
"""Version of `docs/contract.md`: what observations, actions, rewards and infos mean."""

__all__ = [
    "CONTRACT_VERSION",
    "AnswerFailed",
    "InvalidTask",
    "JudgeUnavailable",
    "MarsEnvsError",
    "MemoryLoop",
    "ParallelMemoryEnv",
    "ParallelRecurrentMemoryEnv",
    "ParallelSinglePassEnv",
    "ParallelTreeSearchEnv",
    "PromptOnly",
    "ProtocolError",
    "Reading",
    "RecurrentMemoryEnv",
    "SearchTree",
    "SingleAgentView",
    "SinglePassEnv",
    "TreeControlEnv",
    "TreeSearch",
    "TreeSearchEnv",
    "TurnBasedMemoryEnv",
    "UnicodeText",
    "answer",
    "register_envs",
]

register_envs()
