"""Sizes of models: arithmetic and memory of a run at each batch size.

``execute.sizing`` counts the figures; ``make`` compares them with the memory of a machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochcost.specs.study import Mode, Provider

# Memory of Python and ONNX Runtime before any tensor: the peaks of trials of the smallest models on
# Linux. A CUDA driver's own memory on the device is not counted.
PROCESS_BYTES = 104 * 2**20


@dataclass(frozen=True)
class Footprint:
    """A run of a graph at a batch size; bytes count each tensor once.

    ``forward_flops`` are of the model in inference form, ``step_flops`` of the whole training step
    as it runs, None in inference. ``weight_bytes`` are parameters and running statistics.
    ``carried_bytes`` are changed by a step: trained parameters, statistics, optimizer and
    recurrent states; ``in_place_bytes`` of them are overwritten, ``fixed_bytes`` are the unchanged
    weights. ``activation_bytes`` are intermediate tensors in the arena, gradients included.
    ``exchanged_bytes`` are a batch of inputs and targets and the outputs, ``pool_bytes`` the
    batches that wait on the host, ``folded_bytes`` the constants that a session computes
    beforehand.
    """

    mode: Mode
    batch_size: int
    forward_flops: int
    step_flops: int | None
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
        """Carried values that a step writes to new memory instead of overwriting."""
        return self.carried_bytes - self.in_place_bytes

    @property
    def device_bytes(self) -> int:
        """Memory of the device that runs the graph."""
        weights = self.fixed_bytes + self.carried_bytes + self.second_set_bytes + self.folded_bytes
        return weights + self.activation_bytes + self.exchanged_bytes

    @property
    def host_bytes(self) -> int:
        """Other memory of the host: the weights' first values, waiting batches, the process."""
        return self.weight_bytes + self.pool_bytes + PROCESS_BYTES

    def memory_bytes(self, provider: Provider) -> int:
        """Estimate the memory that a trial needs: of the host, or of the GPU for CUDA."""
        return self.device_bytes + (self.host_bytes if provider == "cpu" else 0)


@dataclass(frozen=True)
class Uncounted:
    """A mode whose graph cannot be built or counted, and the reason."""

    mode: Mode
    reason: str


@dataclass(frozen=True)
class ModelSize:
    """A model's parameters, and a footprint for each requested batch size."""

    model: str
    parameters: int
    trainable_parameters: int
    footprints: tuple[Footprint, ...]
    uncounted: tuple[Uncounted, ...] = ()

    def footprint(self, mode: Mode, batch_size: int) -> Footprint | None:
        """The footprint of a batch size; None if it was not requested or cannot be counted."""
        key = (mode, batch_size)
        return next((f for f in self.footprints if (f.mode, f.batch_size) == key), None)

    @property
    def forward_flops_per_example(self) -> float | None:
        """FLOPs at the largest batch, where work that does not depend on the batch counts least."""
        largest = max(self.footprints, key=lambda f: f.batch_size, default=None)
        return None if largest is None else largest.forward_flops / largest.batch_size

    @property
    def step_flops_per_example(self) -> float | None:
        """FLOPs of the whole training step as it runs, at its largest batch."""
        steps = [f for f in self.footprints if f.step_flops is not None]
        largest = max(steps, key=lambda f: f.batch_size, default=None)
        if largest is None or largest.step_flops is None:
            return None
        return largest.step_flops / largest.batch_size
