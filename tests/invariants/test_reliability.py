"""docs/reference/faults.md names existing tests, and every fault has one."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
# Faults of rented machines during a run.
_FAULTS = (
    "SIGINT", "SIGTERM", "kill -9", "disk is full", "read-only", "memory runs out", "hangs",
    "clock jumps", "two runs on one folder", "newer version",
)  # fmt: skip


def rows() -> list[str]:
    """The table's rows, without its head."""
    text = (ROOT / "docs/reference/faults.md").read_text()
    return [line for line in text.splitlines() if line.startswith("| ")][2:]


def test_every_fault_is_in_the_table() -> None:
    """The table has every fault that the run promises to survive."""
    assert [fault for fault in _FAULTS if not any(fault in row for row in rows())] == []


def test_every_row_names_tests_that_exist() -> None:
    """A renamed or removed test takes its row with it."""
    for row in rows():
        assert row.count("|") == 6, row
        named = _TEST.findall(row)
        assert named, f"no test in: {row}"
        for file, name in named:
            assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
