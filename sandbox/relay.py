"""Carrying messages between a program and its test, and the verdict that comes of it.

What the program sends is hostile: it is measured and checked before it goes on to the test, and
whatever is out of order ends the case against the program. What the test sends is trusted.
"""

from __future__ import annotations

import ast
import contextlib
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .base import UnsupportedCase, WorkerDied
from .codec import CodecError, Frames, TooLarge, Tree, check, parse
from .graph import TAGS
from .parsing import parse as parse_python
from .types import AssertCase, Limits, Status
from .worker import Execution, Session, WorkerFault

ARGUMENT_BYTES = 1 << 24
"""The longest message from a test to a program."""
MAX_CALLBACKS = 100_000
"""How often a program may call functions of its test."""
_DRIVER_CPU_S = 10.0
_DONE = b'["done",'
_MARGIN_S = 30.0
"""How much later than its wall-clock limit a worker may report the end of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertOutcome:
    """What came of one assert body."""

    status: Status
    execution: Execution
    """Facts about the program's process."""
    message: str = ""
    trace: str = ""
    """The program's traceback, its own frames only."""


class Ended(Exception):
    """The program has a verdict; a status of None stands for that of its execution."""

    def __init__(self, status: Status | None, message: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.trace = trace


def driver_limits(limits: Limits) -> Limits:
    """Return limits for the test: it waits while the program runs, and compares large values."""
    return replace(
        limits,
        cpu_s=limits.cpu_s + _DRIVER_CPU_S,
        wall_s=limits.wall_limit_s + 6 * _DRIVER_CPU_S,
        memory_mb=max(512, limits.memory_mb),
    )


class Relay:
    """Carries messages between one program and one test."""

    def __init__(self, case: AssertCase, limits: Limits) -> None:
        self.limits = limits
        self.program_broke = False
        self._case = case
        self._inbox = Frames(limits.output_bytes)
        self._answered = 0
        self._callbacks = 0
        self._ready = b""

    def load(self, program: Session) -> Ended | None:
        """Wait until the program has been loaded; return a verdict if it could not be."""
        self._program = program
        self._deadline = time.monotonic() + self.limits.wall_limit_s + _MARGIN_S
        try:
            frame, kind, *rest = self._from_program("while it was loaded")
        except Ended as verdict:
            return verdict
        if kind == "ready" and len(rest) == 1:
            self._ready = frame
            return None
        if kind == "missing":
            message = f"the program defines no function {self._case.entry_point!r}"
            return Ended(Status.RUNTIME_ERROR, message)
        if kind not in ("compile_error", "load_error") or not _all_strings(rest, 2):
            return _forged()
        failed = Status.COMPILE_ERROR if kind == "compile_error" else Status.RUNTIME_ERROR
        return Ended(_memory(rest[0]) or failed, rest[0], rest[1])

    def run(self, driver: Session) -> None:
        """Relay calls until the test ends; return if it passed.

        Raises:
            Ended: it did not.
            UnsupportedCase: the test is broken.
        """
        frames = Frames(ARGUMENT_BYTES)
        trace = ""
        driver.send(_framed(self._ready))
        while True:
            frame = self._from_driver(driver, frames)
            if frame.startswith(_DONE):
                _, *rest = parse(frame)
                return self._conclude(*rest, trace=trace)
            self._to_program(frame)
            frame, trace = self._answer()
            self._answered += 1
            driver.send(_framed(frame))

    def settle(self, ended: Ended) -> AssertOutcome:
        """Let the program end, and weigh the kernel's facts against the verdict of the relay."""
        self._to_program(b'["stop"]')
        if ended.status is Status.ACCEPTED:
            self._drain()
        with self._blaming_program():
            facts = self._program.finish()
        limit_hit = facts.status in (
            Status.TIME_LIMIT_EXCEEDED,
            Status.MEMORY_LIMIT_EXCEEDED,
            Status.OUTPUT_LIMIT_EXCEEDED,
        )
        status = ended.status
        if limit_hit or status is None:
            status = facts.status or Status.RUNTIME_ERROR
        return AssertOutcome(
            status=status, execution=facts, message=ended.message, trace=ended.trace
        )

    def _answer(self) -> tuple[bytes, str]:
        """Wait for the program's answer or callback; return it, and a traceback if it raised."""
        frame, kind, *rest = self._from_program("during a call")
        if kind == "returned" and len(rest) == 1:
            return frame, ""
        if kind == "raised" and len(rest) == 3 and _all_strings(rest[1:], 2):
            return frame, str(rest[2])
        if kind == "callback" and len(rest) == 1:
            self._callbacks += 1
            if self._callbacks > MAX_CALLBACKS:
                raise Ended(
                    Status.RUNTIME_ERROR,
                    f"it called functions of the test more than {MAX_CALLBACKS} times",
                )
            return frame, ""
        if kind == "too_large":
            raise _too_large()
        raise _forged()

    def _conclude(
        self, kind: str, text: str, line: int, answered: int, last: str, *, trace: str
    ) -> None:
        statement = _statement(self._case.body, line)
        place = f" in `{statement}`" if statement else ""
        if kind == "unsupported":
            raise UnsupportedCase(f"test {self._case.name!r}{place}: {text}")
        if kind == "forged":
            raise _forged()
        if kind == "too_large":
            raise _too_large()
        if kind == "broken" or (kind == "passed" and not answered):
            what = text or "it never calls the function"
            raise UnsupportedCase(f"test {self._case.name!r} is broken{place}: {what}")
        if kind == "passed":
            return
        if kind == "candidate":
            raise Ended(_memory(text) or Status.RUNTIME_ERROR, f"{text}{place}", trace)
        if kind == "assertion":
            note = f"; the last call returned {last}" if last else ""
            raise Ended(Status.WRONG_ANSWER, f"{statement or text}{note}")
        note = f"; the last call returned {last}" if last else ""
        raise Ended(Status.WRONG_ANSWER, f"{text}{place}{note}")

    def _from_program(self, when: str) -> list[Tree]:
        """Return the program's next message: the frame that it came in, then its parts.

        Raises:
            Ended: it sent none, or none that it may send.
        """
        try:
            while (frame := self._inbox.cut()) is None:
                left = self._deadline - time.monotonic()
                with self._blaming_program():
                    data = self._program.receive(max(0.0, left))
                if data is None:
                    raise Ended(None, f"the program ended {when}")
                self._inbox.feed(data)
            message = parse(frame)
            check(message, references=TAGS)
        except TooLarge as error:
            raise _too_large() from error
        except CodecError as error:
            raise _forged() from error
        except TimeoutError as error:
            raise Ended(Status.TIME_LIMIT_EXCEEDED, f"the program was silent {when}") from error
        if not self._inbox.empty:
            raise _forged()  # it speaks only when it is spoken to
        return [frame, *message]

    def _from_driver(self, driver: Session, frames: Frames) -> bytes:
        limit = self.limits.wall_limit_s + 6 * _DRIVER_CPU_S + _MARGIN_S
        try:
            while (frame := frames.cut()) is None:
                data = driver.receive(limit)
                if data is None:
                    raise self._blame_for_driver(driver)
                frames.feed(data)
        except TooLarge as error:
            raise UnsupportedCase(
                f"test {self._case.name!r} passes an argument that is too large: {error}"
            ) from error
        except TimeoutError as error:
            raise WorkerDied(f"the driver of test {self._case.name!r} fell silent") from error
        return frame

    def _blame_for_driver(self, driver: Session) -> Exception:
        """Return the verdict on a test that ended without a word.

        Values of the program may make an honest test loop for ever or fill its memory, so from its
        first answer on that counts against the program, as it would had both shared a process.
        """
        facts = driver.finish()
        why = facts.status or f"exit status {facts.exit_code}"
        if self._answered:
            return Ended(
                facts.status or Status.WRONG_ANSWER,
                f"with the values that the program returned, the test did not finish ({why})",
            )
        tail = facts.stderr.decode("utf-8", "replace").strip()[-500:]
        return UnsupportedCase(f"test {self._case.name!r} is broken ({why}): {tail or 'no output'}")

    def _drain(self) -> None:
        try:
            with self._blaming_program():
                while self._program.receive(1.0) is not None:
                    pass
        except TimeoutError:
            pass  # `finish` kills it

    def _to_program(self, frame: bytes) -> None:
        with self._blaming_program():
            self._program.send(_framed(frame))

    @contextlib.contextmanager
    def _blaming_program(self) -> Iterator[None]:
        """Note whether the program's worker broke, other than from outside."""
        try:
            yield
        except WorkerFault as fault:
            self.program_broke = not fault.external
            raise


def _too_large() -> Ended:
    return Ended(Status.OUTPUT_LIMIT_EXCEEDED, "the function returned too large a value")


def _forged() -> Ended:
    return Ended(Status.RUNTIME_ERROR, "the program wrote to the channel of its caller")


def _memory(text: str) -> Status | None:
    return Status.MEMORY_LIMIT_EXCEEDED if text.startswith("MemoryError") else None


def _all_strings(values: list[Tree], count: int) -> bool:
    return len(values) == count and all(isinstance(value, str) for value in values)


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _statement(body: str, line: int) -> str:
    """Return the innermost statement of `body` that covers `line`, on one line."""
    found: ast.stmt | None = None
    for node in ast.walk(parse_python(body)):
        if (
            isinstance(node, ast.stmt)
            and node.lineno <= line <= (node.end_lineno or 0)
            and (found is None or node.lineno >= found.lineno)
        ):
            found = node
    text = ast.get_source_segment(body, found) if found is not None else None
    return textwrap.shorten(text, 300, placeholder=" ...") if text else ""
