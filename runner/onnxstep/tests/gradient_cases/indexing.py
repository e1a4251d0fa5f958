"""Test cases of Gather, Scatter and TopK that cover all branches of the gradient rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradient_check import Case, ints
from graph_text import Array

REPEATED = ints(2, 0, 2, -1)
GRID = np.array([[1, 0, 1], [-1, 1, 1]])
ELEMENTS = np.array([[2, 0, 2, -1], [1, 1, -3, 0]])
# Two indices into a matrix [3, 4], and three indices of which two are equal.
DISTINCT = np.array([[0, 1], [-1, 3]])
TWICE = np.array([[0, 1], [2, 3], [0, -3]])


def _scatter_elements(name: str, places: Array, opset: int, **attributes: object) -> Case:
    shapes = {"data": (3, 4), "updates": places.shape}
    inputs = ("data", "places", "updates")
    return Case(
        "ScatterElements", shapes, attributes, {"places": places}, inputs, name=name, opset=opset
    )


def _scatter_nd(name: str, places: Array, opset: int = 21, **attributes: object) -> Case:
    shapes = {"data": (3, 4), "updates": (len(places), *(3, 4)[places.shape[-1] :])}
    inputs = ("data", "places", "updates")
    return Case("ScatterND", shapes, attributes, {"places": places}, inputs, name=name, opset=opset)


CASES = [
    *(
        Case("Gather", {"x": (4, 3)}, fixed={"places": places}, opset=opset, name=name)
        for name, places in [
            ("repeated", REPEATED),
            ("grid", GRID),
            ("one", np.array(-2)),
            ("int32", REPEATED.astype(np.int32)),
        ]
        for opset in (13, 16, 21)
    ),
    *(
        Case("Gather", {"x": (2, 3, 4)}, {"axis": axis}, {"places": places}, name=name, opset=opset)
        for name, axis, places in [
            ("middle", 1, REPEATED),
            ("last_grid", -1, GRID),
            ("middle_one", 1, np.array(2)),
        ]
        for opset in (13, 21)
    ),
    *(
        Case("GatherElements", {"x": (3, 4)}, {"axis": axis}, {"places": places}, opset=opset)
        for axis, places in [(0, ELEMENTS), (1, ELEMENTS[[0, 1, 1], :3])]
        for opset in (13, 16, 21)
    ),
    *(
        Case("GatherND", {"x": shape}, fixed={"places": places}, name=name, opset=opset)
        for name, shape, places in [
            ("elements", (3, 4), TWICE),
            ("blocks", (3, 4, 2), TWICE),
            ("rows", (3, 4), ints(1, -1, 1).reshape(3, 1)),
        ]
        for opset in (13, 16, 21)
    ),
    _scatter_elements("rows", np.array([[2, 0, 1, -1], [1, 1, 0, 0]]), 13, axis=0),
    _scatter_elements("columns", np.array([[3, -4], [0, 1], [2, -1]]), 21, axis=1),
    _scatter_elements("add", np.array([[2, 2], [0, -4], [1, 3]]), 16, axis=1, reduction="add"),
    replace(
        _scatter_elements("shorter_elsewhere", ints(2, 0).reshape(1, 2), 21, axis=1),
        reference_flaw="onnx 1.23.2: GatherElements wants full indices along the other axes",
    ),
    _scatter_elements("max", np.array([[2, 2], [0, -4], [1, 3]]), 18, axis=1, reduction="max"),
    _scatter_elements("min", ELEMENTS, 21, axis=0, reduction="min"),
    _scatter_nd("elements", DISTINCT, opset=13),
    _scatter_nd("rows", ints(2, 0).reshape(2, 1)),
    _scatter_nd("add", TWICE, opset=16, reduction="add"),
    _scatter_nd("add_rows", ints(2, -1).reshape(2, 1), reduction="add"),
    _scatter_nd("max", TWICE, reduction="max"),
    _scatter_nd("min", ints(2, -1).reshape(2, 1), reduction="min"),
    Case("TopK", {"x": (3, 5)}, fixed={"k": ints(2)}, outputs=2),
    Case("TopK", {"x": (5, 3)}, {"axis": 0, "largest": 0}, {"k": ints(3)}, outputs=2, name="least"),
]
