"""A compliance kit for text environments, and stand-ins that need no sandbox.

PettingZoo's and Gymnasium's own tests leave out much of what trainers live on. These play whole
episodes, and raise AssertionError with a sentence that says what differs and how to mend it:

    check_text_aec(make_env)       a PettingZoo AEC environment whose actions are texts
    check_text_parallel(make_env)  a PettingZoo Parallel one
    check_text_gym(make_env)       a Gymnasium one, a single-agent view for instance
    check_tree_search(make_env)    any of the three, against the tree contract
    check_memory(make_env)         any of the three, against the contract of reading

What they check: every observation of every agent in its space; flat infos with plain scalars, the
same keys at every step, no reserved ones, fresh dicts; the same episode from the same seed and
actions, byte for byte, infos and the last step included, in another environment, in the same one
played again, and continued from a `deepcopy` or a `pickle` taken in mid-episode; agents that keep
their place; finite rewards, bool flags, states in their space, nothing given out that changes
later; failed generations, where `metadata["supports_fail"]` is true. `check_tree_search` also
rebuilds each tree from the infos and holds all else against it, tries the options of `reset`, and
plays with judges of its own: hidden tests must not show, and a judge that fails must not matter.
`check_memory` follows the turns of each episode: who reads which chunk and sees which memory, that
each find enters the merge once, that a failed read never counts as a no, and what it all pays. It
also plays with other answers and evidence, which scores must follow, and nothing else may show.
"""

from .aec import check_text_aec
from .frames import RESERVED_INFO_KEYS, check_info
from .gym import check_text_gym
from .memory import check_memory
from .parallel import check_text_parallel
from .stubs import (
    ODD_TEXTS,
    StubJudge,
    odd_partner,
    odd_partner_reader,
    odd_policy,
    odd_reader,
    stub_reading_tasks,
    stub_score,
    stub_tasks,
)
from .tree import check_tree_search

__all__ = [
    "ODD_TEXTS",
    "RESERVED_INFO_KEYS",
    "StubJudge",
    "check_info",
    "check_memory",
    "check_text_aec",
    "check_text_gym",
    "check_text_parallel",
    "check_tree_search",
    "odd_partner",
    "odd_partner_reader",
    "odd_policy",
    "odd_reader",
    "stub_reading_tasks",
    "stub_score",
    "stub_tasks",
]
