"""Forged answers to tests that call a function, as HumanEval's do.

The first nine are those that graders accept which run the test in the program's own process.
"""

from __future__ import annotations

from sandbox.types import Limits

from .attack import MLE, OLE, RE, TLE, WA, FunctionAttack

_BRIEF = Limits(cpu_s=1.0, wall_s=2.0, memory_mb=256)

IN_PROCESS = {
    "os._exit(0)": FunctionAttack(source="import os\ndef f(x): os._exit(0)", statuses=(RE,)),
    "sys.exit(0)": FunctionAttack(source="import sys\ndef f(x): sys.exit(0)", statuses=(RE,)),
    "print the marker and exit": FunctionAttack(
        source="import os\ndef f(x):\n    print('ALL TESTS PASSED', flush=True)\n    os._exit(0)",
        statuses=(RE,),
    ),
    "a value equal to everything": FunctionAttack(
        source="""
class Equal(float):
    def __eq__(self, other): return True
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    def __ne__(self, other): return False
    def __sub__(self, other): return self
    __rsub__ = __add__ = __radd__ = __sub__
    def __abs__(self): return self
    def __bool__(self): return True
    __hash__ = float.__hash__
def f(x): return Equal(7)
""",
        statuses=(WA,),
    ),
    "patched abs": FunctionAttack(
        source="import builtins\nbuiltins.abs = lambda x: 0\ndef f(x): return 0.5",
        statuses=(WA,),
    ),
    "frames rewritten": FunctionAttack(
        source="""
import os, sys
def f(x):
    frame = sys._getframe()
    while frame:
        for name in list(frame.f_globals):
            if "check" in name or "result" in name or "candidate" in name:
                frame.f_globals[name] = lambda *a, **k: None
        frame = frame.f_back
    os._exit(0)
""",
        statuses=(RE,),
    ),
    "atexit": FunctionAttack(
        source="import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 7",
        statuses=(WA,),
    ),
    "sys.excepthook": FunctionAttack(
        source="import os, sys\nsys.excepthook = lambda *a: os._exit(0)\ndef f(x): return 7",
        statuses=(WA,),
    ),
    "the caller's constants": FunctionAttack(
        source="""
import os, sys
def f(x):
    frame = sys._getframe().f_back
    while frame:
        for constant in frame.f_code.co_consts:
            if constant in (0.5, 0.33): return constant
        frame = frame.f_back
    print("ALL TESTS PASSED")
    os._exit(0)
""",
        statuses=(RE,),
    ),
}

_PACK = """
import json, os
def pack(message):
    data = json.dumps(message).encode()
    return len(data).to_bytes(4, "big") + data
"""

_VALUES = {
    "nested without end": "value = []\n    value.append(value)\n    return value",
    "nested deeply": "value = 1\n    for _ in range(10 ** 5): value = [value]\n    return value",
    "a list of 10^8": "return [0] * 10 ** 8",
    "a list of 10^6": "return [0] * 10 ** 6",
    "a dictionary of 10^6": "return dict.fromkeys(range(10 ** 6))",
    "text of 100 MB": "return 'x' * 10 ** 8",
    "bytes of 100 MB": "return bytes(10 ** 8)",
    "one list a million times": "value = ['x' * 1000]\n    return [value] * 10 ** 6",
    "doubling lists": "x = [0]\n    for _ in range(60): x = [x, x]\n    return x",
    "an endless generator": "return iter(lambda: 1, 2)",
    "a huge number": "return 1 << 10 ** 9",
    "a huge fraction": "import fractions\n    return fractions.Fraction(1, 1 << 10 ** 8)",
}

_QUICK = ("nested without end", "nested deeply", "a list of 10^8", "an endless generator")

_LIARS = {
    "__class__": """
class Liar:
    __class__ = float
    def __float__(self): return 0.5
    def __eq__(self, other): return True
    __sub__ = __rsub__ = lambda self, other: 0.0
def f(x): return Liar()
""",
    "__iter__": """
class Liar(list):
    def __iter__(self):
        while True: yield 0.5
    def __len__(self): return 1
    def __eq__(self, other): return True
def f(x): return Liar([1])
""",
    "__iter__ that raises": """
class Liar(list):
    def __iter__(self): raise SystemExit(0)
    def __eq__(self, other): return True
def f(x): return Liar([1])
""",
    "__reduce__": """
class Liar:
    def __reduce__(self): return eval, ("0.5",)
    def __eq__(self, other): return True
def f(x): return Liar()
""",
    "its metaclass": """
class Meta(type):
    def __instancecheck__(cls, other): return True
    def __subclasscheck__(cls, other): return True
    __name__ = __qualname__ = property(lambda cls: 1 / 0)
class Liar(metaclass=Meta):
    def __eq__(self, other): return True
def f(x): return Liar()
""",
    "its attributes": """
class Liar:
    def __getattribute__(self, name): raise SystemExit(0)
    def __eq__(self, other): return True
def f(x): return Liar()
""",
    "a number's own class": """
class Liar(int):
    def __eq__(self, other): return True
    def __repr__(self): return "0.5"
    __str__ = __index__ = __int__ = __float__ = lambda self: 0.5
def f(x): return Liar(7)
""",
    "a text's own class": """
class Liar(str):
    def __eq__(self, other): return True
    def encode(self, *_): return b'"0.5"'
    def __hash__(self): return hash(0.5)
def f(x): return Liar("no")
""",
    "a dictionary's own class": """
class Liar(dict):
    def items(self): return [(0.5, 0.5)]
    def __eq__(self, other): return True
    __float__ = lambda self: 0.5
def f(x): return Liar()
""",
    "NaN": "def f(x): return float('nan')",
    "NotImplemented": "def f(x): return NotImplemented",
    "the function's own type": "def f(x): return type(0.5)",
}

