"""How large a model is and what a run of it asks for: arithmetic, and memory by what holds it.

The figures are counted in ``execute.sizing``; what a machine has room for is known in ``make``.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochcost.specs.study import Mode, Provider

# What Python and ONNX Runtime hold before any tensor, as the peaks of trials of the smallest models
# on Linux had it. Not counted is a CUDA driver's own memory on the device.
PROCESS_BYTES = 104 * 2**20


@dataclass(frozen=True)
class Footprint:
    """One run of a graph at one batch size; bytes are of tensors, for each a single copy.

    ``forward_flops`` are of the model in inference form, ``step_flops`` of the whole training step
    as it is run, None in inference. ``weight_bytes`` are parameters and running statistics.
    ``carried_bytes`` are what a step changes: trained parameters, statistics, optimizer and
    recurrent states; ``in_place_bytes`` what of them it overwrites, ``fixed_bytes`` the weights
    that it does not change. ``activation_bytes`` are what intermediate tensors take of the arena,
    gradients among them. ``exchanged_bytes`` are one batch of inputs and targets and the outputs,
    ``pool_bytes`` the batches that wait on the host, ``folded_bytes`` what a session computes of
    constants beforehand.
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
        """What a step writes beside the carried values that it reads."""
        return self.carried_bytes - self.in_place_bytes

    @property
    def device_bytes(self) -> int:
        """What is held where the graph runs."""
        held = self.fixed_bytes + self.carried_bytes + self.second_set_bytes + self.folded_bytes
        return held + self.activation_bytes + self.exchanged_bytes

    @property
    def host_bytes(self) -> int:
        """What the host holds beside: the weights' first values, waiting batches, the process."""
        return self.weight_bytes + self.pool_bytes + PROCESS_BYTES

    def memory_bytes(self, provider: Provider) -> int:
        """An estimate of the memory that a trial needs: of the host, or of the GPU for CUDA."""
        return self.device_bytes + (self.host_bytes if provider == "cpu" else 0)


@dataclass(frozen=True)
class Uncounted:
    """A mode whose graph cannot be built or counted, and why."""

    mode: Mode
    reason: str


@dataclass(frozen=True)
class ModelSize:
    """A model's parameters, and a footprint for each batch size that was asked for."""

    model: str
    parameters: int
    trainable_parameters: int
    footprints: tuple[Footprint, ...]
    uncounted: tuple[Uncounted, ...] = ()

    def footprint(self, mode: Mode, batch_size: int) -> Footprint | None:
        """The one of a batch size; None where it was not asked for or cannot be counted."""
        wanted = (mode, batch_size)
        return next((f for f in self.footprints if (f.mode, f.batch_size) == wanted), None)

    @property
    def forward_flops_per_example(self) -> float | None:
        """At the largest batch, where work that no example causes weighs least."""
        largest = max(self.footprints, key=lambda f: f.batch_size, default=None)
        return None if largest is None else largest.forward_flops / largest.batch_size

    @property
    def step_flops_per_example(self) -> float | None:
        """Of the whole training step as it is run, at its largest batch."""
        steps = [f for f in self.footprints if f.step_flops is not None]
        largest = max(steps, key=lambda f: f.batch_size, default=None)
        if largest is None or largest.step_flops is None:
            return None
        return largest.step_flops / largest.batch_size
