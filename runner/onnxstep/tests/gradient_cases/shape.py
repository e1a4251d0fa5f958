"""Test cases of moving and repeating elements that cover all branches of the gradient rules."""

from __future__ import annotations

import numpy as np

from gradient_check import Case, ints

CASES = [
    Case("Reshape", {"x": (2, 6)}, fixed={"shape": ints(3, -1)}),
    Case("Reshape", {"x": (2, 6)}, fixed={"shape": ints(0, 2, 3)}, opset=13),
    Case("Reshape", {"x": (2, 6)}, fixed={"shape": ints(4, 3)}, opset=26),
    Case("Flatten", {"x": (2, 3, 2)}, {"axis": 2}),
    Case("Flatten", {"x": (2, 3, 2)}, {"axis": -2}, name="negative_axis"),
    Case("Squeeze", {"x": (2, 1, 3)}, fixed={"axes": ints(1)}),
    Case("Squeeze", {"x": (2, 1, 3, 1)}, name="all", opset=13),
    Case("Unsqueeze", {"x": (2, 3)}, fixed={"axes": ints(0, 3)}),
    Case("Unsqueeze", {"x": ()}, fixed={"axes": ints(-1)}, opset=13),
    Case("Transpose", {"x": (2, 3, 4)}, {"perm": [2, 0, 1]}),
    Case("Transpose", {"x": (2, 3)}, name="reversed"),
    Case("Transpose", {"x": ()}),
    *(Case("Cast", {"x": (2, 3)}, {"to": 11}, opset=opset) for opset in (13, 21, 26)),
    *(
        Case("CastLike", {"x": (2, 3)}, fixed={"like": np.zeros(1)}, opset=opset)
        for opset in (17, 21)
    ),
    *(
        Case("Expand", {"x": shape}, fixed={"shape": ints(2, 3, 4)})
        for shape in [(2, 1, 4), (3, 1), (), (1,), (2, 3, 4)]
    ),
    Case("Expand", {"x": (5, 3, 1)}, fixed={"shape": ints(1, 4)}, name="one_sided", opset=13),
    Case("Tile", {"x": (2, 3)}, fixed={"repeats": ints(3, 2)}),
    Case("Tile", {"x": (2, 1, 3)}, fixed={"repeats": ints(1, 4, 2)}, name="some", opset=13),
    Case("Tile", {"x": (2, 3)}, fixed={"repeats": ints(1, 1)}, name="none"),
    Case("Tile", {"x": (2, 3)}, fixed={"repeats": ints(2, 0)}, name="empty"),
    Case("DepthToSpace", {"x": (2, 8, 2, 3)}, {"blocksize": 2}),
    Case("DepthToSpace", {"x": (2, 8, 2, 3)}, {"blocksize": 2, "mode": "CRD"}, name="crd"),
    Case("SpaceToDepth", {"x": (2, 3, 4, 6)}, {"blocksize": 2}),
    *(
        Case("Trilu", {"x": (2, 3, 4)}, {"upper": upper}, {"k": np.array(k)}, name=f"{upper}_{k}")
        for upper, k in [(1, 0), (1, 2), (0, -1), (0, 1)]
    ),
    Case("Trilu", {"x": (3, 4)}, name="without_k", opset=17),
]
