"""Run steps of a session with all tensors bound beforehand, so that only the step is timed.

Carried values (outputs that the next step reads) stay on the device, in two sets of tensors. A step
reads one set and writes the other. Values overwritten in place are in both sets.
"""

from __future__ import annotations

import itertools
import operator
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper

from epochcost.graphs.weight_bits import draw_codes
from epochcost.measure.job import CarriedValue, Job, JobError, PlacementError
from epochcost.measure.session import allocate, copy_into, input_devices, with_stored_type
from epochcost.plan.trial import SessionSettings
from epochcost.specs.study import Mode, Provider
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise

Array = NDArray[Any]
TensorType = tuple[tuple[int, ...], np.dtype[Any]]
# Pairs of a function and an array; the functions copy the inputs of a step to the device.
Feed = tuple[tuple[Callable[[Array], None], Array], ...]
_NUMBERS = {*TensorProto.DataType.keys()} - {"UNDEFINED", "STRING"}
_PLAIN = SessionSettings()


def tensor_type(info: ort.NodeArg) -> TensorType:
    """Shape and type of a graph value; raises JobError for a dynamic shape or unknown type."""
    # ONNX Runtime writes types as "tensor(float)", ONNX as "FLOAT".
    kind = info.type.removeprefix("tensor(").removesuffix(")").upper()
    if kind not in _NUMBERS or not all(isinstance(size, int) for size in info.shape):
        raise JobError(
            f"graph: expected a static shape and a number type of {info.name!r}, "
            f"got {info.type} {info.shape}"
        )
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind))
    return tuple(info.shape), dtype


@dataclass(frozen=True)
class StepInputs:
    """Values for the inputs of a graph.

    ``batches`` has arrays [batches, batch size, ...], which steps take in turn. Arrays [steps, ...]
    in ``series`` have a value for each step, such as learning rates; after the end, the last value
    stays. ``constants`` has all other inputs, including the first values of carried ones.
    """

    batches: Mapping[str, Array]
    constants: Mapping[str, Array]
    series: Mapping[str, Array] = field(default_factory=dict)


