"""What an answered episode came to, as infos say it."""

from __future__ import annotations

from ..judging.answers import score_answer
from ..reading.task import ReadingTask
from .infos import Score
from .reward import RewardSettings, episode_reward
from .workflow import Workflow


def score_episode(workflow: Workflow, task: ReadingTask, settings: RewardSettings) -> Score:
    """Return the reward of an episode, and how good its answer is.

    Args:
        workflow: done, with or without an answer; not after `backend_error`.
        task: of the episode.
        settings: of the reward.
    """
    reward = episode_reward(workflow, task, settings)
    scores = score_answer(workflow.answer, task)
    return Score(
        reward=float(reward.total),
        answer=float(reward.answer),
        turns=float(reward.turns),
        exact_match=float(scores.em),
        f1=float(scores.f1),
        sub_em=float(scores.sub_em),
    )
