"""`mars-envs sandbox`: what works here, and how to mend the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .config import BuildConfig, SandboxConfig
from .console import console

if TYPE_CHECKING:
    from sandbox.doctor import Finding


def doctor(config: SandboxConfig) -> int:
    """Print what is known of each backend; exit status 1 where none can run untrusted programs."""
    from sandbox.doctor import diagnose

    _point_at(config)
    findings = diagnose()
    for found in findings:
        console.print(_panel(found))
    console.print(_guarantees(findings))
    return 0 if any(found.usable and found.isolated for found in findings) else 1


def _panel(found: Finding) -> Panel:
    """Return what answers, and what is missing with the command that mends it."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for label, text in found.facts:
        rows.add_row(label, Text(text))
    by_remedy: dict[str, list[str]] = {}
    for lack in found.lacks:
        by_remedy.setdefault(lack.remedy, []).append(lack.what)
    for remedy, lacking in by_remedy.items():
        rows.add_row("missing", Text("\n".join(lacking)))
        rows.add_row("to mend", Text(remedy, style="bold"))
    state = "[green]usable[/]" if found.usable else "[red]not usable[/]"
    trust = "" if found.isolated else ", for trusted programs only"
    return Panel(rows, title=f"{found.backend}: {state}{trust}", title_align="left")


def _guarantees(findings: list[Finding]) -> Table:
    """Return a table of protections by backend."""
    from sandbox import Guarantee

    table = Table("guaranteed to a program", *(found.backend for found in findings))
    for each in Guarantee:
        marks = (
            "yes" if each in found.guarantees else "[red]no[/]" if found.usable else "-"
            for found in findings
        )
        table.add_row(each.sentence, *marks)
    return table


def build(config: BuildConfig) -> int:
    """Build the guest image and print its tag."""
    from sandbox.image.build import ensure_image

    _point_at(config)
    with console.status("building the guest image"):
        tag = ensure_image(packages=config.packages or (), python=config.python)
    console.print(tag)
    return 0


def reap(config: SandboxConfig) -> int:
    """Remove containers whose owner is gone and print their names."""
    from sandbox.reaper import reap as sweep

    _point_at(config)
    swept = sweep()
    for name in swept.containers:
        console.print(name)
    count = len(swept.containers)
    console.print(f"{count} container{'' if count == 1 else 's'} removed")
    if swept.groups:
        console.print(f"{swept.groups} control group{'' if swept.groups == 1 else 's'} removed")
    if not swept.engine:
        console.print("no Docker engine answered, so no container could be looked for")
    return 0


def _point_at(config: SandboxConfig) -> None:
    if config.docker_host:
        os.environ["DOCKER_HOST"] = config.docker_host
