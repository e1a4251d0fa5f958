"""Gradient cases of sampling, at least one for each form of a rule."""

from __future__ import annotations

from typing import Any

from gradient_check import Case, ints


def _grid(
    name: str, opset: int = 20, *, x: tuple[int, ...] = (2, 3, 4, 5), **attributes: Any
) -> Case:
    """A case of points inside and outside the image, some of which are reflected twice."""
    grid = (x[0], *(3,) * (len(x) - 2), len(x) - 2)
    fields = {"low": -2.6, "high": 2.6, "opset": opset, "name": name}
    return Case("GridSample", {"x": x, "grid": grid}, attributes, **fields)


CASES = [
    *(
        _grid(f"{mode}_{padding}_{align}", mode=mode, padding_mode=padding, align_corners=align)
        for mode in ("linear", "nearest", "cubic")
        for padding in ("zeros", "border", "reflection")
        for align in (0, 1)
    ),
    *(
        _grid(f"3d_{mode}_{padding}", x=(1, 2, 3, 4, 2), mode=mode, padding_mode=padding)
        for mode in ("linear", "nearest")
        for padding in ("zeros", "border", "reflection")
    ),
    *(_grid(mode, 16, mode=mode) for mode in ("bilinear", "bicubic", "nearest")),
    _grid("defaults", 22),
    _grid("one_column", x=(1, 2, 3, 1), align_corners=1, padding_mode="border"),
    *(
        Case(
            "AffineGrid",
            {"theta": (2, len(size), len(size) + 1)},
            {"align_corners": align},
            fixed={"size": ints(2, 3, *size)},
            name=f"{len(size)}d_align{align}",
        )
        for size in ((4, 5), (2, 3, 4))
        for align in (0, 1)
    ),
]
