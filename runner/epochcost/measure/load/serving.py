"""A model that answers any number of examples at once: a session for each of some batch sizes.

Fixed shapes are what the batch trials run, let ONNX Runtime plan memory, and suit graphs without a
symbolic batch; a batch in between is padded to the next size. Parameters that are graph inputs are
on the device once for all sizes. Owns sessions and bindings; who asks is left to ``scenario``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort

from epochcost.measure.arithmetic import demanding_kernels, prove_arithmetic
from epochcost.measure.failures import JobError
from epochcost.measure.job import Job
from epochcost.measure.placement import prove_placement, read_profile
from epochcost.measure.session import DEVICES, open_session
from epochcost.measure.stepping import Array, TensorType, tensor_type
from epochcost.measure.tensors import fill, room
from epochcost.measure.values import initial_parameters, load_arrays
from epochcost.results.records import EXECUTION_PROVIDERS, Placement


class ServedModel:
    """Calling it with indices of examples answers them all; every output is brought to the host.

    ``placement`` is the proof of the largest size, and ``first_outputs`` what it answered to its
    first batch, the first examples. Every call starts carried state anew, as
    requests of different users must. Raises JobError for a graph input without a value.
    """

    def __init__(self, job: Job, graphs: Mapping[int, Path], folder: Path) -> None:
        self.examples = load_arrays(job.batches)
        lengths = {len(pool) for pool in self.examples.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise JobError(f"{job.batches}: demanded examples of every input; got {lengths}")
        (self.example_count,) = lengths
        self.runs = self._last = 0
        values = _DeviceValues(job, self.examples)
        self._sizes: dict[int, _Size] = {}
        for size in sorted(graphs):
            with demanding_kernels(job.precision, job.provider):
                session = open_session(graphs[size], job.provider, job.session, folder / "profile")
            self._sizes[size] = _Size(session, values)
            self.placement = self._proof(job, session, size)
        self.first_outputs = {name: self.output(name).copy() for name in self._sizes[size].outputs}

    @property
    def sizes(self) -> tuple[int, ...]:
        """The batch sizes that a session has, ascending."""
        return tuple(self._sizes)

    def __call__(self, indices: Sequence[int]) -> None:
        """Answer examples: at most as many as the largest size."""
        self._last = next(size for size in self._sizes if size >= len(indices))
        self._sizes[self._last].run(indices)
        self.runs += 1

    def output(self, name: str) -> Array:
        """Copy an output of the last call, padding included."""
        return np.asarray(self._sizes[self._last].outputs[name].numpy())

    def _proof(self, job: Job, session: ort.InferenceSession, size: int) -> Placement:
        self([index % self.example_count for index in range(size)])
        profile = Path(session.end_profiling())
        nodes = read_profile(profile)
        profile.unlink()
        prove_arithmetic(nodes, job.precision, job.provider)
        return prove_placement(nodes, EXECUTION_PROVIDERS[job.provider])


class _DeviceValues:
    """The values of graph inputs; those that do not depend on the batch are made once."""

    def __init__(self, job: Job, examples: Mapping[str, Array]) -> None:
        self.job, self.examples = job, examples
        self.provider, self.device = job.provider, DEVICES[job.provider]
        self._parameters = initial_parameters(job)
        self._fills = {carried.input: carried.fill for carried in job.carried}
        self._shared: dict[str, ort.OrtValue] = {}

    def fixed(self, name: str, kind: TensorType) -> ort.OrtValue:
        """The value of an input that no example changes."""
        if name in self._fills and name not in self._parameters:
            return self.put(np.full(kind[0], self._fills[name], kind[1]))
        if name not in self._shared:
            self._shared[name] = self.put(self._parameter(name, kind))
        return self._shared[name]

    def put(self, array: Array) -> ort.OrtValue:
        """Copy an array to the device."""
        value = self.empty((array.shape, array.dtype))
        fill(value, array, self.job.session)
        return value

    def empty(self, kind: TensorType, device: str | None = None) -> ort.OrtValue:
        """Reserve room on a device; the provider's where none is named."""
        shape, dtype = kind
        place = device or self.device
        number = 0 if place == "cpu" else self.job.session.device
        return room(shape, dtype, place, number)

    def _parameter(self, name: str, kind: TensorType) -> Array:
        if name not in self._parameters:
            raise JobError(
                f"{self.job.graph}: input {name!r} has no value: demanded it among the examples, "
                "the parameters or the carried values"
            )
        value = self._parameters[name]
        if (value.shape, value.dtype) != kind:
            raise JobError(
                f"{self.job.graph}: {name!r}: demanded {kind[1]} {list(kind[0])}; "
                f"got {value.dtype} {list(value.shape)}"
            )
        return value


class _Size:
    """One session of a fixed batch size with everything bound beforehand."""

    def __init__(self, session: ort.InferenceSession, values: _DeviceValues) -> None:
        self._session, self._examples = session, values.examples
        self._waits = values.provider == "cuda"
        kinds = {info.name: tensor_type(info) for info in session.get_inputs()}
        self._fed = {name: values.empty(kinds[name]) for name in values.examples}
        self._staged = {name: np.zeros(*kinds[name]) for name in values.examples}
        self._binding = session.io_binding()
        for name, kind in kinds.items():
            fed = self._fed.get(name)
            value = values.fixed(name, kind) if fed is None else fed
            self._binding.bind_ortvalue_input(name, value)
        self.outputs = {
            info.name: values.empty(tensor_type(info), "cpu") for info in session.get_outputs()
        }
        for name, value in self.outputs.items():
            self._binding.bind_ortvalue_output(name, value)

    def run(self, indices: Sequence[int]) -> None:
        for name, pool in self._examples.items():
            staged = self._staged[name]
            np.take(pool, indices, axis=0, out=staged[: len(indices)], mode="clip")
            self._fed[name].update_inplace(staged)
        if self._waits:
            self._binding.synchronize_inputs()
        self._session.run_with_iobinding(self._binding)
        if self._waits:
            self._binding.synchronize_outputs()