class Stepper:
    """Run steps of a session: each call copies the next batch, runs a step and waits for its end.

    In inference, a step copies all outputs to the host. ``settings`` are those of the session.
    """

    def __init__(
        self,
        session: ort.InferenceSession,
        provider: Provider,
        mode: Mode,
        inputs: StepInputs,
        carried: Sequence[CarriedValue] = (),
        settings: SessionSettings = _PLAIN,
    ) -> None:
        self._session, self._settings = session, settings
        self._run = session.run_with_iobinding
        self._device = provider
        self._waits = provider == "cuda"
        self._captures = settings.cuda_graph
        self.steps_taken = 0
        self._types = {i.name: tensor_type(i) for i in session.get_inputs()}
        self._homes = input_devices(session, self._device)
        if self._captures:
            self._require_on_device((*inputs.batches, *inputs.series, *(c.input for c in carried)))
        fixed = {name: self._put(name, array) for name, array in inputs.constants.items()}
        names = (*inputs.batches, *inputs.series)
        fed = {name: self._input(name) for name in names}
        self._even = {c.input: fixed[c.input] for c in carried}
        self._odd = {
            c.input: fixed[c.input] if c.in_place else self._input(c.input) for c in carried
        }
        self._outputs = self._other_outputs(mode, {c.output for c in carried})
        self._fetched = self._outputs if mode == "inference" and self._captures else {}
        self._bindings = [
            self._binding({**fixed, **fed, **before}, {c.output: after[c.input] for c in carried})
            for before, after in ((self._even, self._odd), (self._odd, self._even))
        ]
        options = [_cuda_graph_options(number) if self._captures else None for number in (0, 1)]
        self._runs = itertools.cycle(zip(self._bindings, options, strict=True))
        self._fed = fed
        self._series_feeds = _series_feeds(fed, inputs.series)
        pool = itertools.cycle(_batch_feeds(fed, inputs.batches))
        self._feeds = map(operator.add, pool, self._series_feeds)

    def feed_from(self, batches: Iterable[Mapping[str, Array]]) -> None:
        """Take further batches from ``batches``; inputs in ``StepInputs.series`` continue."""
        feeds = (
            tuple((self._fed[name].update_inplace, array) for name, array in batch.items())
            for batch in batches
        )
        self._feeds = map(operator.add, feeds, self._series_feeds)

    def __call__(self) -> None:
        """Run a step; returns when all outputs of the step are complete."""
        for update, array in next(self._feeds):
            update(array)
        if self._waits:
            self._bindings[0].synchronize_inputs()
        binding, options = next(self._runs)
        self._run(binding, options)
        # Kernels and copies are queued only under CUDA.
        if self._waits:
            binding.synchronize_outputs()
        for value in self._fetched.values():
            value.numpy()
        self.steps_taken += 1

    def carried_values(self) -> dict[str, Array]:
        """The values, by input, that the last step left for the next; no copies on the CPU."""
        current = self._odd if self.steps_taken % 2 else self._even
        return {name: value.numpy() for name, value in current.items()}

    def output(self, name: str) -> Array:
        """An output of the last step, on the CPU without a copy; JobError for a carried output."""
        if name not in self._outputs:
            raise JobError(
                f"graph: expected an output {name!r} that is not carried, "
                f"got {', '.join(sorted(self._outputs))}"
            )
        return np.asarray(self._outputs[name].numpy())

    def _require_on_device(self, changing_inputs: Sequence[str]) -> None:
        # The replay of a CUDA graph would not see a change in host memory.
        hosted = [name for name in changing_inputs if self._homes[name] != self._device]
        if hosted:
            raise PlacementError(
                "CUDA graph: expected every input that changes from step to step on the device, "
                f"got {', '.join(sorted(hosted))} read by the host, which a replay would not read "
                "again: set graphs = false in the study's table [cuda]"
            )

    def _other_outputs(self, mode: Mode, carried: set[str]) -> dict[str, ort.OrtValue]:
        # A replayed CUDA graph writes only to the device, so outputs are copied afterwards.
        device = "cpu" if mode == "inference" and not self._captures else self._device
        return {
            info.name: self._empty(*tensor_type(info), device)
            for info in self._session.get_outputs()
            if info.name not in carried
        }

    def _binding(
        self, inputs: Mapping[str, ort.OrtValue], carried: Mapping[str, ort.OrtValue]
    ) -> ort.IOBinding:
        binding = self._session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in {**self._outputs, **carried}.items():
            binding.bind_ortvalue_output(name, value)
        return binding

    def _put(self, name: str, array: Array) -> ort.OrtValue:
        # Not ortvalue_from_numpy: on the CPU it shares the array, which later steps overwrite.
        value = self._input(name)
        copy_into(value, array, self._settings)
        return value

    def _input(self, name: str) -> ort.OrtValue:
        return self._empty(*self._types[name], self._homes[name])

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: str) -> ort.OrtValue:
        return allocate(shape, dtype, device, self._settings.device)


def _cuda_graph_options(graph_number: int) -> ort.RunOptions:
    options = ort.RunOptions()
    # A CUDA graph has fixed addresses, so each binding of tensors needs its own graph.
    options.add_run_config_entry("gpu_graph_id", str(graph_number))
    return options


def _series_feeds(
    tensors: Mapping[str, ort.OrtValue], series: Mapping[str, Array]
) -> Iterator[Feed]:
    lengths = {len(array) for array in series.values()}
    if len(lengths) > 1 or 0 in lengths:
        raise JobError(f"series: expected equal lengths of at least 1, got {sorted(lengths)}")
    return itertools.chain(
        (
            tuple(
                (tensors[name].update_inplace, array[step, ...]) for name, array in series.items()
            )
            for step in range(max(lengths, default=0))
        ),
        # After the end of a series, its last value stays.
        itertools.repeat(()),
    )


def _batch_feeds(tensors: Mapping[str, ort.OrtValue], pools: Mapping[str, Array]) -> list[Feed]:
    sizes = {len(pool) if pool.ndim else 0 for pool in pools.values()}
    if len(sizes) > 1 or 0 in sizes:
        raise JobError(f"batches: expected pools of equal sizes, at least 1, got {sorted(sizes)}")
    return [
        tuple(
            (tensors[name].update_inplace, np.ascontiguousarray(pool[index]))
            for name, pool in pools.items()
        )
        for index in range(max(sizes, default=1))
    ]


