"""The memory that a model needs in training or inference at each batch size.

``execute.sizing`` estimates this memory, and ``plan.make`` compares it with a machine's memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochcost.specs.study import Mode, Provider

# Memory of Python and ONNX Runtime without tensors: the peak memory of trials of the smallest
# models on Linux. A CUDA driver's own memory on the device is not counted.
PROCESS_BYTES = 104 * 2**20


@dataclass(frozen=True)
class Footprint:
    """Memory that a run of a graph needs at a batch size.

    ``weight_bytes`` are parameters and running statistics; no step changes ``fixed_bytes`` of them.
    ``carried_bytes`` are values that a step changes for the next, such as the optimizer's states.
    The new values of ``in_place_bytes`` overwrite the old ones. ``activation_bytes`` is the peak of
    intermediate results and gradients. ``exchanged_bytes`` are a batch's inputs, targets and
    outputs, ``pool_bytes`` the waiting batches, ``folded_bytes`` constants that a session computes.
    """

    mode: Mode
    batch_size: int
    weight_bytes: int
    fixed_bytes: int
    carried_bytes: int
    activation_bytes: int
    exchanged_bytes: int
    pool_bytes: int
    folded_bytes: int = 0
    in_place_bytes: int = 0

    @property
    def second_set_bytes(self) -> int:
        """Bytes of values for the next step that exist twice, as new do not overwrite old."""
        return self.carried_bytes - self.in_place_bytes

    @property
    def device_bytes(self) -> int:
        """Bytes of memory that the run needs on the device that computes."""
        weights = self.fixed_bytes + self.carried_bytes + self.second_set_bytes + self.folded_bytes
        return weights + self.activation_bytes + self.exchanged_bytes

    @property
    def host_bytes(self) -> int:
        """Host bytes besides ``device_bytes``: initial weights, waiting batches, the process."""
        return self.weight_bytes + self.pool_bytes + PROCESS_BYTES

    def memory_bytes(self, provider: Provider) -> int:
        """Estimated bytes of memory that a trial needs: GPU memory for CUDA, else host memory."""
        return self.device_bytes + (self.host_bytes if provider == "cpu" else 0)


@dataclass(frozen=True)
class Uncounted:
    """A mode whose memory cannot be estimated, with the reason."""

    mode: Mode
    reason: str


@dataclass(frozen=True)
class ModelSize:
    """The memory of a model at each requested batch size, and the modes without an estimate."""

    footprints: tuple[Footprint, ...]
    uncounted: tuple[Uncounted, ...] = ()

    def footprint(self, mode: Mode, batch_size: int) -> Footprint | None:
        """The memory at a batch size; None if the size was not requested or has no estimate."""
        key = (mode, batch_size)
        return next((f for f in self.footprints if (f.mode, f.batch_size) == key), None)
