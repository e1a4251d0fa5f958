"""Plain tables for a terminal and for a file alike."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

# Wider than any table: a narrow terminal breaks long lines, and no cell is cut or left out.
_WIDTH = 400


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header, the first column to the left and the others to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for position, name in enumerate(header):
        table.add_column(name, justify="left" if position == 0 else "right", no_wrap=position > 0)
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False, width=_WIDTH).print(table)
