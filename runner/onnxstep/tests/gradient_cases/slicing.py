"""Test cases of Concat, Split, Slice and Pad that cover all branches of the gradient rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradient_check import Case, ints

LAST = np.iinfo(np.int64).max
FIRST = np.iinfo(np.int64).min


def _slice(name: str, shape: tuple[int, ...], *bounds: list[int], **fields: Any) -> Case:
    names = ("starts", "ends", "axes", "steps")
    fixed = {key: ints(*numbers) for key, numbers in zip(names, bounds, strict=False)}
    return Case("Slice", {"x": shape}, fixed=fixed, name=name, **fields)


def _pad(name: str, pads: list[int], mode: str = "constant", **fields: Any) -> Case:
    return Case("Pad", {"x": (4, 5)}, {"mode": mode}, {"pads": ints(*pads)}, name=name, **fields)


CASES = [
    Case("Concat", {"a": (2, 3), "b": (2, 1), "c": (2, 2)}, {"axis": 1}),
    Case("Concat", {"a": (2, 3, 2), "b": (4, 3, 2)}, {"axis": -3}, opset=13),
    Case("Concat", {"a": (2, 3)}, {"axis": 0}, name="alone"),
    Case("Concat", {"a": (3,), "b": (2,)}, {"axis": 0}),
    Case("Split", {"x": (2, 6)}, {"axis": 1}, {"split": ints(1, 2, 3)}, outputs=3, opset=13),
    Case("Split", {"x": (2, 6)}, {"axis": -1}, {"split": ints(4, 2)}, outputs=2, name="last"),
    Case("Split", {"x": (4, 3)}, outputs=2, opset=13, name="equal"),
    Case("Split", {"x": (5, 3)}, {"num_outputs": 2}, outputs=2, opset=18, name="smaller_last"),
    Case("Split", {"x": (4, 3)}, {"num_outputs": 4}, outputs=4, name="num_outputs"),
    _slice("all_axes", (4, 5), [1, 0], [3, 4]),
    _slice("negative", (4, 5, 3), [-3, -2], [-1, LAST], [1, -1]),
    _slice("one_of_three", (4, 5, 3), [2], [4], [-2], opset=13),
    _slice("step", (7, 9), [1, 2], [7, 8], [0, 1], [2, 3]),
    _slice("step_past_the_end", (7, 9), [0, 1], [LAST, LAST], [0, 1], [3, 4]),
    _slice("backwards", (7, 5), [-1, 3], [FIRST, 0], [0, 1], [-1, -1]),
    _slice("backwards_by_two", (7, 8), [LAST, -2], [FIRST, FIRST], [0, 1], [-2, -3]),
    _slice("out_of_range", (3, 4), [-100, 2], [100, 100], [0, 1]),
    _slice("newest", (7, 9), [1, -2], [7, 0], [0, 1], [2, -3], opset=26),
    _slice("everything", (3, 4), [0], [LAST], [1]),
    *(_pad("constant", [1, 0, 0, 2], opset=opset) for opset in (13, 18, 21, 26)),
    *(_pad(mode, [2, 1, 0, 3], mode) for mode in ("reflect", "edge", "wrap")),
    *(_pad(f"{mode}_last_axis", [0, 3, 0, 4], mode, opset=18) for mode in ("reflect", "edge")),
    _pad("reflect", [2, 1, 3, 0], "reflect", opset=13),
    Case(
        "Pad",
        {"x": (2, 3, 4)},
        {"mode": "edge"},
        {"pads": ints(1, 2, 0, 1), "axes": ints(-1, 1)},
        ("x", "pads", "", "axes"),
        name="axes",
        opset=18,
    ),
]
