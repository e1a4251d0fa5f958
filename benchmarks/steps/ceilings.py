"""What the machine can do at most: multiply matrices, and copy memory, on some threads."""

from __future__ import annotations

from epochcost.measure.ceilings import MOST_COPIED_BYTES, CeilingWork, measure_ceiling


def measure_ceilings(threads: int) -> dict[str, float]:
    """``flops`` of a product of two float32 matrices of 2048 and ``copy_bytes`` a second.

    Both by ONNX Runtime's CPU provider; a copy of 512 MB counts what is read and what is written.
    Medians of 7.
    """
    found = measure_ceiling(CeilingWork(copied_bytes=MOST_COPIED_BYTES), threads)
    return {"flops": found.flops.median, "copy_bytes": found.copy_bytes.median}
