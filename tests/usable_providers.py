"""Which execution providers run a graph on the machine of the tests."""

from __future__ import annotations

from epochcost.errors import CapabilityError
from epochcost.measure.runtime import require_cuda
from epochcost.specs.study import Provider


def usable_providers() -> tuple[Provider, ...]:
    """The CPU, and CUDA where a graph ran on it."""
    try:
        require_cuda()
    except CapabilityError:
        return ("cpu",)
    return ("cpu", "cuda")
