"""What reading costs: a simulator of one model server, and closed forms beside it.

`simulate` plays jobs (`parallel_job`, `recurrent_job`, or `job_of` any finished workflow) through a
`Machine` with request slots and a prefix cache of blocks. It needs no model, is exact within its
assumptions, and equal input gives equal output. `formulas` holds the same in closed form.
"""

from .engine import simulate
from .formulas import (
    latency_ceiling,
    parallel_latency,
    parallel_work,
    recurrent_latency,
    recurrent_work,
    throughput_speedup,
)
from .jobs import Job, PromptOrder, Reading, Request, parallel_job, recurrent_job
from .ledger import Cost, Served
from .machine import MACHINES, Batching, Machine, machine
from .prefix_cache import PrefixCache, Segment
from .queueing import Schedule
from .recorded import Beginnings, job_of

__all__ = [
    "MACHINES",
    "Batching",
    "Beginnings",
    "Cost",
    "Job",
    "Machine",
    "PrefixCache",
    "PromptOrder",
    "Reading",
    "Request",
    "Schedule",
    "Segment",
    "Served",
    "job_of",
    "latency_ceiling",
    "machine",
    "parallel_job",
    "parallel_latency",
    "parallel_work",
    "recurrent_job",
    "recurrent_latency",
    "recurrent_work",
    "simulate",
    "throughput_speedup",
]
