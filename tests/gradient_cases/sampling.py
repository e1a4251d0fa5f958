"""Sampling: one row for each form that a rule has to get right."""

from __future__ import annotations

from gradient_check import Case, ints

CASES = [
    Case(
        "AffineGrid",
        {"theta": (2, len(size), len(size) + 1)},
        {"align_corners": align},
        held={"size": ints(2, 3, *size)},
        name=f"{len(size)}d_align{align}",
    )
    for size in ((4, 5), (2, 3, 4))
    for align in (0, 1)
]
