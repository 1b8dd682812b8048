"""The exception tree of `mars_envs`.

    MarsEnvsError
    ├── InvalidTask        a task or task file that cannot be used; says where and how to mend it
    ├── JudgeUnavailable   no judge can work here (no sandbox); never turned into a score
    ├── InvalidSetting     a setting that cannot work; says which values do
    ├── InvalidJournal     a journal of a search that cannot be resumed; says at which line
    ├── PoolExhausted      a recorded agent has no answer left to this task; it leaves the search
    └── ProtocolError      a call out of order, e.g. `step` before `reset`

A bad completion is never an exception: it is data, with score 0 and feedback.
"""

from __future__ import annotations


class MarsEnvsError(Exception):
    """Base of every error that `mars_envs` raises on purpose."""


class InvalidTask(MarsEnvsError, ValueError):
    """A task, or a file of tasks, that cannot be used."""


class JudgeUnavailable(MarsEnvsError, RuntimeError):
    """Nothing here can judge a completion."""


class InvalidJournal(MarsEnvsError, ValueError):
    """A journal of a search that cannot be resumed."""


class PoolExhausted(MarsEnvsError, LookupError):
    """A recorded agent has no answer left to this task."""


class ProtocolError(MarsEnvsError, RuntimeError):
    """A method was called out of order."""


class InvalidSetting(MarsEnvsError, ValueError):
    """A setting that cannot work."""