def load_arrays(path: Path) -> dict[str, Array]:
    """Read the arrays of an .npz file; raises JobError if the file cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: with_stored_type(archive[name]) for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise JobError(f"{path}: expected an .npz of arrays; {error}") from error


def initial_parameters(job: Job) -> dict[str, Array]:
    """Parameters from ``job.initial``, or else drawn at random as the model's metadata says."""
    model = load_model(job.graph)
    drawn = {**materialise(model, job.seed), **draw_codes(model, job.seed)}
    return {**drawn, **(load_arrays(job.initial) if job.initial else {})}


def constant_weights(job: Job, parameters: Mapping[str, Array]) -> Mapping[str, Array]:
    """The parameters that an inference graph takes as inputs; empty for a training."""
    if job.mode == "training":
        return {}
    fed = {value.name for value in load_model(job.graph).graph.input}
    return {name: value for name, value in parameters.items() if name in fed}


def graph_inputs(
    job: Job, parameters: Mapping[str, Array], infos: Iterable[ort.NodeArg]
) -> StepInputs:
    """Find a value for every graph input.

    Values are in the job's files and scalars, in ``parameters``, or are ``CarriedValue.fill``.
    Raises JobError if an input has no value, an array has no input, or a shape or type is wrong.
    """
    types = {info.name: tensor_type(info) for info in infos}
    batches = _load_step_arrays(job, job.batches, types)
    series = {} if job.series is None else _load_step_arrays(job, job.series, types)
    constant = {name: types[name] for name in types.keys() - batches.keys() - series.keys()}
    for name in (constant.keys() & parameters.keys()) - job.scalars.keys():
        got = (parameters[name].shape, parameters[name].dtype)
        require_type(job.initial or job.graph, name, got, constant[name])
    scalars = {
        name: _repeated_number(kind, job.scalars[name])
        for name, kind in constant.items()
        if name in job.scalars
    }
    values = {**parameters, **scalars}
    return StepInputs(batches, first_values(job.graph, constant, values, job.carried), series)


def _load_step_arrays(
    job: Job, path: Path, input_types: Mapping[str, TensorType]
) -> dict[str, Array]:
    """Load arrays [steps, ...] of inputs; raises JobError if they do not fit the graph."""
    pools = load_arrays(path)
    unknown = sorted(pools.keys() - input_types.keys())
    if unknown:
        raise JobError(f"{path}: expected inputs of {job.graph}, got {unknown[0]!r}")
    for name, pool in pools.items():
        require_type(path, name, (pool.shape[1:], pool.dtype), input_types[name])
    return pools


def job_stepper(
    job: Job, session: ort.InferenceSession, parameters: Mapping[str, Array]
) -> Stepper:
    """A stepper of ``session``, which runs the job's graph with the job's settings."""
    inputs = graph_inputs(job, parameters, session.get_inputs())
    return Stepper(session, job.provider, job.mode, inputs, job.carried, job.session)


def first_values(
    graph: Path | str,
    types: Mapping[str, TensorType],
    values: Mapping[str, Array],
    carried: Iterable[CarriedValue],
) -> dict[str, Array]:
    """A value for each input of ``graph`` in ``types``: from ``values``, or ``CarriedValue.fill``.

    Raises JobError for an input that has neither.
    """
    fills = {each.input: each.fill for each in carried}
    missing = [name for name in types if name not in values and name not in fills]
    if missing:
        raise JobError(
            f"{graph}: input {missing[0]!r} has no value: expected it among the batches, the "
            "series, the scalars, the parameters or the carried values"
        )
    return {
        name: values[name] if name in values else _repeated_number(kind, fills[name])
        for name, kind in types.items()
    }


def _repeated_number(kind: TensorType, number: float) -> Array:
    shape, dtype = kind
    # A view that stores the number once, because optimizer states are large.
    return np.broadcast_to(np.asarray(number, dtype), shape)


def require_type(path: Path, name: str, got: TensorType, expected: TensorType) -> None:
    """Raise JobError unless shape and type of an array in a file are those of the graph input."""
    if got != expected:
        raise JobError(
            f"{path}: {name!r}: expected {expected[1]} {list(expected[0])} for one step, "
            f"got {got[1]} {list(got[0])}"
        )
