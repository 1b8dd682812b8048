"""Bytes and streams that upset whoever reads them."""

from __future__ import annotations

from .attack import CE, RE, WA, Attack

ATTACKS = {
    "lone surrogates": Attack(source="print('\\ud800')", statuses=(RE,), says=""),
    "lone surrogates: on stderr": Attack(
        source="print('\\ud800', file=sys.stderr)\nraise ValueError('\\udfff')", statuses=(RE,)
    ),
    "lone surrogates: in the program": Attack(source="'\ud800'", statuses=(CE,), whole=True),
    "bytes that are no text": Attack(
        source="os.write(1, bytes(range(256)))",
        statuses=(WA,),
        says=bytes(range(256)).decode("utf-8", "surrogateescape"),
    ),
    "bytes that are no text: NUL": Attack(
        source="os.write(1, b'42\\0\\n')", statuses=(WA,), says="42\0\n"
    ),
    "bytes that are no text: in the program": Attack(
        source="print(1)\0", statuses=(CE,), whole=True
    ),
    "bytes that are no text: half a character": Attack(
        source="os.write(1, b'\\xe2\\x82')", statuses=(WA,)
    ),
    "an encoding that does not exist": Attack(
        source="# coding: mail\nprint(1)", statuses=(CE,), whole=True
    ),
    "an encoding that hides the program": Attack(
        source="# coding: utf-7\n+AHAAcgBpAG4AdAAoADEAKQ-", statuses=(CE, WA, RE), whole=True
    ),
    "close the streams": Attack(source="os.closerange(0, 3)", statuses=(WA, RE), says=""),
    "close the streams: the objects": Attack(
        source="sys.stdout.close()\nsys.stderr.close()\nsys.stdin.close()",
        statuses=(WA, RE),
        says="",
    ),
    "other streams in their place": Attack(
        source="""
null = os.open("/dev/zero", os.O_RDWR)
for fd in (0, 1, 2): os.dup2(null, fd)
print("into the void")
""",
        statuses=(WA,),
        says="",
    ),
    "other streams in their place: each other's": Attack(
        source="""
os.dup2(1, 9)
os.dup2(2, 1)
os.dup2(9, 2)
print("error?")
print("output?", file=sys.stderr)
""",
        statuses=(WA,),
        says="output?\n",
    ),
    "other streams in their place: pipes made non-blocking": Attack(
        source="""
for fd in (1, 2): os.set_blocking(fd, False)
try:
    while os.write(2, b"x" * 65536): pass
except BlockingIOError: pass
print("on")
""",
        statuses=(WA, RE),
    ),
    "write to stdin": Attack(
        source="""
print(attempt(os.write, 0, b"20 23"), attempt(os.ftruncate, 0, 0))
try:
    fd = os.open("/dev/stdin", os.O_RDWR)
    os.pwrite(fd, b"99", 0)
except OSError: pass
""",
        statuses=(WA,),
    ),
    "remove its folder": Attack(
        source="os.mkdir('/tmp/w')\nos.chdir('/tmp/w')\nos.rmdir('/tmp/w')\nprint('ok')",
        statuses=(WA,),
        says="ok\n",
    ),
    "one line without end": Attack(
        source="print('x' * 60_000, end='')", statuses=(WA,), says="x" * 60_000
    ),
}
