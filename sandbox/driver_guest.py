"""Runs inside the driver's guest: trusted test code against an untrusted program elsewhere.

The test holds proxies of the program's functions, classes and objects (see `proxies`); what is done
to them becomes messages to the host, which hands them to the guest of the program. What comes back
is rebuilt from exact built-in types and from the classes of the test, so the comparisons of the
test happen here, out of the program's reach. The last message says how the test ended; what that
means for the program is decided on the host (`drivers`).
"""

from __future__ import annotations

import builtins
import collections
import itertools
import math
import os
import re
import sys
import types
from collections.abc import Sequence
from typing import Any, NoReturn

from .driver_peer import BODY, HELPERS, Driver, line_of
from .peers import Channel
from .proxies import ProxyClass, is_proxy

MODULE = "solution"
"""The name under which a test imports the program."""


def drive(
    helpers: str,
    body: str,
    entry_point: str,
    *,
    call_check: bool,
    definitions: dict[str, Any],
    shared: Sequence[str],
    subjects: Sequence[str],
    tests: Sequence[str],
    pytest: bool,
) -> NoReturn:
    """Run the test and say how it ended.

    Args:
        helpers: trusted source that is executed first.
        body: the test.
        entry_point: the name under which helpers and body know the function or class.
        call_check: whether to call the body's `check` with the function.
        definitions: of the classes of the test, for the program, or why it must not see them.
        shared: names of classes of the helpers whose instances travel by value.
        subjects: names of the program that the body uses as classes.
        tests: functions and classes of the body to run at the end.
        pytest: whether the body imports pytest.
    """
    channel = Channel()
    driver = Driver(channel, body, definitions)
    driver.program, entry = driver.unpack(channel.receive()[1], 2)
    if not (is_proxy(driver.program) and driver.is_entry(entry)):
        driver.end("forged", "")
    driver.subjects = frozenset(subjects)
    if pytest:
        from . import pytest_guest

        pytest_guest.install()
    test = sys.modules["test"] = types.ModuleType("test")
    namespace = driver.module = test.__dict__
    namespace.update({m.__name__: m for m in (collections, itertools, math, re, sys)})
    solution = sys.modules[MODULE] = types.ModuleType(MODULE)
    solution.__dict__["__getattr__"] = _attributes(driver, body)
    try:
        exec(compile(helpers, HELPERS, "exec", dont_inherit=True), namespace)
        driver.share(shared)
        namespace[entry_point] = _as_subject(entry, entry_point, driver)
        exec(compile(body, BODY, "exec", dont_inherit=True), namespace)
        if call_check:
            namespace["check"](namespace[entry_point])
        for name in tests:
            _run_test(namespace[name])
    except BaseException as error:
        ending = _ending(error, driver)
    else:
        failed = driver.failed_line
        ending = ("assertion", "an assertion in a callback", failed) if failed else _PASSED
    channel.send("done", *ending, driver.answered, driver.last())
    os._exit(0)


_PASSED = ("passed", "", 0)


def _run_test(test: Any) -> None:
    """Run a test function, or the methods of a test class with what goes before and after."""
    if not isinstance(test, type):
        for parameters in getattr(test, "parameters", [{}]):
            test(**parameters)
        return
    of_unittest = hasattr(test, "assertEqual")
    names = ("setUp", "tearDown") if of_unittest else ("setup_method", "teardown_method")
    for hook in ("setUpClass", "setup_class"):
        getattr(test, hook, lambda: None)()
    for method in dir(test):
        if method.startswith("test") and callable(getattr(test, method)):
            instance = test(method) if of_unittest else test()
            before, after = (getattr(instance, name, lambda *args: None) for name in names)
            before()
            try:
                bound = getattr(instance, method)
                for parameters in getattr(bound, "parameters", [{}]):
                    bound(**parameters)
            finally:
                after()


def _attributes(driver: Driver, body: str) -> Any:
    """Return the `__getattr__` of the module under whose name the test imports the program."""

    def attribute(name: str) -> Any:
        if name == "__all__":
            # What a star import brings must not replace what the test uses of Python itself.
            words = set(re.findall(r"\w+", body))
            taken = driver.module.keys() | vars(builtins).keys()
            return [word for word in dir(driver.program) if word in words and word not in taken]
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            value = driver.request("getattr", driver.program, name)
        except AttributeError:
            error = ImportError(f"the program defines no {name!r}")
            driver.raised.append(error)
            raise error from None
        if not is_proxy(value) and not isinstance(value, ProxyClass):
            driver.answered += 1
        return _as_subject(value, name, driver)

    return attribute


def _as_subject(value: Any, name: str, driver: Driver) -> Any:
    if isinstance(value, ProxyClass) and name in driver.subjects:
        value._proxy_facts.subject = True
    return value


def _ending(error: BaseException, driver: Driver) -> tuple[str, str, int]:
    """Return (kind, text, line of the body) for an exception that ended the test."""
    line = line_of(error)
    try:
        text = f"{type(error).__name__}: {error}"[:500].rstrip(": ")
    except Exception:  # the program's `__str__`
        text = type(error).__name__
    if any(error is raised for raised in driver.raised):
        return "candidate", text, line
    if not driver.heard:
        return "broken", text, line
    if isinstance(error, AssertionError):
        return "assertion", text, line
    if any(link is raised for link in _chain(error) for raised in driver.raised):
        return "candidate", text, line
    # No value can make a name undefined or a module absent: the test itself is broken.
    broken = isinstance(error, (NameError, ImportError, SyntaxError))
    return ("broken" if broken else "error"), text, line


def _chain(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links
