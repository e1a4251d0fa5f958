"""Test cases of matrix products that cover all branches of the gradient rules."""

from __future__ import annotations

from gradient_check import Case

CASES = [
    *(
        Case(
            "Gemm",
            {"a": (3, 2)[:: -1 if ta else 1], "b": (2, 4)[:: -1 if tb else 1], "c": c},
            {"transA": ta, "transB": tb, "alpha": 0.5, "beta": 2.0},
            name=f"trans{ta}{tb}_c{len(c)}",
        )
        for ta in (0, 1)
        for tb in (0, 1)
        for c in ((4,), (3, 4), (3, 1), ())
    ),
    Case("Gemm", {"a": (3, 2), "b": (2, 4)}, name="without_c"),
    *(
        Case("MatMul", {"a": a, "b": b})
        for a, b in [
            ((2, 3), (3, 4)),
            ((3,), (3,)),
            ((3,), (3, 4)),
            ((2, 3), (3,)),
            ((5, 2, 3), (3, 4)),
            ((5, 2, 3), (5, 3, 4)),
            ((2, 1, 2, 3), (5, 3, 2)),
            ((3,), (5, 3, 2)),
            ((5, 2, 3), (3,)),
        ]
    ),
    *(
        Case(
            "Einsum",
            dict(zip("abc", shapes, strict=False)),
            {"equation": equation},
            name=equation.replace(" ", ""),
        )
        for equation, *shapes in (
            ("ij,jk->ik", (2, 3), (3, 4)),
            # A label of length one broadcasts to another operand's length.
            ("ij,jk->ki", (3, 1), (2, 2)),
            ("bij,bjk->bik", (1, 2, 3), (4, 3, 2)),
            ("...ij,...kj->...ik", (2, 1, 2, 3), (1, 4, 2, 1)),
            ("bhld, bhsd -> bhls", (2, 2, 3, 4), (2, 2, 5, 4)),
            ("ij,jk", (2, 3), (3, 4)),
            ("ba", (2, 3)),
            ("iij", (3, 3, 2)),
            ("...ij,...jk->...ik", (2, 1, 2, 3), (2, 5, 3, 2)),
            ("i...,j...", (2, 3, 2), (4, 3, 2)),
            ("...i->...", (2, 3, 4)),
            ("ij->i", (2, 3)),
            ("ij->", (2, 3)),
            ("i,i", (3,), (3,)),
            ("i,j->ij", (3,), (2,)),
            ("ab,b->a", (2, 3), (3,)),
            ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
            ("ii->i", (3, 3)),
            ("ii", (3, 3)),
            ("iij,j->i", (3, 3, 2), (2,)),
            ("ij,ik->i", (2, 3), (2, 4)),
        )
    ),
    Case("Einsum", {"a": (2, 3), "b": (3, 4)}, {"equation": "ij,jk->ik"}, opset=13, name="opset13"),
    Case(
        "Einsum",
        {"a": (2, 3)},
        {"equation": "Ba"},
        name="capital",
        runtime_flaw="ONNX Runtime 1.31 refuses it",
    ),
]
