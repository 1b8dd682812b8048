"""`mars-envs sandbox`: what works here, and how to mend the rest."""

from __future__ import annotations

import os

from rich.table import Table

from .config import SandboxConfig
from .console import console


def doctor(config: SandboxConfig) -> int:
    """Print a table of the backends; exit status 1 where none can run untrusted programs."""
    from sandbox.doctor import diagnose

    _point_at(config)
    findings = diagnose()
    table = Table(title="Sandbox backends", show_lines=True)
    for column in ("backend", "usable", "isolated", "version", "guarantees", "missing", "remedy"):
        table.add_column(column, overflow="fold")
    for found in findings:
        table.add_row(
            found.backend,
            "[green]yes[/]" if found.usable else "[red]no[/]",
            "yes" if found.isolated else "no",
            found.version,
            "\n".join(found.guarantees),
            "\n".join(found.missing),
            found.remedy,
        )
    console.print(table)
    return 0 if any(found.usable and found.isolated for found in findings) else 1


def build(config: SandboxConfig) -> int:
    """Build the guest image and print its tag."""
    from sandbox.image.build import ensure_image

    _point_at(config)
    with console.status("building the guest image"):
        tag = ensure_image()
    console.print(tag)
    return 0


def reap(config: SandboxConfig) -> int:
    """Remove containers whose owner is gone and print their names."""
    from sandbox.reaper import reap as sweep

    _point_at(config)
    removed = sweep()
    for name in removed:
        console.print(name)
    console.print(f"{len(removed)} container{'' if len(removed) == 1 else 's'} removed")
    return 0


def _point_at(config: SandboxConfig) -> None:
    if config.docker_host:
        os.environ["DOCKER_HOST"] = config.docker_host
