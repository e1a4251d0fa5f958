"""Run a training from any step as if it had never stopped, even with the same Dropout masks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from epochcost.measure.job import CarriedValue
from epochcost.measure.placement import executed_nodes, prove_placement
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Array, StepInputs, Stepper, first_values, tensor_type
from epochcost.plan.trial import SessionSettings
from epochcost.specs.study import Provider
from onnxstep.graphs.nodes import copied, is_standard

Batches = Iterator[Mapping[str, Array]]


@dataclass(frozen=True)
class TrainingGraphs:
    """The graphs of a training, and the names of their inputs and outputs.

    ``fed`` are inputs that change with each step. ``evaluations`` has a graph for each batch size,
    with the output "loss" and an output named by ``scores``.
    """

    step: onnx.ModelProto
    fed: tuple[str, ...]
    loss: str
    carried: tuple[CarriedValue, ...]
    evaluations: Mapping[int, onnx.ModelProto]
    scores: str


class TrainingSession:
    """Runs the steps that follow the first ``steps_taken`` steps of a training.

    ``values`` has parameters and carried values by graph input. A carried value that ``values``
    lacks starts at its ``CarriedValue.fill``. On a GPU, the first step is profiled in ``folder``.
    Raises JobError for an input without a value.
    """

    def __init__(
        self,
        graphs: TrainingGraphs,
        provider: Provider,
        settings: SessionSettings,
        values: Mapping[str, Array],
        steps_taken: int,
        folder: Path,
    ) -> None:
        self._graphs, self._values, self._provider = graphs, dict(values), provider
        self._ahead = self._to_prove = provider != "cpu"
        # On CPUs, Dropout's generator starts at the node's seed and advances by one at each run.
        step = with_later_masks(graphs.step, steps_taken).SerializeToString()
        profile = folder / "profile" if self._ahead else None
        self._session = open_session(step, provider, settings, profile)
        inputs = _initial_step_inputs(graphs, values, self._session)
        self._stepper = Stepper(
            self._session, provider, "training", inputs, graphs.carried, settings
        )
        self._evaluations = {
            size: open_session(graph.SerializeToString(), provider, settings)
            for size, graph in graphs.evaluations.items()
        }

    def losses(self, batches: Batches, count: int) -> Iterator[tuple[float, float]]:
        """Run ``count`` steps; yields each step's loss and its seconds of waiting for a batch."""
        # On a CPU, a thread would slow the step by more than the reading takes.
        reader = TimedReader(batches, _READ_AHEAD if self._ahead else 0)
        waited_before = 0.0
        self._stepper.feed_from(reader)
        for _ in range(count):
            self._stepper()
            if self._to_prove:
                prove_placement(executed_nodes(self._session), self._provider)
                self._to_prove = False
            loss = float(self._stepper.output(self._graphs.loss))
            yield loss, reader.waited_seconds - waited_before
            waited_before = reader.waited_seconds

    def evaluate(
        self, batches: Iterable[Mapping[str, Array]]
    ) -> Iterator[tuple[Mapping[str, Array], float, Array]]:
        """Evaluate each batch in the graph for its size; yields the batch, its loss and scores."""
        values = {**self._values, **self._stepper.carried_values()}
        for batch in batches:
            session = self._evaluations[len(next(iter(batch.values())))]
            names = [info.name for info in session.get_inputs()]
            fed = {name: batch[name] if name in batch else values[name] for name in names}
            loss, scores = session.run(["loss", self._graphs.scores], fed)
            yield batch, float(loss), scores

    def carried_values(self) -> dict[str, Array]:
        """Copies of the current parameters and all other carried state, by graph input."""
        return {name: value.copy() for name, value in self._stepper.carried_values().items()}


def _initial_step_inputs(
    graphs: TrainingGraphs, values: Mapping[str, Array], session: ort.InferenceSession
) -> StepInputs:
    types = {info.name: tensor_type(info) for info in session.get_inputs()}
    pools = {name: np.zeros((1, *types[name][0]), types[name][1]) for name in graphs.fed}
    constant = {name: kind for name, kind in types.items() if name not in graphs.fed}
    return StepInputs(pools, first_values("training", constant, values, graphs.carried))


def with_later_masks(step: onnx.ModelProto, steps: int) -> onnx.ModelProto:
    """A copy of a step's graph with Dropout's seeds increased by ``steps``, the steps so far."""
    later = copied(step)
    for node in later.graph.node:
        for attribute in node.attribute:
            if is_standard(node, "Dropout") and attribute.name == "seed":
                attribute.i += steps
    return later


# Number of batches that are read before they are needed; more might not fit in memory.
_READ_AHEAD = 4


class TimedReader(Batches):
    """Reads batches in order, up to ``ahead`` early in a thread, and counts seconds of waiting."""

    def __init__(self, batches: Batches, ahead: int) -> None:
        self.waited_seconds = 0.0
        self._read = _read_ahead(batches, ahead) if ahead else batches

    def __next__(self) -> Mapping[str, Array]:
        begun = time.perf_counter()
        batch = next(self._read)
        self.waited_seconds += time.perf_counter() - begun
        return batch


def _read_ahead(batches: Batches, ahead: int) -> Batches:
    with ThreadPoolExecutor(1) as pool:
        # None comes after the last batch.
        pending = deque(pool.submit(next, batches, None) for _ in range(ahead))
        while (batch := pending.popleft().result()) is not None:
            pending.append(pool.submit(next, batches, None))
            yield batch
