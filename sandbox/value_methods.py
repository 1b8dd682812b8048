"""Names of the methods of built-in and standard values, for the guest that runs a test."""

from __future__ import annotations

import collections
import re

_KINDS = (
    *(str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, range, slice),
    *(collections.deque, collections.Counter, collections.OrderedDict, collections.defaultdict),
    *(re.Match, re.Pattern),
)
_OF_OTHER_MODULES = """
absolute adjusted as_posix as_tuple as_uri astimezone canonical chmod combine compare
compare_signal compare_total compare_total_mag copy_abs copy_into copy_negate copy_sign ctime cwd
date dst exists exp expanduser fma from_decimal from_float from_number from_uri fromisocalendar
fromisoformat fromordinal fromtimestamp full_match glob hardlink_to home is_absolute
is_block_device is_canonical is_char_device is_dir is_fifo is_file is_finite is_infinite
is_junction is_mount is_nan is_normal is_qnan is_relative_to is_reserved is_signed is_snan
is_socket is_subnormal is_symlink is_zero isocalendar isoformat isoweekday iterdir joinpath lchmod
limit_denominator link_to ln log10 logb logical_and logical_invert logical_or logical_xor lstat max
max_mag min min_mag mkdir move move_into next_minus next_plus next_toward normalize now
number_class open owner quantize radix read_bytes read_text readlink relative_to remainder_near
rename resolve rglob rmdir same_quantum samefile scaleb shift sqrt stat strftime strptime
symlink_to time timestamp timetuple timetz to_eng_string to_integral to_integral_exact
to_integral_value today toordinal total_seconds touch tzname unlink utcfromtimestamp utcnow
utcoffset utctimetuple walk weekday with_name with_stem with_suffix write_bytes write_text
"""
"""Those of datetime, decimal, fractions and pathlib, whose import costs more than most tests."""
VALUE_METHODS = frozenset(_OF_OTHER_MODULES.split()).union(
    name
    for kind in _KINDS
    for name in dir(kind)
    if name[0] != "_" and callable(getattr(kind, name))
)
