"""Who gets the credit: from rewards to advantages, as pure functions over arrays.

`tree_credit` gives every node of one tree its advantage, `episode_credit` every episode of a group;
`CreditSettings` says how. The steps, in this order, are functions of their own:

1. `shape_rewards`: compare a node with its parent and its siblings;
2. `path_returns`: let what came of a node count for it (not in the papers; off by default);
3. `overlong_penalty`: fine answers that come close to the token limit;
4. `group_advantages`, `ancestor_advantages`: compare with the nodes of a group;
5. clip; `token_weights` says what a token counts in the loss.

Whole episodes have two more: `gated_rewards` before they are compared, `step_advantages` after.

All arrays are float64, no input is changed, and the order of nodes never matters. `N` is the number
of nodes of one tree, or of rollouts where groups are made of those. Missing nodes are allowed: NaN
as a reward, `MISSING_PARENT` as a parent.

Sources: MARS² (arXiv 2604.14564) for shaping and the tree-wide group; DAPO (arXiv 2503.14476) for
the overlong penalty and the filter; GRPO (arXiv 2402.03300), Dr. GRPO (arXiv 2503.20783) and RLOO
(arXiv 2402.14740) for estimators; TreePO (arXiv 2508.17445) for ancestors' groups; PI-Mem for the
weights of tokens; GRU-Mem (arXiv 2602.10560) for verdicts on steps.
"""

from .broadcast import token_weights
from .groups import DEGENERATE_RANGE, GroupAdvantages, ancestor_advantages, group_advantages
from .penalties import overlong_penalty
from .relations import MISSING_PARENT, ROOT_PARENT
from .returns import path_returns
from .settings import CREDIT_PRESETS, CreditSettings, credit_settings
from .shaping import shape_rewards
from .steps import gated_rewards, step_advantages
from .trees import TreeCredit, episode_credit, is_mixed, tree_credit

__all__ = [
    "CREDIT_PRESETS",
    "DEGENERATE_RANGE",
    "MISSING_PARENT",
    "ROOT_PARENT",
    "CreditSettings",
    "GroupAdvantages",
    "TreeCredit",
    "ancestor_advantages",
    "credit_settings",
    "episode_credit",
    "gated_rewards",
    "group_advantages",
    "is_mixed",
    "overlong_penalty",
    "path_returns",
    "shape_rewards",
    "step_advantages",
    "token_weights",
    "tree_credit",
]
