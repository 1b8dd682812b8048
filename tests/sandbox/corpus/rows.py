"""What must be covered, in the words of the threat model, and by which attacks.

A name without a colon stands for its whole family.
"""

from __future__ import annotations

THREAT_MODEL: dict[str, tuple[str, ...]] = {
    "fork bomb, thread bomb": ("fork bomb", "thread bomb"),
    "memory bomb; 8-process memory bomb": ("memory bomb", "memory bomb: eight processes"),
    "infinite loop; sleep; all signals ignored": (
        "infinite loop", "sleep", "all signals ignored",
    ),
    "stdout flood; 1.1 GB stderr": ("stdout flood", "1.1 GB on stderr"),
    "fill disk; inode bomb": ("fill the disk", "inode bomb"),
    "read /etc/shadow; walk / for secrets; docker.sock": (
        "find secrets: files of root", "find secrets: names that tell of them",
        "find secrets: the engine's socket",
    ),
    "connect to host, DNS": (
        "connect to the outside: a host", "connect to the outside: this machine",
        "connect to the outside: the name service",
    ),
    "kill(-1, 9); kill parent and PID 1; SIGSTOP parent": (
        "signal everything", "signal the parent: SIGKILL", "signal PID 1: SIGKILL",
        "signal the parent: SIGSTOP",
    ),
    "ptrace, /proc/PID/mem, process_vm_readv of the worker": (
        "trace the others", "look into the others: memory", "system call: process_vm_readv",
        "system call: ptrace",
    ),
    "open /proc/PID/{fd,environ,maps} of parent": (
        "look into the others: descriptors", "look into the others: environment",
        "look into the others: maps",
    ),
    "forge a result frame through /proc/1/fd or inherited fds": (
        "forge a result: through descriptors of the others",
        "forge a result: through inherited descriptors",
    ),
    "print the success marker / fake reward JSON + _exit(0)": (
        "print the marker of success", "print a reward",
    ),
    "os._exit(0), sys.exit(0), SystemExit('pass')": (
        "end early: os._exit(0)", "end early: sys.exit(0)", "end early: SystemExit('pass')",
    ),
    "__eq__ -> True, patched builtins, str subclass": ("equal to everything", "patched builtins"),
    "close stdout/stderr; read stdin for ever": ("close the streams", "read stdin for ever"),
    "double-forked daemon; daemon holding stdout": (
        "a daemon: silent", "a daemon: holding the output",
    ),
    "symlinks, chmod 000 dirs in /tmp": (
        "files left behind: symbolic links", "files left behind: locked folders",
    ),
    "overwrite interpreter/stdlib/passwd": ("write outside /tmp: the interpreter",),
    "recursion 1e9; parser bomb (100k parens); segfault": (
        "recursion without end", "parser bomb", "segfault",
    ),
    "lone surrogates, invalid UTF-8, NUL bytes": (
        "lone surrogates", "bytes that are no text", "bytes that are no text: NUL",
    ),
    "delete own cwd": ("remove its folder",),
    "ctypes: unshare, mount, chroot, keyctl, bpf, perf, userfaultfd, io_uring, setuid(0), "
    "init_module, pivot_root, ptrace": (
        "system call: unshare", "system call: mount", "system call: chroot",
        "system call: keyctl", "system call: bpf", "system call: perf_event_open",
        "system call: userfaultfd", "system call: io_uring_setup", "become someone else: user",
        "system call: init_module", "system call: pivot_root", "system call: ptrace",
        "system call: clone3",
    ),
    "patch time.*, raise rlimits, set the clock": (
        "patched clocks", "raise its limits", "set the clock",
    ),
    "read harness source/frames/gc for expected values": (
        "read expected values: the guest's modules", "read expected values: frames",
        "read expected values: objects", "read expected values: memory",
    ),
    "scan own memory for the previous request": ("read the program before",),
    "fake sandbox_error (_exit(90), write to setup fd)": (
        "pretend that the sandbox broke", "pretend that the sandbox broke: the setup pipe",
    ),
    "SysV shm as a mailbox between programs": (
        "system call: shmget", "system call: semget", "system call: msgget",
    ),
}  # fmt: skip
"""The table of attacks in docs/sandbox.md, a row each."""

IN_PROCESS: dict[str, tuple[str, ...]] = {
    "os._exit(0) / sys.exit(0)": (
        "forge an assertion: os._exit(0)", "forge an assertion: sys.exit(0)",
    ),
    "print marker + _exit(0)": ("forge an assertion: print the marker and exit",),
    "AlwaysEqual return value": ("forge an assertion: a value equal to everything",),
    "patched abs": ("forge an assertion: patched abs",),
    "frame rewrite + exit; atexit _exit(0); sys.excepthook _exit(0)": (
        "forge an assertion: frames rewritten", "forge an assertion: atexit",
        "forge an assertion: sys.excepthook",
    ),
    "read expected constants from the caller's frame (+ print marker)": (
        "forge an assertion: the caller's constants",
    ),
}  # fmt: skip
"""What graders accept that run the test in the program's own process."""

LATER: dict[str, tuple[str, ...]] = {
    "a decoder bomb in the return value (depth > 60, 10^8-element list)": (
        "a bomb for the decoder: nested deeply", "a bomb for the decoder: a list of 10^8",
    ),
    "huge ints in output (host-side int() limit)": (
        "a huge number on stdout", "a bomb for the decoder: a huge number",
    ),
    "a return object whose __iter__/__class__ lies": (
        "a value that lies: __iter__", "a value that lies: __class__",
    ),
    "10^6 short lines (host compare must be linear)": ("a million short lines",),
    "slow-drip output": ("slow drip of output", "write to the channel: a drip"),
}  # fmt: skip

OURS: dict[str, tuple[str, ...]] = {
    "a closed TCP connection as a mailbox": ("a mailbox: a closed connection",),
    "a queue made in /dev/mqueue as a mailbox": ("a mailbox: a queue in the file system",),
    "CPU time hidden behind ignored SIGCHLD": ("time of children hidden",),
    "StopIteration that ends the test": ("an exception that passes for success",),
    "a test that harms the process that its program's tests are forked from": (
        "signal the parent", "signal PID 1", "signal every other", "signal everything",
        "signal by descriptor", "change the others", "look into the others",
    ),
    "a test that leaves a habit behind": ("change itself", "alarm clocks", "locked memory"),
    "what outlives a test": ("a daemon", "files left behind", "a mailbox"),
    "a clock that does not run": ("stop itself", "time of children hidden: in daemons"),
    "places of the machine": ("write outside /tmp", "find secrets: devices"),
    "privileges": ("become someone else", "run the interpreter anew", "system call"),
    "the network by other doors": ("connect to the outside",),
    "verdicts by other ways": (
        "forge a result", "forge an assertion", "end early", "end late",
        "pretend that memory ran out", "pretend that it did not compile",
    ),
    "the channel of a tested function": (
        "write to the channel", "the channel closed", "the channel never read",
        "answers prepared by a child", "a value that lies", "a bomb for the decoder",
        "the recursion limit",
    ),
    "streams and encodings": (
        "other streams in their place", "write to stdin", "one line without end",
        "an encoding that does not exist", "an encoding that hides the program",
    ),
}  # fmt: skip
"""What was found, or thought of, in this repository."""

ROWS = {**THREAT_MODEL, **IN_PROCESS, **LATER, **OURS}
