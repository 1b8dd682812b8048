"""One test, from the order to the facts about it: its output is drained, its limits are watched."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time

from . import clocks, sockets, template, wire
from .host import Host
from .link import Link
from .place import Place, memory_file

_CHUNK = 1 << 16
_LINGER_S = 0.05  # for output of descendants after the main process has ended
_GRACE_S = 0.2  # for a program to end by itself once its channel is closed
_PATIENCE_S = 1.0  # for what was killed to be gone
_RETRY_S = 0.01


class Run:
    """One test of the program that the place has loaded."""

    def __init__(self, place: Place, host: Host, stdin: bytes, *, with_channel: bool) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._place = place
        self._host = host
        self._limits = place.limits
        self._oom = False
        place.orphans_cpu_s = 0.0
        self._stage = b"-"
        self._pid = 0
        self._result: tuple[int, float, int] | None = None  # wait status, CPU seconds, KiB
        self._overflow = self._timed_out = self._finished = self._swept = self._listening = False
        self._start_s = time.monotonic()
        self._deadline_s = self._start_s + self._limits.wall_s
        # A single thread cannot have used its time up any sooner.
        self._cpu_check_s = self._start_s + self._limits.cpu_s
        self._poll = select.poll()
        self._link = Link(host, self._poll) if with_channel else None
        self._order(stdin)
        self._poll.register(host.input, select.POLLIN)
        if with_channel:
            self._listen()

    def _order(self, stdin: bytes) -> None:
        self._out, out = os.pipe()
        self._err, err = os.pipe()
        with contextlib.suppress(PermissionError):  # gVisor's kernel lets no one do that
            os.fchmod(out, 0o622)  # so that /dev/stdout and /dev/stderr can be opened
            os.fchmod(err, 0o622)
        theirs = [memory_file("stdin", stdin), out, err]
        if self._link is not None:
            theirs.append(self._link.theirs)
        self._control = self._place.template()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # heard of later
            sockets.send(self._control, template.RUN, theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self._pipes = {self._out, self._err}
        for descriptor in self._pipes:
            self._poll.register(descriptor, select.POLLIN)

    def watch(self) -> wire.Facts:
        """Wait for the end of the program, draining its output; clean up; return the facts."""
        if self._link is not None:
            self._obey_host()
        end_s = 0.0
        while self._result is None or self._pipes:
            now_s = time.monotonic()
            if self._result is not None and not end_s:
                end_s = now_s
                self._cpu_check_s = math.inf
                self._deadline_s = now_s + _LINGER_S
            if now_s >= self._deadline_s:
                self._on_deadline()
            if now_s >= self._cpu_check_s and self._result is None:
                self._check_cpu()
            # The end of its output nearly always announces the end of the program, which is
            # cheaper than waiting for every word from the template.
            if not self._listening and (not self._pipes or now_s >= self._start_s + _LINGER_S):
                self._listen()
            until_s = min(self._deadline_s, self._cpu_check_s)
            if not self._listening:
                until_s = min(until_s, self._start_s + _LINGER_S)
            for descriptor, _ in self._poll.poll(max(0.0, until_s - now_s) * 1000 + 1):
                self._attend_to(descriptor)
        if self._link is not None:
            self._link.close()
        status, cpu_s, max_rss_kb = self._result
        # A program that ended well may still have lost a descendant for memory.
        if status or not self._place.alone():
            self._oom = self._place.oom() or self._oom
        self._place.check()
        return wire.Facts(
            stage=self._stage,
            status=status,
            cpu_s=cpu_s + self._place.orphans_cpu_s,
            wall_s=(end_s or time.monotonic()) - self._start_s,
            max_rss_kb=max_rss_kb,
            overflow=self._overflow,
            timed_out=self._timed_out,
            finished=self._finished,
            oom=self._oom,
            clean=self._place.clean,
        )

    def _listen(self) -> None:
        self._listening = True
        if self._result is None:
            self._poll.register(self._control, select.POLLIN)
            self._knows_pid()  # what has been said so far

    def _stop_listening(self) -> None:
        if self._listening:
            self._poll.unregister(self._control)
        self._listening = True

    def _attend_to(self, descriptor: int) -> None:
        if descriptor in self._pipes:
            self._drain(descriptor)
        elif descriptor == self._host.input:
            self._host.read()
            if self._link is not None:
                self._obey_host()
        elif self._result is None and descriptor == self._control.fileno():
            self._hear_template()
        elif self._link is not None and descriptor == self._host.output:
            self._link.flush_host()
        elif self._link is not None and self._link.open and descriptor == self._link.fileno():
            self._link.read()

    def _hear_template(self, flags: int = 0) -> None:
        """Take in what the template, or the test before its first line, says next."""
        try:
            message, sender = sockets.hear(self._control, 256, flags)
        except ConnectionResetError:  # it ended with the order unread; what it said comes first
            return
        kind = message[:1]
        if kind == b"E":
            _, *facts = template.ENDED.unpack(message)
            self._result = (facts[0], facts[1], facts[2])
            self._stop_listening()
        elif kind == b"S":
            self._stage = b"S"
        elif kind == b"F":
            self.stderr += message[1:]
        elif message:
            self._stage = kind
            self._pid = sender
        else:
            self._template_ended()

    def _template_ended(self) -> None:
        """The template is gone: while it compiled the program, or else for no good reason."""
        self._stop_listening()
        status, cpu_s = self._place.collect_template()
        if self._pid:
            # No test can reach it. For lack of memory the kernel can, and then the test goes too.
            self._place.sweep()
            self._place.clean = False
            self._oom = self._place.oom()
            self._stage, status = (b"R", signal.SIGKILL) if self._oom else (b"-", status)
        self._result = (status, cpu_s, 0)

    def _on_deadline(self) -> None:
        now_s = time.monotonic()
        self._deadline_s = now_s + _PATIENCE_S
        if self._result is None:
            if not (self._finished or self._overflow or self._timed_out):
                left_s = self._left_of_wall_s()
                if left_s > _RETRY_S:
                    self._deadline_s = now_s + left_s
                    return
                self._timed_out = True
            self._kill()
        elif not self._swept:
            # Descendants hold the pipes open.
            self._swept = True
            self._place.sweep()
        else:
            for descriptor in tuple(self._pipes):
                self._drop(descriptor)

    def _check_cpu(self) -> None:
        """Kill the main process if its CPU time is used up, else see when that may be."""
        left_s = _RETRY_S
        if self._knows_pid():
            with contextlib.suppress(OSError):
                left_s = self._limits.cpu_s - clocks.cpu_s(self._pid)
            if left_s < 0:
                self._kill()
        self._cpu_check_s = time.monotonic() + max(left_s, _RETRY_S)

    def _left_of_wall_s(self) -> float:
        """Return how long the program may still run.

        The guard is against programs that wait for nothing, not for a busy processor: neither the
        time before its first line counts nor that in which it could have run but did not.
        """
        most_s = wire.MOST_WALLS * self._limits.wall_s - (time.monotonic() - self._start_s)
        if not self._knows_pid():
            return most_s
        ran_s, waited_s = clocks.of_process(self._pid)
        return min(most_s, self._limits.wall_s + waited_s - ran_s)

    def _kill(self) -> None:
        """Kill the test, or the template that has not come to it."""
        if self._knows_pid():
            # ProcessLookupError: it has ended, and this is yet to be heard.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        elif self._result is None:
            self._template_ended()
            self._stage = b"-"  # nothing is known of the program

    def _knows_pid(self) -> bool:
        """Whether the test runs and has said its number; waits for nothing."""
        with contextlib.suppress(BlockingIOError):
            while self._result is None and not self._pid:
                self._hear_template(sockets.MSG_DONTWAIT)
        return self._result is None and bool(self._pid)

    def _drop(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        self._pipes.discard(descriptor)
        os.close(descriptor)

    def _drain(self, descriptor: int) -> None:
        data = os.read(descriptor, _CHUNK)
        if not data:
            self._drop(descriptor)
        elif descriptor == self._err:
            self.stderr += data
            del self.stderr[: -self._limits.stderr_bytes or len(self.stderr)]
        elif not self._overflow:
            self.stdout += data
            if len(self.stdout) > self._limits.output_bytes:
                del self.stdout[self._limits.output_bytes :]
                self._overflow = True
                self._kill()

    def _obey_host(self) -> None:
        """Follow what the host says during a session."""
        assert self._link is not None
        while (frame := self._host.arrived()) is not None:
            kind, payload = frame
            if kind == wire.FINISH:
                self._finished = True
                self._link.finish()
                self._deadline_s = min(self._deadline_s, time.monotonic() + _GRACE_S)
            elif kind == wire.DATA and not self._link.write(payload):
                self._kill()
