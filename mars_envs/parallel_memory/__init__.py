"""PI-Mem: many readers, one merger and one answerer over a very long document."""

from .env import ParallelMemoryEnv, TurnBasedMemoryEnv
from .infos import INFO_FIELDS
from .loop import MemoryLoop
from .methods import METHODS, make_workflow
from .play import call_view, play, read_selected, write_selected
from .prompts import Prompts, resolve_prompts
from .recurrent_env import ParallelRecurrentMemoryEnv, RecurrentMemoryEnv
from .replies import Answer, Merge, Read
from .reward import Reward, RewardSettings, episode_reward, reward_settings
from .scripted import lexical, oracle
from .settings import MEMORY_PRESETS, MemorySettings, memory_settings
from .single_pass_env import ParallelSinglePassEnv, SinglePassEnv
from .summary import MemorySummary, summarize
from .supervision import reader_supervision
from .workflow import Call, CallRecord, Note, Phase, Speaker, TurnRecord, Workflow

__all__ = [
    "INFO_FIELDS",
    "MEMORY_PRESETS",
    "METHODS",
    "Answer",
    "Call",
    "CallRecord",
    "MemoryLoop",
    "MemorySettings",
    "MemorySummary",
    "Merge",
    "Note",
    "ParallelMemoryEnv",
    "ParallelRecurrentMemoryEnv",
    "ParallelSinglePassEnv",
    "Phase",
    "Prompts",
    "Read",
    "RecurrentMemoryEnv",
    "Reward",
    "RewardSettings",
    "SinglePassEnv",
    "Speaker",
    "TurnBasedMemoryEnv",
    "TurnRecord",
    "Workflow",
    "call_view",
    "episode_reward",
    "lexical",
    "make_workflow",
    "memory_settings",
    "oracle",
    "play",
    "read_selected",
    "reader_supervision",
    "resolve_prompts",
    "reward_settings",
    "summarize",
    "write_selected",
]
