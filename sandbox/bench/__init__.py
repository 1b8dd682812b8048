"""What judging costs: the same program judged in five ways, side by side.

One run interleaves rounds of five ways to judge a program on its tests: a subprocess of this
machine for each test (which isolates nothing), `docker run` for each program, `docker exec` into a
warm container for each program, and our two backends. In all of them every test has a process of
its own and the outputs are compared here.

CPU time is what counts, as wall time is at the mercy of the neighbours, and all of it is counted:
ours, the engine's and the guests', from the first request of a round until everything that it
started has settled (`cpu`). For that the engine must be a descendant of this process, and so it is
one of its own, started for the run (`engine`). Where that is not possible (it takes root and a
`dockerd`), an engine that is there anyway is used and its CPU time is left out rather than guessed.

`machine` says on what it was measured, with the least that a process can cost there; `report`
makes ranges over rounds and ratios within them; `uptime` looks whether cost or memory grows while
a pool lives.
"""
