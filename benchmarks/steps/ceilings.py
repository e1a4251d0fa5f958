"""Peak performance of the machine: matrix products and memory copies, on some threads."""

from __future__ import annotations

from epochcost.measure.ceilings import MOST_COPIED_BYTES, CeilingWork, measure_ceiling


def measure_ceilings(threads: int) -> dict[str, float]:
    """``flops`` of a product of two float32 matrices of 2048, and ``copy_bytes`` a second.

    ONNX Runtime's CPU provider computes both. A copy of 512 MB counts bytes read and written. Both
    are medians of 7 runs.
    """
    ceiling = measure_ceiling(CeilingWork(copied_bytes=MOST_COPIED_BYTES), threads)
    return {"flops": ceiling.flops.median, "copy_bytes": ceiling.copy_bytes.median}
