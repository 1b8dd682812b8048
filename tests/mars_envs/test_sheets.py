"""Tables of the commands."""

from __future__ import annotations

from rich.console import Console

from mars_envs.cli.sheets import Sheet


def test_a_narrow_console_loses_nothing_of_a_table() -> None:
    labels = ["4,000, pi_mem", "128,000, retrieval:piece_tokens=500"]
    figures = [f"{number}0.5 [{number}0.1, {number}0.9]" for number in range(1, 9)]
    columns = ["tokens, method", *(f"gold after turn {turn}, %" for turn in range(1, 9))]
    sheet = Sheet(title="found", columns=columns, rows=[[label, *figures] for label in labels])
    console = Console(width=80)
    with console.capture() as shown:
        console.print(sheet.to_rich())
    lines = shown.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in shown.get()
    cells = "".join(cell for row in [[sheet.title], columns, *sheet.rows] for cell in row)
    assert sorted(char for char in shown.get() if char not in " ─\n") == sorted(
        cells.replace(" ", "")
    )
