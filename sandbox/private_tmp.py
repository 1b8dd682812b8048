"""A /tmp that ends in size and in number of files: `bwrap --tmpfs` has no option for the latter.

Root mounts it in a mount namespace of its own before `bwrap` starts, over a folder that a guest
never sees, and `bwrap` binds that folder to /tmp. Nothing of it is visible outside, and it goes
when its last process ends.
"""

from __future__ import annotations

import functools
import subprocess

MAX_FILES = 4096
SOURCE = "/sys/kernel"
"""Where it is mounted: a folder that is on every Linux and holds nothing that `bwrap` needs."""

_PROBE_S = 10


def enter_command(size_mb: int) -> list[str]:
    """Return a command prefix that mounts it at `SOURCE` and then becomes its arguments."""
    options = f"size={size_mb}m,nr_inodes={MAX_FILES},noexec,nosuid,nodev,mode=1777"
    script = f'mount -t tmpfs -o "$0" none {SOURCE} || exit 125; exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, options]


@functools.cache
def works() -> bool:
    """Return whether this process may do so, and has the tools (util-linux)."""
    try:
        return (
            subprocess.run(
                [*enter_command(1), "true"], capture_output=True, timeout=_PROBE_S
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
