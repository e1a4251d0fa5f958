"""The execution providers that work on this machine."""

from __future__ import annotations

from epochcost.errors import CapabilityError
from epochcost.measure.runtime import require_cuda
from epochcost.specs.study import Provider


def usable_providers() -> tuple[Provider, ...]:
    """The CPU, and CUDA if a graph ran on a GPU."""
    try:
        require_cuda()
    except CapabilityError:
        return ("cpu",)
    return ("cpu", "cuda")