_MESSAGES = {
    "that the test has passed": "pack(['done', 'passed', '', 0, 1, ''])",
    "answers ahead of the call": "pack(['returned', 0.5, None])",
    "a malformed value": "pack(['returned', {'s': [[1]]}, None])",
    "no frame": "b'\\x00\\x00\\x00\\x04oops'",
    "a frame of 4 GB": "b'\\xff\\xff\\xff\\xff'",
    "nothing but zeros": "bytes(1 << 16)",
    "malformed changes": "pack(['returned', 1, [[1], {'t': []}]])",
    "a nested value": "pack(['returned', json.loads('[' * 300 + ']' * 300), None])",
    "a class that is none": "pack(['raised', [1], [], 'text', 'trace'])",
}

ATTACKS = {
    **{f"forge an assertion: {name}": attack for name, attack in IN_PROCESS.items()},
    **{
        f"a bomb for the decoder: {name}": FunctionAttack(
            source=f"def f(x):\n    {work}\n",
            statuses=(OLE, MLE, RE, TLE, WA),
            slow=name not in _QUICK,
        )
        for name, work in _VALUES.items()
    },
    **{
        f"a value that lies: {name}": FunctionAttack(
            source=source, statuses=(WA, RE, OLE, MLE, TLE)
        )
        for name, source in _LIARS.items()
    },
    **{
        f"write to the channel: {name}": FunctionAttack(
            source=f"{_PACK}def f(x):\n    os.write(3, {message} * 2)\n    return x\n",
            statuses=(RE, WA, OLE),
        )
        for name, message in _MESSAGES.items()
    },
    "write to the channel: before the function is there": FunctionAttack(
        source=f"{_PACK}os.write(3, pack(['returned', 0.5, None]) * 9)\ndef f(x): return 7\n",
        statuses=(RE, WA),
    ),
    "write to the channel: a flood": FunctionAttack(
        source="import os\ndef f(x):\n    while True: os.write(3, bytes(1 << 16))",
        statuses=(RE, WA, OLE, TLE),
        limits=_BRIEF,
    ),
    "write to the channel: a drip": FunctionAttack(
        source="""
import os, time
def f(x):
    os.write(3, (1 << 16).to_bytes(4, "big"))
    while True:
        os.write(3, b"x")
        time.sleep(0.05)
""",
        statuses=(TLE,),
        limits=_BRIEF,
    ),
    "write to the channel: descriptors": FunctionAttack(
        source="""
import os, socket
def f(x):
    with socket.socket(fileno=os.dup(3)) as line:
        for _ in range(50): socket.send_fds(line, [b"x"], [0, 1, 2] * 20)
    return 7
""",
        statuses=(RE, WA, OLE),
    ),
    "the channel closed": FunctionAttack(
        source="import os\ndef f(x):\n    os.close(3)\n    return 0.5", statuses=(RE,)
    ),
    "the channel closed: and kept by a daemon": FunctionAttack(
        source="""
import os, time
def f(x):
    if os.fork() == 0:
        os.setsid()
        while True:
            try: os.write(3, b"x")
            except OSError: pass
            time.sleep(0.01)
    os._exit(0)
""",
        statuses=(RE, WA, OLE, TLE),
        limits=_BRIEF,
        slow=True,
    ),
    "the channel never read": FunctionAttack(
        source="import time\ntime.sleep(60)\ndef f(x): return 7",
        statuses=(TLE,),
        limits=_BRIEF,
        slow=True,
    ),
    "answers prepared by a child": FunctionAttack(
        source="""
import os
def f(x):
    if os.fork(): os._exit(0)
    return 7
""",
        statuses=(RE, WA),
    ),
    "an exception that passes for success": FunctionAttack(
        source="def f(x): raise StopIteration",
        body="assert all(f(x) == 0.5 for x in [3.5])\nassert list(f(x) for x in [1]) == []",
        statuses=(RE, WA),
    ),
    "an exception that passes for success: of its own class": FunctionAttack(
        source="""
class Mine(AssertionError, SystemExit): pass
def f(x): raise Mine(0)
""",
        statuses=(RE, WA),
    ),
    "an exception that passes for success: GeneratorExit": FunctionAttack(
        source="def f(x): raise GeneratorExit",
        body="def values():\n    yield f(3.5)\nassert sum(values()) == 0.5",
        statuses=(RE, WA),
    ),
    "an exception that passes for success: with a bomb inside": FunctionAttack(
        source="def f(x): raise ValueError([0] * 10 ** 7, 'x' * 10 ** 7)",
        statuses=(RE, OLE, MLE, TLE),
        slow=True,
    ),
    "the recursion limit": FunctionAttack(
        source="import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(x): return f(x)",
        statuses=(RE, MLE, TLE),
        slow=True,
    ),
}
